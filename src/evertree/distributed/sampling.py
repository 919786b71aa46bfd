"""A tree over a sample of the points, cut into parts.

The sample depends only on the insertion numbers and the seed, and the cut on the number of points: chunks and workers
do not matter.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evertree.distributed.chunks import Chunk
from evertree.distributed.parts import build_subtree
from evertree.distributed.subtrees import Subtrees
from evertree.kernels.columns import NULL
from evertree.tree import Aim
from evertree.tree.scheme import Scheme

#: The size of a sample: the larger of a fixed number and a number for each part.
FEWEST_SAMPLED = 20_000
SAMPLED_PER_PART = 200

#: A part may get this times its share of the sample: otherwise most parts would be half empty.
OVERFULL = 1.5

#: Factors of splitmix64.
_STEP, _FIRST, _SECOND = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


class RoutingTree(NamedTuple):
    """A tree that tells which part a point belongs to. It is cut into *groups*, and a part gets some of these.

    A group is a subtree here, and all points that are routed to it become one subtree of the part.
    """

    tree: Subtrees
    group: NDArray[np.int32]  # (n_nodes,) of each node; NULL for those above all groups
    roots: NDArray[np.int64]  # (n_groups,) the root of each group, in the order of the tree
    part: NDArray[np.int64]  # (n_groups,) of each group
    children: NDArray[np.int32]  # (n_groups - 1, 2) the tree above the groups, in postorder


def share_of(n_points: int, part_size: int) -> float:
    """The share of the points in the sample."""
    n_parts = -(-n_points // part_size)
    return min(1.0, max(FEWEST_SAMPLED, SAMPLED_PER_PART * n_parts) / max(n_points, 1))


def sample_chunk(chunk: Chunk, first: int, share: float, seed: int) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """The insertion numbers, from `first` on, and the points of a chunk that are in the sample."""
    ids = np.arange(first, first + len(chunk.points))
    chosen = np.flatnonzero(_hash(ids, seed) < share)
    return ids[chosen], chunk.points[chosen]


def plan(
    samples: list[tuple[NDArray[np.int64], NDArray[Any]]], n_points: int, part_size: int, scheme: Scheme, aim: Aim
) -> RoutingTree:
    """Build a tree over the samples, and cut it into parts that will have about `part_size` points."""
    ids, points = (np.concatenate(columns) for columns in zip(*samples, strict=True))
    tree = build_subtree(points, ids, None, scheme, aim).subtrees
    return cut_into_parts(tree, max(1.0, part_size * ids.size / n_points))


def cut_into_parts(tree: Subtrees, most: float) -> RoutingTree:
    """Cut a tree into its largest subtrees of at most `most` points, and put neighbours among these into one part."""
    first, stop = tree.leaf_ranges()
    n_points = stop - first
    opened = np.flatnonzero(n_points[tree.n_leaves :] > most)
    roots, number = tree.cut_below(opened)
    children = number[tree.children[opened]].reshape(-1, 2)
    return RoutingTree(tree, groups_below(tree, roots), roots, _pack(n_points[roots], most), children)


def groups_below(tree: Subtrees, roots: NDArray[np.int64]) -> NDArray[np.int32]:
    """Which of some roots each node of a tree is below, or NULL."""
    first, stop = tree.leaf_ranges()
    group = np.full(tree.n_nodes, NULL, np.int32)
    for g, root in enumerate(roots.tolist()):
        n_below = int(stop[root] - first[root])
        group[first[root] : stop[root]] = g
        group[root - max(n_below - 2, 0) : root + 1] = g  # its unions, if it has any, end with itself
    return group


def _pack(size: NDArray[np.int64], most: float) -> NDArray[np.int64]:
    """The part of each group: neighbours are put into one part of about `most` points."""
    part, filled = 0, 0.0
    parts: list[int] = []
    for n_points in size.tolist():
        if parts and filled + n_points > OVERFULL * most:
            part, filled = part + 1, 0.0
        filled += n_points
        parts.append(part)
    return np.array(parts, np.int64)


def _hash(ids: NDArray[np.int64], seed: int) -> NDArray[np.float64]:
    """A pseudo-random number from 0 to 1 for each of `ids`, by splitmix64."""
    start = np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]
    with np.errstate(over="ignore"):
        bits = start + (ids.astype(np.uint64) + np.uint64(1)) * _STEP
        bits = (bits ^ (bits >> np.uint64(30))) * _FIRST
        bits = (bits ^ (bits >> np.uint64(27))) * _SECOND
    return (bits ^ (bits >> np.uint64(31))) / 2.0**64
