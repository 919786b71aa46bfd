"""The slack of every node of a batch tree (`evertree.kernels.repair.repair`), from the values of all pairs of points.

The recurrence for the merge of A and B reads ζ(A, C) and ζ(B, C) for every other cluster C that is there: the smallest
ones are the slack of A and of B. The merges are made in order of height, as a chain of nearest neighbours does not.
"""

from __future__ import annotations

import numpy as np

from evertree.kernels.columns import NULL, Tree
from evertree.kernels.compile import inline, kernel
from evertree.kernels.pairwise.path import ERROR_OF_RECURRENCE
from evertree.kernels.repair.state import SLOTS_EACH, Top
from evertree.kernels.shared.nn_chain import Values, bury, get, unite
from evertree.kernels.signatures import Floats, Ints, LinkageWithRecurrence, LongInts


@kernel
def find_slack(
    tree: Tree,
    linkage: LinkageWithRecurrence,
    d: Floats,
    alive: LongInts,
    size: Floats,
    node: Ints,
    merges: Ints,
    place: Ints,
    top: Top,
    slack: Floats,
) -> None:
    """Fill ``slack`` and ``top`` of a batch tree, by node. O(n²).

    ``d`` has the dissimilarities of all pairs of points, condensed, and is consumed; ``size`` (n,) their weights, and
    ``node`` (n,) their leaves. ``merges`` has the inner nodes in order of height. ``alive`` (n,), and ``place`` with an
    entry for each node, are workspace.
    """
    n = size.size
    z = Values(d, n)
    n_slots = top.node.size // SLOTS_EACH
    for i in range(n):
        alive[i] = place[node[i]] = i
    for t in range(n - 1):
        n_alive = n - t
        if n_alive <= n_slots and top.node[0] == NULL:
            for k in range(n_alive):
                top.node[k], top.slot[node[alive[k]]] = node[alive[k]], k
                for j in range(k):
                    keep(top, k, j, get(z, alive[k], alive[j]))
        u = merges[t]
        a, b = np.int64(place[tree.left[u]]), np.int64(place[tree.right[u]])
        a, b = min(a, b), max(a, b)
        slack_a, slack_b = np.inf, np.inf
        for k in range(n_alive):
            c = alive[k]
            if c != a and c != b:
                slack_a, slack_b = min(slack_a, get(z, a, c)), min(slack_b, get(z, b, c))
        slack[node[a]], slack[node[b]] = slack_a, slack_b
        unite(linkage, z, size, alive, n_alive, a, b)
        bury(alive, n_alive, b)
        node[a], place[u] = u, a
        if n_alive <= n_slots and n_alive > 2:
            s = 2 * min(n, n_slots) - n_alive  # those before it are taken
            top.node[s], top.slot[u] = u, s
            for k in range(n_alive - 1):
                c = alive[k]
                if c != a:
                    keep(top, s, top.slot[node[c]], get(z, a, c))
    slack[tree.state["root"][0]] = np.inf


@inline
def keep(top, s, t, value):
    """Write down ζ of the clusters in two slots."""
    top.value[s, t] = top.value[t, s] = value
    top.error[s, t] = top.error[t, s] = ERROR_OF_RECURRENCE
