"""A tree over a sample of the points, and the parts that it is cut into.

Which points are sampled depends on their numbers and the seed alone, and how the tree is cut on the number of points:
neither chunks nor workers matter.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evertree.distributed.chunks import Chunk
from evertree.distributed.parts import build
from evertree.distributed.pieces import Piece
from evertree.kernels.columns import NULL
from evertree.tree import Aim
from evertree.tree.scheme import Scheme

#: Points of a sample: so many, or so many for each part.
FEWEST_SAMPLED = 20_000
SAMPLED_PER_PART = 200

#: A part may have so many times the points that parts should have: otherwise most would be half empty.
OVERFULL = 1.5

#: Factors of splitmix64, which scatters whole numbers evenly.
_STEP, _FIRST, _SECOND = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


class Points(NamedTuple):
    """Some points as they were given, by ascending number."""

    ids: NDArray[np.int64]
    points: NDArray[Any]

    @classmethod
    def joined(cls, some: list[Points]) -> Points:
        """Several, in the order of their numbers."""
        return cls(np.concatenate([one.ids for one in some]), np.concatenate([one.points for one in some]))


class Plan(NamedTuple):
    """A tree over a sample, and how it is cut: into *groups*, which are subtrees, and these into parts."""

    piece: Piece  # the tree
    group: NDArray[np.int32]  # (n_nodes,) of each node; NULL for those above all groups
    roots: NDArray[np.int64]  # (n_groups,) the root of each group; those near in the tree have near numbers
    part: NDArray[np.int64]  # (n_groups,) of each group
    children: NDArray[np.int32]  # (n_groups - 1, 2) the tree above the groups, numbered as in a piece


def share_of(n_points: int, part_size: int) -> float:
    """The share of the points that is sampled."""
    n_parts = -(-n_points // part_size)
    return min(1.0, max(FEWEST_SAMPLED, SAMPLED_PER_PART * n_parts) / max(n_points, 1))


def sample_chunk(chunk: Chunk, first: int, share: float, seed: int) -> Points:
    """Those points of a chunk, whose first has the number `first`, that are in the sample."""
    ids = np.arange(first, first + len(chunk.points))
    chosen = np.flatnonzero(_scattered(ids, seed) < share)
    return Points(ids[chosen], chunk.points[chosen])


def plan(samples: list[Points], n_points: int, part_size: int, scheme: Scheme, aim: Aim) -> Plan:
    """Grow a tree over the samples, and cut it into parts that will have about `part_size` of the points."""
    sample = Points.joined(samples)
    piece = build(sample.points, sample.ids, None, scheme, aim).piece
    return cut_into_parts(piece, max(1.0, part_size * sample.ids.size / n_points))


def cut_into_parts(piece: Piece, most: float) -> Plan:
    """Cut a tree into its largest subtrees of at most so many points, and gather neighbours among these into parts."""
    k = piece.n_leaves
    first, stop = piece.stretches()
    is_small = stop - first <= most
    above = np.flatnonzero(~is_small)
    is_root = np.zeros(piece.n_nodes, np.bool_)
    is_root[piece.roots()] = True
    is_root[piece.children[above - k].ravel()] = True
    roots = np.flatnonzero(is_root & is_small)
    roots = roots[np.argsort(first[roots])]
    number = np.empty(piece.n_nodes, np.int32)
    number[roots], number[above] = np.arange(roots.size), roots.size + np.arange(above.size)
    children = number[piece.children[above - k]].reshape(-1, 2)
    return Plan(piece, groups_below(piece, roots), roots, _packed(stop[roots] - first[roots], most), children)


def groups_below(piece: Piece, roots: NDArray[np.int64]) -> NDArray[np.int32]:
    """For each node of a piece, below which of some roots it is, or NULL."""
    first, stop = piece.stretches()
    group = np.full(piece.n_nodes, NULL, np.int32)
    for g, root in enumerate(roots.tolist()):
        n_below = int(stop[root] - first[root])
        group[first[root] : stop[root]] = g
        group[root - max(n_below - 2, 0) : root + 1] = g  # its unions, if it has any, end with itself
    return group


def _packed(size: NDArray[np.int64], most: float) -> NDArray[np.int64]:
    """A number for each group, the same for neighbours that have about so many points together."""
    part, filled = 0, 0.0
    parts: list[int] = []
    for n_points in size.tolist():
        if parts and filled + n_points > OVERFULL * most:
            part, filled = part + 1, 0.0
        filled += n_points
        parts.append(part)
    return np.array(parts, np.int64)


def _scattered(ids: NDArray[np.int64], seed: int) -> NDArray[np.float64]:
    """A number from 0 to 1 for each of `ids`, as good as random, and always the same."""
    start = np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]
    with np.errstate(over="ignore"):
        bits = start + (ids.astype(np.uint64) + np.uint64(1)) * _STEP
        bits = (bits ^ (bits >> np.uint64(30))) * _FIRST
        bits = (bits ^ (bits >> np.uint64(27))) * _SECOND
    return (bits ^ (bits >> np.uint64(31))) / 2.0**64
