"""`FollowOptions`: the checked options of `follow`."""

from __future__ import annotations

import json
import numbers
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from evertree.anomalies import MEASURES
from evertree.cuts import Cut
from evertree.errors import ParameterError, listed
from evertree.hierarchy import Hierarchy
from evertree.input.arrays import as_choice, as_count, as_height
from evertree.partition import Partition
from evertree.tree import views
from evertree.tree.scheme import DISSIMILARITIES, OBJECTS, Scheme

#: The column of anomaly scores.
SCORE = "score"

#: How the name of a cut without a number or a height begins.
_BY_SIZE = "min_cluster_size_"


@dataclass(frozen=True)
class CutColumn:
    """One cut of the tree, and the name of the column that it is written to."""

    name: str
    n_clusters: int | None
    height: float | None
    min_cluster_size: int | None
    method: str | None = None  # where `min_cluster_size` is given alone

    def partition(self, h: Hierarchy, before: Partition) -> Partition:
        """Cut the tree; clusters keep the ids that they had before."""
        if len(h) == 0:
            return Partition.of([], [], follow=before)
        return h.partition(
            n_clusters=self._possible_count(h),
            height=self.height,
            min_cluster_size=self.min_cluster_size,
            method=self.method,
            follow=before,
        )

    def _possible_count(self, h: Hierarchy) -> int | None:
        """`n_clusters`, or as many as there can be; None, for which all is noise, if there can be none."""
        if self.n_clusters is None:
            return None
        if self.min_cluster_size is None:
            return min(self.n_clusters, len(h))
        with h.state.lock.reading():
            return min(self.n_clusters, views.count_large(h.state.live, self.min_cluster_size)) or None


@dataclass(frozen=True)
class FollowOptions:
    """The checked options of `follow`, which describes them."""

    table: str
    key: str
    columns: tuple[str, ...]  # empty with `vector`
    vector: str | None
    version: str | None
    cuts: tuple[CutColumn, ...]
    scores: str | None
    scheme: Scheme
    dtype: np.dtype[Any] | None
    schema: str | None
    prefix: str
    seconds: float | None
    chunk: int

    def __post_init__(self) -> None:
        for name in ("table", "key"):
            value = getattr(self, name)
            if not isinstance(value, str) or not value:
                raise ParameterError(f"{name} must be a name; it is {value!r}")
        for name in ("schema", "vector", "version", "prefix"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, str) or not value):
                raise ParameterError(f"{name} must be None or a name; it is {value!r}")
        if bool(self.columns) == (self.vector is not None):
            raise ParameterError(
                "follow takes columns, several of one number each, or vector, one that has all of a row's numbers; it "
                f"got {'both' if self.columns else 'neither'}"
            )
        if self.scheme.holds == DISSIMILARITIES:
            raise ParameterError("metric must compare rows; 'precomputed' does not")
        if self.scores is not None:
            as_choice("scores", self.scores, MEASURES)
        if self.key.lower() in (*(cut.name for cut in self.cuts), *([] if self.scores is None else [SCORE])):
            raise ParameterError(
                f"key must not have the name of a column that is written; {self.key!r} is one: use a view in which it "
                "has another name"
            )

    @property
    def values(self) -> tuple[str, ...]:
        """The columns that make a point."""
        return self.columns if self.vector is None else (self.vector,)

    @property
    def has_objects(self) -> bool:
        """Whether points are what the columns hold, for a function to compare, and not vectors."""
        return self.scheme.holds == OBJECTS and self.vector is None

    def as_json(self) -> str:
        """What must be the same for all followers that write the same tables."""
        params = {name: np.asarray(value).tolist() for name, value in (self.scheme.metric_params or {}).items()}
        return json.dumps(
            {
                "table": self.table,
                "key": self.key,
                "columns": self.columns,
                "vector": self.vector,
                "version": self.version,
                "cuts": [cut.name for cut in self.cuts],
                "min_cluster_size": self.cuts[0].min_cluster_size,
                "method": self.cuts[0].method,
                "scores": self.scores,
                "linkage": self.scheme.linkage.name,
                "metric": self.scheme.metric_name.strip("'"),
                "metric_params": params,
            }
        )

    def check_stored(self, stored: str) -> None:
        """Refuse to continue tables that were written with other options."""
        ours, theirs = json.loads(self.as_json()), json.loads(stored)
        if "method" not in theirs:  # release 0.1 had but one
            theirs["method"] = "leaf" if theirs["cuts"][0].startswith(_BY_SIZE) else None
        for name, value in ours.items():
            if value != theirs.get(name):
                raise ParameterError(
                    f"{name} must be {theirs.get(name)!r}, as when the tables with the prefix {self.prefix!r} were "
                    f"written; it is {value!r}",
                    remedy="give another prefix=, or reset=True, which drops these tables",
                )


def as_columns(columns: Any) -> tuple[str, ...]:
    """The option `columns` as a tuple; empty for None."""
    if columns is None:
        return ()
    names = [columns] if isinstance(columns, str) else list(columns) if isinstance(columns, Iterable) else []
    if not names or not all(isinstance(name, str) and name for name in names):
        raise ParameterError(f"columns must be a list of names; it is {columns!r}")
    if len(set(names)) < len(names):
        raise ParameterError(f"columns must differ; they are {listed(names)}")
    return tuple(names)


def as_float_type(dtype: Any) -> np.dtype[Any] | None:
    """The option `dtype`."""
    if dtype is None:
        return None
    if dtype not in ("float32", "float64", np.float32, np.float64):
        raise ParameterError(f"dtype must be None, 'float32' or 'float64'; it is {dtype!r}")
    return np.dtype(dtype)


def as_cuts(n_clusters: Any, height: Any, min_cluster_size: Any, method: Any = None) -> tuple[CutColumn, ...]:
    """The cuts that are asked for, in order, without duplicates."""
    size = None if min_cluster_size is None else as_count("min_cluster_size", min_cluster_size)
    counts = [as_count("n_clusters", count) for count in _as_list("n_clusters", n_clusters)]
    heights = [as_height("height", level) for level in _as_list("height", height)]
    cuts = [CutColumn(f"n_clusters_{count}", count, None, size) for count in counts]
    cuts += [CutColumn(_height_name(level), None, level, size) for level in heights]
    if not cuts and size is not None:
        cuts = [CutColumn(f"{_BY_SIZE}{size}", None, None, size, Cut(None, None, size, method).selection().method)]
    if not cuts:
        raise ParameterError("follow takes n_clusters, height or min_cluster_size; it got none of them")
    if cuts[0].method is None:
        Cut(cuts[0].n_clusters, cuts[0].height, size, method).check()
    return tuple({cut.name: cut for cut in cuts}.values())


def _as_list(name: str, levels: Any) -> list[Any]:
    if levels is None or isinstance(levels, numbers.Number):
        return [] if levels is None else [levels]
    if isinstance(levels, str) or not isinstance(levels, Iterable):
        raise ParameterError(f"{name} must be a number or a collection of numbers; it is {levels!r}")
    return list(levels)


def _height_name(height: float) -> str:
    """The column of a cut: ``height_2_5`` for 2.5, a name that needs no quotes and differs from all others."""
    digits = repr(height).removesuffix(".0").replace("+", "")
    return "height_" + digits.replace("-", "_").replace(".", "_")
