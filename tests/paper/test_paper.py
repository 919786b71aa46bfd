"""The paper's lemmas, propositions and theorems, each on data."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.cluster.hierarchy
from scipy.spatial.distance import squareform

import evertree
import naive
from evertree import agglomerate
from evertree.kernels.shared.recurrence import coefficients, linkage_of_union
from evertree.quality import total_linkage, tree_value
from helpers import ONE_OF_EACH, SCHEMES, Hierarchy, definition, dissimilarities, hierarchy_of, nested, params_of

LINKAGES = [*ONE_OF_EACH, ("average", "cosine"), ("minimax", "cityblock")]


def one_run(rng, linkage, metric, n=25):
    """A run of AHC from a random tree, one move at a time: the trees, and the linkage by definition."""
    w = rng.uniform(0.5, 4, size=n)
    h = Hierarchy.random(rng.normal(size=(n, 2)), linkage, metric, seed=int(rng.integers(1000)), sample_weight=w)
    zeta = definition(h)
    trees = [nested(h)]
    while not h.refine(moves=1).homogeneous:
        trees.append(nested(h))
    if naive.clusters(nested(h)) != naive.clusters(trees[-1]):
        trees.append(nested(h))
    assert len(trees) > n
    return trees, zeta


def triplet(before, after):
    """(A, B, C) of `lem.NNITriplet`: all ordered triples of common clusters that fit."""
    gone, come = naive.clusters(before) - naive.clusters(after), naive.clusters(after) - naive.clusters(before)
    if len(gone) != 1 or len(come) != 1:
        return []
    (ab,), (bc,) = gone, come
    common = naive.clusters(before) & naive.clusters(after)
    return [
        (A, B, C)
        for A, B, C in itertools.permutations(common, 3)
        if ab == A | B and bc == B | C and not (A & B or B & C or A & C)
    ]


def test_nni_triplet(rng):
    """`lem.NNITriplet`: trees are NNI-adjacent if and only if there is exactly one triplet. All pairs of all trees."""
    trees = list(naive.all_trees(list(range(5))))
    assert len(trees) == 105
    for s, t in itertools.combinations(trees, 2):
        neighbours = {
            frozenset(naive.clusters(naive.nni(s, family, far))) for family in naive.families(s) for far in family[:2]
        }
        is_adjacent = frozenset(naive.clusters(t)) in neighbours
        assert len(triplet(s, t)) == (1 if is_adjacent else 0)


@pytest.mark.parametrize(("linkage", "metric"), LINKAGES)
def test_every_step_is_a_move_of_the_procedure(rng, linkage, metric):
    """`tab.OHC`: each move is one that the procedure may make, and the end is homogeneous."""
    trees, zeta = one_run(rng, linkage, metric)
    for before, after in itertools.pairwise(trees):
        allowed = [naive.clusters(naive.nni(before, family, far)) for family, far in naive.wanted_moves(before, zeta)]
        assert naive.clusters(after) in allowed
        assert len(triplet(before, after)) == 1
    assert naive.is_homogeneous(trees[-1], zeta)


@pytest.mark.parametrize(("linkage", "metric"), LINKAGES)
def test_change_of_total_linkage(rng, linkage, metric):
    """`eq.ChangeTotalLinkageCost`."""
    trees, zeta = one_run(rng, linkage, metric)
    for before, after in itertools.pairwise(trees):
        ((A, B, C),) = triplet(before, after)
        change = zeta(B, C) + zeta(B | C, A) - zeta(A, B) - zeta(A | B, C)
        difference = naive.total_linkage(after, zeta) - naive.total_linkage(before, zeta)
        assert difference == pytest.approx(change, abs=1e-9 * naive.total_linkage(after, zeta))


@pytest.mark.parametrize(("linkage", "metric"), [pair for pair in LINKAGES if pair[0] != "average"])
def test_total_linkage_never_increases_for_an_nni_reducible_linkage(rng, linkage, metric):
    """`lem.linkageOptimality`: for Ward it is constant."""
    trees, zeta = one_run(rng, linkage, metric)
    totals = [naive.total_linkage(tree, zeta) for tree in trees]
    assert all(after <= before * (1 + 1e-9) for before, after in itertools.pairwise(totals))


def test_average_linkage_is_not_nni_reducible():
    """A counterexample to `def.Contraction`, with integers: ζ(B, C) is the smallest of three, and H grows."""
    A, B, C = frozenset({0}), frozenset({1}), frozenset({2, 3, 4})
    d = np.zeros((5, 5))
    d[0, 1] = 2  # ζ(A, B)
    d[1, 2:] = 1  # ζ(B, C)
    d[0, 2:] = 10  # ζ(A, C)
    zeta = naive.average(d + d.T)
    assert zeta(B, C) < zeta(A, B) < zeta(A, C)
    assert zeta(A, B) + zeta(A | B, C) == 2 + 5.5
    assert zeta(B, C) + zeta(B | C, A) == 1 + 8
    tree = ((0, 1), ((2, 3), 4))
    x = d + d.T
    h = Hierarchy.from_linkage([[0, 1, 0, 2], [2, 3, 0, 2], [4, 6, 0, 3], [5, 7, 0, 5]], x, "average", "precomputed")
    before = total_linkage(h)
    assert naive.clusters(nested(h)) == naive.clusters(tree)
    assert h.refine(moves=1).moves == 1
    assert total_linkage(h) - before == pytest.approx(9 - 7.5)


def test_convergence_with_linkage_by_level(rng):
    """`thm.Convergence`: where H stays the same, L grows in lexicographic order with every move."""
    trees, zeta = one_run(rng, "ward", "euclidean")
    levels = [naive.linkage_by_level(tree, zeta, 25) for tree in trees]
    for before, after in itertools.pairwise(levels):
        first = next(i for i, (x, y) in enumerate(zip(before, after, strict=True)) if abs(x - y) > 1e-9 * sum(after))
        assert after[first] > before[first]
    assert naive.is_homogeneous(trees[-1], zeta)


def test_average_linkage_ends_because_heights_decrease(rng):
    """Appendix B (`lem.AverageConvergence`): the sorted heights decrease in lexicographic order with every move."""
    for metric in ("sqeuclidean", "cosine", "euclidean"):
        trees, zeta = one_run(rng, "average", metric)
        heights = [naive.sorted_heights(tree, zeta) for tree in trees]
        for before, after in itertools.pairwise(heights):
            first = next(i for i, (x, y) in enumerate(zip(before, after, strict=True)) if abs(x - y) > 1e-12)
            assert after[first] < before[first]


@pytest.mark.parametrize("metric", ["sqeuclidean", "euclidean", "canberra"])
def test_every_move_of_average_linkage_increases_the_tree_value(rng, metric):
    """The change is |a||b||c| (ζ(a,b) − ζ(b,c))."""
    n = 25
    x = rng.normal(size=(n, 2))
    w = rng.uniform(0.5, 4, size=n)
    h = Hierarchy.random(x, "average", metric, sample_weight=w)
    zeta, d = definition(h), dissimilarities(h)
    before = nested(h)
    value = tree_value(h)
    while h.refine(moves=1).moves:
        after = nested(h)
        ((A, B, C),) = triplet(before, after)
        sizes = np.prod([w[sorted(part)].sum() for part in (A, B, C)])
        growth = naive.tree_value(after, d, w) - naive.tree_value(before, d, w)
        assert growth > 0
        assert growth == pytest.approx(sizes * (zeta(A, B) - zeta(B, C)), rel=1e-6)
        assert tree_value(h) > value
        before, value = after, tree_value(h)


def test_total_linkage_of_ward_is_the_sum_of_squared_errors(rng):
    """Appendix A (`app.WardLinkage`): on every tree, with weights."""
    x = rng.normal(size=(5, 3))
    w = rng.uniform(0.5, 4, size=5)
    error = naive.sum_of_squared_errors(x, w)
    for tree in naive.all_trees(list(range(5))):
        h = hierarchy_of(tree, x, sample_weight=w)
        assert total_linkage(h) == pytest.approx(error)
        assert naive.total_linkage(tree, naive.ward(x, w)) == pytest.approx(error)


@pytest.mark.parametrize(("linkage", "metric"), SCHEMES)
def test_batch_trees_are_monotone(rng, linkage, metric):
    """`prop.treelinkageMonotonicity`."""
    for _ in range(20):
        x = rng.normal(size=(30, 2))
        h = agglomerate(x, linkage, metric, metric_params=params_of(metric, 2))
        assert h.is_monotone()
        assert naive.is_monotone(nested(h), definition(h))


@pytest.mark.parametrize(("linkage", "metric"), SCHEMES)
def test_homogeneous_trees_are_monotone(rng, linkage, metric):
    """`prop.LST2Monotonicity`."""
    for seed in range(20):
        x = rng.normal(size=(30, 2))
        h = Hierarchy.random(x, linkage, metric, metric_params=params_of(metric, 2), seed=seed)
        h.refine()
        assert naive.is_homogeneous(nested(h), definition(h))
        assert naive.is_monotone(nested(h), definition(h))
        assert h.is_monotone()


@pytest.mark.parametrize("linkage", ["single", "complete", "average", "minimax", "ward"])
def test_batch_trees_of_a_strongly_reducible_linkage_are_homogeneous(rng, linkage):
    """`prop.HAC2LSO`. Ward is not strongly reducible, and some of its batch trees are not homogeneous."""
    homogeneous = [agglomerate(rng.normal(size=(60, 2)), linkage).is_homogeneous() for _ in range(20)]
    assert all(homogeneous) == evertree.linkages.LINKAGES[linkage].strongly_reducible


@pytest.mark.parametrize("metric", ["euclidean", "cityblock", "precomputed"])
def test_single_linkage_is_batch_clustering(rng, metric):
    """`thm.SingleLinkage`: from any start, and after any edits, the clusters are SciPy's where all distances differ."""
    for trial in range(20):
        x, d = rng.normal(size=(40, 2)), squareform(rng.permutation(40 * 39 // 2) + 1.0)
        is_given = metric == "precomputed"
        h = Hierarchy.random(d[:30, :30] if is_given else x[:30], "single", metric, seed=trial)
        h.refine()
        assert clusters(h) == scipy_clusters(h)
        for key in range(30, 40):
            h.insert(d[np.ix_([key], [*h.keys(), key])] if is_given else x[[key]], keys=[key])
            gone = int(rng.choice(h.keys()))
            h.remove([gone])
            assert clusters(h) == scipy_clusters(h)
        if not is_given:
            h.update(h.keys()[:3], rng.normal(size=(3, 2)))
            assert clusters(h) == scipy_clusters(h)


def clusters(h):
    return naive.clusters(nested(h))


def scipy_clusters(h):
    d = dissimilarities(h)
    assert np.unique(squareform(d)).size == squareform(d).size
    Z = scipy.cluster.hierarchy.linkage(squareform(d), "single")
    found = [frozenset([i]) for i in range(len(d))]
    for a, b in Z[:, :2].astype(int):
        found.append(found[a] | found[b])
    return set(found)


def test_single_linkage_any_order_of_moves_ends_at_the_batch_tree(rng):
    """`thm.SingleLinkage` over all trees of five points: every homogeneous one is the batch tree."""
    for _ in range(3):
        d = squareform(rng.permutation(10) + 1.0)
        zeta = naive.single(d)
        batch = naive.clusters(naive.batch(zeta, 5))
        for tree in naive.all_trees(list(range(5))):
            assert naive.is_homogeneous(tree, zeta) == (naive.clusters(tree) == batch)


@pytest.mark.parametrize("ties", [False, True])
def test_single_linkage_monotone_is_homogeneous(rng, ties):
    """`prop.SingleLinkageMonotoneLSO`, over all trees of five points."""
    for _ in range(3):
        d = squareform(rng.integers(1, 4, size=10) if ties else rng.uniform(size=10))
        zeta = naive.single(d)
        answers = set()
        for tree in naive.all_trees(list(range(5))):
            is_homogeneous = naive.is_homogeneous(tree, zeta)
            assert naive.is_monotone(tree, zeta) == is_homogeneous
            answers.add(is_homogeneous)
        assert answers == {True, False}


@pytest.mark.parametrize(("linkage", "metric"), SCHEMES)
def test_induced_dissimilarity_is_an_ultrametric(rng, linkage, metric):
    """Section 5.2: U satisfies the strong triangle inequality, also on a tree that is not refined."""
    x = rng.normal(size=(25, 2))
    h = Hierarchy.random(x, linkage, metric, metric_params=params_of(metric, 2))
    for _ in range(2):
        u = squareform(h.cophenetic())
        assert np.all(u[:, None, :] <= np.maximum(u[:, :, None], u[None, :, :]) * (1 + 1e-12))
        h.refine()


@pytest.mark.parametrize("linkage", ["single", "complete", "average", "ward"])
def test_recurrence_of_lance_and_williams(rng, linkage):
    """`eq.Recurrence`, `tab.Recurrence`: the coefficients give the definition, and the kernel uses them."""
    tag = evertree.linkages.LINKAGES[linkage].tag(1e-9)
    for trial in range(100):
        x, w = rng.normal(size=(9, 2)), rng.uniform(0.5, 3, size=9)
        zeta = naive.ward(x, w) if linkage == "ward" else getattr(naive, linkage)(naive.sqeuclidean(x), w)
        parts = [frozenset(part.tolist()) for part in np.split(rng.permutation(9), [1 + trial % 3, 5])]
        A, B, C = parts
        sizes = [w[sorted(part)].sum() for part in parts]
        alpha_a, alpha_b, beta, gamma = naive.lance_williams(linkage, *sizes)
        z_ac, z_bc, z_ab = zeta(A, C), zeta(B, C), zeta(A, B)
        value = alpha_a * z_ac + alpha_b * z_bc + beta * z_ab + gamma * abs(z_ac - z_bc)
        assert value == pytest.approx(zeta(A | B, C))
        assert coefficients(tag, *sizes) == pytest.approx((alpha_a, alpha_b, beta, gamma))
        assert linkage_of_union(tag, z_ac, z_bc, z_ab, *sizes) == pytest.approx(zeta(A | B, C))


def test_recurrence_loses_no_digits():
    """Half of a sum and half of a difference would: the smaller of 1 and 1e-30 would be 0."""
    single, complete = (evertree.linkages.LINKAGES[name].tag(1e-9) for name in ("single", "complete"))
    assert linkage_of_union(single, 1.0, 1e-30, 0.0, 1.0, 1.0, 1.0) == 1e-30
    assert linkage_of_union(complete, 1.0, 1e-30, 0.0, 1.0, 1.0, 1.0) == 1.0
