"""Flat clusters of a hierarchy: as labels, as a table of several cuts, as partitions with persistent ids."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertree.errors import ParameterError
from evertree.extras import require
from evertree.input.arrays import as_count, as_height
from evertree.nodes import positions_of
from evertree.partition import Partition, PointKeys, named_clusters
from evertree.state import State
from evertree.tree import views

#: If more than one in this many labels are asked for, all are found.
_FEW = 64


def cut(
    state: State,
    n_clusters: int | None,
    height: float | None,
    min_cluster_size: int | None,
    keys: Any = None,
) -> NDArray[np.int64]:
    """The label of each key, or of some: see `Hierarchy.cut`."""
    state.require_points("cut")
    if n_clusters is not None and height is not None:
        raise ParameterError("cut takes n_clusters or height, not both")
    if n_clusters is None and height is None and min_cluster_size is None:
        raise ParameterError("cut takes n_clusters, height or min_cluster_size; it got none of them")
    if n_clusters is not None:
        n_clusters = as_count("n_clusters", n_clusters, len(state.keys))
    if height is not None:
        height = as_height("height", height)
    min_size = 1 if min_cluster_size is None else as_count("min_cluster_size", min_cluster_size)
    if keys is None:
        return views.cut(state.live, state.keys.leaves(), n_clusters, height, min_size)
    some = state.leaves(keys)
    if min_size == 1 and _FEW * some.size <= len(state.keys):
        found = views.cut_some(state.live, some, n_clusters, height)
        if found is not None:
            return np.array(found, np.int64)
    labels = views.cut(state.live, state.keys.leaves(), n_clusters, height, min_size)
    return labels[positions_of(state, some)]


def cuts(state: State, n_clusters: Iterable[int], height: Iterable[float], min_cluster_size: int | None) -> Any:
    """Several cuts as a data frame: see `Hierarchy.cuts`."""
    pandas = require("pandas", "cuts", "pandas")
    for name, levels in (("n_clusters", n_clusters), ("height", height)):
        if isinstance(levels, str) or not isinstance(levels, Iterable):
            raise ParameterError(f"{name} must be a collection of levels, such as [2, 5, 10]; it is {levels!r}")
    columns = {f"n_clusters={k}": cut(state, k, None, min_cluster_size) for k in n_clusters}
    columns |= {f"height={x!r}": cut(state, None, x, min_cluster_size) for x in height}
    if not columns and min_cluster_size is not None:
        columns = {f"min_cluster_size={min_cluster_size}": cut(state, None, None, min_cluster_size)}
    if not columns:
        raise ParameterError("cuts takes collections n_clusters or height, or min_cluster_size; it got none of them")
    keys = state.keys.births(state.live.tree.birth) if state.keys.is_numbered else state.keys.keys()
    return pandas.DataFrame(columns, index=pandas.Index(keys, name="key", tupleize_cols=False))


def partition(
    state: State,
    n_clusters: int | None,
    height: float | None,
    min_cluster_size: int | None,
    follow: Partition | None,
) -> Partition:
    """Flat clusters with persistent ids: see `Hierarchy.partition`."""
    if follow is not None and not isinstance(follow, Partition):
        raise ParameterError(f"follow must be None or a Partition; it is {type(follow).__name__}")
    clusters = cut(state, n_clusters, height, min_cluster_size)
    births = state.keys.births(state.live.tree.birth)
    keys = None if state.keys.is_numbered else tuple(state.keys.keys())
    points = PointKeys(keys, births, state.lineage, state.family)
    return named_clusters(points, clusters, follow)
