"""The statements of the paper's section 5.3, each set beside what was found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evertree.reproduce.fits import fit_power_law
from evertree.reproduce.markdown import table
from evertree.reproduce.section5 import DATA, LINKAGES, SIZES, Results

#: The exponent of growth is fitted to sizes from this one on: below it, constants decide.
FIRST_FITTED = 20

#: A growth is taken for linear, or quadratic, if its exponent is as near to 1, or 2.
NEAR_EXPONENT = 0.25

#: A mean correlation is as good as another if it is lower by no more than this.
AS_GOOD = 0.02

#: Correlations that differ by no more are the same: rounding.
SAME = 1e-9

OTHERS = tuple(linkage for linkage in LINKAGES if linkage != "single")


@dataclass(frozen=True)
class Finding:
    """In how many cases a statement holds, and what was found in each."""

    holds: int
    cases: int
    details: str  # a table

    @property
    def verdict(self) -> str:
        """In words."""
        if self.holds == self.cases:
            return f"holds in all {self.cases} cases"
        return f"holds in {self.holds} of {self.cases} cases" if self.holds else f"holds in none of {self.cases} cases"


@dataclass(frozen=True)
class Statement:
    """What the paper says, what counts as agreement, and how to look for it."""

    claim: str
    criterion: str
    find: Callable[[Results], Finding]


def _mean(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return values.mean(axis=1)


def _finding(columns: tuple[str, ...], rows: list[tuple[object, ...]]) -> Finding:
    """A finding from rows whose last entry says whether the statement holds there."""
    shown = [(*row[:-1], "yes" if row[-1] else "**no**") for row in rows]
    return Finding(sum(bool(row[-1]) for row in rows), len(rows), table((*columns, "holds"), shown))


def _ratio_of_iterations(results: Results) -> Finding:
    rows: list[tuple[object, ...]] = []
    for data in DATA:
        for linkage in LINKAGES:
            ahc, ihc = (_mean(results.moves[data, linkage, method]) for method in ("AHC", "IHC"))
            ratio = ahc / np.maximum(ihc, 1 / results.repetitions)
            last = ratio[-1]
            holds = 0.5 <= np.log10(last) <= 1.5
            rows.append(
                (
                    data,
                    linkage,
                    f"{ahc[-1]:.0f}",
                    f"{ihc[-1]:.1f}",
                    f"{last:.1f}",
                    f"{ratio[1:].min():.1f} to {ratio[1:].max():.1f}",
                    holds,
                )
            )
    return _finding(("data", "linkage", "AHC at n = 100", "IHC at n = 100", "ratio", f"ratio, n ≥ {SIZES[1]}"), rows)


def _growth(results: Results, linkages: tuple[str, ...], wanted: float) -> Finding:
    rows: list[tuple[object, ...]] = []
    first = SIZES.index(FIRST_FITTED)
    for data in DATA:
        for linkage in linkages:
            for method in ("AHC", "IHC"):
                moves = results.moves[data, linkage, method]
                law = fit_power_law(SIZES[first:], np.maximum(moves[first:], 1e-9))
                rows.append(
                    (
                        data,
                        linkage,
                        method,
                        str(law),
                        f"{_mean(moves)[-1]:.0f}",
                        abs(law.exponent - wanted) <= NEAR_EXPONENT,
                    )
                )
    return _finding(("data", "linkage", "method", "exponent", "iterations at n = 100"), rows)


def _single_is_the_same(results: Results) -> Finding:
    rows: list[tuple[object, ...]] = []
    for data in DATA:
        for method in ("AHC", "IHC"):
            difference = np.abs(
                results.correlation[data, "single", method] - results.correlation[data, "single", "HAC"]
            )
            rows.append((data, method, f"{difference.max():.1e}", difference.size, difference.max() <= SAME))
    return _finding(("data", "method", "largest difference from HAC", "runs"), rows)


def _differences(
    results: Results,
    linkages: tuple[str, ...],
    pairs: tuple[tuple[str, str], ...],
    holds: Callable[[float, float], bool],
) -> Finding:
    """Compare the correlations of two methods, run by run, at the largest size."""
    rows: list[tuple[object, ...]] = []
    for data in DATA:
        for linkage in linkages:
            for method, other in pairs:
                ours, theirs = (results.correlation[data, linkage, name][-1] for name in (method, other))
                difference, error = _with_error(ours - theirs)
                rows.append(
                    (
                        data,
                        linkage,
                        method,
                        f"{ours.mean():.3f}",
                        other,
                        f"{theirs.mean():.3f}",
                        f"{difference:+.3f} ± {error:.3f}",
                        holds(difference, error),
                    )
                )
    return _finding(("data", "linkage", "method", "correlation", "beside", "correlation", "difference"), rows)


def _with_error(values: NDArray[np.float64]) -> tuple[float, float]:
    """The mean and its standard error, which is infinite for a single value."""
    n = values.size
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(n)) if n > 1 else float("inf")


def _mnist_is_higher(results: Results) -> Finding:
    rows: list[tuple[object, ...]] = []
    for linkage in LINKAGES:
        for method in ("HAC", "AHC", "IHC"):
            mnist, uniform = (results.correlation[data, linkage, method][-1] for data in ("mnist", "uniform"))
            rows.append(
                (linkage, method, f"{uniform.mean():.3f}", f"{mnist.mean():.3f}", mnist.mean() > uniform.mean())
            )
    return _finding(("linkage", "method", "uniform", "MNIST"), rows)


ANYTIME = (("AHC", "HAC"), ("IHC", "HAC"))

STATEMENTS = (
    Statement(
        "Incremental clustering (IHC) needs about an order of magnitude fewer iterations than anytime clustering from "
        "a random tree (AHC), whatever the linkage and the size.",
        "the ratio of mean iterations at n = 100 is nearer to 10 than to 1 or 100 on a logarithmic scale (3.2 to 32)",
        _ratio_of_iterations,
    ),
    Statement(
        "For single linkage the number of iterations appears to grow quadratically.",
        f"the exponent of a power law, fitted for n ≥ {FIRST_FITTED}, is within {NEAR_EXPONENT} of 2",
        lambda results: _growth(results, ("single",), 2.0),
    ),
    Statement(
        "For the other linkages it grows differently, not inconsistently with linear growth.",
        f"the exponent of a power law, fitted for n ≥ {FIRST_FITTED}, is within {NEAR_EXPONENT} of 1",
        lambda results: _growth(results, OTHERS, 1.0),
    ),
    Statement(
        "With single linkage all three methods give the same correlation, as the paper's Theorem 1 demands.",
        f"in every single run the correlations differ by no more than {SAME:g}",
        _single_is_the_same,
    ),
    Statement(
        "With complete and minimax linkage, AHC and IHC perform relatively poorly beside batch clustering (HAC).",
        "the mean correlation at n = 100 is lower, by more than two standard errors",
        lambda results: _differences(results, ("complete", "minimax"), ANYTIME, lambda mean, error: mean < -2 * error),
    ),
    Statement(
        "With average linkage and Ward's, AHC and IHC perform as well as HAC.",
        f"the mean correlation at n = 100 is lower by at most {AS_GOOD}",
        lambda results: _differences(results, ("average", "ward"), ANYTIME, lambda mean, _: mean >= -AS_GOOD),
    ),
    Statement(
        "IHC generally performs better than AHC (with single linkage they are the same).",
        "the mean correlation at n = 100 is higher, by more than two standard errors",
        lambda results: _differences(results, OTHERS, (("IHC", "AHC"),), lambda mean, error: mean > 2 * error),
    ),
    Statement(
        "All methods do better on the real data than on the synthetic ones.",
        "the mean correlation at n = 100 is higher",
        _mnist_is_higher,
    ),
)
