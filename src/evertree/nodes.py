"""The nodes of a hierarchy, by number, and the points below them, by key."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Hashable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertree.errors import UnknownNodeError
from evertree.kernels.columns import NULL
from evertree.state import State
from evertree.tree import views


def leaf(state: State, key: Hashable) -> int:
    """The leaf of a live key."""
    return state.keys.leaf_of(key)


def positions(state: State, keys: Any) -> NDArray[np.intp]:
    """The positions of some keys among all keys."""
    return positions_of(state, state.leaves(keys))


def positions_of(state: State, leaves: NDArray[np.int32]) -> NDArray[np.intp]:
    """The positions of the keys of some leaves among all keys."""
    birth = state.live.tree.birth
    return np.searchsorted(birth[state.keys.leaves()], birth[leaves])  # births ascend


def parent(state: State, node: Any) -> Any:
    """The parent of a node, or of each of some nodes; NULL if there is none."""
    quick = state.live.quick
    if type(node) is int and quick.has(node):
        return quick.parent[node]
    return _one_or_many(state, node, lambda u: state.live.tree.parent[u])


def children(state: State, node: Any) -> Any:
    """The two children of a node, none for a leaf; or of each of some nodes, in two columns, NULL for a leaf."""
    if type(node) is not int and is_collection(node):
        tree, many = state.live.tree, known_nodes(state, node)
        return np.stack([tree.left[many], tree.right[many]], axis=1)
    u, quick = known_node(state, node), state.live.quick
    left = quick.left[u]
    return () if left == NULL else (left, quick.right[u])


def sibling(state: State, node: Any) -> Any:
    """The other child of the parent of a node, or of each of some nodes; NULL if there is none."""
    quick = state.live.quick
    if type(node) is int and quick.has(node):
        p = quick.parent[node]
        left = quick.left[p]
        return NULL if p == NULL else quick.right[p] if left == node else left
    tree = state.live.tree

    def find(u: NDArray[np.int32]) -> NDArray[np.int32]:
        p = tree.parent[u]  # for the root NULL, which is the last row
        return np.where(p == NULL, np.int32(NULL), np.where(tree.left[p] == u, tree.right[p], tree.left[p]))

    return _one_or_many(state, node, find)


def members(state: State, node: Any) -> list[Any]:
    """The keys of the points below a node, oldest first; for some nodes a list of such lists."""
    if is_collection(node):
        return [_members(state, u) for u in known_nodes(state, node).tolist()]
    return _members(state, known_node(state, node))


def _members(state: State, u: int) -> list[Hashable]:
    leaves = state.live.leaves(u)
    return keys_of(state, leaves[np.argsort(state.live.tree.birth[leaves])])


def keys_of(state: State, leaves: NDArray[np.int32]) -> list[Hashable]:
    """The keys of some leaves."""
    return state.keys.keys_of(leaves, state.live.tree.birth[leaves])


def height(state: State, node: Any) -> Any:
    """The height of a node, or of each of some nodes, in SciPy's units."""
    live = state.live
    if type(node) is int and live.quick.has(node):
        return live.scheme.height_of_one(live.quick.height[node]) if node & 1 else 0.0
    return _one_or_many(state, node, lambda u: state.live.scheme.height(state.live.linkage_values(u)))


def size(state: State, node: Any) -> Any:
    """The number of points below a node, or below each of some nodes. O(n) for inner nodes."""
    live = state.live
    if type(node) is int and live.quick.has(node) and (node & 1 == 0 or live.is_unweighted):
        return int(live.quick.size[node]) if node & 1 else 1

    def count(u: NDArray[np.int32]) -> NDArray[np.int64]:
        if np.all(u % 2 == 0):
            return np.ones(u.size, np.int64)
        if u.size == 1:
            return np.array([live.leaves(int(u[0])).size])
        return views.count_leaves(live)[u].astype(np.int64)

    return _one_or_many(state, node, count)


def prototypes(state: State, nodes: Any) -> dict[int, Hashable]:
    """A dict from nodes, by default all, to the keys of their prototypes."""
    chosen = state.live.nodes() if nodes is None else known_nodes(state, nodes if is_collection(nodes) else [nodes])
    return dict(zip(chosen.tolist(), keys_of(state, state.live.prototypes(chosen)), strict=True))


def above(state: State, node: int) -> list[int]:
    """The ancestors of a node, up to the root."""
    parent = state.live.tree.parent
    found = []
    u = int(parent[node])
    while u != NULL:
        found.append(u)
        u = int(parent[u])
    return found


def is_collection(node: Any) -> bool:
    """Whether a user gave an array or a collection of nodes, and not one of them."""
    return isinstance(node, Iterable) and not isinstance(node, (str, bytes)) and getattr(node, "ndim", 1) > 0


def _one_or_many(state: State, node: Any, find: Callable[[NDArray[np.int32]], NDArray[Any]]) -> Any:
    """What a function finds for an array of nodes: an array, or a number for one node."""
    if is_collection(node):
        return find(known_nodes(state, node))
    return find(np.array([known_node(state, node)], np.int32))[0].item()


def known_nodes(state: State, nodes: Any) -> NDArray[np.int32]:
    """Node numbers from the user, in one dimension, checked to be in the tree."""
    try:
        found = nodes if isinstance(nodes, np.ndarray) else np.array(list(nodes))
    except ValueError:  # ragged
        found = np.empty((0, 0))
    if found.size == 0 and found.ndim == 1:
        return np.empty(0, np.int32)
    if found.ndim != 1 or found.dtype.kind not in "iu":
        raise UnknownNodeError(f"nodes must be node numbers in one dimension; they are {nodes!r}")
    live = state.live
    tops = np.array([live.tree.state["leaf_top"][0], live.tree.state["inner_top"][0]])
    is_known = (found >= 0) & (found // 2 < tops[found % 2])
    is_known[is_known] = live.tree.parent[found[is_known]] >= NULL
    if not is_known.all():
        known_node(state, int(found[~is_known][0]))
    return found.astype(np.int32)


def known_node(state: State, node: Any) -> int:
    """A node number from the user, checked to be in the tree."""
    if type(node) is int or (isinstance(node, numbers.Integral) and not isinstance(node, bool)):
        u = int(node)
        if state.live.quick.has(u):
            return u
    raise UnknownNodeError(
        f"node must be a node of the tree as it is now; it is {node!r}. Node numbers are valid until the next "
        "edit or refine: see nodes(), or leaf(key) for the leaf of a key"
    )
