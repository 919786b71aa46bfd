"""The batch tree (`tab.HAC`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from evertree import edits
from evertree.hierarchy import Hierarchy
from evertree.locking import Uninterrupted
from evertree.tree.batch import cluster


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

    It takes quadratic time. Where values follow from means (Ward, and average on ``"sqeuclidean"``, ``"cosine"`` and
    ``"correlation"``), memory is linear, and `n_jobs` threads share the work. From 20 columns on, products of matrices
    screen all pairs; below, clusters that are too far apart to matter are not compared. All other linkages but single
    take a matrix of n² / 2 values, which `n_jobs` threads compute, and minimax three times that.

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
    leaves = edits.begin(h.state, X, keys, sample_weight)
    if leaves.size:
        with Uninterrupted() as held:
            if not cluster(h.state.live, leaves, lambda: held.should_stop):
                raise KeyboardInterrupt
    return h
