"""The positions of a dendrogram's nodes in a drawing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertree.errors import DataError, DimensionError, NotFiniteError, NotNumericError
from evertree.input.arrays import as_count

#: The distance between neighbours at the bottom, as in SciPy: they are at 5, 15, 25, ….
SPACING = 10.0


@dataclass(frozen=True, eq=False)
class Layout:
    """The positions of a dendrogram's nodes, with the root on top. See `lay_out`.

    Nodes have SciPy's numbers: leaves are 0, …, n - 1, and row i of the linkage matrix makes node n + i.

    Attributes
    ----------
    node, height : ndarray of shape (n_merges,)
        Each merge drawn, in the order of the linkage matrix: children before parents.
    left_x, right_x, left_height, right_height : ndarray of shape (n_merges,)
        Its children. The merge itself is above the middle between them.
    bottom_node, bottom_x, bottom_size, bottom_height : ndarray of shape (n_merges + 1,)
        The clusters below which nothing is drawn, from left to right: leaves, which have height 0, and collapsed
        clusters.

    Examples
    --------
    >>> from evertree.plotting import lay_out
    >>> layout = lay_out([[0, 1, 1.0, 2], [2, 3, 4.0, 3]])
    >>> layout.height, layout.bottom_x
    (array([1., 4.]), array([ 5., 15., 25.]))
    """

    node: NDArray[np.intp]
    height: NDArray[np.float64]
    left_x: NDArray[np.float64]
    right_x: NDArray[np.float64]
    left_height: NDArray[np.float64]
    right_height: NDArray[np.float64]
    bottom_node: NDArray[np.intp]
    bottom_x: NDArray[np.float64]
    bottom_size: NDArray[np.intp]
    bottom_height: NDArray[np.float64]


def lay_out(Z: Any, n_shown: int | None = None, leaf_rank: Any = None) -> Layout:
    """Compute the positions of the nodes of a dendrogram or of its top.

    Of two children, the one with the larger number is on the right: it was merged later, so it is higher. Leaves are to
    the left of clusters. This is the order of SciPy's dendrograms. `leaf_rank` gives another order.

    Parameters
    ----------
    Z : array-like of shape (n - 1, 4)
        A linkage matrix, finite and monotone. A matrix without rows is the tree of a single leaf.
    n_shown : int, optional
        Show the last ``n_shown - 1`` merges, with `n_shown` clusters at the bottom, or all leaves if there are fewer.
        By default everything is shown.
    leaf_rank : array-like of n numbers, optional
        Of two children, the one whose leaves have the higher mean rank is on the right. Trees of the same leaves, drawn
        with the same ranks, are easy to compare.

    Returns
    -------
    layout : Layout

    Raises
    ------
    DimensionError, NotFiniteError, NotNumericError, DataError
        `Z` is not a linkage matrix, or `leaf_rank` does not have one finite number for each leaf.
    ParameterError
        `n_shown` is not a positive integer.

    Examples
    --------
    >>> from evertree.plotting import lay_out
    >>> Z = [[0, 2, 1.0, 2], [1, 3, 2.0, 2], [4, 5, 6.0, 4]]
    >>> layout = lay_out(Z)
    >>> layout.bottom_node, layout.bottom_x
    (array([0, 2, 1, 3]), array([ 5., 15., 25., 35.]))
    >>> layout.left_x, layout.right_x
    (array([ 5., 25., 10.]), array([15., 35., 30.]))
    >>> lay_out(Z, n_shown=2).bottom_size
    array([2, 2])
    >>> lay_out(Z, leaf_rank=[4, 3, 2, 1]).bottom_node
    array([3, 1, 2, 0])
    """
    matrix = as_linkage_matrix(Z)
    n = len(matrix) + 1
    first = 0 if n_shown is None else max(n - as_count("n_shown", n_shown), 0)
    pairs = np.sort(matrix[:, :2].astype(np.intp), axis=1)
    if leaf_rank is not None:
        mean = _mean_ranks(pairs, matrix[:, 3], leaf_rank)
        pairs = np.take_along_axis(pairs, np.argsort(mean[pairs], axis=1, kind="stable"), axis=1)
    pairs = pairs[first:]
    merges = np.arange(n + first, 2 * n - 1)
    children = pairs.ravel()
    bottom = children[children < n + first] if merges.size else np.array([2 * n - 2])

    start = np.array(_first_places(pairs.tolist(), n + first, 2 * n - 1))
    bottom = bottom[np.argsort(start[bottom])]
    bottom_x = SPACING * np.arange(0.5, bottom.size, dtype=np.float64)

    places = [0.0] * (2 * n - 1)
    for u, place in zip(bottom.tolist(), bottom_x.tolist(), strict=True):
        places[u] = place
    for u, (left, right) in enumerate(pairs.tolist(), n + first):
        places[u] = (places[left] + places[right]) / 2
    x = np.array(places)

    size = np.concatenate([np.ones(n, np.intp), matrix[:, 3].astype(np.intp)])
    height = np.concatenate([np.zeros(n), matrix[:, 2]])
    return Layout(
        node=merges,
        height=height[merges],
        left_x=x[pairs[:, 0]],
        right_x=x[pairs[:, 1]],
        left_height=height[pairs[:, 0]],
        right_height=height[pairs[:, 1]],
        bottom_node=bottom,
        bottom_x=bottom_x,
        bottom_size=size[bottom],
        bottom_height=height[bottom],
    )


def as_linkage_matrix(Z: Any) -> NDArray[np.float64]:
    """`Z` as an array, checked so that it can be traversed."""
    matrix = np.asarray(Z, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[1] != 4:
        raise DimensionError(f"Z must be a linkage matrix of shape (n - 1, 4); its shape is {matrix.shape}")
    if not np.isfinite(matrix).all():
        raise NotFiniteError("Z must be finite; it has NaN or infinity")
    n_nodes = np.arange(len(matrix) + 1, 2 * len(matrix) + 1)
    if (matrix[:, :2] < 0).any() or (matrix[:, :2].max(axis=1, initial=0) >= n_nodes).any():
        raise DataError("Z must merge, in each row, leaves or clusters of earlier rows")
    return matrix


def _mean_ranks(pairs: NDArray[np.intp], size: NDArray[np.float64], leaf_rank: Any) -> NDArray[np.float64]:
    """The mean rank of the leaves below each node."""
    n = len(pairs) + 1
    try:
        ranks = np.asarray(leaf_rank, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise NotNumericError(f"leaf_rank must be numbers: {error}") from None
    if ranks.shape != (n,):
        raise DimensionError(f"leaf_rank must have shape ({n},), one for each leaf; the shape is {ranks.shape}")
    if not np.isfinite(ranks).all():
        raise NotFiniteError("leaf_rank must be finite; there is NaN or infinity")
    total = ranks.tolist()
    for left, right in pairs.tolist():
        total.append(total[left] + total[right])
    return np.array(total) / np.concatenate([np.ones(n), size])


def _first_places(pairs: list[list[int]], first_merge: int, n_nodes: int) -> list[int]:
    """For each node shown, the number of bottom clusters to the left of those below it."""
    width = [1] * n_nodes
    for u, (left, right) in enumerate(pairs, first_merge):
        width[u] = width[left] + width[right]
    start = [0] * n_nodes
    for u in range(n_nodes - 1, first_merge - 1, -1):
        left, right = pairs[u - first_merge]
        start[left] = start[u]
        start[right] = start[u] + width[left]
    return start
