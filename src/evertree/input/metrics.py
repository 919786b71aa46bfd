"""The named dissimilarities of vectors, which are SciPy's.

A kernel computes a dissimilarity between *coordinates* of the points: the points themselves, or each point transformed
by the metric. Most metrics with Euclidean geometry use the same kernel on different coordinates:

| metric | coordinates | dissimilarity of two points, with d the Euclidean distance of their coordinates |
| --- | --- | --- |
| euclidean | the points | d |
| sqeuclidean | the points | d² |
| cosine | the points, scaled to length 1 | d² / 2 |
| correlation | the points minus the mean of their values, scaled to length 1 | d² / 2 |
| mahalanobis | the points times a square root of VI | d |
| seuclidean | the points divided by the roots of V | d |

That cosine is half of a squared distance holds between points, and so between clusters: with unit vectors
``1 - c(A) · c(B) = (v(A) + v(B) + |c(A) - c(B)|²) / 2``. The right-hand side does not lose small values by
cancellation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertree.errors import (
    DataError,
    DimensionError,
    LinkageError,
    MagnitudeError,
    ParameterError,
    ZeroVectorError,
    either,
    listed,
    name_rows,
)

#: Coordinates above this have squares that overflow when they are summed.
LARGEST = 1e150


#: The largest coordinate that data of a type may have.
LARGEST_VALUE = {np.dtype(dtype): min(LARGEST, float(np.finfo(dtype).max)) for dtype in (np.float32, np.float64)}


def _as_they_are(points: NDArray[Any]) -> NDArray[Any]:
    return points


@dataclass(frozen=True)
class Metric:
    """A dissimilarity of vectors."""

    name: str
    #: The row function in `evertree.kernels.pairwise.dissimilarities` that computes it on coordinates.
    row: str
    #: The other arguments of the row function.
    row_params: tuple[float, ...] = ()
    #: What obeys the triangle inequality: ``"itself"``, its ``"root"``, or None.
    triangle: str | None = None
    #: The points as coordinates. Does not change the points.
    coordinates: Callable[[NDArray[Any]], NDArray[Any]] = _as_they_are
    #: As passed by the user, checked.
    params: Mapping[str, Any] = field(default_factory=dict)

    @property
    def changes_points(self) -> bool:
        """Whether the coordinates differ from the points, so that the points must be stored too."""
        return self.coordinates is not _as_they_are

    @property
    def is_euclidean(self) -> bool:
        """Whether it is the Euclidean distance between coordinates or its square, so that Ward's linkage is defined."""
        return self.row == "euclidean" or self.name == "sqeuclidean"

    @property
    def is_squared(self) -> bool:
        """Whether it is a multiple of the squared Euclidean distance, so that means and variances give averages."""
        return self.row == "sqeuclidean"


def named_metric(name: str, metric_params: Mapping[str, Any] | None) -> Metric:
    """The metric with this name and these parameters, which are checked."""
    if metric_params is not None and not isinstance(metric_params, Mapping):
        raise ParameterError(f"metric_params must be None or a dict; it is {metric_params!r}")
    params = dict(metric_params or {})
    known = PARAMETERS.get(name, ())
    unknown = [key for key in params if key not in known]
    if unknown:
        allowed = f"may have {either(known)}" if known else "must be None"
        p = {"cityblock": 1, "euclidean": 2, "chebyshev": "np.inf"}.get(name) if "w" in unknown else None
        hint = f": for weights use metric='minkowski' with {{'p': {p}, 'w': weights}}" if p else ""
        raise ParameterError(f"metric_params {allowed} for metric={name!r}; it has {listed(unknown)}{hint}")
    return METRICS[name](params)


def _plain(
    name: str, triangle: str | None = "itself", coordinates: Callable[[NDArray[Any]], NDArray[Any]] = _as_they_are
) -> Callable[[dict[str, Any]], Metric]:
    """A metric without parameters, with its own row function."""
    return lambda _: Metric(name, name, triangle=triangle, coordinates=coordinates)


def _sqeuclidean(_: dict[str, Any]) -> Metric:
    return Metric("sqeuclidean", "sqeuclidean", (1.0,), "root")


def _cosine(_: dict[str, Any]) -> Metric:
    return Metric("cosine", "sqeuclidean", (0.5,), "root", _directions)


def _correlation(_: dict[str, Any]) -> Metric:
    return Metric("correlation", "sqeuclidean", (0.5,), "root", _centred_directions)


def _minkowski(params: dict[str, Any]) -> Metric:
    """P from 0 to infinity; below 1 it is not a metric. A weight for each column scales it."""
    p = _as_number("p", params.get("p", 2.0))
    if not p > 0:
        raise ParameterError(f"metric_params['p'] must be above 0; it is {params['p']!r}")
    params = {**params, "p": p}
    row = {1.0: "cityblock", 2.0: "euclidean", np.inf: "chebyshev"}.get(p, "minkowski")
    coordinates: Callable[[NDArray[Any]], NDArray[Any]] = _as_they_are
    if params.get("w") is not None:
        w = _as_vector("w", params["w"])
        if np.any(w < 0):
            raise ParameterError(f"metric_params['w'] must not be negative; it has {w.min():.3g}")
        coordinates = _times("w", w ** (1 / p) if p < np.inf else (w > 0).astype(np.float64))
        params = {**params, "w": w}
    return Metric(
        "minkowski", row, (p,) if row == "minkowski" else (), "itself" if p >= 1 else None, coordinates, params
    )


def _seuclidean(params: dict[str, Any]) -> Metric:
    if "V" not in params:
        raise ParameterError("metric='seuclidean' needs metric_params={'V': vector}, the variance of each column")
    variance = _as_vector("V", params["V"])
    if not np.all(variance > 0):
        raise ParameterError(f"metric_params['V'] must be positive; it has {variance.min():.3g}")
    return Metric("seuclidean", "euclidean", (), "itself", _times("V", 1 / np.sqrt(variance)), {"V": variance})


def _mahalanobis(params: dict[str, Any]) -> Metric:
    matrix = _mahalanobis_matrix(params)
    return Metric("mahalanobis", "euclidean", (), "itself", _times_root_of(matrix), {"VI": matrix})


def _jensenshannon(params: dict[str, Any]) -> Metric:
    base = params.get("base")
    number = 0.0 if base is None else _as_number("base", base)
    if base is not None and not 1 < number < np.inf:
        raise ParameterError(f"metric_params['base'] must be None or above 1; it is {base!r}")
    given = {} if base is None else {"base": number}
    return Metric("jensenshannon", "jensenshannon", (number,), "itself", _distributions, given)


def _as_number(name: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = np.nan
    if np.isnan(number):
        raise ParameterError(f"metric_params[{name!r}] must be a number; it is {value!r}")
    return number


def _as_vector(name: str, value: Any) -> NDArray[np.float64]:
    try:
        vector = np.array(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ParameterError(f"metric_params[{name!r}] must have a number for each column: {error}") from None
    if vector.ndim != 1 or vector.size == 0:
        raise DimensionError(f"metric_params[{name!r}] must have a number for each column; its shape is {vector.shape}")
    if not np.all(np.isfinite(vector)):
        raise ParameterError(f"metric_params[{name!r}] must be finite; it has NaN or infinity")
    return vector


def _mahalanobis_matrix(params: dict[str, Any]) -> NDArray[np.float64]:
    """The checked VI of metric='mahalanobis'."""
    if "VI" not in params:
        raise ParameterError(
            "metric='mahalanobis' needs metric_params={'VI': matrix}, the inverse of a covariance matrix; it has none"
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


# Coordinates


def _times(name: str, factors: NDArray[np.float64]) -> Callable[[NDArray[Any]], NDArray[Any]]:
    """Points with each column multiplied by a factor of its own."""

    def scaled(points: NDArray[Any]) -> NDArray[Any]:
        if points.shape[1] != factors.size:
            raise DimensionError(
                f"metric_params[{name!r}] must have {points.shape[1]} numbers, as the points have so many columns; "
                f"it has {factors.size}"
            )
        return _within_range(points.astype(np.float64) * factors, points.dtype, name)

    return scaled


def _times_root_of(matrix: NDArray[np.float64]) -> Callable[[NDArray[Any]], NDArray[Any]]:
    """Points times R with R Rᵀ = `matrix`, also where it is singular."""
    values, vectors = np.linalg.eigh(matrix)
    root = vectors * np.sqrt(np.maximum(values, 0.0))

    def whitened(points: NDArray[Any]) -> NDArray[Any]:
        n_columns, size = points.shape[1], len(root)
        if size != n_columns:
            raise DimensionError(
                f"metric_params['VI'] must be {n_columns} × {n_columns}, as the points have {n_columns} columns; "
                f"it is {size} × {size}"
            )
        # Not a matrix product: its last bits depend on the number of points in a batch.
        return _within_range(np.einsum("ij,jk->ik", points.astype(np.float64), root), points.dtype, "VI")

    return whitened


def _within_range(coordinates: NDArray[np.float64], dtype: np.dtype[Any], name: str) -> NDArray[Any]:
    limit = LARGEST_VALUE[dtype]
    if not np.all(np.abs(coordinates) <= limit):
        raise MagnitudeError(f"the points scaled by metric_params[{name!r}] exceed {limit:.3g}; scale the points down")
    return coordinates.astype(dtype)


def _directions(points: NDArray[Any], metric: str = "cosine") -> NDArray[Any]:
    """Points scaled to length 1."""
    wide = points.astype(np.float64)
    largest = np.abs(wide).max(axis=1, initial=0.0)
    if not np.all(largest > 0):
        rows = name_rows(np.flatnonzero(~(largest > 0)))
        what = "zeros" if metric == "cosine" else "equal values"
        raise ZeroVectorError(
            f"metric={metric!r}: a row of {what} has no direction; remove {rows} or use metric='sqeuclidean'"
        )
    wide /= largest[:, None]  # so that the squares neither overflow nor underflow
    wide /= np.sqrt(np.einsum("ij,ij->i", wide, wide))[:, None]
    return wide.astype(points.dtype)


def _centred_directions(points: NDArray[Any]) -> NDArray[Any]:
    """Points minus the mean of their values, scaled to length 1."""
    wide = points.astype(np.float64)
    largest = np.abs(wide).max(axis=1, initial=0.0)
    wide /= np.where(largest > 0, largest, 1.0)[:, None]
    wide -= wide[:, :1]  # so that a row of equal values is exactly zero
    wide -= wide.mean(axis=1)[:, None]
    return _directions(wide, "correlation").astype(points.dtype)


def _distributions(points: NDArray[Any]) -> NDArray[Any]:
    _refuse_negative(points, "jensenshannon")
    empty = ~(points.sum(axis=1) > 0)
    if np.any(empty):
        raise ZeroVectorError(
            f"metric='jensenshannon': a row of zeros is no distribution; remove {name_rows(np.flatnonzero(empty))}"
        )
    return np.array(points)


def _quantities(points: NDArray[Any]) -> NDArray[Any]:
    _refuse_negative(points, "braycurtis")
    return np.array(points)


def _refuse_negative(points: NDArray[Any], metric: str) -> None:
    negative = (points < 0).any(axis=1)
    if np.any(negative):
        raise DataError(
            f"metric={metric!r} needs values that are not negative; see {name_rows(np.flatnonzero(negative))}"
        )


def _truths(points: NDArray[Any]) -> NDArray[Any]:
    """1 where a value is not zero, as SciPy interprets numbers as booleans."""
    return (points != 0).astype(points.dtype)


#: The parameters that a metric may have.
PARAMETERS = {
    "minkowski": ("p", "w"),
    "mahalanobis": ("VI",),
    "seuclidean": ("V",),
    "jensenshannon": ("base",),
}

#: How to make a metric from its parameters, by SciPy's name.
METRICS: dict[str, Callable[[dict[str, Any]], Metric]] = {
    "euclidean": _plain("euclidean"),
    "sqeuclidean": _sqeuclidean,
    "cosine": _cosine,
    "correlation": _correlation,
    "mahalanobis": _mahalanobis,
    "seuclidean": _seuclidean,
    "cityblock": _plain("cityblock"),
    "chebyshev": _plain("chebyshev"),
    "minkowski": _minkowski,
    "canberra": _plain("canberra"),
    "braycurtis": _plain("braycurtis", None, _quantities),
    "jensenshannon": _jensenshannon,
    "hamming": _plain("hamming"),
    "jaccard": _plain("jaccard"),
    "dice": _plain("dice", None, _truths),
    "rogerstanimoto": _plain("rogerstanimoto", None, _truths),
    "russellrao": _plain("russellrao", None, _truths),
    "sokalsneath": _plain("sokalsneath", None, _truths),
    "yule": _plain("yule", None, _truths),
}


#: Aliases in SciPy and scikit-learn.
ALIASES = {
    **dict.fromkeys(("l2", "euclid", "eu", "e"), "euclidean"),
    **dict.fromkeys(("sqeuclid", "sqe"), "sqeuclidean"),
    **dict.fromkeys(("l1", "manhattan", "cblock", "cb", "c"), "cityblock"),
    **dict.fromkeys(("chebychev", "cheby", "cheb", "ch"), "chebyshev"),
    **dict.fromkeys(("matching", "hamm", "ha", "h"), "hamming"),
    **dict.fromkeys(("jacc", "ja", "j"), "jaccard"),
    **dict.fromkeys(("pnorm", "mi", "m"), "minkowski"),
    **dict.fromkeys(("mahal", "mah"), "mahalanobis"),
    **dict.fromkeys(("se", "s"), "seuclidean"),
    "cos": "cosine",
    "co": "correlation",
    "js": "jensenshannon",
}


def checked_name(metric: Any) -> str:
    """The name of a metric, if it has one."""
    name = ALIASES.get(metric, metric) if isinstance(metric, str) else None
    if name not in METRICS:
        raise LinkageError(f"metric must be {either([*METRICS, 'precomputed'])}, or a callable; it is {metric!r}")
    return name
