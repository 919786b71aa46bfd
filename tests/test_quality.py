"""Measures of a tree."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.cluster import hierarchy as sch
from scipy.spatial.distance import pdist

import naive
from evertree import Hierarchy, agglomerate, quality
from evertree.errors import DimensionError, EmptyHierarchyError
from helpers import SCHEMES, definition, dissimilarities, hierarchy_of, nested, square, weights


@given(st.integers(1, 25), st.integers(1, 6), st.integers(0, 10**6))
def test_purity_is_the_definition(n, n_classes, seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, n_classes, size=n)
    h = hierarchy_of(naive.random_tree(rng, n), rng.normal(size=(n, 1)))
    assert quality.dendrogram_purity(h, labels) == pytest.approx(naive.dendrogram_purity(nested(h), labels))


@pytest.mark.slow
def test_purity_of_a_long_path_with_many_classes():
    """A path of 100,000 leaves, and half as many classes."""
    n = 100_000
    Z = np.column_stack([np.r_[0, np.arange(n, 2 * n - 2)], np.arange(1, n), np.ones(n - 1), np.arange(2, n + 1)])
    h = Hierarchy.from_linkage(Z, np.zeros((n, 1)))
    pairs = np.arange(n) // 2
    expected = np.mean(2.0 / (2 * np.arange(n // 2) + 2))
    assert quality.dendrogram_purity(h, pairs) == pytest.approx(expected)


def test_purity_takes_any_labels_in_the_order_of_keys(rng):
    h = Hierarchy()
    h.insert([[0.0], [10.0], [0.1], [10.1]], keys=[5, 3, 9, 1])
    assert quality.dendrogram_purity(h, ["x", "y", "x", "y"]) == 1.0
    h.remove([3])
    assert quality.dendrogram_purity(h, ["x", "x", "y"]) == 1.0
    assert quality.dendrogram_purity(h, ["x", "y", "z"]) == 1.0
    assert quality.dendrogram_purity(h, [None, None, "y"]) == 1.0
    with pytest.raises(DimensionError, match=r"labels must have shape \(3,\), one for each key; it has \(2,\)"):
        quality.dendrogram_purity(h, [1, 2])


@pytest.mark.parametrize(("linkage", "metric"), SCHEMES)
def test_total_linkage_and_tree_value(rng, linkage, metric):
    x, w = rng.normal(size=(20, 2)), rng.uniform(0.5, 3, size=20)
    h = hierarchy_of(naive.random_tree(rng, 20), x, linkage, metric, sample_weight=w)
    assert quality.total_linkage(h) == pytest.approx(naive.total_linkage(nested(h), definition(h)))
    d = dissimilarities(h) ** (2 if linkage == "ward" and metric != "sqeuclidean" else 1)
    assert quality.tree_value(h) == pytest.approx(naive.tree_value(nested(h), d, weights(h)))


def test_cophenetic_correlation_is_scipys(rng):
    x = rng.normal(size=(40, 2))
    for metric in ("sqeuclidean", "cosine"):
        h = agglomerate(x, "average", metric)
        expected = sch.cophenet(sch.linkage(x, "average", metric=metric), pdist(x, metric))[0]
        assert quality.cophenetic_correlation(h) == pytest.approx(expected)


@pytest.mark.parametrize(("linkage", "metric"), [("ward", "euclidean"), ("average", "sqeuclidean")])
def test_cophenetic_correlation_of_the_paper(rng, linkage, metric):
    """`eq.Cophenetic`: over all i and j, the diagonal included."""
    x = rng.normal(size=(30, 2))
    h = Hierarchy(linkage, metric)
    h.insert(x)
    d, u = square(pdist(x, metric)), square(h.cophenetic(as_dissimilarity=True))
    expected = np.corrcoef(d.ravel(), u.ravel())[0, 1]
    assert quality.cophenetic_correlation(h, diagonal=True) == pytest.approx(expected)
    upper = np.triu_indices(30, 1)
    assert quality.cophenetic_correlation(h) == pytest.approx(np.corrcoef(d[upper], u[upper])[0, 1])


@pytest.mark.parametrize("scale", [1e-100, 1e149])
def test_cophenetic_correlation_at_any_scale(rng, scale):
    x = np.clip(rng.normal(size=(20, 2)), -1, 1)
    plain = agglomerate(x, "average", "sqeuclidean")
    scaled = Hierarchy.from_linkage(plain.linkage_matrix(), x * scale, "average", "sqeuclidean")
    expected = quality.cophenetic_correlation(plain)
    assert quality.cophenetic_correlation(scaled) == pytest.approx(expected)


def test_small_and_constant_data():
    h = Hierarchy()
    for measure in (quality.cophenetic_correlation, quality.tree_value, quality.total_linkage):
        with pytest.raises(EmptyHierarchyError, match="insert points first"):
            measure(h)
    h.insert([[1.0]])
    assert np.isnan(quality.cophenetic_correlation(h))
    assert quality.dendrogram_purity(h, [0]) == 1.0
    assert quality.tree_value(h) == quality.total_linkage(h) == 0.0
    h.insert([[1.0], [1.0]])
    assert np.isnan(quality.cophenetic_correlation(h))
    assert np.isnan(quality.cophenetic_correlation(h, diagonal=True))


@pytest.mark.slow
def test_digits():
    """Handwritten digits of scikit-learn: a homogeneous tree is far from batch, and a stable one is as good."""
    datasets = pytest.importorskip("sklearn.datasets", reason="the digits come from scikit-learn")
    x, y = datasets.load_digits(return_X_y=True)
    h, paper = Hierarchy(), Hierarchy(goal="homogeneous")
    h.insert(x)
    paper.insert(x)
    batch = quality.dendrogram_purity(agglomerate(x), y)
    assert batch == pytest.approx(0.85, abs=0.03)
    assert 0.5 < quality.dendrogram_purity(paper, y) < batch - 0.1
    assert quality.dendrogram_purity(paper, y) < quality.dendrogram_purity(h, y)  # before any refinement
    h.refine()
    assert quality.dendrogram_purity(h, y) > 0.95 * batch
    assert h.instability(sample=None).fraction < 0.01


def test_glass(shared_data):
    """Glass: the live tree is monotone, and not far from batch in the objective of Cohen-Addad and others."""
    with np.load(shared_data / "glass.npz") as data:
        x, y = data["X"].astype(float), data["y"]
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    h = Hierarchy()
    h.insert(x)
    assert h.is_monotone()
    batch = agglomerate(x)
    assert quality.tree_value(h) > 0.95 * quality.tree_value(batch)
    assert quality.dendrogram_purity(batch, y) == pytest.approx(0.504, abs=0.01)
