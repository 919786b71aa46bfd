"""`HierarchyLocator`: where points would go, without inserting them."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertree.hierarchy.reader import HierarchyReader
from evertree.input.arrays import as_height
from evertree.input.points import receive_alone
from evertree.locking import of_one_moment
from evertree.tree import Incoming, views


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

    @of_one_moment
    def locate(self, X: Any, reject_above: float | None = None) -> list[Location]:
        """Where points would be inserted. The tree does not change. O(n m), and a copy of the tree.

        Parameters
        ----------
        X : array of shape (k, n_columns), or a collection of k objects
            As for `insert`. With ``metric="precomputed"``, dissimilarities to the n live points, in the shape (k, n).
        reject_above : float, optional
            A point that would join above this height is rejected: it belongs to no cluster below it. By default the
            height of the root: such a point is farther from all others than they are from each other. (Where that is 0,
            nothing is rejected.)

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
        if reject_above is not None:
            reject_above = as_height("reject_above", reject_above)
        leaves, keys = self.state.keys.leaves(), self.keys()
        incoming = self._compared(X, leaves)
        live, new = self.state.live.with_guests(incoming, self.state.keys.next_births(len(incoming)), leaves)
        places, values = live.find_places(new)
        nearest, distances = live.nearest(new, leaves)
        top = float(views.find_merges(live).height[live.root])
        found = []
        columns = (places, live.scheme.height(values), nearest, distances)
        for place, height, position, distance in zip(*(column.tolist() for column in columns), strict=True):
            rejected, reason = _verdict(height, reject_above, top)
            found.append(Location(place, height, tuple(self._above(place)), keys[position], distance, rejected, reason))
        return found

    def _compared(self, X: Any, leaves: NDArray[np.int32]) -> Incoming:
        """New points, checked, and where dissimilarities are stored compared with those at `leaves`, which are all."""
        live, n_edits = self.state.live, self.state.n_edits
        incoming = receive_alone(live.scheme, X, live, leaves)
        self._refuse_edits_since(n_edits)
        live.check_range(incoming, np.ones(len(incoming)))
        return incoming


def _verdict(height: float, reject_above: float | None, top: float) -> tuple[bool, str]:
    if reject_above is None:
        if top == 0:
            return False, f"would join at {height:.3g}; points that are all equal do not say what is far"
        reject_above, name = top, f"the root, which is at {top:.3g}"
    else:
        name = f"{reject_above:g}"
    rejected = height > reject_above
    return rejected, f"would join at {height:.3g}, {'above' if rejected else 'not above'} {name}"
