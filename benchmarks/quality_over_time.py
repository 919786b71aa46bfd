"""Quality against time for several data sets beside batch clustering: the picture of docs/stable.md.

Run it with ``python -m benchmarks.quality_over_time``, or name data sets: see `benchmarks.datasets`. It writes
``docs/images/quality-over-time.png`` and prints the numbers behind it.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray

import evertree as et
from benchmarks import datasets, peers

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "images" / "quality-over-time.png"
DATA = ("digits", "letter", "news20", "mnist10k", "shuttle")


class Curve(NamedTuple):
    """Seconds of insertion and refinement, and how pure the tree was then."""

    seconds: list[float]
    purity: list[float]


def follow(X: NDArray[Any], y: NDArray[np.int64], goal: str) -> Curve:
    """Insert all points, then refine in slices. Looking at the tree takes no time off."""
    h = et.Hierarchy(goal=goal)
    start = time.perf_counter()
    h.insert(X)
    seconds = [time.perf_counter() - start]
    purity = [et.quality.dendrogram_purity(h, y)]
    while h.refine(moves=0).stopped_by == "moves":
        report = h.refine(seconds=seconds[0] / 5)
        seconds.append(seconds[-1] + report.seconds)
        purity.append(et.quality.dendrogram_purity(h, y))
    return Curve(seconds, purity)


def batch(X: NDArray[Any], y: NDArray[np.int64]) -> tuple[float, float]:
    """Seconds and purity of fastcluster's Ward."""
    # With few columns the variant that keeps the points is the faster one, and the only one that fits many points.
    ward = peers.vector_ward if X.shape[1] <= 100 else peers.matrix_linkage("ward")
    Z, seconds = peers.timed(ward)(X)[:2]
    return seconds["fit"], et.quality.dendrogram_purity(et.Hierarchy.from_linkage(Z, X), y)


def draw(ax: Any, name: str, X: NDArray[Any], y: NDArray[np.int64]) -> None:
    stable, paper = follow(X, y, "stable"), follow(X, y, "homogeneous")
    seconds, purity = batch(X.astype(np.float64), y)
    n, n_columns = X.shape
    print(
        f"{name}: {n:,} × {n_columns}; batch {purity:.3f} in {seconds:.2f} s; stable from {stable.purity[0]:.3f} after "
        f"{stable.seconds[0]:.2f} s to {stable.purity[-1]:.3f} after {stable.seconds[-1]:.2f} s; homogeneous "
        f"{paper.purity[-1]:.3f} after {paper.seconds[-1]:.2f} s",
        flush=True,
    )
    ax.axhline(purity, color="0.6", linewidth=1, linestyle=":")
    ax.plot(seconds, purity, "s", color="0.3", label="batch Ward (fastcluster)")
    ax.plot(stable.seconds, stable.purity, "-", color="tab:blue", linewidth=1.5, label="stable (ours, the default)")
    ax.plot(stable.seconds[0], stable.purity[0], "o", color="tab:blue", label="… after insertion")
    ax.plot(paper.seconds[-1], paper.purity[-1], "^", color="tab:orange", label="homogeneous (the paper's)")
    ax.set(title=f"{name}, {n:,} × {n_columns}", xlabel="seconds", xscale="log")
    ax.grid(alpha=0.3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", choices=datasets.FILES, default=DATA)
    datasets.add_folder(parser)
    options = parser.parse_args()
    names = []
    for name in options.data:
        reason = datasets.missing(name, options.folder)
        if reason is None:
            names.append(name)
        else:
            print(f"{name} is skipped: {reason}")
    if not names:
        return
    figure, axes = plt.subplots(1, len(names), figsize=(3.2 * len(names), 3.4), layout="constrained", squeeze=False)
    rng = np.random.default_rng(0)
    for name, ax in zip(names, axes[0], strict=True):
        X, y = datasets.load(name, options.folder, order=0)
        warm = rng.normal(size=(1000, X.shape[1])).astype(X.dtype)
        for goal in ("stable", "homogeneous"):
            follow(warm, np.zeros(1000, np.int64), goal)
        batch(warm.astype(np.float64), np.zeros(1000, np.int64))
        draw(ax, name, X, y)
    axes[0, 0].set_ylabel("dendrogram purity")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    PICTURE.parent.mkdir(exist_ok=True)
    figure.savefig(PICTURE, dpi=110)
    print(f"written: {PICTURE.relative_to(PICTURE.parents[2])}")


if __name__ == "__main__":
    main()
