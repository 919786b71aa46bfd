"""The nodes of a hierarchy, by number, and the points below them, by key."""

from __future__ import annotations

import numbers
from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertree.errors import UnknownNodeError
from evertree.kernels.columns import NULL
from evertree.state import State


def leaf(state: State, key: Hashable) -> int:
    """The leaf of a live key."""
    return int(state.keys.leaves_of([key])[0])


def positions(state: State, keys: Any) -> NDArray[np.intp]:
    """The positions of some keys among all keys."""
    birth = state.live.tree.birth
    return np.searchsorted(birth[state.keys.leaves()], birth[state.leaves(keys)])  # births ascend


def parent(state: State, node: Any) -> int:
    """The parent of a node, or NULL."""
    return int(state.live.tree.parent[known_node(state, node)])


def children(state: State, node: Any) -> tuple[int, ...]:
    """The two children of a node; none for a leaf."""
    u = known_node(state, node)
    left, right = int(state.live.tree.left[u]), int(state.live.tree.right[u])
    return () if left == NULL else (left, right)


def sibling(state: State, node: Any) -> int:
    """The other child of a node's parent, or NULL."""
    u = known_node(state, node)
    p = int(state.live.tree.parent[u])
    if p == NULL:
        return NULL
    left, right = int(state.live.tree.left[p]), int(state.live.tree.right[p])
    return right if left == u else left


def members(state: State, node: Any) -> list[Hashable]:
    """The keys of the points below a node, oldest first."""
    leaves = state.live.leaves(known_node(state, node))
    return keys_of(state, leaves[np.argsort(state.live.tree.birth[leaves])])


def keys_of(state: State, leaves: NDArray[np.int32]) -> list[Hashable]:
    """The keys of some leaves."""
    return state.keys.keys_of(leaves, state.live.tree.birth[leaves])


def height(state: State, node: Any) -> float:
    """The height of a node in SciPy's units."""
    value = state.live.linkage_values(np.array([known_node(state, node)], np.int32))
    return float(state.live.scheme.height(value[0]))


def prototypes(state: State, nodes: Any) -> dict[int, Hashable]:
    """A dict from nodes, by default all, to the keys of their prototypes."""
    if isinstance(nodes, numbers.Integral):
        nodes = [nodes]
    chosen = state.live.nodes() if nodes is None else np.array([known_node(state, node) for node in nodes], np.int32)
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


def known_node(state: State, node: Any) -> int:
    """A node number from the user, checked to be in the tree."""
    if isinstance(node, numbers.Integral) and not isinstance(node, bool):
        u = int(node)
        if state.live.is_in_use(u):
            return u
    raise UnknownNodeError(
        f"node must be a node of the tree as it is now; it is {node!r}. Node numbers are valid until the next "
        "edit or refine: see nodes(), or leaf(key) for the leaf of a key"
    )
