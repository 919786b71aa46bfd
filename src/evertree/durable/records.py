"""Edits as bytes, and back: a JSON header and arrays as they are in memory. No pickle.

A record is the length of its header (4 bytes, little-endian), the header, and the concatenated bytes of its arrays,
whose names, dtypes and shapes are in the header. It is written from a list of its pieces: arrays may be large, and are
not copied.
"""

from __future__ import annotations

import functools
import json
import operator
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, assert_never

import numpy as np
from numpy.typing import NDArray

from evertree.edits import Edit, Insert, Keep, Refine, Remove, Update, Upsert, order_and_positions
from evertree.input.arrays import (
    GOALS,
    as_choice,
    as_column_names,
    as_dissimilarities,
    as_keys,
    as_number,
    as_weights,
    as_whole_number,
)
from evertree.input.points import receive
from evertree.io.json_values import decode_all, encode_all, numeric_dtype, to_json
from evertree.state import State
from evertree.tree import Incoming
from evertree.windows import Moment, Window

_LENGTH = 4

#: Arrays of up to this many bytes are copied, which takes less time than to handle pieces.
_SMALL = 1 << 14

#: The pieces of a record: bytes, and arrays of at least one dimension.
Record = Sequence[bytes | NDArray[Any]]


def pack(edit: Edit) -> tuple[str, Record]:
    """The kind of an edit, and its record."""
    match edit:
        case Insert():
            return "insert", _pack_points(edit.keys, edit.points, edit.weights, edit.moment, edit.column_names)
        case Remove():
            return "remove", as_record({"keys": encode_all(edit.keys)}, {})
        case Update():
            return "update", _pack_points(edit.keys, edit.points, edit.weights)
        case Upsert():
            insert, update = pack(edit.insert)[1], pack(edit.update)[1]
            start = _start_of({}, [("insert", "|u1", (size_of(insert),)), ("update", "|u1", (size_of(update),))])
            return "upsert", [start, *insert, *update]
        case Keep():
            window = None if edit.limits is None else [edit.limits.last, edit.limits.max_age]
            return "keep", as_record({"window": window}, _arrays_of(edit.moment))
        case Refine():
            return "refine", as_record(asdict(edit), {})
        case _:
            assert_never(edit)


def size_of(record: Record) -> int:
    """The number of bytes of a record."""
    if len(record) == 1:
        return len(record[0])
    return sum([len(piece) if isinstance(piece, bytes) else piece.nbytes for piece in record])


def joined(record: Record) -> bytes:
    """The bytes of a record."""
    if len(record) == 1 and isinstance(record[0], bytes):
        return record[0]
    return b"".join([piece if isinstance(piece, bytes) else piece.tobytes() for piece in record])


def chunks(record: Record, size: int) -> Iterator[Any]:
    """The bytes of a record in chunks of about `size` bytes: arrays are cut into rows, and not copied."""
    for piece in record:
        per_row = 1 if isinstance(piece, bytes) else piece[:1].nbytes
        n_rows = max(size // max(per_row, 1), 1)
        for start in range(0, len(piece), n_rows):
            some = piece[start : start + n_rows]
            yield some if isinstance(some, bytes) else np.ascontiguousarray(some)


def unpack(state: State, kind: str, record: bytes | bytearray) -> Edit:
    """The edit in a record, checked against the state to be changed; many kinds of errors if it is invalid."""
    header, arrays = from_record(record)
    match kind:
        case "insert":
            return _unpack_insert(state, header, arrays)
        case "remove":
            keys = _keys_of(header)
            return Remove(keys, state.keys.leaves_of(keys))
        case "update":
            return _unpack_update(state, header, arrays)
        case "upsert":
            insert = _unpack_insert(state, *from_record(arrays["insert"].data))
            update = _unpack_update(state, *from_record(arrays["update"].data), len(insert.points))
            return Upsert(insert, update)
        case "keep":
            return Keep(None if header["window"] is None else Window(*header["window"]), _moment_of(arrays))
        case "refine":
            return _unpack_refine(header)
        case _:
            raise ValueError(f"{kind!r} is no kind of edit")


def array_of(data: Any, kind: str, shape: Any) -> NDArray[Any]:
    """The array at the start of some bytes."""
    dtype, count = numeric_dtype(kind), 1
    for length in shape:
        if type(length) is not int or length < 0:
            raise ValueError(f"{shape} is no shape")
        count *= length
    if count == 0:
        return np.empty(shape, dtype)
    return np.frombuffer(data, dtype, count).reshape(shape)


def as_record(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Record:
    """The record of a header and arrays."""
    return [_start_of(header, [(name, a.dtype.str, a.shape) for name, a in arrays.items()]), *arrays.values()]


def _start_of(header: Mapping[str, Any], arrays: list[tuple[str, str, tuple[int, ...]]]) -> bytes:
    """What comes before the arrays of a record, which have these names, dtypes and shapes."""
    text = to_json({**header, "arrays": arrays})
    return len(text).to_bytes(_LENGTH, "little") + text


def from_record(record: bytes | bytearray | memoryview) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The header and the arrays of a record; ValueError, LookupError or TypeError if it is invalid."""
    start = _LENGTH + int.from_bytes(record[:_LENGTH], "little")
    header = json.loads(bytes(record[_LENGTH:start]))
    arrays = {}
    for name, kind, shape in header.pop("arrays"):
        array = array_of(memoryview(record)[start:], kind, shape)
        arrays[name] = array
        start += array.nbytes
    if start != len(record):
        raise ValueError(f"a record of {start} bytes has {len(record)}")
    return header, arrays


def _pack_points(
    keys: list[Hashable] | None,
    points: Incoming,
    weights: NDArray[np.float64],
    moment: Moment | None = None,
    column_names: tuple[str, ...] | None = None,
) -> Record:
    """A record of points that are inserted or updated.

    Vectors are stored as they were given, since coordinates are computed from them. Dissimilarities are stored too, so
    that a function need not be called again. Which points leave a window on an insertion follows from its moment.
    """
    arrays = _arrays_of(moment)
    if keys is None and points.dissimilarities is None and column_names is None:
        given = points.points
        start = _vectors(given.dtype.str, given.shape, bool(arrays))
        if given.nbytes <= _SMALL:
            when = b"".join([array.tobytes() for array in arrays.values()])
            return [start + when + weights.tobytes() + given.tobytes()]
        return [start, *arrays.values(), weights, given]
    header: dict[str, Any] = {"keys": None if keys is None else encode_all(keys)}
    if column_names is not None:
        header["column_names"] = column_names
    arrays["weights"] = weights
    if isinstance(points.points, np.ndarray):
        arrays["points"] = points.points
    elif points.points is not None:
        header["points"] = encode_all(points.points)
    if points.dissimilarities is not None:
        arrays["dissimilarities"] = points.dissimilarities
        header["n_evaluated"] = points.n_evaluated
    return as_record(header, arrays)


@functools.lru_cache
def _vectors(kind: str, shape: tuple[int, int], has_moment: bool) -> bytes:
    """The start of a record of vectors without chosen keys: the same for every single point."""
    arrays: list[tuple[str, str, tuple[int, ...]]] = [("moment", "<f8", (2,))] if has_moment else []
    return _start_of({"keys": None}, [*arrays, ("weights", "<f8", shape[:1]), ("points", kind, shape)])


def _unpack_insert(state: State, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Insert:
    live, given = state.live, _points_of(header, arrays)
    if live.needs_order:
        matrix = as_dissimilarities(arrays["dissimilarities"], len(state.keys), None if live.is_blank else live.dtype)
        points = Incoming(given, None, matrix, as_whole_number("n_evaluated", header["n_evaluated"]))
    else:
        points = receive(live.scheme, given, None if live.is_blank else live)
    keys = None if header["keys"] is None else _keys_of(header)
    if keys is not None:
        state.keys.check_new(keys, len(points))
    column_names = as_column_names(header.get("column_names"))
    if column_names is not None and points.n_columns not in (None, len(column_names)):
        raise ValueError(f"{points.n_columns} columns have {len(column_names)} names")
    return Insert(points, as_weights(arrays["weights"], len(points)), keys, _moment_of(arrays), column_names)


def _unpack_update(
    state: State, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], n_new: int = 0
) -> Update:
    """An update; as part of an upsert, it has dissimilarities to `n_new` new points as well."""
    live, keys, given = state.live, _keys_of(header), _points_of(header, arrays)
    leaves = state.keys.leaves_of(keys)
    if live.needs_order:
        order, position = order_and_positions(state, leaves)
        matrix = as_dissimilarities(arrays["dissimilarities"], order.size + n_new, live.dtype, position)
        points = Incoming(given, None, matrix, as_whole_number("n_evaluated", header["n_evaluated"]))
    else:
        points = receive(live.scheme, given, live)
    if len(points) != leaves.size:
        raise ValueError(f"{leaves.size} keys have {len(points)} points")
    return Update(keys, leaves, points, as_weights(arrays["weights"], leaves.size))


def _unpack_refine(header: Mapping[str, Any]) -> Refine:
    """A refinement. Older versions recorded the goal and the moves alone."""
    moves, steps = (
        None if header.get(name) is None else as_whole_number(name, header[name]) for name in ("moves", "steps")
    )
    ordered_at = header.get("ordered_at")
    if ordered_at is not None:
        ordered_at = operator.index(ordered_at)
    return Refine(as_choice("until", header["until"], GOALS), moves, steps, ordered_at, bool(header.get("is_resumed")))


def _arrays_of(moment: Moment | None) -> dict[str, NDArray[Any]]:
    return {} if moment is None else {"moment": np.array(moment, np.float64)}


def _moment_of(arrays: Mapping[str, NDArray[Any]]) -> Moment | None:
    """When the edit was made, if a window needs it."""
    if "moment" not in arrays:
        return None
    time, is_given = arrays["moment"].tolist()
    return Moment(as_number("time", time), bool(is_given))


def _keys_of(header: Mapping[str, Any]) -> list[Hashable]:
    return as_keys(decode_all(header["keys"]))


def _points_of(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Any:
    """The points of an edit: an array, a list of objects, or None."""
    return decode_all(header["points"]) if "points" in header else arrays.get("points")
