"""A digest of a tree: it differs, almost surely, if the same edits were made with other decisions. O(1)."""

from __future__ import annotations

import struct
import zlib
from operator import itemgetter

from evertree.kernels.columns import NULL, TREE_STATE, WORK_STATE
from evertree.state import State

#: What is counted of all decisions so far. No clock, no rounding and no capacity enters.
_COUNTS = ("checks", "moves", "searches", "grafts", "inserted")
_counts_of = itemgetter(*((WORK_STATE.names or ()).index(name) for name in _COUNTS))
_shape_of = itemgetter(*((TREE_STATE.names or ()).index(name) for name in ("root", "n_points")))

_pack = struct.Struct("<12q").pack  # the same bytes on every computer


def digest_of(state: State) -> int:
    """A number of 32 bits, from counts, the root, and the place of the youngest point."""
    live, keys = state.live, state.keys
    tree = live.tree
    leaf = keys.youngest_leaf()
    above = NULL if leaf == NULL else tree.parent[leaf]
    place = (NULL, NULL, NULL) if above == NULL else (tree.parent[above], tree.left[above], tree.right[above])
    counts, shape = _counts_of(live.work.state.item()), _shape_of(tree.state.item())
    return zlib.crc32(_pack(*counts, *shape, *place, keys.next_birth, keys.next_number))
