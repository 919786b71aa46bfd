"""Shapes of whole trees: a random one, or one from a linkage matrix."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evertree import kernels
from evertree.errors import DataError, DimensionError
from evertree.kernels.columns import NULL
from evertree.tree.base import LiveTree


def shape_at_random(live: LiveTree, leaves: NDArray[np.int32], seed: int) -> None:
    """Arrange the first leaves of a new tree in a hierarchy drawn uniformly from all (2n − 3)!! (`eq.numBinTree`)."""
    if leaves.size:
        n_nodes_before = 2 * np.arange(1, leaves.size) - 1
        picks = np.random.default_rng(seed).integers(0, n_nodes_before)
        kernels.shared.random_tree.grow_at_random(live.tree, leaves, picks)


def shape_from_linkage(live: LiveTree, leaves: NDArray[np.int32], Z: NDArray[np.float64]) -> None:
    """Arrange all leaves of a tree as a validated SciPy linkage matrix says. Inner nodes are numbered anew."""
    n = leaves.size
    if n == 0:
        live.tree.state["root"], live.tree.state["n_points"], live.tree.state["inner_top"] = NULL, 0, 0
        return
    node_of = np.concatenate([leaves, 2 * np.arange(n - 1, dtype=np.int32) + 1])
    children = node_of[Z[:, :2].astype(np.int64)].reshape(-1, 2)
    inner = node_of[n:]
    tree = live.tree
    tree.left[inner], tree.right[inner] = children[:, 0], children[:, 1]
    tree.parent[children[:, 0]] = inner
    tree.parent[children[:, 1]] = inner
    tree.parent[node_of[-1]] = NULL
    tree.state["root"][0] = node_of[-1]
    tree.state["inner_top"][0] = n - 1
    tree.state["n_points"][0] = n


def checked_linkage_matrix(Z: object, n_points: int) -> NDArray[np.float64]:
    """Validate `Z` as a tree over `n_points` points, with any heights, and return it as an array."""
    try:
        matrix = np.asarray(Z, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"Z must be a matrix of numbers, as scipy.cluster.hierarchy.linkage gives it: {error}"
        ) from None
    n_rows = max(n_points - 1, 0)
    if matrix.shape != (n_rows, 4):
        raise DimensionError(f"Z must have shape ({n_rows}, 4) for {n_points} points; its shape is {matrix.shape}")
    children = matrix[:, :2]
    if not np.array_equal(children, np.floor(children)):
        raise DataError("the first two columns of Z must be whole numbers: the clusters that each row merges")
    if np.any(children < 0) or np.any(children.max(axis=1, initial=-1) >= n_points + np.arange(n_rows)):
        raise DataError("a row of Z may only merge points and clusters that stand in the rows before it")
    if np.unique(children).size != 2 * n_rows:
        raise DataError("Z merges a cluster twice; each may be merged once")
    return matrix
