"""Questions between parts: is there a blocking pair across a border? Every function here is pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evertree import kernels
from evertree.distributed.parts import STRIDE, Part, find_nodes, subtree_of
from evertree.distributed.pieces import Piece, inflate, live_nodes
from evertree.kernels.columns import NULL
from evertree.tree import Aim, MeanLiveTree
from evertree.tree.scheme import Scheme
from evertree.tree.statistics import plain

#: Owners below this are subtrees of the part that asks.
_BEFORE_OWN = NULL - 1

#: Guests that descend through a tree before the next ones take their places.
_GUESTS = 8_192


class Askers(NamedTuple):
    """Nodes that would rather merge with something elsewhere, if it is there."""

    asker: NDArray[np.int64]  # (k,) where the node lives, as an atom has it; negative for one above the parts
    size: NDArray[np.float64]  # (k,) of the node, and so on
    mean: NDArray[Any]  # (k, m)
    variance: NDArray[np.float64]
    height: NDArray[np.float64]
    limit: NDArray[np.float64]  # (k,) the height of its parent, less what rounding may have added

    def at(self, some: Any) -> Askers:
        """Some of them."""
        return Askers(*(column[some] for column in self))


class Questions(NamedTuple):
    """Whether nodes would rather merge with a node inside an atom. A node with several questions stands there once."""

    askers: Askers
    row: NDArray[np.int32]  # (q,) which of the askers it is
    atom: NDArray[np.int64]  # (q,) the id of the atom


class Pairs(NamedTuple):
    """Blocking pairs across a border."""

    asker: NDArray[np.int64]  # (p,)
    partner: NDArray[np.int64]  # (p,) where it lives, as an atom has it; NULL where it can be seen from outside
    value: NDArray[np.float64]  # (p,) ζ between the two

    def at(self, some: Any) -> Pairs:
        """Some of them."""
        return Pairs(self.asker[some], self.partner[some], self.value[some])


class Asked(NamedTuple):
    """The questions of a part to others, by the part that they go to, and the pairs that it saw by itself."""

    questions: dict[int, Questions]
    pairs: Pairs


def ask(
    part: Part,
    number: int,
    upper: Piece,
    lightest: float,
    asks_due: bool,
    names: NDArray[np.int64],
    scheme: Scheme,
    aim: Aim,
) -> Asked:
    """Search for blocking pairs between nodes of a part and what is elsewhere.

    Each node descends through the upper tree, and asks at the nearest atoms of other parts where one may be inside.

    Parameters
    ----------
    upper
        The crowns of all parts, joined.
    lightest
        No point anywhere weighs less.
    asks_due
        Whether all nodes ask that are due; if not, only those of the given names.
    """
    piece = part.piece
    does_ask = part.due.copy() if asks_due else np.zeros(piece.n_nodes, np.bool_)
    does_ask[find_nodes(piece, names)] = True
    # What can be seen from outside asks there.
    atoms = upper.ids[upper.ids // STRIDE == number] - number * STRIDE
    is_above = np.zeros(len(piece.children), np.bool_)
    is_atom = np.zeros(piece.n_nodes, np.bool_)
    is_atom[atoms] = True
    kernels.shared.cross_partition.open_paths(plain(piece.children), piece.n_leaves, is_atom, is_above)
    does_ask &= ~is_atom
    does_ask[piece.n_leaves :] &= ~is_above
    nodes = np.flatnonzero(does_ask)
    askers = _askers(inflate(piece, scheme, aim), live_nodes(piece, nodes), number * STRIDE + nodes)
    # Inside its own subtree a node has been searched for already, but not in others of the part.
    owner = upper.ids // STRIDE
    owner[owner == number] = _BEFORE_OWN - subtree_of(piece, atoms)
    own = _BEFORE_OWN - subtree_of(piece, nodes)
    return _asked(askers, np.full(nodes.size, NULL), own, owner, upper, lightest, scheme, aim)


def ask_above(upper: Piece, nodes: NDArray[np.int64], lightest: float, scheme: Scheme, aim: Aim) -> Asked:
    """The same for some nodes of the upper tree."""
    live, twins = inflate(upper, scheme, aim), live_nodes(upper, nodes)
    askers = _askers(live, twins, -1 - nodes)
    return _asked(askers, twins, np.full(nodes.size, NULL), upper.ids // STRIDE, upper, lightest, scheme, aim)


def questions_to(asked: Asked, number: int) -> Questions:
    """What was asked of the part of this number."""
    return asked.questions[number]


def counts_and_pairs(asked: Asked) -> tuple[dict[int, int], Pairs]:
    """How much was asked of each part, and the pairs that were found without."""
    return {number: some.row.size for number, some in asked.questions.items()}, asked.pairs


def answer(part: Part, number: int, questions: Sequence[Questions], scheme: Scheme, aim: Aim) -> Pairs:
    """Search a part, from the atoms where questions were asked, for blocking pairs."""
    asked = _together(questions)
    live, guests = _with_room_for_guests(part.piece, scheme, aim)
    starts = live_nodes(part.piece, asked.atom - number * STRIDE)
    partner, value, _ = _descend(live, guests, asked.askers, asked.row, np.full(starts.size, NULL), starts)
    found = np.flatnonzero(partner != NULL)
    u = partner[found].astype(np.int64)
    node = np.where(u % 2 == 0, u >> 1, part.piece.n_leaves + (u >> 1))
    return Pairs(asked.askers.asker[asked.row[found]], number * STRIDE + node, value[found])


def _together(questions: Sequence[Questions]) -> Questions:
    """The questions of several parts in one."""
    starts = np.cumsum([0, *(some.askers.asker.size for some in questions)])
    return Questions(
        Askers(*(np.concatenate(columns) for columns in zip(*(some.askers for some in questions), strict=True))),
        np.concatenate([start + some.row for start, some in zip(starts, questions, strict=False)]),
        np.concatenate([some.atom for some in questions]),
    )


def _askers(live: MeanLiveTree, u: NDArray[np.int64], asker: NDArray[np.int64]) -> Askers:
    """Some live nodes, as those see them whom they ask."""
    tree, limit = live.tree, np.empty(u.size)
    kernels.shared.cross_partition.find_limits(tree, live.tag, u, limit)
    return Askers(asker, tree.size[u], tree.mean[u], tree.variance[u], tree.height[u], limit)


def _with_room_for_guests(piece: Piece, scheme: Scheme, aim: Aim) -> tuple[MeanLiveTree, NDArray[np.int32]]:
    """A live tree of a piece, and leaves that hang nowhere."""
    live = inflate(piece, scheme, aim, _GUESTS)
    return live, (2 * (piece.n_leaves + np.arange(_GUESTS))).astype(np.int32)


def _descend(
    live: MeanLiveTree,
    guests: NDArray[np.int32],
    askers: Askers,
    rows: NDArray[np.integer],
    twins: NDArray[np.int64],
    starts: NDArray[np.int64],
    owner: NDArray[np.int64] | None = None,
    own: int = NULL,
) -> tuple[NDArray[np.int32], NDArray[np.float64], NDArray[np.int32]]:
    """Let the askers of some rows descend, each from its start: its partner, or NULL, ζ, and the atoms where to ask on.

    Atoms are those of an `owner`, by row, other than `own`. A node may have a twin in the tree.
    """
    tree, n = live.tree, rows.size
    n_doors = 0
    if owner is not None:
        n_doors = live.search.front.shape[1] if live.aim.search_width else live.n_points
    partner, value, doors = np.empty(n, np.int32), np.empty(n), np.full((n, n_doors), NULL, np.int32)
    for begin in range(0, n, guests.size):
        some = slice(begin, min(begin + guests.size, n))
        a = guests[: some.stop - begin]
        p = a + 1
        _, tree.size[a], tree.mean[a], tree.variance[a], tree.height[a], tree.height[p] = askers.at(rows[some])
        # A guest is its own sibling: what rounding may have done to its parent is in the limit already.
        tree.parent[a], tree.left[p], tree.right[p], tree.parent[p] = p, a, a, NULL
        found = partner[some], value[some]
        kernels.shared.cross_partition.find_partners(tree, live.search, live.tag, a, twins[some], starts[some], *found)
        if owner is not None:
            kernels.shared.cross_partition.choose_doors(tree, live.search, live.tag, a, owner, own, doors[some])
    return partner, value, doors


def _asked(
    askers: Askers,
    twins: NDArray[np.int64],
    own: NDArray[np.int64],
    owner: NDArray[np.int64],
    upper: Piece,
    lightest: float,
    scheme: Scheme,
    aim: Aim,
) -> Asked:
    """Let nodes descend through the upper tree, and write down what they ask of each part.

    They ask at atoms whose `owner` is another than their `own`.
    """
    order = np.argsort(own, kind="stable")
    twins, own = twins[order], own[order]
    live, guests = _with_room_for_guests(upper, scheme, aim)
    live.search.lightest[0] = lightest
    starts = np.full(own.size, live.root, np.int64)
    n_doors = live.search.front.shape[1] if aim.search_width else upper.n_leaves
    partner, value, doors = np.empty(own.size, np.int32), np.empty(own.size), np.empty((own.size, n_doors), np.int32)
    for label in np.unique(own).tolist():
        some = slice(*np.searchsorted(own, [label, label + 1]))
        found = _descend(live, guests, askers, order[some], twins[some], starts[some], owner, label)
        partner[some], value[some], doors[some] = found
    seen = np.flatnonzero(partner != NULL)
    pairs = Pairs(askers.asker[order[seen]], np.full(seen.size, NULL), value[seen])
    place, column = np.nonzero(doors != NULL)
    atom = upper.ids[doors[place, column] >> 1]
    to = atom // STRIDE
    questions = {}
    for number in np.unique(to).tolist():
        here = np.flatnonzero(to == number)
        who, row = np.unique(order[place[here]], return_inverse=True)
        questions[number] = Questions(askers.at(who), row.astype(np.int32), atom[here])
    return Asked(questions, pairs)
