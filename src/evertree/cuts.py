"""Flat clusters of a hierarchy: as labels, as a table of several cuts, as partitions with persistent ids."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertree.condensed import CondensedTree, as_selection
from evertree.errors import ParameterError
from evertree.extras import require
from evertree.input.arrays import as_count, as_height
from evertree.nodes import positions_of
from evertree.partition import Partition, PointKeys, named_clusters
from evertree.state import State
from evertree.tree import views
from evertree.tree.condensed import Selection, condense, select

#: If more than one in this many labels are asked for, all are found.
_FEW = 64


@dataclass(frozen=True)
class Cut:
    """Where to cut a tree, as users say it: see `Hierarchy.cut`."""

    n_clusters: Any = None
    height: Any = None
    min_cluster_size: Any = None
    method: Any = None  # None where it is not given
    epsilon: Any = 0.0
    allow_single_cluster: Any = False

    @property
    def is_by_level(self) -> bool:
        """Whether a number or a height is given."""
        return self.n_clusters is not None or self.height is not None

    def level(self, n_points: int) -> tuple[int | None, float | None, int]:
        """The number of clusters or the height, and the least size of a cluster, of a tree with so many points."""
        n_clusters = None if self.n_clusters is None else as_count("n_clusters", self.n_clusters, n_points)
        height = None if self.height is None else as_height("height", self.height)
        min_size = 1 if self.min_cluster_size is None else as_count("min_cluster_size", self.min_cluster_size)
        return n_clusters, height, min_size

    def selection(self) -> Selection:
        """The selection of clusters without a number."""
        method = "eom" if self.method is None else self.method
        return as_selection(self.min_cluster_size, method, self.epsilon, self.allow_single_cluster)

    def check(self) -> None:
        """Refuse what does not go together."""
        if self.n_clusters is not None and self.height is not None:
            raise ParameterError("cut takes n_clusters or height, not both")
        if self.min_cluster_size is not None and not self.is_by_level:
            return
        for name, default in (("method", None), ("epsilon", 0.0), ("allow_single_cluster", False)):
            value = getattr(self, name)
            if np.any(value != default):  # anything may be given, an array too
                raise ParameterError(
                    f"{name} must be given with a least size alone; it is {value!r}",
                    parameter=name,
                    remedy="leave out n_clusters= and height=, and give min_cluster_size=",
                )
        if not self.is_by_level:
            raise ParameterError("cut takes n_clusters, height or min_cluster_size; it got none of them")


def cut(state: State, at: Cut, keys: Any = None) -> NDArray[np.int64]:
    """The label of each key, or of some: see `Hierarchy.cut`."""
    state.require_points("cut")
    at.check()
    some = None if keys is None else state.leaves(keys)
    if at.is_by_level:
        n_clusters, height, min_size = at.level(len(state.keys))
        if some is not None and min_size == 1 and _FEW * some.size <= len(state.keys):
            found = views.cut_some(state.live, some, n_clusters, height)
            if found is not None:
                return np.array(found, np.int64)
        labels = views.cut(state.live, state.keys.leaves(), n_clusters, height, min_size)
    else:
        selection = at.selection()
        labels = select(condense(state.live, state.keys.leaves(), selection.min_cluster_size), selection).labels
    return labels if some is None else labels[positions_of(state, some)]


def condensed_tree(state: State, selection: Selection) -> CondensedTree:
    """The condensed tree, with a selection of its clusters: see `Hierarchy.condensed_tree`."""
    return CondensedTree(condense(state.live, state.keys.leaves(), selection.min_cluster_size), selection)


def cuts(state: State, n_clusters: Iterable[int], height: Iterable[float], common: Cut) -> Any:
    """Several cuts as a data frame: see `Hierarchy.cuts`. All have the options that are `common`."""
    pandas = require("pandas", "cuts", "pandas")
    for name, levels in (("n_clusters", n_clusters), ("height", height)):
        if isinstance(levels, str) or not isinstance(levels, Iterable):
            raise ParameterError(f"{name} must be a collection of levels, such as [2, 5, 10]; it is {levels!r}")
    at = {f"n_clusters={k}": replace(common, n_clusters=k) for k in n_clusters}
    at |= {f"height={x!r}": replace(common, height=x) for x in height}
    if not at and common.min_cluster_size is not None:
        at = {f"min_cluster_size={common.min_cluster_size}": common}
    if not at:
        raise ParameterError("cuts takes collections n_clusters or height, or min_cluster_size; it got none of them")
    columns = {name: cut(state, where) for name, where in at.items()}
    keys = state.keys.births(state.live.tree.birth) if state.keys.is_numbered else state.keys.keys()
    return pandas.DataFrame(columns, index=pandas.Index(keys, name="key", tupleize_cols=False))


def partition(state: State, at: Cut, follow: Partition | None) -> Partition:
    """Flat clusters with persistent ids: see `Hierarchy.partition`."""
    if follow is not None and not isinstance(follow, Partition):
        raise ParameterError(f"follow must be None or a Partition; it is {type(follow).__name__}")
    clusters = cut(state, at)
    births = state.keys.births(state.live.tree.birth)
    keys = None if state.keys.is_numbered else tuple(state.keys.keys())
    points = PointKeys(keys, births, state.lineage, state.family)
    return named_clusters(points, clusters, follow)
