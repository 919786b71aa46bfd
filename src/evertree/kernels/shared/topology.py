"""Edits of the shape of a tree. None of them touches statistics. Each step is O(1)."""

from __future__ import annotations

import numpy as np

from evertree.kernels.columns import FREE, NULL, Tree
from evertree.kernels.compile import inline, kernel
from evertree.kernels.signatures import Ints


@inline
def is_leaf(u):
    """Leaves have even numbers."""
    return (u & 1) == 0


@inline
def sibling(tree, u):
    """The other child of the parent of `u`; NULL for the root."""
    p = tree.parent[u]
    if p == NULL:
        return NULL
    return tree.right[p] if tree.left[p] == u else tree.left[p]


@inline
def children(tree, u):
    """The children of an inner node, in the integer type that steps take: another would compile them again."""
    return np.int64(tree.left[u]), np.int64(tree.right[u])


@inline
def hangs(tree, u):
    """Whether `u` is in the tree."""
    return u != NULL and (tree.parent[u] > NULL or tree.state["root"][0] == u)


@inline
def new_leaf(tree):
    """An unused leaf: from the list of free leaves, or else the next one."""
    u = tree.state["free_leaf"][0]
    if u != NULL:
        tree.state["free_leaf"][0] = FREE - tree.parent[u] - 1
    else:
        u = 2 * tree.state["leaf_top"][0]
        tree.state["leaf_top"][0] += 1
    tree.parent[u] = NULL
    tree.left[u] = NULL
    tree.right[u] = NULL
    return u


@inline
def new_inner(tree):
    """The same for an inner node."""
    u = tree.state["free_inner"][0]
    if u != NULL:
        tree.state["free_inner"][0] = FREE - tree.parent[u] - 1
    else:
        u = 2 * tree.state["inner_top"][0] + 1
        tree.state["inner_top"][0] += 1
    tree.parent[u] = NULL
    tree.left[u] = NULL
    tree.right[u] = NULL
    return u


@inline
def release(tree, u):
    """Put a detached node on its list of free nodes."""
    tree.left[u] = NULL
    tree.right[u] = NULL
    if is_leaf(u):
        tree.parent[u] = FREE - (tree.state["free_leaf"][0] + 1)
        tree.state["free_leaf"][0] = u
    else:
        tree.parent[u] = FREE - (tree.state["free_inner"][0] + 1)
        tree.state["free_inner"][0] = u


@kernel
def allocate_leaves(tree: Tree, leaves: Ints) -> None:
    """Fill `leaves` with unused leaves."""
    for i in range(leaves.size):
        leaves[i] = new_leaf(tree)


@kernel
def release_nodes(tree: Tree, nodes: Ints) -> None:
    """Put detached nodes on the lists of free nodes."""
    for u in nodes:
        release(tree, u)


@inline
def replace_child(tree, p, old, new):
    """Make `new` the child of `p`, or the root where `p` is NULL, instead of `old`."""
    tree.parent[new] = p
    if p == NULL:
        tree.state["root"][0] = new
    elif tree.left[p] == old:
        tree.left[p] = new
    else:
        tree.right[p] = new


@inline
def attach(tree, u, target):
    """Attach `u` beside `target`, below a new inner node, which is returned."""
    p = new_inner(tree)
    replace_child(tree, tree.parent[target], target, p)
    tree.left[p] = target
    tree.right[p] = u
    tree.parent[target] = p
    tree.parent[u] = p
    return p


@inline
def detach(tree, u):
    """Detach `u`: its sibling takes the place of their parent, and is returned; NULL if `u` was the root."""
    s = sibling(tree, u)
    if s == NULL:
        tree.state["root"][0] = NULL
    else:
        p = tree.parent[u]
        replace_child(tree, tree.parent[p], p, s)
        release(tree, p)
    tree.parent[u] = NULL
    return s


@inline
def swap_with_uncle(tree, far):
    """The NNI move at grandchild `far` (`def:NNIMove`, `eq.NNImove`): it swaps places with its parent's sibling."""
    v = tree.parent[far]
    g = tree.parent[v]
    uncle = sibling(tree, v)
    replace_child(tree, v, far, uncle)
    replace_child(tree, g, uncle, far)
