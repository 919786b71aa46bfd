"""Refinement: it ends homogeneous on every input, and its budgets, reports and interruptions."""

from __future__ import annotations

import itertools
import signal

import numpy as np
import pytest

import naive
from evertree import Report
from evertree.errors import ParameterError
from evertree.kernels.columns import LOST
from evertree.tree import refine
from helpers import (
    SCHEMES,
    Hierarchy,
    assert_valid_and_homogeneous,
    definition,
    fingerprint,
    hard_data,
    hierarchy_of,
    nested,
    params_of,
)

pytestmark = pytest.mark.usefixtures("searched")


@pytest.mark.parametrize("name", hard_data())
@pytest.mark.parametrize(("linkage", "metric"), SCHEMES)
def test_ends_homogeneous_on_hard_data(linkage, metric, name):
    x = hard_data()[name]
    if metric == "cosine":
        x = x[np.abs(x).max(axis=1, initial=0) > 0]
    params = params_of(metric, x.shape[1])
    if metric == "mahalanobis" and name == "huge":
        x = x / 4  # so that whitened values stay below the limit
    for seed in range(3):
        h = Hierarchy.random(x, linkage, metric, metric_params=params, seed=seed)
        report = h.refine()
        assert report.homogeneous
        assert report.stopped_by == "homogeneous"
        assert_valid_and_homogeneous(h)


@pytest.mark.parametrize(
    "name",
    [
        "random",
        "duplicates",
        "integer grid",
        "line",
        "constant columns",
        "large constant column",
        "tiny",
        "powers",
        "float32",
        "float32 huge",
        "float32 tiny",
        "float32 large constant column",
    ],
)
@pytest.mark.parametrize(("linkage", "metric"), SCHEMES)
def test_ends_homogeneous_by_definition(rng, linkage, metric, name):
    x = hard_data()[name]
    if metric == "cosine":
        x = x[np.abs(x).max(axis=1) > 0]
    if metric == "cosine" and (name in ("line", "powers", "tiny", "float32 tiny") or "large" in name):
        pytest.skip("all directions are the same, or rounding of the definition decides")
    if metric == "mahalanobis" and "large" in name:
        pytest.skip("the matrix mixes a huge column into the others, which rounds them away")
    h = hierarchy_of(naive.random_tree(rng, len(x)), x, linkage, metric)
    h.refine()
    assert naive.is_homogeneous(nested(h), definition(h), 1e-4 if x.dtype == np.float32 else 1e-8)


@pytest.mark.parametrize(("linkage", "metric"), SCHEMES)
def test_scans_agree_with_the_definition(rng, linkage, metric):
    """`violations` and `is_monotone` on trees that are far from homogeneous."""
    for _ in range(20):
        x = rng.normal(size=(15, 2))
        h = hierarchy_of(naive.random_tree(rng, 15), x, linkage, metric)
        zeta, tree = definition(h), nested(h)
        expected = {naive.members(a) | naive.members(b) for (a, b, _), _ in naive.wanted_moves(tree, zeta)}
        assert {frozenset(h.members(v)) for v in h.violations().tolist()} == expected
        assert h.is_homogeneous() == (not expected)
        assert h.is_monotone() == naive.is_monotone(tree, zeta)


@pytest.mark.parametrize(("dtype", "constant"), [(np.float64, 1.7e18), (np.float32, 1e7), (np.float32, 1e30)])
def test_a_constant_column_changes_nothing(rng, dtype, constant):
    """However large: its differences are exactly zero, and so is their rounding."""
    x = (10 * rng.normal(size=(5, 2)))[rng.integers(5, size=100)] + rng.normal(size=(100, 2))
    with_constant = np.column_stack([x, np.full(100, constant)]).astype(dtype)
    for linkage, metric in (("ward", "euclidean"), ("average", "sqeuclidean")):
        plain, other = Hierarchy(linkage, metric), Hierarchy(linkage, metric)
        plain.insert(x.astype(dtype))
        other.insert(with_constant)
        np.testing.assert_allclose(other.linkage_matrix(), plain.linkage_matrix(), rtol=1e-6)


@pytest.mark.parametrize("scale", [1e-35, 1e-24, 1e19, 1e37])
def test_float32_is_computed_in_float64(rng, scale):
    """Squares of float32 values need not fit into float32."""
    x = (rng.normal(size=(4, 2)) + 0.01 * rng.normal(size=(20, 4, 2))).reshape(-1, 2)
    unit, scaled = Hierarchy(), Hierarchy()
    unit.insert(x.astype(np.float32))
    scaled.insert((x * scale).astype(np.float32))
    assert_valid_and_homogeneous(scaled)
    np.testing.assert_array_equal(scaled.cut(n_clusters=4), unit.cut(n_clusters=4))
    np.testing.assert_allclose(scaled.linkage_matrix()[-3:, 2] / scale, unit.linkage_matrix()[-3:, 2], rtol=1e-3)


def test_scans_share_nothing_with_the_worklist(rng):
    """They give the same answer whatever the worklist says."""
    h = Hierarchy.random(rng.normal(size=(50, 2)))
    violations = h.violations()
    assert violations.size
    h.state.live.work.state[:] = np.zeros(1, h.state.live.work.state.dtype)
    h.state.live.work.mark[:] = 0
    np.testing.assert_array_equal(h.violations(), violations)
    assert not h.is_homogeneous()


def test_lists_to_improve_are_listed(rng, monkeypatch):
    """After one edit nothing is looked through; after many, and after loading, everything is."""
    monkeypatch.setattr("evertree.kernels.columns.N_RECENT", 256)
    h = Hierarchy("ward", goal="stable")
    h.insert(rng.normal(size=(300, 3)))
    live = h.state.live
    assert live.search.recent[0] == LOST
    h.refine()
    for _ in range(5):
        assert live.search.recent[0] == 0
        h.insert(rng.normal(size=(1, 3)))
        assert 0 < live.search.recent[0] < 100
        h.validate()
        twin = h.copy()
        twin.state.live.search.recent[0] = LOST
        report, other = h.refine(), twin.refine()
        assert (report.searches, report.grafts) == (other.searches, other.grafts)
        np.testing.assert_array_equal(h.linkage_matrix(), twin.linkage_matrix())


def test_moves_are_a_budget_that_is_kept_exactly(rng):
    h = Hierarchy.random(rng.normal(size=(200, 2)))
    assert Hierarchy.random(rng.normal(size=(20, 2))).refine(moves=10**30).homogeneous
    for moves in (0, 1, 7, 100):
        report = h.refine(moves=moves)
        assert report.moves == moves
        assert report.stopped_by == "moves"
        assert not report.homogeneous
        h.validate()


def test_a_refinement_in_pieces_ends_at_the_same_tree(rng):
    x = rng.normal(size=(200, 2))
    whole, pieces = Hierarchy.random(x, seed=4), Hierarchy.random(x, seed=4)
    whole.refine()
    for moves in itertools.cycle([1, 2, 3, 50]):
        if pieces.refine(moves=moves).homogeneous:
            break
        pieces.validate()
    np.testing.assert_array_equal(whole.linkage_matrix(), pieces.linkage_matrix())
    assert whole.n_moves == pieces.n_moves


def test_report_says_what_was_done(rng):
    h = Hierarchy.random(rng.normal(size=(300, 2)))
    report = h.refine()
    assert isinstance(report, Report)
    assert report.moves == h.n_moves > 100
    assert report.checks > report.moves
    assert report.pending == 0
    assert report.seconds > 0
    again = h.refine()
    assert (again.moves, again.checks, again.stopped_by) == (0, 0, "homogeneous")


def test_seconds_are_kept_and_progress_is_shown(rng, monkeypatch):
    """On a clock that goes 10 ms further with every look; how exact a real one is kept, ``make bench`` measures."""
    ticks = itertools.count()
    monkeypatch.setattr(refine.time, "perf_counter", lambda: next(ticks) / 100)
    h = Hierarchy.random(rng.normal(size=(2000, 2)))
    reports = []
    report = h.refine(seconds=0.5, progress=reports.append)
    assert report.stopped_by == "seconds"
    assert 0.5 <= report.seconds < 0.55
    assert len(reports) == 5  # after 0.1, 0.2, 0.3 and 0.4 seconds, and at the end
    assert [r.stopped_by for r in reports] == [None] * 4 + ["seconds"]
    assert all(a.checks < b.checks and a.seconds < b.seconds for a, b in itertools.pairwise(reports[:-1]))
    assert reports[-1] == report


def test_no_time_makes_no_moves(rng):
    h = Hierarchy.random(rng.normal(size=(100, 2)))
    report = h.refine(seconds=0)
    assert (report.moves, report.stopped_by) == (0, "seconds")


@pytest.mark.parametrize("n", [0, 1, 2])
def test_small_trees(n):
    h = Hierarchy.random(np.arange(float(n)).reshape(-1, 1))
    assert h.refine().homogeneous
    assert h.violations().size == 0
    assert h.is_monotone()
    h.validate()


def test_ctrl_c_leaves_a_valid_tree_that_can_be_refined_on(rng, monkeypatch):
    monkeypatch.setattr(refine, "_PROGRESS_EVERY", 0.0)
    h = Hierarchy.random(rng.normal(size=(500, 4)))
    with pytest.raises(KeyboardInterrupt):
        h.refine(progress=lambda report: signal.raise_signal(signal.SIGINT))
    assert h.state.live.n_pending > 0
    assert h.n_moves > 0
    h.validate()
    h.refine()
    assert_valid_and_homogeneous(h)


def test_an_error_in_a_progress_callback_leaves_a_valid_tree(rng):
    h = Hierarchy.random(rng.normal(size=(100, 2)))

    def fail(report):
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        h.refine(progress=fail)
    h.validate()


def test_the_guard_ends_what_would_not_end(rng):
    """With a quota of a few moves the tolerance widens until nothing is worth a move, and the report says so."""
    h = Hierarchy.random(rng.normal(size=(300, 2)))
    h.state.live.work.state["quota"][0] = 3
    report = h.refine()
    assert report.stopped_by == "guard"
    assert not report.homogeneous
    assert report.moves <= 3 * 11
    h.validate()
    assert not h.is_homogeneous()
    again = h.refine()  # it tries again, and the guard acts again
    assert (again.stopped_by, again.homogeneous) == ("guard", False)
    h.state.live.work.state["quota"][0] = 10**9
    assert h.refine().stopped_by == "homogeneous"
    assert_valid_and_homogeneous(h)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"seconds": -1}, "seconds must be None or a non-negative number; it is -1"),
        ({"seconds": float("nan")}, "seconds must be"),
        ({"seconds": "1"}, "seconds must be"),
        ({"moves": 1.5}, "moves must be a non-negative integer; it is 1.5"),
        ({"moves": -1}, "moves must be"),
        ({"moves": True}, "moves must be"),
        ({"progress": 3}, "progress must be True, False, None or callable; it is 3"),
        ({"until": np.array(["a", "b"])}, "until must be"),
        ({"until": "perfect"}, "until must be 'stable' or 'homogeneous'; it is 'perfect'"),
    ],
)
def test_bad_budgets(rng, arguments, message):
    h = Hierarchy.random(rng.normal(size=(10, 2)))
    before = fingerprint(h)
    with pytest.raises(ParameterError, match=message):
        h.refine(**arguments)
    assert fingerprint(h) == before


def test_moves_per_point_from_a_random_tree(rng):
    """Some moves a point, growing slowly with n: far from quadratic."""
    for linkage, metric in (("ward", "euclidean"), ("average", "sqeuclidean")):
        moves = [Hierarchy.random(rng.normal(size=(n, 2)), linkage, metric).refine().moves / n for n in (100, 400)]
        assert all(3 < per_point < 20 for per_point in moves)
        assert moves[1] < 2 * moves[0]


@pytest.mark.parametrize("name", hard_data())
def test_the_guard_does_not_act_by_itself(name):
    h = Hierarchy()
    h.insert(hard_data()[name])
    assert h.state.live.n_guarded == 0
    assert h.copy().state.live.n_guarded == 0
