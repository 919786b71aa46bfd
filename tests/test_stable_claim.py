"""Stable trees are batch trees, and moves and grafts end there: by definition, over all trees of a few points."""

from __future__ import annotations

import functools
import graphlib

import numpy as np
import pytest
from scipy.spatial.distance import squareform

import naive
import naive_stable as stable

STRONGLY_REDUCIBLE = ["single", "complete", "average", "minimax"]
LINKAGES = [*STRONGLY_REDUCIBLE, "ward"]
KINDS = ["random", "integer", "duplicate", "weighted", "lognormal", "integer weights", "any dissimilarity"]


def cases(linkage, n, n_sets, kinds=KINDS, seed=0):
    """(linkage by definition, weights) of `n_sets` data sets of each kind."""
    for kind in kinds:
        rng = np.random.default_rng([seed, n, LINKAGES.index(linkage), KINDS.index(kind)])
        for _ in range(n_sets):
            yield case(rng, linkage, n, kind)


def case(rng, linkage, n, kind):
    shape = (n, int(rng.integers(1, 4)))
    x, w = rng.normal(size=shape), np.ones(n)
    if kind in ("integer", "integer weights"):
        x = rng.integers(0, rng.integers(2, 6), size=shape).astype(float)
    if kind == "duplicate":
        x, w = x[rng.integers(0, n - 1, size=n)], rng.integers(1, 3, size=n).astype(float)
    if kind == "integer weights":
        w = rng.integers(1, 6, size=n).astype(float)
    if kind == "weighted":
        w = rng.uniform(0.1, 1, size=n)
    if kind == "lognormal":
        w = rng.lognormal(sigma=rng.uniform(0.5, 3), size=n)
    if linkage == "ward":
        return naive.ward(x, w), w.tolist()
    d = np.sqrt(naive.sqeuclidean(x))
    if kind == "any dissimilarity":
        size = n * (n - 1) // 2
        d = squareform(rng.uniform(size=size) if rng.integers(2) else rng.integers(1, 6, size=size).astype(float))
    return getattr(naive, linkage)(d, w), w.tolist()


@functools.cache
def all_trees(n):
    return [naive.canonical(tree) for tree in naive.all_trees(list(range(n)))]


def sign(before, after):
    """−1, 0 or 1: `after` decreases, is the same or increases, in lexicographic order and within the tolerance."""
    for x, y in zip(before, after, strict=True):
        if naive.less(y, x):
            return -1
        if naive.less(x, y):
            return 1
    return 0


# The claim


@pytest.mark.parametrize("linkage", LINKAGES)
@pytest.mark.parametrize(("n", "n_sets"), [(2, 1), (3, 10), (4, 20), (5, 10), (6, 3)])
def test_stable_trees_are_the_batch_trees(linkage, n, n_sets):
    """Monotone without a blocking pair: exactly what some run of `tab.HAC` gives; and what replaying certifies."""
    n_batch = []
    for zeta, _ in cases(linkage, n, n_sets):
        batch = stable.batch_trees(zeta, n)
        assert {tree for tree in all_trees(n) if stable.is_stable(tree, zeta)} == batch
        assert {tree for tree in all_trees(n) if stable.certify(tree, zeta, n)} == batch
        assert naive.canonical(naive.batch(zeta, n)) in batch
        n_batch.append(len(batch))
    assert min(n_batch) == 1
    assert n < 3 or max(n_batch) > 1


@pytest.mark.parametrize("linkage", LINKAGES)
def test_neither_half_of_stable_is_enough(linkage):
    """Some monotone trees have blocking pairs; and some trees without one are not monotone."""
    only_monotone = only_unblocked = 0
    for zeta, _ in cases(linkage, 5, 10):
        for tree in all_trees(5):
            is_monotone, is_unblocked = stable.is_monotone(tree, zeta), not stable.blocking_pairs(tree, zeta)
            assert is_monotone == naive.is_monotone(tree, zeta)
            only_monotone += is_monotone and not is_unblocked
            only_unblocked += is_unblocked and not is_monotone
    # For single linkage monotone is enough: `thm.SingleLinkage`.
    assert (only_monotone > 0) == (linkage != "single")
    assert only_unblocked > 0



# No cycle


def steps_graph(zeta, weight, linkage, n):
    """The trees before every tree: all that one step of any run can do."""
    return {tree: stable.stable_steps(tree, zeta, weight, linkage != "ward") for tree in all_trees(n)}


def has_cycle(graph):
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError:
        return True
    return False


@pytest.mark.parametrize("linkage", LINKAGES)
@pytest.mark.parametrize(("n", "n_sets"), [(4, 10), (5, 25), (6, 2)])
def test_every_run_ends_at_a_batch_tree(linkage, n, n_sets):
    """Whatever the start, and in any order of moves and of grafts: no cycle, and nowhere to stop but there."""
    for zeta, weight in cases(linkage, n, n_sets, seed=1):
        graph = steps_graph(zeta, weight, linkage, n)
        assert not has_cycle(graph)
        assert {tree for tree, following in graph.items() if not following} == stable.batch_trees(zeta, n)


#: Five points on a line, all of weight 1.
ON_A_LINE = np.array([[18.0], [6.0], [11.0], [4.0], [0.0]])


def test_ward_needs_all_of_its_rules(monkeypatch):
    pass


# What decreases


@pytest.mark.parametrize("linkage", LINKAGES)
def test_a_graft_on_a_monotone_tree_decreases_the_sorted_heights(linkage):
    """Whichever of the two is cut off: it removes values above ζ(A,Q) only, and adds ζ(A,Q)."""
    n_grafts = 0
    for zeta, _ in cases(linkage, 5, 10, seed=2):
        for tree in all_trees(5):
            if not stable.is_monotone(tree, zeta):
                continue
            before = naive.sorted_heights(tree, zeta)
            for A, Q, _ in stable.blocking_pairs(tree, zeta):
                for cut, target in ((A, Q), (Q, A)):
                    after = naive.sorted_heights(stable.graft(tree, cut, target), zeta)
                    assert sign(before, after) == -1
                    n_grafts += 1
    assert (n_grafts > 0) == (linkage != "single")


@pytest.mark.parametrize("linkage", STRONGLY_REDUCIBLE)
def test_a_move_never_increases_the_sorted_heights(linkage):
    signs = set()
    for zeta, _ in cases(linkage, 5, 5, seed=3):
        for tree in all_trees(5):
            before = naive.sorted_heights(tree, zeta)
            for move in naive.wanted_moves(tree, zeta):
                signs.add(sign(before, naive.sorted_heights(naive.nni(tree, *move), zeta)))
    assert signs <= {-1, 0}
    assert -1 in signs


# The smallest first


@pytest.mark.parametrize("linkage", LINKAGES)
@pytest.mark.parametrize("n", [2, 3, 5, 7, 9])
def test_smallest_first_makes_one_batch_merge_per_graft(linkage, n):
    """From any tree at most n − 2 grafts, each of which adds a merge of a batch run; none is lost again."""
    n_grafts = 0
    rng = np.random.default_rng(n)
    for zeta, weight in cases(linkage, n, 5, seed=4):
        start = naive.random_tree(rng, n)
        trees = stable.smallest_first_trees(start, zeta, weight, linkage != "ward")
        merges = [n_first_merges(tree, zeta, n) for tree in trees]
        assert all(stable.is_monotone(tree, zeta) for tree in trees)
        assert all(before < after for before, after in zip(merges, merges[1:], strict=False))
        assert merges[-1] == n - 1
        assert stable.certify(trees[-1], zeta, n)
        assert stable.smallest_first(start, zeta, weight, linkage != "ward") == (trees[-1], len(trees) - 1)
        assert len(trees) - 1 <= max(n - 2, 0)
        n_grafts += len(trees) - 1
    assert n < 4 or (n_grafts > 0) == (linkage != "single")
