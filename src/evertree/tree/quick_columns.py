"""`QuickColumns`: single entries of columns and counters. NumPy would make an object of its own for each."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from evertree.kernels.columns import NULL, TREE_STATE, WORK_STATE, Worklist

# Where counters are in `QuickColumns.state` and `QuickColumns.work`.
ROOT, N_POINTS, *TOPS = ((TREE_STATE.names or ()).index(name) for name in ("root", "n_points", "leaf_top", "inner_top"))
INSERTED, GRAFTS, GRAFTS_BEFORE, ORDERED_AT, GOAL = (
    (WORK_STATE.names or ()).index(name) for name in ("inserted", "grafts", "grafts_before", "ordered_at", "goal")
)


class QuickColumns(NamedTuple):
    """The columns and counters of a tree, as they are at any time."""

    parent: Any  # all are memoryviews
    left: Any
    right: Any
    height: Any
    size: Any
    state: Any  # of the tree
    work: Any  # the state of the worklist

    @classmethod
    def of(cls, tree: Any, work: Worklist) -> QuickColumns:
        """Those of a tree."""
        columns: list[Any] = [tree.parent, tree.left, tree.right, tree.height, tree.size]
        columns += [tree.state.view(np.int64), work.state.view(np.int64)]
        return cls(*(memoryview(column) for column in columns))

    def has(self, u: int) -> bool:
        """Whether `u` is a node of the tree, or a leaf about to become one."""
        return 0 <= u >> 1 < self.state[TOPS[u & 1]] and self.parent[u] >= NULL
