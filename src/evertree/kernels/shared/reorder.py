"""Permutation of the rows of a matrix, in place: a copy of the points would take half as much memory again."""

from __future__ import annotations

import numpy as np

from evertree.kernels.columns import NULL, Tree, Worklist
from evertree.kernels.compile import inline, kernel
from evertree.kernels.signatures import Bools, Data, DataMatrix, IntMatrix, Ints


@inline
def swap_rows(matrix, u, row):
    """Swap row `u` of a matrix with the separate `row`."""
    for k in range(matrix.shape[1]):
        matrix[u, k], row[k] = row[k], matrix[u, k]


@kernel
def relabel(near: IntMatrix, place: Ints) -> None:
    """Replace each node in the lists `near` by its new number. O(n)."""
    for row in range(near.shape[0]):
        for k in range(near.shape[1]):
            if near[row, k] != NULL:
                near[row, k] = place[near[row, k]]


@inline
def relabelled(place, u):
    """The new number of a node, or NULL."""
    return np.int32(NULL) if u == NULL else place[u]


@kernel
def relabel_nodes(tree: Tree, work: Worklist, nodes: Ints, place: Ints) -> None:
    """Replace nodes by their new numbers, after rows of `nodes` were moved: parents, children and the queue. O(n)."""
    for u in nodes:
        v = place[u]
        tree.parent[v] = relabelled(place, tree.parent[v])
        tree.left[v] = relabelled(place, tree.left[v])
        tree.right[v] = relabelled(place, tree.right[v])
    for v in range(place.size):
        if work.due[v]:
            work.earlier[v] = relabelled(place, work.earlier[v])
            work.later[v] = relabelled(place, work.later[v])
    for level in range(work.first.size):
        work.first[level] = relabelled(place, work.first[level])


@kernel
def permute_rows(matrix: DataMatrix, place: Ints, is_done: Bools, row: Data) -> None:
    """Move row u of `matrix` to ``place[u]``, a permutation. `is_done` and `row` are workspace. O(n m)."""
    for u in range(place.size):
        is_done[u] = False
    for start in range(place.size):
        if is_done[start] or place[start] == start:
            continue
        swap_rows(matrix, start, row)
        u = place[start]
        while u != start:
            swap_rows(matrix, u, row)
            is_done[u] = True
            u = place[u]
        swap_rows(matrix, start, row)
