"""What is true of a tree at every moment, and a check that it is."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evertree.columns import (
    FREE,
    FREE_INNER,
    FREE_LEAF,
    INNER_TOP,
    LEAF_TOP,
    NULL,
    PENDING,
    QUEUED,
    Tree,
)
from evertree.errors import InvariantError
from evertree.tree.live import LiveTree

#: Squares below this have lost their digits.
VANISHING = 1e-300


def check_shape(live: LiveTree) -> None:
    """Parents and children agree, there is one root, all nodes hang below it or are on a list of free ones. O(n)."""
    tree = live.tree
    n = live.n_points
    leaf_top, inner_top = int(tree.state[LEAF_TOP]), int(tree.state[INNER_TOP])
    _require(0 <= n <= leaf_top <= live.capacity, "the numbers of points and of rows do not fit")
    _require(max(n - 1, 0) <= inner_top <= live.capacity, "the numbers of points and of inner nodes do not fit")
    used = np.concatenate([2 * np.arange(leaf_top), 2 * np.arange(inner_top) + 1])
    live_nodes = used[tree.parent[used] >= NULL]
    leaves, inner = live_nodes[live_nodes % 2 == 0], live_nodes[live_nodes % 2 == 1]
    _require(leaves.size == n, f"{leaves.size} leaves are in use, but the tree has {n} points")
    _require(inner.size == max(n - 1, 0), f"{inner.size} inner nodes are in use for {n} points")
    _require(bool(np.all(tree.left[leaves] == NULL) and np.all(tree.right[leaves] == NULL)), "a leaf has a child")
    if n:
        roots = live_nodes[tree.parent[live_nodes] == NULL]
        _require(roots.size == 1 and roots[0] == live.root, "there is not one root")
    else:
        _require(live.root == NULL, "an empty tree has a root")
    children = np.concatenate([tree.left[inner], tree.right[inner]])
    _require(
        bool(np.array_equal(np.sort(children), np.sort(live_nodes[live_nodes != live.root]))),
        "the children of the inner nodes are not all the nodes but the root",
    )
    _require(bool(np.all(tree.parent[children] == np.concatenate([inner, inner]))), "a child has another parent")
    _require(live.nodes().size == max(2 * n - 1, 0), "not all nodes hang below the root")
    _check_free_list(tree, int(tree.state[FREE_LEAF]), 0, leaf_top - n)
    _check_free_list(tree, int(tree.state[FREE_INNER]), 1, inner_top - inner.size)


def _check_free_list(tree: Tree, u: int, parity: int, expected: int) -> None:
    count = 0
    while u != NULL and count <= expected:
        _require(0 <= u < tree.parent.size and u % 2 == parity, "a list of free nodes leaves the tree")
        _require(int(tree.parent[u]) <= FREE, "a free node hangs in the tree")
        u = FREE - int(tree.parent[u]) - 1
        count += 1
    _require(count == expected, f"{count} nodes are free, but {expected} should be")


def check_worklist(live: LiveTree) -> None:
    """Each node waits at most once, and the marks say which. O(n)."""
    pending = live.work.stack[: live.work.state[PENDING]]
    _require(bool(np.all(pending % 2 == 1)), "a leaf waits for a check")
    marked = np.flatnonzero(live.work.mark)
    _require(bool(np.array_equal(np.sort(pending), marked)), "the worklist and its marks differ")
    _require(bool(np.all(live.work.mark[marked] == QUEUED)), "statistics are still stale")


def check_statistics(live: LiveTree) -> None:
    """Size, mean, variance and birth of each node, computed from its members by definition. O(n m depth)."""
    tree = live.tree
    order = live.nodes()
    leaves = order[order % 2 == 0]
    place = {int(leaf): i for i, leaf in enumerate(leaves)}
    x = tree.mean[leaves].astype(np.float64)
    w = tree.size[leaves]
    tolerance = 100 * float(np.finfo(live.dtype).eps) * np.sqrt(max(live.n_points, 1))
    _require(bool(np.all(w > 0) and np.all(tree.variance[leaves] == 0)), "a leaf has no weight, or a variance")
    first: dict[int, int] = {}
    stop: dict[int, int] = {}
    for u in order.tolist():
        if u % 2 == 0:
            first[u], stop[u] = place[u], place[u] + 1
            continue
        children = int(tree.left[u]), int(tree.right[u])
        first[u], stop[u] = min(first[v] for v in children), max(stop[v] for v in children)
        members = slice(first[u], stop[u])
        _compare(live, u, x[members], w[members], tolerance)
        _require(
            int(tree.birth[u]) == int(tree.birth[leaves[members]].min()),
            f"the birth of node {u} is not the smallest of its members",
        )


def check_points(live: LiveTree) -> None:
    """The coordinates are finite and the weights positive. O(n m)."""
    nodes = live.nodes()
    _require(bool(np.all(np.isfinite(live.tree.mean[nodes]))), "a coordinate is not finite")
    _require(bool(np.all(live.tree.size[nodes] > 0)), "a weight is not positive")


def check_keys(live: LiveTree, leaves: NDArray[np.int32]) -> None:
    """The keys stand for all leaves, in the order of their births. O(n log n)."""
    _require(bool(np.array_equal(np.sort(leaves), np.sort(live.leaves()))), "keys and leaves differ")
    _require(bool(np.all(np.diff(live.tree.birth[leaves]) > 0)), "the keys are not in order of birth")


def _compare(live: LiveTree, u: int, x: NDArray[np.float64], w: NDArray[np.float64], tolerance: float) -> None:
    """The statistics of node `u` beside those of its members `x` with weights `w`."""
    tree = live.tree
    share = w / w.sum()
    mean = share @ x
    # Far from the origin, rounding of the coordinates themselves decides how exact a mean and a variance can be.
    length = float(np.sqrt((x * x).sum(axis=1).max()))
    spread = share @ ((x - mean) ** 2).sum(axis=1)
    off_mean = float(np.sqrt(((tree.mean[u] - mean) ** 2).sum()))
    off_variance = abs(float(tree.variance[u]) - spread)
    noise = tolerance * length
    _require(bool(np.isclose(tree.size[u], w.sum(), rtol=1e-12)), f"the size of node {u} is not that of its members")
    _require(off_mean <= noise, f"the mean of node {u} is off by {off_mean}")
    _require(
        off_variance <= tolerance * spread + 2 * noise * np.sqrt(spread) + noise * noise + VANISHING,
        f"the variance of node {u} is off by {off_variance}",
    )


def _require(condition: bool, what: str) -> None:
    if not condition:
        raise InvariantError(what)
