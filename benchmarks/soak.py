"""Soak: trees live under random edits for as long as you like, each beside a plain model of what must be in it.

Run it with ``make soak`` before a release, or ``python -m benchmarks.soak --minutes 60``. Trees of means and of pairs,
in memory and in files, with windows and without, take in points, lose them, change linkage and metric, are refined
within budgets, copied, saved and loaded, reopened, and killed in the middle of an edit. Every minute everything is
checked: all invariants, keys, points and weights against the model, and cuts against SciPy's matrix. Memory is printed,
and by how much it grew after the first third. Ends with an error, and the seed to repeat it, where something is wrong.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Hashable
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import is_valid_linkage
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

import evertree as et

Points = NDArray[np.floating]


class Plan(NamedTuple):
    """How a tree lives."""

    name: str
    schemes: tuple[tuple[str, str], ...]  # linkages and metrics that it changes between
    size: int  # points, about
    n_columns: int
    dtype: str = "float64"
    is_durable: bool = False
    has_threads: bool = False
    changes_often: bool = False


MEANS = (("ward", "euclidean"), ("average", "sqeuclidean"), ("average", "cosine"))
PAIRS = tuple((name, metric) for name in ("single", "complete", "average") for metric in ("euclidean", "cityblock"))

PLANS = (
    Plan("large", (("ward", "euclidean"),), 100_000, 8, has_threads=True),
    Plan("means", MEANS, 10_000, 8, has_threads=True, changes_often=True),
    Plan("single precision", MEANS[:2], 20_000, 16, dtype="float32"),
    Plan("durable", (("ward", "euclidean"),), 10_000, 8, is_durable=True),
    Plan("pairs", (*PAIRS, ("minimax", "euclidean")), 1_000, 3, changes_often=True),
    Plan("durable pairs", PAIRS[:4], 500, 2, is_durable=True, changes_often=True),
)


class Edit(NamedTuple):
    """A verb that a hierarchy and a model both have, and what it is given."""

    verb: str
    given: dict[str, Any]

    def make(self, tree: et.Hierarchy | Model) -> Any:
        """Make it."""
        return getattr(tree, self.verb)(**self.given)

    def __str__(self) -> str:
        given = {name: f"{len(x):,}" if hasattr(x, "__len__") else x for name, x in self.given.items()}
        return f"  {self.verb}({', '.join(f'{name}={value}' for name, value in given.items())})"


class Model:
    """What must be in a tree: points by key, the oldest first. It has the verbs of a hierarchy, and no tree."""

    def __init__(self) -> None:
        self.point: dict[Hashable, Points] = {}
        self.weight: dict[Hashable, float] = {}
        self.came: dict[Hashable, float] = {}
        self.last: int | None = None
        self.max_age: float | None = None
        self.n_numbered = 0
        self.clock = 0

    def __len__(self) -> int:
        return len(self.point)

    def insert(self, X: Points, keys: Any, sample_weight: Points, time: float) -> list[Hashable]:
        """As `Hierarchy.insert`; times are whole numbers, so that they are kept exactly."""
        if keys is None:
            keys = list(range(self.n_numbered, self.n_numbered + len(X)))
            self.n_numbered += len(X)
        self.point.update(zip(keys, X, strict=True))
        self.weight.update(zip(keys, sample_weight.tolist(), strict=True))
        self.came.update(dict.fromkeys(keys, time))
        self.expire(time)
        return keys

    def remove(self, keys: list[Hashable]) -> None:
        """As `Hierarchy.remove`."""
        for key in keys:
            del self.point[key], self.weight[key], self.came[key]

    def update(self, keys: list[Hashable], X: Points, sample_weight: Points) -> None:
        """As `Hierarchy.update`."""
        self.point.update(zip(keys, X, strict=True))
        self.weight.update(zip(keys, sample_weight.tolist(), strict=True))

    def keep(self, last: int | None, max_age: float | None, time: float) -> list[Hashable]:
        """As `Hierarchy.keep`."""
        if max_age is None or self.max_age is None:
            self.came = dict.fromkeys(self.came, time)
        self.last, self.max_age = last, max_age
        return self.expire(time)

    def keep_all(self) -> None:
        """As `Hierarchy.keep_all`."""
        self.last = self.max_age = None

    def expire(self, time: float) -> list[Hashable]:
        """As `Hierarchy.expire`."""
        n_outside = 0 if self.last is None else max(len(self) - self.last, 0)
        if self.max_age is not None:
            n_outside = max(n_outside, sum(time - came > self.max_age for came in self.came.values()))
        gone = list(islice(self.point, n_outside))
        self.remove(gone)
        return gone

    def refine(self, **_: Any) -> None:
        """The points stay as they are."""

    set_linkage = refine


class World:
    """One tree, its model, and what happens to them.

    Parameters
    ----------
    plan
        How it lives.
    folder
        For its files.
    rng
        Decides all that happens, but for how far a refinement comes in its time.
    """

    def __init__(self, plan: Plan, folder: Path, rng: np.random.Generator) -> None:
        self.plan, self._rng = plan, rng
        self._path = folder / f"{plan.name.replace(' ', '-')}.evertree"
        self._centers = 4 * rng.normal(size=(20, plan.n_columns))
        self.model = Model()
        linkage, metric = plan.schemes[0]
        self.h: et.Hierarchy = (
            et.open(self._path, linkage, metric) if plan.is_durable else et.Hierarchy(linkage, metric)
        )
        self.n_steps = self.n_kills = 0
        self.last_edits: list[Edit] = []
        self._partition: et.Partition | None = None
        lives: list[tuple[Callable[[], object], float]] = [(self._edit, 20), (self._read, 2), (self._copy, 0.5)]
        lives += [(self._reopen, 0.5), (self._be_killed, 0.5)] if plan.is_durable else [(self._save, 0.5)]
        lives += [(self._change_threads, 1)] if plan.has_threads else []
        self._lives = [life for life, _ in lives]
        chances = np.array([chance for _, chance in lives])
        self._chances = chances / chances.sum()

    def step(self) -> None:
        """Let something happen."""
        self._lives[self._rng.choice(len(self._lives), p=self._chances)]()
        self.n_steps += 1
        assert len(self.h) == len(self.model), f"{len(self.h)} points, and {len(self.model)} in the model"

    def check(self) -> None:
        """Check everything: the tree by its own account, what is in it, and what it says.

        After an edit, because a refinement that was stopped may leave a tree that is not monotone.
        """
        self._make(self._insertion(1))
        h, model = self.h, self.model
        h.validate()
        assert h.is_monotone()
        self._compare(h)
        if len(h) < 2:
            return
        Z = h.linkage_matrix()
        assert is_valid_linkage(Z)
        for n_clusters in {2, len(h) // 10 + 1, len(h)}:
            assert np.array_equal(h.cut(n_clusters=n_clusters), first_merges(Z, len(h) - n_clusters))
        height = float(np.median(Z[:, 2]))
        assert np.array_equal(h.cut(height=height), first_merges(Z, int(np.count_nonzero(Z[:, 2] <= height))))
        assert np.array_equal(h.copy().linkage_matrix(), Z)
        partition = h.partition(n_clusters=min(10, len(h)), follow=self._partition)
        assert sum(partition.sizes().values()) == len(model)
        self._partition = partition

    def close(self) -> None:
        """Let go of the file."""
        if isinstance(self.h, et.DurableHierarchy):
            self.h.close()

    def _compare(self, h: et.Hierarchy) -> None:
        keys = h.keys()
        assert keys == list(self.model.point), "the keys are others"
        if keys:
            assert np.array_equal(h.points(), np.array(list(self.model.point.values()))), "the points are others"
            weights = h.state.live.tree.size[h.state.keys.leaves()]  # no verb gives them
            assert np.array_equal(weights, np.array(list(self.model.weight.values()))), "the weights are others"

    def _edit(self) -> None:
        self._make(self.drawn())

    def _make(self, edit: Edit) -> None:
        self.last_edits = [*self.last_edits[-4:], edit]
        found, expected = edit.make(self.h), edit.make(self.model)
        assert expected is None or found == expected, f"{edit.verb} gave {found}, and not {expected}"

    def drawn(self) -> Edit:
        """An edit: of a tree that is large rather a removal, of one that is small an insertion."""
        rng, model, size = self._rng, self.model, self.plan.size
        if len(model) < size // 4:
            return self._insertion(int(rng.integers(1, size // 4 + 2)))
        fullness = len(model) / size
        kinds: list[tuple[Callable[[], Edit], float]] = [
            (lambda: self._insertion(int(rng.integers(1, size // 10 + 2))), 3 / fullness),
            (lambda: self._insertion(1), 4),
            (lambda: Edit("remove", {"keys": self._some(size // 10)}), 3 * fullness),
            (lambda: Edit("remove", {"keys": self._some(1)}), 4),
            (lambda: self._update(self._some(size // 50)), 3),
            (self._window, 0.5),
            (lambda: Edit("expire", {"time": model.clock}), 0.5),
            (self._refinement, 4),
        ]
        if len(self.plan.schemes) > 1 and (self.plan.changes_often or rng.random() < 0.1):
            kinds.append((self._other_scheme, 0.5))
        chances = np.array([chance for _, chance in kinds])
        return kinds[rng.choice(len(kinds), p=chances / chances.sum())][0]()

    def _insertion(self, count: int) -> Edit:
        model = self.model
        model.clock += 1
        keys = [f"{model.clock}.{i}" for i in range(count)] if self._rng.random() < 0.3 else None
        given = {"X": self._points(count), "keys": keys, "sample_weight": self._weights(count), "time": model.clock}
        return Edit("insert", given)

    def _points(self, count: int) -> Points:
        """Points of clusters that drift; some are tied, some are twice there."""
        rng = self._rng
        self._centers += 0.01 * rng.normal(size=self._centers.shape)
        x = self._centers[rng.integers(len(self._centers), size=count)] + rng.normal(size=(count, self.plan.n_columns))
        if rng.random() < 0.2:
            x = x.round(1) + 0.05  # no row of zeros, which has no cosine
        x[count // 2 :] = x[: count - count // 2] if rng.random() < 0.1 else x[count // 2 :]
        return x.astype(self.plan.dtype)

    def _weights(self, count: int) -> Points:
        return np.ones(count) if self._rng.random() < 0.7 else self._rng.integers(1, 5, count).astype(float)

    def _some(self, most: int) -> list[Hashable]:
        """Some live keys, at random or the oldest."""
        count = min(int(self._rng.integers(1, most + 2)), len(self.model))
        keys = list(self.model.point)
        if self._rng.random() < 0.3:
            return keys[:count]
        return [keys[i] for i in self._rng.choice(len(keys), count, replace=False)]

    def _update(self, keys: list[Hashable]) -> Edit:
        given = {"keys": keys, "X": self._points(len(keys)), "sample_weight": self._weights(len(keys))}
        return Edit("update", given)

    def _window(self) -> Edit:
        rng, size = self._rng, self.plan.size
        last = int(rng.integers(size // 2, 2 * size)) if rng.random() < 0.5 else None
        max_age = int(rng.integers(50, 400)) if rng.random() < 0.5 else None
        if last is None and max_age is None:
            return Edit("keep_all", {})
        return Edit("keep", {"last": last, "max_age": max_age, "time": self.model.clock})

    def _refinement(self) -> Edit:
        rng = self._rng
        budget: dict[str, Any] = {}
        if rng.random() < 0.6:
            budget["seconds"] = float(rng.exponential(0.05))
        elif rng.random() < 0.8:
            budget["moves"] = int(rng.integers(0, 200))
        if rng.random() < 0.2:
            budget["until"] = "homogeneous"
        return Edit("refine", budget)

    def _other_scheme(self) -> Edit:
        linkage, metric = self.plan.schemes[self._rng.choice(len(self.plan.schemes))]
        return Edit("set_linkage", {"linkage": linkage, "metric": metric})

    def _read(self) -> None:
        """What is asked of a tree changes nothing."""
        if not len(self.model):
            return
        before, x = self.h.linkage_matrix(), self._points(3)
        assert len(self.h.locate(x[:1])) == 1
        assert np.isfinite(self.h.anomaly_scores(x)).all()
        assert np.isfinite(self.h.anomaly_scores()).all()
        tree = self.h.condensed_tree(min_cluster_size=5)
        assert np.array_equal(tree.labels, self.h.cut(min_cluster_size=5))
        assert np.isin(tree.labels, np.arange(-1, tree.clusters.size)).all()
        assert min(np.bincount(tree.labels + 1)[1:], default=5) >= 5
        assert self.h.anomalies(n=2)[0].key in self.h
        assert np.array_equal(self.h.linkage_matrix(), before)

    def _copy(self) -> None:
        twin = self.h.copy()
        if self.plan.is_durable:
            self._compare(twin)
        else:
            self.h = twin

    def _save(self) -> None:
        self.h.save(self._path)
        n_jobs, self.h = self.h.n_jobs, et.load(self._path)
        self.h.n_jobs = n_jobs

    def _change_threads(self) -> None:
        self.h.n_jobs = None if self.h.n_jobs else int(self._rng.integers(1, 4))

    def _reopen(self) -> None:
        matrix = self.h.linkage_matrix()
        self.close()
        self.h = et.open(self._path)
        assert np.array_equal(self.h.linkage_matrix(), matrix)

    def _be_killed(self) -> None:
        """Let a child edit until it is killed: the file then has all edits that it said it had made, or one more."""
        self.close()
        seconds = float(self._rng.uniform(0.05, 1.0))  # before the child, which draws the same edits from here on
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            self._edit_for_ever(writing)
        os.close(writing)
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status), "the child ended before it was killed"
        with os.fdopen(reading, "rb") as pipe:
            for _ in pipe.read():
                self.drawn().make(self.model)
        self.h = et.open(self._path)
        if self.h.keys() != list(self.model.point) or not self._has_the_points():
            self.drawn().make(self.model)
        self._compare(self.h)
        self.n_kills += 1

    def _has_the_points(self) -> bool:
        try:
            self._compare(self.h)
        except AssertionError:
            return False
        return True

    def _edit_for_ever(self, pipe: int) -> None:
        """In the child. Draws the edits that the parent will draw."""
        try:
            self.h = et.open(self._path)
            while True:
                self._edit()
                os.write(pipe, b".")
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)


def first_merges(Z: Points, count: int) -> NDArray[np.int64]:
    """The clusters after the first merges of a linkage matrix, by first appearance: plainly, by connected parts."""
    n = len(Z) + 1
    rows = np.repeat(np.arange(n, n + count), 2)
    graph = coo_array((np.ones(2 * count), (rows, Z[:count, :2].astype(np.int64).ravel())), (n + count, n + count))
    labels = connected_components(graph, directed=False)[1][:n]
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]


def rss() -> float:
    """Memory of this process, in MB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def growth(samples: list[tuple[float, float]]) -> str:
    """By how much memory grew after the first third, by a line through the samples."""
    times, used = np.array(samples).T
    later = times >= times[-1] / 3
    if np.count_nonzero(later) < 3:
        return "too short to say whether memory grew"
    slope = float(np.polyfit(times[later], used[later], 1)[0])
    seconds = float(np.ptp(times[later]))
    return (
        f"memory after the first third: {used[later].min():.0f} to {used[later].max():.0f} MB, by a line through it "
        f"{slope * seconds:+.1f} MB in {seconds:.0f} s"
    )


def soak(plans: tuple[Plan, ...], seconds: float, every: float, seed: int) -> None:
    """Let trees live for some time, with a full check from time to time and at the end."""
    samples: list[tuple[float, float]] = []
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        rngs = np.random.default_rng(seed).spawn(len(plans) + 1)
        worlds = [World(plan, Path(folder), rng) for plan, rng in zip(plans, rngs, strict=False)]
        world, checked, n_checks = worlds[0], began, 0
        try:
            while (now := time.monotonic()) < began + seconds:
                world = worlds[rngs[-1].choice(len(worlds))]
                world.step()
                if not samples or now - began > samples[-1][0] + min(every, 1.0):
                    samples.append((now - began, rss()))
                if now > checked + every or not n_checks:
                    for world in worlds:
                        world.check()
                    checked, n_checks = time.monotonic(), n_checks + 1
                    print(_line(now - began, worlds), flush=True)
            for world in worlds:
                world.check()
                world.close()
        except BaseException:
            print(f"in {world.plan.name!r}, after {world.n_steps} steps, with --seed {seed}:", file=sys.stderr)
            print(*map(str, world.last_edits), sep="\n", file=sys.stderr)
            raise
    print(_line(time.monotonic() - began, worlds))
    print(f"{sum(world.n_steps for world in worlds):,} steps, {sum(world.n_kills for world in worlds)} kills, all well")
    print(growth(samples))


def _line(seconds: float, worlds: list[World]) -> str:
    sizes = ", ".join(f"{world.plan.name} {len(world.model):,}" for world in worlds)
    return f"{seconds:6.0f} s  {rss():6.0f} MB  {sum(world.n_steps for world in worlds):8,} steps  {sizes}"


def main() -> None:
    """Soak for as long as the options say."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--minutes", type=float, default=2.0, help="how long")
    parser.add_argument("--seed", type=int, default=0, help="of all that happens")
    parser.add_argument("--shrink", type=int, default=1, help="trees of so many times fewer points")
    parser.add_argument("--every", type=float, default=60.0, help="seconds between two full checks")
    parser.add_argument("--only", choices=[plan.name for plan in PLANS], help="one of the trees")
    options = parser.parse_args()
    chosen = [plan for plan in PLANS if options.only in (None, plan.name)]
    plans = tuple(plan._replace(size=max(plan.size // options.shrink, 20)) for plan in chosen)
    soak(plans, 60 * options.minutes, options.every, options.seed)


if __name__ == "__main__":
    main()
