"""The experiments of the paper's section 5: three methods and five linkages on pairings of a data set and a tree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertree.batch import agglomerate
from evertree.hierarchy import Hierarchy
from evertree.quality import cophenetic_correlation
from paper import mnist
from paper.study import Case, Records, Row, Settings, Study

LINKAGES = ("single", "complete", "average", "minimax", "ward")
DATA = ("uniform", "mnist")
SIZES = tuple(range(10, 101, 10))


def _hac(X: NDArray[np.float64], linkage: str, seed: int) -> Hierarchy:  # noqa: ARG001
    """Batch clustering (`tab.HAC`)."""
    return agglomerate(X, linkage, goal="homogeneous")


def _ahc(X: NDArray[np.float64], linkage: str, seed: int) -> Hierarchy:
    """The anytime procedure (`tab.OHC`) from a random tree."""
    h = Hierarchy.random(X, linkage, goal="homogeneous", seed=seed)
    h.refine()
    return h


def _ihc(X: NDArray[np.float64], linkage: str, seed: int) -> Hierarchy:  # noqa: ARG001
    """Insertion of one point after the other, each followed by the anytime procedure (`tab.Insert`)."""
    h = Hierarchy(linkage, goal="homogeneous")
    h.insert(X)
    return h


#: The methods, in the order of the paper's figures. Moves of a method are its iterations; batch clustering has none.
METHODS: dict[str, Callable[[NDArray[np.float64], str, int], Hierarchy]] = {"HAC": _hac, "AHC": _ahc, "IHC": _ihc}


def correlation(h: Hierarchy) -> float:
    """The paper's cophenetic correlation (`eq.Cophenetic`): with the diagonal, and with heights as they are."""
    return cophenetic_correlation(h, diagonal=True, monotone=False)


def draw(settings: Settings, data: str, n: int, repetition: int) -> tuple[NDArray[np.float64], int]:
    """Points in random order, and the seed of the random tree that they are paired with."""
    rng = settings.rng("section5", data, n, repetition)
    X = rng.random((n, 2)) if data == "uniform" else mnist.load(settings.mnist).sample(n, rng)[0]
    return X, int(rng.integers(2**31))


def run_pairing(settings: Settings, case: Case) -> list[Row]:
    """All linkages and methods on one pairing: (linkage, method, moves, correlation)."""
    data, n, repetition = str(case[0]), int(case[1]), int(case[2])
    X, seed = draw(settings, data, n, repetition)
    rows: list[Row] = []
    for linkage in LINKAGES:
        for name, method in METHODS.items():
            h = method(X, linkage, seed)
            rows.append((linkage, name, h.n_moves, correlation(h)))
    return rows


def study(repetitions: int) -> Study:
    """All pairings, as many of each size and kind of data as there are repetitions."""
    return Study(
        name="runs",
        title="Section 5 of the paper",
        case_columns=("data", "n", "repetition"),
        columns=("linkage", "method", "moves", "correlation"),
        cases=[(data, n, repetition) for data in DATA for n in SIZES for repetition in range(repetitions)],
        run=run_pairing,
        at_once=20,
    )


@dataclass(frozen=True)
class Results:
    """Moves and correlations of all pairings, by data, linkage and method: arrays of shape (sizes, repetitions)."""

    moves: dict[tuple[str, str, str], NDArray[np.float64]]
    correlation: dict[tuple[str, str, str], NDArray[np.float64]]
    repetitions: int

    @classmethod
    def of(cls, study: Study, records: Records) -> Results:
        """Gather what the records of `study` hold."""
        repetitions = len(study.cases) // (len(DATA) * len(SIZES))
        found: dict[tuple[str, str, str], list[tuple[Any, Any]]] = {}
        for case in study.cases:
            for linkage, method, moves, correlation in records[case]:
                found.setdefault((str(case[0]), str(linkage), str(method)), []).append((moves, correlation))
        arrays = {
            key: np.array(values, np.float64).reshape(len(SIZES), repetitions, 2) for key, values in found.items()
        }
        return cls(
            {key: array[..., 0] for key, array in arrays.items()},
            {key: array[..., 1] for key, array in arrays.items()},
            repetitions,
        )
