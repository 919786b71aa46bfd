"""The nodes at all boundaries of parts, refined as one tree and distributed again. Every function here is pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evertree.distributed.parts import PartSummary
from evertree.distributed.subtrees import STRIDE, Shape, Subtrees, from_live, join, to_live
from evertree.tree import Aim
from evertree.tree.scheme import Scheme

#: No part gets more than this times `part_size` points, unless they are one stub.
LARGEST_PART = 2


class TopTree(NamedTuple):
    """The tree above the subtrees of all parts."""

    ids: NDArray[np.int64]  # (k,) the number of the part of each subtree times STRIDE, plus its position there
    children: NDArray[np.int32]  # (k - 1, 2) as in `Subtrees`

    def without(self, gone: NDArray[np.bool_]) -> TopTree:
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
        return TopTree(self.ids[stays], np.array(children, np.int32).reshape(-1, 2))

    def join(self, parts: Mapping[int, Subtrees]) -> Subtrees:
        """The top tree with the subtrees of all parts, or of their summaries, in place of its leaves."""
        trees = {number: subtrees.split() for number, subtrees in parts.items()}
        return join(self.children, [trees[i // STRIDE][i % STRIDE] for i in self.ids.tolist()])


class Rebalanced(NamedTuple):
    """The new top tree, and what each part gets."""

    top: TopTree
    shapes: dict[int, list[Shape]]  # the subtrees of each part, the oldest first
    moves: int
    grafts: int


def join_summaries(top: TopTree, numbers: Sequence[int], summaries: Sequence[PartSummary]) -> Subtrees:
    """The upper tree: the top tree with the summaries of the parts of these numbers."""
    return top.join({number: summary.subtrees for number, summary in zip(numbers, summaries, strict=True)})


def rebalance(
    top: TopTree, numbers: Sequence[int], summaries: Sequence[PartSummary], part_size: int, scheme: Scheme, aim: Aim
) -> Rebalanced:
    """Refine the upper tree, and assign its subtrees of up to `part_size` points to parts.

    A subtree goes to the part that has most of its points, if there is room.
    """
    upper = join_summaries(top, numbers, summaries)
    live = to_live(upper, scheme, aim)
    live.rebuild()
    while live.n_pending or live.n_due:
        live.stabilise()
    refined, _ = from_live(live, upper)
    opened = np.flatnonzero(refined.signatures()[refined.n_leaves :, 1] > part_size)
    nodes, number = refined.cut_below(opened)
    trees = refined.at(nodes)
    part = _assign(trees, part_size)
    shapes: dict[int, list[Shape]] = {}
    ids = np.empty(nodes.size, np.int64)
    for i in np.argsort([int(tree.birth[0]) for tree in trees]).tolist():
        of_part = shapes.setdefault(part[i], [])
        ids[i] = part[i] * STRIDE + len(of_part)
        of_part.append(trees[i].shape())
    new_top = TopTree(ids, number[refined.children[opened]].reshape(-1, 2))
    return Rebalanced(new_top, shapes, live.n_moves, live.n_grafts)


def _assign(trees: list[Subtrees], part_size: int) -> list[int]:
    """The number of the part that each subtree goes to."""
    shares = [_points_by_part(tree) for tree in trees]
    load = dict.fromkeys(sorted({part for share in shares for part in share}), 0)
    assigned = [0] * len(trees)

    # A subtree from one part stays there as long as there is room; the large ones come first.
    def turn(i: int) -> tuple[bool, int, int]:
        return len(shares[i]) > 1, -trees[i].n_points, int(trees[i].birth[0])

    for i in sorted(range(len(trees)), key=turn):
        n_points, share = trees[i].n_points, shares[i]
        by_share = sorted(share, key=lambda part: (-share[part], part))
        by_room = sorted(load, key=lambda part: (load[part], part))
        for part in [*by_share, *by_room[:1], max(load) + 1]:
            filled = load.get(part, 0)
            if filled == 0 or filled + n_points <= LARGEST_PART * part_size:
                load[part] = filled + n_points
                assigned[i] = part
                break
    return assigned


def _points_by_part(tree: Subtrees) -> dict[int, int]:
    """The number of points of a subtree in each part."""
    assert tree.stubs is not None
    numbers, part = np.unique(tree.ids // STRIDE, return_inverse=True)
    n_points = np.zeros(numbers.size, np.int64)
    np.add.at(n_points, part, tree.stubs.n_points)
    return dict(zip(numbers.tolist(), n_points.tolist(), strict=True))
