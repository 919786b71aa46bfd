"""What linkages and metrics there are, their properties, and which of them go together.

A linkage has *statistics* on a metric if its value follows from the size, mean and variance of two clusters
(`tab.Complexity`): then each check costs the same whatever the size of the clusters. Every metric here is Euclidean
distance, or a multiple of its square, between *coordinates* of the points:

| metric | coordinates | dissimilarity of two points, d their distance in coordinates |
| --- | --- | --- |
| euclidean | the points | d |
| sqeuclidean | the points | d² |
| cosine | the points, scaled to length 1 | d² / 2 |
| mahalanobis | the points times a square root of VI | d |

That cosine is half of a squared distance holds between points, and so between clusters: with unit vectors
``1 - c(A) · c(B) = (v(A) + v(B) + |c(A) - c(B)|²) / 2``. The right-hand side does not lose small values to
cancellation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evertree.errors import (
    DimensionError,
    LinkageError,
    MagnitudeError,
    ParameterError,
    ZeroVectorError,
    either,
    listed,
    name_rows,
)


class Ward(NamedTuple):
    """The tag of Ward's linkage for kernels."""

    tolerance: float  #: linkage values that differ by less than this share of the larger are equal


class Average(NamedTuple):
    """The tag of average linkage for kernels, on metrics where it has statistics."""

    tolerance: float


@dataclass(frozen=True)
class Linkage:
    """A row of the table of linkages."""

    name: str
    reducible: bool  # `def.ReducibleLinkage`
    strongly_reducible: bool  # `eq.StrongReducibility`
    nni_reducible: bool  # `def.Contraction`
    has_statistics_on: tuple[str, ...]  # the metrics (`tab.Complexity`)
    tag: type[Ward] | type[Average]


#: The linkages and their properties.
LINKAGES = {
    linkage.name: linkage
    for linkage in (
        Linkage("ward", True, False, True, ("euclidean", "sqeuclidean", "mahalanobis"), Ward),
        Linkage("average", True, True, False, ("sqeuclidean", "cosine"), Average),
    )
}

#: The metrics: what a squared distance in coordinates is multiplied with to give the dissimilarity; None: its root.
METRICS: dict[str, float | None] = {"euclidean": None, "sqeuclidean": 1.0, "cosine": 0.5, "mahalanobis": None}

#: Linkage values closer than this, relative to the larger, are equal: by the type of the data.
TOLERANCE = {np.dtype(np.float64): 1e-9, np.dtype(np.float32): 1e-5}

#: Coordinates above this have squares that overflow when they are summed.
LARGEST = 1e150


def largest_value(dtype: np.dtype[Any]) -> float:
    """The largest coordinate that data of this type may have."""
    return min(LARGEST, float(np.finfo(dtype).max))


class Scheme:
    """A linkage on a metric: how points become coordinates, and linkage values heights.

    Parameters
    ----------
    linkage, metric, metric_params
        As `evertree.Hierarchy` has them.
    """

    def __init__(self, linkage: str, metric: str, metric_params: Mapping[str, Any] | None = None) -> None:
        self.linkage = _known_linkage(linkage)
        self.metric = _known_metric(metric)
        if metric not in self.linkage.has_statistics_on:
            raise LinkageError(_why_not(self.linkage, metric))
        self.matrix = _mahalanobis_matrix(metric, metric_params)
        self._root = None if self.matrix is None else _square_root(self.matrix)
        self._factor = METRICS[metric]

    @property
    def metric_params(self) -> dict[str, Any] | None:
        """The parameters of the metric, as `Hierarchy` takes them."""
        return None if self.matrix is None else {"VI": self.matrix.copy()}

    @property
    def changes_points(self) -> bool:
        """Whether the coordinates differ from the points, so that the points must be kept beside them."""
        return self.metric in ("cosine", "mahalanobis")

    def tag(self, dtype: np.dtype[Any]) -> Ward | Average:
        """What kernels know of the linkage, for data of this type."""
        return self.linkage.tag(TOLERANCE[dtype])

    def coordinates(self, points: NDArray[Any]) -> NDArray[Any]:
        """The points as vectors whose Euclidean distances are what the linkage needs. Does not change `points`."""
        if self.metric == "cosine":
            return _scaled_to_length_one(points)
        if self._root is not None:
            n_columns, size = points.shape[1], len(self._root)
            if size != n_columns:
                raise DimensionError(
                    f"metric_params['VI'] must be {n_columns} × {n_columns}, as the points have {n_columns} columns; "
                    f"it is {size} × {size}"
                )
            # Not a matrix product: its last bits depend on how many points come together.
            whitened = np.einsum("ij,jk->ik", points.astype(np.float64), self._root)
            if not np.all(np.abs(whitened) <= largest_value(points.dtype)):
                raise MagnitudeError(
                    "metric='mahalanobis': the points times a square root of VI exceed "
                    f"{largest_value(points.dtype):.3g}; scale the points or VI down"
                )
            return whitened.astype(points.dtype)
        return points

    def zeta(self, value: Any) -> Any:
        """The paper's linkage value, from the value in coordinates."""
        return 0.5 * value if self.metric == "cosine" else value

    def height(self, value: Any) -> Any:
        """The height that users see, in SciPy's units, from the value in coordinates."""
        return np.sqrt(2.0 * value) if self.linkage.tag is Ward else self.zeta(value)

    def dissimilarities(self, coordinates: NDArray[Any]) -> NDArray[np.float64]:
        """The dissimilarity of every pair, condensed. O(n²) in time and memory."""
        from scipy.spatial.distance import pdist

        if self._factor is None:
            return pdist(coordinates.astype(np.float64), "euclidean")
        return self._factor * pdist(coordinates.astype(np.float64), "sqeuclidean")

    def __repr__(self) -> str:
        return f"Scheme({self.linkage.name!r}, {self.metric!r})"


def _known_linkage(linkage: str) -> Linkage:
    if not isinstance(linkage, str) or linkage not in LINKAGES:
        raise LinkageError(f"linkage must be {either(LINKAGES)}; it is {linkage!r}")
    return LINKAGES[linkage]


def _known_metric(metric: str) -> str:
    if not isinstance(metric, str) or metric not in METRICS:
        raise LinkageError(f"metric must be {either(METRICS)}; it is {metric!r}")
    return metric


def _why_not(linkage: Linkage, metric: str) -> str:
    """Why a linkage does not go with a metric, and what would."""
    reason = "cannot be computed from means and variances"
    if linkage.tag is Ward:
        reason = "has no meaning, because Ward needs Euclidean geometry"
    fitting = [other.name for other in LINKAGES.values() if metric in other.has_statistics_on]
    return (
        f"linkage={linkage.name!r} with metric={metric!r} {reason}: use metric={either(linkage.has_statistics_on)}, "
        f"or linkage={either(fitting)}; set_linkage(linkage, metric=...) changes both in one call"
    )


def _mahalanobis_matrix(metric: str, metric_params: Mapping[str, Any] | None) -> NDArray[np.float64] | None:
    """The checked VI of metric='mahalanobis', None for the other metrics."""
    if metric_params is not None and not isinstance(metric_params, Mapping):
        raise ParameterError(f"metric_params must be None or a dict; it is {metric_params!r}")
    params = dict(metric_params or {})
    if metric != "mahalanobis":
        if params:
            raise ParameterError(f"metric_params must be None for metric={metric!r}; it has {listed(params)}")
        return None
    if set(params) != {"VI"}:
        raise ParameterError(
            "metric='mahalanobis' needs metric_params={'VI': matrix}, the inverse of a covariance matrix; "
            + (f"it has {listed(params)}" if params else "it has none")
        )
    try:
        given = np.asarray(params["VI"])
        matrix = given.real.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ParameterError(f"metric_params['VI'] must be a matrix of numbers: {error}") from None
    if given.dtype.kind == "c":
        raise ParameterError("metric_params['VI'] must be real; it is complex")
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.size == 0:
        raise DimensionError(f"metric_params['VI'] must be a square matrix; its shape is {matrix.shape}")
    if not np.all(np.isfinite(matrix)):
        raise ParameterError("metric_params['VI'] must be finite; it has NaN or infinity")
    if not np.allclose(matrix, matrix.T, rtol=1e-9, atol=1e-12 * np.abs(matrix).max()):
        raise ParameterError("metric_params['VI'] must be symmetric; use (VI + VI.T) / 2")
    smallest = float(np.linalg.eigvalsh(matrix)[0])
    if smallest < -1e-9 * float(np.abs(matrix).max()):
        raise ParameterError(f"metric_params['VI'] must have no negative eigenvalue; it has {smallest:.3g}")
    return matrix


def _square_root(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """R with R Rᵀ = `matrix`, also where it is singular."""
    values, vectors = np.linalg.eigh(matrix)
    return vectors * np.sqrt(np.maximum(values, 0.0))


def _scaled_to_length_one(points: NDArray[Any]) -> NDArray[Any]:
    wide = points.astype(np.float64)
    largest = np.abs(wide).max(axis=1, initial=0.0)
    if not np.all(largest > 0):
        rows = np.flatnonzero(~(largest > 0))
        raise ZeroVectorError(
            f"metric='cosine': a row of zeros has no direction; remove {name_rows(rows)} or use metric='sqeuclidean'"
        )
    wide /= largest[:, None]  # so that the squares neither overflow nor vanish
    wide /= np.sqrt(np.einsum("ij,ij->i", wide, wide))[:, None]
    return wide.astype(points.dtype)
