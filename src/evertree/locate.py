"""Where points would go in a hierarchy, without inserting them."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertree import nodes
from evertree.edits import NO_LEAVES, opened
from evertree.input.arrays import as_height
from evertree.input.points import receive_alone
from evertree.state import State
from evertree.tree import Incoming, views


@dataclass(frozen=True)
class Location:
    """Where a point would go; see `Hierarchy.locate`.

    Attributes
    ----------
    beside : int
        The node that would become its sibling.
    height : float
        The height at which it would join that node, in SciPy's units.
    path : tuple of int
        The nodes above, from the parent of `beside` to the root: the clusters that would contain it.
    nearest : hashable
        The key of the nearest live point.
    distance : float
        The dissimilarity to the nearest live point.
    rejected : bool
        Whether it would join above the limit.
    reason : str
        Why it is rejected, or why not.

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


def locate(state: State, X: Any, reject_above: float | None) -> list[Location]:
    """Where each of some points would go, as if it were the only one: see `Hierarchy.locate`."""
    state.require_points("locate")
    if reject_above is not None:
        reject_above = as_height("reject_above", reject_above)
    live = state.live
    leaves = state.keys.leaves() if live.needs_order or not live.scheme.has_statistics else NO_LEAVES
    points = compared(state, X, leaves)
    is_monotone = live.n_pending == 0 and not live.has_threads
    top = nodes.height(state, live.root) if is_monotone else float(views.find_merges(live).height[live.root])
    found: list[Location] = []
    for some in points.parts():
        with live.guests(some, state.keys.next_births(len(some)), leaves) as (host, guests):
            places, values = host.find_places(guests)
            nearest, distances = host.nearest(guests, leaves)
        columns = (places, live.scheme.height(values), distances)
        keys = nodes.keys_of(state, nearest)
        for key, place, height, distance in zip(keys, *(column.tolist() for column in columns), strict=True):
            rejected, reason = _verdict(height, reject_above, top)
            path = tuple(nodes.above(state, place))
            found.append(Location(place, height, path, key, distance, rejected, reason))
    return found


def compared(state: State, X: Any, leaves: NDArray[np.int32]) -> Incoming:
    """New points, checked; if dissimilarities are stored, compared with all live points, which are at `leaves`."""
    n_edits = state.n_edits
    _, X, _ = opened(state, X)
    points = receive_alone(state.live.scheme, X, state.live, leaves)
    state.refuse_edits_since(n_edits)
    state.live.check_range(points, np.ones(len(points)))
    return points


def _verdict(height: float, reject_above: float | None, top: float) -> tuple[bool, str]:
    if reject_above is None:
        if top == 0:
            return False, f"would join at {height:.3g}; points that are all equal do not say what is far"
        reject_above, name = top, f"the root, which is at {top:.3g}"
    else:
        name = f"{reject_above:g}"
    rejected = height > reject_above
    return rejected, f"would join at {height:.3g}, {'above' if rejected else 'not above'} {name}"
