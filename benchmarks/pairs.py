"""Single, complete, average and minimax linkage on Euclidean distances, beside batch clustering in the same run.

Run it with ``make bench-pairs``, or ``python -m benchmarks.pairs --quick`` for a look in half a minute. Uniform points
in the unit cube, which have no clusters: the hardest case, as all heights are close to each other. Nothing is asserted.
"""

from __future__ import annotations

import argparse
import os

import numpy as np
from numpy.typing import NDArray

import evertree as et
from benchmarks.live_tree import headline, seconds

LINKAGES = ("single", "complete", "average", "minimax")

#: Moves from a random tree of n uniform points in the plane, as the design has them.
DESIGN = {"single": "0.11 to 0.17 n²", "complete": "3 n", "minimax": "3 n", "average": "5.5 n (100), 9 n (800)"}

N_EDITS = 100


def batch_seconds(x: NDArray[np.float64], linkage: str) -> float:
    """The time of a library's batch clustering, or of our own for minimax linkage: the best of two."""
    if linkage == "minimax":
        return min(seconds(lambda: et.agglomerate(x, linkage)) for _ in range(2))
    import fastcluster

    return min(seconds(lambda: fastcluster.linkage(x, linkage)) for _ in range(2))


def edits(h: et.Hierarchy, fresh: NDArray[np.float64]) -> tuple[float, float, float]:
    """Seconds for one insertion, deletion and update, each a call with one point: the mean of many."""
    rows = [fresh[i : i + 1] for i in range(len(fresh))]
    half = len(rows) // 2
    insertion = seconds(h.insert, rows[:half]) / half
    update = seconds(lambda row: h.update([int(abs(row[0, 0]) * 1e6) % half], row), rows[half:]) / half
    deletion = seconds(h.remove, ([key] for key in h.keys()[half : 2 * half])) / half
    return insertion, deletion, update


def build(linkage: str, n_columns: int, n: int, warm: bool = False) -> None:
    """One row of the table."""
    x = np.random.default_rng(n).uniform(size=(n + 2 * N_EDITS, n_columns))
    h = et.Hierarchy(linkage, goal="homogeneous")
    building = seconds(lambda: h.insert(x[:n]))
    share, moves = h.n_dissimilarities / (n * (n - 1) / 2), h.n_moves / n
    insertion, deletion, update = edits(h, x[n:])
    if warm:
        return
    batch = batch_seconds(x[:n], linkage)
    print(
        f"| {linkage} | {n_columns} | {n:,} | {building:.2f} | {batch:.2f} | {building / batch:.1f} | "
        f"{insertion * 1e6:,.0f} | {deletion * 1e6:,.0f} | {update * 1e6:,.0f} | {batch / insertion:,.0f} | "
        f"{share:.2%} | {moves:.1f} |",
        flush=True,
    )


def building(sizes: list[int], most_for_minimax: int) -> None:
    headline("Euclidean distances, uniform points: built by insertion, then single edits, beside batch clustering")
    print("Batch is fastcluster, and our own for minimax. Edits are one point a call, their mean over 100 calls.\n")
    print(
        "| linkage | columns | points | built, s | batch, s | ratio | insertion, µs | deletion, µs | update, µs | "
        "batch / insertion | pairs evaluated | moves a point |"
    )
    print("|" + " --- |" * 12)
    for linkage in LINKAGES:
        build(linkage, 2, 300, warm=True)
        for n_columns in (2, 16, 64):
            for n in sizes:
                if linkage != "minimax" or n <= most_for_minimax:
                    build(linkage, n_columns, n)
    print(
        "\nAims: at 10,000 points one insertion at least 100 times cheaper than batch and the whole at most 20 times "
        "its time,\nfor single, complete and average; single in 2 columns evaluates under 5 % of all pairs; minimax at "
        "2,000 points:\none insertion at least 20 times cheaper than batch."
    )


def moves_from_random_trees(sizes: list[int]) -> None:
    headline("Moves from a random tree to a homogeneous one, uniform points in the plane")
    print("| linkage | " + " | ".join(f"{n:,} points" for n in sizes) + " | design |")
    print("|" + " --- |" * (len(sizes) + 2))
    for linkage in LINKAGES:
        cells = []
        for n in sizes:
            x = np.random.default_rng(n).uniform(size=(n, 2))
            report = et.Hierarchy.random(x, linkage, goal="homogeneous", seed=n).refine()
            per = report.moves / n**2 if linkage == "single" else report.moves / n
            unit = "n²" if linkage == "single" else "n"
            cells.append(f"{per:.2f} {unit}, {report.seconds:.2f} s")
        print(f"| {linkage} | " + " | ".join(cells) + f" | {DESIGN[linkage]} |", flush=True)


def main() -> None:
    """Run all of it, or with --quick what takes half a minute."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="up to 2,000 points only")
    parser.add_argument("--most", type=int, default=20_000, help="the largest number of points")
    options = parser.parse_args()
    most = 2_000 if options.quick else options.most
    print(f"evertree {et.__version__}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.2f}")
    building([n for n in (1_000, 2_000, 10_000, 20_000) if n <= most], 10_000)
    moves_from_random_trees([100, 400, 800] if options.quick else [100, 400, 800, 1_600])
    print(f"\nload at the end {os.getloadavg()[0]:.2f}")


if __name__ == "__main__":
    main()
