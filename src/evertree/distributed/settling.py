"""One treelet over all borders: joined, refined, and shared out among the parts. Every function here is pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evertree.distributed.parts import STRIDE, Crown, subtrees
from evertree.distributed.pieces import Outline, Piece, deflate, inflate, join
from evertree.tree import Aim
from evertree.tree.scheme import Scheme

#: No part has more than so many times the points that one should have, unless they are one atom.
MOST_PARTS_IN_ONE = 2


class Top(NamedTuple):
    """The tree above the subtrees of all parts."""

    ids: NDArray[np.int64]  # (k,) the part of each subtree times STRIDE, plus its place there
    children: NDArray[np.int32]  # (k - 1, 2) as a piece has them

    def without(self, gone: NDArray[np.bool_]) -> Top:
        """The same without some of its leaves. O(k)."""
        k = self.ids.size
        stays = np.flatnonzero(~gone)
        number: list[int | None] = [None] * k
        for i, leaf in enumerate(stays.tolist()):
            number[leaf] = i
        children: list[tuple[int, int]] = []
        for left, right in self.children.tolist():
            a, b = number[left], number[right]
            if a is None or b is None:
                number.append(b if a is None else a)
            else:
                number.append(stays.size + len(children))
                children.append((a, b))
        return Top(self.ids[stays], np.array(children, np.int32).reshape(-1, 2))


class Settled(NamedTuple):
    """Where everything goes."""

    top: Top
    plans: dict[int, list[Outline]]  # the subtrees of each part, above atoms, the oldest first
    moves: int
    grafts: int


def join_parts(top: Top, pieces: Mapping[int, Piece]) -> Piece:
    """The tree above the parts, with the subtrees that they have, or show, for its leaves."""
    trees = {number: subtrees(piece) for number, piece in pieces.items()}
    return join(top.children, [trees[i // STRIDE][i % STRIDE] for i in top.ids.tolist()])


def join_crowns(top: Top, numbers: Sequence[int], crowns: Sequence[Crown]) -> Piece:
    """The tree above the parts of some numbers, with their crowns."""
    return join_parts(top, {number: crown.piece for number, crown in zip(numbers, crowns, strict=True)})


def settle(
    top: Top, numbers: Sequence[int], crowns: Sequence[Crown], part_size: int, scheme: Scheme, aim: Aim
) -> Settled:
    """Refine all crowns as one treelet, and share its subtrees of up to `part_size` points out among the parts.

    A subtree goes to the part that has most of its points, if that has room.
    """
    treelet = join_crowns(top, numbers, crowns)
    live = inflate(treelet, scheme, aim)
    live.rebuild()
    while live.n_pending or live.n_due:
        live.stabilise()
    refined, _ = deflate(live, treelet)
    n_points = refined.names()[:, 1]
    k = refined.n_leaves
    is_open = n_points[k:] > part_size
    opened = np.flatnonzero(is_open)
    is_subtree = np.zeros(refined.n_nodes, np.bool_)
    is_subtree[refined.roots()] = True
    is_subtree[refined.children[opened].ravel()] = True
    is_subtree[k + opened] = False
    first, stop = refined.stretches()
    nodes = np.flatnonzero(is_subtree)
    nodes = nodes[np.argsort(first[nodes])]
    pieces = [refined.subtree(int(u), int(first[u]), int(stop[u])) for u in nodes]
    plans: dict[int, list[Outline]] = {}
    ids = np.empty(nodes.size, np.int64)
    number = np.empty(refined.n_nodes, np.int32)
    number[nodes] = np.arange(nodes.size)
    number[k + opened] = nodes.size + np.arange(opened.size)
    holder = _share_out(pieces, part_size)
    for i in np.argsort([int(piece.birth[0]) for piece in pieces]).tolist():
        plan = plans.setdefault(holder[i], [])
        ids[i] = holder[i] * STRIDE + len(plan)
        plan.append(pieces[i].outline())
    above = Top(ids, number[refined.children[opened]].reshape(-1, 2))
    return Settled(above, plans, live.n_moves, live.n_grafts)


def _share_out(pieces: list[Piece], part_size: int) -> list[int]:
    """The part that each piece goes to."""
    shares = [_share_of_parts(piece) for piece in pieces]
    load = dict.fromkeys(sorted({part for share in shares for part in share}), 0)
    holder = [0] * len(pieces)

    # What one part has stays there, as far as there is room; the large come first.
    def turn(i: int) -> tuple[bool, int, int]:
        return len(shares[i]) > 1, -pieces[i].n_points, int(pieces[i].birth[0])

    for i in sorted(range(len(pieces)), key=turn):
        n_points, share = pieces[i].n_points, shares[i]
        by_share = sorted(share, key=lambda part: (-share[part], part))
        by_room = sorted(load, key=lambda part: (load[part], part))
        for part in [*by_share, *by_room[:1], max(load) + 1]:
            filled = load.get(part, 0)
            if filled == 0 or filled + n_points <= MOST_PARTS_IN_ONE * part_size:
                load[part] = filled + n_points
                holder[i] = part
                break
    return holder


def _share_of_parts(piece: Piece) -> dict[int, int]:
    """How many points of a piece are in each part."""
    assert piece.atoms is not None
    numbers, part = np.unique(piece.ids // STRIDE, return_inverse=True)
    n_points = np.zeros(numbers.size, np.int64)
    np.add.at(n_points, part, piece.atoms.n_points)
    return dict(zip(numbers.tolist(), n_points.tolist(), strict=True))
