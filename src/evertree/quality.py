"""Quality measures of a tree. Labels are aligned with ``h.keys()``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from evertree.errors import DimensionError, EmptyHierarchyError
from evertree.hierarchy import Hierarchy
from evertree.locking import reading
from evertree.tree import LiveTree, views

__all__ = ["cophenetic_correlation", "dendrogram_purity", "total_linkage", "tree_value"]

_R = TypeVar("_R")


def cophenetic_correlation(h: Hierarchy, diagonal: bool = False, monotone: bool = True) -> float:
    """The correlation between the dissimilarities of the points and the ultrametric that the tree induces. O(n²).

    Parameters
    ----------
    h : Hierarchy
    diagonal : bool
        Whether to include the pairs (i, i), for which both are zero, and count every other pair twice, as in the
        paper's sum (`eq.Cophenetic`). SciPy and others leave them out.
    monotone : bool
        As for `Hierarchy.cophenetic`; the paper's coefficient uses ``diagonal=True, monotone=False``.

    Returns
    -------
    correlation : float
        NaN if all dissimilarities or all heights are equal.

    Examples
    --------
    >>> h = et.agglomerate([[0.0], [1.0], [5.0], [7.0]], linkage="average", metric="sqeuclidean")
    >>> round(et.quality.cophenetic_correlation(h), 3)
    0.806
    >>> round(et.quality.cophenetic_correlation(h, diagonal=True), 3)
    0.867
    """
    n, d, u = _measured(
        h,
        lambda live, leaves: (
            leaves.size,
            live.dissimilarities(leaves),
            views.cophenetic(live, leaves, True, monotone),
        ),
    )
    # Each pair counts twice and each point once with zeros: n² terms.
    weight, n_terms = (2.0, float(n * n)) if diagonal else (1.0, float(d.size))
    if n_terms == 0:
        return float("nan")
    d, u = d / (d.max() or 1.0), u / (u.max() or 1.0)  # so that squares neither overflow nor underflow
    d_mean, u_mean = weight * d.sum() / n_terms, weight * u.sum() / n_terms
    n_zeros = n_terms - weight * d.size
    d, u = d - d_mean, u - u_mean
    cross = weight * (d @ u) + n_zeros * d_mean * u_mean
    d_square = weight * (d @ d) + n_zeros * d_mean**2
    u_square = weight * (u @ u) + n_zeros * u_mean**2
    if not (d_square > 0 and u_square > 0):
        return float("nan")
    return float(cross / np.sqrt(d_square) / np.sqrt(u_square))


def dendrogram_purity(h: Hierarchy, labels: Any) -> float:
    """The exact mean purity, over all pairs of points of one class, of the smallest cluster that holds both.

    Parameters
    ----------
    h : Hierarchy
    labels : array of shape (n,)
        The class of each of ``h.keys()``.

    Returns
    -------
    purity : float
        From 0 to 1; 1 if no two points have the same class.

    Notes
    -----
    O(n log n), whatever the number of classes. Every point counts once, whatever its weight.

    Examples
    --------
    >>> h = et.Hierarchy()
    >>> keys = h.insert([[0.0], [1.0], [10.0], [11.0]])
    >>> et.quality.dendrogram_purity(h, ["a", "a", "b", "b"])
    1.0
    >>> et.quality.dendrogram_purity(h, ["a", "b", "a", "b"])
    0.5
    """
    classes: NDArray[Any] = np.asarray(labels)
    number: dict[Any, int] = {}

    def purity(live: LiveTree, leaves: NDArray[np.int32]) -> float:
        if classes.shape != (leaves.size,):
            raise DimensionError(f"labels must have shape ({leaves.size},), one for each key; it has {classes.shape}")
        return views.purity(live, leaves, np.array([number.setdefault(c, len(number)) for c in classes.tolist()]))

    return _measured(h, purity)


def tree_value(h: Hierarchy) -> float:
    """Σ over pairs of their dissimilarity times the size of the smallest cluster that holds both.

    O(n m) if the linkage is computed from means and variances, O(n² m) otherwise.

    The objective of Cohen-Addad et al. for dissimilarities: larger is better. Every move of average linkage increases
    it. For Ward the dissimilarity is the squared Euclidean distance.

    Examples
    --------
    >>> h = et.Hierarchy()
    >>> keys = h.insert([[0.0], [1.0], [3.0]])
    >>> et.quality.tree_value(h)  # 1 · 2 + (9 + 4) · 3
    41.0
    """
    return _measured(h, lambda live, _: live.tree_value())


def total_linkage(h: Hierarchy) -> float:
    """The paper's objective H: the sum of ζ over all merges (`eq.totallinkagecost`). O(n m).

    For Ward it is the sum of squared errors, for every tree.

    Examples
    --------
    >>> h = et.Hierarchy()
    >>> keys = h.insert([[0.0], [1.0], [5.0]])
    >>> round(et.quality.total_linkage(h), 9)  # 4 + 1 + 9
    14.0
    """
    return _measured(h, lambda live, _: float(live.scheme.zeta(live.linkage_values(live.nodes()).sum())))


@reading
def _measured(h: Hierarchy, measure: Callable[[LiveTree, NDArray[np.int32]], _R]) -> _R:
    """A measure of the tree of a hierarchy, with its leaves in the order of the keys."""
    if len(h) == 0:
        raise EmptyHierarchyError("a measure needs at least one point, and the hierarchy is empty: insert points first")
    return measure(h.state.live, h.state.keys.leaves())
