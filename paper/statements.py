"""The statements of the paper's section 5.3, each set beside what was found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from paper.fits import fit_power_law, with_error
from paper.output import markdown_table
from paper.section5 import DATA, LINKAGES, SIZES, Results

#: Growth is judged on the upper half of the sizes: logarithmic axes show a curve, and below constants decide.
UPPER_HALF = slice(len(SIZES) // 2 - 1, None)

#: A growth is taken for linear, or quadratic, if its exponent is as near to 1, or 2.
NEAR_EXPONENT = 0.25

#: A mean correlation is poor beside another if it is lower by more than this, and otherwise as good.
POOR = 0.02

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


class _Rows:
    """A table that grows, and in how many cases of each row a statement holds."""

    def __init__(self, *columns: str) -> None:
        self._columns = columns
        self._rows: list[tuple[object, ...]] = []
        self._holds, self._cases = 0, 0

    def add(self, *cells: object, holds: list[bool]) -> None:
        self._holds += sum(holds)
        self._cases += len(holds)
        if len(holds) > 1:
            shown = f"at {sum(holds)} of {len(holds)} sizes"
        else:
            shown = ("yes" if holds[0] else "no") if holds else "not judged"
        self._rows.append((*cells, shown if all(holds) else f"**{shown}**"))

    def finding(self) -> Finding:
        return Finding(self._holds, self._cases, markdown_table((*self._columns, "holds"), self._rows))


def _ratio_of_iterations(results: Results) -> Finding:
    rows = _Rows(
        "data", "linkage", "AHC, largest n", "IHC, largest n", "ratio, smallest n", "largest n", "least", "most"
    )
    for data in DATA:
        for linkage in LINKAGES:
            ahc, ihc = (results.moves[data, linkage, method].mean(axis=1) for method in ("AHC", "IHC"))
            ratio = ahc[ihc > 0] / ihc[ihc > 0]  # where IHC never moved there is none
            holds = [bool(0.5 <= np.log10(value) <= 1.5) for value in ratio]
            shown = (f"{f(ratio):.1f}" if ratio.size else "" for f in (lambda r: r[0], lambda r: r[-1], np.min, np.max))
            rows.add(data, linkage, f"{ahc[-1]:.0f}", f"{ihc[-1]:.1f}", *shown, holds=holds)
    return rows.finding()


def _growth(results: Results, linkages: tuple[str, ...], holds: Callable[[float], bool]) -> Finding:
    upper = f"n ≥ {SIZES[UPPER_HALF][0]}"
    rows = _Rows("data", "linkage", "method", "iterations, largest n", f"exponent, n ≤ {SIZES[UPPER_HALF][0]}", upper)
    for data in DATA:
        for linkage in linkages:
            for method in ("AHC", "IHC"):
                moves = results.moves[data, linkage, method]
                lower = fit_power_law(SIZES[: UPPER_HALF.start + 1], moves[: UPPER_HALF.start + 1])
                law = fit_power_law(SIZES[UPPER_HALF], moves[UPPER_HALF])
                judged = [] if law is None else [holds(law.exponent)]
                rows.add(data, linkage, method, f"{moves[-1].mean():.0f}", lower or "", law or "", holds=judged)
    return rows.finding()


def _single_is_the_same(results: Results) -> Finding:
    rows = _Rows("data", "method", "runs", "largest difference from HAC")
    for data in DATA:
        for method in ("AHC", "IHC"):
            found, batch = (results.correlation[data, "single", name] for name in (method, "HAC"))
            difference = np.abs(found - batch)
            rows.add(data, method, difference.size, f"{difference.max():.1e}", holds=[bool(difference.max() <= SAME)])
    return rows.finding()


def _differences(
    results: Results,
    linkages: tuple[str, ...],
    pairs: tuple[tuple[str, str], ...],
    holds: Callable[[float, float], bool],
) -> Finding:
    """Compare the correlations of two methods, run by run, at a size."""
    rows = _Rows("data", "linkage", "method", "correlation, largest n", "beside", "correlation", "difference")
    for data in DATA:
        for linkage in linkages:
            for method, other in pairs:
                ours, theirs = (results.correlation[data, linkage, name] for name in (method, other))
                found = [with_error(difference) for difference in ours - theirs]
                shown = f"{found[-1][0]:+.3f} ± {found[-1][1]:.3f}"
                judged = [holds(mean, error) for mean, error in found]
                rows.add(
                    *(data, linkage, method, f"{ours[-1].mean():.3f}", other, f"{theirs[-1].mean():.3f}", shown),
                    holds=judged,
                )
    return rows.finding()


def _mnist_is_higher(results: Results) -> Finding:
    rows = _Rows("linkage", "method", "uniform, largest n", "MNIST", "difference")
    for linkage in LINKAGES:
        for method in ("HAC", "AHC", "IHC"):
            pairs = list(
                zip(*(results.correlation[data, linkage, method] for data in ("mnist", "uniform")), strict=True)
            )
            found = [_difference(mnist, uniform) for mnist, uniform in pairs]
            mnist, uniform = pairs[-1]
            shown = f"{found[-1][0]:+.3f} ± {found[-1][1]:.3f}"
            judged = [_is_higher(mean, error) for mean, error in found]
            rows.add(linkage, method, f"{uniform.mean():.3f}", f"{mnist.mean():.3f}", shown, holds=judged)
    return rows.finding()


def _difference(a: NDArray[np.float64], b: NDArray[np.float64]) -> tuple[float, float]:
    """The difference between two means of independent runs, and its standard error."""
    (mean_a, error_a), (mean_b, error_b) = with_error(a), with_error(b)
    return mean_a - mean_b, float(np.hypot(error_a, error_b))


def _is_higher(mean: float, error: float) -> bool:
    return mean > 2 * error


ANYTIME = (("AHC", "HAC"), ("IHC", "HAC"))

STATEMENTS = (
    Statement(
        "Incremental clustering (IHC) needs about an order of magnitude fewer iterations than anytime clustering from "
        "a random tree (AHC), whatever the linkage and the size.",
        "the ratio of mean iterations is nearer to 10 than to 1 or 100 on a logarithmic scale (3.2 to 32), at a size",
        _ratio_of_iterations,
    ),
    Statement(
        "For single linkage the number of iterations appears to grow quadratically.",
        f"the exponent of a power law for n ≥ {SIZES[UPPER_HALF][0]} is within {NEAR_EXPONENT} of 2",
        lambda results: _growth(results, ("single",), lambda exponent: abs(exponent - 2) <= NEAR_EXPONENT),
    ),
    Statement(
        "For the other linkages it grows differently, not quadratically.",
        f"the exponent of a power law for n ≥ {SIZES[UPPER_HALF][0]} is below {2 - NEAR_EXPONENT}",
        lambda results: _growth(results, OTHERS, lambda exponent: exponent < 2 - NEAR_EXPONENT),
    ),
    Statement(
        "For the other linkages the numbers are not inconsistent with linear growth.",
        f"the exponent of a power law for n ≥ {SIZES[UPPER_HALF][0]} is within {NEAR_EXPONENT} of 1",
        lambda results: _growth(results, OTHERS, lambda exponent: abs(exponent - 1) <= NEAR_EXPONENT),
    ),
    Statement(
        "With single linkage all three methods give the same correlation, as the paper's Theorem 1 demands.",
        f"in every single run the correlations differ by no more than {SAME:g}",
        _single_is_the_same,
    ),
    Statement(
        "With complete and minimax linkage, AHC and IHC perform relatively poorly beside batch clustering (HAC).",
        f"the mean correlation is lower by more than {POOR}, at a size",
        lambda results: _differences(results, ("complete", "minimax"), ANYTIME, lambda mean, _: mean < -POOR),
    ),
    Statement(
        "With average linkage and Ward's, AHC and IHC perform as well as HAC.",
        f"the mean correlation is not lower by more than {POOR}, at a size",
        lambda results: _differences(results, ("average", "ward"), ANYTIME, lambda mean, _: mean >= -POOR),
    ),
    Statement(
        "IHC generally performs better than AHC (with single linkage they are the same).",
        "the mean correlation is higher by more than two standard errors, at a size",
        lambda results: _differences(results, OTHERS, (("IHC", "AHC"),), _is_higher),
    ),
    Statement(
        "All methods do better on the real data than on the synthetic ones.",
        "the mean correlation is higher by more than two standard errors, at a size",
        _mnist_is_higher,
    ),
)
