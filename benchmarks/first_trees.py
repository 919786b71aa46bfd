"""Seconds to a first tree, beside batch clustering by other libraries in the same run: a part of `exact_edits`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

import evertree as et
from benchmarks.live_tree import headline, seconds

LINKAGES = ("single", "average", "complete", "minimax", "ward")


def gaussians(n: int, n_columns: int = 16, seed: int = 0, n_centers: int = 30) -> NDArray[np.float64]:
    """A mixture of Gaussians, by default of thirty."""
    rng = np.random.default_rng(seed)
    centers = 5 * rng.normal(size=(n_centers, n_columns))
    return centers[rng.integers(n_centers, size=n)] + rng.normal(size=(n, n_columns))


def best_of_two(action: Callable[..., object], *args: object) -> float:
    """Seconds of a call, the best of two."""
    return min(seconds(lambda: action(*args)) for _ in range(2))


def fitting(sizes: list[int]) -> None:
    """The estimator and scikit-learn's, which has no minimax linkage."""
    from sklearn.cluster import AgglomerativeClustering

    headline("AnytimeClustering.fit beside AgglomerativeClustering.fit, 30 Gaussians in 16 columns, best of two, in s")
    print("| linkage | points | evertree | scikit-learn | ratio |")
    print("| --- | --- | --- | --- | --- |")
    for linkage in LINKAGES:
        ours = et.AnytimeClustering(10, linkage=linkage)
        ours.fit(gaussians(50))
        for n in sizes:
            x = gaussians(n, seed=n)
            here = best_of_two(ours.fit, x)
            if linkage == "minimax":
                print(f"| {linkage} | {n:,} | {here:.2f} | | |", flush=True)
                continue
            there = best_of_two(AgglomerativeClustering(10, linkage=linkage).fit, x)
            print(f"| {linkage} | {n:,} | {here:.2f} | {there:.2f} | {here / there:.2f} |", flush=True)


def refined(x: NDArray[np.float64], search_width: int | None) -> et.Hierarchy:
    """A Ward tree, with nothing left to refine."""
    h = et.Hierarchy("ward", search_width=search_width)
    h.insert(x)
    h.refine()
    return h


def ward(n: int) -> et.Hierarchy:
    """Seconds to a refined tree, by exhaustive searches and by narrow ones; the exact tree."""
    headline(f"Ward, {n:,} x 16, 30 Gaussians: insertion of all points and refinement, best of two, in s")
    x = gaussians(n, seed=n)
    print("| search_width | evertree |")
    print("| --- | --- |")
    for width in (4, None):
        refined(x[:50], width)
        print(f"| {width} | {best_of_two(refined, x, width):.2f} |", flush=True)
    return refined(x, None)


def distances(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Euclidean distances by a matrix product, condensed: fast in many columns."""
    x = x - x.mean(axis=0)
    squares = np.einsum("ij,ij->i", x, x)
    between = x @ x.T
    between *= -2
    between += squares[:, None]
    between += squares
    np.sqrt(np.maximum(between, 0, out=between), out=between)
    return np.concatenate([between[i, i + 1 :] for i in range(len(x) - 1)])


def agglomerating(shapes: list[tuple[int, int]]) -> None:
    """Batch trees of Ward in few columns, where fastcluster needs no matrix, and in many."""
    import fastcluster

    headline("Ward, batch: et.agglomerate by one thread beside fastcluster, 30 Gaussians, in s")
    print(
        "In 16 columns, that is linkage_vector; in more, linkage with the distances, by a matrix product, included.\n"
    )
    print("| points | columns | evertree | fastcluster | ratio |")
    print("| --- | --- | --- | --- | --- |")
    et.agglomerate(gaussians(50))
    for n, n_columns in shapes:
        x = gaussians(n, n_columns)
        ours = seconds(lambda x=x: et.agglomerate(x))
        if n_columns <= 16:
            theirs = seconds(lambda x=x: fastcluster.linkage_vector(x, "ward"))
        else:
            theirs = seconds(lambda x=x: fastcluster.linkage(distances(x), "ward", preserve_input=False))
        print(f"| {n:,} | {n_columns} | {ours:.2f} | {theirs:.2f} | {ours / theirs:.2f} |", flush=True)
