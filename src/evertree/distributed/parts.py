"""`Part`: the subtrees that one task works on, and what tasks do with one. Every function here is pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evertree import kernels
from evertree.distributed.subtrees import (
    NO_SIGNATURES,
    STRIDE,
    Shape,
    Subtrees,
    collapse,
    concatenate,
    from_live,
    join,
    live_nodes,
    signatures_above,
    to_live,
)
from evertree.errors import InvariantError
from evertree.kernels.columns import NULL, TO_FIND
from evertree.tree import Aim, Incoming, MeanLiveTree, invariants
from evertree.tree.base import contiguous
from evertree.tree.scheme import Scheme

#: The summary of a part opens nodes with more than 1 / SHARE_OPEN of its points, and at most MOST_OPEN of them.
SHARE_OPEN = 64
MOST_OPEN = 256

#: Points that are inserted before nodes may be renumbered.
_AT_ONCE = 4_096

_NO_LEAVES = np.empty(0, np.int32)


class Part(NamedTuple):
    """Some subtrees of points, the oldest first."""

    subtrees: Subtrees
    due: NDArray[np.bool_]  # (n_nodes,) whether the node has to search other parts, because it has changed
    origin: NDArray[np.int64]  # which subtree of the part before the last task, or which group, each one comes from
    moves: int  # made by the last task
    grafts: int


class PartSummary(NamedTuple):
    """The upper nodes of a part above stubs: what the driver and other parts see of it."""

    subtrees: Subtrees  # in the order of the part
    origin: NDArray[np.int64]
    n_due: int
    lightest: float  # the smallest weight of a point
    moves: int
    grafts: int


def build_subtree(
    points: NDArray[Any], ids: NDArray[np.int64], weights: NDArray[np.float64] | None, scheme: Scheme, aim: Aim
) -> Part:
    """A part of one stable subtree over checked points; of none if there are no points.

    Parameters
    ----------
    points
        As the user gave them.
    ids
        Their insertion numbers, which break ties.
    weights
        None if each weighs 1.
    """
    live = MeanLiveTree(scheme, aim, points.shape[1], points.dtype)
    live.reserve(ids.size)
    leaves = _add_leaves(live, points, ids, weights)
    for start in range(0, leaves.size, _AT_ONCE):
        live.insert(leaves[start : start + _AT_ONCE])
        place = live.reorder()
        leaves = leaves if place is None else place[leaves]
    live.prepare_search()
    while live.n_pending or live.n_due:
        live.stabilise()
        live.reorder()
    tree, _ = from_live(live)
    n_subtrees = min(1, tree.n_leaves)
    return Part(tree, np.ones(tree.n_nodes, np.bool_), np.arange(n_subtrees), live.n_moves, live.n_grafts)


def combine(parts: Sequence[Part]) -> Part:
    """The subtrees of several parts of one subtree in one part; `Part.origin` is the position in `parts`."""
    moves, grafts = sum(part.moves for part in parts), sum(part.grafts for part in parts)
    some = [(i, part) for i, part in enumerate(parts) if part.subtrees.n_leaves]
    if not some:
        return parts[0]._replace(moves=moves, grafts=grafts)
    some.sort(key=lambda entry: int(entry[1].subtrees.ids.min()))
    subtrees = concatenate([part.subtrees for _, part in some])
    return Part(subtrees, np.ones(subtrees.n_nodes, np.bool_), np.array([i for i, _ in some]), moves, grafts)


def summarise(
    part: Part, number: int, nodes: NDArray[np.int64] | None, part_size: int, scheme: Scheme, aim: Aim
) -> PartSummary:
    """The upper nodes of the part of this number, down to some `nodes`, which become stubs.

    No stub has more than `part_size` points.
    """
    subtrees = part.subtrees
    is_open = _is_upper(subtrees) | (subtrees.signatures()[subtrees.n_leaves :, 1] > part_size)
    if nodes is not None:
        is_wanted = np.zeros(subtrees.n_nodes, np.bool_)
        is_wanted[nodes] = True
        kernels.shared.cross_partition.open_paths(contiguous(subtrees.children), subtrees.n_leaves, is_wanted, is_open)
    upper = collapse(subtrees, to_live(subtrees, scheme, aim), is_open, number * STRIDE)
    lightest = float(subtrees.size.min(initial=np.inf))
    return PartSummary(upper, part.origin, int(np.count_nonzero(part.due)), lightest, part.moves, part.grafts)


def shapes_of(summary: PartSummary) -> list[Shape]:
    """The shape of each subtree of a summary."""
    return [tree.shape() for tree in summary.subtrees.split()]


def signatures_of(part: Part, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
    """The signatures of some nodes."""
    return part.subtrees.signatures()[nodes]


def extract(part: Part, number: int, ids: NDArray[np.int64]) -> dict[int, Subtrees]:
    """Copies of the subtrees of some stubs, by id."""
    return dict(zip(ids.tolist(), part.subtrees.at(ids - number * STRIDE), strict=True))


def assemble(
    part: Part | None,
    number: int,
    shapes: Sequence[Shape],
    is_new: Sequence[bool],
    extracted: Sequence[Mapping[int, Subtrees]],
    signatures: NDArray[np.int64],
    scheme: Scheme,
    aim: Aim,
) -> Part:
    """A part with subtrees of other shapes, refined where they are new.

    Parameters
    ----------
    part
        The part before; None if there was none of this number.
    shapes
        The subtrees that it gets, above stubs of its own and of other parts.
    is_new
        Whether each of them differs from before, and so has to be refined.
    extracted
        The subtrees of the other parts' stubs.
    signatures
        Of further nodes that are due.
    """
    arrived = {stub: tree for trees in extracted for stub, tree in trees.items()}
    trees = dict(arrived)
    if part is not None:
        ids = np.concatenate([np.empty(0, np.int64), *(shape.ids for shape in shapes)])
        trees.update(extract(part, number, ids[ids // STRIDE == number]))
    below = [[trees[i] for i in shape.ids.tolist()] for shape in shapes]
    subtrees = concatenate([join(shape.children, leaves) for shape, leaves in zip(shapes, below, strict=True)])
    seams = [signatures_above(shapes[i], below[i]) for i in np.flatnonzero(is_new).tolist()]
    # The partner of a node that was due elsewhere may now be in the same subtree, where a cross-partition search does
    # not look.
    due_again = np.concatenate([NO_SIGNATURES, *seams, signatures])
    # Subtrees that have arrived know no neighbours here: they look for them, as new points do.
    of_arrived = np.concatenate([NO_SIGNATURES, *(tree.signatures() for tree in arrived.values())])
    has_arrived = np.zeros(subtrees.n_nodes, np.bool_)
    has_arrived[subtrees.find(of_arrived)] = True
    is_due = has_arrived.copy()
    is_due[subtrees.find(due_again)] = True
    edit = _PartEdit(subtrees, scheme, aim)
    for subtree in np.flatnonzero(is_new).tolist():
        nodes = edit.begin(subtree)
        fresh = nodes[has_arrived[nodes] & (nodes < subtrees.n_leaves)]
        kernels.shared.neighbours.forget_leaves(edit.live.search, edit.node[fresh], TO_FIND)
        kernels.shared.worklist.push_bottom_up(edit.live.tree, edit.live.work, edit.node[nodes[is_due[nodes]]])
        edit.end()
    return edit.part(due_again)


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

    Nodes that were due before are `still_due`, or have searched since.
    """
    edit = _PartEdit(part.subtrees, scheme, aim, ids.size)
    leaves = _add_leaves(edit.live, points, ids, weights)
    subtree = part.subtrees.number_of(nodes)
    for i in np.unique(subtree).tolist():
        edit.begin(i)
        edit.live.insert(leaves[subtree == i])
        edit.end()
    return edit.part(part.subtrees.signatures()[part.due] if still_due else NO_SIGNATURES)


def remove_from(part: Part, ids: NDArray[np.int64], scheme: Scheme, aim: Aim, still_due: bool = True) -> Part:
    """A part without the points of these insertion numbers, all of which it has.

    Nodes that were due before are `still_due`, or have searched since.
    """
    edit = _PartEdit(part.subtrees, scheme, aim)
    rows = np.flatnonzero(np.isin(part.subtrees.ids, ids))
    subtree = part.subtrees.number_of(rows)
    for i in np.unique(subtree).tolist():
        edit.begin(i)
        leaves = (2 * rows[subtree == i]).astype(np.int32)
        edit.live.detach(leaves)
        edit.live.release(leaves)
        edit.end()
    return edit.part(part.subtrees.signatures()[part.due] if still_due else NO_SIGNATURES)


def has_ids(part: Part, ids: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of some insertion numbers a part has."""
    return np.isin(ids, part.subtrees.ids)


def scan_part(part: Part, scheme: Scheme, aim: Aim) -> tuple[int, int]:
    """The same as `scan`, for all nodes of a part."""
    return scan(part.subtrees, None, scheme, aim)


def scan(subtrees: Subtrees, nodes: NDArray[np.int64] | None, scheme: Scheme, aim: Aim) -> tuple[int, int]:
    """The number of inversions, and of violations of homogeneity, at some `nodes` or at all. O(n m).

    The roots of subtrees have no parent here.
    """
    live = to_live(subtrees, scheme, aim)
    checked = live_nodes(subtrees, np.arange(subtrees.n_nodes) if nodes is None else nodes)
    found = np.empty(max(len(subtrees.children), 1), np.int32)
    n_inverted = kernels.shared.violations.find_inversions(live.tree, live.tag, found)
    inverted = np.isin(found[:n_inverted], checked).sum()
    n_violated = kernels.shared.violations.find_violations(live.tree, live.tag, found)
    return int(inverted), int(np.isin(found[:n_violated], checked).sum())


def validate_part(part: Part, scheme: Scheme, aim: Aim) -> tuple[str | None, NDArray[np.int64], int]:
    """What is wrong with a part, or None; the insertion numbers of its points; and the number of its subtrees."""
    ids = part.subtrees.ids
    if not part.subtrees.is_consistent():
        return "it is no forest", ids, 0
    trees = part.subtrees.split()
    try:
        for tree in trees:
            live = to_live(tree, scheme, aim)
            invariants.check_shape(live)
            invariants.check_points(live)
            invariants.check_statistics(live)
    except InvariantError as error:
        return str(error), ids, len(trees)
    return None, ids, len(trees)


class _PartEdit:
    """Edits the subtrees of a part one by one, as live trees."""

    def __init__(self, subtrees: Subtrees, scheme: Scheme, aim: Aim, n_more: int = 0) -> None:
        self.live = to_live(subtrees, scheme, aim, n_more)
        #: The live node of each node.
        self.node = live_nodes(subtrees, np.arange(subtrees.n_nodes)).astype(np.int32)
        self._first, self._stop = subtrees.leaf_ranges()
        self._roots = subtrees.roots()
        self._live_roots = self.node[self._roots].copy()
        self._before = self._heights_and_sizes()

    def begin(self, subtree: int) -> NDArray[np.int64]:
        """Make a subtree the one that is edited; return its nodes, children first."""
        self._subtree, root = subtree, int(self._roots[subtree])
        self.live.tree.state["root"][0] = self._live_roots[subtree]
        n = int(self._stop[root] - self._first[root])
        leaves = np.arange(self._first[root], self._stop[root])
        return np.concatenate([leaves, np.arange(root - n + 2, root + 1)]) if n > 1 else leaves

    def end(self) -> None:
        """Refine what is pending or due in it."""
        live = self.live
        while live.n_pending or live.n_due:
            live.stabilise()  # stops where other trees renumber their nodes
        self._live_roots[self._subtree] = live.root

    def part(self, due_again: NDArray[np.int64]) -> Part:
        """The edited part. The nodes that have changed are due, and those of some signatures."""
        live = self.live
        subtrees, order = from_live(live)
        height, size, above = self._heights_and_sizes()
        was_height, was_size, was_above = self._before
        old = order[order < was_height.size]
        due = np.ones(height.size, np.bool_)
        due[old] = (height[old] != was_height[old]) | (size[old] != was_size[old]) | (above[old] != was_above[old])
        is_due = due[order]
        is_due[subtrees.find(due_again)] = True
        subtree_at = {int(root): i for i, root in enumerate(self._live_roots) if root != NULL}
        origin = np.array([subtree_at[int(root)] for root in order[subtrees.roots()]], np.int64)
        return Part(subtrees, is_due, origin, live.n_moves, live.n_grafts)

    def _heights_and_sizes(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """The height and size of each live node, and the height of its parent."""
        tree, used = self.live.tree, self.live.n_used
        parent = tree.parent[:used]
        above = np.where(parent >= 0, tree.height[np.maximum(parent, 0)], np.inf)
        return tree.height[:used].copy(), tree.size[:used].copy(), above


def _add_leaves(
    live: MeanLiveTree, points: NDArray[Any], ids: NDArray[np.int64], weights: NDArray[np.float64] | None
) -> NDArray[np.int32]:
    assert live.scheme.vectors is not None
    incoming = Incoming(points, coordinates=live.scheme.vectors.coordinates(points))
    return live.add_leaves(incoming, np.ones(ids.size) if weights is None else weights, contiguous(ids), _NO_LEAVES)


def _is_upper(subtrees: Subtrees) -> NDArray[np.bool_]:
    """Which unions a summary opens: each root, and the largest below."""
    n_points = subtrees.signatures()[subtrees.n_leaves :, 1]
    is_open = n_points * SHARE_OPEN > subtrees.n_leaves
    if np.count_nonzero(is_open) > MOST_OPEN:
        # Among equal ones take the later, which may be above the other.
        order = np.lexsort([-np.arange(n_points.size), -n_points])
        is_open[order[MOST_OPEN:]] = False
    roots = subtrees.roots() - subtrees.n_leaves
    is_open[roots[roots >= 0]] = True
    return is_open
