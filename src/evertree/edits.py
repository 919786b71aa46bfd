"""Edits as data: what users pass is parsed and checked, becomes an edit, and the edit is applied.

A verb of a hierarchy in memory is ``commit(state, check(…))``, but for `refine` and `set_scheme`, which work in steps,
and for edits of one point in memory, where a kernel does both.
Where there is a journal, `commit` writes the edit there first; to open a durable hierarchy, its edits are read back and
go through `apply`. A check may refuse, and changes nothing; an edit that was checked is made whole or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace
from typing import Any, assert_never

import numpy as np
from numpy.typing import NDArray

from evertree.errors import DimensionError, InvalidKeyError, ParameterError, listed
from evertree.input.arrays import GOALS, as_choice, as_keys, as_seconds, as_weights, as_whole_number
from evertree.input.frames import in_order, is_frame, take_keys
from evertree.input.points import (
    Progress,
    compare,
    receive,
    receive_again,
    receive_both,
    receive_changed,
    without_columns,
    without_first,
)
from evertree.kernels.columns import NULL
from evertree.locking import Uninterrupted
from evertree.progress import of_pairs, of_refinement
from evertree.state import State
from evertree.tree import Incoming, LiveTree, new_tree
from evertree.tree.base import REORDER_SHARE
from evertree.tree.batch import cluster, is_faster, may_cluster
from evertree.tree.refine import Report, run
from evertree.tree.repair import MOST_REPAIRS
from evertree.tree.scheme import DISSIMILARITIES, OBJECTS, Scheme
from evertree.windows import Moment, MovingWindow, Window, moment_of

#: Ctrl-C undoes a batch of at least this many points if it at least doubles the tree; any other batch is finished
#: first.
UNDOABLE = 10_000

#: A batch with at least a share of 1 / BATCH_FACTOR of the points that are there is clustered with them, where
#: `may_cluster` says so: that is faster than inserting it.
BATCH_FACTOR = 4

#: No leaves at all.
NO_LEAVES = np.empty(0, np.int32)

#: How many points to look at first for ones that are too old.
_FIRST_LOOK = 16


@dataclass(frozen=True, slots=True)
class Insert:
    """New points with their weights, and the keys that the user chose.

    If a window needs it, also when they arrived; and the names of the columns, if they become known.
    """

    points: Incoming
    weights: NDArray[np.float64]
    keys: list[Hashable] | None
    moment: Moment | None = None
    column_names: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Remove:
    """Live keys whose points are removed, and their leaves in the tree as it is."""

    keys: list[Hashable]
    leaves: NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Update:
    """Live keys and their leaves in the tree as it is, with new values and weights for their points."""

    keys: list[Hashable]
    leaves: NDArray[np.int32]
    points: Incoming
    weights: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Upsert:
    """New points, and new values for live ones: dissimilarities of both are to the live points and the new ones."""

    insert: Insert
    update: Update


@dataclass(frozen=True, slots=True)
class Keep:
    """Which points to keep from now on, None for all; and the time of the call, if it matters."""

    limits: Window | None
    moment: Moment | None


@dataclass(frozen=True, slots=True)
class Refine:
    """A refinement to a goal, or a part of one: a number of moves and grafts towards it.

    The steps are all that was done, also without a move; None if that is unknown. Nodes were renumbered up to
    `ordered_at`, which depends on the time that was left; None for wherever that pays. The next part of the same
    refinement is resumed.
    """

    until: str
    moves: int | None
    steps: int | None = None
    ordered_at: int | None = None
    is_resumed: bool = False


Edit = Insert | Remove | Update | Upsert | Keep | Refine


def commit(state: State, edit: Edit) -> Any:
    """Apply a checked edit, after writing it to the journal if there is one; return what the method returns.

    Ctrl-C takes effect when the edit is done or has been undone.
    """
    with Uninterrupted() as held, state.lock.access:
        if state.journal is None:
            return apply(state, edit, held)
        with state.journal.recording(edit):
            return apply(state, edit, held)


def apply(state: State, edit: Edit, held: Uninterrupted | None = None) -> Any:
    """Make a checked edit. Unless it is a refinement, the caller holds ``state.lock.access``, and Ctrl-C back."""
    match edit:
        case Insert():
            return _insert(state, edit, held or Uninterrupted())
        case Remove():
            _take_out(state, edit.keys, edit.leaves)
            state.n_edits += 1
            return None
        case Update():
            return _update(state, edit)
        case Upsert():
            return _upsert(state, edit, held or Uninterrupted())
        case Keep():
            return _keep(state, edit)
        case Refine():
            return _refine_again(state, edit)
        case _:
            assert_never(edit)


def check_insert(
    state: State,
    X: Any,
    keys: Any = None,
    sample_weight: Any = None,
    progress: Progress | bool | None = None,
    moment: Moment | None = None,
) -> Insert:
    """The edit that inserts points, from the arguments of `Hierarchy.insert`."""
    live, n_edits = state.live, state.n_edits
    keys, X, column_names = opened(state, X, keys)
    points = receive(live.scheme, X, None if live.is_blank else live, len(state.keys), state.note_narrowing)
    if live.is_blank and state.column_names is not None:
        _check_number_of_columns(state.column_names, points)
    count = len(points)
    weights = as_weights(sample_weight, count)
    chosen = None if keys is None else as_keys(keys)
    if chosen is not None:
        state.keys.check_new(chosen, count)
    if live.needs_order or progress is not None:  # a function is called last, for each pair
        with of_pairs(progress) as callback:
            points = compare(live.scheme, points, _objects(live, state.keys.leaves()), callback)
    state.refuse_edits_since(n_edits)
    if count:
        live.check_range(points, weights)
    return Insert(points, weights, chosen, moment, column_names)


def check_remove(state: State, keys: list[Hashable]) -> Remove:
    """The edit that removes the points of different keys."""
    return Remove(keys, state.keys.leaves_of(keys))


def check_update(
    state: State, keys: Any, X: Any, sample_weight: Any = None, progress: Progress | bool | None = None
) -> Update:
    """The edit that updates points, from the arguments of `Hierarchy.update`."""
    live, changed = state.live, state.named(keys)
    leaves = state.keys.leaves_of(changed)
    _, X, _ = opened(state, X)
    order, position = order_and_positions(state, leaves)
    weights = live.tree.size[leaves] if sample_weight is None else as_weights(sample_weight, leaves.size)
    n_edits = state.n_edits
    with of_pairs(progress) as callback:
        points = receive_changed(live.scheme, X, live, order, position, callback, state.note_narrowing)
    state.refuse_edits_since(n_edits)
    if leaves.size:
        live.check_range(points, weights)
    return Update(changed, leaves, points, weights)


def check_upsert(
    state: State,
    X: Any,
    keys: Any,
    sample_weight: Any,
    progress: Progress | bool | None = None,
    moment: Moment | None = None,
) -> Insert | Update | Upsert:
    """The edit that updates live points and inserts the others, from the arguments of `Hierarchy.upsert`."""
    live, n_edits = state.live, state.n_edits
    keys, X, column_names = opened(state, X, keys)
    if keys is None:
        raise InvalidKeyError("keys must say which points to update or insert; they are None")
    chosen = as_keys(keys)
    is_live = np.array([key in state.keys for key in chosen], np.bool_)
    if not is_live.any():
        return check_insert(state, X, chosen, sample_weight, progress, moment)
    if is_live.all():
        return check_update(state, chosen, X, sample_weight, progress)
    changed, new = np.flatnonzero(is_live), np.flatnonzero(~is_live)
    old_keys, new_keys = [chosen[i] for i in changed], [chosen[i] for i in new]
    leaves = state.keys.leaves_of(old_keys)
    weights = as_weights(sample_weight, len(chosen))
    old_weights = live.tree.size[leaves] if sample_weight is None else weights[changed]
    order, position = order_and_positions(state, leaves)
    with of_pairs(progress) as callback:
        updated, added = receive_both(live, X, order, position, changed, new, callback, state.note_narrowing)
    state.refuse_edits_since(n_edits)
    for points in (updated, added):
        live.check_range(points, np.concatenate([old_weights, weights[new]]))
    return Upsert(
        Insert(added, weights[new], new_keys, moment, column_names),
        Update(old_keys, leaves, updated, old_weights),
    )


def check_keep(state: State, last: int | None, max_age: float | None, time: float | None) -> Keep:
    """The edit that sets a window, from the arguments of `Hierarchy.keep`."""
    if last is None and max_age is None:
        raise ParameterError(
            "keep takes last, max_age or both; it got neither", remedy="use keep_all() to lift a window"
        )
    limits = Window(last, max_age)
    return Keep(limits, moment_of(_window_with(state, limits), time))


def insert(
    state: State, X: Any, keys: Any, sample_weight: Any, progress: Progress | bool | None, time: float | None
) -> list[Hashable]:
    """Insert points; if there are none, only move the window."""
    keys = _as_listing(keys)
    if type(X) is np.ndarray and X.shape[:1] == (1,) and sample_weight is time is progress is None:
        done = _insert_point(state, X, keys)
        if done is not None:
            return done
    moment = None if state.window is None and time is None else moment_of(state.window, time)
    edit = check_insert(state, X, keys, sample_weight, progress, moment)
    if edit.weights.size:
        added: list[Hashable] = commit(state, edit)
        return added
    expire(state, time)
    return []


def upsert(
    state: State, X: Any, keys: Any, sample_weight: Any, progress: Progress | bool | None, time: float | None
) -> list[Hashable]:
    """Update the points that are live, insert the others, and return the keys of these."""
    moment = None if state.window is None and time is None else moment_of(state.window, time)
    edit = check_upsert(state, X, keys, sample_weight, progress, moment)
    if isinstance(edit, Upsert) or edit.weights.size:
        added: list[Hashable] | None = commit(state, edit)
        if added is not None:
            return added
    expire(state, time)
    return []


def remove(state: State, keys: Any) -> None:
    """Remove points, if there are any."""
    gone = state.named(keys)
    if len(gone) == 1 and _remove_point(state, gone[0]):
        return
    edit = check_remove(state, gone)
    if edit.keys:
        commit(state, edit)


def update(state: State, keys: Any, X: Any, sample_weight: Any, progress: Progress | bool | None) -> None:
    """Update points, if there are any."""
    keys = _as_listing(keys)
    if type(X) is np.ndarray and X.shape[:1] == (1,) and sample_weight is None and _update_point(state, keys, X):
        return
    edit = check_update(state, keys, X, sample_weight, progress)
    if edit.keys:
        commit(state, edit)


def keep_all(state: State) -> None:
    """Lift the window, if there is one."""
    if state.window is not None:
        commit(state, Keep(None, None))


def expire(state: State, time: float | None) -> list[Hashable]:
    """Remove the points that are too old by now; return their keys."""
    moment = moment_of(state.window, time)
    if state.window is None:
        return []
    if _outside(state, moment)[0]:
        gone: list[Hashable] = commit(state, Keep(state.window.limits, moment))
        return gone
    with state.lock.access:
        state.window.move_to(moment)
    return []


def refine(
    state: State,
    seconds: float | None = None,
    moves: int | None = None,
    until: str | None = None,
    progress: Callable[[Report], object] | bool | None = None,
) -> Report:
    """Refine within budgets. If there is a journal, the progress of the refinement is recorded there."""
    budget = as_seconds(seconds)
    max_moves = None if moves is None else as_whole_number("moves", moves)
    goal = as_choice("until", state.live.aim.goal if until is None else until, GOALS)
    with of_refinement(progress) as callback:
        if state.journal is None:
            return _refine(state, goal, budget, max_moves, callback)

        def run_with(keep: Callable[[Report], object]) -> Report:
            def both(report: Report) -> None:
                keep(report)
                if callback is not None:
                    callback(report)

            return _refine(state, goal, budget, max_moves, both)

        return state.journal.refining(goal, run_with, seconds is not None)


def set_scheme(state: State, scheme: Scheme, X: Any) -> Report:
    """Change the linkage or the metric, or both. The tree is kept, and refined; or the points are clustered anew."""
    if state.journal is None:
        _adopt(state, scheme, X)
        return refine(state)
    with state.journal.replacing():
        _adopt(state, scheme, X)
        return _refine(state, state.live.aim.goal, None, None, None)


def set_threads(state: State, n_threads: int | None) -> None:
    """Set the number of threads for large edits and refinements."""
    if state.journal is not None and n_threads is not None:
        raise ParameterError(
            "n_jobs must be None for a durable hierarchy: when the file is opened, edits are made again as one thread "
            "made them. Build a large tree in memory with n_jobs, and give it to open(path, start=...)"
        )
    with state.lock.edits:
        state.live.aim = replace(state.live.aim, n_threads=n_threads)


def begin(state: State, X: Any, keys: Any, sample_weight: Any) -> NDArray[np.int32]:
    """Leaves for all points of a new hierarchy, not in a tree yet."""
    edit = check_insert(state, X, keys, sample_weight)
    count = len(edit.points)
    if count == 0:
        return NO_LEAVES
    state.live = _with_room(state.live, edit.points, count)
    leaves = state.live.add_leaves(edit.points, edit.weights, state.keys.next_births(count), NO_LEAVES)
    state.keys.add(edit.keys, leaves)
    state.column_names = edit.column_names or state.column_names
    return leaves


def order_and_positions(state: State, leaves: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.intp]]:
    """The leaves that stored dissimilarities refer to, and the positions of the changed points among them."""
    if not state.live.needs_order:
        return leaves, np.arange(leaves.size)
    order = state.keys.leaves()
    place = np.empty(state.live.capacity, np.intp)
    place[order >> 1] = np.arange(order.size)
    return order, place[leaves >> 1]


def opened(state: State, X: Any, keys: Any = None) -> tuple[Any, Any, tuple[str, ...] | None]:
    """Keys, points, and the names of their columns: a data frame may have all three."""
    if type(X) is np.ndarray or not is_frame(X):
        return keys, X, None
    if isinstance(keys, str):
        keys, X = take_keys(X, keys)
    if state.live.scheme.holds == DISSIMILARITIES:
        return keys, X, None
    return keys, *in_order(X, state.column_names)


def _check_number_of_columns(names: tuple[str, ...], points: Incoming) -> None:
    if len(points) and points.n_columns not in (None, len(names)):
        raise DimensionError(f"X must have {len(names)} columns, {listed(names)}; it has {points.n_columns}")


def _objects(live: LiveTree, leaves: NDArray[np.int32]) -> Any:
    """The objects of a tree whose metric is a function; none for other trees."""
    return live.points(leaves) if live.scheme.holds == OBJECTS and leaves.size else []


def _insert(state: State, edit: Insert, held: Uninterrupted) -> list[Hashable]:
    """Insert points, remove those that are then outside the window, and return the new keys."""
    added = _add(state, edit, held)
    if state.window is not None:
        _move_window(state, state.window, edit.moment)
    return added


def _insert_point(state: State, X: NDArray[Any], keys: Any) -> list[Hashable] | None:
    """Insert one point in the shortest way, the most frequent edit of all; None if it is not that simple."""
    if state.journal is not None or state.window is not None:
        return None
    chosen = None if keys is None else as_keys(keys)
    if chosen is not None:
        state.keys.check_new(chosen, 1)
    with Uninterrupted(), state.lock.access:
        live, table = state.live, state.keys
        table.reserve(1)
        leaf = live.insert_point(X, table.next_birth)
        if leaf == NULL:
            return None
        try:
            added = table.add_one(chosen, leaf)
        except BaseException:  # of a user's own class of keys
            _take_back(live, np.array([leaf], np.int32))
            raise
        place = live.reorder()
        if place is not None:
            table.relocate(place)
        state.n_edits += 1
        return added


def _update_point(state: State, keys: Any, X: NDArray[Any]) -> bool:
    """Update one point in the shortest way; False if it is not that simple."""
    if state.journal is not None:
        return False
    changed = state.named(keys)
    if len(changed) != 1:
        return False
    leaf = state.keys.leaf_of(changed[0])
    with Uninterrupted(), state.lock.access:
        is_done = state.live.update_point(leaf, X)
        state.n_edits += is_done
        return is_done


def _remove_point(state: State, key: Hashable) -> bool:
    """Remove one point in the shortest way; False if it is not that simple."""
    if state.journal is not None:
        return False
    leaf = state.keys.leaf_of(key)
    with Uninterrupted(), state.lock.access:
        is_done = state.live.remove_point(leaf)
        if is_done:
            state.keys.discard([key])
            state.n_edits += 1
        return is_done


def _as_listing(keys: Any) -> Any:
    """Keys that can be read twice: an iterator becomes a list."""
    return list(keys) if isinstance(keys, Iterator) else keys


def _take_back(live: LiveTree, leaves: NDArray[np.int32]) -> None:
    """Remove new leaves from a tree, as many of them as are in it; no other leaf takes them for near any more."""
    live.forget_neighbours(leaves, 0)
    live.detach(leaves[(live.tree.parent[leaves] > NULL) | (leaves == live.root)])
    live.release(leaves)


def _upsert(state: State, edit: Upsert, held: Uninterrupted) -> list[Hashable]:
    """Insert points and update others, and return the new keys. The insertion comes first, as it may fail."""
    n_live = len(state.keys)
    added = _add(state, edit.insert, held)
    n_passing = len(added) - (len(state.keys) - n_live)
    points = without_columns(edit.update.points, n_live, n_passing)
    _update(state, replace(edit.update, leaves=state.keys.leaves_of(edit.update.keys), points=points))
    if state.window is not None:
        _move_window(state, state.window, edit.insert.moment)
    return added


def _move_window(state: State, window: MovingWindow, moment: Moment | None) -> None:
    """Admit the points that have just come, and remove those that are now outside the window."""
    window.admit(state.keys.next_birth, moment)
    _take_out(state, *_outside(state, moment))
    window.move_to(moment)


def _add(state: State, edit: Insert, held: Uninterrupted) -> list[Hashable]:
    """Insert points, and return their keys; those that the window would not keep are numbered only."""
    keys, window = state.keys, state.window
    n_passing = 0 if window is None else window.n_passing(edit.weights.size)
    points, weights = edit.points, edit.weights
    births = keys.next_births(weights.size)
    if n_passing:
        points = without_first(points, n_passing, len(keys))
        weights, births = weights[n_passing:], births[n_passing:]
    is_large = BATCH_FACTOR * weights.size >= len(keys) or (state.live.is_exact and weights.size > MOST_REPAIRS)
    n_points = len(keys) + weights.size
    is_clustered = is_large and may_cluster(state.live, n_points)
    is_clustered = is_clustered or is_faster(state.live, n_points, points.coordinates)
    undo = None
    if weights.size >= UNDOABLE and weights.size >= len(keys) and not is_clustered:
        undo = state.live.copy(), keys.copy()
    live = _with_room(state.live, points, weights.size)
    keys.reserve(weights.size)
    leaves = live.add_leaves(points, weights, births, keys.leaves() if live.needs_order else NO_LEAVES)
    try:
        if is_clustered:
            everything = np.concatenate([keys.leaves(), leaves])
            if not cluster(live, everything, lambda: held.should_stop):
                raise KeyboardInterrupt
        else:
            _attach(state, live, leaves, lambda: undo is not None and held.should_stop)
        added = keys.add(edit.keys, leaves, n_passing)
    except BaseException:  # such as a lack of memory: threads take some
        if undo is not None:
            state.live, state.keys = undo
        else:
            _take_back(live, leaves)
        raise
    state.live = live
    state.n_edits += 1
    if edit.column_names is not None:
        state.column_names = edit.column_names
    return added


def _attach(state: State, live: LiveTree, leaves: NDArray[np.int32], should_stop: Callable[[], bool]) -> None:
    """Insert new leaves into the tree, and renumber them in place with all others. Stopped, it raises."""
    start = 0
    while start < leaves.size and not should_stop():
        start += live.insert_some(leaves[start:], should_stop)
        place = live.reorder()
        if place is not None:
            state.keys.relocate(place)
            leaves[:] = place[leaves]
    if should_stop():
        raise KeyboardInterrupt


def _with_room(live: LiveTree, points: Incoming, count: int) -> LiveTree:
    """The tree with room for new points; the first points set the number of columns and the dtype."""
    if live.is_blank:
        live = new_tree(live.scheme, live.aim, points.n_columns, points.stored.dtype)
        live.reserve(count)
        live.warm_up()
    live.reserve(count)
    return live


def _update(state: State, edit: Update) -> None:
    live, leaves, was_exact = state.live, edit.leaves, state.live.is_exact
    births = live.tree.birth[leaves]
    order = state.keys.leaves() if live.needs_order else leaves
    live.detach(leaves)
    live.fill(leaves, edit.points, edit.weights, births, order)
    live.insert(leaves)
    if was_exact:
        _make_exact(state)
    state.n_edits += 1


def _make_exact(state: State) -> None:
    """Cluster all points again if the tree was exact, and an edit was too large for repairs."""
    live = state.live
    if not live.is_exact and len(state.keys) and may_cluster(live, len(state.keys)):
        cluster(live, state.keys.leaves())


def _take_out(state: State, keys: list[Hashable], leaves: NDArray[np.int32]) -> None:
    """Remove live points, if there are any, from the tree."""
    if keys:
        was_exact = state.live.is_exact
        state.live.detach(leaves)
        state.live.release(leaves)
        state.keys.discard(keys)
        if was_exact:
            _make_exact(state)


def _window_with(state: State, limits: Window | None) -> MovingWindow | None:
    """A window with these limits and the arrival times of the current one."""
    if limits is None or state.window is None:
        return None if limits is None else MovingWindow(limits)
    return state.window.changed(limits)


def _keep(state: State, edit: Keep) -> list[Hashable]:
    """Set a window, or lift it; take out what is outside, and return its keys."""
    before, window = state.window, _window_with(state, edit.limits)
    if window is not None and len(state.keys) and window.n_marks == 0:
        window.admit(state.keys.next_birth, edit.moment)
    state.window = window
    try:
        gone, leaves = _outside(state, edit.moment)
        _take_out(state, gone, leaves)
    except BaseException:
        state.window = before
        raise
    if window is not None:
        window.move_to(edit.moment)
    state.n_edits += 1
    return gone


def _outside(state: State, moment: Moment | None) -> tuple[list[Hashable], NDArray[np.int32]]:
    """The keys and the leaves of the points that are outside the window, oldest first. O(their number)."""
    if state.window is None:
        return [], NO_LEAVES
    birth, last = state.window.too_old(moment), state.window.limits.last
    n_outside = 0 if last is None else max(len(state.keys) - last, 0)
    if birth == 0:
        return state.keys.oldest(n_outside)
    count = max(n_outside, _FIRST_LOOK)
    while True:
        keys, leaves = state.keys.oldest(count)
        n_old = int(np.searchsorted(state.live.tree.birth[leaves], birth))
        if n_old < count:
            n_outside = max(n_outside, n_old)
            return keys[:n_outside], leaves[:n_outside]
        count *= 4


def _refine(
    state: State, goal: str, seconds: float | None, moves: int | None, progress: Callable[[Report], object] | None
) -> Report:
    live = state.live
    live.warm_up_threads()

    def reorder(share: float) -> None:
        if state.live is live:  # a callback may have changed the linkage
            _reorder(state, share)

    return run(live, goal, seconds, moves, progress, reorder, state.lock, is_recorded=state.journal is not None)


def _refine_again(state: State, edit: Refine) -> Report:
    """Refine as far as it was done before, and renumber the nodes where it was done before."""
    live = state.live

    def reorder(share: float) -> None:
        is_start = share < REORDER_SHARE
        if not (edit.is_resumed and is_start) and (edit.ordered_at is None or live.ordered_at < edit.ordered_at):
            _reorder(state, share)

    moves = edit.moves if edit.steps is None else None
    return run(live, edit.until, None, moves, None, reorder, state.lock, edit.steps, is_recorded=True)


def _reorder(state: State, share: float) -> None:
    """Renumber the nodes if a share of them is out of order."""
    with Uninterrupted(), state.lock.access:
        place = state.live.reorder(share)
        if place is not None:
            state.keys.relocate(place)


def _adopt(state: State, scheme: Scheme, X: Any) -> None:
    """Switch the tree to another scheme, keeping its shape."""
    old, leaves = state.live, state.keys.leaves()
    if leaves.size == 0:
        if X is not None and len(X):
            raise DimensionError(f"X must be None for an empty hierarchy; it has {len(X)} points")
        with state.lock.access:
            state.live = new_tree(scheme, old.aim, None, old.dtype)
            state.n_edits += 1
        return
    if X is None and DISSIMILARITIES in (scheme.holds, old.scheme.holds) and scheme.holds != old.scheme.holds:
        what = "the matrix of dissimilarities" if scheme.holds == DISSIMILARITIES else "the points"
        raise ParameterError(
            f"the hierarchy does not have what metric={scheme.metric_name} compares: give X, {what} in the order of "
            "keys()"
        )
    n_edits, column_names = state.n_edits, state.column_names
    if scheme.holds == DISSIMILARITIES:
        column_names = None
    elif X is not None:
        X, column_names = in_order(X, None) if is_frame(X) else (X, None)
    if X is None and scheme.metric == old.scheme.metric and old.needs_order:
        points = receive_again(old, leaves)
    else:
        points = receive(scheme, old.points(leaves) if X is None else X)
        if len(points) != leaves.size:
            raise DimensionError(f"X must have {leaves.size} points, one for each of keys(); it has {len(points)}")
        points = compare(scheme, points, [])
        state.refuse_edits_since(n_edits)
    live = new_tree(scheme, old.aim, points.n_columns, points.stored.dtype)
    live.check_range(points, old.tree.size[leaves])
    with Uninterrupted() as held:
        is_clustered = may_cluster(live, leaves.size) or is_faster(live, leaves.size, points.coordinates)
        with state.lock.access:  # a reader may have guests in the old tree
            live.adopt(old, leaves, points)
        if not is_clustered:
            live.rebuild()
        elif not cluster(live, leaves, lambda: held.should_stop):
            raise KeyboardInterrupt
        with state.lock.access:
            state.live, state.column_names = live, column_names
            state.n_edits += 1
