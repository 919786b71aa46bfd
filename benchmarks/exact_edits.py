"""Edits, beside building the tree anew in the same run: of exact trees, of strings, and of large Ward trees.

Run it with ``make bench-pairs``, or ``python -m benchmarks.exact_edits --quick``. Three kinds of vectors in 16 columns:
letter, if it is there, thirty Gaussians, and a single one, the hard case: its tree is chaos. Names with typing errors,
compared by a function. Then what a first tree takes (`benchmarks.first_trees`). Nothing is asserted.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

import evertree as et
from benchmarks.datasets import FOLDER, load, missing
from benchmarks.first_trees import LINKAGES, agglomerating, fitting, gaussians, ward
from benchmarks.live_tree import headline, seconds

#: Points for edits, at most.
N_FRESH = 400

#: Edits of each kind of the first trees that are not counted: they load what the others use.
N_WARM = 5

PARTS = ("vectors", "names", "first", "refine")

SYLLABLES = "ka ri na to mi shu ber gen lin dor fal mon ste vik tor ya el is an bo ler ross win del pe cha"


def kinds_of_data(n: int) -> dict[str, NDArray[np.float64]]:
    """The data sets, each with this many points, or fewer if it has no more."""
    found = {}
    if missing("letter", FOLDER) is None:
        found["letter"] = load("letter", FOLDER, order=0)[0][:n]
    found["30 Gaussians"] = gaussians(n)
    found["1 Gaussian"] = np.random.default_rng(0).normal(size=(n, 16))
    return found


def rebuilding(x: NDArray[np.float64], linkage: str) -> float:
    """Seconds of batch clustering, the best of two: fastcluster's, or our own for minimax."""
    if linkage == "minimax":
        return min(seconds(lambda: et.agglomerate(x, linkage)) for _ in range(2))
    import fastcluster

    by_vectors = fastcluster.linkage_vector if linkage in ("ward", "single") else fastcluster.linkage
    return min(timed(library, x, linkage) for library in (by_vectors, fastcluster.linkage))


def timed(action: Callable[..., object], *args: object) -> float:
    """Seconds of a call."""
    began = time.perf_counter()
    action(*args)
    return time.perf_counter() - began


def edits(h: et.Hierarchy, fresh: Sequence[Any] | NDArray[Any], limit: float) -> list[NDArray[np.float64]]:
    """Seconds of each insertion, removal and update with its refinement, as many as `limit` seconds allow."""
    rng, taken = np.random.default_rng(1), ([], [], [])
    began = time.perf_counter()
    for k in range(0, len(fresh) - 1, 2):
        keys = h.keys()
        gone, changed = (keys[i] for i in rng.choice(len(keys), 2, replace=False))
        taken[0].append(timed(h.insert, fresh[k : k + 1]) + timed(h.refine))
        taken[1].append(timed(h.remove, [gone]) + timed(h.refine))
        taken[2].append(timed(h.update, [changed], fresh[k + 1 : k + 2]) + timed(h.refine))
        if time.perf_counter() - began > limit and k >= 6:
            break
    return [np.array(times) for times in taken]


def print_titles(batch: str) -> None:
    """The head of a table of edits."""
    print(f"Milliseconds, median and 95 %; and how many times cheaper than batch: {batch}.\n")
    print("| linkage | data | points | batch, s | insertion | removal | update | times cheaper |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")


def print_edits(linkage: str, name: str, n: int, batch: float, times: list[NDArray[np.float64]]) -> None:
    """A line of a table of edits."""
    median, worst = (np.quantile(np.concatenate(times), q) for q in (0.5, 0.95))
    cells = (f"{np.median(t) * 1e3:.2f}, {np.quantile(t, 0.95) * 1e3:.1f}" for t in times)
    print(
        f"| {linkage} | {name} | {n:,} | {batch:.2f} | {' | '.join(cells)} | "
        f"{batch / median:,.0f}, {batch / worst:,.0f} |",
        flush=True,
    )


def edits_of_vectors(sizes: list[int], linkages: Sequence[str], limit: float) -> None:
    """One edit of an exact tree of vectors."""
    headline("One edit with refinement to the exact tree")
    print_titles("the faster of fastcluster's functions, and our own for minimax")
    for n in sizes:
        for name, x in kinds_of_data(n + N_FRESH).items():
            for linkage in linkages:
                h = et.Hierarchy(linkage, search_width=None)
                h.insert(x[:-N_FRESH])
                times = edits(h, x[-N_FRESH:], limit)
                print_edits(linkage, name, len(x) - N_FRESH, rebuilding(x[:-N_FRESH], linkage), times)


def names(n: int, seed: int = 0) -> list[str]:
    """Names of three to six syllables: each is there about five times, with up to two typing errors."""
    rng = np.random.default_rng(seed)
    people = ["".join(rng.choice(SYLLABLES.split(), rng.integers(3, 7))) for _ in range(max(n // 5, 1))]
    return [misspelt(people[rng.integers(len(people))], rng, rng.integers(3)) for _ in range(n)]


def misspelt(word: str, rng: np.random.Generator, n_errors: int) -> str:
    """A word with letters that are left out, added or changed."""
    for _ in range(n_errors):
        i, letter = rng.integers(len(word)), "aeinrst"[rng.integers(7)]
        word = (word[:i] + word[i + 1 :], word[:i] + letter + word[i:], word[:i] + letter + word[i + 1 :])[
            rng.integers(3)
        ]
    return word


def edit_distance(one: str, other: str) -> int:
    """The least number of letters to leave out, to add and to change."""
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        before, row[0] = row[0], i
        for j, b in enumerate(other, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (a != b))
    return row[-1]


def encoded(words: list[str]) -> NDArray[np.float64]:
    """Words as vectors: their length, and the numbers of their letters."""
    table = np.zeros((len(words), 1 + max(map(len, words))))
    for row, word in zip(table, words, strict=True):
        row[0], row[1 : len(word) + 1] = len(word), [ord(letter) for letter in word]
    return table


def compiled() -> tuple[Callable[..., float], Callable[..., NDArray[np.float64]]]:
    """The edit distance of two encoded words, and that of all pairs, compiled by Numba."""
    import numba

    @numba.njit
    def distance(a, b):  # type: ignore[no-untyped-def]
        n, m = int(a[0]), int(b[0])
        row = np.arange(m + 1)
        for i in range(1, n + 1):
            before, row[0] = row[0], i
            for j in range(1, m + 1):
                best = min(row[j] + 1, row[j - 1] + 1, before + (a[i] != b[j]))
                before, row[j] = row[j], best
        return float(row[m])

    @numba.njit
    def all_pairs(table):  # type: ignore[no-untyped-def]
        n, k = len(table), 0
        found = np.empty(n * (n - 1) // 2)
        for i in range(n):
            for j in range(i + 1, n):
                found[k] = distance(table[i], table[j])
                k += 1
        return found

    all_pairs(encoded(["ab", "b"]))
    return distance, all_pairs


def all_pairs_in_python(words: list[str]) -> NDArray[np.float64]:
    """The edit distance of all pairs of words."""
    return np.array([edit_distance(one, other) for one, other in combinations(words, 2)], np.float64)


def edits_of_names(n_compiled: int, n_plain: int, limit: float) -> None:
    """One edit of an exact tree of names, by an edit distance that is compiled, and by one that is not."""
    import fastcluster

    headline("One edit with refinement to the exact tree, names by an edit distance")
    print("Fewer names for the function in plain Python, which takes seconds for all pairs of them.\n")
    print_titles("fastcluster's, and all pairs by the same function")
    distance, all_pairs = compiled()
    for name, n, metric, condensed in (
        ("compiled", n_compiled, distance, all_pairs),
        ("plain Python", n_plain, edit_distance, all_pairs_in_python),
    ):
        words: Any = names(n + N_FRESH)
        words = encoded(words) if metric is distance else words
        for linkage in ("average", "complete"):
            et.Hierarchy(linkage, metric, search_width=None).insert(words[:10])
            h = et.Hierarchy(linkage, metric, search_width=None)
            h.insert(words[:-N_FRESH])
            times = edits(h, words[-N_FRESH:], limit)
            batch = seconds(lambda x=words[:-N_FRESH], a=linkage, f=condensed: fastcluster.linkage(f(x), a))
            print_edits(linkage, f"names, {name}", n, batch, times)


def edit_of_ward(h: et.Hierarchy, limit: float) -> None:
    """One edit of an exact tree of Ward's linkage."""
    print("\nOne edit with refinement to the exact tree:\n")
    print_titles("the faster of fastcluster's functions")
    times = edits(h, gaussians(N_FRESH, seed=len(h)), limit)
    print_edits("ward", "30 Gaussians", len(h), rebuilding(h.points(), "ward"), times)


def refinement(h: et.Hierarchy) -> tuple[float, int]:
    """Microseconds of a refinement, and how many grafts it made."""
    began = time.perf_counter()
    report = h.refine()
    return (time.perf_counter() - began) * 1e6, report.grafts


def refining(sizes: list[int], n_edits: int, points_each: int | None) -> None:
    """The call of `refine` after a single edit of trees of growing size, by narrow searches.

    How much of a batch tree changes by one point grows with the number of points of a Gaussian, in which a tree is
    chaos.
    """
    kind = "30 Gaussians" if points_each is None else f"Gaussians of {points_each} points each"
    headline(f"Ward, search_width=4, 16 columns, {kind}: refine() after one insertion or removal, in µs")
    print(f"Median and 95 % of {n_edits} each, and the median number of grafts. The trees are refined before.\n")
    print("| points | after an insertion | grafts | after a removal | grafts |")
    print("| --- | --- | --- | --- | --- |")
    medians = []
    for n in sizes:
        h = et.Hierarchy("ward", search_width=4, n_jobs=-1)
        x = gaussians(n + n_edits, n_centers=30 if points_each is None else n // points_each)
        h.insert(x[:n])
        h.refine()
        h.n_jobs = None
        taken: tuple[list[tuple[float, int]], list[tuple[float, int]]] = ([], [])
        gone = np.random.default_rng(1).choice(n, n_edits, replace=False)
        for k, key in enumerate(gone.tolist()):
            h.insert(x[n + k : n + k + 1])
            taken[0].append(refinement(h))
            h.remove([key])
            taken[1].append(refinement(h))
        both = [np.array(some[N_WARM:]).T for some in taken]
        medians.append([np.median(times) for times, _ in both])
        cells = (f"{np.median(t):,.0f}, {np.quantile(t, 0.95):,.0f} | {np.median(grafts):.0f}" for t, grafts in both)
        print(f"| {n:,} | {' | '.join(cells)} |", flush=True)
    ratios = (f"{last / first:.2f}" for first, last in zip(medians[0], medians[-1], strict=True))
    print(f"| {sizes[-1]:,} / {sizes[0]:,} | {' | | '.join(ratios)} | |")


def main() -> None:
    """Run all of it, or with --quick what takes some minutes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer points")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="what to measure")
    parser.add_argument("--sizes", type=int, nargs="+", default=[2_000, 10_000, 20_000], help="numbers of vectors")
    parser.add_argument("--linkages", nargs="+", choices=LINKAGES, default=LINKAGES, help="for edits of vectors")
    parser.add_argument("--limit", type=float, default=20.0, help="seconds for the edits of a line")
    options = parser.parse_args()
    is_quick, limit = options.quick, options.limit
    print(f"evertree {et.__version__}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.2f}")
    if "vectors" in options.parts:
        edits_of_vectors([2_000] if is_quick else options.sizes, options.linkages, limit)
    if "names" in options.parts:
        edits_of_names(1_000 if is_quick else 5_000, 200 if is_quick else 1_000, limit)
    if "first" in options.parts:
        fitting([1_000] if is_quick else [3_000, 10_000])
        edit_of_ward(ward(2_000 if is_quick else 10_000), limit)
        agglomerating([(1_000, 384)] if is_quick else [(100_000, 16), (10_000, 384)])
    if "refine" in options.parts:
        for points_each in (None, 100):
            refining([10**4, 10**5] if is_quick else [10**4, 10**5, 10**6], 100 if is_quick else 500, points_each)
    print(f"\nload at the end {os.getloadavg()[0]:.2f}")


if __name__ == "__main__":
    main()
