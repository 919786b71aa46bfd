"""Edits as bytes, and back: a JSON header and arrays as they are in memory. No pickle.

A record is the length of its header (4 bytes, little-endian), the header, and the concatenated bytes of its arrays,
whose names, dtypes and shapes are in the header.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Hashable, Mapping
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


def pack(edit: Edit) -> tuple[str, bytes]:
    """The kind of an edit, and its record."""
    match edit:
        case Insert():
            return "insert", _pack_points(edit.keys, edit.points, edit.weights, edit.moment, edit.column_names)
        case Remove():
            return "remove", as_record({"keys": encode_all(edit.keys)}, {})
        case Update():
            return "update", _pack_points(edit.keys, edit.points, edit.weights)
        case Upsert():
            parts = {part: np.frombuffer(pack(getattr(edit, part))[1], np.uint8) for part in ("insert", "update")}
            return "upsert", as_record({}, parts)
        case Keep():
            window = None if edit.limits is None else [edit.limits.last, edit.limits.max_age]
            return "keep", as_record({"window": window}, _arrays_of(edit.moment))
        case Refine():
            return "refine", as_record({"until": edit.until, "moves": edit.moves}, {})
        case _:
            assert_never(edit)


def unpack(state: State, kind: str, record: bytes) -> Edit:
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
            insert = _unpack_insert(state, *from_record(arrays["insert"].tobytes()))
            update = _unpack_update(state, *from_record(arrays["update"].tobytes()), len(insert.points))
            return Upsert(insert, update)
        case "keep":
            return Keep(None if header["window"] is None else Window(*header["window"]), _moment_of(arrays))
        case "refine":
            moves = header["moves"]
            goal = as_choice("until", header["until"], GOALS)
            return Refine(goal, None if moves is None else as_whole_number("moves", moves))
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


def as_record(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """A header and arrays as bytes."""
    start = _start_of(header, [(name, a.dtype.str, a.shape) for name, a in arrays.items()])
    return b"".join([start, *(array.tobytes() for array in arrays.values())])


def _start_of(header: Mapping[str, Any], arrays: list[tuple[str, str, tuple[int, ...]]]) -> bytes:
    """What comes before the arrays of a record, which have these names, dtypes and shapes."""
    text = to_json({**header, "arrays": arrays})
    return len(text).to_bytes(_LENGTH, "little") + text


def from_record(record: bytes) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The header and the arrays of a record; ValueError, LookupError or TypeError if it is invalid."""
    start = _LENGTH + int.from_bytes(record[:_LENGTH], "little")
    header = json.loads(record[_LENGTH:start])
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
) -> bytes:
    """A record of points that are inserted or updated.

    Vectors are stored as they were given, since coordinates are computed from them. Dissimilarities are stored too, so
    that a function need not be called again. Which points leave a window on an insertion follows from its moment.
    """
    arrays = _arrays_of(moment)
    if keys is None and points.dissimilarities is None and column_names is None:
        given, when = points.points, b"".join(array.tobytes() for array in arrays.values())
        return _vectors(given.dtype.str, given.shape, bool(arrays)) + when + weights.tobytes() + given.tobytes()
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
