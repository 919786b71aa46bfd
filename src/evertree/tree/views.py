"""Reading a tree: heights, SciPy's matrix, flat clusters, the induced ultrametric. None of it changes the tree."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evertree import kernels
from evertree.errors import ParameterError
from evertree.kernels.columns import NOISE, NULL
from evertree.tree.base import LiveTree
from evertree.tree.parallel.threads import Threads

#: Merges tie, for a cut that does not see the whole tree, up to this many times the tolerance of its values.
_CLEAR_OF_TIES = 8.0


@dataclass(frozen=True)
class Merges:
    """The inner nodes from the lowest to the highest, children before parents: the merges of a dendrogram."""

    nodes: NDArray[np.int32]  # all nodes, children first
    inner: NDArray[np.int32]  # the inner nodes in order of height
    height: NDArray[np.float64]  # by node, in SciPy's units


def find_merges(live: LiveTree, monotone: bool = True) -> Merges:
    """Heights, made monotone by a running maximum, and the order of merges that they give. O(n m + n log n).

    Without that, children may come after parents.
    """
    nodes = live.nodes()
    inner = _inner_of(nodes)
    height = _heights(live, nodes, inner, monotone)
    # Stable: at equal heights children stay before parents.
    return Merges(nodes, inner[np.argsort(height[inner], kind="stable")], height)


def _inner_of(nodes: NDArray[np.int32]) -> NDArray[np.int32]:
    """The inner nodes. They are scattered among leaves at random, which makes a mask slow: it branches."""
    return nodes[np.flatnonzero(nodes & 1)]


def _heights(
    live: LiveTree, nodes: NDArray[np.int32], inner: NDArray[np.int32], monotone: bool = True
) -> NDArray[np.float64]:
    """The height of each node, in SciPy's units; `nodes` are all nodes, children first, and `inner` the inner ones."""
    height = np.zeros(live.tree.parent.size)
    height[inner] = live.scheme.height(live.linkage_values(inner))
    if monotone:
        kernels.shared.heights.make_monotone(live.tree, nodes, height)
    return height


def monotone_heights(live: LiveTree, nodes: NDArray[np.int32]) -> NDArray[np.float64]:
    """The height of each node in SciPy's units, made monotone; `nodes` are all nodes, children first. O(n m)."""
    return _heights(live, nodes, _inner_of(nodes))


def linkage_matrix(live: LiveTree, leaves: NDArray[np.int32]) -> NDArray[np.float64]:
    """SciPy's Z, in which leaf i is ``leaves[i]``."""
    merges = find_merges(live)
    n, inner = leaves.size, merges.inner
    number = np.empty(live.tree.parent.size, np.int64)
    number[leaves] = np.arange(n)
    number[inner] = n + np.arange(inner.size)
    pairs = np.sort(np.column_stack([number[live.tree.left[inner]], number[live.tree.right[inner]]]), axis=1)
    _, first, stop = spans(live, merges.nodes)
    return np.column_stack([pairs, merges.height[inner], stop[inner] - first[inner]]).astype(np.float64)


@dataclass(frozen=True)
class Top:
    """The last merges of a tree, and the clusters that they merge, leaves first, then by height."""

    Z: NDArray[np.float64]  # (k - 1, 4), a linkage matrix in which leaf i is nodes[i]; sizes are numbers of clusters
    nodes: NDArray[np.int32]  # (k,)
    size: NDArray[np.int64]  # (k,) points below each
    height: NDArray[np.float64]  # (k,) in SciPy's units


def find_top(live: LiveTree, n_shown: int) -> Top:
    """The top of a tree from the root down; the rest of it is only read to count points.

    In a monotone tree these are the last rows of `linkage_matrix`. Otherwise heights are made monotone within the top.
    """
    if live.n_points == 0:
        return Top(np.empty((0, 4)), np.empty(0, np.int32), np.empty(0, np.int64), np.empty(0))
    undone: list[int] = []
    height: dict[int, float] = {}
    waiting: list[tuple[float, int]] = []
    leaves: list[int] = []

    def note(*nodes: int) -> None:
        values = live.scheme.height(live.linkage_values(np.array(nodes, np.int32)))
        for u, value in zip(nodes, values.tolist(), strict=True):
            height[u] = value if u & 1 else 0.0
            if u & 1:
                heapq.heappush(waiting, (-height[u], u))
            else:
                leaves.append(u)

    note(live.root)
    while waiting and len(undone) + 1 < n_shown:
        u = heapq.heappop(waiting)[1]
        undone.append(u)
        note(int(live.tree.left[u]), int(live.tree.right[u]))
    undone.reverse()
    bottom = sorted(leaves, key=lambda u: live.tree.birth[u]) + [u for _, u in sorted(waiting, reverse=True)]
    number = {u: i for i, u in enumerate(bottom + undone)}
    pairs = [sorted((number[int(live.tree.left[u])], number[int(live.tree.right[u])])) for u in undone]
    n_below = [1] * len(bottom)
    for left, right in pairs:
        n_below.append(n_below[left] + n_below[right])
    merged = np.maximum.accumulate(np.array([height[u] for u in undone]))
    return Top(
        Z=np.column_stack([np.array(pairs).reshape(-1, 2), merged, n_below[len(bottom) :]]).astype(np.float64),
        nodes=np.array(bottom, np.int32),
        size=np.array([(live.nodes(u).size + 1) // 2 for u in bottom]),
        height=np.array([height[u] for u in bottom]),
    )


def cut(
    live: LiveTree, leaves: NDArray[np.int32], n_clusters: int | None, height: float | None, min_size: int
) -> NDArray[np.int64]:
    """The cluster of each of `leaves`, numbered by first appearance; NOISE for those in pieces below `min_size`.

    All merges above a height are undone; or the highest merges of two clusters of at least `min_size` points each, so
    that there are `n_clusters` such clusters. `leaves` are all leaves, the oldest first. O(n): no sort.
    """
    tops = _find_tops(live, n_clusters, height, 0.0) if min_size == 1 else None
    if tops is not None:
        labels = _labels_below(live, tops, leaves)
        if labels is not None:
            return labels
    return _cut_any_tree(live, leaves, n_clusters, height, min_size)


#: From so many points on, threads share the labelling; the largest clusters are divided into so many pieces a thread.
_FEWEST_TO_SHARE, _PIECES_PER_THREAD = 100_000, 16


def _labels_below(live: LiveTree, tops: NDArray[np.int32], leaves: NDArray[np.int32]) -> NDArray[np.int64] | None:
    """The position among `tops` of the one above each leaf; None if a node below them is lower than its child. O(n)."""
    by_row, labels = np.empty(live.capacity, np.int64), np.empty(leaves.size, np.int64)
    n_threads = live.aim.n_threads or 1
    if n_threads == 1 or leaves.size < _FEWEST_TO_SHARE:
        numbers, stack = np.arange(tops.size, dtype=np.int32), np.empty(leaves.size + 1, np.int32)
        is_monotone = kernels.shared.cut.label_below(live.tree, tops, numbers, stack, by_row)
        return by_row[leaves >> 1] if is_monotone else None
    divided = _divided(live, tops, _PIECES_PER_THREAD * n_threads)
    if divided is None:
        return None
    pieces, numbers = divided
    is_monotone_below = np.zeros(pieces.size, np.bool_)
    with Threads(n_threads) as threads:

        def label(k: int, stack: NDArray[np.int32]) -> None:
            some = slice(k, k + 1)
            is_monotone_below[k] = kernels.shared.cut.label_below(live.tree, pieces[some], numbers[some], stack, by_row)

        def gather(some: slice) -> None:
            labels[some] = by_row[leaves[some] >> 1]

        stacks = threads.helpers(lambda: np.empty(leaves.size + 1, np.int32))
        threads.each_with_helper(label, range(pieces.size), stacks)
        threads.each(gather, threads.slices(leaves.size))
    return labels if is_monotone_below.all() else None


def _divided(live: LiveTree, tops: NDArray[np.int32], most: int) -> tuple[NDArray[np.int32], NDArray[np.int32]] | None:
    """Some nodes, the heaviest of which are divided until there are `most`, and the position of the top of each.

    The heaviest come first. None if a node above them is lower than its child.
    """
    tree = live.tree
    heap = [(-float(tree.size[u]), number, u) for number, u in enumerate(tops.tolist())]
    heapq.heapify(heap)
    while len(heap) < most and heap[0][2] % 2:
        _, number, u = heapq.heappop(heap)
        for child in (int(tree.left[u]), int(tree.right[u])):
            if tree.height[child] > tree.height[u]:
                return None
            heapq.heappush(heap, (-float(tree.size[child]), number, child))
    heap.sort()
    return np.array([u for *_, u in heap], np.int32), np.array([number for _, number, _ in heap], np.int32)


#: Some leaves climb to these many clusters, or this share of the points.
_FEW_CLUSTERS, _FEWEST_SHARE = 100, 1 / 64


def cut_some(
    live: LiveTree, leaves: NDArray[np.int32], n_clusters: int | None, height: float | None
) -> list[int] | None:
    """The cluster of each of some leaves, as `cut` numbers it, by climbing. O(k log k) for k clusters, and O(depth).

    None if that cannot be told without the rest of the tree: it may not be monotone, or merges tie. Or if there are so
    many clusters that `cut` is faster.
    """
    if not live.aim.is_stable or live.n_pending or live.n_guarded or live.has_threads:
        return None
    if n_clusters is not None and n_clusters > max(_FEW_CLUSTERS, _FEWEST_SHARE * live.n_points):
        return None
    tops = _find_tops(live, n_clusters, height, _CLEAR_OF_TIES * live.tag.tolerance)
    if tops is None:
        return None
    number = {u: k for k, u in enumerate(tops.tolist())}
    parent, found = live.quick.parent, []
    for u in leaves.tolist():
        while u not in number:
            u = parent[u]
        found.append(number[u])
    return found


def _find_tops(live: LiveTree, n_clusters: int | None, height: float | None, margin: float) -> NDArray[np.int32] | None:
    """The nodes that are the clusters of a cut of a monotone tree, that with the oldest point first. O(k log k).

    None if the last merge that is undone and the first that is not are as high, up to a margin: which is undone depends
    on their order then. Or if the tree turns out not to be monotone.
    """
    n = live.n_points
    most = n - 1 if n_clusters is None else n_clusters - 1
    limit = -1.0 if height is None else _highest_within(live, height)
    room = min(most, n - 1) + 2
    heap, leaves = np.empty(room, np.int32), np.empty(room, np.int32)
    n_inner, n_leaves, last = kernels.shared.cut.split_highest(live.tree, most, limit, heap, leaves)
    if n_inner < 0:
        return None
    undone = np.inf if last == NULL else live.scheme.height_of_one(live.tree.height[last])
    left = live.scheme.height_of_one(live.tree.height[heap[0]]) if n_inner else 0.0
    if height is None:
        if n_inner and left >= undone * (1.0 - margin):
            return None
    elif margin and (left >= height * (1.0 - margin) or undone <= height * (1.0 + margin)):
        return None
    tops = np.concatenate([heap[:n_inner], leaves[:n_leaves]])
    found: NDArray[np.int32] = tops[np.argsort(live.tree.birth[tops])]
    return found


def _highest_within(live: LiveTree, height: float) -> float:
    """The largest linkage value in coordinates whose height, in SciPy's units, is within `height`: by bisection.

    If that of the root is, it is infinite.
    """
    value, height_of = np.array([0.0, 0.0, live.tree.height[live.root]]), live.scheme.height_of_one
    if height_of(value[2]) <= height:
        return float(np.inf)
    bits = value.view(np.int64)  # they have the order of the values
    while bits[2] - bits[0] > 1:
        bits[1] = bits[0] + (bits[2] - bits[0]) // 2
        bits[0 if height_of(value[1]) <= height else 2] = bits[1]
    return float(value[0])


def _cut_any_tree(
    live: LiveTree, leaves: NDArray[np.int32], n_clusters: int | None, height: float | None, min_size: int
) -> NDArray[np.int64]:
    """`cut` of a tree that need not be monotone: heights are made so."""
    nodes = live.nodes()
    inner = _inner_of(nodes)
    node_height = _heights(live, nodes, inner)
    is_split = np.zeros(live.tree.parent.size, np.bool_)
    if height is not None:
        is_split[inner[node_height[inner] > height]] = True
    else:
        assert n_clusters is not None
        candidates = inner if min_size == 1 else _merges_of_large(live, nodes, inner, min_size)
        most = candidates.size + 1 if leaves.size >= min_size else 0
        if n_clusters > most:
            raise ParameterError(
                f"n_clusters must be at most {most}, as many as have {min_size} points or more; it is {n_clusters}"
            )
        is_split[candidates[_last_of_largest(node_height[candidates], n_clusters - 1)]] = True
        kernels.shared.cut.split_above(live.tree, nodes, is_split)
    return _labels(live, leaves, nodes, is_split, min_size)


def count_large(live: LiveTree, min_size: int) -> int:
    """How many disjoint clusters of at least `min_size` points there are at most. O(n)."""
    nodes = live.nodes()
    n_merges = _merges_of_large(live, nodes, _inner_of(nodes), min_size).size
    return n_merges + 1 if live.n_points >= min_size else 0


def _merges_of_large(
    live: LiveTree, nodes: NDArray[np.int32], inner: NDArray[np.int32], min_size: int
) -> NDArray[np.int32]:
    """The inner nodes both of whose children have at least `min_size` points."""
    _, first, stop = spans(live, nodes)
    count = stop - first
    return inner[np.minimum(count[live.tree.left[inner]], count[live.tree.right[inner]]) >= min_size]


def _last_of_largest(values: NDArray[np.float64], count: int) -> NDArray[np.intp]:
    """Positions of the `count` largest values: of equal ones the last, as at the end of a stable sort. O(n)."""
    if count == 0:
        return np.empty(0, np.intp)
    least = np.partition(values, values.size - count)[values.size - count]
    larger, equal = np.flatnonzero(values > least), np.flatnonzero(values == least)
    return np.concatenate([larger, equal[equal.size + larger.size - count :]])


def _labels(
    live: LiveTree, leaves: NDArray[np.int32], nodes: NDArray[np.int32], is_split: NDArray[np.bool_], min_size: int
) -> NDArray[np.int64]:
    """The number of the topmost node above each of `leaves` that no split divides.

    In postorder the leaves below a node are contiguous, and the node comes after them and before those of the next.
    """
    split = np.flatnonzero(is_split)
    below = np.concatenate([live.tree.left[split], live.tree.right[split]]) if split.size else np.array([live.root])
    is_top = np.zeros(is_split.size, np.bool_)
    is_top[below[~is_split[below]]] = True
    places, places_of_leaves = np.flatnonzero(is_top[nodes]), np.flatnonzero((nodes & 1) == 0)
    tops = nodes[places]
    count = np.diff(np.searchsorted(places_of_leaves, places, side="right"), prepend=0)
    # Leaves are sorted oldest first, so the cluster that appears first is the one with the oldest point.
    by_age = np.argsort(live.tree.birth[tops])
    by_age = by_age[count[by_age] >= min_size]
    number = np.full(tops.size, NOISE, np.int64)
    number[by_age] = np.arange(by_age.size)
    by_row = np.empty(live.capacity, np.int64)
    by_row[nodes[places_of_leaves] >> 1] = np.repeat(number, count)
    return by_row[leaves >> 1]


def cophenetic(
    live: LiveTree, leaves: NDArray[np.int32], as_dissimilarity: bool = False, monotone: bool = True
) -> NDArray[np.float64]:
    """The height at which each pair of `leaves` meets, condensed. O(n²).

    Values not computed from pairs, such as Ward's, do not have the units of the dissimilarity. `as_dissimilarity`
    replaces them by those of average linkage, as in the paper: the matrix U of its section 5.2.
    """
    n = leaves.size
    merges = find_merges(live, monotone)
    condensed = np.empty(n * (n - 1) // 2)
    if n < 2:
        return condensed
    ordered, first, stop = spans(live, merges.nodes)
    position = np.empty(live.tree.parent.size, np.int64)
    position[leaves] = np.arange(n)
    height = merges.height
    if as_dissimilarity and not live.scheme.linkage.from_pairs:
        d = live.dissimilarities(leaves)
        kernels.shared.cophenetic.average_heights(live.tree, merges.inner, first, stop, ordered, position, d, height)
        if monotone:
            kernels.shared.heights.make_monotone(live.tree, merges.nodes, height)
    kernels.shared.cophenetic.spread_heights(live.tree, merges.inner, first, stop, ordered, position, height, condensed)
    return condensed


def count_leaves(live: LiveTree) -> NDArray[np.int32]:
    """The number of points below each node, by node. O(n)."""
    _, first, stop = spans(live, live.nodes())
    return stop - first


def purity(live: LiveTree, leaves: NDArray[np.int32], classes: NDArray[np.int64]) -> float:
    """Dendrogram purity for the given class numbers of `leaves`. O(n log n)."""
    nodes = live.nodes()
    ordered, first, stop = spans(live, nodes)
    class_of = np.empty(live.tree.parent.size, np.int64)
    class_of[leaves] = classes
    counts = np.bincount(classes)
    n_pairs = float((counts * (counts - 1.0) / 2).sum())
    if n_pairs == 0:
        return 1.0
    zeros = np.zeros_like(counts)
    total = kernels.shared.purity.sum_purity(live.tree, nodes, first, stop, class_of[ordered], zeros, zeros.copy())
    return float(total) / n_pairs


def spans(live: LiveTree, nodes: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """All leaves in postorder, and for each node where those below it begin and end."""
    leaves = np.empty((nodes.size + 1) // 2, np.int32)
    first = np.empty(live.tree.parent.size, np.int32)
    stop = np.empty(live.tree.parent.size, np.int32)
    kernels.shared.traverse.find_spans(live.tree, nodes, leaves, first, stop)
    return leaves, first, stop
