"""When clusters are born, split and merged in two streams with known drift, seen through a moving window.

Run it with ``make bench-drift``. It needs the files ``stream_elec2.npz`` and ``stream_gas_drift.npz``, draws
``docs/images/drift-elec2.png`` and ``docs/images/drift-gas.png``, and prints the numbers behind them: events in the
steps whose window reaches back over a known change, and in all others. How often chance does as much is told by
turning the events round the stream, by every number of steps, so that what is near in time stays near.

elec2: prices and demand in New South Wales and Victoria, half-hourly, from 7 May 1996. For the first year what is known
of Victoria is constant; then the market was widened to it. Many values are equal, so clusters depend on rounding: it is
followed with several tiny changes of the values, too.

gas: 16 sensors that age over three years, in batches of some months. In the file, the rows of a batch come in runs of
one gas, which would be drift of another kind; they are shuffled, so that what changes within a batch is chance.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray

import evertree as et
from benchmarks import datasets
from evertree.plotting import plot_changes
from evertree.plotting.dendrogram import NOISE_COLOR, PALETTE

PICTURES = Path(__file__).resolve().parents[1] / "docs" / "images"
EVENTS = ("born", "died", "split", "merged")
PER_DAY = 48
N_REPEATS = 10


class Stream(NamedTuple):
    """Points in the order in which they come, and what is known of them."""

    X: NDArray[np.float64]
    y: NDArray[np.int64]
    classes: list[str]
    times: NDArray[Any]  # of each row
    known: dict[str, int]  # what happened at which row
    window: int
    step: int
    n_clusters: int


def elec2(folder: Path, jitter: int | None = None, n_clusters: int = 10) -> Stream:
    """Four weeks in the window, a week in a step."""
    file = datasets.stream("elec2", folder)
    X, y = file["X"], file["y"]
    vic_price = X[:, 3]
    times = np.datetime64("1996-05-07T00:00") + np.arange(len(X)) * np.timedelta64(30, "m")
    known = {"Victoria joins": int(np.flatnonzero(vic_price != vic_price[0])[0])}
    week = 7 * PER_DAY
    scaled = datasets.z_scored(X[:, 1:])  # without the time of day
    if jitter is not None:
        scaled += 1e-6 * np.random.default_rng(jitter).normal(size=scaled.shape)
    return Stream(scaled, y, ["the price falls", "the price rises"], times, known, 4 * week, week, n_clusters)


def gas(folder: Path, order: int | None = 0) -> Stream:
    """As many clusters as there are gases. Columns are scaled by the first batch, which is all that is known then."""
    file = datasets.stream("gas", folder)
    X, y, batch = file["X"].astype(np.float64), file["y"].astype(np.int64), file["batch"]
    first = X[batch == batch[0]]
    X = (X - first.mean(axis=0)) / first.std(axis=0)
    if order is not None:
        rows = np.lexsort([np.random.default_rng(order).random(len(X)), batch])
        X, y = X[rows], y[rows]
    known = {f"batch {batch[row]}": int(row) for row in 1 + np.flatnonzero(np.diff(batch))}
    y = np.unique(y, return_inverse=True)[1]
    return Stream(X, y, file["names"].tolist(), np.arange(len(X)), known, 200, 50, len(np.unique(y)))


def followed(stream: Stream) -> tuple[NDArray[np.intp], list[Any]]:
    """The rows at which steps end, and what became of the clusters in each."""
    h = et.Hierarchy()
    h.keep(last=stream.window)
    h.insert(stream.X[: stream.window])
    h.refine()
    before = h.partition(n_clusters=stream.n_clusters)
    ends = np.arange(stream.window + stream.step, len(stream.X) + 1, stream.step)
    changes = []
    for end in ends:
        h.insert(stream.X[end - stream.step : end])
        h.refine()
        now = h.partition(n_clusters=stream.n_clusters, follow=before)
        changes.append(now.changes(before))
        before = now
    return ends, changes


class Comparison(NamedTuple):
    """Events per step after a known change and otherwise, and the share of turns that differ as much."""

    after: float
    otherwise: float
    p_value: float
    n_after: int
    n_otherwise: int

    def __str__(self) -> str:
        return (
            f"{self.after:.2f} events in each of {self.n_after} steps that follow a known change, {self.otherwise:.2f} "
            f"in each of {self.n_otherwise} others, p = {self.p_value:.3f}"
        )


def compared(stream: Stream, ends: NDArray[np.intp], changes: list[Any]) -> Comparison:
    counts = np.array([int(table["event"].isin(EVENTS).sum()) for table in changes])
    follows = np.zeros(ends.size, np.bool_)
    for row in stream.known.values():  # rows of before and after it were in the window, or in the step
        follows |= (ends > row) & (ends - stream.step - stream.window < row)

    def difference(turned: NDArray[np.intp]) -> float:
        return float(turned[follows].mean() - turned[~follows].mean())

    turns = np.array([difference(np.roll(counts, k)) for k in range(counts.size)])  # the first is none
    p_value = float(np.mean(turns >= turns[0] - 1e-12))
    return Comparison(
        float(counts[follows].mean()),
        float(counts[~follows].mean()),
        p_value,
        int(follows.sum()),
        int((~follows).sum()),
    )


def draw(stream: Stream, ends: NDArray[np.intp], changes: list[Any], name: str) -> None:
    figure, (top, bottom) = plt.subplots(
        2, 1, figsize=(9, 4.6), sharex=True, layout="constrained", height_ratios=[2.2, 1]
    )
    known = {what: stream.times[row] for what, row in stream.known.items()}
    when = stream.times[ends - 1]
    plot_changes(when, changes, known=known, ax=top)
    shares = np.array([np.bincount(stream.y[e - stream.step : e], minlength=len(stream.classes)) for e in ends])
    colors = [NOISE_COLOR, PALETTE[0]] if len(stream.classes) == 2 else PALETTE
    bottom.stackplot(when, (shares / stream.step).T, labels=stream.classes, colors=colors, linewidth=0)
    bottom.set(ylim=(0, 1), ylabel="share in a step")
    bottom.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False, fontsize="small")
    bottom.spines[["top", "right"]].set_visible(False)
    figure.savefig(PICTURES / f"drift-{name}.png", dpi=100)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    datasets.add_folder(parser)
    options = parser.parse_args()
    for name in datasets.STREAMS:
        reason = datasets.missing(name, options.folder)
        if reason is not None:
            parser.exit(1, f"{reason}\n")

    report("elec2", elec2(options.folder), "elec2")
    for k in range(N_REPEATS):
        report(f"elec2, changed {k}", elec2(options.folder, k))
    for n_clusters in (5, 20):
        report(f"elec2, {n_clusters} clusters", elec2(options.folder, None, n_clusters))
    report("gas", gas(options.folder), "gas")
    for k in range(1, N_REPEATS):
        report(f"gas, order {k}", gas(options.folder, k))
    report("gas, in the order of the file", gas(options.folder, None))


def report(title: str, stream: Stream, picture: str | None = None) -> None:
    """Follow a stream, print what was found, and draw it where that is wanted."""
    ends, changes = followed(stream)
    print(f"{title}: {compared(stream, ends, changes)}", flush=True)
    if picture is not None:
        draw(stream, ends, changes, picture)


if __name__ == "__main__":
    main()
