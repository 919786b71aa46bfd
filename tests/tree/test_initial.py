"""Trees to start from: random ones, those of others, the batch tree."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.cluster import hierarchy as sch
from scipy.stats import chisquare

import naive
from evertree import agglomerate, batch
from evertree.errors import DataError, DimensionError, DuplicateKeyError, ParameterError, WeightError
from helpers import ONE_OF_EACH, SCHEMES, Hierarchy, definition, hard_data, nested, params_of


@pytest.mark.slow
def test_random_trees_are_uniform():
    """Each of the 15 hierarchies of four points as often as the others (`eq.numBinTree`)."""
    x = np.zeros((4, 1))
    trees = [naive.canonical(tree) for tree in naive.all_trees([0, 1, 2, 3])]
    assert len(set(trees)) == 15
    counts = dict.fromkeys(trees, 0)
    for seed in range(6000):
        counts[naive.canonical(nested(Hierarchy.random(x, seed=seed)))] += 1
    assert chisquare(list(counts.values())).pvalue > 0.01


@pytest.mark.parametrize(("linkage", "metric"), SCHEMES)
def test_random_trees_are_valid_and_not_refined(rng, linkage, metric):
    h = Hierarchy.random(rng.normal(size=(100, 3)), linkage, metric, metric_params=params_of(metric, 3), seed=1)
    h.validate()
    assert h.n_moves == 0
    assert not h.is_homogeneous()


def test_a_seed_gives_one_tree(rng):
    x = rng.normal(size=(50, 2))
    a, b, c = (Hierarchy.random(x, seed=seed).linkage_matrix() for seed in (1, 1, 2))
    np.testing.assert_array_equal(a, b)
    assert not np.array_equal(a, c)
    with pytest.raises(ParameterError, match="seed must be a non-negative integer; it is -1"):
        Hierarchy.random(x, seed=-1)


@pytest.mark.parametrize("method", ["single", "complete", "average", "weighted", "centroid", "median", "ward"])
def test_any_scipy_tree(rng, method):
    x = rng.normal(size=(60, 2))
    Z = sch.linkage(x, method)
    h = Hierarchy.from_linkage(Z, x, keys=[f"k{i}" for i in range(60)])
    h.validate()
    assert h.n_moves == 0
    merged = {frozenset([i]) for i in range(60)}
    parts = [frozenset([i]) for i in range(60)]
    for a, b in Z[:, :2].astype(int):
        parts.append(parts[a] | parts[b])
        merged.add(parts[-1])
    assert naive.clusters(nested(h)) == merged
    h.refine()
    h.validate()
    assert h.is_homogeneous()


@pytest.mark.parametrize(
    ("Z", "error", "message"),
    [
        (np.zeros((2, 4)), DimensionError, r"Z must have shape \(3, 4\) for 4 points; its shape is \(2, 4\)"),
        ([["a"] * 4] * 3, DataError, "Z must be a matrix of numbers"),
        ([[0, 1.5, 0, 2], [2, 3, 0, 2], [4, 5, 0, 4]], DataError, "must be whole numbers"),
        ([[0, 4, 0, 2], [2, 3, 0, 2], [4, 5, 0, 4]], DataError, "in the rows before it"),
        ([[0, -1, 0, 2], [2, 3, 0, 2], [4, 5, 0, 4]], DataError, "in the rows before it"),
        ([[0, np.nan, 0, 2], [2, 3, 0, 2], [4, 5, 0, 4]], DataError, "must be whole numbers"),
        ([[0, 1, 0, 2], [0, 3, 0, 2], [4, 5, 0, 4]], DataError, "merges a cluster twice"),
    ],
)
def test_matrices_that_are_no_trees(Z, error, message):
    with pytest.raises(error, match=message):
        Hierarchy.from_linkage(Z, np.arange(4.0).reshape(-1, 1))


@pytest.mark.parametrize(("linkage", "metric"), SCHEMES)
def test_batch_tree_is_batch_clustering(rng, linkage, metric):
    """`tab.HAC`: the same clusters as the definition."""
    x = rng.normal(size=(25, 2))
    h = agglomerate(x, linkage, metric, metric_params=params_of(metric, 2))
    h.validate()
    assert naive.clusters(nested(h)) == naive.clusters(naive.batch(definition(h), 25))


@pytest.mark.parametrize("name", hard_data())
def test_batch_tree_of_hard_data(name):
    x = hard_data()[name]
    h = agglomerate(x)
    h.validate()
    assert len(h) == len(x)


def test_batch_tree_is_live(rng):
    h = agglomerate(rng.normal(size=(30, 2)), keys=[f"k{i}" for i in range(30)])
    h.insert(rng.normal(size=(3, 2)))
    h.remove(["k3"])
    h.validate()
    assert h.is_monotone()


@pytest.mark.parametrize(("linkage", "metric"), ONE_OF_EACH)
def test_batch_tree_of_weighted_points_is_that_of_repeated_ones(rng, linkage, metric):
    x, counts = rng.normal(size=(12, 2)), rng.integers(1, 4, size=12)
    h = agglomerate(x, linkage, metric, sample_weight=counts)
    repeated = agglomerate(np.repeat(x, counts, axis=0), linkage, metric)
    heights = repeated.linkage_matrix()[:, 2]
    np.testing.assert_allclose(h.linkage_matrix()[:, 2], heights[-11:], rtol=1e-9)
    assert np.all(heights[:-11] == 0)


@pytest.mark.parametrize("linkage", ["single", "complete", "average", "minimax"])
def test_batch_tree_of_dissimilarities(rng, linkage):
    d = sch.distance.pdist(rng.normal(size=(25, 2)))
    h = agglomerate(d, linkage, "precomputed")
    assert naive.clusters(nested(h)) == naive.clusters(naive.batch(definition(h), 25))
    h.validate()


def test_batch_refuses_before_the_long_work(rng, monkeypatch):
    def never(*_):
        raise RuntimeError("the long work has begun")

    monkeypatch.setattr(batch, "cluster", never)
    x = rng.normal(size=(5, 2))
    with pytest.raises(WeightError, match="must be positive"):
        agglomerate(x, sample_weight=np.zeros(5))
    with pytest.raises(ParameterError, match="goal"):
        agglomerate(x, goal="best")
    with pytest.raises(DuplicateKeyError, match="'a'"):
        agglomerate(x, keys=list("aabcd"))


def test_options_go_through(rng):
    x = rng.normal(size=(5, 2))
    for h in (
        Hierarchy.random(x, goal="homogeneous", seed=3),
        Hierarchy.from_linkage(sch.linkage(x), x, goal="homogeneous", seed=3),
        agglomerate(x, goal="homogeneous", seed=3),
    ):
        assert (h.goal, h.seed) == ("homogeneous", 3)
    with pytest.raises(ParameterError, match="goal must be 'stable' or 'homogeneous'; it is 'best'"):
        Hierarchy(goal="best")
    with pytest.raises(DuplicateKeyError, match="given more than once: 'a'"):
        Hierarchy.random(x, keys=list("aabcd"))
