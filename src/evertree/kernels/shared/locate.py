"""Where points would be inserted, without inserting them."""

from __future__ import annotations

import numpy as np

from evertree.kernels.columns import AnyTree, MeanTree, PairTree, Search
from evertree.kernels.compile import choose, kernel
from evertree.kernels.pairwise.point import point_value
from evertree.kernels.shared.insert import find_place, prepare
from evertree.kernels.shared.linkage_values import linkage_value
from evertree.kernels.shared.stabilise import search_place
from evertree.kernels.signatures import AnyLinkage, Floats, Ints


def _value_by_means(linkage, tree, i, u):
    return linkage_value(linkage, tree, i, u)


def _value_by_pairs(linkage, tree, i, u):
    return point_value(linkage, tree, i, u, np.inf)


#: ζ between leaf `i`, which has been measured and is detached, and node `u`.
value_beside = choose("tree", {MeanTree: _value_by_means, PairTree: _value_by_pairs})


@kernel
def find_places(
    tree: AnyTree, search: Search, linkage: AnyLinkage, leaves: Ints, is_stable: int, place: Ints, value: Floats
) -> None:
    """Fill `place` with the node beside which each of `leaves` would be attached, and `value` with ζ between the two.

    By search, or by `tab.Insert`. The leaves are detached, and the tree does not change, except for the state of
    searches.
    """
    for k in range(leaves.size):
        i = np.int64(leaves[k])
        if is_stable:
            u = np.int64(search_place(linkage, tree, search, i))
        else:
            prepare(linkage, tree, i)
            u = np.int64(find_place(tree, linkage, i))
        place[k] = u
        value[k] = value_beside(linkage, tree, i, u)
