"""Keys and points as JSON can have them, and back. No pickle."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from evertree.errors import NotSavableError


def encode_all(values: Sequence[Any]) -> list[Any]:
    """Values as JSON can have them."""
    return [_encode(value) for value in values]


def decode_all(items: Sequence[Any]) -> list[Any]:
    """The values that `encode_all` was given."""
    return [_decode(item) for item in items]


def _encode_set(values: Any) -> list[Any]:
    return sorted(encode_all(list(values)), key=repr)


def _encode_array(array: Any) -> list[Any]:
    if array.dtype.kind not in "fiub":
        raise _refusal(array)
    return [array.dtype.str, array.tolist()]


# How to write and read the kinds that JSON does not have. A value must be of exactly that type.
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
    "array": (np.ndarray, _encode_array, lambda item: np.array(item[1], np.dtype(item[0]))),
}


def _encode(value: Any) -> Any:
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, np.generic):
        return _encode(value.item())
    for name, (kind, write, _) in _CODECS.items():
        if type(value) is kind:
            return {name: write(value)}
    raise _refusal(value)


def _refusal(value: Any) -> NotSavableError:
    return NotSavableError(
        "only keys and points that are numbers, strings, None, bytes, dates, UUIDs, arrays of numbers, or tuples, "
        f"lists, dicts and sets of these can be saved; this one is a {type(value).__name__}: {value!r}"
    )


def _decode(item: Any) -> Any:
    if not isinstance(item, dict):
        return item
    ((name, value),) = item.items()
    return _CODECS[name][2](value)
