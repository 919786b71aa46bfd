"""The nodes at all boundaries of parts, refined as one tree and distributed again. Every function here is pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from evertree.distributed.parts import PartSummary
from evertree.distributed.subtrees import STRIDE, Shape, Subtrees, from_live, join, to_live
from evertree.tree import Aim
from evertree.tree.scheme import Scheme

#: No part gets more than this times `part_size` points, unless they are one stub.
LARGEST_PART = 2


def join_parts(top: Shape, parts: Mapping[int, Subtrees]) -> Subtrees:
    """The top tree with the subtrees of all parts, or of their summaries, in place of its leaves."""
    trees = {number: subtrees.split() for number, subtrees in parts.items()}
    return join(top.children, [trees[i // STRIDE][i % STRIDE] for i in top.ids.tolist()])


def join_summaries(top: Shape, numbers: Sequence[int], summaries: Sequence[PartSummary]) -> Subtrees:
    """The upper tree: the top tree with the summaries of the parts of these numbers."""
    return join_parts(top, {number: summary.subtrees for number, summary in zip(numbers, summaries, strict=True)})


def rebalance(
    top: Shape, numbers: Sequence[int], summaries: Sequence[PartSummary], part_size: int, scheme: Scheme, aim: Aim
) -> tuple[Shape, dict[int, list[Shape]], int, int]:
    """Refine the upper tree, and assign its subtrees of up to `part_size` points to parts.

    A subtree goes to the part that has most of its points, if there is room.

    Returns
    -------
    top
        The new top tree.
    shapes
        The subtrees of each part, the oldest first.
    moves, grafts
        Made by the refinement.
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
    new_top = Shape(ids, number[refined.children[opened]].reshape(-1, 2))
    return new_top, shapes, live.n_moves, live.n_grafts


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
