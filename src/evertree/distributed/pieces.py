"""`Piece`: a treelet on its own, as plain arrays that ship well; split off, joined, and made a live tree and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evertree import kernels
from evertree.kernels.columns import NULL
from evertree.tree import Aim, Incoming, MeanLiveTree
from evertree.tree.parallel.treelets import LoneTree
from evertree.tree.scheme import Scheme
from evertree.tree.statistics import plain


class Atoms(NamedTuple):
    """What is known of subtrees that live elsewhere, beside their sizes and means."""

    variance: NDArray[np.float64]  # (k,)
    height: NDArray[np.float64]  # (k,)
    radius: NDArray[np.float64]  # (k,)
    birth: NDArray[np.int64]  # (k,) the smallest id of their points
    n_points: NDArray[np.int64]  # (k,)


class Outline(NamedTuple):
    """The shape of one subtree above atoms, without their statistics."""

    ids: NDArray[np.int64]  # (k,) of the atoms
    children: NDArray[np.int32]  # (k - 1, 2)
    names: NDArray[np.int64]  # (2 k - 1, 2) of all nodes


class Piece(NamedTuple):
    """Some subtrees side by side. Nobody changes its arrays.

    It has k leaves and a union for each row of `children`, numbered as SciPy does: leaf i is i, union j is k + j. They
    come in postorder: a union after all that is below it, and the leaves below it in one stretch. So any subtree is a
    slice. A leaf is a point, or an *atom*: a subtree that lives elsewhere, of which only its statistics are known.
    """

    ids: NDArray[np.int64]  # (k,) insertion numbers of points; of atoms, where they live
    size: NDArray[np.float64]  # (k,) weights
    mean: NDArray[Any]  # (k, m) coordinates, in the type of the data
    children: NDArray[np.int32]  # (k - number of subtrees, 2)
    points: NDArray[Any] | None = None  # (k, m) as they were given, where they differ from the coordinates
    atoms: Atoms | None = None  # where leaves are atoms

    @property
    def n_leaves(self) -> int:
        """How many leaves it has."""
        return self.ids.size

    @property
    def n_nodes(self) -> int:
        """How many leaves and unions it has."""
        return self.ids.size + len(self.children)

    @property
    def n_points(self) -> int:
        """How many points are below its leaves."""
        return self.n_leaves if self.atoms is None else int(self.atoms.n_points.sum())

    @property
    def birth(self) -> NDArray[np.int64]:
        """The smallest id below each leaf."""
        return self.ids if self.atoms is None else self.atoms.birth

    def roots(self) -> NDArray[np.intp]:
        """The nodes that no union has, in the order of their leaves. O(k)."""
        is_root = np.ones(self.n_nodes, np.bool_)
        is_root[self.children.ravel()] = False
        roots = np.flatnonzero(is_root)
        return roots[np.argsort(self.stretches()[0][roots])]

    def stretches(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where the leaves below each node begin and end. O(k)."""
        return _stretches(self.children, self.n_leaves)

    def names(self) -> NDArray[np.int64]:
        """The oldest point below each node, and how many points are below it: no two nodes of a tree have both. O(k).

        Of two children the older comes first.
        """
        first, stop = self.stretches()
        if self.atoms is None:
            return np.column_stack([self.birth[first], stop - first])
        below = np.concatenate([[0], np.cumsum(self.atoms.n_points)])
        return np.column_stack([self.birth[first], below[stop] - below[first]])

    def outline(self) -> Outline:
        """Its shape, where it is one subtree."""
        return Outline(self.ids, self.children, self.names())

    def subtree(self, node: int, first: int, stop: int) -> Piece:
        """The piece below a node, whose leaves are in the given stretch. O(its size)."""
        k, n = self.n_leaves, stop - first
        last = node - k + 1  # the unions of a subtree stand before its root
        unions = self.children[last - n + 1 : last] if node >= k else self.children[:0]
        children = np.where(unions < k, unions - first, unions - (k + last - n + 1) + n)
        return self._with_leaves(slice(first, stop), children.astype(np.int32))

    def with_shape(self, leaves: NDArray[np.integer], children: NDArray[np.int32]) -> Piece:
        """The same leaves in another order and in another shape."""
        return self._with_leaves(leaves, children)

    def _with_leaves(self, leaves: Any, children: NDArray[np.int32]) -> Piece:
        return Piece(
            self.ids[leaves],
            self.size[leaves],
            self.mean[leaves],
            children,
            None if self.points is None else self.points[leaves],
            None if self.atoms is None else Atoms(*(column[leaves] for column in self.atoms)),
        )


def side_by_side(pieces: Sequence[Piece]) -> Piece:
    """All subtrees of some pieces, in their order."""
    leaves = np.cumsum([0, *(piece.n_leaves for piece in pieces)])
    unions = np.cumsum([0, *(len(piece.children) for piece in pieces)])
    children = [_renumbered(piece, int(leaves[i]), int(leaves[-1] + unions[i])) for i, piece in enumerate(pieces)]
    return _leaves_of(pieces, np.concatenate(children))


def join(children: NDArray[np.int32], pieces: Sequence[Piece]) -> Piece:
    """The tree of some `children`, as a piece has them, with a piece of one subtree in the place of each leaf."""
    n_above = len(pieces)
    stop = _stretches(children, n_above)[1][n_above:]
    leaves = np.cumsum([0, *(piece.n_leaves for piece in pieces)])
    below = np.cumsum([0, *(len(piece.children) for piece in pieces)])
    # Before the unions in place of a leaf come those above that are complete by then, and the other way round.
    before = np.searchsorted(stop, np.arange(n_above), side="right")
    n_leaves = int(leaves[-1])
    of_union = n_leaves + np.arange(stop.size) + below[stop]
    of_leaf = np.empty(n_above, np.int64)
    joined = np.empty((stop.size + int(below[-1]), 2), np.int32)
    for i, piece in enumerate(pieces):
        begin, rows = int(below[i] + before[i]), len(piece.children)
        joined[begin : begin + rows] = _renumbered(piece, int(leaves[i]), n_leaves + begin)
        of_leaf[i] = n_leaves + begin + rows - 1 if rows else leaves[i]
    joined[of_union - n_leaves] = np.concatenate([of_leaf, of_union])[children]
    return _leaves_of(pieces, joined)


def split(piece: Piece, live: MeanLiveTree, is_open: NDArray[np.bool_], base: int) -> Piece:
    """The crown of a piece: its unions that are open, above atoms for what hangs off them. `join` is the inverse.

    Parameters
    ----------
    live
        The piece, inflated.
    is_open
        For each union; those above one that is open are open too.
    base
        The id of an atom is this plus its node in the piece.
    """
    k = piece.n_leaves
    first, _ = piece.stretches()
    opened = np.flatnonzero(is_open)
    is_atom = np.zeros(piece.n_nodes, np.bool_)
    is_atom[piece.roots()] = True
    is_atom[piece.children[opened].ravel()] = True
    is_atom[k + opened] = False
    nodes = np.flatnonzero(is_atom)
    nodes = nodes[np.argsort(first[nodes])]
    number = np.empty(piece.n_nodes, np.int32)
    number[nodes] = np.arange(nodes.size)
    number[k + opened] = nodes.size + np.arange(opened.size)
    u, tree = live_nodes(piece, nodes), live.tree
    n_points = piece.names()[nodes, 1]
    return Piece(
        base + nodes,
        tree.size[u],
        tree.mean[u],
        number[piece.children[opened]].reshape(-1, 2),
        atoms=Atoms(tree.variance[u], tree.height[u], tree.radius[u], tree.birth[u], n_points),
    )


def live_nodes(piece: Piece, nodes: NDArray[Any]) -> NDArray[np.int64]:
    """The nodes of an inflated piece that stand for some of its nodes: 2 i for leaf i, 2 j + 1 for union j."""
    k = piece.n_leaves
    return np.where(nodes < k, 2 * nodes, 2 * (nodes - k) + 1).astype(np.int64)


def inflate(piece: Piece, scheme: Scheme, aim: Aim, n_more: int = 0) -> LoneTree:
    """A live tree of a piece, with room for more points. Leaf i is node 2 i, and union j is node 2 j + 1.

    Of several subtrees, the first is the tree; set the root of its state for another. Nothing is pending or due,
    and lists of neighbours are empty. O(n m).
    """
    k, n_unions = piece.n_leaves, len(piece.children)
    live = LoneTree(scheme, aim, piece.mean.shape[1], piece.mean.dtype)
    live.reserve(k + n_more)
    tree = live.tree
    incoming = Incoming(piece.mean if piece.points is None else piece.points, piece.mean)
    leaves = live.add_leaves(incoming, piece.size, plain(piece.birth), np.empty(0, np.int32))
    live.search.fresh[:] = 0
    live.search.state["fresh"][0] = 0
    if piece.atoms is not None:
        for name in ("variance", "height", "radius"):
            getattr(tree, name)[leaves] = getattr(piece.atoms, name)
    unions = 2 * np.arange(n_unions, dtype=np.int32) + 1
    tree.parent[unions] = NULL
    children = live_nodes(piece, piece.children)
    tree.left[unions], tree.right[unions] = children[:, 0], children[:, 1]
    tree.parent[children[:, 0]] = tree.parent[children[:, 1]] = unions
    tree.state["n_points"], tree.state["inner_top"] = k, n_unions
    tree.state["root"][0] = live_nodes(piece, piece.roots()[:1])[0] if k else NULL
    kernels.statistics.merge.merge_all(tree, live.tag, unions)
    live.prepare_search()
    return live


def deflate(live: MeanLiveTree, origin: Piece | None = None) -> tuple[Piece, NDArray[np.int32]]:
    """All subtrees of a live tree, the oldest first; and the node of each leaf, then of each union. O(n m).

    Parameters
    ----------
    origin
        The piece that it was inflated from, where leaves are atoms.
    """
    tree = live.tree
    roots = np.concatenate([_roots_among(live, "leaf_top", 0), _roots_among(live, "inner_top", 1)])
    roots = roots[np.argsort(tree.birth[roots])]
    nodes = np.concatenate([np.empty(0, np.int32), *(live.nodes(int(root)) for root in roots)])
    is_leaf = nodes % 2 == 0
    leaves, unions = nodes[is_leaf], nodes[~is_leaf]
    number = np.empty(live.n_used, np.int32)
    number[leaves] = np.arange(leaves.size)
    number[unions] = leaves.size + np.arange(unions.size)
    both = np.column_stack([tree.left[unions], tree.right[unions]])
    both = np.take_along_axis(both, np.argsort(tree.birth[both], axis=1), axis=1)
    order = np.concatenate([leaves, unions])
    if origin is not None:
        return origin.with_shape(leaves >> 1, number[both]), order
    points = None if live.kept is None else live.points(leaves)
    return Piece(tree.birth[leaves], tree.size[leaves], tree.mean[leaves], number[both], points), order


def _stretches(children: NDArray[np.int32], n_leaves: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    n_nodes = n_leaves + len(children)
    first, stop = np.empty(n_nodes, np.int64), np.empty(n_nodes, np.int64)
    kernels.shared.cross_partition.find_stretches(plain(children), n_leaves, first, stop)
    return first, stop


def _roots_among(live: MeanLiveTree, top: str, parity: int) -> NDArray[np.int32]:
    parent = live.tree.parent[parity : 2 * int(live.tree.state[top][0]) : 2]
    return (2 * np.flatnonzero(parent == NULL) + parity).astype(np.int32)


def _renumbered(piece: Piece, first_leaf: int, first_union: int) -> NDArray[np.int32]:
    """The children of a piece whose leaves and unions get numbers from these on."""
    children, k = piece.children, piece.n_leaves
    return np.where(children < k, children + first_leaf, children - k + first_union).astype(np.int32)


def _leaves_of(pieces: Sequence[Piece], children: NDArray[np.int32]) -> Piece:
    """The leaves of some pieces in a shape."""
    points = [piece.points for piece in pieces if piece.points is not None]
    atoms = [piece.atoms for piece in pieces if piece.atoms is not None]
    return Piece(
        np.concatenate([piece.ids for piece in pieces]),
        np.concatenate([piece.size for piece in pieces]),
        np.concatenate([piece.mean for piece in pieces]),
        children,
        np.concatenate(points) if points else None,
        Atoms(*(np.concatenate(columns) for columns in zip(*atoms, strict=True))) if atoms else None,
    )
