"""`HierarchyAnomalies`: which points stand apart from the others, and why."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertree.errors import ParameterError
from evertree.hierarchy.locating import HierarchyLocator
from evertree.hierarchy.reader import NO_LEAVES
from evertree.input.arrays import as_choice, as_count
from evertree.kernels.columns import NULL
from evertree.locking import of_one_moment
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


class HierarchyAnomalies(HierarchyLocator):
    """Scores of points by how far they stand apart."""

    @of_one_moment
    def score_samples(self, X: Any = None, measure: str = "jump", *, keys: Any = None) -> NDArray[np.float64]:
        """How far points stand apart from the others: the higher, the more anomalous. The tree does not change.

        On the way from a point to the root, a cluster with the point in it, the point alone at first, joins others at
        node after node. The score is the largest that one of these steps gives:

        - ``"jump"``: how much higher the node is than the cluster, in SciPy's units, times how often the size doubles
          from the one to the other. It knows how far an outlier is, not only that it is one.
        - ``"displacement"``: how many times larger the others are than the cluster. This is collusive displacement, the
          measure of robust random cut forests. A single outlier among n points can have up to n - 1; two outliers side
          by side can still have half of that.

        Points that are equal count as one that weighs as much.

        Parameters
        ----------
        X : array of shape (k, n_columns), or a collection of k objects, optional
            Points as `locate` takes them, each scored as if it came alone, with weight 1. By default the live points.
        measure : {"jump", "displacement"}
        keys : a key, or a collection of keys, optional
            Score some of the live points alone, in this order.

        Returns
        -------
        scores : ndarray of shape (k,)
            For live points in the order of ``keys()``. (The outlier detectors of scikit-learn have the opposite sign,
            and so has ``AnytimeClustering.score_samples``.)

        Notes
        -----
        All live points take O(n). Where the linkage follows from means, a new point goes down the tree to the nearer
        child each time: about a microsecond. Other linkages look for where it would be inserted, as `locate` does.

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> keys = h.insert([[0.0], [1.0], [2.0], [3.0], [50.0]])
        >>> h.score_samples().round(1)
        array([ 18.8,  18.8,  18.8,  18.8, 142.4])
        >>> h.score_samples(measure="displacement")
        array([1., 1., 1., 1., 4.])
        >>> h.score_samples([[2.4], [90.0]]).round(1)
        array([15.4, 40. ])
        """
        if keys is None:
            return self._scored(X, measure).score
        if X is not None:
            raise ParameterError("score_samples takes X or keys, not both")
        measure = as_choice("measure", measure, MEASURES)
        return score_live(self.state.live, self._leaves(keys), measure).score

    @of_one_moment
    def anomalies(self, X: Any = None, n: int | None = 10, measure: str = "jump") -> list[Anomaly]:
        """The points that stand apart most, the first of them first, each with the reason.

        Parameters
        ----------
        X : optional
            As for `score_samples`.
        n : int or None
            How many, at most; None for all.
        measure : {"jump", "displacement"}

        Returns
        -------
        anomalies : list of Anomaly

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> keys = h.insert([[0.0], [1.0], [2.0], [3.0], [50.0]])
        >>> h.anomalies(n=1)[0].reason
        'joins 4 points, 4 times as many, at a height of 61.3'
        >>> h.anomalies([[2.4], [51.0]])[0].reason
        'with 1 live point joins 4 points, 2 times as many, at a height of 61.3'
        """
        if n is not None:
            n = as_count("n", n)
        scores = self._scored(X, measure)
        rows = np.argsort(-scores.score, kind="stable")[:n]
        keys = [None] * rows.size if X is not None else self._keys_at(rows)
        return [_anomaly(scores, int(row), key, X is None) for row, key in zip(rows, keys, strict=True)]

    def _scored(self, X: Any, measure: str) -> Scores:
        measure = as_choice("measure", measure, MEASURES)
        self._require_points("score_samples")
        live = self.state.live
        leaves = NO_LEAVES if X is not None and live.scheme.has_statistics else self.state.keys.leaves()
        if X is None:
            return score_live(live, leaves, measure)
        incoming = self._compared(X, leaves)
        return score_new(live, leaves, incoming, self.state.keys.next_births(len(incoming)), measure)

    def _keys_at(self, rows: NDArray[np.intp]) -> list[Hashable]:
        leaves = self.state.keys.leaves()[rows]
        return self.state.keys.keys_of(leaves, self.state.live.tree.birth[leaves])


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
