"""`MeanLiveTree`: a live tree for linkages that follow from size, mean and variance. Memory is linear."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertree import kernels
from evertree.errors import MagnitudeError
from evertree.input.metrics import LARGEST, LARGEST_VALUE, Metric
from evertree.kernels.columns import (
    LOST,
    MEAN_NODE,
    NULL,
    OWN_LIST,
    UNLIMITED,
    MeanTree,
    Search,
    Worklist,
    new_node_columns,
    new_search,
    new_sketches,
    no_sketches,
)
from evertree.kernels.shared.check import MANY_COLUMNS
from evertree.locking import Uninterrupted
from evertree.tree import repair
from evertree.tree.aim import Aim
from evertree.tree.base import PART, REORDER_SHARE, LiveTree, contiguous
from evertree.tree.incoming import Incoming
from evertree.tree.quick_columns import GRAFTS, INSERTED, N_POINTS, ORDERED_AT, ROOT
from evertree.tree.scheme import Scheme

#: A total weight up to this, divided by the number of columns, overflows with no accepted value.
SAFE_WEIGHT = float(np.finfo(np.float64).max) / 4 / LARGEST**2

#: The columns that only a tree of means has.
KEPT = ("mean", "variance", "height", "radius")

#: From this many bytes on, which no longer fit into the nearest caches, the order of nodes in memory matters.
FEWEST_BYTES_TO_REORDER = 1 << 22


#: Up to this many points, an automatic search width means an exact tree: an edit takes about a millisecond.
MOST_EXACT = 2_000


#: Sketches pay from this many points on, in many columns. They are along this many directions at most, those in which
#: so many points differ most; these are found again when there are so many times as many points.
_FEWEST_POINTS = 1_000
_N_DIRECTIONS, _COLUMNS_PER_DIRECTION = 32, 4
_SAMPLE, _GROWTH = 256, 8
_N_ITERATIONS = 4


class MeanLiveTree(LiveTree):
    """A tree whose nodes have sufficient statistics.

    Parameters
    ----------
    scheme
        The linkage on its metric.
    aim
        What it is refined to.
    n_columns, dtype
        Number of columns and dtype of the points.
    """

    tree: MeanTree

    def __init__(self, scheme: Scheme, aim: Aim, n_columns: int, dtype: np.dtype[Any]) -> None:
        self.scheme, self.aim = scheme, aim
        #: The points as given, by row, if they differ from the coordinates in ``tree.mean``.
        self.kept: NDArray[Any] | None = None
        #: The largest coordinate of the points, present or removed; None as long as it does not matter.
        self._largest: float | None = None
        #: Whether sketches are made where they pay: it must be a single tree, whose rows are all filled by `fill`.
        self.may_sketch = True
        #: The number of points from which the directions of sketches were found.
        self._n_sketched = 0
        self.n_columns, self.dtype, self.is_blank = n_columns or None, dtype, n_columns == 0
        self.tag = scheme.tag(dtype)
        self._lay_out(0)

    @classmethod
    def of_columns(
        cls, scheme: Scheme, aim: Aim, tree: MeanTree, work: Worklist, search: Search, kept: NDArray[Any] | None
    ) -> MeanLiveTree:
        """A tree with copies of the used part of the given columns."""
        twin = cls(scheme, aim, tree.mean.shape[1], tree.mean.dtype)
        twin.tree, twin.work, twin.search, twin.kept = tree, work, search, kept
        twin._lay_out(tree.parent.size // 2)
        return twin

    @property
    def _metric(self) -> Metric:
        assert self.scheme.vectors is not None
        return self.scheme.vectors

    def is_cheap(self, n_points: int) -> bool:
        """Whether a tree of this many points is to be exact if the search width is automatic."""
        return n_points <= MOST_EXACT and self.has_exact_edits

    @property
    def n_bytes(self) -> int:
        """Memory of the columns in use."""
        sketch = self.tree.sketch.value[:1].nbytes + self.tree.sketch.slip[:1].nbytes
        row = MEAN_NODE.itemsize + self.work.stack.itemsize + self.tree.mean[:1].nbytes + sketch
        kept = 0 if self.kept is None else self.kept[:1].nbytes // 2
        return self.n_used * (row + kept) + self.n_used // 2 * self._bytes_of_search

    def points(self, leaves: NDArray[np.int32]) -> NDArray[Any]:
        """The points of `leaves` as given, bit for bit."""
        return self.tree.mean[leaves] if self.kept is None else self.kept[leaves >> 1]

    def dissimilarities(self, leaves: NDArray[np.int32]) -> NDArray[np.float64]:
        """The dissimilarity of every pair of `leaves`, condensed. O(n²) in time and memory."""
        from scipy.spatial.distance import pdist

        coordinates = self.tree.mean[leaves].astype(np.float64)
        if self._metric.is_squared:
            return self._metric.row_params[0] * pdist(coordinates, "sqeuclidean")
        return pdist(coordinates, "euclidean")

    def nearest(
        self,
        guests: NDArray[np.int32],
        leaves: NDArray[np.int32],  # noqa: ARG002  the tree itself is searched
    ) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """For each of the detached leaves, the nearest leaf of the tree, and its dissimilarity. O(n m) at most."""
        nearest, sq = np.empty(guests.size, np.int32), np.empty(guests.size)
        search = self.search
        if search.fresh.size == 0:  # only the stack is used
            search = new_search(1, 1, self.dtype)._replace(stack=np.empty(self.tree.parent.size, np.int32))
        kernels.statistics.search.find_nearest_points(self.tree, search, guests, nearest, sq)
        return nearest, self._metric.row_params[0] * sq if self._metric.is_squared else np.sqrt(sq)

    @contextmanager
    def guests(
        self, incoming: Incoming, births: NDArray[np.int64], leaves: NDArray[np.int32]
    ) -> Iterator[tuple[LiveTree, NDArray[np.int32]]]:
        """The tree itself with detached leaves for new points of weight 1, which are gone after the block.

        They take rows that no point has used, and searches note nothing of them elsewhere, so that nothing is copied;
        but for threads at work, which read and count.
        """
        if self.has_threads:
            with super().guests(incoming, births, leaves) as found:
                yield found
            return
        with Uninterrupted():
            yield from self._with_guests(incoming, births, leaves)

    def _with_guests(
        self, incoming: Incoming, births: NDArray[np.int64], leaves: NDArray[np.int32]
    ) -> Iterator[tuple[LiveTree, NDArray[np.int32]]]:
        count = len(incoming)
        first = self._make_room_for_guests(count)
        if self.aim.is_stable:
            self.prepare_search()
        tree, work, search = self.tree, self.work, self.search
        written = tree.state, work.state, search.state, search.lightest, search.recent
        states = [(record, record.copy()) for record in written]
        rows = slice(2 * first, 2 * (first + count))
        columns = [getattr(tree, name)[rows] for name in MEAN_NODE.names or () if name in tree._fields]
        before = [column.copy() for column in columns]
        lightest, largest = self._lightest, self._largest
        tree.state["free_leaf"][0] = NULL
        search.state["notes"][0] = OWN_LIST
        try:
            yield self, self.add_leaves(incoming, np.ones(count), births, leaves)
        finally:
            stamp = int(search.state["stamp"][0])
            for record, old in states:
                record[:] = old
            search.state["stamp"][0] = stamp  # nodes are marked with it
            for column, values in zip(columns, before, strict=True):
                column[:] = values
            self._lightest, self._largest = lightest, largest
            search.near[first : first + count] = NULL
            search.near_value[first : first + count] = np.inf
            search.fresh[first : first + count] = 0

    def linkage_values(self, nodes: NDArray[np.int32]) -> NDArray[np.float64]:
        """The linkage in coordinates between the children of each of `nodes`; 0 for a leaf."""
        return self.tree.height[nodes]

    def tree_value(self) -> float:
        """Σ over pairs of dissimilarity, squared for Ward, times the size of the node at which they meet. O(n m)."""
        return float(self.scheme.zeta(kernels.shared.heights.sum_value(self.tree, self._average, self.nodes())))

    def prototypes(self, nodes: NDArray[np.int32]) -> NDArray[np.int32]:
        """For each of `nodes`, the leaf below it nearest to the mean. O(m) for each leaf below each node."""
        found = np.empty(nodes.size, np.int32)
        kernels.shared.prototypes.find_nearest_to_mean(
            self.tree, self.tag, nodes, np.empty(self.capacity, np.int32), found
        )
        return found

    def check_range(self, incoming: Incoming, weights: NDArray[np.float64]) -> None:
        """Refuse points with which a linkage value could overflow."""
        coordinates, root = incoming.coordinates, self.quick.state[ROOT]
        assert coordinates is not None
        total = float(np.add.reduce(weights)) + (0.0 if root == NULL else self.quick.size[root])
        if total * coordinates.shape[1] <= SAFE_WEIGHT:
            return
        if self._largest is None:
            self._largest = _largest_of(self.tree.mean[self.leaves()])
        checked_largest(total, max(self._largest, _largest_of(coordinates)), coordinates.shape[1])

    def add_leaves(
        self,
        incoming: Incoming,
        weights: NDArray[np.float64],
        births: NDArray[np.int64],
        others: NDArray[np.int32],  # noqa: ARG002  no dissimilarities are stored
    ) -> NDArray[np.int32]:
        """Allocate leaves for points, for which there is room. They are not attached yet."""
        leaves = np.empty(weights.size, np.int32)
        self._write(kernels.statistics.fill.add_leaves, leaves, incoming, weights, births)
        return leaves

    def fill(
        self,
        leaves: NDArray[np.int32],
        incoming: Incoming,
        weights: NDArray[np.float64],
        births: NDArray[np.int64],
        others: NDArray[np.int32],  # noqa: ARG002  no dissimilarities are stored
    ) -> None:
        """Write the rows of `leaves`."""
        self._write(kernels.statistics.fill.fill_leaves, leaves, incoming, weights, births)

    def _write(
        self,
        write: Callable[..., None],
        leaves: NDArray[np.int32],
        incoming: Incoming,
        weights: NDArray[np.float64],
        births: NDArray[np.int64],
    ) -> None:
        """Write points to leaves by one of the kernels of `fill`."""
        self._note_weights(weights)
        if self._largest is not None:
            self._largest = max(self._largest, _largest_of(contiguous(incoming.coordinates)))
        write(self.tree, self.work, self.search, leaves, contiguous(incoming.coordinates), contiguous(weights), births)
        if self.kept is not None:
            self.kept[leaves >> 1] = incoming.points

    def prepare_search(self) -> None:
        """Allocate what searches need, if not done yet; find the directions of sketches where they pay."""
        super().prepare_search()
        fewest = max(_FEWEST_POINTS, _GROWTH * self._n_sketched)
        if not self.may_sketch or (self.n_columns or 0) < MANY_COLUMNS or self.n_used < 2 * fewest:
            return
        leaves = 2 * np.flatnonzero(self.tree.parent[: self.n_used : 2] >= NULL)
        if leaves.size >= fewest:
            sample = self.tree.mean[leaves[:: -(-leaves.size // _SAMPLE)]].astype(np.float64)
            self._sketch(directions(sample))
            self._n_sketched = leaves.size

    def _sketch(self, direction: NDArray[np.float64]) -> None:
        """Make sketches along some directions."""
        tree = self.tree._replace(sketch=new_sketches(self.tree.parent.size, direction))
        tree.sketch.slip.fill(np.inf)  # what is not written bounds nothing
        kernels.statistics.sketches.sketch_all(tree, self.nodes())
        self.tree = tree

    def find_heights(self) -> None:
        """Compute the columns of inner nodes that older versions did not store."""
        self._compute_all(self.nodes())

    def insert(self, leaves: NDArray[np.int32]) -> None:
        """Insert filled leaves one by one, by `tab.Insert` or by search, and make the moves that follow."""
        self.begin_edit()
        if repair.edit(self, leaves, comes=True):
            return
        self.exact = None
        if self.aim.is_stable:
            kernels.shared.stabilise.insert_by_search(self.tree, self.work, self.search, self.tag, leaves)
        else:
            kernels.shared.insert.insert_leaves(self.tree, self.work, self.tag, leaves)

    def list_neighbours(self, leaves: NDArray[np.int32], near: NDArray[np.int32]) -> None:
        """Fill the neighbour lists of some leaves: in each row of `near` there are leaves near one of them."""
        self.prepare_search()
        kernels.shared.neighbours.list_some(self.tree, self.search, leaves, near)

    def _is_simple(self, x: NDArray[Any]) -> bool:
        """Whether a point can be written to the tree as it is, and nothing else remains to be done."""
        return (
            x.shape == (1, self.n_columns)
            and x.dtype is self.dtype
            and x.flags.carray
            and self.kept is None
            and self._largest is None
            and self.exact is None
        )

    @cached_property
    def _limits(self) -> tuple[float, float]:
        """The largest value of a point, and the largest weight of all points, that no linkage value overflows."""
        return LARGEST_VALUE[self.dtype], SAFE_WEIGHT / (self.n_columns or 1)

    def insert_point(self, x: NDArray[Any], birth: int) -> int:
        """Insert a point of weight 1, and return its leaf; NULL if the general way is needed."""
        has_room = self.quick.state[N_POINTS] < self.tree.parent.size >> 1
        if not (has_room and self._lightest <= 1.0 and self._is_simple(x)):
            return NULL
        self.begin_edit()
        self.adapt_width(self.n_points + 1)
        columns, limits = (self.tree, self.work, self.search, self.tag), self._limits
        return kernels.statistics.one_point.insert_point(*columns, x, birth, *limits, self.aim.is_stable)

    def update_point(self, leaf: int, x: NDArray[Any]) -> bool:
        """Give the point of a leaf new values; False if the general way is needed."""
        if not self._is_simple(x):
            return False
        self.begin_edit()
        columns, limits = (self.tree, self.work, self.search, self.tag), self._limits
        found: int = kernels.statistics.one_point.update_point(*columns, leaf, x, *limits, self.aim.is_stable)
        return found != NULL

    def remove_point(self, leaf: int) -> bool:
        """Take out the point of a leaf, and free the leaf; False if the general way is needed."""
        if self.exact is not None:
            return False
        self.begin_edit()
        kernels.statistics.one_point.remove_point(self.tree, self.work, self.search, self.tag, leaf)
        return True

    def insert_some(self, leaves: NDArray[np.int32], should_stop: Callable[[], bool]) -> int:
        """Insert the first of the filled leaves; return how many."""
        if self.is_exact and self.is_to_be_exact:
            self.insert(leaves[:PART])
            return min(leaves.size, PART)
        from evertree.tree.parallel import insert, rounds

        count = insert.insert_some(self, leaves, should_stop)
        rounds.warm_up(self)
        return count

    def warm_up_threads(self) -> None:
        """Compile, or load from disk, the kernels that threads need to refine this tree."""
        from evertree.tree.parallel import rounds

        rounds.warm_up(self)

    def recount(self) -> None:
        """Count pending checks and due nodes after treelets were put back."""
        if self.root != NULL:
            kernels.statistics.treelets.count_flags(self.tree, self.work, self.nodes())

    def detach(self, leaves: NDArray[np.int32]) -> None:
        """Take leaves out of the tree, and make the moves that follow. They stay allocated."""
        self.begin_edit()
        if repair.edit(self, leaves, comes=False):
            self.forget_neighbours(leaves, 0)
            return
        self.exact = None
        siblings = np.empty(leaves.size, np.int32)
        kernels.shared.remove.detach_leaves(self.tree, self.work, self.search, self.tag, leaves, siblings)

    def homogenise(self, max_checks: int = UNLIMITED, max_moves: int = UNLIMITED) -> None:
        """Refine by moves (`tab.OHC`) within limits."""
        kernels.shared.homogenise.homogenise(self.tree, self.work, self.tag, max_checks, max_moves)

    def stabilise(self, max_steps: int = UNLIMITED, max_moves: int = UNLIMITED) -> None:
        """Refine by moves and grafts within limits, and stop where nodes should be renumbered."""
        self._set_stop()
        kernels.shared.stabilise.stabilise(self.tree, self.work, self.search, self.tag, max_steps, max_moves)

    def _set_stop(self) -> None:
        """Let refinement stop where nodes should be renumbered."""
        state = self.work.state
        last = state["ordered_at"][0] + max(int(REORDER_SHARE * self.n_points), 1) - state["inserted"][0]
        self.search.state["stop_at"][0] = last if self._pays_to_reorder else UNLIMITED

    @property
    def _pays_to_reorder(self) -> bool:
        """Whether the order of nodes in memory matters."""
        return 2 * self.n_points * (MEAN_NODE.itemsize + self.tree.mean[:1].nbytes) >= FEWEST_BYTES_TO_REORDER

    def reorder(self, share: float = REORDER_SHARE) -> NDArray[np.int32] | None:
        """Renumber the nodes where that pays, so that nodes close in the tree are close in memory.

        Large trees are slow because of cache misses. Nodes are renumbered once inserted points and grafted subtrees
        make up a given share of the points. Returns the new number of each node, or None if nothing changed. Detached
        nodes keep their numbers.
        """
        n_points, counters = self.n_points, self.quick.work
        if not self._pays_to_reorder or self.exact is not None:
            return None
        n_edits = counters[INSERTED] + counters[GRAFTS]
        if n_edits - counters[ORDERED_AT] < share * n_points:
            return None
        n_edits -= self._n_waiting
        if n_edits - counters[ORDERED_AT] < share * n_points:
            return None
        counters[ORDERED_AT] = n_edits
        nodes = self.nodes()
        place = np.arange(self.tree.parent.size, dtype=np.int32)
        for kind in (nodes[nodes % 2 == 0], nodes[nodes % 2 == 1]):
            place[kind] = np.sort(kind)
        rows = place[::2] >> 1
        self._permute(place, rows)
        kernels.shared.reorder.relabel_nodes(self.tree, self.work, nodes, place)
        self.tree.state["root"][0] = place[self.root]
        pending = self.work.stack[: self.n_pending]
        pending[:] = place[pending]
        self.search.recent[0] = LOST
        if self.search.fresh.size:
            search = self.search
            kernels.shared.reorder.relabel(search.near, place)
            permute(search.near, rows)
            permute(search.near_value, rows)
            search.fresh[rows] = search.fresh.copy()
            search.seen[:] = 0
        return place

    @property
    def _n_waiting(self) -> int:
        """Number of leaves that are filled but not attached yet. O(n)."""
        allocated = self.tree.parent[: 2 * int(self.tree.state["leaf_top"][0]) : 2] >= NULL
        return int(np.count_nonzero(allocated)) - self.n_points

    def for_scanning(self) -> MeanTree:
        """The tree itself: a check relies on no earlier results."""
        return self.tree

    def copy(self) -> MeanLiveTree:
        """A tree that shares nothing with this one."""
        twin = self.of_columns(self.scheme, self.aim, self.tree, self.work, self.search, self.kept)
        twin.exact = None if self.exact is None else self.exact.copy()
        twin.may_sketch, twin._n_sketched, twin.cut_at = self.may_sketch, self._n_sketched, self.cut_at
        return twin

    def __reduce__(self) -> tuple[Any, ...]:
        # A pickled view would come back as a separate array, and not as a part of its node.
        tree = self.tree._replace(sketch=no_sketches())  # they are found again
        parts = self.scheme, self.aim, tree, self.work, self.search, self.kept
        return self.of_columns, parts, {"exact": repair.trimmed(self)}

    def _lay_out(self, rows: int) -> None:
        columns, work = new_node_columns(2 * rows, MEAN_NODE)
        n_columns, dtype = self.n_columns or 0, self.dtype
        size = columns["parent"].size
        sketch = new_sketches(size, self.tree.sketch.direction) if hasattr(self, "tree") else no_sketches()
        sketch.slip.fill(np.inf)
        tree = MeanTree(**columns, mean=np.zeros((size, n_columns), dtype), sketch=sketch)
        kept = None
        if self._metric.changes_points:
            kept = np.zeros((tree.parent.size // 2, n_columns), dtype)
        if hasattr(self, "tree"):
            used = self.n_used
            for name in KEPT:
                getattr(tree, name)[:used] = getattr(self.tree, name)[:used]
            for name in ("value", "slip"):
                getattr(tree.sketch, name)[:used] = getattr(self.tree.sketch, name)[:used]
            if kept is not None and self.kept is not None:
                kept[: used // 2] = self.kept[: used // 2]
        self._begin(tree, work)
        self.kept = kept

    def _permute(self, place: NDArray[np.int32], rows: NDArray[np.int32]) -> None:
        """Move the columns of nodes, and of points by row, to their new places."""
        records = self.tree.parent.base  # the columns that are views of them move together
        assert records is not None
        permute(records.view(np.float64).reshape(place.size, -1), place)
        permute(self.tree.mean, place)
        if len(self.tree.sketch.direction):
            self.tree.sketch.slip[place] = self.tree.sketch.slip.copy()
            permute(self.tree.sketch.value, place)
        if self.kept is not None:
            permute(self.kept, rows)

    def _compute_from_heights(self, nodes: NDArray[np.int32], heights: NDArray[np.float64]) -> None:  # noqa: ARG002
        """Compute all statistics; heights follow from them."""
        self._compute_all(nodes)

    def _compute_all(self, nodes: NDArray[np.int32]) -> None:
        """Compute all statistics from the leaves in one pass. O(n m)."""
        kernels.statistics.merge.merge_all(self.tree, self.tag, nodes)


def directions(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """About the directions in which some points differ most, orthonormal rows; none if that does not come out.

    By a few iterations of a subspace: a decomposition calls threads of BLAS so often that it may wait for seconds.
    """
    count = min(_N_DIRECTIONS, points.shape[1] // _COLUMNS_PER_DIRECTION)
    with np.errstate(all="ignore"):
        points = points - points.mean(axis=0)
        largest = _largest_of(points)
        if not 0.0 < largest < np.inf:
            return np.zeros((0, 0))
        try:
            scaled = points / largest
            found = np.random.default_rng(0).normal(size=(count, points.shape[1]))
            for _ in range(_N_ITERATIONS):
                found = np.linalg.qr((found @ scaled.T @ scaled).T)[0].T
        except np.linalg.LinAlgError:
            return np.zeros((0, 0))
    is_orthonormal = np.allclose(found @ found.T, np.eye(len(found)), rtol=0.0, atol=1e-12)
    return np.ascontiguousarray(found) if is_orthonormal else np.zeros((0, 0))


def _largest_of(coordinates: NDArray[Any]) -> float:
    return float(np.abs(coordinates).max(initial=0.0))


def checked_largest(total_weight: float, largest: float, n_columns: int) -> float:
    """The largest coordinate, unless the total weight times its square overflows."""
    limit = np.sqrt(np.finfo(np.float64).max / 4 / n_columns / total_weight) if total_weight else np.inf
    if largest > limit:
        raise MagnitudeError(
            f"a total weight of {total_weight:.3g} times the squares of values up to {largest:.3g} overflows: "
            f"scale X to at most {limit:.3g}, or sample_weight down"
        )
    return largest


def permute(matrix: NDArray[Any], place: NDArray[np.int32]) -> None:
    """Move each row of a matrix to its new place, without copying the matrix."""
    bits = matrix.view(f"f{matrix.itemsize}")  # numbers are moved, whatever they are
    room = np.empty(place.size, np.bool_), np.empty(matrix.shape[1], bits.dtype)
    kernels.shared.reorder.permute_rows(bits, place, *room)
