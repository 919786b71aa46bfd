"""Keys and points as JSON values, and back. No pickle."""

from __future__ import annotations

import datetime
import json
import re
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from evertree.errors import NotSavableError

#: The kinds of NumPy dtypes that can be written, and the dtypes that a file may name.
_NUMBERS = "fiub"
_NAME = re.compile(rf"[<>|]?[{_NUMBERS}][0-9]{{1,2}}")


def encode_all(values: Sequence[Any]) -> list[Any]:
    """Values as JSON values."""
    try:
        return [_encode(value) for value in values]
    except RecursionError:
        raise NotSavableError(
            "a key or a point is nested too deeply to be saved: use flat tuples, or numbers and strings"
        ) from None


def decode_all(items: Sequence[Any]) -> list[Any]:
    """The values that `encode_all` encoded."""
    return [_decode(item) for item in items]


def numeric_dtype(name: Any) -> np.dtype[Any]:
    """The numeric dtype with this name; ValueError for any other: a forged string dtype could claim any length."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is not a numeric dtype")
    try:
        return np.dtype(name)
    except TypeError as error:
        raise ValueError(str(error)) from None


def _encode_set(values: Any) -> list[Any]:
    return sorted(encode_all(list(values)), key=repr)


def _encode_array(array: Any) -> list[Any]:
    if array.dtype.kind not in _NUMBERS:
        raise _refusal(array)
    return [array.dtype.str, array.tolist()]


def _decode_array(item: Any) -> Any:
    kind, values = item
    return np.array(values, numeric_dtype(kind))


# How to write and read types that JSON lacks. A value must have exactly that type.
_CODECS: dict[str, tuple[type[Any], Callable[[Any], Any], Callable[[Any], Any]]] = {
    "tuple": (tuple, encode_all, lambda items: tuple(decode_all(items))),
    "list": (list, encode_all, decode_all),
    "dict": (
        dict,
        lambda mapping: [encode_all(item) for item in mapping.items()],
        lambda items: dict(map(decode_all, items)),
    ),
    "set": (set, _encode_set, lambda items: set(decode_all(items))),
    "frozenset": (frozenset, _encode_set, lambda items: frozenset(decode_all(items))),
    "bytes": (bytes, bytes.hex, bytes.fromhex),
    "uuid": (uuid.UUID, str, uuid.UUID),
    "datetime": (datetime.datetime, datetime.datetime.isoformat, datetime.datetime.fromisoformat),
    "date": (datetime.date, datetime.date.isoformat, datetime.date.fromisoformat),
    "array": (np.ndarray, _encode_array, _decode_array),
}


#: NumPy scalars that equal their `item()`. Not dates, whose `item()` may be an integer.
_NUMPY_SCALARS = (np.bool_, np.integer, np.floating, np.str_, np.bytes_)


def to_json(content: Any) -> bytes:
    """JSON text. Python refuses integers of thousands of digits and deep nesting."""
    try:
        return json.dumps(content).encode()
    except (RecursionError, ValueError) as error:
        raise NotSavableError(f"a key or a point cannot be written: {error}") from None


def _encode(value: Any) -> Any:
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, _NUMPY_SCALARS) and not isinstance(value, np.longdouble):
        return _encode(value.item())
    for name, (kind, write, _) in _CODECS.items():
        if type(value) is kind:
            return {name: write(value)}
    raise _refusal(value)


def _refusal(value: Any) -> NotSavableError:
    return NotSavableError(
        "only keys and points that are numbers, strings, None, bytes, dates, UUIDs, arrays of numbers, or tuples, "
        f"lists, dicts and sets of these can be saved; this one is of type {type(value).__name__}: {value!r}"
    )


def _decode(item: Any) -> Any:
    if not isinstance(item, dict):
        return item
    ((name, value),) = item.items()
    return _CODECS[name][2](value)
