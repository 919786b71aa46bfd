"""Size, mean and variance of clusters: `eq.SufficientStatisticRecursion`, appendix D."""

from __future__ import annotations

import numpy as np
import pytest

import naive
from helpers import Hierarchy, hard_data, hierarchy_of


def members_of(h: Hierarchy, node: int) -> list[int]:
    position = {key: i for i, key in enumerate(h.keys())}
    return [position[key] for key in h.members(node)]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_statistics_of_a_union_are_those_of_its_points(rng, dtype):
    """Appendix D (`eq.CentroidMerge`, `eq.VarianceMerge`), with weights."""
    x = rng.normal(size=(60, 5)).astype(dtype)
    w = rng.uniform(0.1, 5, size=60)
    h = hierarchy_of(naive.random_tree(rng, 60), x, sample_weight=w)
    tree = h.state.live.tree
    assert tree.mean.dtype == dtype
    for u in h.nodes().tolist():
        below = members_of(h, u)
        mean = np.average(x[below].astype(float), axis=0, weights=w[below])
        variance = np.average(((x[below] - mean) ** 2).sum(axis=1), weights=w[below])
        rtol = 1e-12 if dtype == np.float64 else 1e-5
        np.testing.assert_allclose(tree.size[u], w[below].sum(), rtol=1e-12)
        np.testing.assert_allclose(tree.mean[u], mean, rtol=rtol, atol=rtol)
        np.testing.assert_allclose(tree.variance[u], variance, rtol=10 * rtol, atol=rtol)
        assert tree.birth[u] == min(below)


def test_mean_of_duplicates_is_exact(rng):
    """Three times 0.1 has the mean 0.1: so duplicates never seem to differ."""
    x = np.repeat([[0.1, 1 / 3]], 50, axis=0)
    h = hierarchy_of(naive.random_tree(rng, 50), x)
    nodes = h.nodes()
    assert np.all(h.state.live.tree.mean[nodes] == x[0])
    assert np.all(h.state.live.tree.variance[nodes] == 0)


@pytest.mark.parametrize("name", hard_data())
def test_validator_accepts_statistics_of_hard_data(rng, name):
    x = hard_data()[name]
    if len(x):
        hierarchy_of(naive.random_tree(rng, len(x)), x).validate()


@pytest.mark.parametrize("column", ["size", "variance", "mean", "birth"])
def test_validator_sees_a_wrong_statistic(rng, column):
    h = hierarchy_of(naive.random_tree(rng, 20), rng.normal(size=(20, 2)))
    getattr(h.state.live.tree, column)[h.root] += 1
    with pytest.raises(AssertionError, match=f"{column} of node {h.root}"):
        h.validate()
