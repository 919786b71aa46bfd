"""A tree as nested objects, the form that ``d3.hierarchy`` reads."""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertree.io.nodes import number_nodes


def to_nested(Z: NDArray[np.float64], keys: Sequence[Hashable]) -> dict[str, Any]:
    """The tree as nested dictionaries: the result of ``json.loads`` on the text of `to_nested_json`.

    Parameters
    ----------
    Z : array of shape (n - 1, 4)
        SciPy's linkage matrix.
    keys : list of n keys
        ``keys[i]`` is leaf i. Keys without a JSON type become their ``str()``.

    Returns
    -------
    dict
        The root. Leaves have ``key``, ``height`` and ``size``; other nodes have ``height``, ``size`` and ``children``.
        A tree without leaves is a root of size 0 without children.

    Examples
    --------
    >>> from evertree.io import to_nested
    >>> to_nested(np.array([[0.0, 1.0, 2.5, 2.0]]), ["a", ("b", 1)])["children"][1]
    {'key': "('b', 1)", 'height': 0.0, 'size': 1}
    """
    if not keys:
        return {"height": 0.0, "size": 0, "children": []}
    nodes = number_nodes(Z, keys)
    # A merge comes after its children.
    made: list[dict[str, Any]] = [{"key": _plain(key), "height": 0.0, "size": 1} for key in keys]
    inner = (column[len(keys) :].tolist() for column in (nodes.left, nodes.right, nodes.height, nodes.size))
    for left, right, height, size in zip(*inner, strict=True):
        made.append({"height": height, "size": size, "children": [made[left], made[right]]})
    return made[-1]


def to_nested_json(Z: NDArray[np.float64], keys: Sequence[Hashable]) -> str:
    """The tree as nested JSON text, of any depth.

    Python's own ``json`` can read back only some hundred levels of nesting.

    Parameters
    ----------
    Z : array of shape (n - 1, 4)
        SciPy's linkage matrix.
    keys : list of n keys
        ``keys[i]`` is leaf i. Keys without a JSON type are written as their ``str()``.

    Returns
    -------
    str
        An object for each node: with ``key``, ``height`` and ``size`` for a leaf, and with ``height``, ``size`` and
        ``children`` for any other node. A tree without leaves is a root of size 0 without children.

    Examples
    --------
    >>> from evertree.io import to_nested_json
    >>> to_nested_json(np.empty((0, 4)), ["a"])
    '{"key": "a", "height": 0.0, "size": 1}'
    >>> to_nested_json(np.array([[0.0, 1.0, 2.5, 2.0]]), ["a", 7])
    '{"height": 2.5, "size": 2, "children": [{"key": "a", "height": 0.0, "size": 1}, {"key": 7, ...}]}'
    """
    # Not json.dumps of the whole tree, because it recurses.
    pieces: list[str] = []
    waiting: list[dict[str, Any] | str] = [to_nested(Z, keys)]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            pieces.append(item)
        elif "children" in item:
            pieces.append(f'{{"height": {item["height"]!r}, "size": {item["size"]}, "children": [')
            waiting.append("]}")
            if item["children"]:
                left, right = item["children"]
                waiting += [right, ", ", left]
        else:
            pieces.append(json.dumps(item, allow_nan=False))
    return "".join(pieces)


def _plain(key: Hashable) -> str | int | float | bool | None:
    """A key as a JSON value."""
    if isinstance(key, np.bool | np.integer | np.floating):
        key = key.item()
    if key is None or isinstance(key, bool):
        return key
    # Subclasses, such as members of an enumeration, become plain values.
    if isinstance(key, str):
        return str.__str__(key)
    if isinstance(key, int):
        return int(key)
    if isinstance(key, float) and math.isfinite(key):
        return float(key)
    return str(key)
