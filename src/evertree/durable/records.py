"""Edits as bytes, and back: a header in JSON, and arrays as they are in memory. No pickle.

A record is the length of its header (4 bytes, little-endian), the header, and the bytes of its arrays, one after the
other, whose names, types and shapes are in the header.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertree.input.arrays import as_number
from evertree.io.json_values import decode_all, encode_all, numeric_dtype, to_json
from evertree.tree import Incoming
from evertree.windows import Moment, Window

_LENGTH = 4


def pack(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """A record."""
    text = to_json({**header, "arrays": [(name, a.dtype.str, a.shape) for name, a in arrays.items()]})
    return b"".join([len(text).to_bytes(_LENGTH, "little"), text, *(array.tobytes() for array in arrays.values())])


def unpack(record: bytes) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The header and the arrays of a record; ValueError, LookupError or TypeError if it is none."""
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


def array_of(data: Any, kind: str, shape: Any) -> NDArray[Any]:
    """The array that begins where some bytes do."""
    dtype, count = numeric_dtype(kind), 1
    for length in shape:
        if type(length) is not int or length < 0:
            raise ValueError(f"{shape} is no shape")
        count *= length
    if count == 0:
        return np.empty(shape, dtype)
    return np.frombuffer(data, dtype, count).reshape(shape)


def pack_edit(
    keys: list[Hashable] | None,
    incoming: Incoming | None,
    weights: NDArray[np.float64] | None,
    moment: Moment | None = None,
) -> bytes:
    """A record of points that come, go or change.

    Vectors are kept as they were given, since coordinates follow from them. Dissimilarities are kept too: of those that
    a function gave, so that it need not be called again. What leaves a window when points come follows from the moment.
    """
    arrays = _arrays_of(moment)
    if keys is None and incoming is not None and incoming.dissimilarities is None and weights is not None:
        points, when = incoming.points, b"".join(array.tobytes() for array in arrays.values())
        return _vectors(points.dtype.str, points.shape, bool(arrays)) + when + weights.tobytes() + points.tobytes()
    header: dict[str, Any] = {"keys": None if keys is None else encode_all(keys)}
    if incoming is not None and weights is not None:
        arrays["weights"] = weights
        if isinstance(incoming.points, np.ndarray):
            arrays["points"] = incoming.points
        elif incoming.points is not None:
            header["points"] = encode_all(incoming.points)
        if incoming.dissimilarities is not None:
            arrays["dissimilarities"] = incoming.dissimilarities
            header["n_evaluated"] = incoming.n_evaluated
    return pack(header, arrays)


@functools.lru_cache
def _vectors(kind: str, shape: tuple[int, int], has_moment: bool) -> bytes:
    """The beginning of a record of vectors without keys of their own: the same for every single point."""
    arrays = _arrays_of(Moment(0.0, False) if has_moment else None)
    arrays |= {"weights": np.empty(shape[0]), "points": np.empty(shape, kind)}
    return pack({"keys": None}, arrays)[: -sum(array.nbytes for array in arrays.values())]


def pack_window(limits: Window | None, moment: Moment | None) -> bytes:
    """A record of a window that is set, or lifted."""
    return pack({"window": None if limits is None else [limits.last, limits.max_age]}, _arrays_of(moment))


def window_of(header: Mapping[str, Any]) -> Window | None:
    """The window in the header of a record."""
    return None if header["window"] is None else Window(*header["window"])


def _arrays_of(moment: Moment | None) -> dict[str, NDArray[Any]]:
    return {} if moment is None else {"moment": np.array(moment, np.float64)}


def recorded_moment(arrays: Mapping[str, NDArray[Any]]) -> Moment | None:
    """When the edit was made, where a window has to know."""
    if "moment" not in arrays:
        return None
    time, is_given = arrays["moment"].tolist()
    return Moment(as_number("time", time), bool(is_given))


def keys_of(header: Mapping[str, Any]) -> list[Hashable] | None:
    """The keys in the header of an edit."""
    return None if header["keys"] is None else decode_all(header["keys"])


def points_of(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Any:
    """The points of an edit: an array, a list of objects, or None."""
    return decode_all(header["points"]) if "points" in header else arrays.get("points")
