"""Which points of a hierarchy stand apart from the others, and why."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertree.edits import NO_LEAVES
from evertree.errors import ParameterError
from evertree.input.arrays import as_choice, as_count
from evertree.kernels.columns import NULL
from evertree.locate import compared
from evertree.nodes import keys_of
from evertree.state import State
from evertree.tree.anomaly_scores import Scores, score_live, score_new

#: How far a point stands apart can be measured in these ways.
MEASURES = ("jump", "displacement")


@dataclass(frozen=True)
class Anomaly:
    """How far a point stands apart, and why; see `Hierarchy.anomalies`.

    Attributes
    ----------
    row : int
        Its row in X, or its place in ``keys()``.
    key : hashable
        Of a live point; None for one of X.
    score : float
        By the measure that was asked for; 0 where nothing stands apart, as where all points are equal.
    node : int or None
        What stands apart: the node that the point is in or, for a point of X, would be in. None where that is no node:
        a point of X that would stand alone.
    size : float
        How many points that has, the point included, or what they weigh.
    beside : int or None
        The node that it joins.
    beside_size : float
        How many points that has, or what they weigh.
    height : float
        At which the two join, in SciPy's units.
    reason : str
        All of it in a sentence.

    Examples
    --------
    >>> h = et.Hierarchy()
    >>> keys = h.insert([[0.0], [1.0], [2.0], [50.0], [51.0]])
    >>> first = h.anomalies(n=1, measure="jump")[0]
    >>> first.key, h.members(first.node), h.members(first.beside)
    (3, [3, 4], [0, 1, 2])
    """

    row: int
    key: Hashable
    score: float
    node: int | None
    size: float
    beside: int | None
    beside_size: float
    height: float
    reason: str

    @property
    def ratio(self) -> float:
        """How many times larger than what stands apart that is which it joins.

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> keys = h.insert([[0.0], [1.0], [2.0], [50.0]])
        >>> h.anomalies(n=1)[0].ratio
        3.0
        """
        return self.beside_size / self.size


def score_samples(state: State, X: Any, measure: str, keys: Any) -> NDArray[np.float64]:
    """How far points stand apart: see `Hierarchy.score_samples`."""
    if keys is None:
        return _scores(state, X, measure).score
    if X is not None:
        raise ParameterError("score_samples takes X or keys, not both")
    return score_live(state.live, state.leaves(keys), as_choice("measure", measure, MEASURES)).score


def anomalies(state: State, X: Any, n: int | None, measure: str) -> list[Anomaly]:
    """The points that stand apart most, with the reasons: see `Hierarchy.anomalies`."""
    if n is not None:
        n = as_count("n", n)
    scores = _scores(state, X, measure)
    rows = np.argsort(-scores.score, kind="stable")[:n]
    keys = [None] * rows.size if X is not None else keys_of(state, state.keys.leaves()[rows])
    return [_anomaly(scores, int(row), key, X is None) for row, key in zip(rows, keys, strict=True)]


def _scores(state: State, X: Any, measure: str) -> Scores:
    measure = as_choice("measure", measure, MEASURES)
    state.require_points("score_samples")
    live = state.live
    leaves = NO_LEAVES if X is not None and live.scheme.has_statistics else state.keys.leaves()
    if X is None:
        return score_live(live, leaves, measure)
    points = compared(state, X, leaves)
    return score_new(live, leaves, points, state.keys.next_births(len(points)), measure)


def _anomaly(scores: Scores, row: int, key: Hashable, is_live: bool) -> Anomaly:
    score, weight, node, size, beside, size_beside, height = (column[row].item() for column in scores)
    company = "" if size == weight else f"with {_points(size - weight, 'other' if is_live else 'live')} "
    return Anomaly(
        row=row,
        key=key,
        score=score,
        node=None if node == NULL else node,
        size=size,
        beside=None if beside == NULL else beside,
        beside_size=size_beside,
        height=height,
        reason="nothing stands apart: it joins no other point above height 0"
        if beside == NULL
        else f"{company}joins {_points(size_beside)}, {_times(size_beside, size)}, at a height of {height:.3g}",
    )


def _points(weight: float, kind: str = "") -> str:
    """So many points, where the weight is a whole number: a point of weight 2 counts as two."""
    if not _is_whole(weight):
        return f"{'a further' if kind else 'a'} weight of {_number(weight)}"
    return f"{_number(weight)} {kind + ' ' if kind else ''}point{'' if round(weight) == 1 else 's'}"


def _times(beside: float, size: float) -> str:
    """How many times as many the ones are as the others, or as heavy."""
    as_many = "as many" if _is_whole(beside) and _is_whole(size) else "as much"
    return f"just {as_many}" if beside == size else f"{_number(beside / size)} times {as_many}"


def _is_whole(weight: float) -> bool:
    return abs(weight - round(weight)) <= 1e-9 * weight


def _number(value: float) -> str:
    """Whole and large numbers to the unit, others to three digits."""
    return f"{value:,.0f}" if 1e15 > value >= 100 or (value < 100 and _is_whole(value)) else f"{value:.3g}"
