"""Threads for linkages from pairs of points: they find the tree that one alone finds, whatever their number."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import evertree as et
import naive_stable
from evertree import kernels
from evertree.kernels.columns import NODE_ITSELF, NULL
from evertree.tree import pairwise
from evertree.tree.parallel import pairs
from evertree.tree.parallel.pairs import Sharing
from helpers import definition, nested, params_of

pytestmark = pytest.mark.usefixtures("searched")

COMPILED = os.environ.get("NUMBA_DISABLE_JIT", "0") == "0"
LINKAGES = ["single", "complete", "average", "minimax"]
NUMBERS_OF_THREADS = (1, 2, 3) if COMPILED else (2,)
MANY = 20 if COMPILED else 8  # columns


@pytest.fixture
def small(monkeypatch):
    """Let threads share what is not worth it, so that small trees show it."""
    monkeypatch.setattr(pairwise, "FEWEST_TO_SHARE", 3)
    monkeypatch.setattr(pairwise, "MOST_AHEAD", 7)
    monkeypatch.setattr(pairs, "FEWEST_PAIRS", 1)
    monkeypatch.setattr(pairs, "FEWEST_ROWS", 2)


@pytest.fixture
def shared(monkeypatch):
    """How often threads were asked to do what."""
    calls: dict[str, int] = {}

    def count(name):
        method = getattr(Sharing, name)

        def counted(*args):
            calls[name] = calls.get(name, 0) + 1
            return method(*args)

        monkeypatch.setattr(Sharing, name, counted)

    for name in ("measure_ahead", "_measure_members", "_fill_lists"):
        count(name)
    return calls


def points(rng, kind, n):
    """Points in few columns, where bounds help, or in many; with ties; with duplicates."""
    if kind == "grid":
        return rng.integers(0, 4, size=(n, 2)) * 1.0
    if kind == "duplicates":
        return rng.normal(size=(n // 4, 2))[rng.integers(0, n // 4, n)]
    return rng.normal(size=(n, 2 if kind == "few" else MANY)) + 4.0 * rng.integers(0, 3, size=(n, 1))


def edited(linkage, metric, x, n_jobs, **options):
    """A hierarchy after points came, went, changed and came again, and its trees on the way."""
    h = et.Hierarchy(
        linkage, metric, metric_params=params_of(metric, x.shape[1]), n_jobs=n_jobs, working_memory=0, **options
    )
    half = len(x) // 2
    w = np.linspace(1.0, 2.0, half)
    keys = h.insert(x[:half], sample_weight=w)
    trees = [h.linkage_matrix()]
    h.remove(keys[3:9])
    h.update(keys[10:20], x[half : half + 10])
    h.insert(x[half:])
    trees.append(h.linkage_matrix())
    h.refine()
    trees.append(h.linkage_matrix())
    h.refine(until="stable")
    return h, [*trees, h.linkage_matrix()]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("goal", ["stable", "homogeneous"])
@pytest.mark.parametrize("kind", ["few", "many", "grid", "duplicates"])
@pytest.mark.parametrize("linkage", LINKAGES)
def test_the_tree_is_that_of_one_thread(rng, linkage, kind, goal):
    """After every edit, to the last bit."""
    x = points(rng, kind, 120 if COMPILED else 44)
    _, alone = edited(linkage, "euclidean", x, None, goal=goal)
    for n_jobs in NUMBERS_OF_THREADS:
        h, trees = edited(linkage, "euclidean", x, n_jobs, goal=goal)
        for ours, theirs in zip(trees, alone, strict=True):
            np.testing.assert_array_equal(ours, theirs)
        h.validate()
        assert h.is_homogeneous()


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("linkage", LINKAGES)
def test_an_exhaustive_search_ends_at_a_batch_tree(rng, linkage):
    """By the definition of `naive_stable`, and by a replay of all merges."""
    x = points(rng, "few", 24 if COMPILED else 14)
    h = et.Hierarchy(linkage, search_width=None, n_jobs=2)
    h.insert(x)
    h.refine()
    h.certify()
    assert h.is_stable()
    assert naive_stable.is_stable(nested(h), definition(h))


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("linkage", LINKAGES)
@pytest.mark.parametrize("metric", ["cosine", "mahalanobis", "canberra", "precomputed"])
def test_other_metrics(rng, linkage, metric):
    """With bounds on the root of a dissimilarity, without any, and where dissimilarities are stored."""
    if (linkage, metric) == ("average", "cosine"):
        pytest.skip("this follows from means")
    x = points(rng, "many", 60 if COMPILED else 24) + 10.0
    trees = []
    for n_jobs in (None, 2):
        h = et.Hierarchy(linkage, metric, metric_params=params_of(metric, x.shape[1]), n_jobs=n_jobs)
        if metric == "precomputed":
            d = cdist(x, x)
            h.insert(d[:20, :20])
            h.insert(d[20:])
        else:
            h.insert(x)
        h.refine()
        trees.append(h.linkage_matrix())
        h.validate()
        assert h.is_homogeneous()
    np.testing.assert_array_equal(*trees)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("linkage", ["complete", "average", "minimax"])
def test_threads_have_something_to_do(rng, shared, linkage):
    """Points are measured ahead, clusters are measured, and lists of a tree from elsewhere are filled."""
    x = points(rng, "few", 80 if COMPILED else 44)
    h = et.Hierarchy(linkage, n_jobs=2, working_memory=0)  # points are inserted, not clustered
    h.insert(x)
    h.refine()
    assert shared["measure_ahead"] > 5
    assert shared["_measure_members"] > 0
    assert "_fill_lists" not in shared
    other = et.Hierarchy.random(x, linkage, n_jobs=2)
    other.refine()
    assert shared["_fill_lists"] > 0
    assert other.state.live.search.state["fresh"][0] == 0
    alone = et.Hierarchy.random(x, linkage)
    alone.refine()
    np.testing.assert_array_equal(other.linkage_matrix(), alone.linkage_matrix())


@pytest.mark.usefixtures("small")
def test_bounds_are_tried_again(rng, shared):
    """In many columns bounds fail: points are evaluated ahead, and now and then one alone is bounded."""
    x = rng.uniform(size=(200 if COMPILED else 100, 30))
    counts = []
    for n_jobs in (None, 2):
        h = et.Hierarchy("complete", n_jobs=n_jobs, working_memory=0)
        h.insert(x)
        counts.append(int(h.state.live.tree.pairs.state["evaluated"][0]))
    assert shared["measure_ahead"] > len(x) // 10
    assert counts[1] <= 1.2 * counts[0]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("linkage", ["complete", "average", "minimax"])
def test_a_tree_can_be_read_and_edited_where_a_search_has_paused(rng, linkage):
    """Nothing of what threads have measured is taken for known after an edit."""
    x = points(rng, "few", 60 if COMPILED else 30)
    h = et.Hierarchy.random(x, linkage, seed=1, n_jobs=2)
    h.refine(until="homogeneous")
    live, n_paused = h.state.live, 0
    live.prepare_search()
    with live.threads():
        while live.n_due:
            live.stabilise(1)
            state = live.tree.pairs.state
            if state["paused_node"][0] != NULL and state["paused_side"][0] == NODE_ITSELF:
                n_paused += 1
                if n_paused % 50 == 1:
                    h.validate()
                    assert h.copy().is_homogeneous()
    assert n_paused > 3
    h.remove(h.keys()[:5])
    h.insert(x[:5])
    h.refine()
    h.validate()
    assert h.is_homogeneous()


@pytest.mark.usefixtures("small")
def test_ctrl_c_while_threads_measure_a_cluster(rng, monkeypatch):
    """No member is added to a mean twice when the search goes on."""
    x = points(rng, "few", 60 if COMPILED else 30)
    alone = et.Hierarchy.random(x, "average", seed=1)
    alone.refine()
    h = et.Hierarchy.random(x, "average", seed=1, n_jobs=2)
    tree, n_paused = h.state.live.tree, 0
    measure, calls = kernels.pairwise.parallel.measure_members, []

    def press(*args):
        measure(*args)
        calls.append(1)
        if len(calls) % 7 == 1:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(kernels.pairwise.parallel, "measure_members", press)
    n_pressed = 0
    while True:
        try:
            h.refine()
        except KeyboardInterrupt:
            n_pressed += 1
            state = tree.pairs.state
            if state["paused_node"][0] != NULL:
                n_paused += 1
                rows = tree.pairs.rows[: state["paused_row"][0]]
                share = tree.size[2 * rows] / tree.size[state["paused_node"][0]]
                between = cdist(tree.pairs.x[rows], tree.pairs.x[:1])[:, 0]
                assert tree.pairs.lower[0] == pytest.approx(share @ between)
        else:
            break
    assert n_pressed >= n_paused > 1
    np.testing.assert_array_equal(h.linkage_matrix(), alone.linkage_matrix())


@pytest.mark.slow
@pytest.mark.parametrize("linkage", LINKAGES)
def test_sizes_at_which_threads_pay(rng, linkage):
    """Without a change of any threshold."""
    x = points(rng, "many", 650)
    trees = []
    for n_jobs in (None, 2, 3):
        h = et.Hierarchy(linkage, n_jobs=n_jobs)
        h.insert(x)
        h.refine()
        trees.append(h.linkage_matrix())
    np.testing.assert_array_equal(trees[1], trees[0])
    np.testing.assert_array_equal(trees[2], trees[0])
