"""Sketches: bounds on distances in many columns, and the same tree as without them."""

from __future__ import annotations

import os
import pickle

import numpy as np
import pytest

import evertree as et
from evertree.kernels.statistics.means import sq_dist
from evertree.kernels.statistics.sketches import least_sq_dist
from evertree.tree import refine, statistics
from evertree.tree.parallel import rounds
from helpers import hard_data

COMPILED = os.environ.get("NUMBA_DISABLE_JIT", "0") == "0"

M = 100

N = 300 if COMPILED else 16


def wide(name: str) -> np.ndarray:
    """Hard data, with as many columns as sketches need."""
    x = hard_data()[name]
    mixed = np.random.default_rng(1).uniform(-0.5, 0.5, size=(x.shape[1], M))
    with np.errstate(all="ignore"):
        return np.clip((x.astype(float) @ mixed).astype(x.dtype), *(1e150 * np.array([-1, 1])))


def points(rng: np.random.Generator, n: int, dtype: str = "float64") -> np.ndarray:
    """A few clusters, whose points differ most in the first columns."""
    spread = np.exp(-np.arange(M) / 20)
    centers = 3 * rng.normal(size=(8, M)) * spread
    return (centers[rng.integers(8, size=n)] + rng.normal(size=(n, M)) * spread).astype(dtype)


@pytest.fixture
def early(monkeypatch):
    """Sketches from a few points on."""
    monkeypatch.setattr(statistics, "_FEWEST_POINTS", 10)


def check(h: et.Hierarchy, is_sketched: bool = True) -> None:
    """Each sketch is what the mean is along the directions, up to its slip, which `validate` checks."""
    h.validate()
    assert bool(len(h.state.live.tree.sketch.direction)) == is_sketched


@pytest.mark.usefixtures("early")
def test_the_validator_sees_a_wrong_sketch(rng):
    h = et.Hierarchy(search_width=4)
    h.insert(points(rng, 20))
    h.refine()
    h.state.live.tree.sketch.value[h.root, 3] += 0.01
    with pytest.raises(AssertionError, match=f"the sketch of node {h.root}"):
        h.validate()


@pytest.mark.usefixtures("early")
@pytest.mark.parametrize("name", hard_data())
def test_bounds_on_hard_data(name):
    x = wide(name)
    if len(x) < 10:
        pytest.skip("too few points")
    h = et.Hierarchy.random(x)
    live, nodes = h.state.live, h.nodes()
    live.prepare_search()
    tree, n_bounds = live.tree, 0
    for u in nodes[:: 1 + nodes.size // 20]:
        for v in nodes[:: 1 if COMPILED else 5]:
            bound = least_sq_dist(tree, u, v)
            assert bound <= sq_dist(tree.mean, u, v)
            n_bounds += bound > 0.0
    if name not in ("all identical", "huge", "all magnitudes", "float32 huge", "float32 large constant column"):
        assert n_bounds > 0 or "last bits" in name or "constant" in name or "far" in name or "tiny" in name


@pytest.mark.usefixtures("early")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_bounds_say_something(rng, dtype):
    h = et.Hierarchy(search_width=4)
    h.insert(points(rng, N, dtype))
    h.refine()
    tree, nodes = h.state.live.tree, h.nodes()
    share = [least_sq_dist(tree, u, v) / sq_dist(tree.mean, u, v) for u in nodes[:20] for v in nodes[-20:] if u != v]
    assert np.median(share) > 0.5


@pytest.mark.parametrize("n_jobs", [None, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("dtype", ["float64", pytest.param("float32", marks=pytest.mark.slow)])
@pytest.mark.parametrize(("linkage", "metric"), [("ward", "euclidean"), ("average", "cosine")])
@pytest.mark.parametrize("search_width", [4, None])
def test_the_tree_is_the_same(monkeypatch, linkage, metric, dtype, n_jobs, search_width):
    monkeypatch.setattr(rounds, "FEWEST_POINTS", 100)
    monkeypatch.setattr(rounds, "FEWEST_NUMBERS", 0)
    monkeypatch.setattr(refine, "FEW", 0)
    monkeypatch.setattr(statistics, "FEWEST_BYTES_TO_REORDER", 1_000)
    found = []
    for fewest in (10, 10**9):
        monkeypatch.setattr(statistics, "_FEWEST_POINTS", fewest)
        rng = np.random.default_rng(3)
        h = et.Hierarchy.random(points(rng, N, dtype), linkage, metric, search_width=search_width, n_jobs=n_jobs)
        h.refine(moves=20)
        h.insert(points(rng, N, dtype), sample_weight=rng.choice([0.5, 1.0, 2.0], N))
        h.refine()
        h.remove(h.keys()[: N // 2])
        h.update(h.keys()[-5:], points(rng, 5, dtype))
        h.insert(points(rng, 1, dtype))
        h.refine()
        check(h, is_sketched=fewest == 10)
        places = h.locate(points(rng, 3, dtype))
        nearest = [place.nearest for place in places]
        found.append((h.linkage_matrix(), h.points(), nearest, h.state.live.search.near[:N]))
    for mine, theirs in zip(*found, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_lists_are_the_same(monkeypatch):
    """Distances that are too large for both lists are not computed, and no others."""
    found = []
    for fewest in (10, 10**9):
        monkeypatch.setattr(statistics, "_FEWEST_POINTS", fewest)
        rng = np.random.default_rng(4)
        h = et.Hierarchy(search_width=2)
        h.insert(points(rng, 15))
        h.insert(points(rng, 35))
        h.refine()
        found.append(h.state.live.search.near[:50].copy())
    np.testing.assert_array_equal(*found)


@pytest.mark.usefixtures("early")
def test_sketches_go_with_the_tree(rng, tmp_path, monkeypatch):
    """Through growth, new numbers of nodes, copies, pickles and files."""
    monkeypatch.setattr(statistics, "FEWEST_BYTES_TO_REORDER", 1_000)
    h = et.Hierarchy(search_width=4)
    h.insert(points(rng, N))
    h.refine()
    check(h)
    before = h.state.live.tree.sketch.direction
    for _ in range(30 if COMPILED else 3):
        h.insert(points(rng, 7))
        h.remove(h.keys()[:3])
    h.refine()
    check(h)
    assert h.state.live.tree.sketch.direction is before
    for twin in (h.copy(), pickle.loads(pickle.dumps(h))):
        twin.insert(points(rng, 20))
        twin.refine()
        check(twin)
    h.save(tmp_path / "tree")
    twin = et.load(tmp_path / "tree")
    check(twin, is_sketched=False)
    twin.insert(points(rng, 20))
    twin.refine()
    check(twin)


@pytest.mark.usefixtures("early")
def test_a_forest_has_none(rng):
    """Its subtrees are searched one by one, by rows that come from elsewhere."""
    from evertree.distributed.subtrees import from_live, to_live

    h = et.Hierarchy(search_width=4)
    h.insert(points(rng, 40 if COMPILED else 12))
    live = h.state.live
    twin = to_live(from_live(live)[0], live.scheme, live.aim)
    assert twin.n_points == live.n_points
    assert len(twin.tree.sketch.direction) == 0


@pytest.mark.usefixtures("early")
def test_rows_that_are_not_written_bound_nothing(rng):
    h = et.Hierarchy(search_width=4)
    h.insert(points(rng, 40 if COMPILED else 12))
    h.refine()
    live = h.state.live
    live.reserve(50)
    unused = live.capacity * 2 - 2
    assert live.tree.sketch.slip[unused] == np.inf
    assert least_sq_dist(live.tree, 0, unused) == 0.0


@pytest.mark.usefixtures("early")
def test_directions_are_found_again_when_there_are_many_more_points(rng):
    h = et.Hierarchy(search_width=4)
    h.insert(points(rng, 20))
    h.refine()
    before = h.state.live.tree.sketch.direction
    h.insert(points(rng, 7 * 20))
    h.insert(points(rng, 1))
    h.refine()
    assert h.state.live.tree.sketch.direction is not before
    check(h)


@pytest.mark.parametrize("x", [np.zeros((20, M)), np.full((20, M), np.inf), np.full((3, M), 1e308)])
def test_no_directions(x):
    assert statistics.directions(x).shape == (0, 0)


def test_directions_are_orthonormal(rng):
    found = statistics.directions(points(rng, 50) * 1e200)
    assert found.shape == (25, M)
    np.testing.assert_allclose(found @ found.T, np.eye(25), atol=1e-12)
    assert statistics.directions(np.eye(3, M)).shape[1] == M  # fewer points than directions


def test_few_columns_have_none(rng):
    h = et.Hierarchy(search_width=4)
    h.insert(rng.normal(size=(1_200 if COMPILED else 50, 3)))
    check(h, is_sketched=False)
