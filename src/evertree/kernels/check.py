"""The check at a node, and what a move changes: by the kind of tree, when a kernel is compiled."""

from __future__ import annotations

from evertree.columns import MeanTree, PairTree
from evertree.kernels.compile import choose
from evertree.kernels.linkage_values import exceeds, nearer_child
from evertree.kernels.merge import merge_after_move
from evertree.kernels.pair_check import check_pairs, update_pairs
from evertree.kernels.topology import sibling


def _check_means(linkage, tree, tolerance, v):
    return nearer_child(linkage, tree, tolerance, v, sibling(tree, v))


def _update_means(linkage, tree, v, near):
    merge_after_move(linkage, tree, v)


def _is_inverted_by_means(linkage, tree, tolerance, v):
    a, b, c = tree.left[v], tree.right[v], sibling(tree, v)
    return exceeds(linkage, tree, tolerance, tree.height[v], a, b, tree.height[tree.parent[v]], v, c)


def _is_inverted_by_pairs(linkage, tree, tolerance, v):
    return tree.height[tree.parent[v]] < tree.height[v] - tolerance * tree.height[v]


#: The check (`def.LocalStructuralOptimality`) at `v`: its child that is closer to the sibling of `v` than to its own.
#: NULL if there is none; BUSY if it takes so long that it has paused.
find_near = choose("tree", {MeanTree: _check_means, PairTree: check_pairs})

#: Compute what a move changed, which made `v` the union of its child `near` and its old sibling.
update_after_move = choose("tree", {MeanTree: _update_means, PairTree: update_pairs})

#: Whether `v` is above its parent (`def.treeMonotonicity`).
is_inverted = choose("tree", {MeanTree: _is_inverted_by_means, PairTree: _is_inverted_by_pairs})
