"""The data of a tree that the page contains."""

from __future__ import annotations

import base64
import contextlib
import json
import numbers
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertree.errors import DimensionError, ParameterError
from evertree.input import frames
from evertree.kernels.columns import NOISE, NULL
from evertree.plotting.dendrogram import PALETTE, common_cluster

#: Prototypes are found for the clusters of every cut into up to this number, and for this number of the largest given
#: clusters.
_N_TOP = 50

#: The largest number of clusters in the cut that gives the colours.
_MOST_COLOURED = 10

#: A column with more distinct numbers than this is shown by its mean and range, any other by its most frequent values.
_MOST_FREQUENCIES = 20


@dataclass(frozen=True, eq=False)
class PageData:
    """A linkage matrix with its keys, and what else is shown.

    Attributes
    ----------
    Z : ndarray of shape (n - 1, 4)
    keys : list of n keys
    labels : ndarray of n int or None
        The clusters that give the colours, -1 for noise. If None, a cut gives them.
    prototypes : dict
        From merges to leaves, both by their numbers in `Z`.
    columns : mapping or None
        From names to n values, shown for points and summarised for clusters.
    """

    Z: NDArray[np.float64]
    keys: Sequence[Hashable]
    labels: NDArray[np.intp] | None
    prototypes: Mapping[int, int]
    columns: Mapping[Any, Any] | None

    def to_json(self) -> str:
        """All of it as ASCII, without characters that have a meaning in HTML."""
        content = {
            "keys": [str(key) for key in self.keys],
            "merges": _encoded(self.Z[:, :2], np.int32),
            "heights": _encoded(self.Z[:, 2], np.float64),
            "prototypes": {
                "nodes": _encoded(list(self.prototypes), np.int32),
                "leaves": _encoded(list(self.prototypes.values()), np.int32),
            },
            "nClusters": widest_gap(self.Z[:, 2]),
            "given": None if self.labels is None else _given(self.labels),
            "palette": PALETTE,
            "columns": _columns(self.columns, len(self.keys)),
        }
        text = json.dumps(content, separators=(",", ":"))
        return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def widest_gap(heights: NDArray[np.float64]) -> int:
    """The number of clusters, from 2 to 10, whose cut stays the same over the widest range of heights.

    Ranges are compared by the ratio of their ends, because the heights of top merges differ more than those below.
    """
    from_root = heights[-_MOST_COLOURED:][::-1]  # cuts into 2, 3, … clusters are between the first two, the next two, …
    if from_root.size == 0 or from_root[0] == 0:
        return 1
    if from_root.size == 1:
        return 2
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(from_root[:-1] > 0, from_root[:-1] / from_root[1:], 0.0)
    return int(np.argmax(ratio)) + 2


def nodes_with_prototypes(Z: NDArray[np.float64], labels: NDArray[np.intp] | None) -> NDArray[np.intp]:
    """The merges whose prototypes the page shows: those of the largest clusters, then those from the root down."""
    n = len(Z) + 1
    top = Z[-(_N_TOP - 1) :, :2].astype(np.intp).ravel()
    found = [] if labels is None or labels.size == 0 else _largest_inside(Z, labels)
    found += [2 * n - 2, *sorted(top.tolist(), reverse=True)]
    return np.array([u for u in dict.fromkeys(found) if u >= n], np.intp)


def _largest_inside(Z: NDArray[np.float64], labels: NDArray[np.intp]) -> list[int]:
    """For each of the largest clusters, the first of the largest nodes that are wholly inside it."""
    names, ranks, counts = np.unique(labels, return_inverse=True, return_counts=True)
    size = np.concatenate([np.ones(labels.size), Z[:, 3]])
    common = common_cluster(Z, ranks)
    pure = np.flatnonzero(common != NULL)
    pure = pure[np.lexsort((pure, -size[pure]))]
    clusters, first = np.unique(common[pure], return_index=True)
    by_size = [c for c in np.argsort(-counts, kind="stable").tolist() if names[c] != NOISE]
    node = dict(zip(clusters.tolist(), pure[first].tolist(), strict=True))
    return [node[c] for c in by_size[:_N_TOP]]


def _given(labels: NDArray[np.intp]) -> dict[str, Any]:
    names, ranks = np.unique(labels, return_inverse=True)
    noise = np.flatnonzero(names == NOISE)
    return {
        "names": [str(name) for name in names.tolist()],
        "colours": (names % len(PALETTE)).tolist(),
        "noise": int(noise[0]) if noise.size else NULL,
        "of": _encoded(ranks, np.int32),
    }


def _columns(columns: Mapping[Any, Any] | None, n: int) -> list[dict[str, Any]]:
    if columns is None:
        return []
    if frames.is_frame(columns):
        pairs = frames.columns(columns)
    elif isinstance(columns, Mapping):
        pairs = [(name, _values(column)) for name, column in columns.items()]
    else:
        raise ParameterError(
            f"columns must be a mapping from names to values, or a data frame; it is {type(columns).__name__}"
        )
    for name, values in pairs:
        if len(values) != n:
            raise DimensionError(
                f"columns must have {n} values each, one for each of keys(); {name!r} has {len(values)}"
            )
    return [{"name": str(name), **_column(values)} for name, values in pairs]


def _values(column: Any) -> list[Any]:
    """The values of a column as Python objects. A scalar is a column of one value."""
    array = np.asarray(column) if isinstance(column, np.ndarray) else np.asarray(column, dtype=object)
    if array.dtype.kind in "mM":  # Python has no nanoseconds: NumPy would make them integers
        array = array.astype(array.dtype.str.replace("[ns]", "[us]")).astype(object)
    return list(np.atleast_1d(array).tolist())


def _column(values: list[Any]) -> dict[str, Any]:
    """Numbers, with NaN for None; or the distinct texts, and which of them each point has."""
    known = [value for value in values if value is not None]
    if all(isinstance(value, numbers.Real) for value in known) and len(set(known)) > _MOST_FREQUENCIES:
        with contextlib.suppress(OverflowError):  # an integer too large for a float is shown as text
            return {"names": None, "data": _encoded(values, np.float64)}
    number: dict[str, int] = {}
    texts = ["–" if value is None else str(value) for value in values]
    codes = [number.setdefault(text, len(number)) for text in texts]
    return {"names": list(number), "data": _encoded(codes, np.int32)}


def _encoded(values: Any, dtype: Any) -> str:
    """Numbers in base64, little-endian."""
    return base64.b64encode(np.asarray(values, np.dtype(dtype).newbyteorder("<")).tobytes()).decode()
