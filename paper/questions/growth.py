"""How the number of moves grows far beyond the sizes of the paper."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertree.hierarchy import Hierarchy
from paper.fits import fit_log_growth, fit_power_law
from paper.output import COLOURS, MARKERS, markdown_image, markdown_table, new_figure
from paper.study import Case, Records, Row, Settings, Study

#: Linkages and metrics with sufficient statistics go on to 10⁵ points; those that compare pairs of points to 10³.
BY_MEANS = (("ward", "euclidean"), ("average", "sqeuclidean"))
BY_PAIRS = (("single", "euclidean"), ("complete", "euclidean"), ("average", "euclidean"), ("minimax", "euclidean"))
LARGE = (100, 316, 1_000, 3_162, 10_000, 31_623, 100_000)
SMALL = (100, 178, 316, 562, 1_000)
COLUMNS = (2, 16)
REPETITIONS = 5

#: What was done, in words.
EXPLANATION = f"""\
Uniform points of the unit cube, {REPETITIONS} repetitions. *Exponent*: of a power law for the number of moves.
*Fitted*: a line in log n for the moves of each point, and the share of the variance between sizes that it explains."""


def _sizes(linkage: str, metric: str) -> tuple[int, ...]:
    return LARGE if (linkage, metric) in BY_MEANS else SMALL


def run(settings: Settings, case: Case) -> list[Row]:
    """AHC from a random tree and IHC on uniform points of the unit cube: (method, moves)."""
    linkage, metric, columns, n, repetition = str(case[0]), str(case[1]), int(case[2]), int(case[3]), int(case[4])
    rng = settings.rng("growth", columns, n, repetition)
    X = rng.random((n, columns))
    ahc = Hierarchy.random(X, linkage, metric, goal="homogeneous", seed=int(rng.integers(2**31)))
    ahc.refine()
    ihc = Hierarchy(linkage, metric, goal="homogeneous")
    ihc.insert(X)
    return [("AHC", ahc.n_moves), ("IHC", ihc.n_moves)]


def study() -> Study:
    """All sizes, for both numbers of columns."""
    return Study(
        name="growth",
        title="Growth of the number of moves",
        case_columns=("linkage", "metric", "columns", "n", "repetition"),
        columns=("method", "moves"),
        cases=[
            (linkage, metric, columns, n, repetition)
            for linkage, metric in (*BY_PAIRS, *BY_MEANS)
            for columns in COLUMNS
            for n in _sizes(linkage, metric)
            for repetition in range(REPETITIONS)
        ],
        run=run,
    )


def _moves(records: Records, linkage: str, metric: str, columns: int, method: str) -> NDArray[np.float64]:
    """Counts in the shape (sizes, repetitions)."""

    def count(n: int, repetition: int) -> Any:
        return next(moves for name, moves in records[linkage, metric, columns, n, repetition] if name == method)

    return np.array([[count(n, r) for r in range(REPETITIONS)] for n in _sizes(linkage, metric)], np.float64)


def answer(records: Records, folder: Path) -> str:
    """Fit the growth of each method, linkage and number of columns, and draw it."""
    rows: list[tuple[object, ...]] = []
    exponents: dict[tuple[str, str], list[float]] = {}
    for linkage, metric in (*BY_MEANS, *BY_PAIRS):
        sizes = _sizes(linkage, metric)
        kind = "single linkage" if linkage == "single" else f"the other linkages up to {sizes[-1]:,} points"
        for columns in COLUMNS:
            for method in ("AHC", "IHC"):
                moves = _moves(records, linkage, metric, columns, method)
                law, line = fit_power_law(sizes, moves), fit_log_growth(sizes, moves)
                if law is not None:
                    exponents.setdefault((method, kind), []).append(law.exponent)
                first, last = moves.mean(axis=1)[[0, -1]] / np.array(sizes)[[0, -1]]
                each = (f"{first:.2f}", f"{last:.2f} ({sizes[-1]:,})")
                rows.append((f"{linkage}, {metric}", columns, method, *each, law or "", line, f"{line.explained:.3f}"))
    _draw(records, folder / "growth.png")
    ranges = [
        f"{min(found):.2f} to {max(found):.2f} for {method} with {kind}" for (method, kind), found in exponents.items()
    ]
    each = (f"moves a point, n = {LARGE[0]}", "at the largest n")
    headings = ("linkage, metric", "columns", "method", *each, "exponent", "moves a point, fitted", "explained")
    return "\n\n".join(
        [
            f"The exponent of the number of moves is {', '.join(ranges)}.",
            EXPLANATION,
            markdown_table(headings, rows),
            markdown_image("growth.png", "Moves for each point against the number of points"),
        ]
    )


def _draw(records: Records, path: Path) -> None:
    figure, panels = new_figure(2, "Moves for each point, 2 columns (solid) and 16 (dashed)")
    for panel, method in zip(panels, ("AHC", "IHC"), strict=True):
        for linkage, metric in (*BY_MEANS, *BY_PAIRS):
            sizes = np.array(_sizes(linkage, metric))
            for columns, style in zip(COLUMNS, ("-", "--"), strict=True):
                mean = _moves(records, linkage, metric, columns, method).mean(axis=1)
                label = f"{linkage}, {metric}" if columns == COLUMNS[0] else None
                face = "white" if metric == "sqeuclidean" else COLOURS[linkage]
                panel.plot(
                    sizes,
                    mean / sizes,
                    style,
                    color=COLOURS[linkage],
                    marker=MARKERS[linkage],
                    ms=4,
                    mfc=face,
                    label=label,
                )
        panel.set(title=method, xlabel="number of points", xscale="log", yscale="log")
    panels[0].set_ylabel("moves for each point")
    panels[0].legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=110)
