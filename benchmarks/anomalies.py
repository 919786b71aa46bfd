"""How well anomalies are found in two labelled streams, and how fast, beside IsolationForest and rrcf.

Run it with ``make bench-anomalies``; it needs the files ``stream_kdd99_10pct.npz`` and ``stream_nab.npz``. The figure
is the area under the curve of precision over recall (average precision), and points a second, learning and scoring.

kdd99: network connections in their order, columns z-scored. Of all rows four fifths are attacks, so as is usual all
normal ones are taken, and 3,377 attacks at random: one in thirty ("SA").

nab: the time series of the Numenta Anomaly Benchmark that have anomalies, each on its own: a point is the last 24
values. The figure is the mean over the series.

Each is done in two ways:

- *once*: 256 points, drawn at random, are learned, as IsolationForest does by default; then all points are scored.
- *stream*: 256 points are scored by what was learned of those before them, and then learned, and so on.
  IsolationForest, which cannot learn more, is fitted anew to the last points; evertree keeps a tree of as many.

rrcf scores a point by inserting it, so it is measured as a stream only, with the 40 trees of 256 points of its
examples; and as it is slow, on a sample: every 12th connection, and some of the series. The others are measured on
that, too.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import IsolationForest
from sklearn.metrics import average_precision_score

import evertree as et
from benchmarks import datasets

Points = NDArray[Any]
Scores = NDArray[np.float64]
Series = list[tuple[Points, NDArray[np.bool_]]]  # points in order, and which are anomalies

STEP = 256  # points that are scored before they are learned
SAMPLE = 256  # points that are learned once
N_ATTACKS = 3_377
N_VALUES = 24
EVERY = 12  # of the connections that rrcf gets
MOST_FOR_RRCF = 9_000  # points of the time series that it gets
WINDOWS = {"kdd99": (1_024, 4_096), "nab": (512, 1_024)}

#: The trees of evertree.
TREES = {"Ward": ("ward", "euclidean"), "average": ("average", "sqeuclidean")}


def kdd99(folder: Path) -> Series:
    """All normal connections, and some attacks, as one series."""
    file = datasets.stream("kdd99", folder)
    X, is_attack = file["X"].astype(np.float64), file["is_anomaly"].astype(bool)
    for column in ("src_bytes", "dst_bytes"):
        k = file["columns"].tolist().index(column)
        X[:, k] = np.log1p(X[:, k])
    attacks = np.random.default_rng(0).choice(np.flatnonzero(is_attack), N_ATTACKS, replace=False)
    rows = np.sort(np.concatenate([np.flatnonzero(~is_attack), attacks]))
    return [(datasets.z_scored(X[rows]).astype(np.float32), is_attack[rows])]


def nab(folder: Path) -> Series:
    """The last values at each time of each series that has anomalies."""
    file = datasets.stream("nab", folder)
    found = []
    for number in np.unique(file["series"]):
        rows = file["series"] == number
        x, y = file["X"][rows, 0].astype(np.float64), file["y"][rows].astype(bool)
        if y.any():
            x = np.concatenate([np.repeat(x[:1], N_VALUES - 1), x])
            found.append((np.lib.stride_tricks.sliding_window_view(x, N_VALUES).copy(), y))
    return found


def for_rrcf(name: str, series: Series) -> Series:
    """What a slow peer can be given."""
    if name == "kdd99":
        return [(X[::EVERY], y[::EVERY]) for X, y in series]
    chosen: Series = []
    for k in np.random.default_rng(0).permutation(len(series)):
        if sum(len(y) for _, y in chosen) + len(series[k][1]) <= MOST_FOR_RRCF:
            chosen.append(series[k])
    return chosen


def tree_once(X: Points, linkage: str, metric: str, measure: str) -> Scores:
    """A tree of a sample, refined until it is stable."""
    h = et.Hierarchy(linkage, metric)
    h.insert(drawn(X))
    h.refine()
    return h.anomaly_scores(X, measure)


def tree_stream(X: Points, window: int, linkage: str, metric: str, measure: str) -> Scores:
    """A live tree of the last points."""
    h = et.Hierarchy(linkage, metric)
    h.keep(last=window)
    scores = np.empty(len(X))
    for start in range(0, len(X), STEP):
        batch = slice(start, start + STEP)
        if start == 0:
            h.insert(X[batch])  # there is nothing to score the first by but themselves
        scores[batch] = h.anomaly_scores(X[batch], measure)
        if start > 0:
            h.insert(X[batch])
    return scores


def forest_once(X: Points) -> Scores:
    """An IsolationForest of 100 trees, by default of 256 points each."""
    return -IsolationForest(random_state=0).fit(X).score_samples(X)


def forest_stream(X: Points, window: int) -> Scores:
    """An IsolationForest that is fitted to the last points before each step."""
    scores = np.empty(len(X))
    for start in range(0, len(X), STEP):
        known = X[max(start - window, 0) : max(start, STEP)]
        scores[start : start + STEP] = (
            -IsolationForest(random_state=0).fit(known).score_samples(X[start : start + STEP])
        )
    return scores


def rrcf_stream(X: Points) -> Scores:
    """Robust random cut trees of the last 256 points."""
    import rrcf

    np.random.seed(0)  # noqa: NPY002  rrcf draws from it
    trees = [rrcf.RCTree() for _ in range(40)]
    scores = np.zeros(len(X))
    for k, point in enumerate(X.astype(np.float64)):
        for tree in trees:
            if len(tree.leaves) >= 256:
                tree.forget_point(k - 256)
            tree.insert_point(point, index=k)
            scores[k] += tree.codisp(k)
    return scores


def drawn(X: Points) -> Points:
    """Some points at random, in their order."""
    rows = np.random.default_rng(0).choice(len(X), min(SAMPLE, len(X)), replace=False)
    return X[np.sort(rows)]


def measured(series: Series, score: Callable[[Points], Scores], repeats: int) -> tuple[float, float]:
    """The mean average precision over the series, and points a second, the best of several runs."""
    score(series[0][0][: 2 * STEP])  # whatever has to be compiled or imported
    fastest = np.inf
    for _ in range(repeats):
        begin = time.perf_counter()
        found = [score(X) for X, _ in series]
        fastest = min(fastest, time.perf_counter() - begin)
    precision = [average_precision_score(y, scores) for (_, y), scores in zip(series, found, strict=True)]
    return float(np.mean(precision)), sum(len(y) for _, y in series) / fastest


def show(title: str, series: Series, systems: dict[str, Callable[[Points], Scores]], repeats: int) -> None:
    """Measure each system, and print a line for it."""
    print(f"\n{title}: {sum(len(y) for _, y in series):,} points in {len(series)} series")
    print(f"  {'':<32}{'average precision':>18}{'points a second':>18}")
    for name, score in systems.items():
        precision, speed = measured(series, score, repeats)
        print(f"  {name:<32}{precision:>18.3f}{speed:>18,.0f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    datasets.add_folder(parser)
    parser.add_argument("--only", choices=("kdd99", "nab"), help="one stream only")
    parser.add_argument("--repeats", type=int, default=5, help="runs of what takes seconds, of which the best counts")
    options = parser.parse_args()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    for name, load in {"kdd99": kdd99, "nab": nab}.items():
        if options.only not in (None, name):
            continue
        reason = datasets.missing(name, options.folder)
        if reason is not None:
            print(f"{name} is left out: {reason}")
            continue
        series = load(options.folder)
        ways = {
            f"evertree, {tree}, {measure}": (*TREES[tree], measure)
            for tree in TREES
            for measure in ("jump", "displacement")
        }
        once = {way: lambda X, given=given: tree_once(X, *given) for way, given in ways.items()}
        show(f"{name}, once", series, once | {"IsolationForest": forest_once}, options.repeats)
        sample = for_rrcf(name, series)
        for window in WINDOWS[name]:
            stream = {way: lambda X, given=given, w=window: tree_stream(X, w, *given) for way, given in ways.items()}
            peers = {"IsolationForest": lambda X, w=window: forest_stream(X, w)}
            show(f"{name}, stream, the last {window:,}", series, stream | peers, 1)
            if window == WINDOWS[name][0]:
                peers |= {"rrcf": rrcf_stream}
                show(f"{name}, stream, the last {window:,}, a sample", sample, stream | peers, 1)


if __name__ == "__main__":
    main()
