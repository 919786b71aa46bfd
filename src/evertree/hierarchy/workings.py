"""`HierarchyWorkings`: what the verbs of a hierarchy share. Users see none of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from evertree.errors import ParameterError
from evertree.hierarchy.reader import NO_LEAVES
from evertree.hierarchy.verdicts import HierarchyVerdicts
from evertree.input.arrays import as_keys, as_weights
from evertree.input.frames import is_frame, take_keys
from evertree.input.keys import KeyTable
from evertree.input.points import Progress, receive, without_first
from evertree.kernels.columns import NULL
from evertree.locking import Uninterrupted, of_one_moment
from evertree.tree import Incoming, LiveTree, initial, new_tree
from evertree.tree.parallel import insert, rounds, treelets
from evertree.tree.statistics import REORDER_SHARE, MeanLiveTree
from evertree.windows import Moment, MovingWindow, Window, moment_of

#: Ctrl-C undoes a batch of at least this many points if it at least doubles the tree; any other is finished first.
UNDOABLE = 10_000

#: No weights at all.
NO_WEIGHTS = np.empty(0)

#: Points that are looked at first where some are too old.
_FIRST_LOOK = 16


class Edit:
    """The block in which an edit is made."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """The edit is done, unless an error came."""

    def undo(self) -> None:
        """The edit was given up, and left no trace."""


#: The block of an edit that nobody writes down.
UNRECORDED = Edit()


class HierarchyWorkings(HierarchyVerdicts):
    """The tree, its keys and a lock, and the steps that several verbs take."""

    _lock: threading.RLock

    def _refuse_while_threads_refine(self) -> None:
        if self.state.live.has_threads:
            raise ParameterError(
                "a progress callback of a refinement by several threads may read and copy the hierarchy, but not edit "
                "it: do that when refine() has returned, or create the hierarchy with n_jobs=None"
            )

    def _settled(self) -> LiveTree:
        """The tree, fit for a copy also where threads refine it: what is left to do after their moves is counted."""
        if isinstance(self.state.live, MeanLiveTree) and self.state.live.has_threads:
            treelets.settle(self.state.live)
        return self.state.live

    def _new_keys(self, keys: Any, count: int) -> list[Hashable] | None:
        if keys is None:
            return None
        chosen = as_keys(keys)
        self.state.keys.check_new(chosen, count)
        return chosen

    def _checked(
        self, X: Any, keys: Any, sample_weight: Any, progress: Progress | None = None
    ) -> tuple[Incoming, NDArray[np.float64], list[Hashable] | None]:
        """New points with their weights, and keys where the user chose any."""
        if isinstance(keys, str) and is_frame(X):
            keys, X = take_keys(X, keys)
        live = None if self.state.live.is_blank else self.state.live
        leaves = self.state.keys.leaves() if self.state.live.needs_order else NO_LEAVES
        weights, chosen = NO_WEIGHTS, None

        def check(count: int) -> None:  # before a function is called for each pair
            nonlocal weights, chosen
            weights, chosen = as_weights(sample_weight, count), self._new_keys(keys, count)

        n_edits = self.state.n_edits
        incoming = receive(self.state.live.scheme, X, live, leaves, check, checked_progress(progress))
        self._refuse_edits_since(n_edits)
        if weights.size:
            self.state.live.check_range(incoming, weights)
        return incoming, weights, chosen

    @of_one_moment
    def check(self, X: Any, keys: Any = None, sample_weight: Any = None) -> None:
        """Refuse the points that `insert` would refuse. Nothing is changed.

        Parameters
        ----------
        X, keys, sample_weight
            As for `insert`.

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> h.check([[0.0, 1.0]])
        >>> h.check([[0.0, np.nan]])
        Traceback (most recent call last):
        evertree.errors.NotFiniteError: X must be finite; ...
        """
        self._checked(X, keys, sample_weight)

    def _insert(
        self,
        incoming: Incoming,
        weights: NDArray[np.float64],
        chosen: list[Hashable] | None,
        moment: Moment | None = None,
    ) -> list[Hashable]:
        """Hang checked points into the tree, take out what is then outside the window; return the new keys.

        Points that would be outside at once are numbered, but never in the tree.
        """
        n_passing = 0 if self.state.window is None else self.state.window.n_passing(weights.size)
        staying = without_first(incoming, n_passing, len(self))
        count = len(staying)
        with Uninterrupted() as held, self.state.turns.door:
            before = self._undo_copy(count)
            live = self._live_for(staying)
            self.state.keys.reserve(count)
            with self._recorded("insert", chosen, incoming, weights, moment) as edit:
                others = self.state.keys.leaves() if live.needs_order else NO_LEAVES
                births = self.state.keys.next_births(weights.size)[n_passing:]
                leaves = self._hang(live, live.add_leaves(staying, weights[n_passing:], births, others), before, held)
                if leaves is None:
                    edit.undo()
                    return []  # Ctrl-C is raised where the block ends
                self.state.live = live
                self.state.n_edits += 1
                added = self.state.keys.add(chosen, leaves, n_passing)
                if self.state.window is not None:
                    self.state.window.admit(self.state.keys.next_birth, moment)
                    self._take_out(*self._outside(moment))
                    self.state.window.settle(moment)
                return added

    def _hang(
        self,
        live: LiveTree,
        leaves: NDArray[np.int32],
        before: tuple[LiveTree, KeyTable] | None,
        held: Uninterrupted,
    ) -> NDArray[np.int32] | None:
        """Hang new leaves into the tree; return their numbers then. On Ctrl-C, where it can be undone, it is: None."""
        start = 0
        try:
            while start < leaves.size:
                stop = start + insert.n_at_once(live, leaves.size - start)
                insert.insert(live, leaves[start:stop], lambda: held.should_stop and before is not None)
                start = stop
                leaves = self._reorder(live, REORDER_SHARE, leaves)
                if held.should_stop and before is not None:
                    self.state.live, self.state.keys = before
                    return None
            rounds.warm_up(live)
        except BaseException:  # such as a lack of memory: threads take some
            if before is not None:
                self.state.live, self.state.keys = before
            else:
                live.detach(leaves[live.tree.parent[leaves] > NULL])
                live.release(leaves)
            raise
        return leaves

    def _remove(self, gone: list[Hashable], leaves: NDArray[np.int32]) -> None:
        """Remove live points."""
        with Uninterrupted(), self.state.turns.door, self._recorded("remove", gone):
            self._take_out(gone, leaves)
            self.state.n_edits += 1

    def _take_out(self, gone: list[Hashable], leaves: NDArray[np.int32]) -> None:
        """Take live points, if there are any, out of the tree."""
        if gone:
            self.state.live.detach(leaves)
            self.state.live.release(leaves)
            self.state.keys.discard(gone)

    def _moment(self, time: Any) -> Moment | None:
        """The moment of an edit, where that matters."""
        return moment_of(self.state.window, time)

    def _window_with(self, limits: Window | None) -> MovingWindow | None:
        """A window with new limits, which knows what the present one knows."""
        if limits is None or self.state.window is None:
            return None if limits is None else MovingWindow(limits)
        return self.state.window.changed(limits)

    def _keep(self, window: MovingWindow | None, moment: Moment | None) -> list[Hashable]:
        """Set a window, or lift it; take out what is outside, and return its keys."""
        limits = None if window is None else window.limits
        with Uninterrupted(), self.state.turns.door, self._recorded_window(limits, moment):
            if window is not None and len(self) and window.n_marks == 0:
                window.admit(self.state.keys.next_birth, moment)
            self.state.window = window
            gone, leaves = self._outside(moment)
            self._take_out(gone, leaves)
            if window is not None:
                window.settle(moment)
            self.state.n_edits += 1
            return gone

    def _outside(self, moment: Moment | None) -> tuple[list[Hashable], NDArray[np.int32]]:
        """The keys and the leaves of the points that are outside the window, oldest first. O(their number)."""
        if self.state.window is None:
            return [], NO_LEAVES
        birth, last = self.state.window.too_old(moment), self.state.window.limits.last
        n_outside = 0 if last is None else max(len(self) - last, 0)
        if birth == 0:
            return self.state.keys.oldest(n_outside)
        count = max(n_outside, _FIRST_LOOK)
        while True:
            keys, leaves = self.state.keys.oldest(count)
            n_old = int(np.searchsorted(self.state.live.tree.birth[leaves], birth))
            if n_old < count:
                n_outside = max(n_outside, n_old)
                return keys[:n_outside], leaves[:n_outside]
            count *= 4

    def _update(
        self,
        changed: list[Hashable],
        leaves: NDArray[np.int32],
        incoming: Incoming,
        weights: NDArray[np.float64],
    ) -> None:
        """Give live points checked values."""
        live = self.state.live
        births = live.tree.birth[leaves]
        order = self.state.keys.leaves() if live.needs_order else leaves
        with Uninterrupted(), self.state.turns.door, self._recorded("update", changed, incoming, weights):
            live.detach(leaves)
            live.fill(leaves, incoming, weights, births, order)
            live.insert(leaves)
            self.state.n_edits += 1

    def _order_and_positions(self, leaves: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.intp]]:
        """What stored dissimilarities of changed points are to, and where these stand in it, as they were named."""
        if not self.state.live.needs_order:
            return leaves, np.arange(leaves.size)
        order = self.state.keys.leaves()
        place = np.empty(self.state.live.capacity, np.intp)
        place[order >> 1] = np.arange(order.size)
        return order, place[leaves >> 1]

    def _recorded(
        self,
        kind: str,  # noqa: ARG002  nothing is recorded of a hierarchy in memory
        keys: list[Hashable] | None,  # noqa: ARG002
        incoming: Incoming | None = None,  # noqa: ARG002
        weights: NDArray[np.float64] | None = None,  # noqa: ARG002
        moment: Moment | None = None,  # noqa: ARG002
    ) -> Edit:
        """Around an edit that has been checked, and will now be made: a durable hierarchy writes it down first."""
        return UNRECORDED

    def _recorded_window(self, limits: Window | None, moment: Moment | None) -> Edit:  # noqa: ARG002
        """The same, around a change of the window."""
        return UNRECORDED

    def _undo_copy(self, count: int) -> tuple[LiveTree, KeyTable] | None:
        """Tree and keys as they are, where a batch is so large that a copy costs little beside it."""
        return (self.state.live.copy(), self.state.keys.copy()) if count >= max(len(self), UNDOABLE) else None

    def _live_for(self, incoming: Incoming) -> LiveTree:
        """The tree, with room for new points; the first ones decide on the columns and the type."""
        live = self.state.live
        if live.is_blank:
            live = new_tree(live.scheme, live.aim, incoming.n_columns, incoming.stored.dtype)
            live.reserve(len(incoming))
            live.warm_up()
        live.reserve(len(incoming))
        return live

    def _reorder(self, live: LiveTree, share: float, leaves: NDArray[np.int32]) -> NDArray[np.int32]:
        """Number the nodes anew where that pays; return the new numbers of some leaves."""
        place = live.reorder(share)
        if place is None:
            return leaves
        self.state.keys.relocate(place)
        return place[leaves]

    def _begin(self, X: Any, keys: Any, sample_weight: Any) -> tuple[NDArray[np.int32], Incoming]:
        """Leaves for all points of a new hierarchy, which hang nowhere yet."""
        incoming, weights, chosen = self._checked(X, keys, sample_weight)
        if len(incoming) == 0:
            return NO_LEAVES, incoming
        self.state.live = self._live_for(incoming)
        leaves = self.state.live.add_leaves(incoming, weights, self.state.keys.next_births(len(incoming)), NO_LEAVES)
        self.state.keys.add(chosen, leaves)
        return leaves, incoming

    def _grown(
        self,
        X: Any,
        keys: Any,
        sample_weight: Any,
        linkage_matrix: Callable[[LiveTree, NDArray[np.int32], Incoming], Any],
    ) -> Self:
        """Hang points into a new hierarchy in the shape of the SciPy matrix that a function finds for them."""
        leaves, incoming = self._begin(X, keys, sample_weight)
        Z = initial.checked_linkage_matrix(linkage_matrix(self.state.live, leaves, incoming), leaves.size)
        initial.shape_from_linkage(self.state.live, leaves, Z)
        self.state.live.rebuild()
        return self


def checked_progress(progress: Any) -> Any:
    """A callback, or None."""
    if progress is not None and not callable(progress):
        raise ParameterError(f"progress must be None or callable; it is {progress!r}")
    return progress
