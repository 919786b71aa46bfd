"""`Subtrees`: some subtrees as plain arrays, cheap to send; cut, joined, and turned into a live tree and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evertree import kernels
from evertree.kernels.columns import NULL
from evertree.tree import Aim, Incoming, MeanLiveTree
from evertree.tree.base import contiguous
from evertree.tree.scheme import Scheme

#: The id of a stub is the number of its part times this, plus its node there.
STRIDE = 1 << 40

#: Signatures of no node: see `Subtrees.signatures`.
NO_SIGNATURES = np.empty((0, 2), np.int64)


class Stubs(NamedTuple):
    """What is known of subtrees in other parts, beside their sizes and means."""

    variance: NDArray[np.float64]  # (k,)
    height: NDArray[np.float64]  # (k,)
    radius: NDArray[np.float64]  # (k,)
    birth: NDArray[np.int64]  # (k,) the smallest insertion number below each
    n_points: NDArray[np.int64]  # (k,)


class Shape(NamedTuple):
    """A tree above subtrees that are elsewhere: the top tree, or a subtree above stubs, without their statistics."""

    ids: NDArray[np.int64]  # (k,) of its leaves
    children: NDArray[np.int32]  # (k - 1, 2) as in `Subtrees`

    def key(self) -> tuple[bytes, bytes]:
        """What is equal for equal shapes over the same leaves."""
        return self.ids.tobytes(), self.children.tobytes()

    def without(self, gone: NDArray[np.bool_]) -> Shape:
        """The same without some of its leaves. O(k)."""
        stays = np.flatnonzero(~gone)
        number: list[int | None] = [None] * self.ids.size
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
        return Shape(self.ids[stays], np.array(children, np.int32).reshape(-1, 2))


class Subtrees(NamedTuple):
    """Some subtrees side by side. The arrays are never changed in place.

    There are k leaves, and a union for each row of `children`, numbered as in SciPy: leaf i is node i, union j is node
    k + j. Nodes are in postorder: a union comes after everything below it, and its leaves are a contiguous range, so
    every subtree is a slice. A leaf is a point, or a *stub*: it stands for a subtree in another part, of which only the
    statistics are known.
    """

    ids: NDArray[np.int64]  # (k,) insertion numbers of points; of stubs, where they live: see `STRIDE`
    size: NDArray[np.float64]  # (k,) weights
    mean: NDArray[Any]  # (k, m) coordinates, in the type of the data
    children: NDArray[np.int32]  # (k - number of subtrees, 2)
    points: NDArray[Any] | None = None  # (k, m) as given by the user, where they differ from the coordinates
    stubs: Stubs | None = None  # where leaves are stubs

    @property
    def n_leaves(self) -> int:
        """The number of leaves."""
        return self.ids.size

    @property
    def n_nodes(self) -> int:
        """The number of leaves and unions."""
        return self.ids.size + len(self.children)

    @property
    def n_points(self) -> int:
        """The number of points below the leaves."""
        return self.n_leaves if self.stubs is None else int(self.stubs.n_points.sum())

    @property
    def birth(self) -> NDArray[np.int64]:
        """The smallest insertion number below each leaf."""
        return self.ids if self.stubs is None else self.stubs.birth

    def roots(self) -> NDArray[np.intp]:
        """The roots, in the order of their leaves. O(k)."""
        return self.cut_below(np.empty(0, np.intp))[0]

    def leaf_ranges(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The first leaf below each node, and the end of its range of leaves. O(k)."""
        return _leaf_ranges(self.children, self.n_leaves)

    def signatures(self) -> NDArray[np.int64]:
        """The oldest point below each node, and the number of points below it. O(k).

        No two nodes of a tree have the same signature, and a node keeps its own wherever it is sent. Of two children
        the older comes first.
        """
        first, stop = self.leaf_ranges()
        if self.stubs is None:
            return np.column_stack([self.ids[first], stop - first])
        return _signatures(self.children, self.stubs.birth, self.stubs.n_points)

    def find(self, signatures: NDArray[np.int64]) -> NDArray[np.intp]:
        """The nodes that have one of some signatures, where the leaves are points. O(k log k)."""
        if len(signatures) == 0 or self.n_leaves == 0:
            return np.empty(0, np.intp)
        first, stop = self.leaf_ranges()
        by_id = np.argsort(self.ids)
        at = np.searchsorted(self.ids, signatures[:, 0], sorter=by_id)
        leaf = by_id[np.minimum(at, by_id.size - 1)]  # the first leaf of a node is its oldest point
        is_here = (self.ids[leaf] == signatures[:, 0]) & (signatures[:, 1] <= self.n_leaves)
        stride = self.n_leaves + 1
        wanted = leaf[is_here] * stride + signatures[is_here, 1]
        return np.flatnonzero(np.isin(first * stride + stop - first, wanted))

    def number_of(self, nodes: NDArray[np.integer]) -> NDArray[np.intp]:
        """Which of the subtrees each of some nodes is in."""
        first, stop = self.leaf_ranges()
        return np.searchsorted(stop[self.roots()], first[nodes], side="right")

    def shape(self) -> Shape:
        """Its shape, where it is one subtree."""
        return Shape(self.ids, self.children)

    def split(self) -> list[Subtrees]:
        """Each subtree on its own."""
        return self.at(self.roots())

    def at(self, nodes: NDArray[np.integer]) -> list[Subtrees]:
        """The subtree at each of some nodes."""
        k = self.n_leaves
        first, stop = self.leaf_ranges()
        found = []
        for u, begin, end in zip(nodes.tolist(), first[nodes].tolist(), stop[nodes].tolist(), strict=True):
            n, last = end - begin, u - k + 1  # the unions of a subtree come just before its root
            unions = self.children[last - n + 1 : last] if u >= k else self.children[:0]
            children = np.where(unions < k, unions - begin, unions - (k + last - n + 1) + n)
            found.append(self.with_shape(slice(begin, end), children.astype(np.int32)))
        return found

    def with_shape(self, leaves: Any, children: NDArray[np.int32]) -> Subtrees:
        """Some of the leaves, in another shape."""
        return Subtrees(
            self.ids[leaves],
            self.size[leaves],
            self.mean[leaves],
            children,
            None if self.points is None else self.points[leaves],
            None if self.stubs is None else Stubs(*(column[leaves] for column in self.stubs)),
        )

    def cut_below(self, opened: NDArray[np.integer]) -> tuple[NDArray[np.intp], NDArray[np.int32]]:
        """The highest nodes that are left when some unions, with all those above them, are taken away. O(k).

        Returns
        -------
        nodes : array
            In the order of their leaves.
        number : array of shape (n_nodes,)
            Counts these nodes, then the opened unions in the given order; NULL for all others.
        """
        is_highest = np.ones(self.n_nodes, np.bool_)
        is_highest[self.children.ravel()] = False
        is_highest[self.children[opened].ravel()] = True
        is_highest[self.n_leaves + opened] = False
        nodes = np.flatnonzero(is_highest)
        nodes = nodes[np.argsort(self.leaf_ranges()[0][nodes])]
        number = np.full(self.n_nodes, NULL, np.int32)
        number[nodes] = np.arange(nodes.size)
        number[self.n_leaves + opened] = nodes.size + np.arange(opened.size)
        return nodes, number

    def is_consistent(self) -> bool:
        """Whether the arrays fit together."""
        columns = (self.size, self.mean, self.points)
        has_lengths = all(column is None or len(column) == self.n_leaves for column in columns)
        return has_lengths and is_postorder(self.children, self.n_leaves)


def is_postorder(children: NDArray[np.int32], n_leaves: int) -> bool:
    """Whether unions are in postorder, and each node is the child of at most one later union. O(n)."""
    n_unions = len(children)
    number, flat = n_leaves + np.arange(n_unions), children.ravel()
    if not np.all((flat >= 0) & (flat < np.repeat(number, 2))) or np.unique(flat).size != flat.size:
        return False
    # The leaves of the right child begin where those of the left one end.
    first, stop = np.arange(n_leaves + n_unions), np.arange(1, n_leaves + n_unions + 1)
    for u, (a, b) in zip(number.tolist(), children.tolist(), strict=True):
        if stop[a] != first[b]:
            return False
        first[u], stop[u] = first[a], stop[b]
    return True


def concatenate(trees: Sequence[Subtrees]) -> Subtrees:
    """All subtrees of a sequence, in its order."""
    leaves = np.cumsum([0, *(tree.n_leaves for tree in trees)])
    unions = np.cumsum([0, *(len(tree.children) for tree in trees)])
    children = [_renumbered(tree, int(leaves[i]), int(leaves[-1] + unions[i])) for i, tree in enumerate(trees)]
    return _with_leaves_of(trees, np.concatenate(children))


def join(children: NDArray[np.int32], trees: Sequence[Subtrees]) -> Subtrees:
    """The tree of some `children`, in postorder, with a subtree in place of each of its leaves."""
    n_above = len(trees)
    stop = _leaf_ranges(children, n_above)[1][n_above:]
    leaves = np.cumsum([0, *(tree.n_leaves for tree in trees)])
    below = np.cumsum([0, *(len(tree.children) for tree in trees)])
    # The unions in place of a leaf come after the upper unions that are complete by then, and the other way round.
    before = np.searchsorted(stop, np.arange(n_above), side="right")
    n_leaves = int(leaves[-1])
    of_union = n_leaves + np.arange(stop.size) + below[stop]
    of_leaf = np.empty(n_above, np.int64)
    joined = np.empty((stop.size + int(below[-1]), 2), np.int32)
    for i, tree in enumerate(trees):
        begin, rows = int(below[i] + before[i]), len(tree.children)
        joined[begin : begin + rows] = _renumbered(tree, int(leaves[i]), n_leaves + begin)
        of_leaf[i] = n_leaves + begin + rows - 1 if rows else leaves[i]
    joined[of_union - n_leaves] = np.concatenate([of_leaf, of_union])[children]
    return _with_leaves_of(trees, joined)


def signatures_above(shape: Shape, trees: Sequence[Subtrees]) -> NDArray[np.int64]:
    """The signatures of the nodes of a shape above subtrees of points, in its order."""
    birth = np.array([tree.ids[0] for tree in trees])
    return _signatures(shape.children, birth, np.array([tree.n_leaves for tree in trees]))


def collapse(subtrees: Subtrees, live: MeanLiveTree, is_open: NDArray[np.bool_], base: int) -> Subtrees:
    """The open unions, above a stub for each subtree that hangs off them. `join` is the inverse.

    Parameters
    ----------
    live
        The same subtrees, from `to_live`.
    is_open
        For each union. If one is open, so are those above it.
    base
        The id of a stub is this plus its node.
    """
    opened = np.flatnonzero(is_open)
    nodes, number = subtrees.cut_below(opened)
    u, tree = live_nodes(subtrees, nodes), live.tree
    n_points = subtrees.signatures()[nodes, 1]
    return Subtrees(
        base + nodes,
        tree.size[u],
        tree.mean[u],
        number[subtrees.children[opened]].reshape(-1, 2),
        stubs=Stubs(tree.variance[u], tree.height[u], tree.radius[u], tree.birth[u], n_points),
    )


def live_nodes(subtrees: Subtrees, nodes: NDArray[Any]) -> NDArray[np.int64]:
    """The nodes of the tree from `to_live` for some nodes: 2 i for leaf i, 2 j + 1 for union j."""
    k = subtrees.n_leaves
    return np.where(nodes < k, 2 * nodes, 2 * (nodes - k) + 1).astype(np.int64)


def from_live_nodes(subtrees: Subtrees, u: NDArray[np.int64]) -> NDArray[np.int64]:
    """The inverse of `live_nodes`."""
    return np.where(u % 2 == 0, u >> 1, subtrees.n_leaves + (u >> 1))


def to_live(subtrees: Subtrees, scheme: Scheme, aim: Aim, n_more: int = 0) -> MeanLiveTree:
    """A live tree of the subtrees, with room for more points. Leaf i is node 2 i, and union j is node 2 j + 1.

    The first subtree is the tree; set the root of its state for another. Nothing is pending or due, and lists of
    neighbours are empty. O(n m).
    """
    k, n_unions = subtrees.n_leaves, len(subtrees.children)
    live = MeanLiveTree(scheme, aim, subtrees.mean.shape[1], subtrees.mean.dtype)
    live.reserve(k + n_more)
    tree = live.tree
    incoming = Incoming(subtrees.mean if subtrees.points is None else subtrees.points, subtrees.mean)
    leaves = live.add_leaves(incoming, subtrees.size, contiguous(subtrees.birth), np.empty(0, np.int32))
    live.search.fresh[:] = 0
    live.search.state["fresh"][0] = 0
    if subtrees.stubs is not None:
        for name in ("variance", "height", "radius"):
            getattr(tree, name)[leaves] = getattr(subtrees.stubs, name)
    unions = 2 * np.arange(n_unions, dtype=np.int32) + 1
    tree.parent[unions] = NULL
    children = live_nodes(subtrees, subtrees.children)
    tree.left[unions], tree.right[unions] = children[:, 0], children[:, 1]
    tree.parent[children[:, 0]] = tree.parent[children[:, 1]] = unions
    tree.state["n_points"], tree.state["inner_top"] = k, n_unions
    tree.state["root"][0] = live_nodes(subtrees, subtrees.roots()[:1])[0] if k else NULL
    kernels.statistics.merge.merge_all(tree, live.tag, unions)
    live.may_sketch = False
    live.prepare_search()
    return live


def from_live(live: MeanLiveTree, stubs_of: Subtrees | None = None) -> tuple[Subtrees, NDArray[np.int32]]:
    """All subtrees of a live tree, the oldest first; and the live node of each leaf, then of each union. O(n m).

    Parameters
    ----------
    stubs_of
        What was given to `to_live`, where its leaves are stubs.
    """
    tree = live.tree
    roots = np.concatenate([_roots_among(live, "leaf_top", 0), _roots_among(live, "inner_top", 1)])
    roots = roots[np.argsort(tree.birth[roots])]
    nodes = np.concatenate([np.empty(0, np.int32), *(live.nodes(int(root)) for root in roots)])
    is_leaf = nodes % 2 == 0
    leaves, unions = nodes[is_leaf], nodes[~is_leaf]
    order = np.concatenate([leaves, unions])
    number = np.empty(live.n_used, np.int32)
    number[order] = np.arange(order.size)
    both = np.column_stack([tree.left[unions], tree.right[unions]])
    children = number[np.take_along_axis(both, np.argsort(tree.birth[both], axis=1), axis=1)]
    if stubs_of is not None:
        return stubs_of.with_shape(leaves >> 1, children), order
    points = None if live.kept is None else live.points(leaves)
    return Subtrees(tree.birth[leaves], tree.size[leaves], tree.mean[leaves], children, points), order


def _leaf_ranges(children: NDArray[np.int32], n_leaves: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    n_nodes = n_leaves + len(children)
    first, stop = np.empty(n_nodes, np.int64), np.empty(n_nodes, np.int64)
    kernels.shared.cross_partition.find_leaf_ranges(contiguous(children), n_leaves, first, stop)
    return first, stop


def _signatures(
    children: NDArray[np.int32], birth: NDArray[np.int64], n_points: NDArray[np.int64]
) -> NDArray[np.int64]:
    first, stop = _leaf_ranges(children, birth.size)
    below = np.concatenate([[0], np.cumsum(n_points)])
    return np.column_stack([birth[first], below[stop] - below[first]])


def _roots_among(live: MeanLiveTree, top: str, parity: int) -> NDArray[np.int32]:
    parent = live.tree.parent[parity : 2 * int(live.tree.state[top][0]) : 2]
    return (2 * np.flatnonzero(parent == NULL) + parity).astype(np.int32)


def _renumbered(tree: Subtrees, first_leaf: int, first_union: int) -> NDArray[np.int32]:
    """The children, where leaves and unions are numbered from these on."""
    children, k = tree.children, tree.n_leaves
    return np.where(children < k, children + first_leaf, children - k + first_union).astype(np.int32)


def _with_leaves_of(trees: Sequence[Subtrees], children: NDArray[np.int32]) -> Subtrees:
    points = [tree.points for tree in trees if tree.points is not None]
    stubs = [tree.stubs for tree in trees if tree.stubs is not None]
    return Subtrees(
        np.concatenate([tree.ids for tree in trees]),
        np.concatenate([tree.size for tree in trees]),
        np.concatenate([tree.mean for tree in trees]),
        children,
        np.concatenate(points) if points else None,
        Stubs(*(np.concatenate(columns) for columns in zip(*stubs, strict=True))) if stubs else None,
    )
