"""How much the order of insertion matters."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evertree.batch import agglomerate
from evertree.hierarchy import Hierarchy
from evertree.quality import dendrogram_purity, tree_value
from paper import mnist
from paper.output import markdown_table
from paper.section5 import DATA, correlation
from paper.study import Case, Records, Row, Settings, Study

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
    return mnist.load(settings.mnist).sample(N, rng)


def measures(h: Hierarchy, classes: NDArray[np.int64]) -> tuple[float, float, float]:
    """What is reported of a tree."""
    return correlation(h), tree_value(h), dendrogram_purity(h, classes)


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
    rows: list[tuple[str, ...]] = []
    deviations: dict[str, list[float]] = {stage: [] for stage in STAGES}
    differences: dict[str, list[float]] = {stage: [] for stage in STAGES}
    for data in DATA:
        for linkage, metric in SCHEMES:
            batch = np.array(records[data, linkage, metric, BATCH][0][2:], np.float64)
            rows.append((data, f"{linkage}, {metric}", "batch", "", f"{batch[0]:.3f}", "1", f"{batch[2]:.3f}"))
            for k, stage in enumerate(STAGES):
                runs = [records[data, linkage, metric, order][k][1:] for order in range(ORDERS)]
                found = np.array(runs, np.float64) / [1, 1, batch[1], 1]
                cells = (_spread(column, digits) for column, digits in zip(found.T, (0, 3, 4, 3), strict=True))
                rows.append((data, f"{linkage}, {metric}", stage, *cells))
                deviations[stage].append(found[:, 3].std(ddof=1))
                differences[stage].append(found[:, 3].mean() - batch[2])
    headings = ("data", "linkage, metric", "tree", "moves and grafts", "correlation", "tree value / batch", "purity")
    words = [
        f"{stage}: {min(differences[stage]):+.3f} to {max(differences[stage]):+.3f} beside batch, with a standard "
        f"deviation over the orders of up to {max(deviations[stage]):.3f}"
        for stage in STAGES
    ]
    return "\n\n".join([f"Mean purity, {'; '.join(words)}.", EXPLANATION, markdown_table(headings, rows)])


def _spread(values: NDArray[np.float64], digits: int) -> str:
    return f"{values.mean():,.{digits}f} ± {values.std(ddof=1):,.{digits}f}"
