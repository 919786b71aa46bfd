"""Same trees: whether two versions of evertree make the same trees of the same edits, bit for bit.

For a change of the code that is to change no tree. Random sequences of edits are made by the evertree of this
interpreter and by that of another one, or of an earlier run whose digests were kept::

    python -m benchmarks.same_trees --against other/bin/python
    python -m benchmarks.same_trees --save before.json.gz
    python -m benchmarks.same_trees --compare before.json.gz

There are many kinds of trees, and as many sequences of each as ``--sequences`` says; of large trees there are few. A
sequence depends on its kind, its number and ``--seed`` alone. After every edit there are digests of the keys, the
points, the linkage matrix, the nodes and their parents, the labels of some cuts, the counts of moves and grafts, and
what the edit gave; at the end, and now and then, also of every array and every entry of the header that the tree has in
a file. Some edits are wrong: they have to be refused with the same error, and to change nothing.

The first difference of each kind is printed, and ends the program with 1. Last bits depend on the processor and on the
versions of NumPy, SciPy and Numba, so these have to be the same too. The other interpreter runs this file by its path:
it needs nothing but NumPy and evertree.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import importlib.metadata
import json
import os
import pickle
import platform
import subprocess
import sys
import tempfile
import time
import warnings
import zlib
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import evertree as et

#: An edit in words, and a digest of each part of what there is after it.
Step = tuple[str, dict[str, str]]

#: Parts of a step that are words, and no digests.
SAID = ("error", "unchanged", "crash")

#: How points may lie.
SHAPES = ("normal", "clusters", "grid", "twins", "tiny", "huge", "constant", "line", "outlier")
TIED = ("grid", "twins", "line")

#: How many columns they may have.
COLUMNS = (1, 2, 2, 3, 4, 8, 17, 40)

#: How a tree may begin: an empty one most often.
STARTS = ("empty", "empty", "empty", "random", "linkage", "batch")

#: The parents of the nodes of larger trees are not asked for one by one.
MOST_PARENTS = 100

#: Linkages on metrics, to change between.
MEANS = (
    ("ward", "euclidean"),
    ("ward", "seuclidean"),
    ("ward", "mahalanobis"),
    ("average", "sqeuclidean"),
    ("average", "cosine"),
    ("average", "correlation"),
)
PAIRS = (
    ("single", "euclidean"),
    ("single", "chebyshev"),
    ("complete", "minkowski"),
    ("complete", "cosine"),
    ("average", "euclidean"),
    ("average", "cityblock"),
    ("minimax", "euclidean"),
    ("minimax", "mahalanobis"),
)
STORED = (("average", "precomputed"), ("complete", "precomputed"), ("single", "gap"), ("minimax", "gap"))
SHARES = tuple((linkage, metric) for linkage in ("average", "complete") for metric in ("braycurtis", "jensenshannon"))
TRUTHS = tuple(
    (linkage, metric)
    for linkage in ("average", "single")
    for metric in ("jaccard", "hamming", "dice", "rogerstanimoto", "russellrao", "sokalsneath", "yule", "canberra")
)


@dataclass(frozen=True)
class Kind:
    """A kind of tree, and how it lives."""

    name: str
    linkage: str = "ward"
    metric: str = "euclidean"  # or the name of one of FUNCTIONS
    goal: str = "stable"
    search_width: int | None = 4
    n_jobs: int | None = None
    dtype: str = "float64"
    shapes: tuple[str, ...] = SHAPES
    starts: tuple[str, ...] = STARTS
    schemes: tuple[tuple[str, str], ...] = ()  # linkages and metrics that it begins with, and changes between
    has: tuple[str, ...] = ()  # of "weights", "keys", "last", "age" and "durable"
    first: int = 40  # points to begin with, at most
    batch: int = 40  # points of an edit, at most
    n_edits: tuple[int, int] = (8, 20)
    n_sequences: int | None = None  # where they are fewer than of others


LARGE: dict[str, Any] = {"shapes": ("normal", "clusters"), "starts": ("empty",), "first": 38_000, "batch": 9_000}
LARGE |= {"n_edits": (8, 10), "n_sequences": 6}

KINDS = (
    Kind("ward"),
    Kind("ward float32", dtype="float32"),
    Kind("ward homogeneous", goal="homogeneous"),
    Kind("ward exhaustive", search_width=None),
    Kind("ward narrow", search_width=1),
    Kind("ward mahalanobis", metric="mahalanobis"),
    Kind("ward seuclidean", metric="seuclidean"),
    Kind("ward tied", shapes=TIED),
    Kind("average sqeuclidean", "average", "sqeuclidean"),
    Kind("average sqeuclidean homogeneous", "average", "sqeuclidean", goal="homogeneous"),
    Kind("average cosine", "average", "cosine"),
    Kind("average cosine float32", "average", "cosine", dtype="float32"),
    Kind("average correlation", "average", "correlation"),
    Kind("single", "single"),
    Kind("complete", "complete"),
    Kind("average", "average"),
    Kind("minimax", "minimax"),
    Kind("single homogeneous", "single", goal="homogeneous"),
    Kind("complete homogeneous", "complete", goal="homogeneous"),
    Kind("average homogeneous", "average", goal="homogeneous"),
    Kind("minimax homogeneous", "minimax", goal="homogeneous"),
    Kind("complete exhaustive", "complete", search_width=None),
    Kind("average float32", "average", dtype="float32"),
    Kind("complete cityblock", "complete", "cityblock"),
    Kind("average minkowski", "average", "minkowski"),
    Kind("single tied", "single", shapes=TIED),
    Kind("minimax tied", "minimax", shapes=TIED),
    Kind("average jaccard", "average", "jaccard", shapes=("truths",)),
    Kind("metrics of truths", schemes=TRUTHS, shapes=("truths",)),
    Kind("metrics of shares", schemes=SHARES, shapes=("shares",)),
    Kind("average precomputed", "average", "precomputed"),
    Kind("complete precomputed", "complete", "precomputed", has=("weights", "keys")),
    Kind("function of words", "complete", "differing", shapes=("words",)),
    Kind("function of vectors", "average", "gap"),
    Kind("ward window", has=("last",)),
    Kind("ward window by age", has=("age",)),
    Kind("single window", "single", has=("last", "age")),
    Kind("ward weights", has=("weights",)),
    Kind("average weights", "average", has=("weights",)),
    Kind("ward keys", has=("keys",)),
    Kind("average keys", "average", has=("keys", "weights")),
    Kind("ward starts", starts=("random", "linkage", "batch")),
    Kind("complete starts", "complete", starts=("random", "linkage", "batch"), has=("weights",)),
    Kind("changes of means", schemes=MEANS),
    Kind("changes", schemes=MEANS[:4] + PAIRS, has=("weights",)),
    Kind("changes of all", schemes=MEANS[:2] + PAIRS[:4] + STORED, has=("keys",)),
    Kind("durable ward", has=("durable",)),
    Kind("durable average", "average", has=("durable", "weights", "keys")),
    Kind("durable window", has=("durable", "last", "age")),
    Kind("durable function", "complete", "differing", shapes=("words",), has=("durable",)),
    Kind("durable changes", schemes=MEANS[:1] + PAIRS[4:6] + STORED[:1], has=("durable",)),
    Kind("ward large", **LARGE),
    Kind("ward threads large", n_jobs=2, **LARGE),
    Kind("cosine threads large", "average", "cosine", n_jobs=2, dtype="float32", **LARGE),
)


def differing(a: str, b: str) -> float:
    """In how many places two words differ."""
    return abs(len(a) - len(b)) + sum(x != y for x, y in zip(a, b, strict=False))


def gap(a: NDArray[Any], b: NDArray[Any]) -> float:
    """The largest difference of two vectors."""
    return float(np.abs(a - b).max())


FUNCTIONS: dict[str, Callable[..., float]] = {"differing": differing, "gap": gap}


def between(a: Any, b: Any) -> NDArray[np.float64]:
    """Dissimilarities that obey no triangle inequality: squared differences in part of the columns, sums in others."""
    differences = np.abs(np.asarray(a, np.float64)[:, None] - np.asarray(b, np.float64)[None])
    return differences[..., ::2].sum(axis=2) + (differences[..., 1::2] ** 2).sum(axis=2)


def random_merges(rng: np.random.Generator, n: int) -> NDArray[np.float64]:
    """A linkage matrix that merges any two clusters at a time."""
    Z, size, live = np.empty((max(n - 1, 0), 4)), [1.0] * n, list(range(n))
    for j in range(len(Z)):
        a, b = sorted(live.pop(int(rng.integers(len(live)))) for _ in range(2))
        size.append(size[a] + size[b])
        Z[j] = a, b, j + 1.0, size[-1]
        live.append(n + j)
    return Z


class Source:
    """Points, as one sequence draws them.

    Parameters
    ----------
    kind
        Of the tree that they are for.
    rng
        Draws them.
    """

    def __init__(self, kind: Kind, rng: np.random.Generator) -> None:
        self._rng, self._dtype = rng, kind.dtype
        self.shape = kind.shapes[rng.integers(len(kind.shapes))]
        self.n_columns = int(rng.choice(COLUMNS if kind.n_sequences is None else (2, 8)))
        self._needs_direction = kind.metric in ("cosine", "correlation")
        if self._needs_direction:
            self.n_columns = max(self.n_columns, 2)
        self._centers = 5 * rng.normal(size=(5, self.n_columns))
        self._n_drawn = 0

    def draw(self, count: int) -> Any:
        """So many points: an array, or a list of words."""
        if self.shape == "words":
            letters = self._rng.integers(97, 100, (count, 8)).astype(np.uint8)
            lengths = self._rng.integers(1, 9, count).tolist()
            return [bytes(row[:length]).decode() for row, length in zip(letters, lengths, strict=True)]
        points = getattr(self, f"_{self.shape}")(count)
        self._n_drawn += count
        if points.dtype == bool:
            return points
        if self._needs_direction and count:
            points[np.ptp(points, axis=1) == 0, 0] += 1.0
            points[:, -1] += np.where(np.any(points, axis=1), 0.0, 1.0)
        return points.astype(self._dtype)

    def _normal(self, count: int) -> NDArray[Any]:
        return self._rng.normal(size=(count, self.n_columns))

    def _clusters(self, count: int) -> NDArray[Any]:
        return self._centers[self._rng.integers(5, size=count)] + 0.3 * self._normal(count)

    def _grid(self, count: int) -> NDArray[Any]:
        return self._rng.integers(0, 3, (count, self.n_columns)).astype(np.float64)

    def _twins(self, count: int) -> NDArray[Any]:
        return self._centers[self._rng.integers(5, size=count)]

    def _tiny(self, count: int) -> NDArray[Any]:
        return self._normal(count) * (1e-140 if self._dtype == "float64" else 1e-15)

    def _huge(self, count: int) -> NDArray[Any]:
        return self._normal(count) * (1e100 if self._dtype == "float64" else 1e15)

    def _constant(self, count: int) -> NDArray[Any]:
        points = self._clusters(count)
        points[:, ::2] = 7.0
        return points

    def _line(self, count: int) -> NDArray[Any]:
        return (self._n_drawn + np.arange(count))[:, None] * self._centers[:1].round()

    def _outlier(self, count: int) -> NDArray[Any]:
        points = self._normal(count)
        points[: count // 4] *= 1e8
        return points

    def _truths(self, count: int) -> NDArray[Any]:
        return self._rng.random((count, self.n_columns)) < 0.3

    def _shares(self, count: int) -> NDArray[Any]:
        return self._rng.exponential(size=(count, self.n_columns)).round(1) + 0.05


class Edit(NamedTuple):
    """An edit in words, and what makes it."""

    text: str
    make: Callable[[], Any]


class Life:
    """One tree, and the edits that it lives under.

    Parameters
    ----------
    kind
        Of the tree.
    rng
        Decides all that happens.
    folder
        For files.
    """

    def __init__(self, kind: Kind, rng: np.random.Generator, folder: Path) -> None:
        self.kind, self._rng = kind, rng
        self.source = Source(kind, rng)
        self.text = ""
        self.h: et.Hierarchy
        self._path, self._file = folder / f"{rng.integers(2**62)}.db", folder / "tree.evertree"
        self._rows: dict[Hashable, Any] = {}  # what was drawn for each key
        self._clock, self._n_named = 0.0, 0
        self._parts: dict[str, str] = {}
        lives: list[tuple[Callable[[], Edit], float]] = [(self._insert, 5), (self._remove, 2), (self._update, 2.5)]
        lives += [(self._refine, 4), (self._wrong, 1.5), (self._remove_all, 0.3)]
        lives += [(self._reopen, 1.5), (self._checkpoint, 0.5)] if self._is_durable else [(self._replace, 1)]
        lives += [(self._keep, 4)] if {"last", "age"} & set(kind.has) else []
        lives += [(self._expire, 1)] if "age" in kind.has else []
        lives += [(self._change, 4)] if kind.schemes else []
        self._lives = [life for life, _ in lives]
        chances = np.array([chance for _, chance in lives])
        self._chances = chances / chances.sum()

    def steps(self) -> Iterator[Step]:
        """What happens, one after the other; the end is the whole tree."""
        yield self._after(self._begin())
        for _ in range(self._rng.integers(*self.kind.n_edits, endpoint=True)):
            yield self._after(self._lives[self._rng.choice(len(self._lives), p=self._chances)]())
        self.text = "the end"
        yield self.text, self._state()

    def close(self) -> None:
        """Let go of the file."""
        if hasattr(self, "h") and isinstance(self.h, et.DurableHierarchy):
            self.h.close()

    def _after(self, edit: Edit) -> Step:
        """Make an edit, and describe what there is then. One that is refused must change nothing."""
        self.text, before = edit.text, self._parts
        parts = {}
        try:
            result = edit.make()
        except et.EvertreeError as error:
            parts["error"] = type(error).__name__
        else:
            if isinstance(result, et.Report):
                parts["report"] = digest(facts(result))
            else:
                parts["result"] = digest(result)
        self._parts = parts_of(self.h)
        if "error" in parts and before:
            parts["unchanged"] = str(self._parts == before)
        state = self._state() if self._rng.random() < 0.1 else {}
        self.text = f"after {edit.text}"
        return edit.text, parts | self._parts | state

    def _state(self) -> dict[str, str]:
        tree = self.h.copy() if self._is_durable else self.h
        tree.save(self._file)
        return parts_of_file(self._file)

    @property
    def _is_durable(self) -> bool:
        return "durable" in self.kind.has

    # How it begins

    def _begin(self) -> Edit:
        kind, rng = self.kind, self._rng
        linkage, metric = kind.linkage, kind.metric
        if kind.schemes:
            linkage, metric = kind.schemes[rng.integers(len(kind.schemes))]
        params = self._params(metric)
        scheme = {"linkage": linkage, "metric": FUNCTIONS.get(metric, metric), "metric_params": params}
        scheme |= {"goal": kind.goal, "search_width": kind.search_width, "seed": int(rng.integers(100))}
        start = kind.starts[rng.integers(len(kind.starts))]
        count = int(rng.integers(0, 4)) if rng.random() < 0.2 else int(rng.integers(kind.first // 2, kind.first + 1))
        if kind.n_sequences is not None:
            count = max(count, kind.first * 9 // 10)
        rows = self.source.draw(count)
        X = between(rows, rows) if metric == "precomputed" else rows
        if metric == "precomputed" and count > 1 and rng.random() < 0.5:
            X = X[np.triu_indices(count, 1)]  # condensed
        merges = random_merges(rng, count) if start == "linkage" else None
        given = self._given(len(rows))
        given.pop("time", None)

        def make() -> Any:
            try:
                self.h = self._born(start, scheme, X, merges, given)
            except et.EvertreeError:  # such as values that are too large
                self.h = self._born("empty", scheme, X, merges, given)
                raise
            keys = self.h.insert(X, **given) if start == "empty" else self.h.keys()
            self._rows.update(zip(keys, rows, strict=True))
            return keys

        shape = f"{self.source.shape} {_size(rows)}"
        return Edit(f"{start}: {linkage}, {metric}, {shape}{_with(given)}", make)

    def _born(self, start: str, scheme: dict[str, Any], X: Any, merges: Any, given: dict[str, Any]) -> et.Hierarchy:
        if start == "empty" and self._is_durable:
            return et.open(self._path, **scheme)
        scheme = {**scheme, "n_jobs": self.kind.n_jobs}
        if start == "empty":
            return et.Hierarchy(**scheme)
        if start == "random":
            h = et.Hierarchy.random(X, **given, **scheme)
        elif start == "linkage":
            h = et.Hierarchy.from_linkage(merges, X, **given, **scheme)
        else:
            h = et.agglomerate(X, **given, **scheme)
        return et.open(self._path, start=h, metric=self._function(h)) if self._is_durable else h

    def _params(self, metric: str) -> dict[str, Any] | None:
        rng, m = self._rng, self.source.n_columns
        if metric == "mahalanobis":
            a = rng.normal(size=m)
            return {"VI": np.diag(rng.uniform(0.5, 2.0, m)) + np.outer(a, a)}
        if metric == "seuclidean":
            return {"V": rng.uniform(0.5, 2.0, m)}
        return {"p": 3} if metric == "minkowski" else None

    # Edits

    def _insert(self) -> Edit:
        rows = self.source.draw(self._count())
        given = self._given(len(rows))
        X = self._as_new(rows)
        if isinstance(X, np.ndarray) and not callable(self.h.metric) and self._rng.random() < 0.1:
            X = X.tolist()

        def make() -> Any:
            keys = self.h.insert(X, **given)
            self._rows.update(zip(keys, rows, strict=True))
            return keys

        return Edit(f"insert {_size(rows)}{_with(given)}", make)

    def _remove(self) -> Edit:
        keys = self._some()
        return Edit(f"remove {len(keys)}", lambda: self.h.remove(keys))

    def _remove_all(self) -> Edit:
        keys = self.h.keys()
        return Edit(f"remove all {len(keys)}", lambda: self.h.remove(keys))

    def _update(self) -> Edit:
        keys = self._some()
        rows = self.source.draw(len(keys))
        X = self._as_changed(keys, rows)
        given = {"sample_weight": self._weights(len(keys))} if "weights" in self.kind.has else {}

        def make() -> Any:
            self.h.update(keys, X, **given)
            self._rows.update(zip(keys, rows, strict=True))

        return Edit(f"update {_size(rows)}{_with(given)}", make)

    def _refine(self) -> Edit:
        budget: dict[str, Any] = {}
        if self._rng.random() < 0.5:
            budget["moves"] = int(self._rng.integers(0, self.kind.batch))
        if self._rng.random() < 0.3:
            budget["until"] = ("stable", "homogeneous")[self._rng.integers(2)]
        return Edit(f"refine {budget or ''}", lambda: self.h.refine(**budget))

    def _replace(self) -> Edit:
        """Go on with a copy."""
        way = ("copy", "pickle", "load")[self._rng.integers(3)]

        def make() -> None:
            n_jobs = self.h.n_jobs
            if way == "copy":
                self.h = self.h.copy()
            elif way == "pickle":
                self.h = pickle.loads(pickle.dumps(self.h))
            else:
                self.h.save(self._file)
                self.h = et.load(self._file, metric=self._function(self.h))
                self.h.n_jobs = n_jobs

        return Edit(way, make)

    def _checkpoint(self) -> Edit:
        return Edit("checkpoint", lambda: self._durable.checkpoint())

    def _reopen(self) -> Edit:
        """Close the file and open it, or read it while it is open: then all edits are made again."""
        way = ("reopen", "checkpoint and reopen", "read")[self._rng.integers(3)]

        def make() -> dict[str, str] | None:
            if way == "read":
                reader = et.open(self._path, metric=self._function(self.h), read_only=True)
                return parts_of(reader)
            if way != "reopen":
                self._durable.checkpoint()
            self._durable.close()
            self.h = et.open(self._path, metric=self._function(self.h))
            return None

        return Edit(way, make)

    def _keep(self) -> Edit:
        rng, has = self._rng, self.kind.has
        limits: dict[str, Any] = {}
        if "last" in has and rng.random() < 0.8:
            limits["last"] = int(rng.integers(1, 80))
        if "age" in has and rng.random() < 0.8:
            limits["max_age"] = float(rng.uniform(1.0, 8.0))
        if "age" in has:
            limits["time"] = self._clock
        if not limits.keys() & {"last", "max_age"} and hasattr(self.h, "keep_all"):  # which 0.1 has not
            return Edit(f"keep {limits}", lambda: self.h.keep_all() or [])
        return Edit(f"keep {limits}", lambda: self.h.keep(**limits))

    def _expire(self) -> Edit:
        self._clock += float(self._rng.exponential())
        now = self._clock
        return Edit(f"expire {now:.3f}", lambda: self.h.expire(time=now))

    def _change(self) -> Edit:
        linkage, metric = self.kind.schemes[self._rng.integers(len(self.kind.schemes))]
        given: dict[str, Any] = {"metric_params": self._params(metric)}
        if len(self.h) and "precomputed" in (metric, self.h.metric):
            rows = self._live_rows(self._rows)
            given["X"] = between(rows, rows) if metric == "precomputed" else rows
        function = FUNCTIONS.get(metric, metric)
        if self.h.linkage == linkage and self._rng.random() < 0.5:
            return Edit(f"set_metric {metric}{_with(given)}", lambda: self.h.set_metric(function, **given))
        text = f"set_linkage {linkage}, {metric}{_with(given)}"
        return Edit(text, lambda: self.h.set_linkage(linkage, metric=function, **given))

    def _wrong(self) -> Edit:
        """An edit that has to be refused."""
        h, rng = self.h, self._rng
        live, rows = h.keys(), self.source.draw(3)
        X = self._as_new(rows)
        at = {"time": self._clock} if "age" in self.kind.has else {}
        some = live[: int(rng.integers(0, 3))]
        bad = [Edit("remove an unknown key", lambda: h.remove([*some, "nobody"]))]
        bad += [Edit("insert a key twice", lambda: h.insert(X, keys=["a", "b", "a"], **at))]
        bad += [Edit("insert with too few keys", lambda: h.insert(X, keys=["a", "b"], **at))]
        bad += [Edit("insert a weight of zero", lambda: h.insert(X, sample_weight=[1.0, 1.0, 0.0], **at))]
        bad += [Edit("update an unknown key", lambda: h.update(["nobody"], X[:1]))]
        bad += [Edit("refine by -1 moves", lambda: h.refine(moves=-1))]
        bad += [Edit("set_linkage of no name", lambda: h.set_linkage("none"))]
        bad += [Edit("set_metric of no name", lambda: h.set_metric("none"))]
        bad += [Edit("insert a bare word", lambda: h.insert("word", **at))]
        if live:
            bad += [Edit("insert a live key", lambda: h.insert(X, keys=["a", "b", live[-1]], **at))]
        if at and h.window is not None and h.window.max_age is not None:
            bad += [Edit("insert at an earlier time", lambda: h.insert(X, time=self._clock - 100.0))]
        if isinstance(X, np.ndarray):
            bad += self._spoilt(X.astype(np.float64), live[:3], at)
        return bad[rng.integers(len(bad))]

    def _spoilt(self, X: NDArray[np.float64], keys: list[Hashable], at: dict[str, float]) -> list[Edit]:
        """Points that have to be refused."""
        h, last = self.h, X.copy()
        last[-1, 0] = np.nan
        wider = np.hstack([X, X[:, :1]])
        bad = [Edit("insert NaN", lambda: h.insert(last, **at))]
        bad += [Edit("insert infinity", lambda: h.insert(-np.inf * X, **at))]
        bad += [Edit("insert one dimension", lambda: h.insert(np.append(X[0], np.nan), **at))]
        if len(keys) == len(X):  # where there never was a point, any columns are right
            bad += [Edit("insert other columns", lambda: h.insert(wider, **at))]
            bad += [Edit("update to other columns", lambda: h.update(keys, wider))]
            bad += [Edit("update to NaN", lambda: h.update(keys, last))]
        return bad

    # What they are given

    @property
    def _durable(self) -> et.DurableHierarchy:
        assert isinstance(self.h, et.DurableHierarchy)
        return self.h

    def _function(self, h: et.Hierarchy) -> Any:
        return h.metric if callable(h.metric) else None

    def _count(self) -> int:
        return 1 if self._rng.random() < 0.3 else int(self._rng.integers(0, self.kind.batch + 1))

    def _some(self) -> list[Hashable]:
        """Some live keys, at random or the oldest."""
        keys = self.h.keys()
        count = min(self._count(), len(keys))
        if self._rng.random() < 0.3:
            return keys[:count]
        return [keys[i] for i in self._rng.choice(len(keys), count, replace=False)] if keys else []

    def _given(self, count: int) -> dict[str, Any]:
        """What new points are inserted with."""
        rng, has = self._rng, self.kind.has
        given: dict[str, Any] = {}
        if "keys" in has and rng.random() < 0.7:
            given["keys"] = self._names(count)
        if "weights" in has:
            given["sample_weight"] = self._weights(count)
        if "age" in has:
            self._clock += float(rng.exponential())
            given["time"] = self._clock
        return given

    def _names(self, count: int) -> list[Hashable]:
        """Keys that no live point has: words, one of them twice in a lifetime, and numbers."""
        numbers = range(self._n_named, self._n_named + count)
        self._n_named += count
        names: list[Hashable] = [3 * i + 1000 if i % 3 == 0 else f"point {i}" for i in numbers]
        if names and (not hasattr(self, "h") or "again" not in self.h):
            names[0] = "again"
        return names

    def _weights(self, count: int) -> NDArray[np.float64] | None:
        way = self._rng.integers(3)
        if way == 0:
            return None
        return self._rng.integers(1, 4, count).astype(np.float64) if way == 1 else self._rng.uniform(0.1, 9.0, count)

    def _as_new(self, rows: Any) -> Any:
        """What `insert` takes for new points."""
        if self.h.metric != "precomputed":
            return rows
        return between(rows, np.vstack([self._live_rows(self._rows), rows]))

    def _as_changed(self, keys: list[Hashable], rows: Any) -> Any:
        """What `update` takes for points that change."""
        if self.h.metric != "precomputed":
            return rows
        return between(rows, self._live_rows(self._rows | dict(zip(keys, rows, strict=True))))

    def _live_rows(self, rows: dict[Hashable, Any]) -> NDArray[Any]:
        """What was drawn for each live point, where that is vectors."""
        keys = self.h.keys()
        return np.array([rows[key] for key in keys]).reshape(-1, self.source.n_columns)


def _size(rows: Any) -> str:
    return " × ".join(map(str, np.shape(rows)))


def _with(given: dict[str, Any]) -> str:
    names = [name for name, value in given.items() if value is not None]
    return f" with {', '.join(names)}" if names else ""


def facts(report: et.Report) -> tuple[Any, ...]:
    """What of a report is of the tree, and not of the time."""
    counts = report.moves, report.grafts, report.checks, report.searches
    return *counts, report.stopped_by, report.stable, report.homogeneous


def digest(value: Any) -> str:
    """A few letters for an array, bit for bit, or for what can be printed."""
    if isinstance(value, np.ndarray):
        content = f"{value.dtype.str}{value.shape}".encode() + value.tobytes()
    else:
        content = repr(value).encode()
    return hashlib.blake2b(content, digest_size=5).hexdigest()


def parts_of(h: et.Hierarchy) -> dict[str, str]:
    """A digest of each part of what a hierarchy says of itself."""
    Z, nodes = h.linkage_matrix(), h.nodes()
    metric = h.metric if isinstance(h.metric, str) else h.metric.__name__
    limits = None if h.window is None else (h.window.last, h.window.max_age)
    parts = {
        "options": (h.linkage, metric, h.goal, h.search_width, h.seed, limits),
        "keys": h.keys(),
        "points": h.points(),
        "linkage_matrix": Z,
        "nodes": nodes,
        "counts": (h.n_moves, h.n_grafts),
    }
    if len(h):
        height = float(np.median(Z[:, 2])) if len(Z) else 0.0
        cuts = h.cut(n_clusters=min(4, len(h))), h.cut(height=height), h.cut(height=height, min_cluster_size=2)
        parts["labels"] = np.array(cuts)
    if len(h) <= MOST_PARENTS:
        parts["parents"] = [h.parent(u) for u in nodes.tolist()]
    return {name: digest(part) for name, part in parts.items()}


def parts_of_file(path: Path) -> dict[str, str]:
    """A digest of each array and of each entry of the header of a saved tree, but for what is of the file alone.

    Of points, and of dissimilarities, only the rows of live ones: in the others there may be anything.
    """
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    header = json.loads(arrays.pop("header").tobytes())
    del arrays["header_sha256"], header["version"], header["sha256"]
    rows = np.sort(arrays["leaves"] >> 1).astype(np.int64)
    if "points" in arrays:
        arrays["points"] = arrays["points"][rows]
    if "x" in arrays:
        is_triangle = header["metric"] in (None, "precomputed")
        arrays["x"] = _of_triangle(arrays["x"], rows) if is_triangle else arrays["x"][rows]
    parts = {f"file {name}": digest(array) for name, array in arrays.items()}
    return parts | {f"file header {name}": digest(value) for name, value in header.items()}


def _of_triangle(x: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[Any]:
    """The dissimilarities among some rows of a triangle without its diagonal, which lies in `x` row after row."""
    i, j = np.tril_indices(rows.size, -1)
    return x[0, rows[i] * (rows[i] - 1) // 2 + rows[j]]


def lived(kind: Kind, seed: int, number: int, folder: Path) -> list[Step]:
    """The steps of one sequence. What is no error of evertree ends it, with a part that says so."""
    life = Life(kind, np.random.default_rng([seed, zlib.crc32(kind.name.encode()), number]), folder)
    steps: list[Step] = []
    try:
        steps.extend(life.steps())
    except Exception as error:
        steps.append((life.text, {"crash": f"{type(error).__name__}: {error}"}))
    finally:
        life.close()
    return steps


def write_digests(kind: Kind, n_sequences: int, seed: int, path: Path) -> None:
    """Make all sequences of a kind in this process.

    The clock stands still: a refinement looks at it to see how much to do at a time, and a durable tree, whether a
    snapshot pays. No tree depends on that, but the count of checks does, as one that pauses counts twice.
    """
    time.perf_counter = lambda: 0.0
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        sequences = [lived(kind, seed, number, Path(folder)) for number in range(n_sequences)]
    path.write_text(json.dumps({"versions": versions(), "sequences": sequences}))


def versions() -> dict[str, str]:
    """What last bits depend on, and the evertree that made them."""
    found = {"python": platform.python_version(), "processor": processor(), "evertree": et.__version__}
    return found | {name: importlib.metadata.version(name) for name in ("numpy", "scipy", "numba")}


def processor() -> str:
    """The name of the processor, where the system says it."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


class Side:
    """Makes digests with one interpreter, each kind of tree in a process of its own.

    Parameters
    ----------
    python
        The interpreter: by default this one, with its environment and its folder.
    """

    def __init__(self, python: str | None = None) -> None:
        self._python = python

    def digests(self, kind: Kind, n_sequences: int, seed: int) -> dict[str, Any]:
        """The versions and the sequences of a kind, or the error that ended the process."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "digests.json"
            command = [self._python or sys.executable, "-P", str(Path(__file__).resolve()), "--digests", str(path)]
            command += ["--kinds", kind.name, "--sequences", str(n_sequences), "--seed", str(seed)]
            environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
            where = {} if self._python is None else {"cwd": folder, "env": environment}
            done = subprocess.run(command, capture_output=True, text=True, **where)
            if done.returncode or not path.exists():
                return {"error": (done.stderr.strip() or f"exit code {done.returncode}").splitlines()[-1]}
            return json.loads(path.read_text())


class Kept:
    """Digests of an earlier run, in a file."""

    def __init__(self, path: str) -> None:
        with gzip.open(path, "rt") if path.endswith(".gz") else open(path) as file:
            content = json.load(file)
        self.seed: int = content["seed"]
        self.kinds: dict[str, dict[str, Any]] = content["kinds"]

    def digests(self, kind: Kind, n_sequences: int, seed: int) -> dict[str, Any]:
        """As of a side; as many sequences as there are."""
        if seed != self.seed:
            return {"error": f"the digests in the file are of --seed {self.seed}"}
        if kind.name not in self.kinds:
            return {"error": "the file has no digests of it"}
        kept = self.kinds[kind.name]
        return kept | {"sequences": kept["sequences"][:n_sequences]}


def difference(mine: list[list[Step]], theirs: list[list[Step]]) -> str | None:
    """The first difference in words, or the first thing that no version may do; None if there is none."""
    for number, (a, b) in enumerate(zip(mine, theirs, strict=False)):
        for step, (here, there) in enumerate(zip(a, b, strict=False)):
            found = difference_of_step(here, there)
            if found is not None:
                return f"sequence {number}, step {step}, {here[0]!r}: {found}"
        if len(a) != len(b):
            return f"sequence {number} has {len(a)} steps here, and {len(b)} there"
    return None


def difference_of_step(here: Step, there: Step) -> str | None:
    (edit, parts), (other_edit, other_parts) = here, there
    if edit != other_edit:
        return f"there it is {other_edit!r}"
    names = [name for name in parts | other_parts if parts.get(name) != other_parts.get(name)]
    if "crash" in names:
        names = ["crash"]
    if names:
        said = [f"{name} {parts.get(name)} here, {other_parts.get(name)} there" for name in names if name in SAID]
        return "; ".join([f"not the same {', '.join(names)}", *said])
    if "crash" in parts:
        return f"ended by {parts['crash']}"
    if parts.get("unchanged") == "False":
        return f"refused by {parts['error']}, and yet the tree is another"
    return None


def compare(kinds: list[Kind], options: argparse.Namespace) -> tuple[dict[str, Any], bool]:
    """Make the digests, print a table and what differs; return the digests, and whether all is well."""
    other = Side(options.against) if options.against else Kept(options.compare) if options.compare else None
    sides = [Side(), *([other] if other else [])]
    is_well, made = True, {}
    print(f"{'kind':32} {'sequences':>9} {'edits':>7}  equal", flush=True)
    with ThreadPoolExecutor(options.jobs) as pool:
        waiting: list[tuple[Kind, list[Future[dict[str, Any]]]]] = []
        for kind in kinds:
            count = min(options.sequences, kind.n_sequences or options.sequences)
            waiting.append((kind, [pool.submit(side.digests, kind, count, options.seed) for side in sides]))
        known_versions: set[str] = set()
        for kind, futures in waiting:
            mine, theirs = (futures[0].result(), futures[-1].result())
            made[kind.name] = mine
            sides_of = {"here": mine, "there": theirs}
            problem = next((f"{side}: {found['error']}" for side, found in sides_of.items() if "error" in found), None)
            known_versions |= {_other_versions(mine, theirs)}
            if problem is None:
                problem = difference(mine["sequences"], theirs["sequences"])
            _print_row(kind, min((mine, theirs), key=_n_edits), "-" if other is None else problem is None, problem)
            is_well = is_well and problem is None
    print(*sorted(known_versions - {""}), sep="\n", end="")
    return made, is_well


def _n_edits(found: dict[str, Any]) -> int:
    return sum(len(steps) - 1 for steps in found.get("sequences", []))


def _print_row(kind: Kind, found: dict[str, Any], is_equal: bool | str, problem: str | None) -> None:
    equal = {True: "yes", False: "NO"}.get(is_equal, "-")
    few = "" if kind.n_sequences is None else f"  (up to {kind.first:,} points at first: few sequences)"
    print(f"{kind.name:32} {len(found.get('sequences', [])):9,} {_n_edits(found):7,}  {equal:5}{few}", flush=True)
    if problem is not None:
        print(f"    {problem}", flush=True)


def _other_versions(mine: dict[str, Any], theirs: dict[str, Any]) -> str:
    """What the two sides have in different versions, in words."""
    a, b = mine.get("versions", {}), theirs.get("versions", {})
    names = [name for name in a if name in b and a[name] != b[name] and name != "evertree"]
    others = [f"{name} {a[name]} here and {b[name]} there" for name in names]
    return f"last bits may differ: {', '.join(others)}\n" if others else ""


def chosen_kinds(names: str | None) -> list[Kind]:
    known = {kind.name: kind for kind in KINDS}
    wanted = list(known) if names is None else names.split(",")
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise SystemExit(f"no kind {unknown[0]!r}; there are {', '.join(known)}")
    return [known[name] for name in wanted]


def main() -> None:
    """Compare what the options say."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--against", metavar="PYTHON", help="an interpreter that has the other evertree")
    parser.add_argument("--compare", metavar="FILE", help="digests that --save wrote, instead of another interpreter")
    parser.add_argument("--save", metavar="FILE", help="keep the digests of this evertree, as .json or .json.gz")
    parser.add_argument("--sequences", type=int, default=200, help="of each kind of tree")
    parser.add_argument("--kinds", metavar="NAME,NAME", help="by default all")
    parser.add_argument("--seed", type=int, default=0, help="of all that happens")
    parser.add_argument("--jobs", type=int, default=2, help="processes at the same time")
    parser.add_argument("--digests", metavar="FILE", help="make those of one kind in this process; for the other side")
    options = parser.parse_args()
    kinds = chosen_kinds(options.kinds)
    if options.digests:
        write_digests(kinds[0], options.sequences, options.seed, Path(options.digests))
        return
    if not (options.against or options.compare or options.save):
        parser.error("give --against, --compare or --save")
    made, is_well = compare(kinds, options)
    if options.save:
        content = json.dumps({"seed": options.seed, "kinds": made})
        with gzip.open(options.save, "wt") if options.save.endswith(".gz") else open(options.save, "w") as file:
            file.write(content)
    raise SystemExit(not is_well)


if __name__ == "__main__":
    main()
