"""The contents of a hierarchy's file, written and read back; `evertree.io.archive` defines the file format."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertree import kernels
from evertree.errors import CorruptFileError, ParameterError
from evertree.input.arrays import (
    GOALS,
    as_choice,
    as_column_names,
    as_height,
    as_keys,
    as_points,
    as_weights,
    as_whole_number,
    as_width,
)
from evertree.input.keys import KeyTable, whole_part
from evertree.io.archive import SIGNS_OF_DAMAGE, read, write
from evertree.io.array_checks import check_arrays
from evertree.io.json_values import decode_all, encode_all
from evertree.kernels.columns import (
    LOST,
    MEAN_NODE,
    N_LEVELS,
    NULL,
    OF_WORK,
    TREE_STATE,
    WORK_STATE,
    MeanTree,
    Search,
    Worklist,
    new_search,
    no_sketches,
)
from evertree.state import State
from evertree.tree import Aim, Incoming, LiveTree, MeanLiveTree, PairLiveTree, invariants, new_tree
from evertree.tree.aim import WORKING_MEMORY
from evertree.tree.base import MOST_POINTS
from evertree.tree.repair import Exact, new_top, trimmed
from evertree.tree.scheme import OBJECTS, TOLERANCE, VECTORS, Scheme
from evertree.windows import MovingWindow

#: Numbers of `Worklist.state` in a file: all but the last.
_N_SAVED = len(WORK_STATE.names or ()) - 1


def save(path: str | os.PathLike[str], state: State) -> None:
    """Write a state to a file."""
    write(path, *contents(state))


def load(path: str | os.PathLike[str], metric: Callable[..., Any] | None = None) -> State:
    """Read what `save` wrote, and check that it is a tree."""
    return restored(*read(path), path, metric)


def contents(state: State) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The header and the arrays of a state."""
    live, keys = state.live, state.keys
    used = live.n_used
    scheme = live.scheme
    params = scheme.metric_params or {}
    arrays: dict[str, NDArray[Any]] = {
        f"metric_params.{name}": value for name, value in params.items() if isinstance(value, np.ndarray)
    }
    header = {
        "linkage": scheme.linkage.name,
        "metric": scheme.metric if isinstance(scheme.metric, str) else None,
        "metric_name": scheme.metric_name,
        "metric_params": {name: value for name, value in params.items() if not isinstance(value, np.ndarray)},
        "n_columns": live.n_columns,
        "column_names": state.column_names,
        "next_birth": keys.next_birth,
        "next_number": keys.next_number,
        "keys": None if keys.is_numbered else encode_all(keys.keys()),
        "goal": live.aim.goal,
        "search_width": live.aim.search_width,
        "working_memory": live.aim.working_memory,
        "seed": state.seed,
        "window": None if state.window is None else state.window.state(),
    }
    arrays |= {
        f"tree.{name}": column[:used] for name, column in live.tree._asdict().items() if name not in ("pairs", "sketch")
    }
    arrays["tree.state"] = live.tree.state.view(np.int64)
    arrays["work.pending"] = live.work.stack[: live.work.state["pending"][0]]
    arrays["work.mark"] = live.work.mark[:used]
    arrays["work.due"] = (live.work.due[:used] != 0).astype(np.uint8)
    queue, levels = np.empty(live.n_due, np.int32), np.empty(live.n_due, np.int16)
    kernels.shared.due_queue.list_queue(live.work, queue, levels)
    arrays["work.queue"], arrays["work.levels"] = queue, levels
    arrays["work.state"] = live.work.state.view(np.int64)[:_N_SAVED]
    for name in ("near", "near_value", "fresh"):
        arrays[f"search.{name}"] = getattr(live.search, name)[: used // 2]
    arrays["search.state"] = live.search.state.view(np.int64)
    exact = trimmed(live)
    if exact is not None:
        exact = exact.with_room(used)
        arrays["exact.slack"], arrays["exact.slot"] = exact.slack[:used], exact.top.slot[:used]
        for name in ("level", "node", "value", "error"):
            arrays[f"exact.{name}"] = getattr(exact.top, name)
    arrays["leaves"] = keys.leaves()
    if keys.is_numbered:
        arrays["numbers"] = np.array(keys.keys(), np.int64)
    if isinstance(live, PairLiveTree):
        arrays["x"] = live.x_in_use
    if live.kept is not None:
        if live.n_columns is None:
            header["points"] = encode_all(live.points(keys.leaves()))
        else:
            arrays["points"] = live.kept[: used // 2]
    return header, arrays


def restored(
    header: dict[str, Any],
    arrays: dict[str, NDArray[Any]],
    path: str | os.PathLike[str],
    metric: Callable[..., Any] | None = None,
) -> State:
    """The state from which `contents` was made, checked to be a tree. The path is for error messages."""
    if metric is not None and (not callable(metric) or header.get("metric") is not None):
        raise ParameterError(
            f"metric must be a function, and the hierarchy in {path} must have been saved with one; its metric is "
            f"{header.get('metric_name', header.get('metric'))}"
        )
    try:
        live = _tree_of(_scheme_of(header, arrays, metric), _aim_of(header), header, arrays)
        invariants.check_shape(live)
        if "work.due" not in arrays:
            live.note_all_due()
        elif "work.queue" not in arrays:
            live.queue_flagged()
        keys = _keys_of(header, arrays)
        invariants.check_all_but_statistics(live, keys.leaves())
        invariants.check_unions(live)
        _check_values(live, keys.leaves())
        births = live.tree.birth[keys.leaves()]
        if keys.next_birth <= births.max(initial=-1):
            raise CorruptFileError("a point is younger than the next one")
        if keys.is_numbered and keys.keys() != births.tolist():
            raise CorruptFileError("a key that was given is not the number of its point")
        if not live.is_blank:
            live.exact = _exact_of(live, arrays)
            live.warm_up()
        window = header.get("window")  # a file of an older version has none
        return State(
            live,
            keys,
            None if window is None else MovingWindow.of_state(window, keys.next_birth),
            as_whole_number("seed", header["seed"]),
            _column_names(header, live),
            family=None,
        )
    except SIGNS_OF_DAMAGE as error:
        raise CorruptFileError(f"{path} is damaged: {error}") from error


def _exact_of(live: LiveTree, arrays: dict[str, NDArray[Any]]) -> Exact | None:
    """What is known of a batch tree; older versions did not write it."""
    if "exact.slack" not in arrays or not live.is_to_be_exact:
        return None
    top = new_top(0, 0)
    top = top._replace(**{name: arrays[f"exact.{name}"] for name in top._fields if f"exact.{name}" in arrays})
    return Exact(arrays["exact.slack"], top, live.n_changes).copy().with_room(live.tree.parent.size)


def _keys_of(header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> KeyTable:
    """The keys by leaf, and the numbers of the next point and key."""
    is_numbered, leaves = header["keys"] is None, arrays["leaves"]
    names = arrays["numbers"].tolist() if is_numbered else as_keys(decode_all(header["keys"]))
    if leaves.dtype != np.int32 or leaves.shape != (len(names),):
        raise CorruptFileError("there is not a leaf for each key")
    next_birth, next_number = header["next_birth"], header["next_number"]
    if not (_is_count(next_birth) and _is_count(next_number)):
        raise CorruptFileError("the next point has no number")
    if next_number <= max(map(whole_part, names), default=-1):
        raise CorruptFileError("the number of the next key is taken")
    return KeyTable.assembled(names, leaves, is_numbered, next_birth, next_number)


def _check_values(live: LiveTree, leaves: NDArray[np.int32]) -> None:
    """Refuse points and weights that `Hierarchy.insert` would refuse, or that do not match the tree. O(n m).

    Dissimilarities are checked with the tree.
    """
    as_weights(live.tree.size[leaves], leaves.size)
    if live.scheme.vectors is None or leaves.size == 0:
        return
    points = as_points(live.points(leaves), live.n_columns, live.dtype)
    known = live.tree.mean[leaves] if isinstance(live, MeanLiveTree) else live.tree.pairs.x[leaves >> 1]
    coordinates = live.scheme.vectors.coordinates(points)
    tolerance = TOLERANCE[live.dtype]
    if not np.allclose(coordinates, known, rtol=tolerance, atol=tolerance * float(np.abs(coordinates).max())):
        raise CorruptFileError("the points are not those that the tree was made of")
    live.check_range(Incoming(points, coordinates), np.empty(0))


def _column_names(header: dict[str, Any], live: LiveTree) -> tuple[str, ...] | None:
    """The names of the columns; a file of an older version has none."""
    names = as_column_names(header.get("column_names"))
    if names is not None and (live.n_columns not in (None, len(names)) or list(names) != header["column_names"]):
        raise CorruptFileError(f"{live.n_columns} columns have the names {header['column_names']!r}")
    return names


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value < 2**62


def _scheme_of(header: dict[str, Any], arrays: dict[str, NDArray[Any]], metric: Callable[..., Any] | None) -> Scheme:
    params: dict[str, Any] = dict(header.get("metric_params", {}))
    prefix = "metric_params."
    params |= {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
    if "VI" in arrays:  # a file of version 1
        params["VI"] = arrays["VI"]
    if header["metric"] is None:
        return Scheme(header["linkage"], metric or _missing(header["metric_name"]))
    return Scheme(header["linkage"], header["metric"], params or None)


def _aim_of(header: dict[str, Any]) -> Aim:
    """The aim; a file of an older version has no search width."""
    width = as_width(header.get("search_width", 4))
    if isinstance(width, int) and width > MOST_POINTS:
        raise CorruptFileError(f"the search width {width} is wider than any tree")
    memory = as_height("working_memory", header.get("working_memory", WORKING_MEMORY))
    return Aim(as_choice("goal", header["goal"], GOALS), width, working_memory=memory)


def _missing(name: str) -> Callable[..., Any]:
    """A placeholder for a function that is not in the file: the tree can be read, but no points inserted."""

    def missing(*_: Any) -> float:
        raise ParameterError(
            f"the metric {name} is a function, which a file cannot hold: give it as metric= when you load or open it"
        )

    missing.__name__ = name
    return missing


def _tree_of(scheme: Scheme, aim: Aim, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> LiveTree:
    columns = {name.removeprefix("tree."): array for name, array in arrays.items() if name.startswith("tree.")}
    if columns["parent"].size == 0:
        return new_tree(scheme, aim, None, np.dtype(np.float64))
    points = arrays.get("points")
    n_columns = columns["mean"].shape[-1] if scheme.has_statistics else header["n_columns"]
    check_arrays(arrays, scheme.has_statistics, scheme.holds != VECTORS, n_columns)
    has_kept = scheme.vectors.changes_points if scheme.vectors else scheme.holds == OBJECTS and n_columns is not None
    if has_kept != (points is not None):
        raise CorruptFileError("there are points where there should be none, or none where there should be some")
    columns["state"] = columns["state"].view(TREE_STATE)
    _forget_unused(columns)
    work, search = _work_of(arrays, columns["parent"].size), _search_of(arrays)
    if scheme.has_statistics:
        is_old = "height" not in columns
        for name in ("height", "radius"):
            columns.setdefault(name, np.zeros_like(columns["size"]))
        live = MeanLiveTree.of_columns(scheme, aim, MeanTree(**columns, sketch=no_sketches()), work, search, points)
        if is_old:
            live.find_heights()
        return live
    if scheme.holds == OBJECTS and n_columns is None:
        points = np.empty(columns["parent"].size // 2, object)
        for leaf, point in zip(arrays["leaves"].tolist(), decode_all(header["points"]), strict=True):
            points[leaf >> 1] = point
    return PairLiveTree.of_columns(scheme, aim, n_columns, columns, work, search, arrays["x"], points)


def _forget_unused(columns: dict[str, NDArray[Any]]) -> None:
    """Reset rows that no node has used yet to those of a new tree, whatever is in the file."""
    for kind, top in enumerate(("leaf_top", "inner_top")):
        first = 2 * max(int(columns["state"][top][0]), 0) + kind
        for name, column in columns.items():
            if name != "state":
                column[first::2] = 0


def _work_of(arrays: dict[str, NDArray[Any]], size: int) -> Worklist:
    """The worklist; older versions wrote a shorter state, and what is due in no order, or not at all."""
    pending, old = arrays["work.pending"], arrays["work.state"]
    stack, state = np.empty(size, np.int32), np.zeros(1, WORK_STATE)
    stack[: pending.size] = pending
    state.view(np.int64)[: old.size] = old
    state["lowest"][0] = 0
    of_nodes = {name: arrays.get(f"work.{name}", np.zeros(size, MEAN_NODE[name])) for name in OF_WORK}
    work = Worklist(stack=stack, **of_nodes, first=np.full(N_LEVELS, NULL, np.int32), state=state)
    if "work.queue" in arrays:
        kernels.shared.due_queue.queue_again(work, arrays["work.queue"], arrays["work.levels"])
    return work


def _search_of(arrays: dict[str, NDArray[Any]]) -> Search:
    """The lists of neighbours; older versions had none."""
    search = new_search(0, 1, np.dtype(np.float64))
    if "search.near" not in arrays:
        return search
    search.state.view(np.int64)[:] = arrays["search.state"]
    search.recent[0] = LOST
    return search._replace(**{name: arrays[f"search.{name}"] for name in ("near", "near_value", "fresh")})
