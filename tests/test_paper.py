"""The paper's lemmas, propositions and theorems, each on data."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import naive
from evertree import Hierarchy, agglomerate
from evertree.quality import total_linkage
from helpers import SCHEMES, definition, hierarchy_of, nested, params_of

LINKAGES = [("ward", "euclidean"), ("average", "sqeuclidean"), ("average", "cosine")]


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


def test_total_linkage_never_increases_for_an_nni_reducible_linkage(rng):
    """`lem.linkageOptimality`, for Ward, where it is constant."""
    trees, zeta = one_run(rng, "ward", "euclidean")
    totals = [naive.total_linkage(tree, zeta) for tree in trees]
    assert all(after <= before * (1 + 1e-9) for before, after in itertools.pairwise(totals))


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
    for metric in ("sqeuclidean", "cosine"):
        trees, zeta = one_run(rng, "average", metric)
        heights = [naive.sorted_heights(tree, zeta) for tree in trees]
        for before, after in itertools.pairwise(heights):
            first = next(i for i, (x, y) in enumerate(zip(before, after, strict=True)) if abs(x - y) > 1e-12)
            assert after[first] < before[first]


def test_every_move_of_average_linkage_increases_the_tree_value(rng):
    """The change is |a||b||c| (ζ(a,b) − ζ(b,c))."""
    n = 25
    x = rng.normal(size=(n, 2))
    w = rng.uniform(0.5, 4, size=n)
    h = Hierarchy.random(x, "average", "sqeuclidean", sample_weight=w)
    zeta, d = definition(h), naive.sqeuclidean(x)
    before = nested(h)
    while h.refine(moves=1).moves:
        after = nested(h)
        ((A, B, C),) = triplet(before, after)
        sizes = np.prod([w[sorted(part)].sum() for part in (A, B, C)])
        growth = naive.tree_value(after, d, w) - naive.tree_value(before, d, w)
        assert growth > 0
        assert growth == pytest.approx(sizes * (zeta(A, B) - zeta(B, C)), rel=1e-6)
        before = after


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


def test_batch_trees_of_a_strongly_reducible_linkage_are_homogeneous(rng):
    """`prop.HAC2LSO`, for average linkage. Ward is not strongly reducible, and some of its batch trees are not."""
    homogeneous = {"average": [], "ward": []}
    for _ in range(20):
        x = rng.normal(size=(60, 2))
        homogeneous["average"].append(agglomerate(x, "average", "sqeuclidean").is_homogeneous())
        homogeneous["ward"].append(agglomerate(x, "ward").is_homogeneous())
    assert all(homogeneous["average"])
    assert not all(homogeneous["ward"])
