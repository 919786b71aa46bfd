"""Builds a tree in parts from chunks of points, and inserts more chunks into one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertree.distributed.chunks import Chunk, Chunks
from evertree.distributed.dask_runner import DaskRunner, share
from evertree.distributed.distributed_tree import DistributedTree
from evertree.distributed.parts import Part, build_subtree, combine, insert_into
from evertree.distributed.routing import GroupedPoints, shuffle
from evertree.distributed.sampling import RoutingTree, groups_below, plan, sample_chunk, share_of
from evertree.distributed.subtrees import STRIDE, Subtrees
from evertree.tree import Aim
from evertree.tree.scheme import Scheme


def build_tree(runner: DaskRunner, chunks: Chunks, empty: DistributedTree, seed: int) -> DistributedTree:
    """A tree over the points of some chunks, with the options of an empty one, not yet refined across parts.

    Dask builds each part where most of its points are.
    """
    scheme, aim, part_size = empty.scheme, empty.aim, empty.part_size
    if chunks.n_rows <= part_size:
        parts = [[runner.submit("pick", one_group, *chunk) for chunk in zip(chunks.handles, chunks.first, strict=True)]]
        part_of, children = np.zeros(1, np.int64), np.empty((0, 2), np.int32)
    else:
        routing = _sample_and_plan(runner, chunks, scheme, aim, part_size, seed)
        ((part_of, children),) = runner.gather([runner.submit("plan-shape", _groups_of, routing)])
        parts = shuffle(runner, chunks, routing, part_of, scheme, aim)
    n_groups = np.bincount(part_of).tolist()
    handles = {}
    for number, picked in enumerate(parts):
        shape = chunks.n_columns, chunks.dtype
        handles[number] = runner.submit("build", build_part, list(picked), n_groups[number], shape, scheme, aim)
        picked.clear()  # the points are released when the part is built
    runner.wait(handles.values())
    return DistributedTree.from_parts(runner, handles, part_of, children, scheme, aim, part_size)


def insert_chunks(runner: DaskRunner, tree: DistributedTree, chunks: Chunks) -> dict[int, Any]:
    """Handles of the parts that get points, with these."""
    scheme, aim = tree.scheme, tree.aim
    routing = upper_routing(tree, runner)
    shared = share(runner, "plan", routing)
    # The numbers of parts have gaps.
    numbers, part_of = np.unique(routing.part, return_inverse=True)
    nodes = routing.tree.ids[routing.tree.leaf_ranges()[0][routing.roots]] % STRIDE
    handles = {}
    for i, picked in enumerate(shuffle(runner, chunks, shared, part_of, scheme, aim)):
        if picked:
            number = int(numbers[i])
            old = tree.handles[number]
            how = nodes[part_of == i], scheme, aim, tree.is_due(number)
            handles[number] = runner.submit("insert", insert_points, old, picked, *how)
    runner.wait(handles.values())
    return handles


def upper_routing(tree: DistributedTree, runner: DaskRunner) -> RoutingTree:
    """The upper tree for routing: each subtree of a part is a group."""
    upper = tree.upper(runner)
    first, _ = upper.leaf_ranges()
    roots = _roots(upper, tree.top.children)
    part = upper.ids[first[roots]] // STRIDE
    order = np.lexsort([first[roots], part])
    return RoutingTree(upper, groups_below(upper, roots[order]), roots[order], part[order], np.empty((0, 2), np.int32))


def _roots(upper: Subtrees, children: NDArray[np.int32]) -> NDArray[np.int64]:
    """The nodes of the upper tree that are the leaves of the top tree, which has these children."""
    n_leaves, n_unions = len(children) + 1, len(children)
    node = np.empty(n_leaves + n_unions, np.int64)
    node[-1] = upper.n_nodes - 1
    for j in range(n_unions - 1, -1, -1):
        node[children[j]] = upper.children[node[n_leaves + j] - upper.n_leaves]
    return node[:n_leaves]


def build_part(
    picked: Sequence[GroupedPoints], n_groups: int, shape: tuple[int, np.dtype[Any]], scheme: Scheme, aim: Aim
) -> Part:
    """A part of the points that were picked for it from chunks: a subtree for each of its groups."""
    subtrees = []
    for g in range(n_groups):
        rows = [(some, some.rows(g, g + 1)) for some in picked]
        ids = np.concatenate([np.empty(0, np.int64), *(some.ids[here] for some, here in rows)])
        points = np.concatenate([np.empty((0, shape[0]), shape[1]), *(some.points[here] for some, here in rows)])
        subtrees.append(build_subtree(points, ids, None, scheme, aim))
    return combine(subtrees)


def insert_points(
    part: Part, picked: Sequence[GroupedPoints], nodes: NDArray[np.int64], scheme: Scheme, aim: Aim, still_due: bool
) -> Part:
    """A part with the points that were picked for it, each in the subtree that has the node of its group."""
    ids = np.concatenate([some.ids for some in picked])
    points = np.concatenate([some.points for some in picked])
    node = np.concatenate([np.repeat(nodes, np.diff(some.starts)) for some in picked])
    order = np.argsort(ids)
    return insert_into(part, node[order], points[order], ids[order], None, scheme, aim, still_due)


def one_group(chunk: Chunk, first: int) -> GroupedPoints:
    """All points of a chunk, with insertion numbers from `first` on, as one group."""
    n_points = len(chunk.points)
    return GroupedPoints(np.arange(first, first + n_points), chunk.points, np.array([0, n_points]))


def _sample_and_plan(runner: DaskRunner, chunks: Chunks, scheme: Scheme, aim: Aim, part_size: int, seed: int) -> Any:
    share = share_of(chunks.n_rows, part_size)
    samples = [
        runner.submit("sample", sample_chunk, chunk, first, share, seed)
        for chunk, first in zip(chunks.handles, chunks.first, strict=True)
    ]
    return runner.submit("plan", plan, samples, chunks.n_rows, part_size, scheme, aim)


def _groups_of(routing: RoutingTree) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    return routing.part, routing.children
