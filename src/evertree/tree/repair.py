"""Exact edits: after each, the tree is the batch tree again (`evertree.kernels.shared.repair`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evertree import kernels
from evertree.kernels.columns import NULL

if TYPE_CHECKING:
    from evertree.tree.base import LiveTree

#: Clusters that may be active at the same time.
N_ROWS = 256

#: Clusters that may go elsewhere and are compared with all others; at most 63.
N_PIECES = 32


def merge_order(live: LiveTree) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """The inner nodes in the order of their merges, children first; and, by node, heights made monotone."""
    nodes = live.nodes()
    inner = nodes[np.flatnonzero(nodes & 1)]
    level = np.zeros(live.tree.parent.size)
    level[inner] = live.tree.height[inner]
    kernels.shared.heights.make_monotone(live.tree, nodes, level)
    return np.ascontiguousarray(inner[np.argsort(level[inner], kind="stable")]), level


def least_slack(live: LiveTree) -> NDArray[np.float64]:
    """The slack of a batch tree of which nothing else is known: no cluster is closer than the next merge."""
    order, level = merge_order(live)
    slack = np.full(level.size, np.inf)
    for children in (live.tree.left[order], live.tree.right[order]):
        slack[children] = level[order]
    return slack


def repair_points(live: LiveTree, slack: NDArray[np.float64], top: Any, leaves: NDArray[np.int32], comes: bool) -> bool:
    """Insert filled leaves into a batch tree, or remove leaves of it, one by one; `slack` is changed with the tree.

    False if that was not possible: then the tree has to be clustered.
    """
    run = new_run(live, slack, top)
    for leaf in leaves.tolist():
        order, level = merge_order(live)
        run = run._replace(order=order, level=level)
        run.state[:] = 0
        run.state["point"], run.state["comes"] = leaf, comes
        if kernels.shared.repair.repair(live.tree, live.tag, run, live.n_used):
            return False
    return True


def new_run(live: LiveTree, slack: NDArray[np.float64], top: Any) -> Any:
    """Room for a run of batch clustering."""
    size = live.tree.parent.size

    def ints(count: int = size) -> NDArray[np.int32]:
        return np.empty(count, np.int32)

    return kernels.shared.repair.Repair(
        parent=ints(),
        left=ints(),
        right=ints(),
        size=np.empty(size),
        height=np.empty(size),
        level=np.empty(size),
        error=np.empty(size),
        center=ints(),
        rank=ints(),
        before=np.empty(size),
        slot=ints(),
        n_points=ints(),
        had=np.empty(size, np.int64),
        near=np.empty(size),
        slack=slack,
        is_lost=np.empty(size, np.uint8),
        is_new=np.empty(size, np.uint8),
        count=ints(),
        above=ints(),
        has=np.empty(size, np.int64),
        place=ints(),
        row=ints(),
        pool=ints(),
        alive=ints(),
        parts=ints(),
        others=ints(),
        late=ints(),
        active=ints(N_ROWS),
        event=np.empty(size),
        event_node=ints(),
        order=ints(0),
        value=np.empty((N_ROWS, size)),
        is_exact=np.empty((N_ROWS, size), np.uint8),
        piece_size=np.empty(N_PIECES),
        piece_value=np.empty((N_PIECES, size)),
        top=top,
        state=np.zeros(1, kernels.shared.repair.REPAIR_STATE),
    )


def new_top(size: int, n_slots: int) -> Any:
    """No values of pairs of clusters."""
    return kernels.shared.repair.Top(
        slot=np.full(size, NULL, np.int32),
        node=np.full(n_slots, NULL, np.int32),
        value=np.zeros((n_slots, n_slots)),
        error=np.full((n_slots, n_slots), np.inf),
    )
