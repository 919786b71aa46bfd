"""The state of a repair (`evertree.kernels.repair.repair`), and what a batch tree keeps from one edit to the next."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

from numpy.typing import NDArray

from evertree.kernels.columns import counters
from evertree.kernels.signatures import (
    Array,
    ByteMatrix,
    Bytes,
    FloatMatrix,
    Floats,
    IntMatrix,
    Ints,
    LongInts,
    described,
)

#: Slots for each of the clusters that are alive when all of them have slots: two are for the old tree, the others for
#: what is there in its place. Values of clusters for which none is left are unknown.
SLOTS_EACH = 3

#: Of each active cluster, those that are listed as close.
N_CLOSE = 16

#: Instead of the node of a slot: its cluster is gone, but what is known of it is used until the end.
VACANT = -2

#: The bit of the point of the edit, which is the first piece.
POINT = 1

#: Of `Repair.state`.
REPAIR_STATE = counters(
    "point",  # the leaf that comes or leaves
    "comes",  # 1 if it comes, 0 if it leaves
    "n_alive",  # clusters in `alive`
    "n_active",  # those of them in `active`
    "n_late",  # entries of `late`
    "n_events",  # entries of the heap
    "n_pool",  # entries of `pool`
    "n_pieces",  # pieces so far
    "has_top",  # whether all clusters have slots from now on
    "patience",  # how many pairs of points may still be compared, bounds or not, before it takes too long
    "most_looked_at",  # and `PAIRS_STATE.looked_at` beyond which it does
    "position",  # in `order`: the next merge of the old tree
    "n_made",  # entries of `made`
)


RepairState = Annotated[NDArray[Any], Array(REPAIR_STATE)]


@described
class Top(NamedTuple):
    """Values of pairs of the largest clusters, the last ones to merge, which would take longest to compute.

    They have *slots*. It is kept with the tree, and changed with it.
    """

    level: Floats  # (1,) those alive above it have slots; -inf if that is not decided yet, inf if nothing is known
    slot: Ints  # (capacity,) the slot of a node, or NULL
    node: Ints  # (n_slots,) the node of a slot, or NULL
    value: FloatMatrix  # (n_slots, n_slots) ζ
    error: FloatMatrix  # (n_slots, n_slots) its error; infinite if it is unknown


@described
class Repair(NamedTuple):
    """The tree before an edit, and the state of the batch run after it: mostly a row for each node."""

    parent: Ints  # of the old tree, as all before `slack`
    left: Ints
    right: Ints
    size: Floats
    height: Floats
    level: Floats  # its heights, made monotone
    error: Floats
    rank: Ints  # when a node merges: the position of its parent in `order`
    death: Floats  # the level at which it does
    before: Floats  # the slack of its nodes
    slot: Ints  # their slots
    n_points: Ints  # the number of points of its nodes, without those of pieces
    had: LongInts  # which pieces they had: a bit for each
    near: Floats  # where radii are compared, how far the nearest point of a node is from the point of the edit
    slack: Floats  # that of the new tree
    is_lost: Bytes  # whether the cluster of an old node will not be there again
    is_followed: Bytes  # whether values of the old node have been followed up
    is_new: Bytes  # whether the node is a cluster that the old tree had not
    n_old: Ints  # the number of points of an old node
    n_common: Ints  # workspace: how many of them another cluster has
    base: Ints  # for a cluster, the old node with a slot that has almost the same points, or NULL
    apart_size: Floats  # (2,) the size of those that the base has, and of those that the cluster has
    apart_value: FloatMatrix  # (2, capacity) ζ between them and every old node
    n_leaves: Ints  # the number of points of a cluster
    n_members: Ints  # the number of points of a cluster, without those of pieces
    above: Ints  # the lowest old node that had all of them, or NULL
    has: LongInts  # which pieces it has
    place: Ints  # its place in `alive`, or NULL
    row: Ints  # its row of values if it is active, or NULL
    pool: Ints  # numbers of lost nodes, to use again
    alive: Ints  # the clusters that are there
    parts: Ints  # workspace
    others: Ints
    waiting: Ints  # (2 capacity,) pairs of clusters
    late: Ints  # those that have lost their sibling and would have merged with it by now, but are not active
    active: Ints  # (n_rows,) the active ones; the place of each is its row
    nearest: Ints  # (n_rows,) for each, which cluster has its smallest value, or had; NULL if that is `beyond`
    close: IntMatrix  # (n_rows, N_CLOSE) and those with the smallest ones; some may have merged, or be there twice
    n_close: Ints  # (n_rows,) how many they are
    beyond: Floats  # (n_rows,) no other cluster has a smaller value
    event: Floats  # a heap: the level at which to look at a cluster
    event_node: Ints
    order: Ints  # (n_points - 1,) the inner nodes of the old tree in the order of their merges
    made: Ints  # those of the new tree
    value: FloatMatrix  # (n_rows, capacity) for each active cluster, bounds on ζ to every other
    is_exact: ByteMatrix  # (n_rows, capacity) whether that is the value
    reference: Ints  # (n_rows,) where radii are compared, a leaf of each active cluster,
    reach: Floats  # (n_rows,) how far it is from the farthest one of the cluster,
    low: FloatMatrix  # (n_rows, capacity) and from the nearest one of each other cluster,
    high: FloatMatrix  # (n_rows, capacity) and from the farthest one
    piece_size: Floats  # (n_pieces,)
    piece_value: FloatMatrix  # (n_pieces, capacity) ζ between each piece and every node of the old tree
    top: Top
    state: RepairState  # (1,)
