"""Checks of the arrays in a file, before kernels index with them: kernels trust their arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertree.errors import CorruptFileError
from evertree.kernels.columns import (
    HOMOGENEOUS,
    MEAN_NODE,
    N_LEVELS,
    N_NEAR,
    NULL,
    OF_WORK,
    PAIR_NODE,
    SEARCH_STATE,
    STABLE_FROM_BELOW,
    TREE_STATE,
    UNLIMITED,
    WORK_STATE,
)

Arrays = Mapping[str, NDArray[Any]]


def check_arrays(arrays: Arrays, is_of_means: bool, stores_dissimilarities: bool, n_columns: int | None) -> None:
    """Refuse arrays that do not have the dtypes and shapes of a tree's, and node numbers out of range. O(n).

    Arrays that older versions did not write may be missing. Whether they form a tree is checked once it is in memory.
    """
    size = arrays["tree.parent"].size
    rows = size // 2
    node = MEAN_NODE if is_of_means else PAIR_NODE
    of_nodes = {name: (node[name], (size,)) for name in node.names or ()}
    lists = arrays["search.fresh"].size if "search.fresh" in arrays else 0
    data = arrays["tree.mean" if is_of_means else "x"]
    if data.dtype not in (np.float32, np.float64) or size % 2 or lists not in (0, rows):
        raise CorruptFileError("the lengths or dtypes of its arrays do not fit together")
    shape = (size if is_of_means else rows, n_columns)
    if stores_dissimilarities:
        shape = 1, rows * (rows - 1) // 2
    expected: dict[str, tuple[Any, tuple[int | None, ...]]] = {
        **{f"work.{name}": of_nodes.pop(name) for name in OF_WORK},
        **{f"tree.{name}": kind for name, kind in of_nodes.items()},
        "tree.state": (np.int64, (len(TREE_STATE.names or ()),)),
        "tree.mean": (data.dtype, shape),
        "x": (data.dtype, shape),
        "search.near": (np.int32, (lists, N_NEAR)),
        "search.near_value": (_dtype_of_lists(arrays, data.dtype, is_of_means), (lists, N_NEAR)),
        "search.fresh": (np.uint8, (lists,)),
        "search.state": (np.int64, (len(SEARCH_STATE.names or ()),)),
    }
    for name, (kind, lengths) in expected.items():
        if name in arrays and (arrays[name].dtype, arrays[name].shape) != (kind, lengths):
            raise CorruptFileError(f"{name!r} must have dtype {np.dtype(kind)} and shape {lengths}")
    if "points" in arrays and (
        arrays["points"].shape != (rows, n_columns) or arrays["points"].dtype.kind not in "fiub"
    ):
        raise CorruptFileError("'points' must have a row of numbers for each leaf")
    _check_tree(arrays, size)
    _check_work(arrays, size)
    if "exact.slack" in arrays:
        _check_exact(arrays, size)


def _dtype_of_lists(arrays: Arrays, dtype: np.dtype[Any], is_of_means: bool) -> np.dtype[Any]:
    """That of the data; for pairs float64, but older versions wrote that of the data."""
    found = arrays["search.near_value"].dtype if "search.near_value" in arrays else dtype
    return found if not is_of_means and found in (dtype, np.float64) else dtype


def _check_exact(arrays: Arrays, size: int) -> None:
    """What is known of a batch tree: bounds, and values of pairs of clusters, each of which has a slot."""
    slot, node = (arrays.get(f"exact.{name}", np.empty(0)) for name in ("slot", "node"))
    level = arrays.get("exact.level", np.full(1, -np.inf))  # older versions did not write it
    shapes: dict[str, tuple[Any, tuple[int, ...]]] = {
        "slack": (np.float64, (size,)),
        "slot": (np.int32, (size,)),
        "node": (np.int32, (node.size,)),
        "value": (np.float64, (node.size, node.size)),
        "error": (np.float64, (node.size, node.size)),
    }
    found = {name: arrays.get(f"exact.{name}", np.empty(0)) for name in shapes}
    is_sound = all((found[name].dtype, found[name].shape) == kind for name, kind in shapes.items())
    if is_sound:
        used = np.flatnonzero(node != NULL)
        is_sound = slot.min(initial=NULL) >= NULL and bool(((node >= NULL) & (node < size)).all())
        is_sound &= np.array_equal(np.sort(node[used]), np.flatnonzero(slot != NULL))
        is_sound = is_sound and bool((slot[node[used]] == used).all())
        is_sound &= bool((arrays["tree.parent"][node[used]] >= NULL).all())
        is_sound &= level.dtype == np.float64 and level.shape == (1,) and not np.isnan(level).any()
        is_sound &= bool((found["slack"] >= 0).all() and (found["value"] >= 0).all() and (found["error"] >= 0).all())
    if not is_sound:
        raise CorruptFileError("what it says about its batch tree is damaged")


def _check_tree(arrays: Arrays, size: int) -> None:
    state = dict(zip(TREE_STATE.names or (), arrays["tree.state"].tolist(), strict=True))
    root, n_points, leaf_top, inner_top = (state[name] for name in ("root", "n_points", "leaf_top", "inner_top"))
    is_sound = -1 <= root < size and (root == NULL) == (n_points == 0) and 0 <= n_points <= size // 2
    is_sound &= 2 * max(leaf_top, inner_top) == size and min(leaf_top, inner_top) >= 0
    for name in ("left", "right"):
        children = arrays[f"tree.{name}"]
        is_sound &= bool(children.min() >= NULL and children.max() < size)
    is_sound &= bool(arrays["tree.parent"].max() < size)
    if not is_sound:
        raise CorruptFileError("a node number is out of range")


def _check_work(arrays: Arrays, size: int) -> None:
    """The worklist and the progress of searches. Older versions wrote a shorter state."""
    pending, state = arrays["work.pending"], arrays["work.state"]
    is_sound = pending.dtype == np.int32 and pending.ndim == 1 and pending.size <= size
    is_sound &= state.dtype == np.int64 and state.ndim == 1 and 0 < state.size <= len(WORK_STATE.names or ())
    if is_sound:
        counts = dict(zip(WORK_STATE.names or (), state.tolist(), strict=False))
        # It was the number of a node in older versions.
        is_sound &= (
            NULL <= counts.pop("lowest", NULL) < max(size, N_LEVELS) and abs(counts.pop("ordered_at", 0)) < UNLIMITED
        )
        is_sound &= all(0 <= count < UNLIMITED for count in counts.values()) and counts["pending"] == pending.size
        is_sound &= counts.get("goal", HOMOGENEOUS) <= STABLE_FROM_BELOW
    is_sound &= ("work.queue" in arrays) == ("work.levels" in arrays)
    if is_sound and "work.queue" in arrays:
        queue, levels, due = arrays["work.queue"], arrays["work.levels"], np.flatnonzero(arrays["work.due"])
        is_sound &= queue.dtype == np.int32 and levels.dtype == np.int16 and levels.shape == queue.shape
        is_sound &= np.array_equal(np.sort(queue), due)
        is_sound &= queue.size == 0 or 0 <= levels.min() <= levels.max() < N_LEVELS
    if "search.state" in arrays:
        is_sound &= 0 <= int(arrays["search.state"].view(SEARCH_STATE)["fresh_row"][0]) <= size
    if not is_sound:
        raise CorruptFileError("its worklist is damaged")
