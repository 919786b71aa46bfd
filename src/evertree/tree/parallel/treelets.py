"""`Treelet`: a connected piece of a tree of means, cut out, changed on its own, and put back."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evertree import kernels
from evertree.kernels.columns import UNLIMITED, WORK_STATE, new_sketches
from evertree.tree.base import LiveTree
from evertree.tree.statistics import MeanLiveTree

#: Smaller subtrees are not worth cutting out.
FEWEST_IN_PIECE = 64

#: Seconds that a treelet is refined between two checks of whether to stop.
_SLICE = 0.005

#: Counters of the work on a treelet that are added to those of the tree.
COUNTED = ("checks", "moves", "grafts", "searches", "guarded")


class Cut(NamedTuple):
    """A tree of means cut into subtrees, and what is above them.

    Attributes
    ----------
    nodes : array
        All nodes in postorder: those of a piece are contiguous, its root last.
    stops : array
        Where the nodes of each piece end.
    n_leaves : array
        Number of leaves of each piece: k of its 2 k - 1 nodes.
    """

    nodes: NDArray[np.int32]
    stops: NDArray[np.int32]
    n_leaves: NDArray[np.int32]

    @property
    def roots(self) -> NDArray[np.int32]:
        """The root of each piece."""
        return self.nodes[self.stops - 1]

    def piece(self, number: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The leaves of a piece and its inner nodes, in postorder."""
        stop = self.stops[number]
        nodes = self.nodes[stop - 2 * self.n_leaves[number] + 1 : stop]
        return nodes[nodes % 2 == 0], nodes[nodes % 2 == 1]

    def numbers_of(self, nodes: NDArray[np.int32]) -> NDArray[np.int64]:
        """The number of the piece that contains each of `nodes`, -1 for none."""
        position = np.empty(int(self.nodes.max()) + 1, np.int64)
        position[self.nodes] = np.arange(self.nodes.size)
        number = np.searchsorted(self.stops, position[nodes], side="right")
        starts = np.append(self.stops - 2 * self.n_leaves + 1, self.nodes.size)
        return np.where(position[nodes] >= starts[number], number, -1)

    def above(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The roots of the pieces and the leaves in none, and the inner nodes above these, in postorder."""
        inside = np.zeros(self.nodes.size + 1, np.int32)
        inside[self.stops - 2 * self.n_leaves + 1] += 1
        inside[self.stops - 1] -= 1
        is_above = np.cumsum(inside[:-1]) == 0
        is_bottom = self.nodes % 2 == 0
        is_bottom[self.stops - 1] = True
        return self.nodes[is_above & is_bottom], self.nodes[is_above & ~is_bottom]


def cut(live: MeanLiveTree, most: int, fewest: int | None = None) -> Cut:
    """Cut a tree into its largest subtrees of at most `most` points; those that are too small stay with the rest."""
    if fewest is None:
        fewest = FEWEST_IN_PIECE
    nodes = live.nodes()
    count = np.empty(live.n_used, np.int32)
    stops = np.empty(live.n_points, np.int32)
    n_pieces = kernels.statistics.treelets.find_pieces(live.tree, nodes, max(most, 1), fewest, count, stops)
    stops = stops[:n_pieces].copy()
    return Cut(nodes, stops, count[nodes[stops - 1]])


class Treelet(MeanLiveTree):
    """A piece of a tree on its own: its leaves are nodes of the tree, and stand for all below them.

    While it is out, neither its inner nodes nor its leaves may change in the tree. A search looks only within it.

    Parameters
    ----------
    live
        The tree.
    bottoms, inner
        The nodes that are its leaves, and the inner nodes above them, in postorder: at least one.
    place
        Workspace: one number per node of the tree. Pieces may share it.
    n_more
        Number of additional points to make room for.
    """

    def __init__(
        self,
        live: MeanLiveTree,
        bottoms: NDArray[np.int32],
        inner: NDArray[np.int32],
        place: NDArray[np.int32],
        n_more: int = 0,
    ) -> None:
        super().__init__(live.scheme, live.aim, live.tree.mean.shape[1], live.dtype)
        self.tree = self.tree._replace(sketch=new_sketches(0, live.tree.sketch.direction))
        self.may_sketch = False  # it keeps these directions
        self._lay_out(bottoms.size + n_more)
        self._bottoms, self._inner, self._root = bottoms, inner, int(inner[-1])
        self._counted = np.zeros(1, WORK_STATE)
        self.work.state["goal"][0] = live.work.state["goal"][0]
        self._lightest = live._lightest
        if live.search.fresh.size:
            self.prepare_search()
            self.search.state["reach"] = live.search.state["reach"]  # an automatic width is that of the whole tree
            self.search.total[0] = live.tree.size[live.root]
        kernels.statistics.treelets.copy_out(
            live.tree, live.work, live.search, bottoms, inner, place, self.tree, self.work, self.search
        )

    def refine(self, to_stable: bool, should_stop: Callable[[], bool]) -> None:
        """Refine until the treelet is stable, or homogeneous, or `should_stop` returns True."""
        step = self.stabilise if to_stable else self.homogenise
        n_steps = 256
        while not should_stop() and not (self.is_at_rest if to_stable else self.n_pending == 0):
            began = time.perf_counter()
            step(n_steps)
            n_steps = max(1, min(2 * n_steps, int(n_steps * _SLICE / max(time.perf_counter() - began, 1e-7))))

    def _set_stop(self) -> None:
        self.search.state["stop_at"][0] = UNLIMITED  # the tree knows its nodes by these numbers

    def take_in(
        self, live: MeanLiveTree, leaves: NDArray[np.int32], inner: NDArray[np.int32] | None = None
    ) -> NDArray[np.int32]:
        """Give detached leaves of the tree to the treelet, and as many inner nodes if it will be put back.

        Returns their numbers in the treelet, to be inserted.
        """
        own = np.empty(leaves.size, np.int32)
        kernels.shared.topology.allocate_leaves(self.tree, own)
        kernels.statistics.treelets.copy_leaves(live.tree, leaves, self.tree, own)
        if inner is not None:
            self._bottoms = np.concatenate([self._bottoms, leaves])
            self._inner = np.concatenate([self._inner, inner])
        return own

    def count(self, live: LiveTree) -> None:
        """Add the work done since the last call to the counters of the tree."""
        done = self.work.state.copy()  # once: a thread may be at work on the treelet
        for name in COUNTED:
            live.work.state[name] += done[name] - self._counted[name]
        self._counted = done

    def put_back(self, live: MeanLiveTree, is_searched: bool = False) -> None:
        """Write the treelet back into the tree. Once all are back, call `recount`.

        If it `is_searched`, it was refined by good lists of neighbours as far as it was refined.
        """
        columns = live.tree, live.work, self._bottoms, self._inner, self._root
        kernels.statistics.treelets.copy_in(*columns, self.tree, self.work, int(is_searched))

    @property
    def nodes_and_root(self) -> tuple[NDArray[np.int32], int]:
        """Its nodes in the tree, and the one that is its root when it is back."""
        return np.concatenate([self._bottoms, self._inner]), int(self._inner[self.root >> 1])
