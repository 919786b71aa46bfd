"""Linkages from pairs of points: what is evaluated, what is known without it, pauses, prototypes, other metrics."""

from __future__ import annotations

import os
import time

import numpy as np
import pytest
from scipy.spatial.distance import cdist, squareform

import evertree as et
import naive
from evertree import kernels, quality
from evertree.input.metrics import METRICS
from evertree.input.points import receive
from evertree.kernels.columns import NULL
from evertree.tree import invariants
from helpers import (
    ONE_OF_EACH,
    WITH_PAIRS,
    Hierarchy,
    assert_valid_and_homogeneous,
    definition,
    dissimilarities,
    hierarchy_of,
    nested,
    params_of,
    weights,
)

COMPILED = os.environ.get("NUMBA_DISABLE_JIT", "0") == "0"
LINKAGES = ["single", "complete", "average", "minimax"]
NONE = np.empty(0, np.int32)


def place(h, x):
    """Insert a point without the moves that follow; return how many dissimilarities that evaluated."""
    live = h.state.live
    live.reserve(1)
    leaf = live.add_leaves(receive(live.scheme, x[None, :], live), np.ones(1), np.array([10**6]), NONE)
    before = int(live.tree.pairs.state["evaluated"][0])
    kernels.shared.insert.insert_leaf(live.tree, live.work, live.tag, leaf[0])
    return int(live.tree.pairs.state["evaluated"][0]) - before


@pytest.mark.skipif(COMPILED, reason="no kernel inserts without the moves that follow")
@pytest.mark.parametrize(("n_columns", "n"), [(2, 5), (2, 31), (2, 32), (2, 33), (2, 200), (40, 33)])
@pytest.mark.parametrize("linkage", ["single", "complete", "average"])
def test_an_insertion_evaluates_each_point_once_at_most(rng, linkage, n_columns, n):
    """Section 4.3: O(n) for a Lance-Williams linkage; with bounds, in few columns, far fewer."""
    counts = []
    x = rng.uniform(size=(n + 4, n_columns))
    h = Hierarchy(linkage)
    h.insert(x[:n])
    for row in x[n:]:
        twin = h.copy()
        counts.append(place(twin, row))
        invariants.check_statistics(twin.state.live)
    assert max(counts) <= n
    if linkage == "average":
        assert min(counts) == n
    elif n_columns == 2 and n == 200:
        assert np.mean(counts) < 0.35 * n


@pytest.mark.slow
def test_single_linkage_in_the_plane_evaluates_few_pairs(rng):
    x = rng.uniform(size=(1500, 2))
    h = Hierarchy("single")
    h.insert(x)
    assert 0 < h.n_dissimilarities < 0.05 * 1500 * 1499 / 2


@pytest.mark.slow
def test_no_square_matrix_is_held(rng):
    for linkage in LINKAGES:
        h = Hierarchy(linkage)
        h.insert(rng.normal(size=(2000, 2)))
        assert h.n_bytes < 500 * 2000  # a triangle would take 8,000 bytes a point


def test_reports_count_dissimilarities(rng):
    h = Hierarchy.random(rng.normal(size=(60, 2)), "complete")
    before = h.n_dissimilarities
    report = h.refine()
    assert report.dissimilarities == h.n_dissimilarities - before > 0
    assert h.refine().dissimilarities == 0
    ward = Hierarchy.random(rng.normal(size=(60, 2)))
    assert ward.refine().dissimilarities == 0


@pytest.mark.parametrize(
    ("linkage", "n", "n_columns"),
    [
        *((linkage, 60, 3) for linkage in LINKAGES),
        *(pytest.param(linkage, 600, 6, marks=pytest.mark.slow) for linkage in LINKAGES),
    ],
)
def test_bounds_change_nothing(rng, linkage, n, n_columns):
    """The same tree with pivots and without: a metric of one's own has none."""
    x = rng.normal(size=(n, n_columns))
    with_bounds, without = Hierarchy(linkage), Hierarchy(linkage, "precomputed")
    with_bounds.insert(x)
    d = squareform(with_bounds.state.live.dissimilarities(with_bounds.state.keys.leaves()))
    without.insert(d)
    assert (with_bounds.state.live.tree.pairs.state["n_pivots"][0] > 0) == (linkage != "average")
    np.testing.assert_array_equal(with_bounds.linkage_matrix(), without.linkage_matrix())
    assert with_bounds.n_moves == without.n_moves


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("linkage", LINKAGES)
def test_every_metric(rng, linkage, metric):
    """Edits, reading and the definition, with ties: values are small integers."""
    x = rng.integers(0, 4, size=(40, 3)) + np.eye(3)[rng.integers(0, 3, size=40)]
    x[np.ptp(x, axis=1) == 0, 0] += 1  # rows that have a correlation
    h = Hierarchy(linkage, metric, metric_params=params_of(metric, 3))
    h.insert(x[:34])
    h.remove([3, 4, 5])
    h.update([6, 7], x[34:36])
    h.insert(x[36:], sample_weight=[1, 2, 3, 4])
    assert_valid_and_homogeneous(h)
    found = squareform(h.state.live.dissimilarities(h.state.keys.leaves()))
    expected = scipy_dissimilarities(h)
    np.testing.assert_allclose(
        found, expected - np.diag(np.diag(expected)), atol=1e-7 if metric == "jensenshannon" else 1e-12
    )
    assert naive.is_homogeneous(nested(h), getattr(naive, linkage)(found, weights(h)))
    assert h.cophenetic().size == 35 * 34 // 2
    assert np.unique(h.cut(n_clusters=4)).size == 4


def scipy_dissimilarities(h):
    x = h.points()
    if h.metric in ("dice", "yule", "rogerstanimoto", "russellrao", "sokalsneath", "jaccard"):
        x = x != 0
    with np.errstate(invalid="ignore"):
        return np.nan_to_num(cdist(x, x, h.metric, **(h.metric_params or {})))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_metric_params(rng, dtype):
    x = np.abs(rng.normal(size=(20, 3))).astype(dtype)
    w = np.array([1.0, 2.0, 0.5])
    for metric, params in (
        ("minkowski", {"p": 3}),
        ("minkowski", {"p": 0.5}),
        ("minkowski", {"p": 1, "w": w}),
        ("minkowski", {"p": np.inf}),
        ("minkowski", {"p": 4, "w": w}),
        ("seuclidean", {"V": w}),
    ):
        h = Hierarchy("complete", metric, metric_params=params)
        h.insert(x)
        assert_valid_and_homogeneous(h)
        expected = cdist(x.astype(float), x.astype(float), metric, **params)
        found = squareform(h.state.live.dissimilarities(h.state.keys.leaves()))
        np.testing.assert_allclose(found, expected, rtol=1e-5 if dtype == np.float32 else 1e-12)
        assert set(h.metric_params) == set(params)
        np.testing.assert_array_equal(h.points(), x)


BAD_PARAMS = [
    ("minkowski", {"p": 0}, "must be above 0"),
    ("minkowski", {"p": "x"}, "must be a number; it is 'x'"),
    ("minkowski", {"p": 3, "w": [-1.0, 1.0]}, "must not be negative"),
    ("minkowski", {"p": 3, "w": [np.nan, 1.0]}, "must be finite"),
    ("minkowski", {"q": 3}, "metric_params may have 'p' or 'w' for metric='minkowski'; it has 'q'"),
    ("seuclidean", {}, "needs metric_params={'V': vector}"),
    ("seuclidean", {"V": [0.0, 1.0]}, "must be positive"),
    ("seuclidean", {"V": [[1.0]]}, "its shape is"),
    ("cityblock", {"w": [1.0]}, "for weights use metric='minkowski' with {'p': 1, 'w': weights}"),
    (["euclidean"], None, "metric must be 'euclidean'"),
    (np.array(["euclidean"]), None, "metric must be 'euclidean'"),
    ("jensenshannon", {"base": 1}, "must be None or above 1"),
]


@pytest.mark.parametrize(("metric", "params", "message"), BAD_PARAMS)
def test_bad_params_are_refused(metric, params, message):
    with pytest.raises(et.errors.EvertreeError, match=message):
        Hierarchy("single", metric, metric_params=params)


def test_other_names_of_metrics():
    for alias, name in (("l2", "euclidean"), ("manhattan", "cityblock"), ("cb", "cityblock"), ("cos", "cosine")):
        assert Hierarchy("single", alias).metric == name


def test_points_that_a_metric_cannot_compare_are_refused():
    for metric, x, message in (
        ("jensenshannon", [[1.0, -1.0]], "not negative; see row 0"),
        ("jensenshannon", [[1.0, 1.0], [0.0, 0.0]], "no distribution; remove row 1"),
        ("braycurtis", [[1.0, -1.0]], "not negative; see row 0"),
        ("cosine", [[0.0, 0.0]], "a row of zeros has no direction"),
        ("correlation", [[1.0, 1.0]], "a row of equal values has no direction"),
        ("seuclidean", [[1.0, 1.0, 1.0]], r"metric_params\['V'\] must have 3 numbers"),
    ):
        h = Hierarchy("single", metric, metric_params=params_of(metric, 2))
        with pytest.raises(et.errors.DataError, match=message):
            h.insert(x)
        assert len(h) == 0


@pytest.mark.parametrize("linkage", LINKAGES)
def test_a_check_can_pause_and_go_on(rng, linkage):
    """With a budget of one pair at a time, the same tree comes out, and after every piece it is valid."""
    x = rng.normal(size=(50, 2))
    whole, pieces = Hierarchy.random(x, linkage, seed=1), Hierarchy.random(x, linkage, seed=1)
    whole.refine()
    live, state = pieces.state.live, pieces.state.live.tree.pairs.state
    n_paused = 0
    while live.n_pending:
        state["pause_at"][0] = state["looked_at"][0] + 1
        kernels.shared.homogenise.homogenise(live.tree, live.work, live.tag, 10, 10)
        n_paused += state["paused_node"][0] != NULL
        if live.n_moves % 50 == 0:
            pieces.validate()
    assert n_paused > 10
    assert_valid_and_homogeneous(pieces)
    np.testing.assert_allclose(pieces.linkage_matrix(), whole.linkage_matrix(), rtol=1e-12)
    assert pieces.n_moves == whole.n_moves


@pytest.mark.slow
@pytest.mark.parametrize("linkage", LINKAGES)
def test_reading_while_a_check_has_paused(linkage):
    """With all dissimilarities equal every tree is homogeneous, whatever a paused check has come to."""
    h = Hierarchy.random(np.ones((150, 150)) - np.eye(150), linkage, "precomputed")
    n_paused = 0
    while h.state.live.n_pending:
        h.state.live.homogenise(16)
        n_paused += h.state.live.tree.pairs.state["paused_node"][0] != NULL
        assert h.is_homogeneous()
        assert h.copy().is_homogeneous()
    assert n_paused > 0 or linkage in ("single", "average")


def test_centers_are_members(rng):
    """Of minimax linkage, after points have gone."""
    for _ in range(60):
        h = Hierarchy("minimax")
        h.insert(rng.integers(0, 20, size=(8, 2)) * 1.0)
        for _ in range(12):
            (key,) = h.insert(rng.integers(0, 20, size=(1, 2)) * 1.0)
            h.remove([key if rng.random() < 0.7 else h.keys()[0]])
            assert_valid_and_homogeneous(h)
            assert all(found in h.members(node) for node, found in h.prototypes().items())


@pytest.mark.slow
def test_the_guard_counts_anew_for_another_linkage(rng):
    h = Hierarchy()
    h.insert(rng.normal(size=(8, 1)))
    work = h.state.live.work
    work.state["moves"] = work.state["moves_before"] = 10**9
    report = h.set_linkage("complete")
    assert report.homogeneous
    assert report.stopped_by == "homogeneous"


def test_an_edit_while_a_check_has_paused(rng):
    x = rng.normal(size=(60, 2))
    h = Hierarchy.random(x, "average", seed=1)
    state = h.state.live.tree.pairs.state
    while state["paused_node"][0] == NULL:
        state["pause_at"][0] = state["looked_at"][0] + 1
        kernels.shared.homogenise.homogenise(h.state.live.tree, h.state.live.work, h.state.live.tag, 10, 10)
    h.copy().insert(x[:1])
    h.remove([0, 1])
    assert_valid_and_homogeneous(h)


@pytest.mark.slow
def test_deadlines_are_kept_where_one_check_takes_long(rng):
    x = rng.normal(size=(4000, 300))
    h = Hierarchy.random(x, "average")
    late = 0.0
    for _ in range(5):
        start = time.perf_counter()
        report = h.refine(seconds=0.05)
        late = max(late, time.perf_counter() - start - 0.05)
    assert report.stopped_by == "seconds"
    assert late < 0.05


@pytest.mark.parametrize(("linkage", "metric"), ONE_OF_EACH)
@pytest.mark.parametrize("ties", [False, True])
def test_prototypes(rng, linkage, metric, ties):
    n = 30
    x = rng.integers(0, 4, size=(n, 2)) * 1.0 if ties else rng.normal(size=(n, 2))
    w = rng.integers(1, 4, size=n) * 1.0
    h = Hierarchy(linkage, metric)
    h.insert(x, sample_weight=w)
    d = dissimilarities(h)
    found = h.prototypes()
    assert set(found) == set(h.nodes().tolist())
    for node, key in found.items():
        members = h.members(node)
        if linkage == "minimax":
            assert key == naive.prototype(d, frozenset(members))
            assert h.height(node) == pytest.approx(d[key, members].max())
        elif (linkage, metric) in (("ward", "euclidean"), ("average", "sqeuclidean")):
            mean = np.average(x[members], axis=0, weights=w[members])
            sq = ((x[members] - mean) ** 2).sum(axis=1)
            assert key == min(member for member, value in zip(members, sq, strict=True) if value <= sq.min() + 1e-9)
        else:
            assert key == naive.medoid(d, w, frozenset(members))
    some = h.nodes()[::7]
    assert h.prototypes(some) == {int(node): found[int(node)] for node in some}
    assert h.prototypes(h.root) == {h.root: found[h.root]}
    with pytest.raises(et.errors.UnknownNodeError):
        h.prototypes([10**6])


def test_metrics_and_linkages_change_into_any_other(rng):
    """Set_linkage and set_metric between vectors, a function and given dissimilarities."""
    x = rng.normal(size=(30, 2))
    h = Hierarchy()
    h.insert(x)
    steps = [
        {"linkage": "single"},
        {"linkage": "complete", "metric": "cosine"},
        {"linkage": "minimax", "metric": lambda p, q: float(np.abs(p - q).sum())},
        {"linkage": "average"},
        {"linkage": "average", "metric": "precomputed", "X": cdist(x, x, "chebyshev")},
        {"linkage": "single", "metric": "precomputed", "X": cdist(x, x, "cityblock")},
        {"linkage": "complete"},
        {"linkage": "ward", "metric": "euclidean", "X": x},
        {"linkage": "average"},
        {"linkage": "average", "metric": "minkowski", "metric_params": {"p": 3}},
    ]
    for step in steps:
        assert h.set_linkage(**step).homogeneous
        assert h.linkage == step["linkage"]
        assert_valid_and_homogeneous(h)
        assert naive.is_homogeneous(nested(h), definition(h))
        assert h.keys() == list(range(30))
    np.testing.assert_array_equal(h.points(), x)
    before = h.n_dissimilarities
    assert h.set_metric("euclidean", X=x[::-1]).homogeneous
    assert h.n_dissimilarities > before
    np.testing.assert_array_equal(h.points(), x[::-1])
    with pytest.raises(et.errors.DimensionError, match="X must have 30 points"):
        h.set_metric("euclidean", X=x[:3])


def test_objects_become_vectors_where_that_is_possible():
    h = Hierarchy("single", lambda p, q: abs(p[0] - q[0]))
    h.insert([(1, 2), (5, 5), (2, 2)])
    h.set_linkage("ward", metric="euclidean")
    np.testing.assert_array_equal(h.points(), [[1, 2], [5, 5], [2, 2]])
    words = Hierarchy("single", lambda p, q: float(p != q))
    words.insert(["a", "b"])
    with pytest.raises(et.errors.NotNumericError, match="X must be an array of"):
        words.set_metric("euclidean")
    assert words.points() == ["a", "b"]


@pytest.mark.parametrize(("linkage", "metric"), WITH_PAIRS)
def test_long_churn_does_not_drift(rng, linkage, metric):
    """Heights stay those of the definition over many edits, weights that differ much among them."""
    h = Hierarchy(linkage, metric, metric_params=params_of(metric, 2))
    n_rounds = 150 if COMPILED else 10
    h.insert(rng.normal(size=(20, 2)))
    for step in range(n_rounds):
        h.insert(
            rng.normal(size=(3, 2)) * 10.0 ** rng.integers(-3, 4), sample_weight=10.0 ** rng.integers(-6, 7, size=3)
        )
        h.remove(rng.choice(h.keys(), 3, replace=False).tolist())
        if step % 10 == 0:
            assert_valid_and_homogeneous(h)
    assert_valid_and_homogeneous(h)


def test_measures_of_pairs(rng):
    x = rng.normal(size=(25, 2))
    for linkage in LINKAGES:
        h = Hierarchy.random(x, linkage)
        d = dissimilarities(h)
        assert quality.tree_value(h) == pytest.approx(naive.tree_value(nested(h), d, np.ones(25)))
        u = naive.cophenetic(nested(h), definition(h))
        np.testing.assert_allclose(squareform(h.cophenetic()), u)
        expected = np.corrcoef(squareform(d, checks=False), squareform(u, checks=False))[0, 1]
        assert quality.cophenetic_correlation(h) == pytest.approx(expected)


@pytest.mark.slow
def test_all_identical_points_and_long_paths():
    for linkage in LINKAGES:
        h = Hierarchy(linkage)
        h.insert(np.full((300, 2), 0.1))
        assert h.height(h.root) == 0
        assert_valid_and_homogeneous(h)
        path = hierarchy_of(comb(100), np.arange(100.0).reshape(-1, 1) ** 2, linkage, "euclidean")
        path.refine()
        assert_valid_and_homogeneous(path)


def comb(n):
    tree = 0
    for i in range(1, n):
        tree = (tree, i)
    return tree
