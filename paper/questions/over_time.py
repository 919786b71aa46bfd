"""Quality against time: homogeneous and stable refinement from a random tree, beside batch clustering."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import scipy.cluster.hierarchy
from numpy.typing import NDArray

from evertree.hierarchy import Hierarchy
from paper.output import markdown_image, markdown_table, new_figure
from paper.questions.insertion_orders import N, measures, points
from paper.section5 import DATA
from paper.study import Case, Records, Row, Settings, Study

GOALS = ("homogeneous", "stable")
BATCH = "batch"
REPETITIONS = 3

#: Moves, for each point, up to the first look at the tree, and how much longer each following stretch is.
FIRST_STRETCH = 0.1
LONGER = 1.25

#: What was done, in words.
EXPLANATION = f"""\
Ward linkage, {N:,} points, {REPETITIONS} random trees, which are given: the time is that of refinement, without the
measures. The star is batch clustering by SciPy, with the time of its distances."""


def run(settings: Settings, case: Case) -> list[Row]:
    """Refine in stretches, and look at the tree after each: (seconds, moves, grafts, correlation, value, purity)."""
    data, goal, repetition = str(case[0]), str(case[1]), int(case[2])
    X, classes = points(settings, data)
    if goal == BATCH:
        began = time.perf_counter()
        Z = scipy.cluster.hierarchy.linkage(X, "ward")
        seconds = time.perf_counter() - began
        return [(seconds, 0, 0, *measures(Hierarchy.from_linkage(Z, X), classes))]
    h = Hierarchy.random(X, goal=goal, seed=int(settings.rng("over time", repetition).integers(2**31)))
    h.copy().refine(moves=1)  # to compile
    seconds, stretch = 0.0, FIRST_STRETCH * len(X)
    found: list[Row] = [(seconds, 0, 0, *measures(h, classes))]
    is_done = False
    while not is_done:
        report = h.refine(moves=int(stretch))
        seconds += report.seconds
        stretch *= LONGER
        is_done = report.stopped_by != "moves"
        found.append((seconds, h.n_moves, h.n_grafts, *measures(h, classes)))
    return found


def study() -> Study:
    """Both goals and the batch tree, on both kinds of data."""
    return Study(
        name="over_time",
        title="Quality against time",
        case_columns=("data", "goal", "repetition"),
        columns=("seconds", "moves", "grafts", "correlation", "tree_value", "purity"),
        cases=[(data, goal, r) for data in DATA for goal in (BATCH, *GOALS) for r in range(REPETITIONS)],
        run=run,
        is_timed=True,
    )


def answer(records: Records, folder: Path) -> str:
    """The curves, and where they end."""
    rows: list[tuple[str, ...]] = []
    words = []
    for data in DATA:
        batch = _ends(records, data, BATCH)
        rows.append((data, BATCH, f"{1e3 * batch[0]:.0f}", "", "", "1", f"{batch[5]:.3f}"))
        for goal in GOALS:
            seconds, moves, grafts, _, value, purity = _ends(records, data, goal)
            value /= batch[4]
            cells = (f"{1e3 * seconds:.0f}", f"{moves:,.0f}", f"{grafts:,.0f}", f"{value:.4f}", f"{purity:.3f}")
            rows.append((data, goal, *cells))
            words.append(f"{data}, {goal}: {value:.3f} of the batch tree value, and {purity - batch[5]:+.3f} in purity")
    _draw(records, folder / "over_time.png")
    headings = ("data", "tree", "ms to the end", "moves", "grafts", "tree value / batch", "purity")
    return "\n\n".join(
        [
            f"Beside batch clustering, refinement ends at: {'; '.join(words)}.",
            EXPLANATION,
            markdown_table(headings, rows),
            markdown_image("over_time.png", "Tree value and purity against time"),
        ]
    )


def _ends(records: Records, data: str, goal: str) -> NDArray[np.float64]:
    """The last row of each repetition: their mean."""
    return np.array([records[data, goal, r][-1] for r in range(REPETITIONS)], np.float64).mean(axis=0)


def _draw(records: Records, path: Path) -> None:
    figure, panels = new_figure(2 * len(DATA), f"Ward, {N:,} points: from a random tree")
    for k, data in enumerate(DATA):
        batch = _ends(records, data, BATCH)
        pair = panels[2 * k : 2 * k + 2]
        for goal, colour in zip(GOALS, ("#d55e00", "#0072b2"), strict=True):
            for r in range(REPETITIONS):
                curve = np.array(records[data, goal, r], np.float64)[1:]
                for panel, values in zip(pair, (curve[:, 4] / batch[4], curve[:, 5]), strict=True):
                    panel.plot(1e3 * curve[:, 0], values, color=colour, lw=1.2, label=goal if r == 0 else None)
        for panel, level, name in zip(pair, (1.0, batch[5]), ("tree value / batch", "purity"), strict=True):
            panel.plot(1e3 * batch[0], level, "k*", ms=9, label="batch", ls="none")
            panel.set(title=f"{data}: {name}", xlabel="milliseconds", xscale="log")
    panels[0].legend(frameon=False)
    figure.savefig(path, dpi=110)
