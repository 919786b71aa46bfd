"""Which points of a hierarchy are anomalous, and why."""

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

#: The measures of how anomalous a point is.
MEASURES = ("jump", "displacement")


@dataclass(frozen=True)
class Anomaly:
    """How anomalous a point is, and why; see `Hierarchy.anomalies`.

    Attributes
    ----------
    row : int
        Its row in X, or its position in ``keys()``.
    key : hashable
        The key of a live point; None for a point of X.
    score : float
        The score by the chosen measure; 0 if nothing stands apart, as when all points are equal.
    node : int or None
        The cluster that stands apart: the node that contains or, for a point of X, would contain the point. None for a
        point of X that would stand alone.
    size : float
        The number of points in that cluster, including the point, or their total weight.
    beside : int or None
        The node that the cluster joins.
    beside_size : float
        The number of points in that node, or their total weight.
    height : float
        The height at which the two join, in SciPy's units.
    reason : str
        The explanation, as a sentence.

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
        """How many times larger the node that it joins is than the cluster itself.

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> keys = h.insert([[0.0], [1.0], [2.0], [50.0]])
        >>> h.anomalies(n=1)[0].ratio
        3.0
        """
        return self.beside_size / self.size


def scores(state: State, X: Any, measure: str, keys: Any) -> NDArray[np.float64]:
    """Anomaly scores: see `Hierarchy.anomaly_scores`."""
    if keys is None:
        return _scores(state, X, measure).score
    if X is not None:
        raise ParameterError("anomaly_scores takes X or keys, not both")
    return score_live(state.live, state.leaves(keys), as_choice("measure", measure, MEASURES)).score


def anomalies(state: State, X: Any, n: int | None, measure: str) -> list[Anomaly]:
    """The most anomalous points, with reasons: see `Hierarchy.anomalies`."""
    if n is not None:
        n = as_count("n", n)
    found = _scores(state, X, measure)
    rows = np.argsort(-found.score, kind="stable")[:n]
    keys = [None] * rows.size if X is not None else keys_of(state, state.keys.leaves()[rows])
    return [_anomaly(found, int(row), key, X is None) for row, key in zip(rows, keys, strict=True)]


def _scores(state: State, X: Any, measure: str) -> Scores:
    measure = as_choice("measure", measure, MEASURES)
    state.require_points("anomaly_scores")
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
    """A weight in words, as a number of points if it is an integer: a point of weight 2 counts as two."""
    if not _is_whole(weight):
        return f"{'a further' if kind else 'a'} weight of {_number(weight)}"
    return f"{_number(weight)} {kind + ' ' if kind else ''}point{'' if round(weight) == 1 else 's'}"


def _times(beside: float, size: float) -> str:
    """The ratio of two sizes in words: how many times as many, or as heavy."""
    as_many = "as many" if _is_whole(beside) and _is_whole(size) else "as much"
    return f"just {as_many}" if beside == size else f"{_number(beside / size)} times {as_many}"


def _is_whole(weight: float) -> bool:
    return abs(weight - round(weight)) <= 1e-9 * weight


def _number(value: float) -> str:
    """A number as text: integers and large numbers without decimals, others with three digits."""
    return f"{value:,.0f}" if 1e15 > value >= 100 or (value < 100 and _is_whole(value)) else f"{value:.3g}"
