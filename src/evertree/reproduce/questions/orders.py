"""How much the order of moves matters."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import numpy as np

from evertree.hierarchy import Hierarchy
from evertree.quality import cophenetic_correlation
from evertree.reproduce.markdown import table
from evertree.reproduce.records import Records
from evertree.reproduce.section5 import DATA, LINKAGES, draw
from evertree.reproduce.study import Case, Row, Settings, Study
from evertree.tree.ordered import ORDERS, homogenise_in_order

N = 500
REPETITIONS = 10

#: What was done, in words.
EXPLANATION = f"""\
The anytime procedure on {N} points from random trees, {REPETITIONS} repetitions; each order starts from the same
trees. *Last in first out* is what evertree does. *At random*: every violated check is as likely to be mended next.
*Bottom up*: the smallest cluster first. *Largest violation*: the move that saves most first, which has to check a
node when it begins to wait and again when it is its turn. Times are the best of all repetitions."""


def run(settings: Settings, case: Case) -> list[Row]:
    """The anytime procedure in some order from a random tree, the same for all orders."""
    data, linkage, order, repetition = str(case[0]), str(case[1]), str(case[2]), int(case[3])
    X, seed = draw(settings, data, N, repetition)
    h = Hierarchy.random(X, linkage, goal="homogeneous", seed=seed)
    rng = settings.rng("orders", *case)
    homogenise_in_order(h._live, order, rng, 0)  # to compile
    began = time.perf_counter()
    homogenise_in_order(h._live, order, rng)
    seconds = time.perf_counter() - began
    return [(h.n_moves, h._live.n_checks, seconds, cophenetic_correlation(h))]


def study() -> Study:
    """All orders and linkages on both kinds of data."""
    return Study(
        name="orders",
        title="Order of the moves",
        case_columns=("data", "linkage", "order", "repetition"),
        columns=("moves", "checks", "seconds", "correlation"),
        cases=[
            (data, linkage, order, repetition)
            for data in DATA
            for linkage in LINKAGES
            for order in ORDERS
            for repetition in range(REPETITIONS)
        ],
        run=run,
        is_timed=True,
    )


def answer(records: Records, folder: Path) -> str:  # noqa: ARG001
    """Compare moves, time and quality."""
    rows = []
    fewest, best, factors = Counter[str](), Counter[str](), []
    for data in DATA:
        for linkage in LINKAGES:
            means = {}
            for order in ORDERS:
                found = np.array([records[data, linkage, order, r][0] for r in range(REPETITIONS)], np.float64)
                moves, checks, _, correlation = found.mean(axis=0)
                means[order] = (moves, correlation)
                error = found[:, 3].std(ddof=1) / np.sqrt(REPETITIONS)
                rows.append(
                    (
                        data,
                        linkage,
                        order,
                        f"{moves:,.0f}",
                        f"{checks:,.0f}",
                        f"{1e3 * found[:, 2].min():.1f}",
                        f"{correlation:.3f} ± {error:.3f}",
                    )
                )
            counts = {order: mean[0] for order, mean in means.items()}
            fewest[min(counts, key=lambda order: counts[order])] += 1
            factors.append(max(counts.values()) / min(counts.values()))
            if linkage != "single":  # whose end does not depend on the order
                best[max(means, key=lambda order: means[order][1])] += 1
    headings = ("data", "linkage", "order", "moves", "checks", "best ms", "correlation")
    return "\n\n".join(
        [
            f"The worst order makes {min(factors):.1f} to {max(factors):.1f} times the moves of the best. Fewest "
            f"moves: {_ranking(fewest)}. Highest mean correlation, single linkage aside: {_ranking(best)}.",
            EXPLANATION,
            table(headings, rows),
        ]
    )


def _ranking(counts: Counter[str]) -> str:
    return ", ".join(f"{order} in {count} of {counts.total()} settings" for order, count in counts.most_common())
