"""Headers and arrays of files with something in them changed, at random, as a forger might."""

from __future__ import annotations

import contextlib
import json
import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Rng = np.random.Generator

_ODD: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 5, 1000, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 10**40, 0.5, -0.0, math.nan),
    *(math.inf, 1e308, "", "ward", "complete", "cosine", "precomputed", "stable", "a", "x" * 10_000, "\ud800"),
    *([], [None], [1, 2], {}, {"tuple": [1]}, {"array": ["<f8", [[1.0]]]}, {"array": ["V1000000000", []]}),
    *({"bytes": "zz"}, {"date": "never"}, {"uuid": 5}, {"set": [[]]}, {"no": 1}, {"a": 1, "b": 2}, [[0, 0.0]]),
)


def _deep() -> Any:
    nest: Any = []
    for _ in range(250):  # deep enough for the decoder, and not too deep for the encoder
        nest = {"list": [nest]}
    return nest


def _places(content: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    if isinstance(content, dict):
        for name in content:
            yield from _places(content[name], (*path, name))
    elif isinstance(content, list):
        for k in range(min(len(content), 5)):
            yield from _places(content[k], (*path, k))


def forge_json(rng: Rng, content: Any, other: Any) -> tuple[str, Any]:
    """The same with one thing in it changed, removed, added or taken from another."""
    content = json.loads(json.dumps(content))
    places = list(_places(content))
    path = places[rng.integers(len(places))]
    holder = content
    for name in path[:-1]:
        holder = holder[name]
    last, choice = path[-1], rng.integers(8)
    if choice == 0:
        del holder[last]
    elif choice == 1 and isinstance(holder, list):
        holder.append(holder[last])
    elif choice == 2 and isinstance(holder, dict):
        holder["more"] = _ODD[rng.integers(len(_ODD))]
    elif choice == 3 and path[0] in other:
        content[path[0]] = other[path[0]]
    elif choice == 4 and rng.integers(3) == 0:
        holder[last] = _deep()
    else:
        holder[last] = _ODD[rng.integers(len(_ODD))]
    return f"{path} changed ({choice})", content


def _other_kind(rng: Rng, array: np.ndarray) -> np.ndarray:
    kinds = ["<f4", "<f8", ">f8", ">i4", "<i8", "<i2", "u1", "?", "<c16", "<U3", "<f2", "<u8"]
    kind = np.dtype(str(rng.choice(kinds)))
    if kind.kind == "U":
        return np.zeros(array.shape, kind)
    with np.errstate(all="ignore"), quiet():
        return array.astype(kind)


def _other_shape(rng: Rng, array: np.ndarray) -> np.ndarray:
    choices: list[Callable[[], np.ndarray]] = [
        lambda: array[: len(array) // 2] if array.ndim else array,
        lambda: array[:0] if array.ndim else array,
        lambda: np.concatenate([array, array]) if array.ndim else array,
        lambda: array.reshape(-1),
        lambda: array.reshape(1, -1),
        lambda: array[..., None],
        lambda: array.T,
        lambda: np.zeros((), array.dtype),
        lambda: np.broadcast_to(array[:1], array.shape).copy() if array.ndim else array,
        lambda: array[:1] if array.ndim else array,
        lambda: array[:, :1] if array.ndim == 2 else array,
        lambda: array[:, :0] if array.ndim == 2 else array,
        lambda: np.zeros((0, 10**6), array.dtype),
    ]
    return choices[rng.integers(len(choices))]()


def _other_values(rng: Rng, array: np.ndarray) -> np.ndarray:
    changed = np.array(array)
    if changed.size == 0 or changed.dtype.kind not in "fiub":
        return changed
    flat = changed.reshape(-1)
    some = rng.integers(0, flat.size, rng.choice([1, 1, 2, flat.size]))
    odd: list[Any] = [-1, 0, 1, 2, 3, -2, -7, flat.size, flat.size - 1, 2 * flat.size]
    if changed.dtype.kind == "f":
        largest = float(np.finfo(changed.dtype).max)
        odd += [np.nan, np.inf, -np.inf, 1e-300, 1e300 if largest > 1e300 else 1e30, 0.1, largest, -1e9]
    elif changed.dtype.kind in "iu":
        limits = np.iinfo(changed.dtype)
        odd += [limits.max, limits.min, limits.max - 1, limits.max // 2]
    choice = rng.integers(4)
    with np.errstate(all="ignore"), quiet():
        if choice == 0:
            rng.shuffle(flat)
        elif choice == 1:
            flat[some] = flat[rng.integers(0, flat.size, some.size)]
        elif choice == 2 and changed.dtype.kind in "iuf":
            flat[some] = flat[some] + rng.choice([-2, -1, 1, 2])
        else:
            flat[some] = np.array(odd[rng.integers(len(odd))]).astype(changed.dtype)
    return changed


def forge_arrays(
    rng: Rng, arrays: dict[str, np.ndarray], other: dict[str, np.ndarray]
) -> tuple[str, dict[str, np.ndarray]]:
    arrays = dict(arrays)
    name = str(rng.choice(list(arrays)))
    choice = rng.integers(9)
    if choice == 0:
        del arrays[name]
        return f"without {name}", arrays
    if choice == 1 and name in other:
        arrays[name] = other[name]
        return f"{name} of another", arrays
    if choice == 2:
        arrays[name] = _other_kind(rng, arrays[name])
        return f"{name} as {arrays[name].dtype}", arrays
    if choice == 3:
        before, arrays[name] = arrays[name].shape, _other_shape(rng, arrays[name])
        return f"{name} of {before} as {arrays[name].shape}", arrays
    for _ in range(int(rng.choice([1, 1, 1, 3]))):
        arrays[name] = _other_values(rng, arrays[name])
    return f"values of {name}", arrays


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Zip archives may hold two members of one name; zipfile warns of it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
