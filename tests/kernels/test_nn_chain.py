"""Batch clustering by a chain of nearest neighbours, beside SciPy and beside the definition."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.cluster.hierarchy import is_valid_linkage, linkage
from scipy.spatial.distance import pdist, squareform

import naive
from evertree.kernels.shared.nn_chain import Values, label_merges, merge_by_radius, merge_by_recurrence, nearest
from evertree.linkages import LINKAGES

NAMES = list(LINKAGES)


def distances(x):
    return squareform(pdist(x)) if len(x) > 1 else np.zeros((len(x), len(x)))


def definition(name, x, w=None):
    if name == "ward":
        return naive.ward(x, w)
    return getattr(naive, name)(distances(x), w)


def merge(name, x, w=None):
    """The merges and their heights, in the order of the chain. What is workspace holds rubbish before."""
    n = len(x)
    d = distances(x)
    merges, height = np.full((max(n - 1, 0), 2), -7), np.full(max(n - 1, 0), np.nan)
    ring, chain, alive = np.full((3, n), -7)
    w = np.ones(n) if w is None else w.astype(float)
    if name == "ward":
        d = w[:, None] * w / (w[:, None] + w) * d**2
    d, done = d[np.triu_indices(n, 1)], np.zeros(2, np.int64)
    farthest = np.full((n, n), np.nan)
    for stop in (n // 3, n // 2, n):  # it goes on where it stopped
        if name == "minimax":
            merge_by_radius(d, farthest, ring, chain, alive, merges, height, done, stop)
        else:
            merge_by_recurrence(LINKAGES[name].tag(1e-9), d, w, chain, alive, merges, height, done, stop)
    return merges, height


def to_scipy(merges, height, n):
    order = np.argsort(height, kind="stable")
    Z = np.empty((max(n - 1, 0), 4))
    label_merges(merges[order], height[order], np.full(n, -7), Z)
    return Z


def replay(merges, n):
    """For each merge, the clusters before it and the two that merge, by their slots."""
    clusters = {i: frozenset([i]) for i in range(n)}
    for a, b in merges.tolist():
        yield dict(clusters), a, b
        clusters[a] |= clusters.pop(b)


def assert_is_batch_tree(name, x, w=None, tolerance=1e-9):
    """A certificate of `tab.HAC`: each merge, in the order of heights, is as close as the closest pair there is."""
    n = len(x)
    zeta = definition(name, x, w)
    known = {}

    def value(A, B):
        key = frozenset((A, B))
        if key not in known:
            known[key] = zeta(A, B)
        return known[key]

    merges, height = merge(name, x, w)
    order = np.argsort(height, kind="stable")
    for (clusters, a, b), h in zip(replay(merges[order], n), height[order], strict=True):
        assert h == pytest.approx(value(clusters[a], clusters[b]), rel=tolerance, abs=0)
        assert h <= min(value(A, B) for A, B in itertools.combinations(clusters.values(), 2)) * (1 + tolerance)


def data_with_ties():
    rng = np.random.default_rng(0)
    return {
        "grid": np.stack(np.meshgrid(np.arange(5.0), np.arange(5.0)), -1).reshape(-1, 2),
        "line": np.arange(24.0).reshape(-1, 1),
        "all equal": np.full((20, 2), 0.1),
        "duplicates": np.repeat(rng.normal(size=(6, 3)), 4, axis=0)[rng.permutation(24)],
        "random integers": rng.integers(0, 4, size=(26, 2)).astype(float),
        "corners": np.array(list(itertools.product([0.0, 1.0], repeat=4))),
        "last bits": 1.0 + np.finfo(float).eps * rng.integers(0, 4, size=(20, 2)),
        "powers": 2.0 ** np.arange(20.0).reshape(-1, 1),
    }


@pytest.mark.parametrize("name", [name for name in NAMES if name != "minimax"])
@pytest.mark.parametrize("n", [2, 3, 10, 60, pytest.param(1000, marks=pytest.mark.slow)])
def test_same_as_scipy(rng, name, n):
    x = rng.normal(size=(n, 3))
    Z = to_scipy(*merge(name, x), n)
    if name == "ward":
        Z[:, 2] = np.sqrt(2 * Z[:, 2])
    theirs = linkage(pdist(x), name)
    assert is_valid_linkage(Z)
    np.testing.assert_array_equal(Z[:, [0, 1, 3]], theirs[:, [0, 1, 3]])
    np.testing.assert_allclose(Z[:, 2], theirs[:, 2], rtol=1e-10)


@pytest.mark.parametrize("n_columns", [1, 2, 10])
@pytest.mark.parametrize("n", [2, 3, 8, 30])
def test_minimax_same_as_definition(rng, n, n_columns):
    x = rng.normal(size=(n, n_columns))
    zeta = naive.minimax(distances(x))
    merges, height = merge("minimax", x)
    tree = naive.batch(zeta, n)
    assert is_valid_linkage(to_scipy(merges, height, n))
    assert np.sort(height).tolist() == naive.sorted_heights(tree, zeta)
    assert {frozenset(c[a] | c[b]) for c, a, b in replay(merges, n)} == {c for c in naive.clusters(tree) if len(c) > 1}


@pytest.mark.parametrize("n", [0, 1])
@pytest.mark.parametrize("name", NAMES)
def test_nothing_to_merge(name, n):
    merges, height = merge(name, np.zeros((n, 2)))
    assert merges.shape == (0, 2)
    assert to_scipy(merges, height, n).shape == (0, 4)


@pytest.mark.parametrize("name", NAMES)
def test_weighted(rng, name):
    assert_is_batch_tree(name, rng.normal(size=(25, 2)), rng.uniform(0.1, 5, size=25))


@pytest.mark.parametrize("name", ["average", "ward"])
def test_weights_are_repeated_points(rng, name):
    x, w = rng.normal(size=(20, 2)), rng.integers(1, 5, size=20)
    height = np.sort(merge(name, x, w)[1])
    repeated = np.sort(merge(name, np.repeat(x, w, axis=0))[1])
    assert np.all(repeated[: w.sum() - 20] == 0)
    np.testing.assert_allclose(repeated[w.sum() - 20 :], height, rtol=1e-10)


@pytest.mark.parametrize("data", data_with_ties())
@pytest.mark.parametrize("name", NAMES)
def test_ties_and_duplicates(name, data):
    assert_is_batch_tree(name, data_with_ties()[data])


@pytest.mark.parametrize("name", NAMES)
def test_no_inversions(rng, name):
    """Not even in the last bits, so that a stable sort by height puts parts before their union.

    Between points that are all equally far from each other, rounding alone decides.
    """
    n = 12
    for scale in rng.uniform(0.1, 1, size=20):
        merges, height = merge(name, scale * np.eye(n), None if name == "ward" else rng.uniform(0.5, 2, size=n))
        height_of_slot = np.zeros(n)
        for (a, b), h in zip(merges, height, strict=True):
            assert h >= height_of_slot[[a, b]].max()
            height_of_slot[a] = h


def chain_by_definition(zeta, n):
    """Merges and heights with every value computed, and the rule for ties written out."""
    clusters = {i: frozenset([i]) for i in range(n)}
    chain, merges, height = [], [], []
    while len(clusters) > 1:
        chain = chain or [min(clusters)]
        x, before = chain[-1], chain[-2] if len(chain) > 1 else None
        others = [c for c in clusters if c != x]
        y = min(others, key=lambda c: (zeta(clusters[x], clusters[c]), c != before, c))
        if y != before:
            chain.append(y)
            continue
        del chain[-2:]
        a, b = sorted((x, y))
        merges.append([a, b])
        height.append(zeta(clusters[a], clusters[b]))
        clusters[a] |= clusters.pop(b)
    return merges, height


@pytest.mark.parametrize("data", data_with_ties())
@pytest.mark.parametrize("name", ["single", "complete", "minimax"])
def test_rule_for_ties(name, data):
    """Bounds and recurrences, which are exact for these linkages, change nothing of what is merged, or when."""
    x = data_with_ties()[data]
    merges, height = merge(name, x)
    assert (merges.tolist(), height.tolist()) == chain_by_definition(definition(name, x), len(x))


def test_minimax_of_dissimilarities_that_are_no_metric(rng):
    """Few different values and no triangle inequality: many bounds are too low, and many values are tied."""
    n = 12
    for n_values in range(2, 32):
        condensed = rng.integers(0, n_values, size=n * (n - 1) // 2).astype(float)
        merges, height = np.empty((n - 1, 2), np.int64), np.empty(n - 1)
        room = np.empty((n, n)), *np.empty((3, n), np.int64)
        merge_by_radius(condensed.copy(), *room, merges, height, np.zeros(2, np.int64), n)
        assert (merges.tolist(), height.tolist()) == chain_by_definition(naive.minimax(squareform(condensed)), n)


def test_predecessor_wins_ties():
    z, alive = Values(np.ones(10), 5), np.array([0, 1, 3, 4, -7])
    assert nearest(z, alive, 4, 0, -1) == 1
    assert nearest(z, alive, 4, 0, 4) == 4
    assert nearest(z, alive, 4, 3, 1) == 1
    assert nearest(Values(np.full(10, np.inf), 5), alive, 4, 1, -1) == 0


def test_labels_take_any_member_as_the_name_of_a_cluster(rng):
    n = 50
    x = rng.normal(size=(n, 2))
    merges, height = merge("average", x)
    renamed = [[rng.choice(sorted(c[a])), rng.choice(sorted(c[b]))] for c, a, b in replay(merges, n)]
    flipped = np.array(renamed)[:, ::-1].copy()
    np.testing.assert_array_equal(to_scipy(flipped, height, n), to_scipy(merges, height, n))
