"""Batches that are clustered and not inserted: where pairs are compared, and where a tree of means is to be exact."""

from __future__ import annotations

import os
import shutil
import signal
import warnings

import numpy as np
import pytest
from scipy.cluster.hierarchy import linkage as scipy_linkage
from scipy.spatial.distance import cdist, pdist, squareform

import evertree as et
import naive
from evertree.errors import ParameterError
from evertree.kernels import pairwise, shared, statistics
from evertree.tree import batch
from evertree.tree.parallel.threads import Threads
from evertree.tree.reciprocal import find_merges, order_in_space, without_duplicates
from helpers import definition, hard_data, nested

COMPILED = os.environ.get("NUMBA_DISABLE_JIT", "0") == "0"

PAIRS = [("single", "euclidean"), ("complete", "cityblock"), ("average", "euclidean"), ("minimax", "euclidean")]


@pytest.fixture
def n_clustered(monkeypatch):
    """The numbers of points that were clustered."""
    found = []
    whole = batch.cluster

    def cluster(live, leaves, *rest):
        found.append(leaves.size)
        return whole(live, leaves, *rest)

    monkeypatch.setattr("evertree.edits.cluster", cluster)
    return found


@pytest.mark.parametrize(("linkage", "metric"), PAIRS)
def test_first_and_large_batches_are_clustered(rng, n_clustered, linkage, metric):
    h = et.Hierarchy(linkage, metric)
    x = rng.normal(size=(60, 3))
    for start, stop in ((0, 20), (20, 40), (40, 44), (44, 60)):
        h.insert(x[start:stop])
        h.validate()
    assert n_clustered == [20, 40, 60]
    h.certify()
    assert naive.clusters(nested(h)) == naive.clusters(naive.batch(definition(h), 60))


@pytest.mark.parametrize(("linkage", "metric"), PAIRS)
def test_after_edits_of_many_kinds(rng, n_clustered, linkage, metric):
    """Rows of removed points, and of inner nodes that were there before, do not come back."""
    h = et.Hierarchy(linkage, metric)
    h.insert(rng.normal(size=(40, 3)))
    h.remove(range(0, 40, 2))
    h.update([1, 3], rng.normal(size=(2, 3)))
    h.insert(rng.normal(size=(10, 3)))
    h.validate()
    h.certify()
    assert n_clustered == [40, 30]
    for _ in range(5):
        h.insert(rng.normal(size=(1, 3)))
        h.remove(h.keys()[3])
        h.refine()
        h.validate()


@pytest.mark.parametrize("name", hard_data())
@pytest.mark.parametrize(("linkage", "metric"), PAIRS)
def test_hard_data(linkage, metric, name):
    x = hard_data()[name]
    h = et.Hierarchy(linkage, metric)
    h.insert(x)
    h.validate()
    report = h.refine()
    assert report.stable
    assert report.moves == report.grafts == 0
    if len(x):
        h.certify()


def test_new_points_are_compared_with_pivots(rng):
    """Bounds from pivots would otherwise be those of points that were never compared with them."""
    h = et.Hierarchy("complete")
    h.insert(rng.normal(size=(40, 3)))
    h.insert(rng.normal(size=(15, 3)))  # too few to choose other pivots
    pairs = h.state.live.tree.pairs
    pivots = pairs.pivots[: pairs.state["n_pivots"][0]]
    rows = h.state.leaves() >> 1
    assert pivots.size
    assert np.allclose(pairs.pivot[rows], cdist(pairs.x[rows], pairs.x[pivots]))


@pytest.mark.parametrize("linkage", ["single", "complete", "average"])
def test_heights_are_scipys(rng, linkage):
    x = rng.normal(size=(80, 4))
    h = et.Hierarchy(linkage, "cityblock")
    h.insert(x)
    Z = scipy_linkage(x, linkage, "cityblock")
    np.testing.assert_allclose(h.linkage_matrix()[:, 2], Z[:, 2], rtol=1e-12)


def test_a_function_is_called_once_a_pair(rng):
    calls = []

    def metric(a, b):
        calls.append(1)
        return abs(a - b)

    h = et.Hierarchy("average", metric)
    h.insert(rng.normal(size=30).tolist())
    assert len(calls) == 30 * 29 // 2
    h.insert(rng.normal(size=20).tolist())
    h.set_linkage("complete")
    assert len(calls) == 50 * 49 // 2
    h.certify()


def test_weights_and_dissimilarities(rng):
    x, w = rng.normal(size=(12, 2)), rng.integers(1, 4, size=12)
    h = et.Hierarchy("average", "precomputed")
    h.insert(squareform(pdist(x)), sample_weight=w)
    repeated = et.Hierarchy("average")
    repeated.insert(np.repeat(x, w, axis=0))
    np.testing.assert_allclose(h.linkage_matrix()[:, 2], repeated.linkage_matrix()[-11:, 2], rtol=1e-9)


def test_a_limit_of_memory(rng, n_clustered):
    x = rng.normal(size=(100, 2))
    for linkage, memory, count in (("average", 0.1, 1), ("average", 0.03, 0), ("minimax", 0.1, 0), ("single", 0, 1)):
        h = et.Hierarchy(linkage, working_memory=memory)
        n_clustered.clear()
        h.insert(x)
        assert len(n_clustered) == count
        h.refine()
        h.validate()
    with pytest.raises(ParameterError, match="working_memory must be a non-negative number"):
        et.Hierarchy(working_memory=-1)


def test_the_paper_and_means_are_as_before(rng, n_clustered):
    for h in (
        et.Hierarchy("average", goal="homogeneous"),
        et.Hierarchy("ward", search_width=4),
        et.Hierarchy("average", "cosine", search_width=4),
        et.Hierarchy("ward", goal="homogeneous", search_width=None),
    ):
        h.insert(rng.normal(size=(30, 3)))
    assert n_clustered == []


def test_means_are_clustered_where_the_tree_is_to_be_exact(rng, n_clustered):
    h = et.Hierarchy(search_width=None)
    h.insert(rng.normal(size=(60, 3)))
    h.certify()
    h.remove(range(0, 60, 3))
    h.insert(rng.normal(size=(30, 3)))
    h.validate()
    h.certify()
    assert n_clustered == [60, 70]
    report = h.refine()
    assert report.stable
    assert report.moves == report.grafts == 0


@pytest.mark.parametrize(("linkage", "metric"), PAIRS)
def test_another_linkage_or_metric(rng, n_clustered, linkage, metric):
    h = et.Hierarchy("ward")
    h.insert(rng.normal(size=(40, 3)))
    n_clustered.clear()
    h.set_linkage(linkage, metric)
    h.certify()
    h.set_metric("chebyshev")
    h.certify()
    h.validate()
    assert n_clustered == [40, 40]


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("linkage", ["single", "average", "minimax"])
def test_ctrl_c_undoes_a_batch(rng, monkeypatch, linkage, n_jobs):
    h = et.Hierarchy(linkage, n_jobs=n_jobs)
    h.insert(rng.normal(size=(10, 2)))
    before = h.linkage_matrix()
    monkeypatch.setattr(batch, "_SLICE", 1)
    where = (pairwise.spanning_tree, "grow") if linkage == "single" else (pairwise.pairs, "fill_condensed")
    work = getattr(*where)

    def press(*args):
        signal.raise_signal(signal.SIGINT)
        work(*args)

    with monkeypatch.context() as patch:
        patch.setattr(*where, press)
        with pytest.raises(KeyboardInterrupt):
            h.insert(rng.normal(size=(30, 2)))
    assert np.array_equal(h.linkage_matrix(), before)
    h.validate()
    h.insert(rng.normal(size=(30, 2)))
    h.certify()


def test_in_slices_it_is_the_same(rng, monkeypatch):
    x = rng.normal(size=(50, 2))
    for linkage, metric in PAIRS:
        whole, parts = et.Hierarchy(linkage, metric), et.Hierarchy(linkage, metric)
        whole.insert(x)
        with monkeypatch.context() as patch:
            patch.setattr(batch, "_SLICE", 1)
            parts.insert(x)
        assert np.array_equal(whole.linkage_matrix(), parts.linkage_matrix())


def test_neighbours_are_listed(rng):
    """So that a search after the next edit need not compare all pairs."""
    x = rng.normal(size=(40, 3))
    h = et.Hierarchy("average")
    h.insert(x)
    search = h.state.live.search
    d = squareform(pdist(x))
    np.fill_diagonal(d, np.inf)
    width = search.near.shape[1]
    np.testing.assert_allclose(search.near_value[:40], np.sort(d, axis=1)[:, :width])
    assert np.array_equal(search.near[:40] // 2, np.argsort(d, axis=1, kind="stable")[:, :width])
    assert search.state["fresh"][0] == 0


MEANS = [("ward", "euclidean"), ("average", "sqeuclidean"), ("average", "cosine")]


@pytest.mark.parametrize("name", hard_data())
@pytest.mark.parametrize(("linkage", "metric"), MEANS)
def test_hard_data_by_means(linkage, metric, name):
    x = hard_data()[name]
    if metric == "cosine":
        x = x + (~x.any(axis=1))[:, None].astype(x.dtype)
    h = et.agglomerate(x, linkage, metric)
    h.validate()
    h.certify()


@pytest.mark.parametrize(("linkage", "metric"), MEANS)
def test_rounds_merge_as_the_definition_does(rng, linkage, metric):
    for trial in range(10):
        x = rng.normal(size=(30, 3)) + 4.0 * rng.integers(0, 3, size=(30, 1)) * (trial % 2)
        w = rng.uniform(0.1, 9.0, size=30) if trial % 3 else None
        h = et.agglomerate(x, linkage, metric, sample_weight=w)
        assert naive.clusters(nested(h)) == naive.clusters(naive.batch(definition(h), 30))


@pytest.fixture
def no_products(monkeypatch):
    """Nearest clusters are found by balls around tiles, in many columns, too."""
    monkeypatch.setattr("evertree.tree.reciprocal.FEWEST_COLUMNS", 10**9)


@pytest.mark.parametrize("n_columns", [1, 2, 5, 16, 17, 70])
def test_what_is_skipped_does_not_matter(rng, no_products, n_columns):
    """Many tiles and groups, also with clusters of different sizes; columns are added in parts."""
    n = 1_500 if COMPILED else 150
    x = rng.normal(size=(n, n_columns)) * rng.choice([0.1, 1.0, 5.0], size=(n, 1))
    h = et.agglomerate(x)
    np.testing.assert_allclose(h.linkage_matrix()[:, 2], scipy_linkage(x, "ward")[:, 2], rtol=1e-9)
    h.validate()


def test_threads_merge_the_same(rng):
    x = rng.normal(size=(300, 4)).round(1)
    one, three = (et.agglomerate(x, n_jobs=n_jobs) for n_jobs in (None, 3))
    assert np.array_equal(one.linkage_matrix(), three.linkage_matrix())


@pytest.mark.parametrize("is_clustered", [True, False])
@pytest.mark.parametrize(("linkage", "metric"), [*PAIRS, ("average", "precomputed")])
def test_threads_make_no_difference_where_pairs_are_compared(rng, monkeypatch, linkage, metric, is_clustered):
    """They compare all pairs of a batch, each a part of them."""
    monkeypatch.setattr(batch, "_SLICE", 1_000)
    n_parts = []
    each = Threads.each
    monkeypatch.setattr(Threads, "each", lambda *args: (n_parts.append(len(args[2])), each(*args)))
    x = rng.normal(size=(70, 4)).round(1)
    d = cdist(x, x)
    trees = []
    for n_jobs in (None, 1, 3):
        options = {} if is_clustered else {"search_width": 4, "working_memory": 0}
        h = et.Hierarchy(linkage, metric, n_jobs=n_jobs, **options)
        for start, stop in ((0, 40), (40, 41), (41, 70)):
            h.insert(d[start:stop, :stop] if metric == "precomputed" else x[start:stop])
        h.remove(range(10, 20))
        h.refine()
        trees.append(h.linkage_matrix())
        h.validate()
    np.testing.assert_array_equal(trees[1], trees[0])
    np.testing.assert_array_equal(trees[2], trees[0])
    assert (min(n_parts, default=0) > 1) == (is_clustered and linkage != "single")


@pytest.mark.parametrize("data", ["grid", "line", "few values", "one value"])
def test_ties_take_few_rounds(rng, monkeypatch, data):
    side = 40 if COMPILED else 12
    x = {
        "grid": np.stack(np.meshgrid(np.arange(side), np.arange(side)), -1).reshape(-1, 2),
        "line": np.arange(side**2).reshape(-1, 1),
        "few values": rng.integers(0, 3, size=(side**2, 3)),
        "one value": np.ones((side**2, 2)),
    }[data].astype(float)
    rounds = []
    pack = statistics.reciprocal.pack
    monkeypatch.setattr(statistics.reciprocal, "pack", lambda *args: rounds.append(pack(*args)))
    h = et.agglomerate(x)
    assert len(rounds) < 40
    h.certify()


def test_points_at_the_same_place():
    x = np.array([[1.0, 2.0], [0.0, 0.0], [1.0, 2.0], [-0.0, 0.0], [1.0, 2.0], [3.0, 0.0]])
    first, pairs = without_duplicates(x)
    assert first.tolist() == [0, 1, 5]
    assert pairs.tolist() == [[0, 2], [1, 3], [0, 4]]


def test_an_order_in_space_has_all_points(rng):
    for n in (0, 1, 31, 32, 33, 64, 65, 1000):
        assert np.array_equal(np.sort(order_in_space(rng.normal(size=(n, 3)))), np.arange(n))
    x = rng.integers(0, 100, size=(2_000, 1)).astype(float)
    tiles = x[order_in_space(x), 0][:1984].reshape(-1, 32)
    assert np.ptp(tiles, axis=1).max() < 10


def test_rounds_can_be_stopped(rng):
    x = rng.normal(size=(200, 3))
    answers = iter([False, False, True])
    assert find_merges(et.Hierarchy().state.live.tag, x, np.ones(200), 1, lambda: next(answers, True)) is None


@pytest.mark.parametrize("n_columns", [1, 3, 40])
def test_balls_that_are_far_larger_than_gaps(no_products, n_columns):
    """The gap between a point and a ball is a small difference of two large distances."""
    for seed in range(20 if COMPILED else 3):
        rng = np.random.default_rng(seed)
        near = np.sort(rng.uniform(-3e-7, 3e-7, size=48))
        x = np.concatenate([near, 2e8 + rng.uniform(-1.0, 1.0, size=16)])[:, None] * np.ones(n_columns)
        for linkage, metric in MEANS[:2]:
            et.agglomerate(x, linkage, metric).certify()


def test_hubs_are_not_looked_for_again_and_again(monkeypatch, no_products):
    """All points have the same nearest one, which merges with one after the other."""
    n = 300 if COMPILED else 60
    x = np.vstack([np.zeros((1, n)), np.diag(1.0 + 1e-3 * np.arange(n))])
    searches = []
    find = statistics.reciprocal.find_nearest

    def count(*args):
        searches.append(args[8] - args[7])
        find(*args)

    monkeypatch.setattr(statistics.reciprocal, "find_nearest", count)
    h = et.agglomerate(x, "average", "sqeuclidean")
    assert sum(searches) < 30 * n
    h.certify()


def test_a_batch_tree_need_not_be_homogeneous(rng):
    x = rng.normal(size=(300, 2))
    h = et.agglomerate(x, goal="homogeneous")
    report = h.refine()
    assert report.moves > 0
    assert h.is_homogeneous()


@pytest.mark.parametrize("scheme", [("ward", "euclidean"), ("average", "euclidean"), ("single", "euclidean")])
@pytest.mark.parametrize("verb", ["agglomerate", "set_linkage", "insert"])
def test_ctrl_c_ends_any_clustering(rng, monkeypatch, scheme, verb):
    x = rng.normal(size=(200, 3))
    h = (
        et.Hierarchy("complete", search_width=None)
        if verb == "set_linkage"
        else et.Hierarchy(*scheme, search_width=None)
    )
    if verb == "set_linkage":
        h.insert(x)
    before = h.linkage_matrix() if verb == "set_linkage" else None
    in_slices, find = batch._in_slices, statistics.reciprocal.pack

    def press(*args):
        signal.raise_signal(signal.SIGINT)
        return in_slices(*args)

    def press_too(*args):
        signal.raise_signal(signal.SIGINT)
        return find(*args)

    edit = {
        "agglomerate": lambda: et.agglomerate(x, *scheme),
        "set_linkage": lambda: h.set_linkage(*scheme),
        "insert": lambda: h.insert(x),
    }[verb]
    with monkeypatch.context() as patch:
        patch.setattr(batch, "_in_slices", press)
        patch.setattr(statistics.reciprocal, "pack", press_too)
        with pytest.raises(KeyboardInterrupt):
            edit()
    if verb == "set_linkage":
        assert np.array_equal(h.linkage_matrix(), before)
        assert h.linkage == "complete"
    elif verb == "insert":
        assert len(h) == 0
        h.insert(x)
        h.certify()


def test_a_batch_that_is_stopped_is_near_to_nobody(rng, monkeypatch):
    h = et.Hierarchy("average")
    h.insert(rng.normal(size=(20, 2)))
    merge = shared.nn_chain.merge_by_recurrence

    def press(*args):
        merge(*args)
        signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(shared.nn_chain, "merge_by_recurrence", press)
        patch.setattr(batch, "_SLICE", 1)
        with pytest.raises(KeyboardInterrupt):
            h.insert(rng.normal(size=(20, 2)))
    search = h.state.live.search
    assert len(h) == 20
    assert np.all((search.fresh[:20] > 0) | np.all(search.near[:20] < 40, axis=1))
    h.insert(rng.normal(size=(1, 2)))
    assert h.refine().stable
    h.validate()


def test_the_limit_of_memory_is_kept(rng, tmp_path):
    h = et.Hierarchy("average", working_memory=0.001)
    h.insert(rng.normal(size=(30, 2)))
    h.save(tmp_path / "tree.evertree")
    assert et.load(tmp_path / "tree.evertree").working_memory == 0.001
    with et.open(tmp_path / "tree.db", "average", working_memory=0) as durable:
        durable.insert(rng.normal(size=(30, 2)))
        tree = durable.linkage_matrix()
        for suffix in ("", "-wal"):  # as after a crash: edits are only in the journal
            shutil.copy(tmp_path / f"tree.db{suffix}", tmp_path / f"copy.db{suffix}")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = et.open(tmp_path / "copy.db", read_only=True)
    assert again.working_memory == 0
    assert np.array_equal(again.linkage_matrix(), tree)


@pytest.mark.parametrize("linkage", ["ward", "average", "single", "minimax"])
def test_hardly_any_points(rng, linkage):
    for n in (0, 1, 2):
        h = et.agglomerate(rng.normal(size=(n, 2)), linkage)
        h.insert(rng.normal(size=(1, 2)))
        h.update(0, rng.normal(size=(1, 2)))
        h.remove(h.keys()[0])
        h.insert(rng.normal(size=(3, 2)))
        h.validate()
        assert len(h) == n + 3


def test_weights_at_the_same_place(rng):
    x, w = rng.normal(size=(10, 2)), rng.integers(1, 5, size=30).astype(float)
    h = et.agglomerate(np.tile(x, (3, 1)), sample_weight=w)
    summed = et.agglomerate(x, sample_weight=w.reshape(3, 10).sum(axis=0))
    np.testing.assert_allclose(h.linkage_matrix()[-9:, 2], summed.linkage_matrix()[:, 2], rtol=1e-12)


@pytest.mark.parametrize("exponent", [-100, 100])
def test_extreme_weights_and_values(rng, exponent):
    x = rng.normal(size=(100, 2)) * 1e90
    h = et.agglomerate(x, sample_weight=10.0 ** (exponent * rng.uniform(size=100)))
    h.validate()
    h.certify()
