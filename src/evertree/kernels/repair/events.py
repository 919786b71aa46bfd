"""A heap of events: when active clusters are to be looked at."""

from __future__ import annotations

import numpy as np

from evertree.kernels.compile import inline, step


@inline
def comes_first(run, a, b):
    """Whether event `a` comes before event `b`."""
    return run.event[a] < run.event[b] or (run.event[a] == run.event[b] and run.event_node[a] < run.event_node[b])


@inline
def swap_events(run, a, b):
    """Exchange two events."""
    run.event[a], run.event[b] = run.event[b], run.event[a]
    run.event_node[a], run.event_node[b] = run.event_node[b], run.event_node[a]


@step
def push_event(run, level, u):
    """Look at cluster `u` when `level` is reached. O(log n)."""
    k = run.state["n_events"][0]
    run.state["n_events"][0] = k + 1
    run.event[k], run.event_node[k] = level, u
    while k > 0 and comes_first(run, k, (k - 1) >> 1):
        swap_events(run, k, (k - 1) >> 1)
        k = (k - 1) >> 1


@step
def pop_event(run):
    """The cluster of the first event, which is removed. O(log n)."""
    u = np.int64(run.event_node[0])
    last = run.state["n_events"][0] - 1
    run.state["n_events"][0] = last
    run.event[0], run.event_node[0] = run.event[last], run.event_node[last]
    k = 0
    while 2 * k + 1 < last:
        child = 2 * k + 1
        if child + 1 < last and comes_first(run, child + 1, child):
            child += 1
        if not comes_first(run, child, k):
            break
        swap_events(run, k, child)
        k = child
    return u


@inline
def next_level(run):
    """The level of the next merge of the old tree."""
    position = run.state["position"][0]
    return run.level[run.order[position]] if position < run.order.size else np.inf
