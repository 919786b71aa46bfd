"""The columns of a tree: what kernels see.

A node is a number, and its row in each column says all there is to know about it. Leaves have even numbers and inner
nodes odd ones (``leaf = 2 * row``, ``inner = 2 * row + 1``), so that what only points have can be kept in a column half
as long, at ``row = leaf >> 1``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

#: More checks or moves than anything takes.
UNLIMITED = 1 << 62

#: No node: the parent of the root, the children of a leaf.
NULL = -1

#: ``parent`` of a node that is on a list of free nodes is ``FREE - (next free node + 1)``: below NULL.
FREE = -2

# Entries of `Tree.state`.
ROOT = 0  # the root, or NULL
N_POINTS = 1  # how many leaves hang in the tree
LEAF_TOP = 2  # leaves with this row or a higher one were never used
INNER_TOP = 3  # the same for inner nodes
FREE_LEAF = 4  # a leaf to use again, or NULL
FREE_INNER = 5  # an inner node to use again, or NULL
N_TREE_STATE = 6

# Entries of `Worklist.state`.
PENDING = 0  # how many nodes wait
CHECKS = 1  # checks made so far
MOVES = 2  # moves made so far
MOVES_BEFORE = 3  # as many had been made when the list was last empty
QUOTA = 4  # after this many moves since then the guard makes the tolerance ten times wider, and so on
GUARDED = 5  # how often the list became empty only because the guard had widened the tolerance
N_WORK_STATE = 6

# Bits of `Worklist.mark`.
QUEUED = 1  # the node is on the stack
STALE = 2  # its statistics wait to be computed again
WAITS = 4  # one for each stale child: two bits


#: The small columns of a node stand side by side in memory: large trees are slow by cache misses, and so a visit to a
#: node costs one for all of them. Each column is a view.
NODE = np.dtype(
    {
        "names": ["size", "variance", "birth", "parent", "left", "right", "mark"],
        "formats": [np.float64, np.float64, np.int64, np.int32, np.int32, np.int32, np.uint8],
        "offsets": [0, 8, 16, 24, 28, 32, 36],
        "itemsize": 40,
    }
)


class Tree(NamedTuple):
    """A binary hierarchy with the sufficient statistics of each node (`eq.SufficientStatisticRecursion`)."""

    parent: NDArray[np.int32]  # (capacity,)
    left: NDArray[np.int32]  # (capacity,)
    right: NDArray[np.int32]  # (capacity,)
    birth: NDArray[np.int64]  # (capacity,) smallest insertion number among the members: it breaks ties
    size: NDArray[np.float64]  # (capacity,) sum of the members' weights
    variance: NDArray[np.float64]  # (capacity,) mean squared distance from the mean (`eq.variance`)
    mean: NDArray[Any]  # (capacity, n_columns) in the type of the data (`eq.centroid`)
    state: NDArray[np.int64]  # (N_TREE_STATE,)


class Worklist(NamedTuple):
    """The nodes whose check may have changed since it was last made. The last to come is the first to go."""

    stack: NDArray[np.int32]  # (capacity,) each node stands in it at most once
    mark: NDArray[np.uint8]  # (capacity,) bits QUEUED, STALE and WAITS
    state: NDArray[np.int64]  # (N_WORK_STATE,)


def new_columns(capacity: int, n_columns: int, dtype: np.dtype[Any]) -> tuple[Tree, Worklist]:
    """An empty tree with room for so many nodes, and its worklist.

    There is always room for two: a view of less counts as contiguous, and kernels would be compiled for it separately.
    """
    capacity = max(capacity, 2)
    node = np.zeros(capacity, NODE)
    tree_state = np.zeros(N_TREE_STATE, np.int64)
    tree_state[[ROOT, FREE_LEAF, FREE_INNER]] = NULL
    tree = Tree(
        parent=node["parent"],
        left=node["left"],
        right=node["right"],
        birth=node["birth"],
        size=node["size"],
        variance=node["variance"],
        mean=np.empty((capacity, n_columns), dtype),
        state=tree_state,
    )
    return tree, Worklist(np.empty(capacity, np.int32), node["mark"], np.zeros(N_WORK_STATE, np.int64))
