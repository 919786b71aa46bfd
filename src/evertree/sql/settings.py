"""`Settings`: what is followed and what is written, as the user asked for it."""

from __future__ import annotations

import json
import numbers
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from evertree.errors import ParameterError, listed
from evertree.hierarchy import Hierarchy
from evertree.hierarchy.anomalies import MEASURES
from evertree.input.arrays import as_choice, as_count, as_height
from evertree.partition import Partition
from evertree.tree.scheme import DISSIMILARITIES, OBJECTS, Scheme

#: The column with how far rows stand apart.
SCORE = "score"


@dataclass(frozen=True)
class Cut:
    """One way to cut the tree; its name is that of a column."""

    name: str
    n_clusters: int | None
    height: float | None
    min_cluster_size: int | None

    def partition(self, h: Hierarchy, before: Partition) -> Partition:
        """The clusters of now, with the ids of before."""
        if len(h) == 0:
            return Partition.of([], [], follow=before)
        return h.partition(self._n_clusters(h), self.height, self.min_cluster_size, follow=before)

    def _n_clusters(self, h: Hierarchy) -> int | None:
        """As many as are asked for and there can be; None is all that are large enough."""
        if self.n_clusters is None:
            return None
        if self.min_cluster_size is None:
            return min(self.n_clusters, len(h))
        n_large = int(h.cut(min_cluster_size=self.min_cluster_size).max()) + 1
        return self.n_clusters if self.n_clusters < n_large else None


@dataclass(frozen=True)
class Settings:
    """The checked parameters of `follow`, as far as what is written depends on them."""

    table: str
    schema: str | None
    key: str
    columns: tuple[str, ...]  # empty where `vector` is given
    vector: str | None
    version: str | None
    cuts: tuple[Cut, ...]
    scores: str | None  # the measure
    linkage: str
    metric: str | Callable[..., Any]
    metric_params: Mapping[str, Any] | None
    dtype: np.dtype[Any] | None  # None: as the columns have it
    prefix: str

    @property
    def values(self) -> tuple[str, ...]:
        """The columns that make the points."""
        return self.columns if self.vector is None else (self.vector,)

    @property
    def written(self) -> tuple[str, ...]:
        """The columns of assignments, beside the key."""
        return (*(cut.name for cut in self.cuts), *([] if self.scores is None else [SCORE]))

    @property
    def holds_objects(self) -> bool:
        """Whether points are what the columns hold, for a function to compare, and not vectors."""
        return self.scheme.holds == OBJECTS and self.vector is None

    @property
    def scheme(self) -> Scheme:
        """Linkage and metric."""
        return Scheme(self.linkage, self.metric, self.metric_params)

    def as_json(self) -> str:
        """What may not differ between two followers that write the same tables."""
        scheme = self.scheme
        params = {name: np.asarray(value).tolist() for name, value in (scheme.metric_params or {}).items()}
        return json.dumps(
            {
                "table": self.table,
                "key": self.key,
                "columns": self.columns,
                "vector": self.vector,
                "version": self.version,
                "cuts": [cut.name for cut in self.cuts],
                "min_cluster_size": self.cuts[0].min_cluster_size,
                "scores": self.scores,
                "linkage": self.linkage,
                "metric": scheme.metric_name.strip("'"),
                "metric_params": params,
            }
        )

    def check_stored(self, stored: str) -> None:
        """Refuse to go on in tables that were written with other settings."""
        ours, theirs = json.loads(self.as_json()), json.loads(stored)
        different = [name for name in ours if ours[name] != theirs.get(name)]
        if different:
            name = different[0]
            raise ParameterError(
                f"{name} must be {theirs.get(name)!r}, as when the tables with the prefix {self.prefix!r} were "
                f"written; it is {ours[name]!r}",
                remedy="give another prefix=, or reset=True, which drops these tables",
            )


def checked_settings(
    table: Any,
    schema: Any,
    key: Any,
    columns: Any,
    vector: Any,
    version: Any,
    cuts: tuple[Any, Any, Any],
    scores: Any,
    scheme: tuple[Any, Any, Any],
    dtype: Any,
    prefix: Any,
) -> Settings:
    """The parameters of `follow`, or an error that says what is wrong with one."""
    for name, value in (("table", table), ("key", key)):
        if not isinstance(value, str) or not value:
            raise ParameterError(f"{name} must be a name; it is {value!r}")
    for name, value in (("schema", schema), ("vector", vector), ("version", version), ("prefix", prefix)):
        if value is not None and (not isinstance(value, str) or not value):
            raise ParameterError(f"{name} must be None or a name; it is {value!r}")
    if (columns is None) == (vector is None):
        raise ParameterError(
            "follow takes columns, several of one number each, or vector, one that has all of a row's numbers; it got "
            f"{'neither' if columns is None else 'both'}"
        )
    if Scheme(*scheme).holds == DISSIMILARITIES:
        raise ParameterError("metric must compare rows; 'precomputed' does not")
    settings = Settings(
        table=table,
        schema=schema,
        key=key,
        columns=() if columns is None else _checked_columns(columns),
        vector=vector,
        version=version,
        cuts=checked_cuts(*cuts),
        scores=None if scores is None else as_choice("scores", scores, MEASURES),
        linkage=scheme[0],
        metric=scheme[1],
        metric_params=scheme[2],
        dtype=_checked_dtype(dtype),
        prefix=f"evertree_{table}_" if prefix is None else prefix,
    )
    if key.lower() in settings.written:
        raise ParameterError(
            f"key must not have the name of a column that is written; {key!r} is one: use a view in which it has "
            "another name"
        )
    return settings


def _checked_columns(columns: Any) -> tuple[str, ...]:
    names = [columns] if isinstance(columns, str) else list(columns) if isinstance(columns, Iterable) else []
    if not names or not all(isinstance(name, str) and name for name in names):
        raise ParameterError(f"columns must be a list of names; it is {columns!r}")
    if len(set(names)) < len(names):
        raise ParameterError(f"columns must differ; they are {listed(names)}")
    return tuple(names)


def _checked_dtype(dtype: Any) -> np.dtype[Any] | None:
    if dtype is None:
        return None
    if dtype not in ("float32", "float64", np.float32, np.float64):
        raise ParameterError(f"dtype must be None, 'float32' or 'float64'; it is {dtype!r}")
    return np.dtype(dtype)


def checked_cuts(n_clusters: Any, height: Any, min_cluster_size: Any) -> tuple[Cut, ...]:
    """The cuts that are asked for, each once, in order."""
    size = None if min_cluster_size is None else as_count("min_cluster_size", min_cluster_size)
    counts = [as_count("n_clusters", count) for count in _levels("n_clusters", n_clusters)]
    heights = [as_height("height", level) for level in _levels("height", height)]
    cuts = [Cut(f"n_clusters_{count}", count, None, size) for count in counts]
    cuts += [Cut(_height_name(level), None, level, size) for level in heights]
    if not cuts and size is not None:
        cuts = [Cut(f"min_cluster_size_{size}", None, None, size)]
    if not cuts:
        raise ParameterError("follow takes n_clusters, height or min_cluster_size; it got none of them")
    return tuple({cut.name: cut for cut in cuts}.values())


def _levels(name: str, levels: Any) -> list[Any]:
    if levels is None or isinstance(levels, numbers.Number):
        return [] if levels is None else [levels]
    if isinstance(levels, str) or not isinstance(levels, Iterable):
        raise ParameterError(f"{name} must be a number or a collection of numbers; it is {levels!r}")
    return list(levels)


def _height_name(height: float) -> str:
    """2.5 is ``height_2_5``: a name that needs no quotes, and that no other height has."""
    digits = repr(height).removesuffix(".0").replace("+", "")
    return "height_" + digits.replace("-", "_").replace(".", "_")
