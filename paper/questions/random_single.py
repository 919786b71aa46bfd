"""A randomized anytime single linkage: violated checks are mended in random order."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist, squareform

from evertree.hierarchy import Hierarchy
from evertree.quality import total_linkage
from paper.fits import fit_power_law
from paper.move_order import ORDERS, homogenise_in_order
from paper.output import markdown_image, markdown_table, new_figure
from paper.section5 import DATA, correlation, draw
from paper.study import Case, Records, Row, Settings, Study

SIZES = (20, 40, 80, 160, 320)
REPETITIONS = 30

#: The tree is looked at each time that so many moves have been made, as a share of n².
EVERY = 0.01

RANDOM, OURS = "at random", "last in first out"

#: What was done, in words.
EXPLANATION = f"""\
Single linkage from random trees, {REPETITIONS} repetitions: the mean number of moves until the tree is the batch tree
(Theorem 1: whatever the order). *At random* mends a check chosen uniformly from all that are violated at that moment:
one reading of the randomized algorithm that the paper's conclusion hopes for."""


def run(settings: Settings, case: Case) -> list[Row]:
    """Single linkage from a random tree in some order: (moves, total linkage, correlation) now and then."""
    data, n, order, repetition = str(case[0]), int(case[1]), str(case[2]), int(case[3])
    X, seed = draw(settings, data, n, repetition)
    h = Hierarchy.random(squareform(pdist(X)), "single", "precomputed", goal="homogeneous", seed=seed)
    rng = settings.rng("random single", *case)
    stretch = max(1, round(EVERY * n * n))
    found: list[Row] = [(0, total_linkage(h), correlation(h))]
    while h.state.live.n_pending:
        homogenise_in_order(h.state.live, order, rng, stretch)
        found.append((h.n_moves, total_linkage(h), correlation(h)))
    return found


def study() -> Study:
    """All orders, so that the random one can be set beside the others."""
    return Study(
        name="random_single",
        title="Randomized single linkage",
        case_columns=("data", "n", "order", "repetition"),
        columns=("moves", "total_linkage", "correlation"),
        cases=[(data, n, order, r) for data in DATA for n in SIZES for order in ORDERS for r in range(REPETITIONS)],
        run=run,
    )


def _curves(records: Records, data: str, n: int, order: str) -> NDArray[np.float64]:
    """Excess of the total linkage over its end, and correlation, by stretch, mean over repetitions: shape (k, 2)."""
    runs = [np.array(records[data, n, order, r], np.float64) for r in range(REPETITIONS)]
    longest = max(len(found) for found in runs)
    padded = [np.concatenate([found, np.repeat(found[-1:], longest - len(found), axis=0)]) for found in runs]
    excess = [found[:, 1] / found[-1, 1] - 1 for found in padded]
    return np.column_stack([np.mean(excess, axis=0), np.mean([found[:, 2] for found in padded], axis=0)])


def answer(records: Records, folder: Path) -> str:
    """Moves to the end by order, with fitted growth, and quality over the moves of the random order."""
    rows: list[tuple[str, ...]] = []
    words = []
    for data in DATA:
        for order in ORDERS:
            ends = [[records[data, n, order, r][-1][0] for r in range(REPETITIONS)] for n in SIZES]
            moves = np.array(ends, np.float64)
            law = fit_power_law(SIZES, moves)
            fit = "" if law is None else f"{law.factor:.2f} · n^{law.exponent:.2f}"
            means = (f"{mean:,.0f}" for mean in moves.mean(axis=1))
            rows.append(
                (data, order, *means, f"± {moves[-1].std(ddof=1):,.0f}", fit, "" if law is None else f"{law.error:.2f}")
            )
            if order in (RANDOM, OURS):
                words.append(f"{fit} ({data}, {order})")
    _draw(records, folder / "random_single.png")
    sizes = (f"n = {n}" for n in SIZES)
    headings = ("data", "order", *sizes, f"deviation, n = {SIZES[-1]}", "fit", "error of exponent")
    return "\n\n".join(
        [
            f"The mean number of moves grows like {', '.join(words)}.",
            EXPLANATION,
            markdown_table(headings, rows),
            markdown_image("random_single.png", "Excess of the total linkage and correlation over the moves"),
        ]
    )


def _draw(records: Records, path: Path) -> None:
    n = SIZES[-1]
    figure, panels = new_figure(2 * len(DATA), f"Single linkage over its moves, n = {n}")
    for k, data in enumerate(DATA):
        for order in ORDERS:
            curves = _curves(records, data, n, order)
            share = EVERY * np.arange(len(curves))
            is_random = order == RANDOM
            style = {"color": "#0072b2", "lw": 2.2, "zorder": 3} if is_random else {"lw": 1.0, "color": None}
            for panel, values in zip(panels[2 * k : 2 * k + 2], curves.T, strict=True):
                panel.plot(share, values, label=order, **style)
        panels[2 * k].set(title=f"{data}: excess of total linkage", xlabel="moves / n²")
        panels[2 * k + 1].set(title=f"{data}: cophenetic correlation", xlabel="moves / n²")
    panels[0].legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=110)
