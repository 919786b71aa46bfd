"""Estimators with the interfaces of scikit-learn and river."""

from __future__ import annotations

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
