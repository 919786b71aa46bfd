"""Edits of one point, in one call each: a call of a kernel takes longer than most of what it does for one point."""

from __future__ import annotations

import numpy as np

from evertree.kernels.columns import NULL, MeanTree, Search, Worklist
from evertree.kernels.compile import inline, kernel
from evertree.kernels.shared.insert import insert_leaf_by_descent
from evertree.kernels.shared.remove import detach_leaf
from evertree.kernels.shared.stabilise import insert_leaf_by_search
from evertree.kernels.shared.topology import new_leaf, release
from evertree.kernels.signatures import AnyLinkage, DataMatrix
from evertree.kernels.statistics.fill import fill_leaf


@inline
def is_fit(tree, x, weight, largest, heaviest):
    """Whether all values are finite and at most `largest`, and all points with this weight at most `heaviest`."""
    fits = tree.state["root"][0] != NULL and tree.size[tree.state["root"][0]] + weight <= heaviest
    for k in range(x.shape[1]):
        fits &= abs(np.float64(x[0, k])) <= largest
    return fits


@inline
def put_in(tree, work, search, linkage, i, is_stable):
    """Insert leaf `i`, whose row is filled, by search or by `tab.Insert`, and make the moves that follow."""
    if is_stable:
        insert_leaf_by_search(tree, work, search, linkage, i)
    else:
        insert_leaf_by_descent(tree, work, linkage, i)


@kernel
def insert_point(
    tree: MeanTree,
    work: Worklist,
    search: Search,
    linkage: AnyLinkage,
    x: DataMatrix,
    birth: int,
    largest: float,
    heaviest: float,
    is_stable: int,
) -> int:
    """Insert a point of weight 1, for which there is room; return its leaf, or NULL if it is not fit."""
    if not is_fit(tree, x, 1.0, largest, heaviest):
        return NULL
    i = new_leaf(tree)
    fill_leaf(tree, work, search, i, x[0], 1.0, birth)
    put_in(tree, work, search, linkage, i, is_stable)
    return i


@kernel
def update_point(
    tree: MeanTree,
    work: Worklist,
    search: Search,
    linkage: AnyLinkage,
    leaf: int,
    x: DataMatrix,
    largest: float,
    heaviest: float,
    is_stable: int,
) -> int:
    """Give the point of a leaf new values, and return the leaf, or NULL if they are not fit."""
    if not is_fit(tree, x, 0.0, largest, heaviest):
        return NULL
    detach_leaf(tree, work, search, linkage, leaf)
    fill_leaf(tree, work, search, leaf, x[0], tree.size[leaf], tree.birth[leaf])
    put_in(tree, work, search, linkage, leaf, is_stable)
    return leaf


@kernel
def remove_point(tree: MeanTree, work: Worklist, search: Search, linkage: AnyLinkage, leaf: int) -> None:
    """Take out the point of a leaf, and free the leaf."""
    detach_leaf(tree, work, search, linkage, leaf)
    release(tree, leaf)
