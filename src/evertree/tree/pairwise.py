"""`PairLiveTree`: a live tree for linkages that are computed from pairs of points."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertree import kernels
from evertree.kernels.columns import (
    BLOCK,
    GROUP,
    ITSELF,
    MOST_PIVOTS,
    NOTHING,
    NULL,
    PAIR_NODE,
    PAIRS_STATE,
    SQUARE_ROOT,
    UNLIMITED,
    Pairs,
    PairTree,
    Search,
    Worklist,
    new_node_columns,
)
from evertree.locking import Uninterrupted
from evertree.tree import repair
from evertree.tree.aim import Aim
from evertree.tree.base import MOST_COMPARISONS, PART, LiveTree, contiguous
from evertree.tree.incoming import Incoming
from evertree.tree.quick_columns import QuickColumns
from evertree.tree.scheme import OBJECTS, VECTORS, Scheme

#: Pivots are used from this many points on, and chosen again whenever the number of points has doubled.
FEWEST_FOR_PIVOTS = 32

#: Pairs that may be considered per check of a budget.
PAIRS_PER_CHECK = 64

#: The columns that only a tree of pairs has.
KNOWN = ("height", "cross_left", "cross_right", "exact", "error", "error_left", "error_right", "center")


class PairLiveTree(LiveTree):
    """A tree whose nodes have heights, over vectors or over stored dissimilarities.

    Vectors with a named metric are kept as they are, and dissimilarities are evaluated on demand: memory is linear.
    Precomputed dissimilarities, and those of a function, which are evaluated once, are stored as a triangle: the one
    between rows i > j at ``i (i - 1) / 2 + j``, so that it grows at the end.

    Parameters
    ----------
    scheme
        The linkage on its metric.
    aim
        What it is refined to.
    n_columns
        Number of columns of the points; None if they are not vectors.
    dtype
        Of the vectors, or of the dissimilarities.
    """

    tree: PairTree

    def __init__(self, scheme: Scheme, aim: Aim, n_columns: int | None, dtype: np.dtype[Any]) -> None:
        self.scheme, self.aim = scheme, aim
        #: The points as given, by row, if they are not in ``pairs.x``; otherwise None.
        self.kept: NDArray[Any] | None = None
        self.n_columns, self.dtype, self.is_blank = n_columns, dtype, True
        self.tag = scheme.tag(dtype)
        #: Whether dissimilarities are looked up, not computed: new points then come with those to the live points.
        self.stores_dissimilarities = self.needs_order = scheme.holds != VECTORS
        self._pivots_chosen_at = 0
        self._n_called = 0
        self._lay_out(0)

    @classmethod
    def of_columns(
        cls,
        scheme: Scheme,
        aim: Aim,
        n_columns: int | None,
        columns: dict[str, NDArray[Any]],
        work: Worklist,
        search: Search,
        x: NDArray[Any],
        kept: NDArray[Any] | None,
    ) -> PairLiveTree:
        """A tree with copies of the used part of the given columns."""
        live = cls(scheme, aim, n_columns, x.dtype)
        live.tree = PairTree(**columns, pairs=live.tree.pairs._replace(x=x))
        live.work, live.search, live.kept = work, search, kept
        live._lay_out(live.tree.parent.size // 2)
        live._choose_pivots()
        return live

    @property
    def _search_dtype(self) -> np.dtype[Any]:
        return np.dtype(np.float64)

    @property
    def n_evaluated(self) -> int:
        """Number of dissimilarities evaluated so far, by kernels or by calls of a user's function."""
        return self._n_called if self.stores_dissimilarities else int(self.tree.pairs.state["evaluated"][0])

    def is_cheap(self, n_points: int) -> bool:
        """Whether a tree of this many points is to be exact if the search width is automatic: all pairs fit."""
        return self.has_exact_edits and self.fits(n_points)

    def fits(self, n_points: int) -> bool:
        """Whether this many points can be clustered within the memory that a matrix of all pairs may take."""
        linkage = self.scheme.linkage
        # A spanning tree needs no matrix; radii need a full one beside the triangle.
        n_values = 0 if linkage.is_spanning else n_points**2 * (3 if linkage.has_centers else 1) // 2
        return n_values * 8 <= self.aim.working_memory * 2**20

    @property
    def n_bytes(self) -> int:
        """Memory of the columns in use."""
        pairs = self.tree.pairs
        node = PAIR_NODE.itemsize + self.work.stack.itemsize
        node += pairs.lower.itemsize + pairs.upper.itemsize
        row = pairs.pivot[:1].nbytes + pairs.rows.itemsize + pairs.others.itemsize + pairs.share.itemsize
        row += 0 if self.kept is None else self.kept[:1].nbytes
        rows = self.n_used // 2
        return self.n_used * node + rows * (row + self._bytes_of_search) + self.x_in_use.nbytes

    def points(self, leaves: NDArray[np.int32]) -> Any:
        """The points of `leaves` as given: vectors, a list of objects, or their dissimilarities."""
        rows = leaves >> 1
        if self.kept is not None:
            return self.kept[rows] if self.n_columns is not None else self.kept[rows].tolist()
        if self.stores_dissimilarities:
            from scipy.spatial.distance import squareform

            condensed = self.dissimilarities(leaves).astype(self.dtype)
            return squareform(condensed) if condensed.size else np.zeros((leaves.size, leaves.size), self.dtype)
        return self.tree.pairs.x[rows]

    def dissimilarities(self, leaves: NDArray[np.int32]) -> NDArray[np.float64]:
        """The dissimilarity of every pair of `leaves`, condensed. O(n²) in time and memory."""
        condensed = np.empty(leaves.size * (leaves.size - 1) // 2)
        rows = np.ascontiguousarray(leaves >> 1)
        kernels.pairwise.pairs.fill_condensed(self._own_pairs(), rows, condensed, 0, rows.size)
        return condensed

    def nearest(
        self, guests: NDArray[np.int32], leaves: NDArray[np.int32]
    ) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """For each of the detached leaves, the nearest of `leaves`, and its dissimilarity. O(n m) each."""
        pairs, found = self.tree.pairs, np.empty(leaves.size)
        row = kernels.pairwise.dissimilarities.ROWS[self._row_name]
        rows = np.ascontiguousarray(leaves >> 1)
        nearest, distance = np.empty(guests.size, np.int32), np.empty(guests.size)
        for k, leaf in enumerate(guests.tolist()):
            row(pairs.x, pairs.params, leaf >> 1, rows, found)
            nearest[k] = leaves[found.argmin()]
            distance[k] = found.min()
        return nearest, distance

    @contextmanager
    def guests(
        self, incoming: Incoming, births: NDArray[np.int64], leaves: NDArray[np.int32]
    ) -> Iterator[tuple[LiveTree, NDArray[np.int32]]]:
        """A tree over the same points with detached leaves for new ones, which are gone after the block.

        Its nodes are copied, as comparisons leave values there, but neither points nor dissimilarities are.
        """
        count = len(incoming)
        with Uninterrupted():
            first = self._make_room_for_guests(count)
            twin = object.__new__(PairLiveTree)
            twin.__dict__.update(self.__dict__)
            twin.tree, twin.work = self._own_tree(), self.work._replace(state=self.work.state.copy())
            twin.search = twin._new_search(twin.tree)
            twin.quick = QuickColumns.of(twin.tree, twin.work)
            twin.tree.state["free_leaf"][0] = NULL
            try:
                yield twin, twin.add_leaves(incoming, np.ones(count), births, leaves)
            finally:
                if self.kept is not None and self.n_columns is None:
                    self.kept[first : first + count] = None

    def linkage_values(self, nodes: NDArray[np.int32]) -> NDArray[np.float64]:
        """The linkage between the children of each of `nodes`; 0 for a leaf."""
        return np.where(nodes % 2 == 1, self.tree.height[nodes], 0.0)

    def tree_value(self) -> float:
        """Σ over pairs of dissimilarity times the size of the node at which they meet. O(n² m)."""
        return float(kernels.shared.heights.sum_value(self._own_tree(), self._average, self.nodes()))

    def prototypes(self, nodes: NDArray[np.int32]) -> NDArray[np.int32]:
        """For each of `nodes`, the center for minimax linkage, otherwise the medoid, in O(n²) for n points below."""
        tree = self._own_tree()
        if self.scheme.linkage.has_centers:
            found = np.empty(nodes.size, np.int32)
            kernels.shared.prototypes.find_centers(tree, self.tag, nodes, found)
            return found
        medoid = np.full(tree.parent.size, NULL, np.int32)
        for u in nodes[::-1].tolist():  # the root of `nodes` that has the others below it comes last
            if medoid[u] == NULL:
                kernels.shared.prototypes.find_medoids(tree, self.tag, self.nodes(u), np.zeros(self.capacity), medoid)
        return medoid[nodes]

    def check_range(self, incoming: Incoming, weights: NDArray[np.float64]) -> None:
        """Do nothing: weights are shares where they are multiplied by dissimilarities, so nothing overflows."""

    def reserve(self, n_more: int) -> None:
        """Make room for `n_more` points. O(1) amortised. If there is not enough memory, nothing changes."""
        if self.is_blank:  # creating a tree must not compile anything
            self._lay_out(max(n_more, 1))
        super().reserve(n_more)

    def fill(
        self,
        leaves: NDArray[np.int32],
        incoming: Incoming,
        weights: NDArray[np.float64],
        births: NDArray[np.int64],
        others: NDArray[np.int32],
    ) -> None:
        """Write the rows of `leaves`. The columns of stored dissimilarities belong to `others`."""
        rows = leaves >> 1
        self.tree.size[leaves] = weights
        self._note_points(leaves, weights)
        self.tree.birth[leaves] = births
        self.tree.height[leaves] = 0.0
        if self.kept is not None:
            if self.n_columns is None:
                for row, point in zip(rows.tolist(), incoming.points, strict=True):
                    self.kept[row] = point
            else:
                if self.n_points == 0 and leaves.size == len(incoming):  # the first ones determine the dtype
                    self.kept = np.empty(self.kept.shape, incoming.points.dtype)
                self.kept = self.kept.astype(np.result_type(self.kept.dtype, incoming.points.dtype), copy=False)
                self.kept[rows] = incoming.points
        if self.stores_dissimilarities:
            kernels.pairwise.pairs.store_rows(self.tree.pairs.x, rows, others >> 1, contiguous(incoming.stored))
            self._n_called += incoming.n_evaluated
        else:
            self.tree.pairs.x[rows] = incoming.stored

    def adopt(self, other: LiveTree, leaves: NDArray[np.int32], incoming: Incoming) -> None:
        """Copy the shape of another tree, whose `leaves` are the points, into this new one."""
        super().adopt(other, leaves, incoming)
        if isinstance(other, PairLiveTree):
            self._n_called += other._n_called
            self.tree.pairs.state["evaluated"][0] += other.tree.pairs.state["evaluated"][0]

    def insert(self, leaves: NDArray[np.int32]) -> None:
        """Insert filled leaves one by one, by `tab.Insert` or by search, and make the moves that follow."""
        self.never_pause()
        self.begin_edit()
        if repair.edit(self, leaves, comes=True):
            self._choose_pivots()
            return
        self.exact = None
        start = 0
        while start < leaves.size:
            until_choice = max(2 * self._pivots_chosen_at, FEWEST_FOR_PIVOTS) - self.n_points
            stop = start + max(until_choice, 1) if self._uses_pivots else leaves.size
            self._hang(leaves[start:stop])
            self._choose_pivots()
            start = stop

    def take_heights(self, heights: NDArray[np.float64]) -> None:
        """Complete a stable tree, of which only the shape and the heights of its inner nodes are known."""
        super().take_heights(heights)
        self.never_pause()
        self.tree.pairs.state["measured"][0] = NULL  # it was a node of another tree

    def _compute_from_heights(self, nodes: NDArray[np.int32], heights: NDArray[np.float64]) -> None:
        self.tree.pairs.state["n_pivots"][0] = 0  # new points have not been compared with the pivots of old ones
        self._choose_pivots()
        kernels.pairwise.path.take_heights(self.tree, nodes, heights)

    def note_evaluated(self, count: int) -> None:
        """Count dissimilarities that were evaluated; those that are stored were counted when they came."""
        self.tree.pairs.state["evaluated"][0] += count

    def list_neighbours(self, leaves: NDArray[np.int32], condensed: NDArray[np.float64]) -> None:
        """Fill the neighbour lists of all points from the dissimilarities of every pair."""
        self.prepare_search()
        kernels.shared.neighbours.list_near(self.search, leaves, condensed)

    def insert_some(self, leaves: NDArray[np.int32], should_stop: Callable[[], bool]) -> int:  # noqa: ARG002
        """Insert the first of the filled leaves, fewer if each is compared with many; return how many."""
        count = min(PART, max(1, MOST_COMPARISONS // max(self.n_points, 1)))
        self.insert(leaves[:count])
        return min(leaves.size, count)

    def _hang(self, leaves: NDArray[np.int32]) -> None:
        """Attach leaves to the tree, one after the other."""
        if self.aim.is_stable:
            kernels.shared.stabilise.insert_by_search(self.tree, self.work, self.search, self.tag, leaves)
        else:
            kernels.shared.insert.insert_leaves(self.tree, self.work, self.tag, leaves)

    def detach(self, leaves: NDArray[np.int32]) -> None:
        """Take leaves out of the tree, and make the moves that follow. They stay allocated."""
        self.never_pause()
        self.begin_edit()
        self.forget_neighbours(leaves, 0)
        if repair.edit(self, leaves, comes=False):
            if np.isin(self.tree.pairs.pivots, leaves >> 1).any():
                self.tree.pairs.state["n_pivots"][0] = 0
            self._choose_pivots()
            return
        self.exact = None
        kernels.shared.remove.detach_leaves_of_pairs(self.tree, self.work, self.tag, leaves)
        self._choose_pivots()
        self.homogenise()

    def homogenise(self, max_checks: int = UNLIMITED, max_moves: int = UNLIMITED) -> None:
        """Refine by moves (`tab.OHC`) within limits. A long check may be interrupted midway."""
        self._pause_after(max_checks)
        kernels.shared.homogenise.homogenise(self.tree, self.work, self.tag, max_checks, max_moves)

    def stabilise(self, max_steps: int = UNLIMITED, max_moves: int = UNLIMITED) -> None:
        """Refine by moves and grafts within limits. A long step may be interrupted midway."""
        self._pause_after(max_steps)
        self.search.state["stop_at"][0] = UNLIMITED
        kernels.shared.stabilise.stabilise(self.tree, self.work, self.search, self.tag, max_steps, max_moves)

    def for_scanning(self) -> PairTree:
        """A copy of the tree in which no cross values are known."""
        tree = self._own_tree()
        for name in ("cross_left", "cross_right", "exact"):
            getattr(tree, name)[:] = 0
        return tree

    def copy(self) -> PairLiveTree:
        """A tree that shares nothing with this one."""
        make, parts, *_ = self.__reduce__()
        twin: PairLiveTree = make(*parts)
        twin._n_called = self._n_called
        twin.exact = None if self.exact is None else self.exact.copy()
        twin.tree.pairs.state["evaluated"][0] = self.tree.pairs.state["evaluated"][0]
        return twin

    def __reduce__(self) -> tuple[Any, ...]:
        if self.is_blank:
            return PairLiveTree, (self.scheme, self.aim, self.n_columns, self.dtype)
        columns = {name: column for name, column in self.tree._asdict().items() if name != "pairs"}
        parts = (self.scheme, self.aim, self.n_columns, columns, self.work, self.search, self.x_in_use, self.kept)
        return self.of_columns, parts, {"exact": repair.trimmed(self)}

    def _pause_after(self, max_steps: int) -> None:
        """Let a comparison of clusters pause after the time of `max_steps` steps."""
        state = self.tree.pairs.state
        is_limited = max_steps < UNLIMITED // PAIRS_PER_CHECK
        state["pause_at"][0] = state["looked_at"][0] + PAIRS_PER_CHECK * max_steps if is_limited else UNLIMITED

    def forget_bounds(self) -> None:
        """Forget what is known of earlier points and comparisons, and choose pivots again."""
        super().forget_bounds()
        if self.is_blank:
            return
        state = self.tree.pairs.state
        state["paused_node"] = state["measured"] = NULL
        state["n_pivots"] = state["unbounded"] = 0
        self._choose_pivots()

    def never_pause(self) -> None:
        """Discard a paused check, because the tree is about to change, and do not pause from now on."""
        self.tree.pairs.state["paused_node"][0] = NULL
        self.tree.pairs.state["pause_at"][0] = UNLIMITED

    @property
    def _uses_pivots(self) -> bool:
        """Whether bounds on dissimilarities, if any, are useful: a mean needs all pairs."""
        return self.tree.pairs.state["triangle"][0] != NOTHING and self.scheme.linkage.bounds_help

    def _choose_pivots(self) -> None:
        """Choose pivots, if they help: again when one has been removed or the number of points has doubled."""
        state = self.tree.pairs.state
        if state["n_pivots"][0] == 0:
            self._pivots_chosen_at = 0
        least = max(2 * self._pivots_chosen_at, FEWEST_FOR_PIVOTS)
        if self._uses_pivots and self.n_points >= least:
            kernels.pairwise.pairs.find_pivots(self.tree.pairs, np.ascontiguousarray(self.leaves() >> 1))
            self._pivots_chosen_at = self.n_points

    def _own_pairs(self) -> Pairs:
        """The pairs with a separate workspace, so that reading does not disturb an edit."""
        return self._new_pairs(self.capacity, self.tree.pairs.x, self.tree.pairs)

    def _own_tree(self) -> PairTree:
        """A copy of the tree over the same points."""
        columns = {name: np.array(column) for name, column in self.tree._asdict().items() if name != "pairs"}
        twins, _ = new_node_columns(self.tree.parent.size, PAIR_NODE)
        for name, column in columns.items():
            twins[name][:] = column
        return PairTree(**twins, pairs=self._own_pairs())

    @property
    def x_in_use(self) -> NDArray[Any]:
        """The coordinates, or the dissimilarities, of all rows that are or were in use."""
        return self._x_in_use(self.tree.pairs.x, self.n_used // 2)

    def _x_in_use(self, x: NDArray[Any], rows: int) -> NDArray[Any]:
        """The part of ``pairs.x`` that belongs to the first `rows` rows."""
        return x[:, : rows * (rows - 1) // 2] if self.stores_dissimilarities else x[:rows]

    def _new_x(self, rows: int) -> NDArray[Any]:
        n_columns, dtype = self.n_columns, self.dtype
        if self.stores_dissimilarities:
            return np.empty((1, max(rows * (rows - 1) // 2, 1)), dtype)
        return np.empty((rows, n_columns or 0), dtype)

    def _new_pairs(self, rows: int, x: NDArray[Any], old: Pairs | None, has_points: bool = True) -> Pairs:
        """Pairs with room for `rows` rows, and the state of the old ones."""
        metric = self.scheme.vectors
        state = np.zeros(1, PAIRS_STATE)
        pivots, pivot = np.empty(MOST_PIVOTS, np.int32), np.empty((rows, MOST_PIVOTS))
        if old is None:
            triangle = None if metric is None else metric.triangle
            state["triangle"][0] = {None: NOTHING, "itself": ITSELF, "root": SQUARE_ROOT}[triangle]
        else:
            state[:] = old.state
            both = min(rows, len(old.pivot))
            pivots[:], pivot[:both] = old.pivots, old.pivot[:both]
        state["paused_node"] = state["measured"] = NULL  # a paused check starts again
        state["pause_at"] = UNLIMITED
        return Pairs(
            x=x,
            params=np.array(metric.row_params if metric is not None else (), np.float64),
            row=kernels.pairwise.dissimilarities.row_address(self._row_name, self.dtype) if has_points else None,
            pivots=pivots,
            to_pivots=np.empty(MOST_PIVOTS),
            pivot=pivot,
            state=state,
            paused=np.zeros(1),
            span=np.empty((2, MOST_PIVOTS)),
            lower=np.empty(2 * rows),
            upper=np.empty(2 * rows),
            rows=np.empty(rows, np.int32),
            others=np.empty(rows + 1, np.int32),
            share=np.empty(rows),
            some=np.empty(BLOCK, np.int32),
            block=np.empty(BLOCK),
            means=np.empty(GROUP),
        )

    @property
    def _row_name(self) -> str:
        return "stored" if self.scheme.vectors is None else self.scheme.vectors.row

    def _lay_out(self, rows: int) -> None:
        has_points = rows > 0
        columns, work = new_node_columns(2 * rows, PAIR_NODE)
        rows = columns["parent"].size // 2
        n_columns, dtype = self.n_columns, self.dtype
        x = self._new_x(rows)
        old = self.tree.pairs if hasattr(self, "tree") else None
        pairs = self._new_pairs(rows, x, old, has_points)
        tree = PairTree(**columns, pairs=pairs)
        kept = None
        if n_columns is None and self.scheme.holds == OBJECTS:
            kept = np.empty(rows, object)
        elif n_columns is not None and (self.stores_dissimilarities or self._changes_points):
            kept = np.empty((rows, n_columns), dtype if self.kept is None else self.kept.dtype)
        if old is not None:
            used = self.n_used
            for name in KNOWN:
                getattr(tree, name)[:used] = getattr(self.tree, name)[:used]
            before = self._x_in_use(old.x, used // 2)
            self._x_in_use(x, used // 2)[:] = before
            if kept is not None and self.kept is not None:
                kept[: used // 2] = self.kept[: used // 2]
        self._begin(tree, work)
        self.kept, self.is_blank = kept, not has_points

    @property
    def _changes_points(self) -> bool:
        return self.scheme.vectors is not None and self.scheme.vectors.changes_points

    def _compute_all(self, nodes: NDArray[np.int32]) -> None:
        """Compute all heights from the pairs. O(n² m) at most."""
        self._choose_pivots()
        self.never_pause()
        kernels.pairwise.path.compute_all(self.tree, self.tag, nodes)
