"""The invariants of a tree, and checks of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertree import kernels
from evertree.errors import InvariantError
from evertree.kernels.columns import (
    FREE,
    LEFT_IS_EXACT,
    LOST,
    NULL,
    QUEUED,
    RIGHT_IS_EXACT,
    TO_FIND,
    MeanTree,
    PairTree,
    Worklist,
)
from evertree.tree.base import LiveTree
from evertree.tree.pairwise import PairLiveTree
from evertree.tree.statistics import MeanLiveTree

#: Squares below this have lost their digits.
VANISHING = 1e-300

#: Nodes that are compared with their children at once.
_AT_ONCE = 1 << 14

#: Number of members with which the radius of a node is compared, if not with all.
_SAMPLE = 16

#: Nodes are compared with their members if these are few, or this many times those of the last such node below.
_FEW_MEMBERS, _MANY_MORE = 256, 1.1

#: How far a mean of dissimilarities may drift over many edits, relative to it.
DRIFT = 1e-10


def check_all_but_statistics(live: LiveTree, leaves: NDArray[np.int32]) -> None:
    """Check all that can be checked without the members of each node. `leaves` are those of the keys.

    O(n m + n log n), and O(n²) for stored dissimilarities.
    """
    check_shape(live)
    check_worklist(live)
    check_search(live)
    check_points(live)
    check_keys(live, leaves)


def check_shape(live: LiveTree) -> None:
    """Parents and children agree, there is one root, all nodes are below it or on a list of free nodes. O(n)."""
    tree = live.tree
    n = live.n_points
    leaf_top, inner_top = int(tree.state["leaf_top"][0]), int(tree.state["inner_top"][0])
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
    _check_free_list(tree, int(tree.state["free_leaf"][0]), 0, leaf_top - n)
    _check_free_list(tree, int(tree.state["free_inner"][0]), 1, inner_top - inner.size)


def _check_free_list(tree: MeanTree | PairTree, u: int, parity: int, expected: int) -> None:
    count = 0
    while u != NULL and count <= expected:
        _require(0 <= u < tree.parent.size and u % 2 == parity, "a list of free nodes leaves the tree")
        _require(int(tree.parent[u]) <= FREE, "a free node hangs in the tree")
        u = FREE - int(tree.parent[u]) - 1
        count += 1
    _require(count == expected, f"{count} nodes are free, but {expected} should be")


def check_worklist(live: LiveTree) -> None:
    """Each node waits at most once, and the marks say which. O(n)."""
    pending = live.work.stack[: live.work.state["pending"][0]]
    _require(bool(np.all(pending % 2 == 1)), "a leaf waits for a check")
    _require(bool(np.all(pending >> 1 < live.tree.state["inner_top"][0])), "a node waits that never was in the tree")
    marked = np.flatnonzero(live.work.mark)
    _require(bool(np.array_equal(np.sort(pending), marked)), "the worklist and its marks differ")
    _require(bool(np.all(live.work.mark[marked] == QUEUED)), "statistics are still stale")


def check_search(live: LiveTree) -> None:
    """The numbers of due nodes and unfinished lists are right, and lists hold leaves. O(n)."""
    work, search = live.work, live.search
    due, waiting = np.flatnonzero(work.due), 2 * np.flatnonzero(search.fresh)
    _require(due.size == int(work.state["due"][0]), "not as many nodes are due as counted")
    recent = search.recent
    is_listed = recent[0] == LOST or bool(np.isin(waiting >> 1, recent[1 : recent[0] + 1]).all())
    _require(is_listed, "a list that waits is not listed")
    _require(_is_queue(work, due), "the queue does not have the nodes that are due")
    top = np.array([live.tree.state["leaf_top"][0], live.tree.state["inner_top"][0]])
    _require(bool(np.all(due >> 1 < top[due & 1])), "a node is due that never was in the tree")
    _require(bool(np.all(waiting >> 1 < top[0])), "a list waits whose leaf never was in the tree")
    _require(
        int(search.fresh.sum(dtype=np.int64)) == int(search.state["fresh"][0]), "not as many lists wait as counted"
    )
    _require(bool(np.all(search.fresh <= TO_FIND)), "a list waits for too many steps")
    near = search.near
    _require(bool(np.all((near >= NULL) & ((near % 2 == 0) | (near == NULL)))), "a list holds no leaf")
    _require(bool(np.all(near < 2 * top[0])), "a list holds a leaf that never was in the tree")
    _require(search.fresh.size in (0, live.capacity), "there are not as many lists as points")


def _is_queue(work: Worklist, due: NDArray[np.intp]) -> bool:
    """Whether the lists of all levels hold just these nodes, on their levels. O(n)."""
    found: list[int] = []
    for level in np.flatnonzero(work.first != NULL).tolist():
        before, u = NULL, int(work.first[level])
        while u != NULL and len(found) <= due.size:
            if work.earlier[u] != before or work.level[u] != level or level < work.state["lowest"][0]:
                return False
            found.append(u)
            before, u = u, int(work.later[u])
    return sorted(found) == due.tolist()


def check_statistics(live: LiveTree) -> None:
    """The columns of each node agree with its members, by definition. O(n m log n), O(n² depth) for pairs.

    On long paths, where consecutive nodes have almost the same members, most are compared only with their children, and
    their radius with some members.
    """
    tree = live.tree
    order = live.nodes()
    leaves = order[order % 2 == 0]
    members = _stretches(tree, order, leaves)
    compared = members if isinstance(live, PairLiveTree) else _some_on_each_path(tree, members)
    for u, stretch in compared.items():
        if u % 2 == 0:
            continue
        below = leaves[stretch]
        _require(
            bool(np.isclose(tree.size[u], tree.size[below].sum(), rtol=1e-12)),
            f"the size of node {u} is not that of its members",
        )
        _require(
            int(tree.birth[u]) == int(tree.birth[below].min()),
            f"the birth of node {u} is not the smallest of its members",
        )
    if isinstance(live, MeanLiveTree):
        x = tree.mean[leaves].astype(np.float64)
        _check_means(live, leaves, x, compared)
        _check_radii(live, x, {u: members[u] for u in members.keys() - compared.keys()})
        _check_sketches(live, members)
    elif isinstance(live, PairLiveTree):
        _check_pairs(live, leaves, members)
    check_unions(live)


def _stretches(tree: MeanTree | PairTree, order: NDArray[np.int32], leaves: NDArray[np.int32]) -> dict[int, slice]:
    """The members of each node, as a range of the leaves in tree order. O(n)."""
    members = {int(leaf): slice(i, i + 1) for i, leaf in enumerate(leaves)}
    for u in order[order % 2 == 1].tolist():
        a, b = members[int(tree.left[u])], members[int(tree.right[u])]
        members[u] = slice(min(a.start, b.start), max(a.stop, b.stop))
    return members


def _some_on_each_path(tree: MeanTree | PairTree, members: Mapping[int, slice]) -> dict[int, slice]:
    """Nodes with their members, O(n log n) in total: the small ones, and above them those with many more."""
    some: dict[int, slice] = {}
    last: dict[int, int] = {}
    for u, stretch in members.items():
        n = stretch.stop - stretch.start
        below = 0 if u % 2 == 0 else max(last[int(tree.left[u])], last[int(tree.right[u])])
        if n <= _FEW_MEMBERS or n >= _MANY_MORE * below or int(tree.parent[u]) == NULL:
            some[u], below = stretch, n
        last[u] = below
    return some


def _check_means(
    live: MeanLiveTree, leaves: NDArray[np.int32], x: NDArray[np.float64], members: Mapping[int, slice]
) -> None:
    """Statistics of nodes are those of their members, among the points `x` of all leaves."""
    tree, w = live.tree, live.tree.size[leaves]
    tolerance = _tolerance(live)
    _require(bool(np.all(tree.variance[leaves] == 0)), "a leaf has a variance")
    _require(bool(np.all(tree.height[leaves] == 0) and np.all(tree.radius[leaves] == 0)), "a leaf has a height")
    for u, below in members.items():
        if u % 2 == 1:
            _compare(live, u, x[below], w[below], tolerance)
            _compare_height(live, u, x[below], tolerance)


def _check_radii(live: MeanLiveTree, x: NDArray[np.float64], members: Mapping[int, slice]) -> None:
    """Some members of each node, the first and the last among them, are within its radius. O(m) per node."""
    nodes = np.fromiter(members, np.int32, len(members))
    first = np.array([stretch.start for stretch in members.values()], np.int64)
    last = np.array([stretch.stop - 1 for stretch in members.values()], np.int64)
    noise = _tolerance(live) * float(np.sqrt((x * x).sum(axis=1).max(initial=0.0)))
    for start in range(0, nodes.size, _AT_ONCE // _SAMPLE):
        some = slice(start, start + _AT_ONCE // _SAMPLE)
        places = np.linspace(first[some], last[some], _SAMPLE).astype(np.int64)
        distance = np.sqrt(((x[places] - live.tree.mean[nodes[some]]) ** 2).sum(axis=-1)).max(axis=0)
        outside = nodes[some][distance > live.tree.radius[nodes[some]] * (1 + 1e-9) + noise]
        if outside.size:
            raise InvariantError(f"a member of node {outside[0]} is outside its radius")


def _check_sketches(live: MeanLiveTree, members: Mapping[int, slice]) -> None:
    """No sketch is farther from what its mean is along the directions than its slip says. O(m) for each of both."""
    sketch = live.tree.sketch
    if not len(sketch.direction):
        return
    nodes = np.fromiter(members, np.int32, len(members))
    nodes = nodes[np.isfinite(sketch.slip[nodes])]
    off = live.tree.mean[nodes].astype(np.float64) @ sketch.direction.T - sketch.value[nodes]
    outside = nodes[np.sqrt((off**2).sum(axis=1)) > sketch.slip[nodes]]
    if outside.size:
        raise InvariantError(f"the sketch of node {outside[0]} is not that of its mean")


def _check_pairs(live: PairLiveTree, leaves: NDArray[np.int32], members: Mapping[int, slice]) -> None:
    """Heights are linkages, and cross values bounds on them."""
    from scipy.spatial.distance import squareform

    tree, w = live.tree, live.tree.size[leaves]
    condensed = live.dissimilarities(leaves)
    d = squareform(condensed) if condensed.size else np.zeros((leaves.size, leaves.size))
    _require(bool(np.all(tree.height[leaves] == 0)), "a leaf has a height")

    place = np.zeros(tree.parent.size, np.intp)
    place[leaves] = np.arange(leaves.size)

    def zeta(u: int, v: int) -> float:
        return float(live.scheme.linkage.definition(d, w, members[u], members[v]))

    for u in members:
        if u % 2 == 0:
            continue
        children, p = (int(tree.left[u]), int(tree.right[u])), int(tree.parent[u])
        height = zeta(*children)
        _require(
            bool(np.isclose(tree.height[u], height, rtol=DRIFT, atol=0)),
            f"the height of node {u} is {tree.height[u]}, and not {height}",
        )
        if live.scheme.linkage.has_centers and tree.center[u] != NULL:
            _require(
                bool(np.isclose(d[place[tree.center[u]], members[u]].max(), height, rtol=DRIFT, atol=0)),
                f"the center of node {u} is farther from a member than another would be",
            )
        if p == NULL:
            continue
        sibling = int(tree.right[p] if tree.left[p] == u else tree.left[p])
        for child, known, bit in zip(
            children, (tree.cross_left[u], tree.cross_right[u]), (LEFT_IS_EXACT, RIGHT_IS_EXACT), strict=True
        ):
            value = zeta(child, sibling)
            _require(known <= value + DRIFT * value, f"a cross value of node {u} is {value}, and not at least {known}")
            _require(
                not tree.exact[u] & bit or bool(np.isclose(known, value, rtol=DRIFT, atol=0)),
                f"a cross value of node {u} is {value}, and not {known}",
            )


def _compare_height(live: MeanLiveTree, u: int, x: NDArray[np.float64], tolerance: float) -> None:
    """Compare the height of node `u` with the linkage of its children, and its radius with its members `x`."""
    tree = live.tree
    a, b = int(tree.left[u]), int(tree.right[u])
    sq_dist = float(((tree.mean[a].astype(np.float64) - tree.mean[b]) ** 2).sum())
    height = _height_of_union(live, a, b, sq_dist)
    noise = tolerance * float(np.sqrt((x * x).sum(axis=1).max()))
    off = abs(float(tree.height[u]) - height)
    far = (2 * np.sqrt(sq_dist) + noise) * noise * max(1.0, min(tree.size[a], tree.size[b]))
    _require(bool(off <= 1e-9 * height + far + VANISHING), f"the height of node {u} is off by {off}")
    radius = float(np.sqrt(((x - tree.mean[u]) ** 2).sum(axis=1).max()))
    _require(radius <= tree.radius[u] * (1 + 1e-9) + noise, f"a member of node {u} is outside its radius")


def _height_of_union(live: MeanLiveTree, a: Any, b: Any, sq_dist: Any) -> Any:
    """ζ between nodes, or between several nodes and another, from the squared distance between their means."""
    size, variance = live.tree.size, live.tree.variance
    return kernels.shared.linkage_values.value_of_means(live.tag, size[a], variance[a], size[b], variance[b], sq_dist)


def check_points(live: LiveTree) -> None:
    """Coordinates, dissimilarities and heights are finite and the weights positive. O(n m), or O(n²) if stored."""
    nodes = live.nodes()
    _require(bool(np.all(live.tree.size[nodes] > 0)), "a weight is not positive")
    if isinstance(live, MeanLiveTree):
        _require(bool(np.all(np.isfinite(live.tree.mean[nodes]))), "a coordinate is not finite")
    elif isinstance(live, PairLiveTree):
        leaves, height = live.leaves(), live.tree.height[nodes]
        x = live.tree.pairs.x
        if live.stores_dissimilarities:
            rows = np.sort(leaves >> 1).astype(np.int64)
            i, j = np.tril_indices(rows.size, -1)
            stored = x[0, rows[i] * (rows[i] - 1) // 2 + rows[j]]
            _require(bool(np.all((stored >= 0) & (stored < np.inf))), "a dissimilarity is negative or not finite")
        else:
            _require(bool(np.all(np.isfinite(x[leaves >> 1]))), "a coordinate is not finite")
        _require(bool(np.all((height >= 0) & (height < np.inf))), "a height is negative or not finite")


def check_unions(live: LiveTree) -> None:
    """The columns of each node follow from its children, where this can be checked without the members. O(n m)."""
    with np.errstate(over="ignore", invalid="ignore"):  # overflow is rejected below
        _check_unions(live, live.nodes())


def _check_unions(live: LiveTree, nodes: NDArray[np.int32]) -> None:
    tree = live.tree
    leaves, inner = nodes[nodes % 2 == 0], nodes[nodes % 2 == 1]
    a, b = tree.left[inner], tree.right[inner]
    sums = tree.size[a] + tree.size[b]
    _require(bool(np.all(np.abs(tree.size[inner] - sums) <= 1e-9 * sums)), "a size is not that of both children")
    _require(
        bool(np.array_equal(tree.birth[inner], np.minimum(tree.birth[a], tree.birth[b]))),
        "a birth is not that of the older child",
    )
    _require(bool(np.all(tree.height[leaves] == 0)), "a leaf has a height")
    if isinstance(live, MeanLiveTree):
        _require(bool(np.all((tree.variance[leaves] == 0) & (tree.radius[leaves] == 0))), "a leaf has a variance")
        for column in (tree.variance, tree.height, tree.radius):
            _require(bool(np.all((column[inner] >= 0) & (column[inner] < np.inf))), "a statistic is no number")
        length = float(np.sqrt((tree.mean[leaves].astype(np.float64) ** 2).sum(axis=1).max(initial=0.0)))
        for start in range(0, inner.size, _AT_ONCE):
            _check_means_of_unions(live, inner[start : start + _AT_ONCE], length)
    else:
        for column in (tree.cross_left, tree.cross_right, tree.error, tree.error_left, tree.error_right):
            _require(not np.isnan(column[inner]).any(), "a bound is no number")
        _require(bool(np.all(tree.exact[inner] <= LEFT_IS_EXACT + RIGHT_IS_EXACT)), "a bound is of no known kind")
        if live.scheme.linkage.has_centers:
            _require(bool(np.all(np.isin(tree.center[inner], np.append(leaves, NULL)))), "a center is no point")


def _check_means_of_unions(live: MeanLiveTree, inner: NDArray[np.int32], length: float) -> None:
    """Compare means and variances of nodes with those of their children; no point is farther than `length` from 0.

    Moves do not recompute a union when its parts change, so rounding is that of sums over its members.
    """
    tree, a, b = live.tree, live.tree.left[inner], live.tree.right[inner]
    mean_a, mean_b = tree.mean[a].astype(np.float64), tree.mean[b].astype(np.float64)
    # One of them may be all but 0, so it is not what the other leaves.
    share_a, share_b = (tree.size[child] / (tree.size[a] + tree.size[b]) for child in (a, b))
    noise = _tolerance(live) * length
    off = np.abs(tree.mean[inner] - (mean_a + share_b[:, None] * (mean_b - mean_a))).max(axis=1)
    _require(bool(np.all(off <= noise)), "a mean is not that of both children")
    sq_dist = ((mean_a - mean_b) ** 2).sum(axis=1)
    spread = share_a * tree.variance[a] + share_b * tree.variance[b] + share_a * share_b * sq_dist
    most = _tolerance(live) * spread + 2 * noise * np.sqrt(spread) + noise * noise + VANISHING
    _require(bool(np.all(np.abs(tree.variance[inner] - spread) <= most)), "a variance is not that of both children")
    lighter = np.minimum(tree.size[a], tree.size[b])
    height = _height_of_union(live, a, b, sq_dist)
    most = 1e-9 * height + (2 * np.sqrt(sq_dist) + noise) * noise * np.maximum(1.0, lighter) + VANISHING
    _require(bool(np.all(np.abs(tree.height[inner] - height) <= most)), "a height is not that of both children")


def _tolerance(live: LiveTree) -> float:
    """How far a mean of all points may be off, relative to their length."""
    return 100 * float(np.finfo(live.dtype).eps) * float(np.sqrt(max(live.n_points, 1)))


def check_keys(live: LiveTree, leaves: NDArray[np.int32]) -> None:
    """The keys map to all leaves, in order of birth. O(n log n)."""
    _require(bool(np.array_equal(np.sort(leaves), np.sort(live.leaves()))), "keys and leaves differ")
    _require(bool(np.all(np.diff(live.tree.birth[leaves]) > 0)), "the keys are not in order of birth")


def _compare(live: MeanLiveTree, u: int, x: NDArray[np.float64], w: NDArray[np.float64], tolerance: float) -> None:
    """Compare the statistics of node `u` with those of its members `x` with weights `w`."""
    tree = live.tree
    share = w / w.sum()
    mean = share @ x
    # Far from the origin, rounding of the coordinates themselves limits the accuracy of means and variances.
    length = float(np.sqrt((x * x).sum(axis=1).max()))
    spread = share @ ((x - mean) ** 2).sum(axis=1)
    off_mean = float(np.sqrt(((tree.mean[u] - mean) ** 2).sum()))
    off_variance = abs(float(tree.variance[u]) - spread)
    noise = tolerance * length
    _require(off_mean <= noise, f"the mean of node {u} is off by {off_mean}")
    _require(
        off_variance <= tolerance * spread + 2 * noise * np.sqrt(spread) + noise * noise + VANISHING,
        f"the variance of node {u} is off by {off_variance}",
    )


def _require(condition: bool, what: str) -> None:
    if not condition:
        raise InvariantError(what)
