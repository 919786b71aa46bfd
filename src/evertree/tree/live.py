"""`LiveTree`: the columns of one tree with room to grow, and the edits that keep it homogeneous, by node."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertree import kernels
from evertree.columns import (
    CHECKS,
    GUARDED,
    INNER_TOP,
    LEAF_TOP,
    MOVES,
    N_POINTS,
    NODE,
    NULL,
    PENDING,
    QUOTA,
    ROOT,
    UNLIMITED,
    Tree,
    Worklist,
    new_columns,
)
from evertree.errors import DimensionError, MagnitudeError
from evertree.linkages import LARGEST, Average, Scheme, Ward

#: Nodes are numbered in 32 bits, two for each point.
MOST_POINTS = int(np.iinfo(np.int32).max) // 2

#: A total weight up to this, divided by the number of columns, overflows with no value that is accepted.
SAFE_WEIGHT = float(np.finfo(np.float64).max) / 4 / LARGEST**2

#: Moves before the guard widens the tolerance: this many for each point, and some more for small trees.
QUOTA_PER_POINT = 10_000
SMALLEST_QUOTA = 100_000


class LiveTree:
    """A tree over points, its worklist, and the scheme that it is homogeneous for.

    Nodes are numbers, and nothing here knows of keys. What callers pass has been checked.

    Parameters
    ----------
    scheme
        The linkage on its metric.
    n_columns, dtype
        Of the points.
    """

    def __init__(self, scheme: Scheme, n_columns: int, dtype: np.dtype[Any]) -> None:
        self.scheme = scheme
        self.tree, self.work = new_columns(0, n_columns, dtype)
        self.work.state[QUOTA] = _quota(self.tree)
        #: The points as they were given, by row, where they differ from the coordinates in ``tree.mean``.
        self.kept: NDArray[Any] | None = _no_points(self.tree) if scheme.changes_points else None
        #: The largest coordinate of the points, or an earlier one; None as long as it does not matter.
        self._largest: float | None = None

    @classmethod
    def of_columns(cls, scheme: Scheme, tree: Tree, work: Worklist, kept: NDArray[Any] | None) -> LiveTree:
        """A tree with copies of the given columns, as far as they are in use."""
        live = cls(scheme, tree.mean.shape[1], tree.mean.dtype)
        live._lay_out(tree.parent.size // 2, tree, work, kept)
        return live

    @property
    def n_points(self) -> int:
        """How many points hang in the tree."""
        return int(self.tree.state[N_POINTS])

    @property
    def n_columns(self) -> int:
        """How many coordinates a point has; 0 before the first points."""
        return int(self.tree.mean.shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the coordinates."""
        return self.tree.mean.dtype

    @property
    def root(self) -> int:
        """The root, or NULL."""
        return int(self.tree.state[ROOT])

    @property
    def capacity(self) -> int:
        """How many points there is room for."""
        return self.tree.parent.size // 2

    @property
    def tag(self) -> Ward | Average:
        """What kernels know of the linkage."""
        return self.scheme.tag(self.dtype)

    @property
    def n_pending(self) -> int:
        """How many checks may have changed: with none, the tree is homogeneous."""
        return int(self.work.state[PENDING])

    @property
    def n_checks(self) -> int:
        """How many checks have been made so far."""
        return int(self.work.state[CHECKS])

    @property
    def n_moves(self) -> int:
        """How many moves have been made so far."""
        return int(self.work.state[MOVES])

    @property
    def n_guarded(self) -> int:
        """How often the guard against endless moves has had to act since all nodes were last noted for a check."""
        return int(self.work.state[GUARDED])

    @property
    def n_used(self) -> int:
        """Rows of the columns that are, or were, in use."""
        return _n_used(self.tree)

    @property
    def n_bytes(self) -> int:
        """Memory of the columns, as far as they are in use."""
        row = NODE.itemsize + self.work.stack.itemsize + self.tree.mean[:1].nbytes
        kept = 0 if self.kept is None else self.kept[:1].nbytes // 2
        return self.n_used * (row + kept)

    def points(self, leaves: NDArray[np.int32]) -> NDArray[Any]:
        """The points of `leaves` as they were given, bit for bit."""
        if self.kept is not None:
            return self.kept[leaves >> 1]
        return self.tree.mean[leaves]

    def nodes(self, root: int | None = None) -> NDArray[np.int32]:
        """All nodes, or those below `root` and itself, children first. O(their number)."""
        top = self.root if root is None else root
        nodes = np.empty(max(2 * self.n_points - 1, 0), np.int32)
        if top == NULL:
            return nodes
        return nodes[: kernels.traverse.postorder(self.tree, top, nodes)]

    def leaves(self, root: int | None = None) -> NDArray[np.int32]:
        """The leaves among `nodes`, in the same order."""
        nodes = self.nodes(root)
        return nodes[nodes % 2 == 0]

    def is_in_use(self, u: int) -> bool:
        """Whether `u` is a node of the tree, or a leaf that is about to be."""
        top = LEAF_TOP if u % 2 == 0 else INNER_TOP
        return bool(0 <= u >> 1 < self.tree.state[top] and self.tree.parent[u] >= NULL)

    def __reduce__(self) -> tuple[Any, ...]:
        # A pickled view would come back as an array of its own, of another layout than kernels are compiled for.
        return LiveTree.of_columns, (self.scheme, self.tree, self.work, self.kept)

    def copy(self) -> LiveTree:
        """A tree that shares nothing with this one."""
        return LiveTree.of_columns(self.scheme, self.tree, self.work, self.kept)

    def reserve(self, n_more: int) -> None:
        """Make room for `n_more` points. O(1) amortised. If memory does not suffice, nothing has changed."""
        needed = self.n_points + n_more
        if needed <= self.capacity:
            return
        if needed > MOST_POINTS:
            raise DimensionError(f"a hierarchy holds at most {MOST_POINTS:,} points; this would make {needed:,}")
        rows = min(max(needed, self.capacity + self.capacity // 2), MOST_POINTS)
        self._lay_out(rows, self.tree, self.work, self.kept)

    def _lay_out(self, rows: int, tree: Tree, work: Worklist, kept: NDArray[Any] | None) -> None:
        """Take new columns with room for so many points, and copy what is in use of the given ones into them."""
        new_tree, new_work = new_columns(2 * rows, tree.mean.shape[1], tree.mean.dtype)
        new_kept = None if kept is None else _no_points(new_tree)
        new_tree.state[:], new_work.state[:] = tree.state, work.state
        new_work.state[QUOTA] = _quota(new_tree)
        used = _n_used(tree)
        old_columns: list[NDArray[Any]] = [*tree[:-1], *work[:-1]]
        columns: list[NDArray[Any]] = [*new_tree[:-1], *new_work[:-1]]
        for old, new in zip(old_columns, columns, strict=True):
            new[:used] = old[:used]
        if kept is not None and new_kept is not None:
            new_kept[: used // 2] = kept[: used // 2]
        self.tree, self.work, self.kept = new_tree, new_work, new_kept

    def check_range(self, coordinates: NDArray[Any], weights: NDArray[np.float64]) -> None:
        """Refuse points with which a linkage value could overflow."""
        total = float(weights.sum()) + (0.0 if self.root == NULL else float(self.tree.size[self.root]))
        if total * coordinates.shape[1] <= SAFE_WEIGHT:
            return
        if self._largest is None:
            self._largest = _largest_of(self.tree.mean[self.leaves()])
        self._largest = _checked_largest(total, max(self._largest, _largest_of(coordinates)), coordinates.shape[1])

    def warm_up(self) -> None:
        """Compile, or load from disk, what refinement needs, so that a deadline set later can be kept."""
        self.homogenise(0, 0)

    def add_leaves(
        self,
        points: NDArray[Any],
        coordinates: NDArray[Any],
        weights: NDArray[np.float64],
        births: NDArray[np.int64],
    ) -> NDArray[np.int32]:
        """New leaves for points, for which there is room. They hang nowhere yet."""
        leaves = np.empty(len(points), np.int32)
        kernels.topology.allocate_leaves(self.tree, leaves)
        try:
            self.fill(leaves, points, coordinates, weights, births)
        except BaseException:
            self.release(leaves)
            raise
        return leaves

    def fill(
        self,
        leaves: NDArray[np.int32],
        points: NDArray[Any],
        coordinates: NDArray[Any],
        weights: NDArray[np.float64],
        births: NDArray[np.int64],
    ) -> None:
        """Write the rows of `leaves`."""
        self.tree.mean[leaves] = coordinates
        self.tree.size[leaves] = weights
        self.tree.variance[leaves] = 0.0
        self.tree.birth[leaves] = births
        if self.kept is not None:
            self.kept[leaves >> 1] = points

    def insert(self, leaves: NDArray[np.int32]) -> None:
        """Hang filled leaves into the tree one by one (`tab.Insert`, then `tab.OHC`)."""
        kernels.insert.insert_leaves(self.tree, self.work, self.tag, leaves)

    def detach(self, leaves: NDArray[np.int32]) -> None:
        """Take leaves out of the tree, and make it homogeneous again. They stay allocated."""
        kernels.remove.detach_leaves(self.tree, self.work, leaves, np.empty_like(leaves))
        self.homogenise()

    def release(self, leaves: NDArray[np.int32]) -> None:
        """Give detached leaves back, for other points."""
        kernels.topology.release_leaves(self.tree, leaves)

    def homogenise(self, max_checks: int = UNLIMITED, max_moves: int = UNLIMITED) -> None:
        """Refine (`tab.OHC`) within limits."""
        kernels.homogenise.homogenise(self.tree, self.work, self.tag, max_checks, max_moves)

    def rebuild(self, nodes: NDArray[np.int32] | None = None) -> None:
        """Compute all statistics from the leaves in one pass, and note every node for a check. O(n m)."""
        order = self.nodes() if nodes is None else nodes
        self.work.state[GUARDED] = 0
        kernels.statistics.merge_all(self.tree, order)
        kernels.worklist.push_bottom_up(self.work, order)
        self.warm_up()

    def set_scheme(self, scheme: Scheme) -> None:
        """Keep the tree, and compute its statistics for another linkage or metric. O(n m)."""
        nodes = self.nodes()
        leaves = nodes[nodes % 2 == 0]
        points = self.points(leaves)
        coordinates = scheme.coordinates(points)
        _checked_largest(float(self.tree.size[leaves].sum()), _largest_of(coordinates), self.n_columns)
        kept = _no_points(self.tree) if scheme.changes_points else None
        if kept is not None:
            kept[leaves >> 1] = points
        # Nothing has changed so far, and from here on nothing is refused.
        self.scheme, self.kept, self._largest = scheme, kept, None
        self.tree.mean[leaves] = coordinates
        self.rebuild(nodes)


def _no_points(tree: Tree) -> NDArray[Any]:
    """Room for as many points as the tree has room for leaves."""
    return np.empty((tree.parent.size // 2, tree.mean.shape[1]), tree.mean.dtype)


def _quota(tree: Tree) -> int:
    return QUOTA_PER_POINT * (tree.parent.size // 2) + SMALLEST_QUOTA


def _n_used(tree: Tree) -> int:
    return 2 * max(int(tree.state[LEAF_TOP]), int(tree.state[INNER_TOP]))


def _largest_of(coordinates: NDArray[Any]) -> float:
    return float(np.abs(coordinates).max(initial=0.0))


def _checked_largest(total_weight: float, largest: float, n_columns: int) -> float:
    """The largest coordinate, unless the total weight times its square overflows."""
    limit = np.sqrt(np.finfo(np.float64).max / 4 / n_columns / total_weight) if total_weight else np.inf
    if largest > limit:
        raise MagnitudeError(
            f"a total weight of {total_weight:.3g} times the squares of values up to {largest:.3g} overflows: "
            f"scale X to at most {limit:.3g}, or sample_weight down"
        )
    return largest
