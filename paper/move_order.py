"""Anytime hierarchical clustering (`tab.OHC`) with the next check chosen in a given order, to study what that does.

`evertree.kernels.shared.homogenise` checks the node that came last. Here the nodes that may violate homogeneity wait in
a queue that is a stack, a ring, a heap or an urn. `homogenise_in_order`, at the end, is what Python calls.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evertree.kernels.columns import NULL, UNLIMITED, AnyTree, MeanTree, PairTree, Worklist
from evertree.kernels.compile import choose, inline, kernel
from evertree.kernels.pairwise.check import cross, side_of
from evertree.kernels.shared.check import find_near
from evertree.kernels.shared.homogenise import guarded_tolerance, make_move, note_empty
from evertree.kernels.shared.linkage_values import linkage_value
from evertree.kernels.shared.topology import sibling
from evertree.kernels.shared.worklist import pop, put_back
from evertree.kernels.signatures import AnyLinkage, Floats, Ints, LongInts, described
from evertree.tree import LiveTree

#: The orders in which nodes that may violate homogeneity can be checked: their numbers, below, in words.
ORDERS = ("last in first out", "first in first out", "at random", "bottom up", "largest violation")

LAST_IN_FIRST_OUT = 0
FIRST_IN_FIRST_OUT = 1
AT_RANDOM = 2  # each waiting node with the same probability, so that each violated check is as likely to come next
BOTTOM_UP = 3  # the smallest cluster
LARGEST_VIOLATION = 4  # the node whose child is closer to its uncle than to its sibling by most

# Entries of `Queue.state`.
N_WAITING = 0
HEAD = 1  # where a ring begins
N_QUEUE_STATE = 2


@described
class Queue(NamedTuple):
    """The nodes that wait, each once."""

    node: Ints  # (capacity,)
    place: Ints  # (capacity,) where a node stands in `node`, or NULL
    key: Floats  # (capacity,) of each node: a heap gives the largest first
    state: LongInts  # (N_QUEUE_STATE,)
    random: LongInts  # (2,) the state of a random generator, positive numbers below 2147483399


def _violation_by_means(linkage, tree, v, near):
    return tree.height[v] - linkage_value(linkage, tree, near, sibling(tree, v))


def _violation_by_pairs(linkage, tree, v, near):
    return tree.height[v] - cross(tree, v, side_of(tree, v, near))[0]


#: By how much `near`, a child of `v`, is closer to the sibling of `v` than to its own.
violation = choose("tree", {MeanTree: _violation_by_means, PairTree: _violation_by_pairs})


@inline
def draw_below(random, n):
    """A random whole number below `n`, by the combined generator of L'Ecuyer (1988), which never overflows."""
    random[0] = 40014 * random[0] % 2147483563
    random[1] = 40692 * random[1] % 2147483399
    return (random[0] - random[1]) % 2147483562 * n // 2147483562


@inline
def put(queue, k, u):
    """Let `u` stand at place `k`."""
    queue.node[k] = u
    queue.place[u] = k


@inline
def sift(queue, k):
    """Move the node at place `k` of a heap to where its key belongs. O(log n)."""
    u = queue.node[k]
    while k > 0 and queue.key[queue.node[(k - 1) // 2]] < queue.key[u]:
        put(queue, k, queue.node[(k - 1) // 2])
        k = (k - 1) // 2
    n = queue.state[N_WAITING]
    while 2 * k + 1 < n:
        child = 2 * k + 1
        if child + 1 < n and queue.key[queue.node[child + 1]] > queue.key[queue.node[child]]:
            child += 1
        if queue.key[queue.node[child]] <= queue.key[u]:
            break
        put(queue, k, queue.node[child])
        k = child
    put(queue, k, u)


@inline
def enqueue(linkage, tree, work, queue, order, u):
    """Let `u` wait; in a heap, give it the place that it deserves now."""
    if tree.parent[u] <= NULL:  # the root has no check
        return
    if order == BOTTOM_UP:
        queue.key[u] = -tree.size[u]
    elif order == LARGEST_VIOLATION:
        work.state["checks"][0] += 1
        near = find_near(linkage, tree, guarded_tolerance(linkage, work), u)
        queue.key[u] = violation(linkage, tree, u, near) if near != NULL else -np.inf
    k = queue.place[u]
    if k == NULL:
        k = queue.state[N_WAITING]
        queue.state[N_WAITING] += 1
        if order == FIRST_IN_FIRST_OUT:
            k = (queue.state[HEAD] + k) % queue.node.size
        put(queue, k, u)
    if order >= BOTTOM_UP:
        sift(queue, np.int64(k))


@inline
def dequeue(queue, order):
    """Take the node whose turn it is."""
    last = queue.state[N_WAITING] - 1
    queue.state[N_WAITING] = last
    if order == FIRST_IN_FIRST_OUT:
        u = queue.node[queue.state[HEAD]]
        queue.state[HEAD] = (queue.state[HEAD] + 1) % queue.node.size
    elif order == LAST_IN_FIRST_OUT:
        u = queue.node[last]
    else:
        k = draw_below(queue.random, last + 1) if order == AT_RANDOM else 0
        u = queue.node[k]
        if k < last:
            put(queue, k, queue.node[last])
            if order >= BOTTOM_UP:
                sift(queue, np.int64(k))
    queue.place[u] = NULL
    return u


@inline
def admit(linkage, tree, work, queue, order):
    """Let all nodes of the worklist wait in the queue. The worklist gives the lowest first, and so shall the queue."""
    n = work.state["pending"][0]
    for k in range(n):
        enqueue(linkage, tree, work, queue, order, work.stack[n - 1 - k if order == FIRST_IN_FIRST_OUT else k])
    for _ in range(n):
        pop(work)


@inline
def give_back(work, queue, order):
    """Let all nodes that wait stand in the worklist again, so that `admit` would give the same queue."""
    n = queue.state[N_WAITING]
    for k in range(n):
        place = (queue.state[HEAD] + n - 1 - k) % queue.node.size if order == FIRST_IN_FIRST_OUT else k
        put_back(work, queue.node[place])


@kernel
def make_moves(tree: AnyTree, work: Worklist, linkage: AnyLinkage, queue: Queue, order: int, max_moves: int) -> None:
    """`tab.OHC` in some order until no check is violated, or `max_moves` were made.

    What waits moves from the worklist into the empty `queue`, which is not used again, and what is left moves back.
    """
    last_move = work.state["moves"][0] + max_moves
    admit(linkage, tree, work, queue, order)
    while queue.state[N_WAITING] > 0 and work.state["moves"][0] < last_move:
        v = dequeue(queue, order)
        work.state["checks"][0] += 1
        near = find_near(linkage, tree, guarded_tolerance(linkage, work), v)
        if near != NULL:
            make_move(linkage, tree, work, v, near)
            work.state["moves"][0] += 1
            admit(linkage, tree, work, queue, order)
    if queue.state[N_WAITING] == 0:
        note_empty(work)
    give_back(work, queue, order)


def homogenise_in_order(live: LiveTree, order: str, rng: np.random.Generator, max_moves: int = UNLIMITED) -> None:
    """Make the moves of the paper in one of `ORDERS` until the tree is homogeneous, or `max_moves` were made.

    The library's own order, that of `LiveTree.homogenise`, is last in first out.
    """
    live.never_pause()
    capacity = live.tree.parent.size
    queue = Queue(
        node=np.empty(capacity, np.int32),
        place=np.full(capacity, NULL, np.int32),
        key=np.empty(capacity),
        state=np.zeros(N_QUEUE_STATE, np.int64),
        random=rng.integers(1, 2_000_000_000, size=2),
    )
    make_moves(live.tree, live.work, live.tag, queue, ORDERS.index(order), max_moves)
