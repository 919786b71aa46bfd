"""The batch tree (`tab.HAC`): by a library where possible, and by our own code for minimax linkage and weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertree import constructors, kernels
from evertree.hierarchy import Hierarchy
from evertree.tree import Incoming, LiveTree


def agglomerate(
    X: Any,
    linkage: str = "ward",
    metric: str | Callable[..., Any] = "euclidean",
    *,
    keys: Any = None,
    sample_weight: Any = None,
    **options: Any,
) -> Hierarchy:
    """The tree of batch agglomerative clustering (HAC), as a live hierarchy.

    It is computed by fastcluster if that is installed, and by SciPy otherwise; minimax linkage and weights, which these
    do not support, use our own nearest-neighbour chain. All take quadratic time and, except for fastcluster's Ward,
    quadratic memory. Ctrl-C takes effect when they are done.

    A batch tree is stable: `Hierarchy.certify` accepts it, and `Hierarchy.refine` finds nothing to do. A Ward batch
    tree need not be homogeneous.

    Parameters
    ----------
    X, keys, sample_weight
        As for `Hierarchy.insert`.
    linkage, metric, **options
        As for `Hierarchy`.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> h = et.agglomerate(X)
    >>> h.certify()
    >>> h.insert([[0.0, 0.0]])  # and it is live
    [100]
    >>> et.agglomerate(X, linkage="minimax", metric="cityblock").is_homogeneous()
    True
    """
    h = Hierarchy(linkage, metric, **options)
    constructors.from_points(h.state, X, keys, sample_weight, _batch_linkage)
    return h


def _batch_linkage(live: LiveTree, leaves: NDArray[np.int32], incoming: Incoming) -> NDArray[np.float64]:
    """SciPy's Z for leaves that are not in a tree yet."""
    if leaves.size < 2:
        return np.empty((0, 4))
    linkage, weights = live.scheme.linkage, live.tree.size[leaves]
    if not linkage.in_scipy or np.any(weights != 1):
        return _own_linkage(live, leaves, weights)
    library = _library()
    if linkage.from_pairs:
        return library.linkage(live.dissimilarities(leaves), method=linkage.name)
    coordinates = np.asarray(incoming.stored, np.float64)
    in_little_memory = getattr(library, "linkage_vector", library.linkage)
    return in_little_memory(coordinates, method=linkage.name)


def _library() -> Any:
    try:
        import fastcluster
    except ImportError:
        from scipy.cluster import hierarchy

        return hierarchy
    return fastcluster


def _own_linkage(live: LiveTree, leaves: NDArray[np.int32], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """SciPy's Z by the nearest-neighbour chain algorithm."""
    from scipy.spatial.distance import squareform

    n, linkage = weights.size, live.scheme.linkage
    condensed = live.dissimilarities(leaves)
    if not linkage.from_pairs and live.scheme.metric != "sqeuclidean":
        condensed = condensed**2
    d = squareform(condensed)
    merges, height = np.empty((n - 1, 2), np.int64), np.empty(n - 1)
    chain, alive = np.empty(n, np.int64), np.empty(n, np.int64)
    if linkage.has_centers:
        workspace = np.empty_like(d), np.empty_like(d), np.empty(n, np.int64), chain, alive
        kernels.shared.nn_chain.merge_by_radius(d, *workspace, merges, height)
    else:
        if not linkage.from_pairs:
            d = kernels.shared.linkage_values.value_of_means(live.tag, weights[:, None], 0.0, weights, 0.0, d)
        kernels.shared.nn_chain.merge_by_recurrence(live.tag, d, weights.copy(), chain, alive, merges, height)
    order = np.argsort(height, kind="stable")
    Z = np.empty((n - 1, 4))
    kernels.shared.nn_chain.label_merges(merges[order], height[order], np.empty(n, np.int64), Z)
    return Z
