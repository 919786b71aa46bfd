"""Clusters without a number, by definition, and as hdbscan and scikit-learn find them."""

from __future__ import annotations

import dataclasses
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import evertree as et
import naive_condensed
from evertree.tree import condensed
from evertree.tree.condensed import METHODS, Selection
from helpers import hard_data
from matrices import caterpillar

LINKAGES = ["single", "complete", "average", "minimax", "ward"]
HARD = hard_data()


def clusters_of(h, fewest):
    return condensed.condense(h.state.live, h.state.keys.leaves(), fewest)


def selections(fewest, epsilons):
    for method in METHODS:
        for epsilon in epsilons:
            for may_be_one in (False, True):
                yield Selection(fewest, method, epsilon, may_be_one)


def check_by_definition(h, fewest, selection=None):
    """All that is said of clusters of `fewest` points is what `naive_condensed` says."""
    Z = h.linkage_matrix()
    clusters = clusters_of(h, fewest)
    root = naive_condensed.condense(naive_condensed.merges_of(Z), len(h), fewest)
    nodes = root.all()
    assert clusters.size.tolist() == [len(node.points) for node in nodes]
    assert clusters.born.tolist() == [node.born for node in nodes]
    assert clusters.died.tolist() == [node.died for node in nodes]
    with np.errstate(over="ignore"):
        assert_allclose(clusters.stability, [node.stability for node in nodes], rtol=1e-12)
    assert_allclose(condensed.outlier_scores(clusters), naive_condensed.outlier_scores(root), rtol=1e-12)
    heights = [0.0, *np.quantile(Z[:, 2], [0.3, 0.8]).tolist(), Z[len(Z) // 2, 2]] if len(Z) else [0.0]
    for wanted in selections(fewest, heights) if selection is None else [selection]:
        found = condensed.select(clusters, wanted)
        options = wanted.method, wanted.epsilon, wanted.allow_single_cluster
        expected = naive_condensed.answer(root, fewest, *options)
        assert found.labels.tolist() == expected.labels, wanted
        assert [nodes[c].points for c in found.chosen] == [node.points for node in expected.selected]
        assert_allclose(condensed.probabilities(clusters, found), expected.probabilities, rtol=1e-12)


@pytest.mark.parametrize("fewest", [1, 2, 3, 5, 12])
@pytest.mark.parametrize("linkage", LINKAGES)
def test_by_definition(rng, linkage, fewest):
    h = et.Hierarchy(linkage)
    h.insert(rng.normal(size=(40, 2)))
    check_by_definition(h, fewest)


@pytest.mark.parametrize("linkage", LINKAGES)
@pytest.mark.parametrize("name", [name for name in HARD if name != "no points"])
def test_by_definition_on_hard_data(name, linkage):
    h = et.Hierarchy(linkage)
    h.insert(HARD[name])
    for fewest in (2, 4):
        check_by_definition(h, fewest)


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=24),
    st.sampled_from(LINKAGES),
    st.integers(1, 6),
    st.sampled_from(METHODS),
    st.sampled_from([0.0, 1.0, 1.5, 2.0, 3.0]),
    st.booleans(),
)
def test_by_definition_where_all_ties(points, linkage, fewest, method, epsilon, may_be_one):
    h = et.Hierarchy(linkage)
    h.insert(np.array(points, float))
    check_by_definition(h, fewest, Selection(fewest, method, epsilon, may_be_one))


def test_a_tree_that_is_not_monotone(rng):
    h = et.Hierarchy.random(rng.normal(size=(40, 2)), "average", "sqeuclidean")
    assert not h.is_monotone()
    check_by_definition(h, 3)


@pytest.mark.parametrize("linkage", ["single", "ward"])
def test_the_order_of_children_does_not_matter(rng, linkage):
    h = et.Hierarchy(linkage)
    h.insert(rng.integers(0, 8, size=(60, 2)).astype(float))
    tree, inner = h.state.live.tree, h.nodes()[h.nodes() % 2 == 1]
    before = clusters_of(h, 3)
    swapped = inner[rng.random(inner.size) < 0.5]
    tree.left[swapped], tree.right[swapped] = tree.right[swapped], tree.left[swapped]
    for one, other in zip(vars(before).values(), vars(clusters_of(h, 3)).values(), strict=True):
        assert_array_equal(one, other)


def test_equal_points_do_not_split_in_the_excess_of_mass():
    h = et.Hierarchy("single")
    h.insert(np.repeat([[0.0], [5.0], [6.0]], 8, axis=0))
    clusters = clusters_of(h, 2)
    found = condensed.select(clusters, Selection(2))
    assert found.labels.tolist() == [0] * 8 + [1] * 8 + [2] * 8
    assert np.isinf(found.stability).all()
    assert_array_equal(condensed.probabilities(clusters, found), 1.0)
    assert_array_equal(condensed.persistences(clusters, found), 1.0)
    assert_array_equal(condensed.outlier_scores(clusters), 0.0)


def test_beside_equal_points_all_others_are_outliers():
    h = et.Hierarchy("single")
    h.insert([[0.0], [0.0], [0.0], [1.0], [50.0]])
    clusters = clusters_of(h, 3)
    assert condensed.outlier_scores(clusters).tolist() == [0.0, 0.0, 0.0, 1.0, 1.0]
    found = condensed.select(clusters, Selection(3, allow_single_cluster=True))
    assert found.labels.tolist() == [0, 0, 0, -1, -1]


@pytest.mark.parametrize(
    ("change", "labels"),
    [(0.0, [0, 0, 0, 0, 1, 1]), (-1e-12, [0, 0, 0, 0, 1, 1]), (-1e-6, [0, 0, 1, 1, 2, 2])],
)
def test_a_tie_of_stabilities_goes_to_the_larger_cluster(change, labels):
    """A cluster that is as stable as its two parts together stays whole, and rounding does not divide it."""
    h = et.Hierarchy("single")
    h.insert([[0.0], [1.0], [3.0], [4.0], [1e9], [1e9 + 1.0]])
    clusters = clusters_of(h, 2)
    assert clusters.size.tolist() == [6, 4, 2, 2, 2]
    tied = dataclasses.replace(clusters, stability=np.array([0.0, 2.0 + change, 2.0, 1.0, 1.0]))
    assert condensed.select(tied, Selection(2)).labels.tolist() == labels


@pytest.mark.slow
def test_a_path():
    """Each merge takes one more point, 100,000 times; and a comb, of whose clusters each is inside the one before."""
    n = 100_000
    x = np.cumsum(np.linspace(1.0, 2.0, n))[:, None]
    h = et.Hierarchy.from_linkage(caterpillar(n), x, linkage="ward")
    tree = h.condensed_tree(min_cluster_size=5, allow_single_cluster=True)
    assert tree.to_numpy().size == n
    assert np.flatnonzero(tree.labels == 0).tolist() == [0, 1, 2, 3, 4]
    comb = np.sort(np.concatenate([x[::2], x[::2] + 1e-3]), axis=0)
    rows = n // 2 - 1
    Z = np.concatenate([
        np.column_stack([np.arange(0, n, 2), np.arange(1, n, 2), np.full(n // 2, 1e-3), np.full(n // 2, 2)]),
        np.column_stack([
            np.where(np.arange(rows) == 0, n, n + n // 2 - 1 + np.arange(rows)),
            n + 1 + np.arange(rows), np.linspace(1, 2, rows), 4 + 2 * np.arange(rows),
        ]),
    ])  # fmt: skip
    h = et.Hierarchy.from_linkage(Z, comb, linkage="ward")
    tree = h.condensed_tree(min_cluster_size=2)
    assert tree.clusters.size == n // 2
    assert_array_equal(tree.labels, np.repeat(np.arange(n // 2), 2))
    assert set(h.cut(min_cluster_size=2, epsilon=1e12).tolist()) == {0, 1}


@pytest.mark.parametrize("data", ["random", "integer grid", "duplicates", "all identical"])
@pytest.mark.parametrize("linkage", LINKAGES)
def test_hdbscans_own_functions_agree(rng, linkage, data):
    """Given the same linkage matrix, up to its NaN, for which the limit stands, and the float32 that it adds in."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = pytest.importorskip("hdbscan._hdbscan_tree", reason="hdbscan is not installed")
    h = et.Hierarchy(linkage)
    h.insert(rng.normal(size=(150, 2)) if data == "random" else HARD[data])
    Z = h.linkage_matrix()
    for fewest in (2, 3, 7):
        table = theirs.condense_tree(Z, fewest)
        clusters = clusters_of(h, fewest)
        scores = theirs.outlier_scores(table)
        assert_allclose(
            condensed.outlier_scores(clusters), np.where(np.isnan(scores), 1.0, scores), rtol=1e-12, atol=1e-15
        )
        for wanted in selections(fewest, [0.0, 0.37, 1.03]):
            options = wanted.method, wanted.allow_single_cluster, False, wanted.epsilon
            with np.errstate(all="ignore"):
                labels, probabilities, persistence = theirs.get_clusters(
                    table, theirs.compute_stability(table), *options
                )
            order = [label for label in dict.fromkeys(labels.tolist()) if label >= 0]
            found = condensed.select(clusters, wanted)
            assert found.labels.tolist() == [order.index(label) if label >= 0 else -1 for label in labels]
            assert_allclose(condensed.probabilities(clusters, found), probabilities, rtol=1e-12)
            assert_allclose(condensed.persistences(clusters, found), persistence[order], rtol=1e-6)


@pytest.mark.parametrize("fewest", [2, 5, 15])
@pytest.mark.parametrize("method", METHODS)
def test_scikit_learns_hdbscan_agrees(rng, method, fewest):
    """From the points; its `min_samples` counts the point itself, so 1 is plain single linkage.

    Without an epsilon: with NumPy 2.4 it fails.
    """
    cluster = pytest.importorskip("sklearn.cluster", reason="scikit-learn is not installed")
    centers = np.repeat([[0.0, 0.0], [4.0, 0.0], [2.0, 5.0]], 40, axis=0)
    x = np.concatenate([centers + rng.normal(size=(120, 2)), rng.uniform(-3, 8, size=(30, 2))])
    h = et.agglomerate(x, linkage="single")
    for may_be_one in (False, True):
        options = {"min_cluster_size": fewest, "allow_single_cluster": may_be_one}
        model = cluster.HDBSCAN(min_samples=1, cluster_selection_method=method, copy=True, **options).fit(x)
        tree = h.condensed_tree(method=method, **options)
        order = [label for label in dict.fromkeys(model.labels_.tolist()) if label >= 0]
        assert tree.labels.tolist() == [order.index(label) if label >= 0 else -1 for label in model.labels_]
        assert_allclose(tree.probabilities, model.probabilities_, rtol=1e-9)
