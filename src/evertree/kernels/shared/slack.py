"""The slack of every node of a batch tree (`evertree.kernels.shared.repair`), from the values of all pairs of points.

The recurrence for the merge of A and B reads ζ(A, C) and ζ(B, C) for every other cluster C that is there: the smallest
ones are the slack of A and of B. The merges are made in order of height, as a chain of nearest neighbours does not.
"""

from __future__ import annotations

import numpy as np

from evertree.kernels.columns import NULL
from evertree.kernels.compile import kernel
from evertree.kernels.pairwise.path import ERROR_OF_RECURRENCE
from evertree.kernels.shared.nn_chain import Values, bury, get, unite
from evertree.kernels.shared.repair import SLOTS_EACH, Top
from evertree.kernels.signatures import Floats, Ints, LinkageWithRecurrence, LongInts, LongMatrix


@kernel
def find_slack(
    linkage: LinkageWithRecurrence,
    d: Floats,
    size: Floats,
    alive: LongInts,
    merges: LongMatrix,
    node: Ints,
    top: Top,
    slack: Floats,
    done: LongInts,
    stop: int,
) -> None:
    """Fill ``slack`` and ``top``, by node. O(n²).

    ``d``, ``size`` and ``alive`` as in `evertree.kernels.shared.nn_chain.merge_by_recurrence`; ``merges`` are in order
    of height. ``node`` (n,) has the leaf of each point; merge t gives inner node 2 t + 1. ``done`` (1,) has the number
    of merges made, 0 at first. Returns once `stop` merges are made.
    """
    n = size.size
    z = Values(d, n)
    n_slots = top.node.size // SLOTS_EACH
    if done[0] == 0:
        for i in range(n):
            alive[i] = i
    for t in range(done[0], min(stop, n - 1)):
        n_alive = n - t
        if n_alive <= n_slots and top.node[0] == NULL:
            for k in range(n_alive):
                top.node[k], top.slot[node[alive[k]]] = node[alive[k]], k
                for j in range(k):
                    top.value[k, j] = top.value[j, k] = get(z, alive[k], alive[j])
                    top.error[k, j] = top.error[j, k] = ERROR_OF_RECURRENCE
        a, b = merges[t, 0], merges[t, 1]
        slack_a, slack_b = np.inf, np.inf
        for k in range(n_alive):
            c = alive[k]
            if c != a and c != b:
                slack_a, slack_b = min(slack_a, get(z, a, c)), min(slack_b, get(z, b, c))
        slack[node[a]], slack[node[b]] = slack_a, slack_b
        unite(linkage, z, size, alive, n_alive, a, b)
        bury(alive, n_alive, b)
        node[a] = 2 * t + 1
        if n_alive <= n_slots and n_alive > 2:
            s = 2 * min(n, n_slots) - n_alive  # those before it are taken
            top.node[s], top.slot[node[a]] = node[a], s
            for k in range(n_alive - 1):
                c = alive[k]
                if c != a:
                    j = top.slot[node[c]]
                    top.value[s, j] = top.value[j, s] = get(z, a, c)
                    top.error[s, j] = top.error[j, s] = ERROR_OF_RECURRENCE
        done[0] = t + 1
    slack[2 * (n - 1) - 1 if n > 1 else node[0]] = np.inf
