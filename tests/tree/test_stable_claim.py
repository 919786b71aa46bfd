"""Stable trees are batch trees, and moves and grafts end there: by definition, over all trees of a few points."""

from __future__ import annotations

import functools
import graphlib
import itertools

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


# One tree, by hand


def test_blocking_pairs_and_grafts_by_hand():
    """Points 0, 1, 10 and 12 of a line, complete linkage: 0 and 1, 1 and 2, 2 and 3 would rather merge."""
    x, tree, weight = np.array([[0.0], [1], [10], [12]]), ((0, 2), (1, 3)), [1.0, 2, 3, 3]
    zeta = naive.complete(np.sqrt(naive.sqeuclidean(x)))
    assert [stable.height(t, zeta) for t in (tree, (0, 2), (1, 3), 3)] == [12, 10, 11, 0]
    pairs = {(frozenset([A, Q]), z) for A, Q, z in stable.blocking_pairs(tree, zeta)}
    assert pairs == {(frozenset([0, 1]), 1), (frozenset([1, 2]), 9), (frozenset([2, 3]), 2)}
    assert set(stable.wanted_grafts(tree, zeta, weight)) == {(0, 1), (1, 2), (3, 2)}
    assert naive.canonical(stable.graft(tree, 0, 1)) == (((0, 1), 3), 2)
    assert naive.canonical(stable.graft(tree, 3, (0, 2))) == (((0, 2), 3), 1)
    assert stable.smallest_first(tree, zeta, weight, strongly_reducible=True) == (((1, 0), (3, 2)), 0)
    assert stable.batch_trees(zeta, 4) == {((0, 1), (2, 3))}


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


def steps(tree, moves, grafts):
    """All that the next tree can be: after a move where there is one, otherwise after a graft."""
    moved = {naive.canonical(naive.nni(tree, *move)) for move in moves}
    return moved or {naive.canonical(stable.graft(tree, *ends)) for ends in grafts}


def either_end(tree, zeta):
    """Every blocking pair twice: A is cut off, or Q."""
    return [ends for A, Q, _ in stable.blocking_pairs(tree, zeta) for ends in ((A, Q), (Q, A))]


def smallest(tree, zeta, weight):
    """The grafts of the blocking pairs with the smallest ζ."""
    pairs = stable.blocking_pairs(tree, zeta)
    return [stable.cut_and_target(A, Q, weight) for A, Q, z in pairs if not naive.less(min(p[2] for p in pairs), z)]


def has_cycle(graph):
    assert set().union(*graph.values()) <= set(graph)
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError:
        return True
    return False


def ends(graph):
    return {tree for tree, following in graph.items() if not following}


@pytest.mark.parametrize("linkage", LINKAGES)
@pytest.mark.parametrize(("n", "n_sets"), [(4, 10), (5, 20), (6, 2)])
def test_every_run_ends_at_a_batch_tree(linkage, n, n_sets):
    """Whatever the start, and in any order of moves and of grafts: no cycle, and nowhere to stop but there."""
    for zeta, weight in cases(linkage, n, n_sets, seed=1):
        graph = {tree: stable.stable_steps(tree, zeta, weight, linkage != "ward") for tree in all_trees(n)}
        assert not has_cycle(graph)
        assert ends(graph) == stable.batch_trees(zeta, n)


def bottom_up(zeta, n):
    """All steps with Ward's rules, where a move waits until v and c are monotone; either end is cut off."""
    graph = {}
    for tree in all_trees(n):
        moves = stable.wanted_stable_moves(tree, zeta, strongly_reducible=False)
        graph[tree] = steps(tree, stable.settled(moves, zeta), either_end(tree, zeta))
    return graph


@pytest.mark.parametrize("linkage", LINKAGES)
@pytest.mark.parametrize(("n", "n_sets"), [(4, 5), (5, 10), (6, 1)])
def test_bottom_up_ends_for_every_reducible_linkage(linkage, n, n_sets):
    """Ward's rules for moves suit all five; then it does not matter which blocking pair is grafted, nor which end."""
    for zeta, _ in cases(linkage, n, n_sets, seed=5):
        graph = bottom_up(zeta, n)
        assert not has_cycle(graph)
        assert ends(graph) == stable.batch_trees(zeta, n)


class TestWardNeedsItsRules:
    """Each rule left out, on a small data set on which moves and grafts then go round for ever."""

    def test_moves_as_in_the_paper(self):
        """And a batch tree is left again, because it is not homogeneous."""
        zeta, weight = naive.ward(np.array([[0.0, 2], [1, 2], [1, 1], [0, 0], [2, 0]])), [1.0] * 5
        graph = {
            tree: steps(tree, naive.wanted_moves(tree, zeta), stable.wanted_grafts(tree, zeta, weight))
            for tree in all_trees(5)
        }
        assert has_cycle(graph)
        assert ends(graph) < stable.batch_trees(zeta, 5)
        assert not has_cycle(bottom_up(zeta, 5))

    @pytest.mark.parametrize(
        ("x", "grafts"),
        [
            ([[18.0], [6], [11], [4], [0]], stable.wanted_grafts),
            ([[6.0, 7], [5, 3], [3, 5], [6, 0], [0, 3]], smallest),
        ],
        ids=["any graft", "smallest first"],
    )
    def test_moves_that_break_the_lower_child_of_an_inverted_node(self, x, grafts):
        """Although the lighter end is cut off."""
        zeta, weight = naive.ward(np.array(x)), [1.0] * 5
        graph = {}
        for tree in all_trees(5):
            moves = naive.wanted_moves(tree, zeta)
            moves = [move for move in moves if stable.joins_existing(move, zeta) or stable.mends(move, zeta)]
            graph[tree] = steps(tree, moves, grafts(tree, zeta, weight))
        assert has_cycle(graph)
        assert ends(graph) == stable.batch_trees(zeta, 5)
        assert not has_cycle({tree: stable.stable_steps(tree, zeta, weight, False) for tree in all_trees(5)})

    def test_moves_in_any_order_with_either_end_cut_off(self):
        """A move that joins near with a c which is low but has a high node below it comes too early."""
        x = np.array([[0.0, 12], [20, 12], [10, 0], [12, 11], [11, 4], [7, 9]])
        zeta, weight = naive.ward(x, np.array([2.0, 2, 33, 4, 2, 1])), [2.0, 2, 33, 4, 2, 1]
        moves = {tree: stable.wanted_stable_moves(tree, zeta, strongly_reducible=False) for tree in all_trees(6)}
        assert has_cycle({tree: steps(tree, moves[tree], either_end(tree, zeta)) for tree in moves})
        assert not has_cycle({tree: stable.stable_steps(tree, zeta, weight, False) for tree in moves})
        assert not has_cycle(bottom_up(zeta, 6))


# What decreases


@pytest.mark.parametrize("linkage", LINKAGES)
def test_a_graft_on_a_monotone_tree_decreases_the_sorted_heights(linkage):
    """Whichever end is cut off: it removes values above ζ(A,Q) only, and adds ζ(A,Q)."""
    n_grafts = 0
    for zeta, _ in cases(linkage, 5, 10, seed=2):
        for tree in all_trees(5):
            if stable.is_monotone(tree, zeta):
                before = naive.sorted_heights(tree, zeta)
                for cut, target in either_end(tree, zeta):
                    assert sign(before, naive.sorted_heights(stable.graft(tree, cut, target), zeta)) == -1
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


def test_a_move_of_ward_decreases_the_sorted_heights_unless_it_mends():
    """The sum of heights stays, so where v is lower than its parent the smaller of the two goes down."""
    signs = {True: set(), False: set()}
    for zeta, _ in cases("ward", 5, 5, seed=3):
        for tree in all_trees(5):
            before = naive.sorted_heights(tree, zeta)
            for move in naive.wanted_moves(tree, zeta):
                after = naive.sorted_heights(naive.nni(tree, *move), zeta)
                signs[stable.mends(move, zeta)].add(sign(before, after))
    assert signs[False] == {-1}
    assert signs[True] >= {-1, 1}


def test_a_move_of_ward_that_mends_can_increase_the_sorted_heights():
    zeta = naive.ward(np.array([[-5.0], [5.0], [0.0]]))
    tree = ((0, 1), 2)
    moves = stable.wanted_stable_moves(tree, zeta, strongly_reducible=False)
    assert [naive.sorted_heights(naive.nni(tree, *move), zeta) for move in moves] == [[12.5, 37.5]] * 2
    assert naive.sorted_heights(tree, zeta) == [0, 50]


def test_bottom_up_every_step_of_ward_decreases_the_running_heights():
    """Where there are no ties: a step adds a value, and removes only larger ones."""
    n_mends = 0
    for zeta, _ in cases("ward", 5, 10, kinds=["random", "weighted", "lognormal"], seed=6):
        for tree in all_trees(5):
            before = stable.sorted_running_heights(tree, zeta)
            moves = stable.settled(stable.wanted_stable_moves(tree, zeta, strongly_reducible=False), zeta)
            for after in steps(tree, moves, either_end(tree, zeta)):
                assert sign(before, stable.sorted_running_heights(after, zeta)) == -1
            n_mends += sum(stable.mends(move, zeta) for move in moves)
    assert n_mends > 0


def test_bottom_up_the_sorted_heights_of_ward_decrease_from_rest_to_rest():
    """Ties or not: a graft, and then moves until none is wanted."""
    n_grafts = n_moved = 0
    for zeta, _ in cases("ward", 5, 10, seed=7):

        @functools.cache
        def rests(tree, zeta=zeta):
            moves = stable.settled(stable.wanted_stable_moves(tree, zeta, strongly_reducible=False), zeta)
            return set().union(*map(rests, steps(tree, moves, ()))) if moves else {tree}

        for tree in all_trees(5):
            if rests(tree) == {tree}:
                for cut, target in either_end(tree, zeta):
                    grafted = naive.canonical(stable.graft(tree, cut, target))
                    n_grafts += 1
                    n_moved += rests(grafted) != {grafted}
                    for rest in rests(grafted):
                        assert sign(naive.sorted_heights(tree, zeta), naive.sorted_heights(rest, zeta)) == -1
    assert n_grafts > n_moved > 0


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
        merges = [stable.batch_merges(tree, zeta, n) for tree in trees]
        assert all(stable.is_monotone(tree, zeta) for tree in trees)
        assert all(before < after for before, after in itertools.pairwise(merges))
        assert len(merges[-1]) == n - 1
        assert n > 6 or naive.canonical(trees[-1]) in stable.batch_trees(zeta, n)
        assert stable.smallest_first(start, zeta, weight, linkage != "ward") == (trees[-1], len(trees) - 1)
        assert len(trees) - 1 <= max(n - 2, 0)
        n_grafts += len(trees) - 1
    assert n < 4 or (n_grafts > 0) == (linkage != "single")
