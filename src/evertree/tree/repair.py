"""Exact edits: after each, the tree is the batch tree again (`evertree.kernels.repair`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evertree import kernels
from evertree.kernels.columns import NULL, UNLIMITED

if TYPE_CHECKING:
    from evertree.tree.base import LiveTree

#: Points that are inserted or removed by repairs; for more of them it is faster to cluster all points.
MOST_REPAIRS = 40

#: Clusters that may be active at the same time.
N_ROWS = 256

#: Clusters that may go elsewhere and are compared with all others; at most 63.
N_PIECES = 32

#: Pairs are looked at this many times faster than clustered.
_LOOKS = 4

#: Values are kept between all clusters from which the last merges are made: those of a tenth of the points, but of no
#: fewer, and of no more, than these numbers; 81 MB at most.
SHARE_OF_TOP, SMALLEST_TOP, LARGEST_TOP = 10, 64, 750


@dataclass
class Exact:
    """What is known of a tree that is the batch tree.

    Attributes
    ----------
    slack : array
        For each node, a lower bound on the linkage between it and any cluster that is alive just before it merges,
        other than its sibling.
    top : Top
        Values between the clusters that merge last.
    n_changes : int
        The number of moves and grafts that had been made: if there are more now, it is another tree.
    order : array or None
        Its inner nodes, as the last edit merged them; not in copies.
    run : Repair or None
        Room for the next edit; not in copies.
    """

    slack: NDArray[np.float64]
    top: Any
    n_changes: int
    order: NDArray[np.int32] | None = field(default=None, repr=False)
    run: Any = field(default=None, repr=False)

    @property
    def is_rough(self) -> bool:
        """Whether nothing is known but that it is the batch tree."""
        return bool(self.top.level[0] == np.inf)

    def copy(self) -> Exact:
        """One that shares nothing with this one."""
        return Exact(self.slack.copy(), type(self.top)(*(column.copy() for column in self.top)), self.n_changes)

    def with_room(self, size: int, n_slots: int = 0) -> Exact:
        """The same for a tree with at least this many rows; with this many slots, if they are much more than now."""
        more = size - self.slack.size
        has_slots = n_slots < 2 * self.top.node.size or n_slots == 0
        if more <= 0 and has_slots:
            return self
        more = max(more, 0)
        top = self.top._replace(slot=np.concatenate([self.top.slot, np.full(more, NULL, np.int32)]))
        if not has_slots:
            old, top = top, new_top(top.slot.size, n_slots, self.is_rough)._replace(slot=top.slot)
            some = slice(old.node.size)
            top.node[some], top.value[some, some], top.error[some, some] = old.node, old.value, old.error
        return Exact(np.concatenate([self.slack, np.full(more, np.inf)]), top, self.n_changes)


def merge_order(live: LiveTree, kept: NDArray[np.int32] | None = None) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """The inner nodes in the order of their merges, children first; and, by node, heights made monotone.

    The order that the last edit has left is taken if no two heights in it are equal.
    """
    if kept is not None:
        level = np.zeros(live.tree.parent.size)
        if kernels.repair.repair.find_levels(live.tree, kept, level):
            return kept, level
    nodes = live.nodes()
    inner = nodes[np.flatnonzero(nodes & 1)]
    level = np.zeros(live.tree.parent.size)
    level[inner] = live.tree.height[inner]
    kernels.shared.heights.make_monotone(live.tree, nodes, level)
    return np.ascontiguousarray(inner[np.argsort(level[inner], kind="stable")]), level


def trimmed(live: LiveTree) -> Exact | None:
    """What is known of a batch tree, with values between the last clusters only: for files, which are to be small.

    Pickles are, too; and a tree that goes on in memory, if another one is to make the same edits to the last bit.
    """
    exact = live.exact
    if exact is None or not live.is_exact or exact.top.node.size <= kernels.repair.state.SLOTS_EACH * SMALLEST_TOP:
        return exact if live.is_exact else None
    order, _ = merge_order(live, exact.order)
    last = order[-(SMALLEST_TOP - 1) :]
    nodes = np.concatenate([live.tree.left[last], live.tree.right[last]])
    nodes = nodes[exact.top.slot[nodes] != NULL]
    slots, some = exact.top.slot[nodes], np.arange(nodes.size)
    top = new_top(exact.slack.size, kernels.repair.state.SLOTS_EACH * SMALLEST_TOP, exact.is_rough)
    top.node[some], top.slot[nodes] = nodes, some
    for name in ("value", "error"):
        getattr(top, name)[: nodes.size, : nodes.size] = getattr(exact.top, name)[np.ix_(slots, slots)]
    return Exact(exact.slack, top, exact.n_changes)


def n_slots_of(live: LiveTree) -> int:
    """How many clusters have slots; none where values follow from means."""
    if live.scheme.has_statistics:
        return 0
    return kernels.repair.state.SLOTS_EACH * min(max(live.n_points // SHARE_OF_TOP, SMALLEST_TOP), LARGEST_TOP)


def new_exact(live: LiveTree) -> Exact:
    """A batch tree of which nothing else is known: no cluster is closer to another than the next merge.

    What takes longer to find is found when it is first edited.
    """
    order, level = merge_order(live)
    slack = np.full(level.size, np.inf)
    for children in (live.tree.left[order], live.tree.right[order]):
        slack[children] = level[order]
    return Exact(slack, new_top(slack.size, n_slots_of(live), is_rough=True), live.n_changes)


def new_top(size: int, n_slots: int, is_rough: bool = False) -> Any:
    """No values of pairs of clusters."""
    return kernels.repair.state.Top(
        level=np.full(1, np.inf if is_rough else -np.inf),
        slot=np.full(size, NULL, np.int32),
        node=np.full(n_slots, NULL, np.int32),
        value=np.zeros((n_slots, n_slots)),
        error=np.full((n_slots, n_slots), np.inf),
    )


def edit(live: LiveTree, leaves: NDArray[np.int32], comes: bool) -> bool:
    """Insert filled leaves into a batch tree, or take leaves out of it, one by one.

    False, and nothing has changed, if it is none, or there are so many that they are better clustered.
    """
    if not live.is_exact or not live.is_to_be_exact or leaves.size > MOST_REPAIRS:
        return False
    assert live.exact is not None
    exact = live.exact = live.exact.with_room(live.tree.parent.size, n_slots_of(live))
    if exact.is_rough:
        from evertree.tree.batch import find_slack

        exact.top.level[0] = -np.inf
        find_slack(live, exact)
    if exact.run is None:
        exact.run = _new_run(live, exact)
    for k, leaf in enumerate(leaves.tolist()):
        order, level = merge_order(live, exact.order)
        run = exact.run._replace(order=order, level=level)
        run.state[:] = 0
        run.state["point"], run.state["comes"] = leaf, comes
        run.state["patience"], run.state["most_looked_at"] = _patience(live)
        if kernels.repair.repair.repair(live.tree, live.tag, run, live.n_used):
            _recover(live, leaves[k + 1 :], comes)
            return True
        exact.order = run.made[: run.state["n_made"][0]].copy()
    return True


def _patience(live: LiveTree) -> tuple[int, int]:
    """How many pairs of points may be compared, by a guess ahead and as counted.

    Where it is faster to cluster all, no more than that would take.
    """
    from evertree.tree.batch import may_cluster

    if live.scheme.has_statistics or not may_cluster(live, live.n_points + 1):
        return UNLIMITED, UNLIMITED
    most = live.n_points**2
    return most, int(live.tree.pairs.state["looked_at"][0]) + _LOOKS * most


def _recover(live: LiveTree, others: NDArray[np.int32], comes: bool) -> None:
    """Cluster all points after an edit that took too long, and insert or remove the others as well."""
    from evertree.tree.batch import cluster, may_cluster

    live.exact = None
    leaves = live.leaves()
    leaves = np.concatenate([leaves, others]) if comes else leaves[~np.isin(leaves, others)]
    if may_cluster(live, leaves.size):
        live.tree.parent[others] = NULL
        cluster(live, leaves)
        return
    live.rebuild()
    live.homogenise()
    if comes:
        live.insert(others)
    else:
        live.detach(others)


def _new_run(live: LiveTree, exact: Exact) -> Any:
    """Room for a run of batch clustering."""
    size = live.tree.parent.size
    n_rows, n_pieces = (N_ROWS, 1 if live.scheme.has_statistics else N_PIECES)
    n_referred = size if live.scheme.linkage.has_centers else 0

    def ints(count: int = size) -> NDArray[np.int32]:
        return np.empty(count, np.int32)

    return kernels.repair.state.Repair(
        parent=ints(),
        left=ints(),
        right=ints(),
        size=np.empty(size),
        height=np.empty(size),
        level=np.empty(size),
        error=np.empty(size),
        rank=ints(),
        death=np.empty(size),
        before=np.empty(size),
        slot=ints(),
        n_points=ints(),
        had=np.empty(size, np.int64),
        near=np.empty(size),
        slack=exact.slack,
        is_lost=np.empty(size, np.uint8),
        is_followed=np.empty(size, np.uint8),
        is_new=np.empty(size, np.uint8),
        n_old=ints(),
        n_common=ints(),
        base=ints(),
        apart_size=np.empty(2),
        apart_value=np.empty((2, size)),
        n_leaves=ints(),
        n_members=ints(),
        above=ints(),
        has=np.empty(size, np.int64),
        place=ints(),
        row=ints(),
        pool=ints(),
        alive=ints(),
        parts=ints(),
        others=ints(),
        waiting=ints(2 * size),
        late=ints(),
        active=ints(n_rows),
        nearest=ints(n_rows),
        close=np.empty((n_rows, kernels.repair.state.N_CLOSE), np.int32),
        n_close=ints(n_rows),
        beyond=np.empty(n_rows),
        event=np.empty(size),
        event_node=ints(),
        order=ints(0),
        made=ints(),
        value=np.empty((n_rows, size)),
        is_exact=np.empty((n_rows, size), np.uint8),
        reference=ints(n_rows),
        reach=np.empty(n_rows),
        low=np.empty((n_rows, n_referred)),
        high=np.empty((n_rows, n_referred)),
        piece_size=np.empty(n_pieces),
        piece_value=np.empty((n_pieces, size)),
        top=exact.top,
        state=np.zeros(1, kernels.repair.state.REPAIR_STATE),
    )
