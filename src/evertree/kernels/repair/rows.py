"""Rows of values, one for each active cluster."""

from __future__ import annotations

import numpy as np

from evertree.kernels.columns import NULL
from evertree.kernels.compile import inline, step


@inline
def clear_close(run, k):
    """Nothing is known yet of what is close to the active cluster of row `k`."""
    run.n_close[k], run.beyond[k] = 0, np.inf


@step
def note_close(run, k, u):
    """List cluster `u`, whose value in row `k` is new, if it is one of the smallest. O(N_CLOSE)."""
    value, count = run.value[k, u], np.int64(run.n_close[k])
    if value >= run.beyond[k]:
        return
    if count == run.close.shape[1]:
        count -= 1
        last = run.value[k, run.close[k, count]]
        run.beyond[k] = min(run.beyond[k], max(value, last))
        if value >= last:
            return
    else:
        run.n_close[k] = count + 1
    while count > 0 and run.value[k, run.close[k, count - 1]] > value:
        run.close[k, count] = run.close[k, count - 1]
        count -= 1
    run.close[k, count] = u


@step
def list_close(run, k, c):
    """List the clusters that are closest to cluster `c`, which has row `k`. O(n)."""
    clear_close(run, k)
    for t in range(run.state["n_alive"][0]):
        u = np.int64(run.alive[t])
        if u != c:
            note_close(run, k, u)


@inline
def give_row(run, u):
    """Make `u` active: there is a row left."""
    k = run.state["n_active"][0]
    run.state["n_active"][0] = k + 1
    run.active[k] = u
    run.row[u] = k


@step
def take_row(run, u):
    """Make `u` passive: the row of the last active cluster takes the place of its row. O(n)."""
    k, last = run.row[u], run.state["n_active"][0] - 1
    run.row[u] = NULL
    run.state["n_active"][0] = last
    if k != last:
        other = run.active[last]
        for t in range(run.state["n_alive"][0]):
            v = run.alive[t]
            run.value[k, v] = run.value[last, v]
            run.is_exact[k, v] = run.is_exact[last, v]
            if run.low.shape[1] > 0:
                run.low[k, v], run.high[k, v] = run.low[last, v], run.high[last, v]
        run.active[k], run.nearest[k] = other, run.nearest[last]
        run.n_close[k], run.beyond[k] = run.n_close[last], run.beyond[last]
        for t in range(run.n_close[k]):  # also those that have merged: their values are compared with others
            run.close[k, t] = run.close[last, t]
            run.value[k, run.close[k, t]] = run.value[last, run.close[k, t]]
        run.reference[k], run.reach[k] = run.reference[last], run.reach[last]
        run.row[other] = k


@inline
def unite_in_row(run, k, u, a, b):
    """How far `u`, the union of `a` and `b`, is from the reference of a row."""
    run.low[k, u] = min(run.low[k, a], run.low[k, b])
    run.high[k, u] = max(run.high[k, a], run.high[k, b])
