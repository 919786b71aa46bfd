"""The anytime procedure with its moves in a given order."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chisquare

import naive
from evertree import agglomerate
from evertree.kernels.compile import IS_COMPILED
from helpers import ONE_OF_EACH, Hierarchy, definition, hard_data, nested
from paper.move_order import ORDERS, homogenise_in_order

if IS_COMPILED:
    pytest.importorskip("numba", reason="it compiles the kernel of this experiment, which is not in the library")

AT_RANDOM, BOTTOM_UP, LARGEST = ORDERS[2:]


@pytest.mark.parametrize(("linkage", "metric"), ONE_OF_EACH)
@pytest.mark.parametrize("order", ORDERS)
def test_every_order_ends_homogeneous(rng, linkage, metric, order):
    x = rng.normal(size=(40, 2))
    h = Hierarchy.random(x, linkage, metric)
    homogenise_in_order(h.state.live, order, rng)
    h.validate()
    assert h.n_moves > 0
    assert h.is_homogeneous()
    assert h.refine().checks == 0
    if linkage == "single":
        np.testing.assert_allclose(h.linkage_matrix()[:, 2], agglomerate(x, "single").linkage_matrix()[:, 2])


@pytest.mark.parametrize(("linkage", "metric"), ONE_OF_EACH)
def test_last_in_first_out_is_the_librarys_order(rng, linkage, metric):
    x = rng.normal(size=(60, 3))
    h, g = (Hierarchy.random(x, linkage, metric, seed=4) for _ in range(2))
    homogenise_in_order(h.state.live, "last in first out", rng)
    assert h.n_moves == g.refine().moves
    np.testing.assert_array_equal(h.linkage_matrix(), g.linkage_matrix())


@pytest.mark.parametrize("order", [order for order in ORDERS if order != AT_RANDOM])
def test_stops_and_goes_on_in_the_same_order(rng, order):
    x = rng.normal(size=(50, 2))
    whole, slices = (Hierarchy.random(x, "ward", seed=2) for _ in range(2))
    homogenise_in_order(whole.state.live, order, rng)
    while slices.state.live.n_pending:
        before = slices.n_moves
        homogenise_in_order(slices.state.live, order, rng, 3)
        assert slices.n_moves <= before + 3
        slices.validate()
    assert slices.n_moves == whole.n_moves
    np.testing.assert_array_equal(slices.linkage_matrix(), whole.linkage_matrix())


def next_cluster(h, order, rng):
    """The cluster that the next move breaks."""
    before = naive.clusters(nested(h))
    homogenise_in_order(h.state.live, order, rng, 1)
    (broken,) = before - naive.clusters(nested(h))
    return broken


@pytest.mark.parametrize(("linkage", "metric"), [("ward", "euclidean"), ("single", "euclidean")])
@pytest.mark.parametrize("order", [BOTTOM_UP, LARGEST])
def test_the_next_move_is_the_one_that_the_order_says(rng, linkage, metric, order):
    h = Hierarchy.random(rng.normal(size=(12, 2)), linkage, metric)
    zeta = definition(h)
    while wanted := naive.wanted_moves(nested(h), zeta):
        saved = {}
        for (a, b, c), far in wanted:
            near = b if far == a else a
            cluster = naive.members(a) | naive.members(b)
            saved[cluster] = -len(cluster) if order == BOTTOM_UP else naive.of(zeta, a, b) - naive.of(zeta, near, c)
        broken = next_cluster(h, order, rng)
        assert float(saved[broken]) == pytest.approx(float(max(saved.values())))


@pytest.mark.slow
def test_random_order_is_uniform_over_violations(rng):
    x = rng.normal(size=(12, 2))
    start = Hierarchy.random(x, "single")
    wanted = {
        naive.members(a) | naive.members(b) for (a, b, _), _ in naive.wanted_moves(nested(start), definition(start))
    }
    assert len(wanted) >= 4
    counts = dict.fromkeys(wanted, 0)
    for _ in range(400 * len(wanted)):
        counts[next_cluster(start.copy(), AT_RANDOM, rng)] += 1
    assert chisquare(list(counts.values())).pvalue > 0.01


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", ["duplicates", "integer grid", "all magnitudes", "one point"])
def test_hard_data(rng, order, name):
    h = Hierarchy.random(hard_data()[name], "ward")
    homogenise_in_order(h.state.live, order, rng)
    assert h.is_homogeneous()


def test_a_random_order_has_a_seed(rng):
    x = rng.normal(size=(40, 2))
    trees = []
    for seed in (1, 1, 2):
        h = Hierarchy.random(x, "ward")
        homogenise_in_order(h.state.live, AT_RANDOM, np.random.default_rng(seed))
        trees.append(h.linkage_matrix())
    np.testing.assert_array_equal(trees[0], trees[1])
    assert not np.array_equal(trees[0], trees[2])
