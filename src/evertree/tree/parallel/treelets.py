"""`Treelet`: a connected piece of a tree of means, cut out, to be changed by itself and put back."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evertree import kernels
from evertree.kernels.columns import UNLIMITED, WORK_STATE
from evertree.tree.base import LiveTree
from evertree.tree.statistics import MeanLiveTree

#: A subtree of fewer points is not worth the way.
FEWEST_IN_PIECE = 64

#: Seconds that a treelet is refined between two looks at whether to stop.
_SLICE = 0.005

#: What is counted of the work on a treelet, and added to that on the tree.
COUNTED = ("checks", "moves", "grafts", "searches", "guarded")


class Cut(NamedTuple):
    """A tree of means cut into subtrees, and what is above them.

    Attributes
    ----------
    nodes : array
        All nodes in postorder: those of a piece stand side by side, its root last.
    stops : array
        Where the nodes of each piece end.
    n_leaves : array
        How many leaves each piece has: of its 2 k - 1 nodes.
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
        """The number of the piece that each of some nodes is in, -1 for none."""
        position = np.empty(int(self.nodes.max()) + 1, np.int64)
        position[self.nodes] = np.arange(self.nodes.size)
        number = np.searchsorted(self.stops, position[nodes], side="right")
        starts = np.append(self.stops - 2 * self.n_leaves + 1, self.nodes.size)
        return np.where(position[nodes] >= starts[number], number, -1)

    def above(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The roots of the pieces and the leaves in none, and the inner nodes over these, in postorder."""
        inside = np.zeros(self.nodes.size + 1, np.int32)
        inside[self.stops - 2 * self.n_leaves + 1] += 1
        inside[self.stops - 1] -= 1
        is_above = np.cumsum(inside[:-1]) == 0
        is_bottom = self.nodes % 2 == 0
        is_bottom[self.stops - 1] = True
        return self.nodes[is_above & is_bottom], self.nodes[is_above & ~is_bottom]


def cut(live: MeanLiveTree, most: int, fewest: int | None = None) -> Cut:
    """Cut a tree into its largest subtrees of at most so many points; those of too few stay with what is above."""
    if fewest is None:
        fewest = FEWEST_IN_PIECE
    nodes = live.nodes()
    count = np.empty(live.n_used, np.int32)
    stops = np.empty(live.n_points, np.int32)
    n_pieces = kernels.statistics.treelets.find_pieces(live.tree, nodes, max(most, 1), fewest, count, stops)
    stops = stops[:n_pieces].copy()
    return Cut(nodes, stops, count[nodes[stops - 1]])


class LoneTree(MeanLiveTree):
    """A tree of means that no other thread can see: others run while it is edited and refined."""

    def insert(self, leaves: NDArray[np.int32]) -> None:
        """Hang filled leaves into the tree one by one, by search, and make the moves that follow."""
        self.begin_edit()
        kernels.statistics.treelets.insert_alone(self.tree, self.work, self.search, self.tag, leaves)

    def homogenise(self, max_checks: int = UNLIMITED, max_moves: int = UNLIMITED) -> None:
        """Refine by moves (`tab.OHC`) within limits."""
        kernels.statistics.treelets.homogenise_alone(self.tree, self.work, self.tag, max_checks, max_moves)

    def stabilise(self, max_steps: int = UNLIMITED, max_moves: int = UNLIMITED) -> None:
        """Refine by moves and grafts within limits, and no further than to where nodes should be numbered anew."""
        self._set_stop()
        kernels.statistics.treelets.stabilise_alone(self.tree, self.work, self.search, self.tag, max_steps, max_moves)


class Treelet(LoneTree):
    """A piece of a tree, on its own: its leaves are nodes of the tree, and stand for all that is below them.

    While it is out, neither its inner nodes nor its leaves may change in the tree. A search looks for what is in it
    alone.

    Parameters
    ----------
    live
        The tree.
    bottoms, inner
        The nodes that are its leaves, and the inner nodes over them, in postorder: at least one.
    place
        Room for a number for each node of the tree. Pieces may share it.
    n_more
        How many points there shall be room for beyond the leaves.
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
        self._lay_out(bottoms.size + n_more)
        self._bottoms, self._inner, self._root = bottoms, inner, int(inner[-1])
        self._counted = np.zeros(1, WORK_STATE)
        self.work.state["goal"][0] = live.work.state["goal"][0]
        self._lightest = live._lightest
        if live.search.fresh.size:
            self.prepare_search()
        kernels.statistics.treelets.copy_out(
            live.tree, live.work, live.search, bottoms, inner, place, self.tree, self.work, self.search
        )

    def refine(self, to_stable: bool, should_stop: Callable[[], bool]) -> None:
        """Refine until the treelet is stable, or homogeneous, or shall stop."""
        step = self.stabilise if to_stable else self.homogenise
        n_steps = 256
        while not should_stop() and (self.n_pending or (to_stable and self.n_due)):
            began = time.perf_counter()
            step(n_steps)
            n_steps = max(1, min(2 * n_steps, int(n_steps * _SLICE / max(time.perf_counter() - began, 1e-7))))

    def _set_stop(self) -> None:
        self.search.state["stop_at"][0] = UNLIMITED  # the tree knows its nodes by these numbers

    def take_in(
        self, live: MeanLiveTree, leaves: NDArray[np.int32], inner: NDArray[np.int32] | None = None
    ) -> NDArray[np.int32]:
        """Give leaves of the tree, which hang nowhere, to the treelet, and as many inner nodes if it will be put back.

        Returns the leaves as the treelet numbers them, to be inserted.
        """
        own = np.empty(leaves.size, np.int32)
        kernels.shared.topology.allocate_leaves(self.tree, own)
        kernels.statistics.treelets.copy_leaves(live.tree, leaves, self.tree, own)
        if inner is not None:
            self._bottoms = np.concatenate([self._bottoms, leaves])
            self._inner = np.concatenate([self._inner, inner])
        return own

    def count(self, live: LiveTree) -> None:
        """Add what has been done since the last time to what has been done on the tree."""
        done = self.work.state.copy()  # once: a thread may be at work on the treelet
        for name in COUNTED:
            live.work.state[name] += done[name] - self._counted[name]
        self._counted = done

    def put_back(self, live: MeanLiveTree) -> None:
        """Let the tree be as the treelet is now. When all are back, `recount` is due."""
        kernels.statistics.treelets.copy_in(
            live.tree, live.work, self._bottoms, self._inner, self._root, self.tree, self.work
        )
