"""`Scheme`: a linkage on a metric, and how it is computed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from evertree import kernels
from evertree.errors import LinkageError, ParameterError, either
from evertree.input.metrics import Metric, checked_name, named_metric
from evertree.linkages import LINKAGES, Linkage, Tag

#: Linkage values closer than this, relative to the larger, are equal: by the dtype of the data.
TOLERANCE = {np.dtype(np.float64): 1e-9, np.dtype(np.float32): 1e-5}

#: What a hierarchy may hold.
VECTORS, DISSIMILARITIES, OBJECTS = "vectors", "dissimilarities", "objects"


class Scheme:
    """A linkage on a metric.

    A linkage has *statistics* on a metric if its value follows from the size, mean and variance of two clusters
    (`tab.Complexity`): then each check costs the same whatever the size of the clusters. Otherwise it is computed from
    pairs of points.

    Parameters
    ----------
    linkage, metric, metric_params
        As in `evertree.Hierarchy`.

    Attributes
    ----------
    linkage : Linkage
    metric : str or callable
        As the user gave it.
    vectors : Metric or None
        The metric, if it has a name and compares vectors.
    holds : str
        VECTORS for a named metric, DISSIMILARITIES for ``"precomputed"``, OBJECTS for a function.
    """

    def __init__(
        self, linkage: str, metric: str | Callable[..., Any], metric_params: Mapping[str, Any] | None = None
    ) -> None:
        self.linkage = _known_linkage(linkage)
        self.metric = metric
        self.vectors: Metric | None = None
        if callable(metric) or (isinstance(metric, str) and metric == "precomputed"):
            if metric_params:
                raise ParameterError(f"metric_params must be None for metric={metric!r}; it is {metric_params!r}")
            self.holds = OBJECTS if callable(metric) else DISSIMILARITIES
        else:
            self.metric = checked_name(metric)
            self.vectors = named_metric(self.metric, metric_params)
            self.holds = VECTORS
        if not self.has_statistics and not self.linkage.from_pairs:
            raise LinkageError(_why_not(self.linkage, metric))

    @property
    def has_statistics(self) -> bool:
        """Whether means and variances are enough (`tab.Complexity`)."""
        if self.vectors is None:
            return False
        if self.linkage.statistics == "euclidean":
            return self.vectors.is_euclidean
        return self.linkage.statistics == "squared" and self.vectors.is_squared

    @property
    def metric_params(self) -> dict[str, Any] | None:
        """The parameters of the metric, as `Hierarchy` takes them."""
        if self.vectors is None or not self.vectors.params:
            return None
        return {
            name: value.copy() if isinstance(value, np.ndarray) else value
            for name, value in self.vectors.params.items()
        }

    @property
    def metric_name(self) -> str:
        """The name of the metric in messages."""
        return repr(self.metric) if isinstance(self.metric, str) else getattr(self.metric, "__name__", "a function")

    def tag(self, dtype: np.dtype[Any]) -> Tag:
        """The linkage, as kernels see it, for data of this dtype."""
        return self.linkage.tag(TOLERANCE[dtype])

    def zeta(self, value: Any) -> Any:
        """The paper's linkage value, from the value in coordinates."""
        if self.vectors is not None and self.has_statistics and self.linkage.statistics == "squared":
            return self.vectors.row_params[0] * value
        return value

    def height(self, value: Any) -> Any:
        """The height that users see, in SciPy's units, from the value in coordinates."""
        return self.zeta(kernels.shared.linkage_values.height_of(self.tag(np.dtype(np.float64)), value))

    @cached_property
    def height_of_one(self) -> Callable[[float], float]:
        """As `height`, for single values: what it depends on is found once."""
        tag, unit = self.tag(np.dtype(np.float64)), self.zeta(1.0)
        height_of: Callable[..., Any] = kernels.shared.linkage_values.height_of.find(type(tag))

        def height(value: float) -> float:
            return float(unit * height_of(tag, value))

        return height

    def __reduce__(self) -> tuple[Any, ...]:
        return Scheme, (self.linkage.name, self.metric, self.metric_params)

    def __repr__(self) -> str:
        return f"Scheme({self.linkage.name!r}, {self.metric_name})"


def _known_linkage(linkage: str) -> Linkage:
    if not isinstance(linkage, str) or linkage not in LINKAGES:
        raise LinkageError(f"linkage must be {either(LINKAGES)}; it is {linkage!r}")
    return LINKAGES[linkage]


def _why_not(linkage: Linkage, metric: Any) -> str:
    """Why a linkage that needs means does not support a metric, and what would."""
    fitting = either(["euclidean", "sqeuclidean", "seuclidean", "mahalanobis", "minkowski"])
    others = either([name for name, other in LINKAGES.items() if other.from_pairs])
    return (
        f"linkage={linkage.name!r} with metric={metric!r} has no meaning, because {linkage.name.capitalize()} needs "
        f"Euclidean geometry: use metric={fitting} (with p=2), or linkage={others}; set_linkage(linkage, metric=...) "
        "changes both in one call"
    )
