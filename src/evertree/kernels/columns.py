"""The columns of a tree: what kernels see.

A node is a number, and its rows in the columns hold all that is known about it. Leaves have even numbers and inner
nodes odd ones (``leaf = 2 * row``, ``inner = 2 * row + 1``), so that data of points only fits in a column half as long,
at ``row = leaf >> 1``.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evertree.kernels.signatures import (
    Array,
    ByteColumn,
    Bytes,
    DataMatrix,
    FloatColumn,
    FloatMatrix,
    Floats,
    FunctionAddress,
    IntColumn,
    IntMatrix,
    Ints,
    LongColumn,
    OpaqueMatrix,
    ShortFloatColumn,
    ShortFloatMatrix,
    ShortIntColumn,
    described,
)

#: No limit on checks or moves.
UNLIMITED = 1 << 62

#: No node: the parent of the root, the children of a leaf.
NULL = -1

#: The label of a point that is in no cluster.
NOISE = -1

#: ``parent`` of a node that is on a list of free nodes is ``FREE - (next free node + 1)``: below NULL.
FREE = -2


def counters(*names: str) -> np.dtype[Any]:
    """The dtype of a state: named integers, in an array with one record, so that kernels can change them."""
    return np.dtype([(name, np.int64) for name in names])


#: ``tree.state["root"][0]`` is the root of a tree, and so on.
TREE_STATE = counters(
    "root",  # or NULL
    "n_points",  # number of leaves in the tree
    "leaf_top",  # leaves with this row or a higher one were never used
    "inner_top",  # the same for inner nodes
    "free_leaf",  # a leaf to use again, or NULL
    "free_inner",  # an inner node to use again, or NULL
)

#: Of `Worklist.state`.
WORK_STATE = counters(
    "pending",  # number of nodes waiting
    "checks",  # checks made so far
    "moves",  # moves made so far
    "moves_before",  # moves made when the list was last empty
    "quota",  # after this many moves since then the guard makes the tolerance ten times wider, and so on
    "guarded",  # how often the list emptied only because the guard had widened the tolerance
    "due",  # number of nodes due for a search
    "lowest",  # no node is due on a lower level: see `evertree.kernels.shared.due_queue`
    "searches",  # searches for a blocking pair made so far
    "grafts",  # grafts made so far
    "grafts_before",  # grafts made when no node was last due
    "goal",  # which moves are made: one of the following
    "inserted",  # points inserted so far
    "ordered_at",  # points inserted plus grafts made when nodes were last numbered in tree order
    "other_steps",  # of refinement, beside checks, since the tree is in memory: no file has them
)

# Values of ``goal``.
HOMOGENEOUS = 0  # those of the paper, in any order
STABLE = 1  # those that grafts do not undo
STABLE_FROM_BELOW = 2  # the same, the lowest first

# Values of `Worklist.due`, if it is not 0.
DUE = 1  # a blocking pair may have arisen with the node since it was searched
INSIDE = 2  # the same, but it has been searched within a piece of the tree

# Bits of `Worklist.mark`.
QUEUED = 1  # the node is on the stack
STALE = 2  # its statistics must be recomputed
WAITS = 4  # one for each stale child: two bits


#: Of `Pairs.state`.
PAIRS_STATE = counters(
    "n_pivots",  # number of pivots in use
    "triangle",  # what obeys the triangle inequality
    "evaluated",  # dissimilarities evaluated so far
    "looked_at",  # pairs considered so far, evaluated or not
    "pause_at",  # comparisons of clusters pause when `looked_at` reaches this; UNLIMITED for never
    "paused_node",  # the node at which a comparison has paused, or NULL
    "paused_side",  # the child being compared, 0 or 1; or NODE_ITSELF if the node is being measured
    "paused_row",  # the row at which it resumes
    "unbounded",  # number of points to measure without bounds, because bounds did not help
    "evaluated_before",  # dissimilarities evaluated when the current point had been measured
    "measured",  # the node whose linkage to every other is in `lower`, or NULL
)

#: A value of ``paused_side``.
NODE_ITSELF = 2

# What obeys the triangle inequality: nothing known, the dissimilarity, or its square root.
NOTHING, ITSELF, SQUARE_ROOT = 0, 1, 2

# Bits of `PairTree.exact`.
LEFT_IS_EXACT = 1
RIGHT_IS_EXACT = 2

#: Points whose distances to all others are stored, to bound dissimilarities without evaluating them.
MOST_PIVOTS = 5

#: Dissimilarities evaluated per call, and rows compared in turn with the same block.
BLOCK = 64
GROUP = 16


#: The small columns of a node are adjacent in memory: large trees are slow because of cache misses, and this way a
#: visit to a node costs only one. Each column is a view.
MEAN_NODE = np.dtype(
    {
        "names": [
            *("size", "variance", "height", "radius", "birth"),
            *("parent", "left", "right", "earlier", "later", "level", "mark", "due"),
        ],
        "formats": [*[np.float64] * 4, np.int64, *[np.int32] * 5, np.int16, np.uint8, np.uint8],
        "offsets": [0, 8, 16, 24, 32, 40, 44, 48, 52, 56, 60, 62, 63],
        "itemsize": 64,
    }
)

PAIR_NODE = np.dtype(
    {
        "names": [
            *("size", "height", "cross_left", "cross_right", "birth"),
            *("parent", "left", "right", "center", "mark", "exact", "due", "error", "error_left", "error_right"),
            *("earlier", "later", "level"),
        ],
        "formats": [
            *[np.float64] * 4,
            *(np.int64, *[np.int32] * 4, *[np.uint8] * 3, *[np.float32] * 3),
            *(np.int32, np.int32, np.int16),
        ],
        "offsets": [0, 8, 16, 24, 32, 40, 44, 48, 52, 56, 57, 58, 60, 64, 68, 72, 76, 80],
        "itemsize": 88,
    }
)


TreeState = Annotated[NDArray[Any], Array(TREE_STATE)]
WorkState = Annotated[NDArray[Any], Array(WORK_STATE)]
PairsState = Annotated[NDArray[Any], Array(PAIRS_STATE)]


@described
class Tree(NamedTuple):
    """The columns that all trees have, in this order: kernels that need no others take any tree as this one."""

    parent: IntColumn  # (capacity,)
    left: IntColumn  # (capacity,)
    right: IntColumn  # (capacity,)
    birth: LongColumn  # (capacity,) smallest insertion number among the members: it breaks ties
    size: FloatColumn  # (capacity,) sum of the members' weights
    height: FloatColumn  # (capacity,) ζ between the children, 0 for a leaf
    state: TreeState  # (1,)


@described
class Sketches(NamedTuple):
    """What means are along a few directions in which the points differ most: bounds on distances in many columns."""

    value: ShortFloatMatrix  # (capacity, n_directions)
    slip: Floats  # (capacity,) how far rounding may have moved a row of `value` from its mean
    direction: FloatMatrix  # (n_directions, n_columns) orthonormal; none if there are no sketches


def new_sketches(capacity: int, direction: NDArray[np.float64]) -> Sketches:
    """Room for a sketch of each node, or none without directions."""
    size = capacity if len(direction) else 0
    direction = direction if direction.flags.carray else direction.copy()
    return Sketches(np.zeros((size, len(direction)), np.float32), np.zeros(size), direction)


def no_sketches() -> Sketches:
    """No sketches."""
    return new_sketches(0, np.zeros((0, 0)))


@described
class MeanTree(NamedTuple):
    """A binary hierarchy with the sufficient statistics of each node (`eq.SufficientStatisticRecursion`)."""

    parent: IntColumn  # (capacity,) these seven as in `Tree`
    left: IntColumn
    right: IntColumn
    birth: LongColumn
    size: FloatColumn
    height: FloatColumn
    state: TreeState
    variance: FloatColumn  # (capacity,) mean squared distance from the mean (`eq.variance`)
    radius: FloatColumn  # (capacity,) no member is farther from the mean: a bound
    mean: DataMatrix  # (capacity, n_columns) in the type of the data (`eq.centroid`)
    sketch: Sketches  # which follow from the means, and are in no file

    @classmethod
    def may_have(cls, linkage: Any) -> bool:
        """Whether its linkage may be this one."""
        return linkage.statistics is not None


@described
class Pairs(NamedTuple):
    """Dissimilarities between points by row, bounds on them, and workspace."""

    x: OpaqueMatrix  # what `row` reads: points, or dissimilarities
    params: Floats  # parameters of the metric
    row: FunctionAddress  # it fills an array with the dissimilarities between a row and some rows
    pivots: Ints  # (MOST_PIVOTS,) rows of the pivots, which are points of the tree
    to_pivots: Floats  # (MOST_PIVOTS,) dissimilarities between the current point and the pivots
    pivot: FloatMatrix  # (n_rows, MOST_PIVOTS) distances to the pivots
    state: PairsState  # (1,)
    paused: Floats  # (1,) the value of a paused comparison so far
    span: FloatMatrix  # (2, MOST_PIVOTS) smallest and largest distance of some rows to each pivot
    lower: Floats  # (capacity,) bounds on the linkage between the current point and each node
    upper: Floats  # (capacity,)
    rows: Ints  # (n_rows,) members of a cluster
    others: Ints  # (n_rows,) members of another
    share: Floats  # (n_rows,) their shares in its weight
    some: Ints  # (BLOCK,) the rows of a block
    block: Floats  # (BLOCK,) its dissimilarities
    means: Floats  # (GROUP,) means of the rows of a group


@described
class PairTree(NamedTuple):
    """A binary hierarchy with the linkage between the children of each node, and what is known about its check.

    The check at a node v with children a and b and sibling c compares ζ(a, c) and ζ(b, c) with the height of v. A lower
    bound on these two *cross values* is always known, and often the values themselves.

    No column has the dtype of the data, which only row functions read: kernels are compiled once for all dtypes.
    """

    parent: IntColumn  # (capacity,) these seven as in `Tree`
    left: IntColumn
    right: IntColumn
    birth: LongColumn
    size: FloatColumn
    height: FloatColumn
    state: TreeState
    cross_left: FloatColumn  # (capacity,) at most ζ between the left child and the sibling
    cross_right: FloatColumn  # (capacity,) the same for the right child
    exact: ByteColumn  # (capacity,) bits LEFT_IS_EXACT and RIGHT_IS_EXACT: the bound is the value
    error: ShortFloatColumn  # (capacity,) of average linkage: by how many units in the last place the height may be off
    error_left: ShortFloatColumn  # (capacity,) the same for the cross values, where they are exact
    error_right: ShortFloatColumn  # (capacity,)
    center: IntColumn  # (capacity,) for minimax linkage, a leaf at which the minimum is reached
    pairs: Pairs

    @property
    def dtype(self) -> str:
        """The dtype of what searches note."""
        return "float64"

    @classmethod
    def dtypes(cls) -> tuple[str, ...]:
        """The dtypes of what searches note."""
        return ("float64",)

    @classmethod
    def may_have(cls, linkage: Any) -> bool:
        """Whether its linkage may be this one."""
        return bool(linkage.from_pairs)


#: Either of the trees: kernels are compiled for each.
AnyTree = MeanTree | PairTree


#: The level of a height is its exponent and the first two binary digits: without these lower ones, and the sign.
BITS_BELOW_LEVELS = 50
N_LEVELS = 1 << (63 - BITS_BELOW_LEVELS)

#: Lists that are not good are found in a list of up to this many, and otherwise by looking through everything.
N_RECENT = 2_048

#: Instead of the number of its entries: the list is not complete.
LOST = -1


@described
class Worklist(NamedTuple):
    """What is to be done: a stack of nodes whose check may have changed, and a queue of those due for a search."""

    stack: Ints  # (capacity,) each node is in it at most once
    mark: ByteColumn  # (capacity,) bits QUEUED, STALE and WAITS
    due: ByteColumn  # (capacity,) 0, or one of the values above: whether the node is to be searched
    level: ShortIntColumn  # (capacity,) of a node that is due: the list that it is in,
    earlier: IntColumn  # (capacity,) the node before it there, NULL for none,
    later: IntColumn  # (capacity,) and the one after it
    first: Ints  # (N_LEVELS,) the first in the list of each level
    state: WorkState  # (1,)


#: Neighbours stored for each point.
N_NEAR = 16

#: So many times wider is a descent for a point that may be in a wrong place.
WIDER = 4

#: Of `Search.state`.
SEARCH_STATE = counters(
    "stamp",  # the number of the last search
    "reach",  # how far searches go: one of the following
    "fresh",  # steps left for the lists of neighbours: the sum of `Search.fresh`
    "fresh_row",  # the row at which they continue
    "notes",  # which lists a visited leaf is added to: one of the following
    "stop_at",  # refinement is interrupted when the number of grafts reaches this
)

# Values of ``reach``.
BY_DESCENT = 0  # the neighbours of some members, then a descent of limited width
EVERYWHERE = 1  # all nodes

# Values of ``notes``.
BOTH_LISTS = 0  # that of the searching leaf, and vice versa
OWN_LIST = 1  # only that of the searching leaf: then others may search in parallel
NO_LIST = 2  # none: then others may read lists in parallel

# `Search.fresh` of a row: how many steps its list of neighbours is from being good.
TO_FIND = 3  # it is empty
TO_EXCHANGE = 2  # it holds points visited at insertion: neighbours of neighbours must be asked twice


SearchState = Annotated[NDArray[Any], Array(SEARCH_STATE)]


@described
class Search(NamedTuple):
    """The state of searches for blocking pairs: the nearest neighbours of every point, and workspace."""

    near: IntMatrix  # (n_rows, N_NEAR) leaves near each leaf, the nearest first; NULL for none
    near_value: DataMatrix  # (n_rows, N_NEAR) how far they are, infinite for none; float64 in a tree of pairs
    fresh: Bytes  # (n_rows,) steps until its list is good
    recent: Ints  # (1 + N_RECENT,) how many rows there are for which that is not 0, and which, unless it is LOST
    seen: Ints  # (capacity,) the last search that visited each node
    front: IntMatrix  # (2, WIDER width) the nodes of the current level of a descent, and of the next
    front_value: FloatMatrix  # (2, WIDER width) how far they are
    stack: Ints  # (capacity,) nodes to visit
    lightest: Floats  # (1,) no point weighs less
    total: Floats  # (1,) in a piece of a tree, the weight of all points of the tree
    state: SearchState  # (1,)


def new_search(rows: int, width: int, dtype: np.dtype[Any]) -> Search:
    """Empty lists for `rows` rows, and workspace for a descent of the given width."""
    return Search(
        near=np.full((rows, N_NEAR), NULL, np.int32),
        near_value=np.full((rows, N_NEAR), np.inf, dtype),
        fresh=np.zeros(rows, np.uint8),
        recent=np.zeros(1 + N_RECENT, np.int32),
        seen=np.zeros(2 * rows, np.int32),
        front=np.zeros((2, WIDER * width), np.int32),
        front_value=np.zeros((2, WIDER * width)),
        stack=np.zeros(2 * rows, np.int32),
        lightest=np.zeros(1),
        total=np.zeros(1),
        state=np.zeros(1, SEARCH_STATE),
    )


#: The columns of a node that are in its worklist, and not in its tree.
OF_WORK = ("mark", "due", "level", "earlier", "later")


def new_node_columns(capacity: int, node: np.dtype[Any]) -> tuple[dict[str, NDArray[Any]], Worklist]:
    """The columns of an empty tree with nodes of dtype `node`, by name, and its worklist.

    There is always room for two nodes.
    """
    capacity = max(capacity, 2)
    records = np.zeros(capacity, node)
    columns: dict[str, NDArray[Any]] = {name: records[name] for name in node.names or ()}
    columns["state"] = np.zeros(1, TREE_STATE)
    for name in ("root", "free_leaf", "free_inner"):
        columns["state"][name] = NULL
    of_work = {name: columns.pop(name) for name in OF_WORK}
    first, state = np.full(N_LEVELS, NULL, np.int32), np.zeros(1, WORK_STATE)
    return columns, Worklist(stack=np.zeros(capacity, np.int32), **of_work, first=first, state=state)
