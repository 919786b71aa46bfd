"""`Part`: some subtrees of points that one task works on, and what tasks do with one. Every function here is pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evertree import kernels
from evertree.distributed.pieces import Outline, Piece, deflate, inflate, join, live_nodes, side_by_side, split
from evertree.kernels.columns import NULL, TO_FIND
from evertree.tree import Aim, Incoming
from evertree.tree.parallel.treelets import LoneTree
from evertree.tree.scheme import Scheme
from evertree.tree.statistics import plain

#: The id of an atom is the number of its part times this, plus its node there.
STRIDE = 1 << 40

#: The crown of a part opens its nodes with more than one in so many of its points, up to so many of them.
SHARE_OPEN = 64
MOST_OPEN = 256

#: Points that are inserted before nodes may be numbered anew.
_AT_ONCE = 4_096

_NO_NODES = np.empty(0, np.int64)
_NO_LEAVES = np.empty(0, np.int32)

#: Names of no node: see `Piece.names`.
NO_NAMES = np.empty((0, 2), np.int64)


class Part(NamedTuple):
    """Some subtrees of points, the oldest first."""

    piece: Piece
    due: NDArray[np.bool_]  # (n_nodes,) whether a blocking pair with the node may have arisen since all were asked for
    origin: NDArray[np.int64]  # which subtree of the part before it each one is, or which group it was built from
    moves: int  # made by the last task
    grafts: int


class Crown(NamedTuple):
    """The upper nodes of a part: what the others see of it."""

    piece: Piece  # each subtree above atoms, in the order of the part
    origin: NDArray[np.int64]
    n_due: int
    lightest: float  # no point weighs less
    moves: int
    grafts: int


class Twig(NamedTuple):
    """A subtree that goes to another part, and the id that it had as an atom."""

    id: int
    piece: Piece


def build(
    points: NDArray[Any], ids: NDArray[np.int64], weights: NDArray[np.float64] | None, scheme: Scheme, aim: Aim
) -> Part:
    """A part of one subtree over checked points, which is stable, or of none where there are no points.

    Parameters
    ----------
    points
        As they were given.
    ids
        Their insertion numbers, which break ties.
    weights
        None if each weighs 1.
    """
    assert scheme.vectors is not None
    live = LoneTree(scheme, aim, points.shape[1], points.dtype)
    live.reserve(ids.size)
    incoming = Incoming(points, coordinates=scheme.vectors.coordinates(points))
    leaves = live.add_leaves(incoming, np.ones(ids.size) if weights is None else weights, plain(ids), _NO_LEAVES)
    for start in range(0, leaves.size, _AT_ONCE):
        live.insert(leaves[start : start + _AT_ONCE])
        place = live.reorder()
        leaves = leaves if place is None else place[leaves]
    live.prepare_search()
    while live.n_pending or live.n_due:
        live.stabilise()
        live.reorder()
    piece, _ = deflate(live)
    n_subtrees = min(1, piece.n_leaves)
    return Part(piece, np.ones(piece.n_nodes, np.bool_), np.arange(n_subtrees), live.n_moves, live.n_grafts)


def in_one(parts: Sequence[Part]) -> Part:
    """The subtrees of several parts in one; their `origin` says from which."""
    moves, grafts = sum(part.moves for part in parts), sum(part.grafts for part in parts)
    some = [(i, part) for i, part in enumerate(parts) if part.piece.n_leaves]
    if not some:
        return parts[0]._replace(moves=moves, grafts=grafts)
    some.sort(key=lambda entry: int(entry[1].piece.ids.min()))
    piece = side_by_side([part.piece for _, part in some])
    return Part(piece, np.ones(piece.n_nodes, np.bool_), np.array([i for i, _ in some]), moves, grafts)


def subtrees(piece: Piece) -> list[Piece]:
    """Each subtree of a piece on its own."""
    first, stop = piece.stretches()
    return [piece.subtree(int(root), int(first[root]), int(stop[root])) for root in piece.roots()]


def crown(part: Part, number: int, nodes: NDArray[np.int64] | None, part_size: int, scheme: Scheme, aim: Aim) -> Crown:
    """The upper nodes of a part that has this number, and the paths to some `nodes`, which become atoms.

    No atom has more than `part_size` points.
    """
    piece = part.piece
    is_open = _is_upper(piece) | (piece.names()[piece.n_leaves :, 1] > part_size)
    if nodes is not None:
        is_wanted = np.zeros(piece.n_nodes, np.bool_)
        is_wanted[nodes] = True
        kernels.shared.cross_partition.open_paths(plain(piece.children), piece.n_leaves, is_wanted, is_open)
    upper = split(piece, inflate(piece, scheme, aim), is_open, number * STRIDE)
    lightest = float(piece.size.min(initial=np.inf))
    return Crown(upper, part.origin, int(np.count_nonzero(part.due)), lightest, part.moves, part.grafts)


def outlines(crown: Crown) -> list[Outline]:
    """The shape of each subtree of a crown."""
    return [piece.outline() for piece in subtrees(crown.piece)]


def names_of(part: Part, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
    """The names of nodes, which they keep wherever they go."""
    return part.piece.names()[nodes]


def give(part: Part, number: int, ids: NDArray[np.int64]) -> list[Twig]:
    """Copies of the subtrees that are some atoms elsewhere."""
    first, stop = part.piece.stretches()
    return [
        Twig(int(i), part.piece.subtree(int(u), int(first[u]), int(stop[u])))
        for i, u in zip(ids, ids - number * STRIDE, strict=True)
    ]


def take(
    part: Part | None,
    number: int,
    plan: Sequence[Outline],
    is_new: Sequence[bool],
    gifts: Sequence[Sequence[Twig]],
    names: NDArray[np.int64],
    scheme: Scheme,
    aim: Aim,
) -> Part:
    """A part as planned, refined where that is new.

    Parameters
    ----------
    part
        As it was; None where there was none of this number.
    plan
        The subtrees that it shall have, above atoms of its own and of others.
    is_new
        Whether each of them is another than before, so that it is refined.
    gifts
        The atoms of others.
    names
        Of nodes that are due for other reasons.
    """
    given = [twig for twigs in gifts for twig in twigs]
    pieces = {twig.id: twig.piece for twig in given}
    if part is not None:
        own = np.concatenate([_NO_NODES, *(above.ids for above in plan)])
        pieces.update(give(part, number, own[own // STRIDE == number]))
    piece = side_by_side([join(above.children, [pieces[i] for i in above.ids.tolist()]) for above in plan])
    seams = np.concatenate([NO_NAMES, *(above.names for above, new in zip(plan, is_new, strict=True) if new)])
    # What has arrived was near to nothing where it was: it looks for neighbours, as new points do.
    arrived = np.concatenate([NO_NAMES, *(twig.piece.names() for twig in given)])
    is_due, has_arrived = np.zeros(piece.n_nodes, np.bool_), np.zeros(piece.n_nodes, np.bool_)
    has_arrived[find_nodes(piece, arrived)] = True
    # The partner of a node with a name may now be in the same subtree, where nobody asks.
    is_due[find_nodes(piece, np.concatenate([seams, names]))] = True
    is_due |= has_arrived
    edit = _Edit(piece, scheme, aim)
    for subtree in np.flatnonzero(is_new).tolist():
        nodes = edit.begin(subtree)
        fresh = nodes[has_arrived[nodes] & (nodes < piece.n_leaves)]
        kernels.shared.neighbours.forget_leaves(edit.live.search, edit.node[fresh], TO_FIND)
        kernels.shared.worklist.push_bottom_up(edit.live.work, edit.node[nodes[is_due[nodes]]])
        edit.end()
    return edit.part(np.concatenate([seams, names]))


def insert_into(
    part: Part,
    nodes: NDArray[np.int64],
    points: NDArray[Any],
    ids: NDArray[np.int64],
    weights: NDArray[np.float64] | None,
    scheme: Scheme,
    aim: Aim,
    still_due: bool = True,
) -> Part:
    """A part with more points, each in the subtree that has the given node of the part.

    Nodes that were due in it are `still_due`, or have asked since.
    """
    assert scheme.vectors is not None
    edit = _Edit(part.piece, scheme, aim, ids.size)
    incoming = Incoming(points, coordinates=scheme.vectors.coordinates(points))
    leaves = edit.live.add_leaves(incoming, np.ones(ids.size) if weights is None else weights, plain(ids), _NO_LEAVES)
    subtree = subtree_of(part.piece, nodes)
    for i in np.unique(subtree).tolist():
        edit.begin(i)
        edit.live.insert(leaves[subtree == i])
        edit.end()
    return edit.part(part.piece.names()[part.due] if still_due else NO_NAMES)


def remove_from(part: Part, ids: NDArray[np.int64], scheme: Scheme, aim: Aim, still_due: bool = True) -> Part:
    """A part without the points of these insertion numbers, all of which it has.

    Nodes that were due in it are `still_due`, or have asked since.
    """
    edit = _Edit(part.piece, scheme, aim)
    rows = np.flatnonzero(np.isin(part.piece.ids, ids))
    subtree = subtree_of(part.piece, rows)
    for i in np.unique(subtree).tolist():
        edit.begin(i)
        leaves = (2 * rows[subtree == i]).astype(np.int32)
        edit.live.detach(leaves)
        edit.live.release(leaves)
        edit.end()
    return edit.part(part.piece.names()[part.due] if still_due else NO_NAMES)


def has_ids(part: Part, ids: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of some insertion numbers a part has."""
    return np.isin(ids, part.piece.ids)


def scan(piece: Piece, nodes: NDArray[np.int64] | None, scheme: Scheme, aim: Aim) -> tuple[int, int]:
    """How many nodes are above their parent, and at how many homogeneity is violated, by a full scan.

    Of some `nodes`, or of all; the roots of subtrees have no parent here.
    """
    live = inflate(piece, scheme, aim)
    looked_at = live_nodes(piece, np.arange(piece.n_nodes) if nodes is None else nodes)
    found = np.empty(max(len(piece.children), 1), np.int32)
    n_inverted = kernels.shared.violations.find_inversions(live.tree, live.tag, found)
    inverted = np.isin(found[:n_inverted], looked_at).sum()
    n_violated = kernels.shared.violations.find_violations(live.tree, live.tag, found)
    return int(inverted), int(np.isin(found[:n_violated], looked_at).sum())


def subtree_of(piece: Piece, nodes: NDArray[np.integer]) -> NDArray[np.intp]:
    """Which subtree of a piece some nodes are in."""
    first, stop = piece.stretches()
    return np.searchsorted(stop[piece.roots()], first[nodes], side="right")


def find_nodes(piece: Piece, names: NDArray[np.int64]) -> NDArray[np.intp]:
    """The nodes that have one of some names, which need not be there. O(k log k)."""
    if len(names) == 0 or piece.n_leaves == 0:
        return np.empty(0, np.intp)
    first, stop = piece.stretches()
    by_id = np.argsort(piece.ids)
    at = np.searchsorted(piece.ids, names[:, 0], sorter=by_id)
    leaf = by_id[np.minimum(at, by_id.size - 1)]  # a node begins with its oldest point
    here = (piece.ids[leaf] == names[:, 0]) & (names[:, 1] <= piece.n_leaves)
    stride = piece.n_leaves + 1
    wanted = leaf[here] * stride + names[here, 1]
    return np.flatnonzero(np.isin(first * stride + stop - first, wanted))


class _Edit:
    """A part in the making: a piece that is inflated, and edited one subtree after the other."""

    def __init__(self, piece: Piece, scheme: Scheme, aim: Aim, n_more: int = 0) -> None:
        self.live = inflate(piece, scheme, aim, n_more)
        #: The live node of each node of the piece.
        self.node = live_nodes(piece, np.arange(piece.n_nodes)).astype(np.int32)
        self._first, self._stop = piece.stretches()
        self._roots = piece.roots()
        self._live_roots = self.node[self._roots].copy()
        self._before = self._look()

    def begin(self, subtree: int) -> NDArray[np.int64]:
        """Make a subtree the tree that is edited; return its nodes, children first."""
        self._subtree, root = subtree, int(self._roots[subtree])
        self.live.tree.state["root"][0] = self._live_roots[subtree]
        n = int(self._stop[root] - self._first[root])
        leaves = np.arange(self._first[root], self._stop[root])
        return np.concatenate([leaves, np.arange(root - n + 2, root + 1)]) if n > 1 else leaves

    def end(self) -> None:
        """Refine what is pending or due in it."""
        live = self.live
        while live.n_pending or live.n_due:
            live.stabilise()  # which stops where other trees number their nodes anew
        self._live_roots[self._subtree] = live.root

    def part(self, names: NDArray[np.int64]) -> Part:
        """The part that has come of it. Due are the nodes that have changed, and those of some names."""
        live = self.live
        piece, order = deflate(live)
        height, size, above = self._look()
        was_height, was_size, was_above = self._before
        old = order[order < was_height.size]
        due = np.ones(height.size, np.bool_)
        due[old] = (height[old] != was_height[old]) | (size[old] != was_size[old]) | (above[old] != was_above[old])
        is_due = due[order]
        is_due[find_nodes(piece, names)] = True
        subtree_at = {int(root): i for i, root in enumerate(self._live_roots) if root != NULL}
        origin = np.array([subtree_at[int(root)] for root in order[piece.roots()]], np.int64)
        return Part(piece, is_due, origin, live.n_moves, live.n_grafts)

    def _look(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Height and size of each live node, and the height of its parent."""
        tree, used = self.live.tree, self.live.n_used
        parent = tree.parent[:used]
        above = np.where(parent >= 0, tree.height[np.maximum(parent, 0)], np.inf)
        return tree.height[:used].copy(), tree.size[:used].copy(), above


def _is_upper(piece: Piece) -> NDArray[np.bool_]:
    """Which unions the crown of a piece opens: each root, and the largest below."""
    n_points = piece.names()[piece.n_leaves :, 1]
    is_open = n_points * SHARE_OPEN > piece.n_leaves
    if np.count_nonzero(is_open) > MOST_OPEN:
        # Of equal ones the later, which may be above the other.
        order = np.lexsort([-np.arange(n_points.size), -n_points])
        is_open[order[MOST_OPEN:]] = False
    roots = piece.roots() - piece.n_leaves
    is_open[roots[roots >= 0]] = True
    return is_open
