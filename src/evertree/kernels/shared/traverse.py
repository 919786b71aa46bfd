"""Traversals of a tree. Nothing is recursive: a path of a million nodes is a valid tree."""

from __future__ import annotations

from evertree.kernels.columns import Tree
from evertree.kernels.compile import kernel
from evertree.kernels.shared.topology import is_leaf
from evertree.kernels.signatures import Ints


@kernel
def postorder(tree: Tree, root: int, nodes: Ints) -> int:
    """Fill the end of `nodes` with `root` and all below it, children first; return where they begin. Linear time.

    The child with the older point comes first, and the leaves below any node are contiguous. Reversed, this is a
    preorder, which visits each node once: waiting nodes are at the beginning of `nodes`, where there is room for them,
    because they will be moved to the end too. It stops when `nodes` is full.
    """
    start = nodes.size
    n_waiting = 0
    if start > 0:
        nodes[0] = root
        n_waiting = 1
    while n_waiting > 0:
        n_waiting -= 1
        u = nodes[n_waiting]
        start -= 1
        nodes[start] = u
        if not is_leaf(u):
            older, younger = tree.left[u], tree.right[u]
            if tree.birth[older] > tree.birth[younger]:
                older, younger = younger, older
            if n_waiting + 2 > start:
                break
            nodes[n_waiting] = older
            nodes[n_waiting + 1] = younger
            n_waiting += 2
    return start


@kernel
def find_spans(tree: Tree, nodes: Ints, leaves: Ints, first: Ints, stop: Ints) -> None:
    """Find the range of the leaves below each node among all leaves.

    `nodes` are all nodes in postorder. Fills `leaves` with the leaves among them, and for each node u, ``first[u]`` and
    ``stop[u]`` with the ends of its range. O(n).
    """
    count = 0
    for u in nodes:
        if is_leaf(u):
            leaves[count] = u
            first[u] = count
            count += 1
        else:
            first[u] = min(first[tree.left[u]], first[tree.right[u]])
        stop[u] = count
