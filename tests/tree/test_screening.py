"""Nearest clusters by matrix products: the same merges as without them, to the last bit."""

from __future__ import annotations

import os
from itertools import pairwise

import numpy as np
import pytest

import evertree as et
from evertree.kernels import statistics
from evertree.kernels.statistics.screening import (
    LENGTH,
    LINE,
    NEAR_AT_HAND,
    TALL,
    WIDE,
    exact_value,
    new_rows,
    screened,
)
from evertree.tree import batch, reciprocal, screening
from evertree.tree.reciprocal import find_merges
from evertree.tree.screening import Screening, can_screen, tells_apart

COMPILED = os.environ.get("NUMBA_DISABLE_JIT", "0") == "0"

N = 700 if COMPILED else 50

MEANS = [("ward", "euclidean"), ("average", "sqeuclidean")]

#: More columns than there are.
NEVER = 10**9


def data(m: int) -> dict[str, np.ndarray]:
    """Points in `m` columns on which rounding, ties or ranges may go wrong."""
    rng = np.random.default_rng(m)
    x = rng.normal(size=(N, m))
    centers = rng.normal(size=(5, m))[rng.integers(0, 5, size=N)]
    constant = x.copy()
    constant[:, m // 2 :] = 7.0
    return {
        "normal": x,
        "float32": x.astype(np.float32),
        "grid": rng.integers(0, 3, size=(N, m)).astype(float),
        "few values": rng.integers(0, 2, size=(N, m)) * (rng.random(size=m) < 0.3),
        "duplicates": x[rng.integers(0, N // 3, size=N)],
        "far away": 1e7 + x,
        "farther away": 1e10 + x,
        "too far away": 1e14 + x,
        "tight": centers + 1e-6 * x,
        "tighter": centers + 1e-13 * x,
        "outlier": np.vstack([x, np.full((1, m), 1e12)]),
        "many scales": x * 10.0 ** rng.uniform(-8, 8, size=(N, 1)),
        "huge": x * 1e150,
        "large": x * 1e110,
        "tiny": x * 1e-150,
        "small": x * 1e-110,
        "constant columns": constant,
        "equally far": np.eye(N),
    }


def merges_of(x, linkage, weights=None, n_threads=1, should_stop=lambda: False):
    """All merges and values."""
    weights = np.ones(len(x)) if weights is None else weights.copy()
    tag = et.Hierarchy(*linkage).state.live.tag
    return find_merges(tag, np.array(x, float), weights, n_threads, should_stop)


def assert_same_both_ways(monkeypatch, *args, **options):
    """Merges by products, and without."""
    found = []
    for fewest in (1, NEVER):
        monkeypatch.setattr(reciprocal, "FEWEST_COLUMNS", fewest)
        found.append(merges_of(*args, **options))
    for mine, theirs in zip(*found, strict=True):
        assert np.array_equal(mine, theirs)


@pytest.fixture
def made(monkeypatch):
    """All that screens: it is noted."""
    found = []
    init = Screening.__init__

    def note(self, *args):
        found.append(self)
        init(self, *args)

    monkeypatch.setattr(Screening, "__init__", note)
    return found


@pytest.mark.parametrize("m", [1, 3, 34])
@pytest.mark.parametrize("name", data(1))
@pytest.mark.parametrize("linkage", MEANS, ids=["ward", "average"])
def test_merges_are_the_same(monkeypatch, linkage, name, m):
    assert_same_both_ways(monkeypatch, data(m)[name], linkage)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("m", [1, 7, 16, 17, 48, 129])
def test_products(rng, m, dtype):
    """They are off by rounding only, and the same however the work is divided."""
    n_rows, n = 3 * TALL, 2 * NEAR_AT_HAND + 4 * WIDE
    x, y = new_rows(n_rows, m, dtype), new_rows(n, m, dtype)
    for rows in (x, y):
        assert not rows.any()
        assert rows.ctypes.data % LINE == rows.strides[0] % LINE == 0
        rows[:, :m] = rng.normal(size=(len(rows), m)) * 10.0 ** rng.uniform(-3, 3, size=(len(rows), m))
    exact = x.astype(np.longdouble) @ y.T.astype(np.longdouble)
    most = 0.51 * m * np.finfo(dtype).eps * (np.abs(x) @ np.abs(y.T))
    for left, right in ((x, y), (x[:, :m].copy(), y[:, :m].copy())):
        whole, parts = np.full((2, n_rows, n), np.nan, dtype)
        statistics.screening.multiply(left, right, 0, n, whole)
        assert np.all(np.abs(whole - exact) <= most)
        for start, stop in pairwise([0, WIDE, 5 * WIDE, NEAR_AT_HAND + 7 * WIDE, n]):
            statistics.screening.multiply(left, right, start, stop, parts)
        assert np.array_equal(whole, parts)


@pytest.mark.parametrize("spread", [0.5, 8, 17])
@pytest.mark.parametrize("linkage", MEANS, ids=["ward", "average"])
def test_weights(rng, monkeypatch, made, linkage, spread):
    x = rng.normal(size=(N, 21))
    assert_same_both_ways(monkeypatch, x, linkage, 10.0 ** rng.uniform(-spread, spread, size=N))
    assert bool(made) == (spread < 10)


@pytest.mark.parametrize("linkage", MEANS, ids=["ward", "average"])
def test_in_many_parts(rng, monkeypatch, linkage):
    """Blocks, threads and lists are as small as can be."""
    monkeypatch.setattr(screening, "_ROWS", 8)
    monkeypatch.setattr(screening, "_ENTRIES", 16)
    monkeypatch.setattr(screening, "_FEW", 0)
    monkeypatch.setattr(screening, "_FEWEST_IN_USE", 1.0)
    x = rng.normal(size=(101, 21)).round(1)
    assert_same_both_ways(monkeypatch, x, linkage, n_threads=3)


def test_the_tree_is_the_same(rng, monkeypatch, made):
    x = rng.normal(size=(N, 40)) * rng.choice([0.1, 1.0, 5.0], size=(N, 1))
    for metric in ("sqeuclidean", "cosine"):
        by_products = [et.agglomerate(x, "average", metric, n_jobs=n_jobs).linkage_matrix() for n_jobs in (None, 2)]
        assert made
        with monkeypatch.context() as patch:
            patch.setattr(reciprocal, "FEWEST_COLUMNS", NEVER)
            plain = et.agglomerate(x, "average", metric).linkage_matrix()
        for tree in by_products:
            assert np.array_equal(tree, plain)
        made.clear()


@pytest.mark.parametrize(
    ("name", "dtypes"),
    [
        ("normal", ["float32"]),
        ("far away", ["float32"]),
        ("large", ["float32"]),
        ("huge", []),
        ("tiny", []),
        ("outlier", ["float32", "float64"]),
        ("equally far", ["float32", "float64"]),
    ],
)
def test_precision_follows_the_data(monkeypatch, made, name, dtypes):
    """Where float32 leaves too many pairs to compute, float64 is tried, and then no products at all."""
    monkeypatch.setattr(reciprocal, "FEWEST_COLUMNS", 1)
    merges_of(data(34)[name], MEANS[0])
    assert [str(one._block.dtype) for one in made] == dtypes


def test_what_can_be_screened():
    ones = np.ones(4)
    x = np.arange(8.0).reshape(4, 2)
    assert can_screen(x, ones)
    assert not can_screen(np.ones((4, 2)), ones)
    assert not can_screen(np.full((4, 2), 1.7e308) * [[1], [-1], [1], [-1]], ones)
    assert not can_screen(x * 1e150, ones)
    assert not can_screen(x, ones * 1e20)
    assert not can_screen(x, ones * 1e-20)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["normal", "far away", "tight", "outlier", "many scales", "large", "small"])
@pytest.mark.parametrize("linkage", MEANS, ids=["ward", "average"])
def test_bounds_are_below_values(monkeypatch, made, linkage, name, dtype):
    """Whichever way products are summed; and they are near."""
    rng = np.random.default_rng(0)
    x = data(34)[name][:40]
    n = len(x)
    clusters = statistics.reciprocal.Clusters(
        x.copy(), rng.uniform(0.5, 9.0, n), rng.uniform(size=n) * x.var(), np.zeros(n, np.int32), np.zeros(n)
    )
    tag = et.Hierarchy(*linkage).state.live.tag
    live = np.arange(n, dtype=np.int32)
    with reciprocal.Threads(1) as threads:
        places = Screening(tag, clusters, live, dtype, threads, lambda: False)._places
        unit = made[0]._scale ** -2.0
    p = places.point
    sums = [-2.0 * (p @ p.T), -2.0 * np.cumsum(p[:, None] * p[None], axis=2)[..., -1]]
    sums.append(-2.0 * np.cumsum((p[:, None] * p[None])[..., ::-1], axis=2)[..., -1])
    for a in range(n):
        for b in range(a):
            value = exact_value(tag, clusters, a, b)
            scale = (
                max(places.sq[a], places.sq[b]) * max(clusters.size[[a, b]]) + clusters.variance[[a, b]].sum() / unit
            )
            for products in sums:
                bound = float(screened(tag, places, a, b, products[a, b])) * unit
                assert bound <= value
                assert bound >= value - 1000 * np.finfo(dtype).eps * scale * unit


@pytest.mark.parametrize("name", ["normal", "constant columns", "tight", "far away", "grid"])
@pytest.mark.parametrize("linkage", MEANS, ids=["ward", "average"])
def test_lists_have_all_that_is_near(monkeypatch, made, linkage, name):
    """What is listed is no nearer than its bound, and what is not no nearer than the limit, after whatever merges."""
    n_checks = [0]

    def check(self):
        lists, places, clusters = self._lists, self._places, self._clusters
        used = places.slot[np.isfinite(places.sq)]
        assert np.array_equal(lists.slot_of[lists.id_of[used]], used)
        for a in used[:: 1 + used.size // 20]:
            bounds: dict[int, float] = {}
            for one, bound in zip(lists.id[a, : lists.length[a]], lists.bound[a], strict=False):
                c = int(lists.slot_of[statistics.screening.current(lists, one)])
                bounds[c] = min(bounds.get(c, np.inf), float(bound))
            limit = float(places.limit[lists.place_of[a]])
            for c in set(used.tolist()) - {int(a)}:
                assert exact_value(self._tag, clusters, a, c) >= bounds.get(c, limit) * self._scale**-2.0
        n_checks[0] += 1

    for function in (Screening.look, Screening.note_merges):

        def then_check(self, *args, function=function):
            found = function(self, *args)
            check(self)
            return found

        monkeypatch.setattr(Screening, function.__name__, then_check)
    monkeypatch.setattr(reciprocal, "FEWEST_COLUMNS", 1)
    rng = np.random.default_rng(5)
    merges_of(data(34)[name][: 5 * LENGTH], linkage, 10.0 ** rng.uniform(-1, 1, size=min(N, 5 * LENGTH)))
    assert n_checks[0] > 10
    assert made


def test_what_single_precision_tells_apart(rng):
    x = rng.normal(size=(500, 30))
    assert tells_apart(x)
    assert tells_apart(x.astype(np.float32) * 1e30)
    assert tells_apart(x + 1e6) is tells_apart(x)  # what is far from 0 does not matter
    assert not tells_apart(x[:1])
    assert not tells_apart(np.vstack([x, np.full((1, 30), 1e12)]))
    assert not tells_apart(rng.normal(size=(5, 30))[rng.integers(5, size=500)] + 1e-6 * x)
    assert not tells_apart(np.zeros((500, 30)))


@pytest.mark.parametrize("n_stops", [3, 30])
def test_a_wide_batch_that_was_stopped_leaves_no_lists(rng, monkeypatch, n_stops):
    """They would have points that are not in the tree."""
    h = et.Hierarchy(search_width=4)
    h.insert(rng.normal(size=(200, 30)))
    h.refine()
    live, count = h.state.live, [0]
    leaves = live.leaves()

    def should_stop():
        count[0] += 1
        return count[0] > n_stops

    assert not batch.cluster(live, leaves, should_stop)
    assert live.search.state["fresh"][0] > 0
    h.refine()
    h.validate()
    assert h.is_monotone()


def test_clustered_trees_know_who_is_near(rng, monkeypatch):
    """Lists of neighbours come from the lists by which a tree was clustered."""
    monkeypatch.setattr(reciprocal, "FEWEST_COLUMNS", 1)
    x = rng.normal(size=(6 * LENGTH, 30))
    x[:4] = x[4]  # equal points are merged before
    h = et.Hierarchy(search_width=None)
    h.insert(x)
    search, leaves = h.state.live.search, h.state.leaves()
    distance = np.sqrt(((x[:, None] - x) ** 2).sum(axis=2))
    full = np.flatnonzero(search.near[leaves >> 1, -1] != et.NULL)
    assert full.size > len(x) // 2
    for i in full:
        near = np.searchsorted(leaves, search.near[leaves[i] >> 1])
        np.testing.assert_allclose(search.near_value[leaves[i] >> 1], distance[i, near], rtol=1e-12)
        assert distance[i, near].max() <= np.sort(distance[i])[len(near) + 8]
    assert search.state["fresh"][0] == search.fresh.sum() == 3 * (len(x) - full.size)


@pytest.mark.parametrize("n_looks", range(1, 30, 4))
def test_it_can_be_stopped(rng, monkeypatch, n_looks):
    monkeypatch.setattr(reciprocal, "FEWEST_COLUMNS", 1)
    monkeypatch.setattr(screening, "_ENTRIES", 16)
    monkeypatch.setattr(screening, "_ROWS", 8)
    x = rng.normal(size=(60, 5))
    answers = iter([False] * n_looks)
    assert merges_of(x, MEANS[0], should_stop=lambda: next(answers, True)) is None
