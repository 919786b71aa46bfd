"""The anytime procedure with its moves in a given order."""

from __future__ import annotations

import numpy as np

from evertree import kernels
from evertree.kernels.columns import NULL, UNLIMITED
from evertree.tree.base import LiveTree

#: The orders in which nodes that may violate homogeneity can be checked: their numbers in the kernel, in words.
ORDERS = ("last in first out", "first in first out", "at random", "bottom up", "largest violation")


def homogenise_in_order(live: LiveTree, order: str, rng: np.random.Generator, max_moves: int = UNLIMITED) -> None:
    """Make the moves of the paper in one of `ORDERS` until the tree is homogeneous, or so many were made.

    The library's own order is that of `LiveTree.homogenise`, the last in first out.
    """
    live.never_pause()
    capacity = live.tree.parent.size
    queue = kernels.ordered.Queue(
        node=np.empty(capacity, np.int32),
        place=np.full(capacity, NULL, np.int32),
        key=np.empty(capacity),
        state=np.zeros(kernels.ordered.N_QUEUE_STATE, np.int64),
        random=rng.integers(1, 2_000_000_000, size=2),
    )
    kernels.ordered.homogenise_in_order(live.tree, live.work, live.tag, queue, ORDERS.index(order), max_moves)
