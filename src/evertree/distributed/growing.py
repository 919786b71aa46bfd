"""From chunks of points to a tree in parts; and more points into a tree that is there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertree.distributed.chunks import Chunk, Chunks
from evertree.distributed.on_dask import OnDask
from evertree.distributed.parts import STRIDE, Part, build, in_one, insert_into
from evertree.distributed.pieces import Piece
from evertree.distributed.refining import Forest
from evertree.distributed.routing import Routed, shuffle
from evertree.distributed.runner import share
from evertree.distributed.sampling import Plan, Points, groups_below, plan, sample_chunk, share_of
from evertree.tree import Aim
from evertree.tree.scheme import Scheme


def grow(runner: OnDask, chunks: Chunks, like: Forest, seed: int) -> Forest:
    """A tree over the points of some chunks, not yet refined across the borders of its parts; like an empty one.

    Each part is built where most of its points are.
    """
    scheme, aim, part_size = like.scheme, like.aim, like.part_size
    if chunks.n_rows <= part_size:
        parts = [[runner.submit("pick", all_of, *chunk) for chunk in zip(chunks.handles, chunks.first, strict=True)]]
        part_of, children = np.zeros(1, np.int64), np.empty((0, 2), np.int32)
    else:
        planned = _plan(runner, chunks, scheme, aim, part_size, seed)
        ((part_of, children),) = runner.gather([runner.submit("plan-shape", _shape_of, planned)])
        parts = shuffle(runner, chunks, planned, part_of, scheme, aim)
    n_groups = np.bincount(part_of).tolist()
    handles = {}
    for number, picked in enumerate(parts):
        shape = chunks.n_columns, chunks.dtype
        handles[number] = runner.submit("build", build_part, list(picked), n_groups[number], shape, scheme, aim)
        picked.clear()  # what was picked goes when the part is built
    runner.wait(handles.values())
    return Forest.joined(runner, handles, part_of, children, scheme, aim, part_size)


def extend(runner: OnDask, forest: Forest, chunks: Chunks) -> dict[int, Any]:
    """The parts that get points of some chunks: handles of what they become."""
    scheme, aim = forest.scheme, forest.aim
    owners = plan_of(forest, runner)
    planned = share(runner, "plan", owners)
    # Not every part has a place among the numbers from 0 on.
    numbers, part_of = np.unique(owners.part, return_inverse=True)
    nodes = owners.piece.ids[owners.piece.stretches()[0][owners.roots]] % STRIDE
    handles = {}
    for i, picked in enumerate(shuffle(runner, chunks, planned, part_of, scheme, aim)):
        if picked:
            number = int(numbers[i])
            old = forest.handles[number]
            how = nodes[part_of == i], scheme, aim, forest.is_due(number)
            handles[number] = runner.submit("insert", insert_points, old, picked, *how)
    runner.wait(handles.values())
    return handles


def plan_of(forest: Forest, runner: OnDask) -> Plan:
    """The upper nodes of a tree that is there as a plan, in which each subtree of a part is a group."""
    upper = forest.upper(runner)
    first, _ = upper.stretches()
    roots = _roots(upper, forest.top.children)
    part = upper.ids[first[roots]] // STRIDE
    order = np.lexsort([first[roots], part])
    return Plan(upper, groups_below(upper, roots[order]), roots[order], part[order], np.empty((0, 2), np.int32))


def _roots(upper: Piece, children: NDArray[np.int32]) -> NDArray[np.int64]:
    """The nodes of the upper tree that the leaves of the top, which has these children, stand for."""
    n_leaves, n_unions = len(children) + 1, len(children)
    node = np.empty(n_leaves + n_unions, np.int64)
    node[-1] = upper.n_nodes - 1
    for j in range(n_unions - 1, -1, -1):
        node[children[j]] = upper.children[node[n_leaves + j] - upper.n_leaves]
    return node[:n_leaves]


def build_part(
    picked: Sequence[Routed], n_groups: int, shape: tuple[int, np.dtype[Any]], scheme: Scheme, aim: Aim
) -> Part:
    """A part of the points that were picked for it from chunks: a subtree for each of its groups."""
    empty = Points(np.empty(0, np.int64), np.empty((0, shape[0]), shape[1]))
    groups = [Points.joined([empty, *(routed.group(g) for routed in picked)]) for g in range(n_groups)]
    return in_one([build(group.points, group.ids, None, scheme, aim) for group in groups])


def insert_points(
    part: Part, picked: Sequence[Routed], nodes: NDArray[np.int64], scheme: Scheme, aim: Aim, still_due: bool
) -> Part:
    """A part with the points that were picked for it, each in the subtree that has the node of its group."""
    ids = np.concatenate([routed.ids for routed in picked])
    points = np.concatenate([routed.points for routed in picked])
    node = np.concatenate([np.repeat(nodes, np.diff(routed.starts)) for routed in picked])
    order = np.argsort(ids)
    return insert_into(part, node[order], points[order], ids[order], None, scheme, aim, still_due)


def all_of(chunk: Chunk, first: int) -> Routed:
    """All points of a chunk, whose first has the number `first`, as those of one group."""
    n_points = len(chunk.points)
    return Routed(np.arange(first, first + n_points), chunk.points, np.array([0, n_points]))


def _plan(runner: OnDask, chunks: Chunks, scheme: Scheme, aim: Aim, part_size: int, seed: int) -> Any:
    share = share_of(chunks.n_rows, part_size)
    samples = [
        runner.submit("sample", sample_chunk, chunk, first, share, seed)
        for chunk, first in zip(chunks.handles, chunks.first, strict=True)
    ]
    return runner.submit("plan", plan, samples, chunks.n_rows, part_size, scheme, aim)


def _shape_of(plan: Plan) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    return plan.part, plan.children
