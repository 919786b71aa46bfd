"""`LiveTree`: the columns of one tree with room to grow, and the edits that keep it in order, by node."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertree import kernels
from evertree.errors import DimensionError
from evertree.kernels.columns import (
    BOTH_LISTS,
    BY_DESCENT,
    DUE,
    EVERYWHERE,
    HOMOGENEOUS,
    LOST,
    NULL,
    OF_WORK,
    STABLE,
    TO_FIND,
    UNLIMITED,
    MeanTree,
    PairTree,
    Search,
    Worklist,
    new_search,
)
from evertree.linkages import LINKAGES, Tag
from evertree.locking import Uninterrupted
from evertree.tree.aim import AUTO, AUTO_WIDTH, Aim
from evertree.tree.incoming import GUESTS_AT_ONCE, Incoming
from evertree.tree.quick_columns import GOAL, GRAFTS, GRAFTS_BEFORE, N_POINTS, ROOT, QuickColumns
from evertree.tree.repair import Exact, trimmed
from evertree.tree.scheme import Scheme

#: Nodes are numbered in 32 bits, two for each point.
MOST_POINTS = int(np.iinfo(np.int32).max) // 2

#: Moves before the guard widens the tolerance: this many for each point, and some more for small trees.
QUOTA_PER_POINT = 10_000
SMALLEST_QUOTA = 100_000

#: Points that are each compared with all others are inserted in batches of up to this many comparisons: Ctrl-C is
#: handled between batches.
MOST_COMPARISONS = 300_000

#: Nodes are renumbered in tree order once inserted points and grafted subtrees make up this share of all points.
REORDER_SHARE = 0.5

#: Points inserted between two checks of whether to stop.
PART = 4_096

#: The columns that define the shape of a tree, for any linkage.
SHAPE = ("parent", "left", "right", "birth", "size")


class LiveTree(ABC):
    """A tree over points, with its worklist, the state of searches, and the scheme and aim of its refinement.

    Nodes are numbers; keys are unknown here. Arguments have been validated by the caller.
    """

    scheme: Scheme
    aim: Aim
    tree: Any  # MeanTree or PairTree
    work: Worklist
    search: Search  # has room for points only if the goal is, or has been, a stable tree
    quick: QuickColumns  # the columns of `tree` and `work` for reading single entries

    #: The type of the coordinates, or of the dissimilarities.
    dtype: np.dtype[Any]

    #: Number of columns of the points; None if they are not vectors, or if there has never been a point.
    n_columns: int | None

    #: Whether it has never held a point, so that the first ones determine columns and dtype.
    is_blank: bool

    #: Whether new points come with one value per live point, so that the order of live points matters.
    needs_order = False

    #: The linkage, as kernels see it.
    tag: Tag

    #: Whether threads are refining it: it may then be read and copied, but not edited.
    has_threads = False

    #: Number of points inserted when it was last searched in pieces.
    cut_at = -1

    #: Whether the kernels that threads need are known to be compiled.
    is_warm = False

    #: What is known of it if it is, or was, the batch tree; None if it has been changed in another way.
    exact: Exact | None = None

    #: The smallest weight of any point so far.
    _lightest = np.inf

    #: The points as given, by row, if they are not stored elsewhere in the tree; otherwise None.
    kept: NDArray[Any] | None

    @property
    @abstractmethod
    def n_bytes(self) -> int:
        """Memory of the columns in use."""

    @property
    def n_evaluated(self) -> int:
        """How many dissimilarities have been evaluated so far."""
        return 0

    @abstractmethod
    def points(self, leaves: NDArray[np.int32]) -> Any:
        """The points of `leaves` as given, bit for bit; their dissimilarities if those were given."""

    @abstractmethod
    def dissimilarities(self, leaves: NDArray[np.int32]) -> NDArray[np.float64]:
        """The dissimilarity of every pair of `leaves`, condensed. O(n²) in time and memory."""

    @abstractmethod
    def nearest(
        self, guests: NDArray[np.int32], leaves: NDArray[np.int32]
    ) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """For each of the detached leaves, the nearest live point, and its dissimilarity.

        `leaves` are those of the live points, the oldest first, if they are compared one by one.
        """

    @abstractmethod
    def linkage_values(self, nodes: NDArray[np.int32]) -> NDArray[np.float64]:
        """The linkage in coordinates between the children of each of `nodes`; 0 for a leaf."""

    @abstractmethod
    def tree_value(self) -> float:
        """Σ over pairs of dissimilarity times the size of the node at which they meet."""

    @abstractmethod
    def prototypes(self, nodes: NDArray[np.int32]) -> NDArray[np.int32]:
        """For each of `nodes`, the leaf below it that represents it best."""

    @abstractmethod
    def check_range(self, incoming: Incoming, weights: NDArray[np.float64]) -> None:
        """Refuse points with which a linkage value could overflow."""

    @abstractmethod
    def fill(
        self,
        leaves: NDArray[np.int32],
        incoming: Incoming,
        weights: NDArray[np.float64],
        births: NDArray[np.int64],
        others: NDArray[np.int32],
    ) -> None:
        """Write the rows of `leaves`. The columns of stored dissimilarities belong to `others`."""

    @abstractmethod
    def insert(self, leaves: NDArray[np.int32]) -> None:
        """Insert filled leaves one by one, by `tab.Insert` or by search, and make the moves that follow."""

    # The shortest ways to edit one point. They return NULL, or False, and change nothing, where the general way is
    # needed; it also says what is wrong with a point.

    def insert_point(self, x: NDArray[Any], birth: int) -> int:  # noqa: ARG002  only some trees can
        """Insert a point of weight 1, an array of shape (1, n_columns), and return its leaf."""
        return NULL

    def update_point(self, leaf: int, x: NDArray[Any]) -> bool:  # noqa: ARG002  the same
        """Give the point of a leaf new values."""
        return False

    def remove_point(self, leaf: int) -> bool:  # noqa: ARG002  the same
        """Take out the point of a leaf, and free the leaf."""
        return False

    @abstractmethod
    def insert_some(self, leaves: NDArray[np.int32], should_stop: Callable[[], bool]) -> int:
        """Insert the first of the filled leaves, as `insert` does; return how many.

        If it is stopped, some may be missing, and the tree must be discarded.
        """

    @abstractmethod
    def detach(self, leaves: NDArray[np.int32]) -> None:
        """Take leaves out of the tree, and make the moves that follow. They stay allocated."""

    @abstractmethod
    def homogenise(self, max_checks: int = UNLIMITED, max_moves: int = UNLIMITED) -> None:
        """Refine by moves (`tab.OHC`) within limits."""

    @abstractmethod
    def stabilise(self, max_steps: int = UNLIMITED, max_moves: int = UNLIMITED) -> None:
        """Refine by moves and grafts within limits."""

    @abstractmethod
    def for_scanning(self) -> MeanTree | PairTree:
        """The tree for kernels that check all of it and rely on nothing but its heights."""

    @abstractmethod
    def copy(self) -> LiveTree:
        """A tree that shares nothing with this one."""

    @abstractmethod
    def _lay_out(self, rows: int) -> None:
        """Allocate columns with room for this many points, and copy what is in use into them."""

    @abstractmethod
    def _compute_from_heights(self, nodes: NDArray[np.int32], heights: NDArray[np.float64]) -> None:
        """Compute the columns of inner nodes, children first, whose heights are known."""

    @abstractmethod
    def _compute_all(self, nodes: NDArray[np.int32]) -> None:
        """Compute the columns of inner nodes from the leaves; `nodes` are all nodes, children first."""

    @property
    def _search_dtype(self) -> np.dtype[Any]:
        """The type of the values in lists of neighbours."""
        return self.dtype

    @property
    def n_points(self) -> int:
        """Number of points in the tree."""
        return int(self.quick.state[N_POINTS])

    @property
    def root(self) -> int:
        """The root, or NULL."""
        return int(self.quick.state[ROOT])

    @property
    def capacity(self) -> int:
        """Number of points there is room for."""
        return self.tree.parent.size // 2

    @property
    def _average(self) -> Tag:
        """Average linkage for this tree, as kernels see it."""
        return LINKAGES["average"].tag(self.tag.tolerance)

    @property
    def _bytes_of_search(self) -> int:
        """Memory per point that searches take."""
        search = self.search
        of_nodes = search.seen[:2].nbytes + search.stack[:2].nbytes
        return search.near[:1].nbytes + search.near_value[:1].nbytes + search.fresh[:1].nbytes + of_nodes

    @property
    def n_pending(self) -> int:
        """Number of checks that may have changed; if 0, no move is needed."""
        return int(self.work.state["pending"][0])

    @property
    def n_checks(self) -> int:
        """Number of checks made so far."""
        return int(self.work.state["checks"][0])

    @property
    def n_moves(self) -> int:
        """Number of moves made so far."""
        return int(self.work.state["moves"][0])

    @property
    def n_grafts(self) -> int:
        """Number of grafts made so far."""
        return int(self.work.state["grafts"][0])

    @property
    def n_changes(self) -> int:
        """Number of moves and grafts made so far."""
        return self.n_moves + self.n_grafts

    @property
    def has_exact_edits(self) -> bool:
        """Whether edits can leave the batch tree by bounds. Single linkage needs none: its moves lead there."""
        linkage = self.scheme.linkage
        is_bounded = linkage.reducible if self.scheme.has_statistics else linkage.strongly_reducible
        return self.aim.is_stable and is_bounded and not linkage.is_spanning

    @abstractmethod
    def is_cheap(self, n_points: int) -> bool:
        """Whether a tree of this many points is to be exact if the search width is automatic."""

    @property
    def width(self) -> int | None:
        """The search width that is in force; None if searches are exhaustive."""
        if self.aim.search_width != AUTO:
            return self.aim.search_width
        return None if self.search.state["reach"][0] == EVERYWHERE else AUTO_WIDTH

    def adapt_width(self, n_points: int) -> None:
        """Let an automatic search width fit this many points.

        A tree that has become small is searched exhaustively only well below the limit, so that it does not go to and
        fro; then all of its nodes are due.
        """
        if self.aim.search_width != AUTO:
            return
        reach = self.search.state["reach"]
        if reach[0] == EVERYWHERE:
            if not self.is_cheap(n_points):
                reach[0] = BY_DESCENT
        elif self.is_cheap(2 * n_points):
            reach[0] = EVERYWHERE
            self.note_all_due()

    def note_clustered(self) -> None:
        """Let an automatic search width fit a tree that has just been clustered: it is exact if that is cheap."""
        if self.aim.search_width == AUTO and self.is_cheap(self.n_points):
            self.search.state["reach"][0] = EVERYWHERE

    @property
    def is_to_be_exact(self) -> bool:
        """Whether edits are to leave the batch tree."""
        return self.has_exact_edits and self.width is None

    @property
    def is_exact(self) -> bool:
        """Whether it is known to be the batch tree."""
        return self.exact is not None and self.exact.n_changes == self.n_changes

    @property
    def n_searches(self) -> int:
        """Number of searches for blocking pairs made so far."""
        return int(self.work.state["searches"][0])

    @property
    def n_steps(self) -> int:
        """Number of steps of refinement made so far: it depends on no clock. It is not the same after loading."""
        return int(self.work.state["checks"][0] + self.work.state["other_steps"][0])

    @property
    def ordered_at(self) -> int:
        """Number of points inserted and grafts made when the nodes were last renumbered."""
        return int(self.work.state["ordered_at"][0])

    @property
    def n_due(self) -> int:
        """Number of nodes that may be in a blocking pair not yet searched for."""
        return int(self.work.state["due"][0])

    @property
    def n_unlisted(self) -> int:
        """Number of steps left for the lists of neighbours, if searches follow them."""
        return 0 if self.search.state["reach"][0] == EVERYWHERE else int(self.search.state["fresh"][0])

    @property
    def is_at_rest(self) -> bool:
        """Whether nothing is left to do towards a stable tree: a list that is improved may make its leaf due."""
        has_lists = not self.scheme.linkage.is_spanning
        return self.n_pending == 0 and self.n_due == 0 and not (has_lists and self.n_unlisted)

    @property
    def n_guarded(self) -> int:
        """How often the guard against endless moves has acted since all nodes were last queued for a check."""
        return int(self.work.state["guarded"][0])

    @property
    def n_used(self) -> int:
        """Number of rows of the columns that are, or were, in use."""
        return 2 * max(int(self.tree.state["leaf_top"][0]), int(self.tree.state["inner_top"][0]))

    def nodes(self, root: int | None = None) -> NDArray[np.int32]:
        """All nodes, or `root` and all below it, children first. Linear in their number."""
        top = self.root if root is None else root
        nodes = np.empty(max(2 * self.n_points - 1, 0), np.int32)
        if top == NULL:
            return nodes
        return nodes[kernels.shared.traverse.postorder(self.tree, top, nodes) :]

    def leaves(self, root: int | None = None) -> NDArray[np.int32]:
        """The leaves among `nodes`, in the same order."""
        nodes = self.nodes(root)
        return nodes[nodes % 2 == 0]

    @property
    def is_unweighted(self) -> bool:
        """Whether each point weighs 1, so that the size of a node is a number of points."""
        quick = self.quick
        return self._lightest == 1.0 and bool(quick.size[quick.state[ROOT]] == quick.state[N_POINTS])

    def reserve(self, n_more: int) -> None:
        """Make room for `n_more` points. O(1) amortised. If there is not enough memory, nothing changes."""
        needed = self.n_points + n_more
        if needed > MOST_POINTS:
            raise DimensionError(f"a hierarchy holds at most {MOST_POINTS:,} points; this would make {needed:,}")
        if needed > self.capacity:
            self._lay_out(min(max(needed, self.capacity + self.capacity // 2), MOST_POINTS))
        self.adapt_width(needed)

    def warm_up(self) -> None:
        """Compile, or load from disk, the kernels of refinement, so that later deadlines are met."""
        self.homogenise(0, 0)
        if self.aim.is_stable:
            self.stabilise(0, 0)

    def warm_up_threads(self) -> None:  # noqa: B027  only some trees need more than `warm_up`
        """Compile, or load from disk, the kernels that threads need to refine this tree."""

    def recount(self) -> None:  # noqa: B027  only some trees have treelets
        """Count pending checks and due nodes after treelets were put back."""

    def move_towards(self, goal: str) -> None:
        """Make the moves of a goal from now on. The paper has more for Ward: then all nodes are checked again."""
        wanted = STABLE if goal == "stable" else HOMOGENEOUS
        if wanted != self.work.state["goal"][0]:
            self.work.state["goal"][0] = wanted
            if wanted == HOMOGENEOUS and not self.scheme.linkage.strongly_reducible:
                kernels.shared.worklist.push_bottom_up(self.tree, self.work, self.nodes())

    def scratch(self) -> tuple[Any, Search]:
        """The tree and the state of searches for one thread: shared, but with a workspace of its own."""
        search = self.search
        return self.tree, search._replace(
            seen=np.zeros_like(search.seen),
            stack=np.empty_like(search.stack),
            front=np.empty_like(search.front),
            front_value=np.empty_like(search.front_value),
            recent=search.recent.copy(),
            state=search.state.copy(),
        )

    def list_recent(self) -> None:
        """List the lists of neighbours that are not good, if they are few and not listed. O(n) then."""
        recent = self.search.recent
        if recent[0] == LOST:
            some = np.flatnonzero(self.search.fresh)
            if some.size < recent.size:
                recent[1 : 1 + some.size], recent[0] = some, some.size

    def note_all_due(self) -> None:
        """Let every node be due for a search."""
        self.work.due[:] = DUE
        self.queue_flagged()

    def queue_flagged(self) -> None:
        """Make the queue of nodes due for a search anew, of those in the tree that are flagged. O(n)."""
        nodes = self.nodes()[:-1]  # all but the root
        flagged = nodes[self.work.due[nodes] != 0]
        self.work.due[:] = 0  # free nodes may have been due
        self.work.due[flagged] = DUE
        kernels.shared.due_queue.queue_flagged(self.tree, self.work, flagged)

    def prepare_search(self) -> None:
        """Allocate what searches need, if not done yet."""
        if self.search.fresh.size < self.capacity:
            self.search = self._new_search(self.tree)
        self.search.lightest[0] = self._lightest

    def _note_points(self, leaves: NDArray[np.int32], weights: NDArray[np.float64]) -> None:
        """Leaves hold other points now: update the smallest weight, forget their neighbours."""
        self._note_weights(weights)
        self.work.state["inserted"][0] += leaves.size
        self.forget_neighbours(leaves, TO_FIND)

    def forget_neighbours(self, leaves: NDArray[np.int32], steps: int) -> None:
        """Empty the neighbour lists of leaves, if any; they are then this many steps from being good."""
        kernels.shared.neighbours.forget_leaves(self.search, leaves, steps)

    def _note_live_weights(self) -> None:
        used = self.n_used
        self._note_weights(self.tree.size[:used:2][self.tree.parent[:used:2] >= NULL])

    def _note_weights(self, weights: NDArray[np.float64]) -> None:
        lightest = weights.item() if weights.size == 1 else float(np.minimum.reduce(weights, initial=np.inf))
        self._lightest = min(self._lightest, lightest)

    def begin_edit(self) -> None:
        """Begin a change of points: from now on the tree follows its goal, and the guard starts counting."""
        counters = self.quick.work
        if counters[GOAL] != (STABLE if self.aim.is_stable else HOMOGENEOUS):
            self.move_towards(self.aim.goal)
        counters[GRAFTS_BEFORE] = counters[GRAFTS]
        self.search.lightest[0] = self._lightest

    def forget_bounds(self) -> None:
        """Forget what is known of earlier points and comparisons: a tree that is loaded from a file knows it as little.

        From now on, the same edits give both the same tree.
        """
        self._lightest = np.inf
        self._note_live_weights()
        self.exact = trimmed(self)

    def reorder(self, share: float = REORDER_SHARE) -> NDArray[np.int32] | None:  # noqa: ARG002  nothing to do here
        """Renumber the nodes where that pays; return the new number of each, or None if nothing changed.

        Where comparisons of points dominate, the order of nodes in memory does not matter.
        """
        return None

    def blocked(self, nodes: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Whether each of `nodes` is in a blocking pair, by exhaustive search. O(n m) each, O(n² m) for pairs."""
        size = self.tree.parent.size
        room = {"stack": np.empty(size, np.int32), "seen": np.zeros(size, np.int32)}
        search = new_search(1, 1, self._search_dtype)._replace(**room)
        search.state["reach"][0] = EVERYWHERE
        search.lightest[0] = self._lightest
        found = np.zeros(nodes.size, np.bool_)
        kernels.shared.stabilise.find_blocked(self.for_scanning(), search, self.tag, nodes, found)
        return found

    def _new_search(self, tree: MeanTree | PairTree) -> Search:
        """The state of searches in a tree, with the existing neighbour lists."""
        width, rows = self.aim.search_width, tree.parent.size // 2
        # No level has more nodes than the tree.
        n_front = min(width, 2 * rows) if isinstance(width, int) else AUTO_WIDTH
        search = new_search(rows, n_front, self._search_dtype)
        if hasattr(self, "search") and self.search.fresh.size:
            old = self.search
            both = min(rows, old.fresh.size)
            for name in ("near", "near_value", "fresh"):
                getattr(search, name)[:both] = getattr(old, name)[:both]
            search.state[:], search.recent[:] = old.state, old.recent
            search.state["stamp"][0] = 0
            search.state["notes"][0] = BOTH_LISTS  # this entry had another meaning in old files
        elif tree.state["n_points"][0]:
            kernels.shared.neighbours.forget_all(tree, search, TO_FIND)
        if width == AUTO and hasattr(self, "search"):
            search.state["reach"][0] = self.search.state["reach"][0]
        else:
            is_wide = width is None or (width == AUTO and self.is_cheap(int(tree.state["n_points"][0])))
            search.state["reach"][0] = EVERYWHERE if is_wide else BY_DESCENT
        return search

    def add_leaves(
        self,
        incoming: Incoming,
        weights: NDArray[np.float64],
        births: NDArray[np.int64],
        others: NDArray[np.int32],
    ) -> NDArray[np.int32]:
        """Allocate leaves for points, for which there is room. They are not attached yet.

        Stored dissimilarities are to `others`, followed by the points themselves.
        """
        leaves = np.empty(len(incoming), np.int32)
        kernels.shared.topology.allocate_leaves(self.tree, leaves)
        try:
            self.fill(leaves, incoming, weights, births, np.concatenate([others, leaves]))
        except BaseException:
            self.release(leaves)
            raise
        return leaves

    @contextmanager
    def guests(
        self, incoming: Incoming, births: NDArray[np.int64], leaves: NDArray[np.int32]
    ) -> Iterator[tuple[LiveTree, NDArray[np.int32]]]:
        """The tree, or a copy, with detached leaves for new points of weight 1, which are gone after the block.

        `leaves` are those of the live points, if dissimilarities are stored.
        """
        with Uninterrupted():
            twin = self.copy()
            twin.reserve(len(incoming))
            yield twin, twin.add_leaves(incoming, np.ones(len(incoming)), births, leaves)

    def _make_room_for_guests(self, count: int) -> int:
        """Make sure that there are rows which no point has used; return the first of them."""
        first = int(self.tree.state["leaf_top"][0])
        if first + count > self.capacity:
            quota = self.work.state["quota"].copy()  # a tree that is only read must not change
            self._lay_out(first + max(count, GUESTS_AT_ONCE))
            self.work.state["quota"] = quota
        return first

    def never_pause(self) -> None:  # noqa: B027  only some trees ever pause
        """Run what comes next to completion, without pauses."""

    def find_places(self, leaves: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """For each of the detached leaves, the node beside which it would be attached, and ζ between the two."""
        self.never_pause()
        if self.aim.is_stable:
            self.prepare_search()
        place, value = np.empty(leaves.size, np.int32), np.empty(leaves.size)
        is_stable = np.int64(self.aim.is_stable)
        kernels.shared.locate.find_places(self.tree, self.search, self.tag, leaves, is_stable, place, value)
        return place, value

    def release(self, nodes: NDArray[np.int32]) -> None:
        """Free detached leaves or inner nodes, for use by other points."""
        kernels.shared.topology.release_nodes(self.tree, nodes)

    def rebuild(self) -> None:
        """Recompute all inner nodes from the leaves, and queue every node for a check."""
        nodes = self.nodes()
        if nodes.size == 0:
            return
        self.work.state["guarded"][0] = 0
        self._compute_all(nodes)
        kernels.shared.worklist.push_bottom_up(self.tree, self.work, nodes)
        if self.search.fresh.size:
            kernels.shared.neighbours.forget_all(self.tree, self.search, TO_FIND)
        self.warm_up()

    def take_heights(self, heights: NDArray[np.float64]) -> None:
        """Complete a stable tree, of which only the shape and the heights of its inner nodes are known.

        Its inner nodes are the first ones, each after its children.
        """
        tree, work = self.tree, self.work
        tree.state["free_inner"][0] = NULL
        for column in (tree.parent, tree.left, tree.right):
            column[2 * heights.size + 1 :: 2] = NULL  # inner nodes that were in use before
        work.mark[:], work.due[:], work.first[:] = 0, 0, NULL
        for name in ("pending", "due", "guarded"):
            work.state[name][0] = 0
        self._compute_from_heights(2 * np.arange(heights.size, dtype=np.int32) + 1, heights)
        if not (self.aim.is_stable or self.scheme.linkage.strongly_reducible):  # then it need not be homogeneous
            kernels.shared.worklist.push_bottom_up(self.tree, self.work, self.nodes())

    def adopt(self, other: LiveTree, leaves: NDArray[np.int32], incoming: Incoming) -> None:
        """Copy the shape of another tree, whose `leaves` are the points, into this new one.

        Its inner nodes are not computed yet.
        """
        self._lay_out(other.capacity)
        used = other.n_used
        for name in SHAPE:
            getattr(self.tree, name)[:used] = getattr(other.tree, name)[:used]
        self.tree.state[:] = other.tree.state
        self.work.state["checks"][0] = other.work.state["checks"][0]
        for name in ("moves", "grafts"):
            self.work.state[name] = self.work.state[f"{name}_before"] = other.work.state[name]
        for name in ("searches", "inserted", "ordered_at"):
            self.work.state[name] = other.work.state[name]
        self.fill(leaves, incoming, other.tree.size[leaves], other.tree.birth[leaves], leaves)
        self.adapt_width(self.n_points)

    def _begin(self, tree: MeanTree | PairTree, work: Worklist) -> None:
        """Set new columns, and copy from the old ones, if any, what every tree has."""
        if hasattr(self, "tree"):
            used = self.n_used
            self._note_live_weights()
            tree.state[:], work.state[:] = self.tree.state, self.work.state
            for name in SHAPE:
                getattr(tree, name)[:used] = getattr(self.tree, name)[:used]
            work.stack[: self.n_pending] = self.work.stack[: self.n_pending]
            for name in OF_WORK:
                getattr(work, name)[:used] = getattr(self.work, name)[:used]
            work.first[:] = self.work.first
        else:
            work.state["goal"][0] = STABLE if self.aim.is_stable else HOMOGENEOUS
        rows = tree.parent.size // 2
        work.state["quota"][0] = QUOTA_PER_POINT * rows + SMALLEST_QUOTA
        has_search = hasattr(self, "search") and self.search.fresh.size > 0
        search = self._new_search(tree) if self.aim.is_stable or has_search else new_search(0, 1, self._search_dtype)
        # Only once all are allocated.
        self.tree, self.work, self.search, self.quick = tree, work, search, QuickColumns.of(tree, work)


def contiguous(array: Any) -> NDArray[Any]:
    """An array as kernels take it: writeable and contiguous."""
    return array if array.flags.carray else array.copy()
