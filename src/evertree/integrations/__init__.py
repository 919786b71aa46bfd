"""Estimators with the interfaces of scikit-learn and river."""

from __future__ import annotations

import math
from typing import Any

from evertree.errors import ParameterError
from evertree.input.arrays import as_count, as_height


def check_cut(n_clusters: Any, distance_threshold: Any) -> None:
    """Refuse a cut that is not given by exactly one of the two parameters."""
    if (n_clusters is None) == (distance_threshold is None):
        raise ParameterError(
            "exactly one of n_clusters and distance_threshold must be given, and the other be None; they are "
            f"{n_clusters!r} and {distance_threshold!r}"
        )
    if n_clusters is not None:
        as_count("n_clusters", n_clusters)
    if distance_threshold is not None:
        as_height("distance_threshold", distance_threshold)


def cut_of(n_points: int, n_clusters: int | None, distance_threshold: float | None) -> dict[str, Any]:
    """The arguments of `Hierarchy.partition` for a checked cut: at most as many clusters as points.

    As in scikit-learn, clusters are merged below the threshold, and not at it.
    """
    if distance_threshold is None:
        assert n_clusters is not None
        return {"n_clusters": min(int(n_clusters), n_points)}
    if distance_threshold == 0:
        return {"n_clusters": n_points}
    return {"height": math.nextafter(float(distance_threshold), 0.0)}
