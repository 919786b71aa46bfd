"""The systems of `benchmarks.quality`, each measured in a process of its own, and the figures of the trees they make.

``python -m benchmarks.peers '{"data": "digits", "system": "evertree", "order": 0, "folder": "…"}'`` prints one
measurement as JSON. Peers are imported where they are used: one that is not installed fails alone.
"""

from __future__ import annotations

import ctypes
import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import evertree as et
from benchmarks import datasets

#: Subclusters of Birch: as many as betula-cluster keeps leaves, and on average four points or more in each. This is a
#: choice, and Birch's purity depends on it: with a subcluster for every point, what follows is batch Ward itself.
MOST_SUBCLUSTERS = 2_000
POINTS_A_SUBCLUSTER = 4

#: Sizes beyond which a system is not started: bytes of the distances, and points² × columns.
MOST_BYTES = 6e9
MOST_WORK = 1e12

#: Rows on which a system runs once before it is timed, and rows whose instability is looked at.
N_WARM = 1_000
N_SAMPLE = 500

#: Points that come one by one when a tree is there.
N_MORE = 20

#: How pure a tree over Gaussians is to be, and the time until then is measured.
GAUSSIAN_PURITY = 0.99


class Groups(NamedTuple):
    """A tree over groups of points: two points of one group meet in it."""

    merges: Callable[[], NDArray[np.float64]]  # SciPy's Z over the groups, some of which may be empty
    group: NDArray[np.int64]


class Built(NamedTuple):
    """What a system made of its points, and how long each part took."""

    tree: et.Hierarchy | NDArray[np.float64] | Groups
    seconds: dict[str, float]
    note: str = ""
    #: Takes in one more point and cuts the tree into ten clusters again; None where all is built anew for that.
    add: Callable[[NDArray[Any]], object] | None = None


class System(NamedTuple):
    """A way to build a tree, and what is known of it."""

    title: str
    build: Callable[..., Built]
    prepare: Callable[[NDArray[Any]], float] | None = None  # finds a parameter for `build`; not timed
    by_order: bool = False  # whether the tree depends on the order of the points
    is_quadratic: bool = False
    needs_matrix: bool = False
    most_columns: int | None = None
    keeps_float32: bool = False


def clock() -> Callable[[], float]:
    """A function that returns the seconds since it was last called."""
    last = time.perf_counter()

    def lap() -> float:
        nonlocal last
        before, last = last, time.perf_counter()
        return last - before

    return lap


def evertree(X: NDArray[Any]) -> Built:
    h, lap = et.Hierarchy(linkage="ward"), clock()
    h.insert(X)
    inserting = lap()
    report = h.refine()
    note = f"{report.moves:,} moves, {report.grafts:,} grafts in refine, stopped by {report.stopped_by}"
    refining = lap()

    def add(x: NDArray[Any]) -> object:
        h.insert(x)
        return h.cut(n_clusters=10)

    return Built(h, {"insert": inserting, "refine": refining}, note, add)


def seconds_to_purity(X: NDArray[Any], y: NDArray[np.int64], aim: float) -> float:
    """Seconds of insertion and refinement until the tree has a purity, looked at about every 20th of the time."""
    h, lap = et.Hierarchy(linkage="ward"), clock()
    h.insert(X)
    seconds = lap()
    while et.quality.dendrogram_purity(h, y) < aim:
        report = h.refine(seconds=seconds / 20)
        if report.seconds == 0 or (report.stopped_by != "seconds" and et.quality.dendrogram_purity(h, y) < aim):
            return float("inf")
        seconds += report.seconds
    return seconds


def seconds_for_more(add: Callable[[NDArray[Any]], object], X: NDArray[Any]) -> float:
    """Seconds for one more point: points that were there come again, each moved a little. The median of some."""
    points = X[:N_MORE] + X.std(axis=0) * np.random.default_rng(0).normal(scale=0.1, size=(N_MORE, X.shape[1]))
    seconds, lap = [], clock()
    for x in points.astype(X.dtype):
        add(x[None])
        seconds.append(lap())
    return float(np.median(seconds))


def timed(make: Callable[[NDArray[Any]], NDArray[np.float64]]) -> Callable[[NDArray[Any]], Built]:
    """A system that is a function from points to SciPy's Z."""

    def build(X: NDArray[Any]) -> Built:
        lap = clock()
        Z = make(X)
        return Built(Z, {"fit": lap()})

    return build


def matrix_linkage(method: str) -> Callable[[NDArray[Any]], NDArray[np.float64]]:
    def make(X: NDArray[Any]) -> NDArray[np.float64]:
        import fastcluster

        return fastcluster.linkage(X, method)

    return make


def vector_ward(X: NDArray[Any]) -> NDArray[np.float64]:
    import fastcluster

    return fastcluster.linkage_vector(X, "ward")


def product_ward(X: NDArray[Any]) -> NDArray[np.float64]:
    """Ward on distances from matrix products, the fastest way to them in many columns."""
    import fastcluster

    n, block = len(X), 500
    square = np.einsum("ij,ij->i", X, X)
    condensed, at = np.empty(n * (n - 1) // 2), 0
    for start in range(0, n, block):
        rows = X[start : start + block]
        d = square[start : start + block, None] + square[start:] - 2 * (rows @ X[start:].T)
        np.sqrt(np.maximum(d, 0, out=d), out=d)
        for i in range(len(rows)):
            count = n - start - i - 1
            condensed[at : at + count] = d[i, i + 1 :]
            at += count
    return fastcluster.linkage(condensed, "ward", preserve_input=False)


def genie(X: NDArray[Any]) -> NDArray[np.float64]:
    from genieclust import Genie

    model = Genie(n_clusters=1).fit(X)
    return np.column_stack([model.children_, model.distances_, model.counts_])


def scipy_ward(X: NDArray[Any]) -> NDArray[np.float64]:
    from scipy.cluster.hierarchy import linkage

    return linkage(X, "ward")


def agglomerative_ward(X: NDArray[Any]) -> NDArray[np.float64]:
    from sklearn.cluster import AgglomerativeClustering

    model = AgglomerativeClustering(n_clusters=None, distance_threshold=0.0, linkage="ward").fit(X)
    size = np.ones(2 * len(X) - 1)
    for k, (a, b) in enumerate(model.children_):
        size[len(X) + k] = size[a] + size[b]
    return np.column_stack([model.children_, model.distances_, size[len(X) :]])


def fishdbc(X: NDArray[Any]) -> Built:
    from fishdbc import FISHDBC

    lap = clock()
    model = FISHDBC.from_metric("euclidean")
    model.update(X, num_threads=1)
    Z = np.asarray(model.cluster().single_linkage_tree)

    def add(x: NDArray[Any]) -> object:
        model.update(x, num_threads=1)
        return model.cluster()

    return Built(Z, {"fit": lap()}, add=add)


def birch(X: NDArray[Any], threshold: float) -> Built:
    from sklearn.cluster import Birch

    lap = clock()
    model = Birch(n_clusters=None, threshold=threshold).fit(X)
    _, group, size = np.unique(model.labels_, return_inverse=True, return_counts=True)
    Z = weighted_ward(group_sums(X, group, size.size) / size[:, None], size)
    seconds, note = {"fit": lap()}, f"{size.size:,} subclusters, threshold {threshold:.3g}"

    def add(x: NDArray[Any]) -> object:
        """Its subclusters, of which it does not give the sizes, merged into ten by its own means."""
        return model.set_params(n_clusters=10).partial_fit(x)

    return Built(Groups(lambda: Z, group), seconds, note, add)


def birch_threshold(X: NDArray[Any]) -> float:
    """The threshold at which Birch keeps a little less than the subclusters that it may keep, by bisection."""
    from sklearn.cluster import Birch

    most = min(MOST_SUBCLUSTERS, len(X) // POINTS_A_SUBCLUSTER)

    def n_subclusters(threshold: float) -> int:
        model = Birch(n_clusters=None, threshold=threshold, compute_labels=False)
        for start in range(0, len(X), 2_000):  # the subclusters only become more: stop where there are too many
            model.partial_fit(X[start : start + 2_000])
            if len(model.subcluster_centers_) > most:
                break
        return len(model.subcluster_centers_)

    low, high = 0.0, float(np.sqrt(X.var(axis=0).sum()))
    for _ in range(20):
        middle = (low + high) / 2
        count = n_subclusters(middle)
        if count > most:
            low = middle
        else:
            high = middle
            if count >= 0.9 * most:
                break
    return high


def betula(X: NDArray[Any]) -> Built:
    from betula_cluster import Betula

    lap = clock()
    model = Betula(n_clusters=10, method="ward", max_leaves=MOST_SUBCLUSTERS).fit(X)
    leaf = model.assign_microclusters(X)
    # It has merged its leaves and keeps the merges to itself, so they are made again where nothing is measured.
    again = Groups(lambda: weighted_ward(model.microcluster_centers_, model.microcluster_weights_), leaf)
    seconds = {"fit": lap()}

    def add(x: NDArray[Any]) -> object:
        """Without points, `partial_fit` merges the leaves."""
        model.partial_fit(x)
        return model.partial_fit().predict(x)

    return Built(again, seconds, f"{model.n_leaves_:,} leaves", add)


def weighted_ward(mean: NDArray[Any], size: NDArray[Any]) -> NDArray[np.float64]:
    """SciPy's Z of batch Ward over groups of points, as if the points of each had been merged before."""
    return et.agglomerate(mean, "ward", sample_weight=size).linkage_matrix()


def group_sums(X: NDArray[Any], group: NDArray[np.int64], n_groups: int) -> NDArray[np.float64]:
    """The sum of the points of each group."""
    from scipy.sparse import csr_array

    n = len(X)
    return csr_array((np.ones(n), (group, np.arange(n))), shape=(n_groups, n)) @ X


#: By the names of the option ``--systems``.
SYSTEMS = {
    "evertree": System("**evertree**, Ward", evertree, by_order=True, keeps_float32=True),
    "ward": System("fastcluster Ward, `linkage`", timed(matrix_linkage("ward")), is_quadratic=True, needs_matrix=True),
    "ward-vector": System(
        "fastcluster Ward, `linkage_vector`", timed(vector_ward), is_quadratic=True, most_columns=100
    ),
    "ward-product": System(
        "fastcluster Ward, distances by matrix products", timed(product_ward), is_quadratic=True, needs_matrix=True
    ),
    "scipy": System("SciPy `linkage`, Ward", timed(scipy_ward), is_quadratic=True, needs_matrix=True),
    "agglomerative": System(
        "scikit-learn AgglomerativeClustering, Ward", timed(agglomerative_ward), is_quadratic=True, needs_matrix=True
    ),
    "average": System("fastcluster average", timed(matrix_linkage("average")), is_quadratic=True, needs_matrix=True),
    "birch": System("scikit-learn Birch, then Ward", birch, birch_threshold, by_order=True, keeps_float32=True),
    "betula": System("betula-cluster, Ward", betula, by_order=True, keeps_float32=True),
    "fishdbc": System("FISHDBC", fishdbc, by_order=True),
    "genie": System("genieclust", timed(genie), is_quadratic=True),
}

#: They make the same tree, but for ties; the fastest is what we call batch. Distances by matrix products are not
#: among them: no library does that for its users. Their time is printed beside.
BATCH = ("ward", "ward-vector")


def why_not(system: System, n: int, n_columns: int) -> str | None:
    """Why a system is not started on so many points, or None."""
    if system.needs_matrix and 8 * n**2 > MOST_BYTES:  # the condensed distances, and a copy of them
        return f"does not fit: {8 * n**2 / 1e9:,.0f} GB of distances"
    if system.is_quadratic and n**2 * n_columns > MOST_WORK:
        return f"too slow: {n:,}² × {n_columns} operations"
    if system.most_columns is not None and n_columns > system.most_columns:
        return f"not tried with more than {system.most_columns} columns: the other ways are faster there"
    return None


def cut(Z: NDArray[np.float64], n_clusters: int) -> NDArray[np.int64]:
    """The clusters before the last merges of Z."""
    n = len(Z) + 1
    label, children = np.zeros(2 * n - 1, np.int64), Z[:, :2].astype(np.int64)
    for merge in range(n - 2, -1, -1):
        a, b = children[merge]
        label[a] = label[n + merge]
        label[b] = label[n + merge] if merge < n - n_clusters else 2 * n - 1 + merge
    return label[:n]


def group_purity(Z: NDArray[np.float64], group: NDArray[np.int64], y: NDArray[np.int64]) -> float:
    """Exact dendrogram purity of a tree over groups."""
    n_groups = len(Z) + 1
    count = np.zeros((2 * n_groups - 1, y.max() + 1))
    np.add.at(count, (group, y), 1)
    met = count * (count - 1) / 2  # pairs that meet at each node: in a group all, above it those that did not below
    for u, (a, b) in enumerate(Z[:, :2].astype(np.int64), n_groups):
        count[u] = count[a] + count[b]
        met[u] = count[a] * count[b]
    size = np.maximum(count.sum(axis=1, keepdims=True), 1)
    return float((met * count / size).sum() / met.sum()) if met.sum() else 1.0


def group_tree_value(Z: NDArray[np.float64], group: NDArray[np.int64], X: NDArray[Any]) -> float:
    """`evertree.quality.tree_value` for squared distances, of a tree over groups."""
    n_groups, children = len(Z) + 1, Z[:, :2].astype(np.int64)
    X = X - X.mean(axis=0, dtype=np.float64)  # so that little cancels below
    columns = np.column_stack([np.ones(len(X)), np.einsum("ij,ij->i", X, X), X])
    total = np.zeros((2 * n_groups - 1, columns.shape[1]))
    total[:n_groups] = group_sums(columns, group, n_groups)
    for u, (a, b) in enumerate(children, n_groups):
        total[u] = total[a] + total[b]
    size, square, point = total[:, 0], total[:, 1], total[:, 2:]
    within = size * square - np.einsum("ij,ij->i", point, point)  # Σ of the squared distances in each node
    met = within.copy()
    met[n_groups:] -= within[children].sum(axis=1)
    return float(size @ met)


def figures(tree: et.Hierarchy | NDArray[np.float64] | Groups, X: NDArray[Any], y: NDArray[np.int64]) -> dict[str, Any]:
    """How good a tree is."""
    from sklearn.metrics import adjusted_rand_score

    n_classes = int(y.max()) + 1
    if isinstance(tree, Groups):
        Z = tree.merges()
        return {
            "purity": group_purity(Z, tree.group, y),
            "rand": adjusted_rand_score(y, cut(Z, n_classes)[tree.group]),
            "value": group_tree_value(Z, tree.group, X),
        }
    is_ours = isinstance(tree, et.Hierarchy)
    h = tree if is_ours else et.Hierarchy.from_linkage(tree, X, linkage="ward")
    found = {
        "purity": et.quality.dendrogram_purity(h, y),
        "rand": adjusted_rand_score(y, h.cut(n_clusters=n_classes) if is_ours else cut(tree, n_classes)),
        "value": et.quality.tree_value(h),
    }
    if is_ours:
        instability = h.instability(sample=min(N_SAMPLE, len(h)))
        found |= {"instability": instability.fraction, "low": instability.low, "high": instability.high}
    return found


def floor(y: NDArray[np.int64]) -> float:
    """The purity of a tree with one level."""
    n = np.bincount(y).astype(np.float64)
    return float((n * (n - 1) * n / n.sum()).sum() / (n * (n - 1)).sum())


def forget_peak() -> int:
    """Bytes in memory now, of which alone the next `peak` reports a growth."""
    try:
        ctypes.CDLL(None).malloc_trim(0)  # what loading left free would hide what a system takes
        Path("/proc/self/clear_refs").write_text("5")
    except (OSError, AttributeError):
        pass  # not Linux: the peak is that of loading, too
    return peak()


def peak() -> int:
    """The most bytes that were in memory."""
    try:
        # Not ru_maxrss, which starts from that of the process that started this one.
        lines = Path("/proc/self/status").read_text().splitlines()
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def measure(data: str, system: str, order: int, folder: str, hint: float | None = None) -> dict[str, Any]:
    """One measurement: compiled and warm, without the time and memory of imports and data."""
    one = SYSTEMS[system]
    X, y = datasets.load(data, Path(folder), order)
    about = {"shape": X.shape, "dtype": X.dtype.name, "n_classes": int(y.max()) + 1, "floor": floor(y)}
    reason = why_not(one, *X.shape)
    if reason is not None:
        return about | {"failed": reason}
    given = X if one.keeps_float32 else X.astype(np.float64, copy=False)
    if one.prepare is not None and hint is None:
        hint = one.prepare(given)
    options = () if hint is None else (hint,)
    noise = np.random.default_rng(0).normal(size=(N_WARM, X.shape[1]))
    one.build((noise * X.std(axis=0) + X.mean(axis=0)).astype(given.dtype), *options)
    before, cpu = forget_peak(), time.process_time()
    built = one.build(given, *options)
    cost = {"cpu": time.process_time() - cpu, "bytes": peak() - before, "seconds": built.seconds}
    found = about | cost | {"note": built.note, "hint": hint} | figures(built.tree, X, y)
    found["more"] = sum(built.seconds.values()) if built.add is None else seconds_for_more(built.add, given)
    if data.startswith("gaussians") and system == "evertree":
        found["to_purity"] = seconds_to_purity(given, y, GAUSSIAN_PURITY)
    return found


if __name__ == "__main__":
    print(json.dumps(measure(**json.loads(sys.argv[1]))))
