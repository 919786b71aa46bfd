"""Rows of values, one for each active cluster."""

from __future__ import annotations

from evertree.kernels.columns import NULL
from evertree.kernels.compile import inline, step


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
        run.reference[k], run.reach[k] = run.reference[last], run.reach[last]
        run.row[other] = k


@inline
def unite_in_row(run, k, u, a, b):
    """How far `u`, the union of `a` and `b`, is from the reference of a row."""
    run.low[k, u] = min(run.low[k, a], run.low[k, b])
    run.high[k, u] = max(run.high[k, a], run.high[k, b])
