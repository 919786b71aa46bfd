"""Exports of a hierarchy to other tools, and drawings. Nodes have SciPy's numbers throughout.

Leaves are numbered 0, 1, … in the order of ``keys()``, followed by the merges in the order of ``linkage_matrix()``,
whose heights they have. These numbers are valid until the next edit or ``refine``.
"""

from __future__ import annotations

import math
import os
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertree import plotting
from evertree.errors import ParameterError
from evertree.io import html
from evertree.io.atomic_write import atomic_write
from evertree.io.graph import to_digraph
from evertree.io.nested_json import to_nested_json
from evertree.io.newick import write_newick
from evertree.io.node_frame import to_node_frame
from evertree.kernels.columns import HOMOGENEOUS
from evertree.nodes import keys_of
from evertree.partition import Partition
from evertree.plotting.dendrogram import as_labels
from evertree.state import State
from evertree.tree import views

#: Columns that are named where a hierarchy is shown in a line.
_N_NAMES = 5

#: Clusters at the bottom of the notebook display.
_N_GLANCE = 30

#: The size of the largest clusters with prototypes on a page, if these are found by comparing all pairs of points.
_MOST_COMPARED = 4_000

#: For other linkages, the budget of points to visit for the prototypes of a page. Clusters beyond it have none.
_MOST_LOOKED_AT = 5_000_000


def to_newick(state: State, path: str | os.PathLike[str] | None, branch_lengths: bool) -> str:
    """The tree as Newick text."""
    return _written(write_newick(*_tree_and_keys(state), branch_lengths), path)


def to_json(state: State, path: str | os.PathLike[str] | None) -> str:
    """The tree as nested JSON."""
    return _written(to_nested_json(*_tree_and_keys(state)), path)


def to_networkx(state: State) -> Any:
    """The tree as a graph."""
    return to_digraph(*_tree_and_keys(state))


def to_frame(state: State) -> Any:
    """A data frame with a row for each node."""
    return to_node_frame(*_tree_and_keys(state))


def to_html(
    state: State,
    path: str | os.PathLike[str] | None,
    partition: Partition | Any,
    title: str | None,
    columns: Mapping[Any, Any] | None,
) -> str:
    """The tree as a page: see `Hierarchy.to_html`."""
    if title is not None and not isinstance(title, str):
        raise ParameterError(f"title must be a text; it is {type(title).__name__}")
    Z, keys = _tree_and_keys(state)
    labels = None if partition is None else as_labels(_labels_of(partition, keys), len(keys))
    prototypes = _prototypes_of_merges(state, Z, html.nodes_with_prototypes(Z, labels)) if keys else {}
    data = html.PageData(Z, keys, labels, prototypes, columns)
    facts = [contents(state)] if title is None else [_name(state), contents(state)]
    return _written(html.render_page(data, _name(state) if title is None else title, facts), path)


def plot(state: State, partition: Partition | Any, **options: Any) -> Any:
    """Draw the dendrogram: see `Hierarchy.plot`."""
    with state.lock.reading():
        Z, keys = _tree_and_keys(state)
    labels = options.pop("labels", None) if partition is None else _labels_of(partition, keys)
    return plotting.plot_dendrogram(Z, keys, labels=labels, **options)


def preview(state: State) -> str:
    """The notebook display: what the tree is, how far it is from its goal, and its top."""
    top = views.find_top(state.live, _N_GLANCE)
    leaves = top.nodes[top.size == 1]
    names = [str(key) for key in keys_of(state, leaves)] if leaves.size else []
    texts = names + [f"({size:,})" for size in top.size[leaves.size :].tolist()]
    facts = {"points": contents(state), "goal": state.live.aim.goal}
    if len(state.keys):
        facts["quality"] = _quality(state)
    return html.render_preview(_name(state), facts, top, texts)


def describe(state: State) -> str:
    """The part of a hierarchy's ``repr`` after the opening bracket."""
    scheme = state.live.scheme
    return f"linkage={scheme.linkage.name!r}, metric={scheme.metric_name}): {contents(state)}"


def contents(state: State) -> str:
    """The number and the type of the points, in words."""
    n_points, n_columns = len(state.keys), state.live.n_columns
    if n_points == 0:
        return "empty"
    if n_columns is None:
        return _counted(n_points, "point")
    text = f"{_counted(n_points, 'point')}, {_counted(n_columns, 'column')} of {state.live.dtype.name}"
    names = state.column_names or ()
    more = ", …" if len(names) > _N_NAMES else ""
    return f"{text}: {', '.join(names[:_N_NAMES])}{more}" if names else text


def _tree_and_keys(state: State) -> tuple[NDArray[np.float64], list[Hashable]]:
    """The linkage matrix, and the keys of its leaves."""
    return views.linkage_matrix(state.live, state.keys.leaves()), state.keys.keys()


def _prototypes_of_merges(state: State, Z: NDArray[np.float64], merges: NDArray[np.intp]) -> dict[int, int]:
    """The prototype leaves of some merges of `Z`, by their numbers there, unless that would be slow."""
    live, leaves = state.live, state.keys.leaves()
    size = Z[merges - leaves.size, 3]
    is_soon = _within(size, _MOST_LOOKED_AT) if live.scheme.has_statistics else size <= _MOST_COMPARED
    merges = np.sort(merges[is_soon])
    if merges.size == 0:
        return {}
    nodes = views.find_merges(live).inner[merges - leaves.size]
    number = np.empty(live.tree.parent.size, np.intp)
    number[leaves] = np.arange(leaves.size)
    return dict(zip(merges.tolist(), number[live.prototypes(nodes)].tolist(), strict=True))


def _name(state: State) -> str:
    scheme = state.live.scheme
    metric = scheme.metric if isinstance(scheme.metric, str) else scheme.metric_name
    return f"{scheme.linkage.name.capitalize()} on {metric}"


def _quality(state: State) -> str:
    """The share of nodes that are checked and need no change; the others may not need one either."""
    live = state.live
    n_nodes = 2 * len(state.keys) - 1
    n_waiting = min(live.n_pending + (live.n_due if live.aim.is_stable else 0), n_nodes)
    if not (live.aim.is_stable or live.work.state["goal"][0] == HOMOGENEOUS or live.scheme.linkage.strongly_reducible):
        n_waiting = n_nodes  # it was refined to the other goal, and may no longer meet this one
    if n_waiting == 0 or len(state.keys) < 3:
        return "100%: the tree has reached its goal"
    if n_waiting == n_nodes:
        return f"not measured: all {n_nodes:,} nodes are to be looked at, see refine()"
    share = math.floor(1000 * (1 - n_waiting / n_nodes)) / 10
    return f"at least {share:.1f}%: {n_waiting:,} of {n_nodes:,} nodes are to be looked at, see refine()"


def _labels_of(partition: Partition | Any, keys: list[Hashable]) -> Any:
    """The labels of a partition, if it is of the live points; anything else is treated as labels."""
    if not isinstance(partition, Partition):
        return partition
    if partition.keys != keys:
        raise ParameterError("partition must be of the points that are live now: make it again with partition()")
    return partition.labels


def _within(costs: NDArray[np.float64], budget: float) -> NDArray[np.bool_]:
    """Which items to take if each one that still fits the budget is taken in turn."""
    is_taken = np.zeros(costs.size, np.bool_)
    for i, cost in enumerate(costs.tolist()):
        is_taken[i] = cost <= budget
        budget -= cost if is_taken[i] else 0
    return is_taken


def _written(text: str, path: str | os.PathLike[str] | None) -> str:
    if path is not None:
        content = (text + "\n").encode()  # text that cannot be encoded leaves the file unchanged
        with atomic_write(path) as file:
            file.write(content)
    return text


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("" if number == 1 else "s")
