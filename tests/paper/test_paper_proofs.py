"""The equations in the paper's proofs, each on data."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import naive
from naive import TOLERANCE, members


def siblings(tree):
    """The sibling of each vertex but the root, by cluster."""
    found = {}
    for left, right in naive.inner(tree):
        found[members(left)], found[members(right)] = members(right), members(left)
    return found


def grandchildren(tree):
    """`eq.grandchild`: all vertices whose parent is not the root."""
    root = members(tree)
    return [A for A, B in siblings(tree).items() if root != A | B]


def ancestors(tree, A):
    """All vertices above a cluster, without the root."""
    return [members(t) for t in naive.subtrees(tree) if A < members(t) < members(tree)]


def small_sets(rng, count=15, n=7):
    for _ in range(count):
        yield rng.normal(size=(n, 2))


@pytest.mark.parametrize("linkage", ["single", "complete", "average", "minimax"])
def test_a_merge_of_batch_clustering_is_a_minimum(rng, linkage):
    """`eq.Ak_monotonicity`: nothing that is there when A and B merge is closer to either."""
    for x in small_sets(rng):
        zeta = getattr(naive, linkage)(np.sqrt(naive.sqeuclidean(x)))
        merges = sorted(naive.inner(naive.batch(zeta, len(x))), key=lambda pair: naive.of(zeta, *pair))
        alive = {frozenset([i]) for i in range(len(x))}
        for a, b in merges:
            A, B = members(a), members(b)
            for C in alive - {A, B}:
                assert not naive.less(zeta(A, C), zeta(A, B))
                assert not naive.less(zeta(B, C), zeta(A, B))
            alive = alive - {A, B} | {A | B}


def test_steps_towards_the_theorem_on_single_linkage(rng):
    """`eq.CompUnion` on any tree; `eq.MonBound` and `eq.SingleLinkageMonotone` on homogeneous ones."""
    for x in small_sets(rng):
        zeta = naive.single(np.sqrt(naive.sqeuclidean(x)))
        everything = frozenset(range(len(x)))
        for tree in (naive.random_tree(rng, len(x)), naive.batch(zeta, len(x))):
            sibling = siblings(tree)
            homogeneous = naive.is_homogeneous(tree, zeta)
            for A in grandchildren(tree):
                above = ancestors(tree, A)
                outside = everything - (A | sibling[A])
                assert frozenset().union(*(sibling[B] for B in above)) == outside
                if not homogeneous:
                    continue
                for B in above:
                    assert zeta(A, sibling[A]) <= zeta(B, sibling[B]) <= zeta(A, sibling[B])
                for size in range(1, len(outside) + 1):
                    for Q in map(frozenset, itertools.combinations(outside, size)):
                        assert zeta(A, sibling[A]) <= zeta(A, Q)
        assert homogeneous  # the batch tree came last


def moves_from_random_trees(rng, linkage, x):
    """(A, B, C) of each move of the procedure, with ζ: A is swapped with C."""
    zeta = naive.ward(x) if linkage == "ward" else getattr(naive, linkage)(np.sqrt(naive.sqeuclidean(x)))
    tree = naive.random_tree(rng, len(x))
    while wanted := naive.wanted_moves(tree, zeta):
        (a, b, c), far = wanted[rng.integers(len(wanted))]
        near = b if far == a else a
        yield zeta, members(far), members(near), members(c)
        tree = naive.nni(tree, (a, b, c), far)


@pytest.mark.parametrize("linkage", ["single", "complete", "minimax", "ward"])
def test_a_move_that_keeps_the_total_raises_the_grandparent(rng, linkage):
    """`eq.GrandParentMonotone`: where H stays as it is, the cost of the grandparent grows."""
    kept = 0
    # Whole numbers on a line: sums of equal values are equal.
    for _ in range(60):
        x = rng.integers(0, 30, size=(7, 1)).astype(np.float64)
        for zeta, A, B, C in moves_from_random_trees(rng, linkage, x):
            before, after = (zeta(A, B), zeta(A | B, C)), (zeta(B, C), zeta(B | C, A))
            if abs(sum(before) - sum(after)) <= TOLERANCE * sum(before):
                kept += 1
                assert before[1] < after[1]
    if linkage == "minimax":  # the grandparent costs the same whatever its children: H always falls
        assert kept == 0
    else:
        assert kept > 5


def test_steps_towards_the_end_of_average_linkage(rng):
    """`eq.NNIProp` and `eq.ClusterProp`: what each move of average linkage starts from."""
    count = 0
    for x in small_sets(rng):
        for zeta, A, B, C in moves_from_random_trees(rng, "average", x):
            count += 1
            assert zeta(A, B) > zeta(B, C)
            assert not naive.less(zeta(A, C), zeta(B, C))
            assert not naive.less(zeta(A | B, C), zeta(B, C))
    assert count > 50


def test_steps_towards_average_linkage_from_means(rng):
    """`eq.AverageLink1` and `eq.AverageLink2`: the definition, and two ways to write it with means and variances."""
    for x in small_sets(rng, n=9):
        a, b = x[:4], x[4:]
        wanted = naive.average(naive.sqeuclidean(x))(frozenset(range(4)), frozenset(range(4, 9)))
        mean_a, mean_b = a.mean(axis=0), b.mean(axis=0)
        first = np.mean([(((p - mean_b) + (mean_b - q)) ** 2).sum() for p in a for q in b])
        variance_b = ((b - mean_b) ** 2).sum(axis=1).mean()
        second = np.mean([(((p - mean_a) + (mean_a - mean_b)) ** 2).sum() for p in a]) + variance_b
        np.testing.assert_allclose([first, second], wanted)
