"""The batch tree (`tab.HAC`), through a library."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertree.errors import ParameterError
from evertree.hierarchy import Hierarchy
from evertree.inputs import as_points
from evertree.linkages import Scheme


def agglomerate(
    X: Any, linkage: str = "ward", metric: str = "euclidean", *, keys: Any = None, **options: Any
) -> Hierarchy:
    """The tree of batch agglomerative clustering (HAC), as a live hierarchy.

    fastcluster makes it where it is installed, SciPy otherwise. Both take quadratic time; SciPy takes quadratic memory,
    and fastcluster does for all but Ward. The libraries know no weights.

    A batch tree need not be homogeneous. The first edit makes all of it so; call `Hierarchy.refine` before, to control
    the time.

    Parameters
    ----------
    X, keys
        As for `Hierarchy.insert`.
    linkage, metric, **options
        As for `Hierarchy`.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> h = et.agglomerate(X)
    >>> h.is_monotone()
    True
    >>> h.insert([[0.0, 0.0]])  # and it is live
    [100]
    """
    if "sample_weight" in options:
        raise ParameterError("agglomerate takes no sample_weight; insert weighted points into a Hierarchy instead")
    points = as_points(X, None, None)
    empty = Hierarchy(linkage, metric, **options)  # refuses bad options and keys now, before the long work
    empty._new_keys(keys, len(points))
    scheme = empty._live.scheme
    Z = _batch_linkage(scheme, scheme.coordinates(points).astype(np.float64))
    return Hierarchy.from_linkage(Z, points, linkage, metric, keys=keys, **options)


def _batch_linkage(scheme: Scheme, coordinates: NDArray[np.float64]) -> NDArray[np.float64]:
    """SciPy's Z of points whose Euclidean distances are what the linkage needs."""
    if len(coordinates) < 2:
        return np.empty((0, 4))
    if scheme.linkage.name == "ward":
        try:
            from fastcluster import linkage_vector
        except ImportError:
            from scipy.cluster.hierarchy import ward

            return ward(coordinates)
        return linkage_vector(coordinates, method="ward")
    from scipy.spatial.distance import pdist

    try:
        from fastcluster import linkage
    except ImportError:
        from scipy.cluster.hierarchy import linkage
    return linkage(pdist(coordinates, "sqeuclidean"), method=scheme.linkage.name)
