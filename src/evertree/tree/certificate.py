"""Certificate of a batch tree: merges are replayed, and each must have been a minimum when it was made."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evertree import kernels
from evertree.kernels.columns import NULL
from evertree.tree.base import LiveTree
from evertree.tree.statistics import MeanLiveTree
from evertree.tree.views import Merges, find_merges


def find_flaw(live: LiveTree) -> tuple[int, int] | None:
    """Two nodes that batch clustering would have merged before either merges in the tree; None if there are none.

    The tree is monotone. O(n² m); for linkages that compare pairs O(n²) in memory too.
    """
    merges = find_merges(live)
    leaves = merges.nodes[merges.nodes % 2 == 0]
    if not isinstance(live, MeanLiveTree):
        return _flaw_of_pairs(live, leaves, merges)
    room = np.empty(leaves.size, np.int32), np.empty(live.tree.parent.size, np.int32)
    order = np.concatenate([leaves, merges.inner])
    u, v = kernels.shared.certify.replay_means(live.tree, live.tag, order, *room)
    return None if u == NULL else (int(u), int(v))


def _flaw_of_pairs(live: LiveTree, leaves: NDArray[np.int32], merges: Merges) -> tuple[int, int] | None:
    tree, n = live.tree, leaves.size
    node_in = dict(enumerate(leaves.tolist()))  # a cluster is in the slot of its first point
    slot = {leaf: i for i, leaf in node_in.items()}
    pairs = np.empty((n - 1, 2), np.int64)
    for t, u in enumerate(merges.inner.tolist()):
        pairs[t] = sorted((slot[int(tree.left[u])], slot[int(tree.right[u])]))
        slot[u] = int(pairs[t, 0])
    order = np.concatenate([leaves, merges.inner])
    death = np.where(order == live.root, np.inf, merges.height[tree.parent[order]])
    d, alive = live.dissimilarities(leaves), np.empty(n, np.int64)
    if live.scheme.linkage.has_centers:
        room = np.empty((n, n)), np.empty(n, np.int64), alive
        n_made, a, b = kernels.shared.certify.replay_by_radius(live.tag, d, *room, pairs, death)
    else:
        n_made, a, b = kernels.shared.certify.replay_by_recurrence(live.tag, d, tree.size[leaves], alive, pairs, death)
    if n_made < 0:
        return None
    for u in merges.inner[:n_made].tolist():
        node_in[slot[u]] = u
    return node_in[int(a)], node_in[int(b)]
