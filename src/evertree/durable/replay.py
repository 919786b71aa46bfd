"""What is in the file, made again in memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from evertree.durable.records import keys_of, points_of, recorded_moment, unpack, window_of
from evertree.durable.sqlite_file import Database
from evertree.errors import CorruptFileError, EvertreeError, InvariantError
from evertree.hierarchy import Hierarchy
from evertree.input.arrays import as_dissimilarities, as_weights, as_whole_number
from evertree.input.points import receive
from evertree.io import snapshot
from evertree.io.archive import SIGNS_OF_DAMAGE
from evertree.tree import Incoming, invariants


def read_snapshot(database: Database, metric: Any) -> Hierarchy:
    """The hierarchy of the snapshot. `metric` is the function that was the metric, if it was one and there is one."""
    try:
        header, arrays = database.read_snapshot()
    except EvertreeError:
        raise
    except SIGNS_OF_DAMAGE as error:
        raise CorruptFileError(f"{database.path} is damaged: {error}") from error
    function = metric if callable(metric) and header.get("metric") is None else None
    live, keys, options = snapshot.restored(header, arrays, database.path, function)
    return Hierarchy._assembled(options["seed"], live, keys, options["window"])


def check_tree(h: Hierarchy, path: str) -> None:
    """Refuse what edits have not made a tree of. O(n m)."""
    try:
        invariants.check_all_but_statistics(h.state.live, h.state.keys.leaves())
    except InvariantError as error:
        raise CorruptFileError(f"{path} is damaged: {error}") from error


def make_again(h: Hierarchy, kind: str, payload: bytes, path: str, seq: int) -> None:
    """Make an edit, or the moves of a refinement, that the journal has as number `seq`."""
    try:
        header, arrays = unpack(payload)
        if kind == "insert":
            _insert_again(h, header, arrays)
        elif kind == "remove":
            h.remove(keys_of(header))
        elif kind == "update":
            _update_again(h, header, arrays)
        elif kind == "keep":
            h._keep(h._window_with(window_of(header)), recorded_moment(arrays))
        elif kind == "refine":
            h.refine(until=header["until"], moves=header["moves"])
        else:
            raise ValueError(f"{kind!r} is no kind of edit")
    except SIGNS_OF_DAMAGE as error:
        raise CorruptFileError(f"{path} is damaged: edit {seq} cannot be made again: {error}") from error


def _insert_again(h: Hierarchy, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    live = h.state.live
    points = points_of(header, arrays)
    if live.needs_order:
        matrix = as_dissimilarities(arrays["dissimilarities"], len(h), None if live.is_blank else live.dtype)
        incoming = Incoming(points, None, matrix, as_whole_number("n_evaluated", header["n_evaluated"]))
    else:
        incoming = receive(live.scheme, points, None if live.is_blank else live)
    count = len(incoming)
    weights, chosen = as_weights(arrays["weights"], count), h._new_keys(keys_of(header), count)
    h._insert(incoming, weights, chosen, recorded_moment(arrays))


def _update_again(h: Hierarchy, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    live, keys = h.state.live, keys_of(header)
    if keys is None:
        raise ValueError("an update has no keys")
    leaves = h.state.keys.leaves_of(keys)
    points = points_of(header, arrays)
    if live.needs_order:
        order, position = h._order_and_positions(leaves)
        matrix = as_dissimilarities(arrays["dissimilarities"], order.size, live.dtype, position)
        incoming = Incoming(points, None, matrix, as_whole_number("n_evaluated", header["n_evaluated"]))
    else:
        incoming = receive(live.scheme, points, live)
    if len(incoming) != leaves.size:
        raise ValueError(f"{leaves.size} keys have {len(incoming)} points")
    h._update(keys, leaves, incoming, as_weights(arrays["weights"], leaves.size))
