"""Flat clusters from a tree."""

from __future__ import annotations

from evertree.kernels.columns import NULL, Tree
from evertree.kernels.compile import inline, kernel
from evertree.kernels.shared.topology import is_leaf
from evertree.kernels.signatures import Bools, Ints, LongInts


@kernel
def split_above(tree: Tree, nodes: Ints, is_split: Bools) -> None:
    """Mark every node above a split node as split too. O(n). `nodes` are all nodes, children first."""
    for u in nodes:
        p = tree.parent[u]
        if is_split[u] and p != NULL:
            is_split[p] = True


@inline
def sink(tree, heap, k, count):
    """Let entry `k` of a heap of nodes, the highest first, sink to its place. O(log n)."""
    u = heap[k]
    while 2 * k + 1 < count:
        child = 2 * k + 1
        if child + 1 < count and tree.height[heap[child + 1]] > tree.height[heap[child]]:
            child += 1
        if not tree.height[heap[child]] > tree.height[u]:
            break
        heap[k] = heap[child]
        k = child
    heap[k] = u


@inline
def rise(tree, heap, k):
    """Let entry `k` of a heap of nodes rise to its place. O(log n)."""
    u = heap[k]
    while k > 0 and tree.height[heap[(k - 1) >> 1]] < tree.height[u]:
        heap[k] = heap[(k - 1) >> 1]
        k = (k - 1) >> 1
    heap[k] = u


@kernel
def split_highest(tree: Tree, most: int, above: float, heap: Ints, leaves: Ints) -> tuple[int, int, int]:
    """Undo up to `most` merges of a monotone tree, the highest first, and none at `above` or below. O(k log k).

    Fills `heap` with the inner nodes that are left, of which the first is the highest, and `leaves` with the leaves.
    Returns how many these are, and the node of the last merge that was undone, or NULL. If a node is found to be lower
    than its child, the first number is -1.
    """
    root, n_inner, n_leaves, last = tree.state["root"][0], 0, 0, NULL
    if is_leaf(root):
        leaves[0] = root
        n_leaves = 1
    else:
        heap[0] = root
        n_inner = 1
    while most > 0 and n_inner > 0 and tree.height[heap[0]] > above:
        most -= 1
        last = u = heap[0]
        n_inner -= 1
        heap[0] = heap[n_inner]
        sink(tree, heap, 0, n_inner)
        for child in (tree.left[u], tree.right[u]):
            if is_leaf(child):
                leaves[n_leaves] = child
                n_leaves += 1
            elif tree.height[child] > tree.height[u]:
                return -1, n_leaves, last
            else:
                heap[n_inner] = child
                rise(tree, heap, n_inner)
                n_inner += 1
    return n_inner, n_leaves, last


@kernel
def label_below(tree: Tree, tops: Ints, numbers: Ints, stack: Ints, labels: LongInts) -> bool:
    """Label the points below each of some nodes with its number, by row. O(n).

    Returns whether no node below them is lower than its child.
    """
    is_monotone = True
    for k in range(tops.size):
        stack[0] = tops[k]
        count = 1
        while count > 0:
            count -= 1
            u = stack[count]
            if is_leaf(u):
                labels[u >> 1] = numbers[k]
                continue
            for child in (tree.left[u], tree.right[u]):
                if is_leaf(child):
                    labels[child >> 1] = numbers[k]
                else:
                    is_monotone = is_monotone and tree.height[child] <= tree.height[u]
                    stack[count] = child
                    count += 1
    return is_monotone
