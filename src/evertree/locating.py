"""`HierarchyLocator`: where points would go, without inserting them."""

from __future__ import annotations

import numbers
import threading
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertree.atomic import one_at_a_time
from evertree.errors import DimensionError, ParameterError
from evertree.incoming import receive
from evertree.reader import HierarchyReader
from evertree.scheme import DISSIMILARITIES, OBJECTS
from evertree.tree import LiveTree, views


@dataclass(frozen=True)
class Location:
    """Where a point would go; see `Hierarchy.locate`.

    Attributes
    ----------
    beside : int
        The node that would become its sibling.
    height : float
        The height at which it would join that, in SciPy's units.
    path : tuple of int
        The nodes above, from the parent of `beside` to the root: the clusters that it would be in.
    nearest : hashable
        The key of the nearest live point.
    distance : float
        Its dissimilarity to that.
    rejected : bool
        Whether it would join above the limit.
    reason : str
        Why, or why not.

    Examples
    --------
    >>> h = et.Hierarchy()
    >>> keys = h.insert([[0.0], [1.0], [8.0]], keys=["a", "b", "c"])
    >>> place = h.locate([[7.0]])[0]
    >>> place.nearest, place.distance, h.members(place.beside)
    ('c', 1.0, ['c'])
    """

    beside: int
    height: float
    path: tuple[int, ...]
    nearest: Hashable
    distance: float
    rejected: bool
    reason: str


class HierarchyLocator(HierarchyReader):
    """What a hierarchy would do with new points."""

    _lock: threading.RLock

    @one_at_a_time
    def locate(self, X: Any, reject_above: float | None = None) -> list[Location]:
        """Where points would be inserted. The tree does not change. O(n m), and a copy of the tree.

        Parameters
        ----------
        X : array of shape (k, n_columns), or a collection of k objects
            As for `insert`. With ``metric="precomputed"``, dissimilarities to the n live points, in the shape (k, n).
        reject_above : float, optional
            A point that would join above this height is rejected: it belongs to no cluster below it. By default the
            height of the root: such a point is farther from all others than they are from each other.

        Returns
        -------
        locations : list of Location
            Each as if the point were the only one.

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> keys = h.insert([[0.0], [1.0], [8.0], [9.0]])
        >>> near, far = h.locate([[8.4], [100.0]])
        >>> near.rejected, near.nearest, [h.members(node) for node in near.path]
        (False, 2, [[2, 3], [0, 1, 2, 3]])
        >>> far.reason
        'would join at 121, above the root, which is at 11.3'
        """
        self._require_points("locate")
        if reject_above is not None and not (
            isinstance(reject_above, numbers.Real) and not isinstance(reject_above, bool) and reject_above >= 0
        ):
            raise ParameterError(f"reject_above must be None or a non-negative number; it is {reject_above!r}")
        leaves, keys = self._keys.leaves(), self.keys()
        live = self._live.copy()  # in which the new leaves get rows, but never hang
        new = np.concatenate([np.empty(0, np.int32), *self._leaves_for(live, X, leaves)])
        places, values = live.find_places(new)
        nearest, distances = live.nearest(new, leaves)
        top = float(views.find_merges(live).height[live.root])
        found = []
        columns = (places, live.scheme.height(values), nearest, distances)
        for place, height, position, distance in zip(*(column.tolist() for column in columns), strict=True):
            rejected, reason = _verdict(height, reject_above, top)
            found.append(Location(place, height, tuple(self._above(place)), keys[position], distance, rejected, reason))
        return found

    def _leaves_for(self, live: LiveTree, X: Any, leaves: NDArray[np.int32]) -> Iterator[NDArray[np.int32]]:
        """Leaves for new points, which know their dissimilarities to the live points, but not to each other."""
        parts = [X]
        if live.scheme.holds == DISSIMILARITIES:
            matrix = np.asarray(X)
            if matrix.ndim != 2 or matrix.shape[1] != leaves.size:
                raise DimensionError(
                    f"X must have {leaves.size} columns, the dissimilarities to keys(); its shape is {matrix.shape}"
                )
            parts = [np.append(line, 0)[None] for line in matrix]
        elif live.scheme.holds == OBJECTS:
            parts = [[x] for x in X]
        for part in parts:
            incoming = receive(live.scheme, part, live, leaves)
            count = len(incoming)
            live.check_range(incoming, np.ones(count))
            live.reserve(count)
            births = np.arange(self._keys.next_birth, self._keys.next_birth + count)
            yield live.add_leaves(incoming, np.ones(count), births, leaves)


def _verdict(height: float, reject_above: float | None, top: float) -> tuple[bool, str]:
    limit, name = (
        (top, f"the root, which is at {top:.3g}") if reject_above is None else (reject_above, f"{reject_above:g}")
    )
    rejected = height > limit
    return rejected, f"would join at {height:.3g}, {'above' if rejected else 'not above'} {name}"
