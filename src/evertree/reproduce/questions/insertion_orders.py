"""How much the order of insertion matters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertree.batch import agglomerate
from evertree.hierarchy import Hierarchy
from evertree.quality import cophenetic_correlation, dendrogram_purity, tree_value
from evertree.reproduce import mnist
from evertree.reproduce.markdown import table
from evertree.reproduce.records import Records
from evertree.reproduce.section5 import DATA
from evertree.reproduce.study import Case, Row, Settings, Study

SCHEMES = (("ward", "euclidean"), ("average", "sqeuclidean"))
N = 2_000
ORDERS = 20

#: The case of the batch tree, which does not depend on the order.
BATCH = -1
STAGES = ("homogeneous", "stable, inserted", "stable, refined")

#: What was done, in words.
EXPLANATION = f"""\
The same {N:,} points inserted in {ORDERS} random orders: mean ± standard deviation over the orders. *Homogeneous* is
the paper's IHC; *stable* is evertree's default, by insertion alone and after `refine()`. The tree value is the
objective of Cohen-Addad and others. Purity is that of digits, or for uniform points of the quarters of the square."""


def points(settings: Settings, data: str) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The same points for every order, and their classes: those of digits, or quarters of the unit square."""
    rng = settings.rng("points", data)
    if data == "uniform":
        X = rng.random((N, 2))
        return X, (2 * (X[:, 0] > 0.5) + (X[:, 1] > 0.5)).astype(np.int64)
    whole = mnist.load(settings.mnist)
    rows = rng.permutation(len(whole))[:N]
    return whole.images[rows] / 255.0, whole.digits[rows].astype(np.int64)


def measures(h: Hierarchy, classes: NDArray[np.int64]) -> tuple[float, float, float]:
    """What is reported of a tree."""
    return cophenetic_correlation(h), tree_value(h), dendrogram_purity(h, classes)


def run(settings: Settings, case: Case) -> list[Row]:
    """Insert the points in some order with both goals: (stage, moves, correlation, value, purity)."""
    data, linkage, metric, order = str(case[0]), str(case[1]), str(case[2]), int(case[3])
    X, classes = points(settings, data)
    if order == BATCH:
        return [("batch", 0, *measures(agglomerate(X, linkage, metric), classes))]
    rows = settings.rng("insertion order", order).permutation(len(X))
    X, classes = X[rows], classes[rows]
    found: list[Row] = []
    h = Hierarchy(linkage, metric, goal="homogeneous")
    h.insert(X)
    found.append((STAGES[0], h.n_moves, *measures(h, classes)))
    h = Hierarchy(linkage, metric)
    h.insert(X)
    found.append((STAGES[1], h.n_moves + h.n_grafts, *measures(h, classes)))
    h.refine()
    found.append((STAGES[2], h.n_moves + h.n_grafts, *measures(h, classes)))
    return found


def study() -> Study:
    """All orders, and the batch tree."""
    return Study(
        name="insertion_orders",
        title="Orders of insertion",
        case_columns=("data", "linkage", "metric", "order"),
        columns=("stage", "moves", "correlation", "tree_value", "purity"),
        cases=[
            (data, linkage, metric, order)
            for data in DATA
            for linkage, metric in SCHEMES
            for order in (BATCH, *range(ORDERS))
        ],
        run=run,
    )


def answer(records: Records, folder: Path) -> str:  # noqa: ARG001
    """The spread of each measure over the orders."""
    rows: list[tuple[Any, ...]] = []
    deviation = dict.fromkeys(STAGES, 0.0)
    lost = dict.fromkeys(STAGES, 0.0)
    for data in DATA:
        for linkage, metric in SCHEMES:
            _, _, correlation, value, purity = (_number(x) for x in records[data, linkage, metric, BATCH][0])
            rows.append((data, f"{linkage}, {metric}", "batch", "", f"{correlation:.3f}", "1", f"{purity:.3f}"))
            for stage in range(len(STAGES)):
                found = np.array(
                    [records[data, linkage, metric, order][stage][1:] for order in range(ORDERS)], np.float64
                )
                found[:, 2] /= value
                deviation[STAGES[stage]] = max(deviation[STAGES[stage]], found[:, 3].std(ddof=1))
                lost[STAGES[stage]] = max(lost[STAGES[stage]], purity - found[:, 3].mean())
                moves, *others = (_spread(column, digits) for column, digits in zip(found.T, (0, 3, 4, 3), strict=True))
                rows.append((data, f"{linkage}, {metric}", STAGES[stage], moves, *others))
    headings = ("data", "linkage, metric", "tree", "moves and grafts", "correlation", "tree value / batch", "purity")
    return "\n\n".join(
        [
            "Over the orders, purity has a standard deviation of at most "
            + ", ".join(
                f"{deviation[stage]:.3f} ({stage}; at worst {lost[stage]:.3f} below batch on average)"
                for stage in STAGES
            )
            + ".",
            EXPLANATION,
            table(headings, rows),
        ]
    )


def _number(x: Any) -> float:
    return float("nan") if isinstance(x, str) else float(x)


def _spread(values: NDArray[np.float64], digits: int) -> str:
    return f"{values.mean():,.{digits}f} ± {values.std(ddof=1):,.{digits}f}"
