"""All trees over a few points, and all orders of moves: no cycle, and every end is homogeneous."""

from __future__ import annotations

import numpy as np
import pytest

import naive
from evertree import kernels
from helpers import ONE_OF_EACH, definition, hierarchy_of, nested


def data_sets(rng, n):
    """Random points, ties, duplicates and weights."""
    yield rng.normal(size=(n, 2)), None
    yield rng.normal(size=(n, 1)), rng.uniform(0.1, 10, size=n)
    yield rng.integers(0, 3, size=(n, 2)).astype(float), None
    yield np.repeat(rng.normal(size=((n + 1) // 2, 2)), 2, axis=0)[:n], rng.integers(1, 4, size=n).astype(float)


def moves_between_all_trees(x, w, linkage, metric):
    """For every tree, the trees that one move of `tab.OHC` may lead to."""
    trees = {naive.canonical(tree) for tree in naive.all_trees(list(range(len(x))))}
    zeta = definition(hierarchy_of(next(iter(trees)), x, linkage, metric, sample_weight=w))
    return zeta, {
        tree: {naive.canonical(naive.nni(tree, family, far)) for family, far in naive.wanted_moves(tree, zeta)}
        for tree in trees
    }


def has_cycle(graph):
    """Whether some sequence of moves comes back (nodes are removed while they have no way out)."""
    n_ways = {tree: len(ways) for tree, ways in graph.items()}
    comes_from = {tree: [] for tree in graph}
    for tree, ways in graph.items():
        for other in ways:
            comes_from[other].append(tree)
    ends = [tree for tree, count in n_ways.items() if count == 0]
    n_removed = 0
    while ends:
        n_removed += 1
        for before in comes_from[ends.pop()]:
            n_ways[before] -= 1
            if n_ways[before] == 0:
                ends.append(before)
    return n_removed < len(graph)


@pytest.mark.slow
@pytest.mark.parametrize("n", [3, 4, 5, 6])
@pytest.mark.parametrize(("linkage", "metric"), ONE_OF_EACH)
def test_no_order_of_moves_goes_round_in_circles(rng, n, linkage, metric):
    """`thm.Convergence`, `lem.AverageConvergence`, over all trees and orders."""
    for x, w in data_sets(rng, n):
        zeta, graph = moves_between_all_trees(x, w, linkage, metric)
        assert len(graph) == [3, 15, 105, 945][n - 3]
        assert not has_cycle(graph)
        ends = [tree for tree, ways in graph.items() if not ways]
        assert ends
        assert all(naive.is_homogeneous(tree, zeta) for tree in ends)


def test_the_search_for_cycles_finds_one():
    assert has_cycle({1: {2}, 2: {3}, 3: {1}, 4: {1}})
    assert not has_cycle({1: {2, 3}, 2: {3}, 3: set()})


@pytest.mark.slow
@pytest.mark.parametrize(("linkage", "metric"), ONE_OF_EACH)
def test_kernel_and_oracle_agree_on_every_tree(rng, linkage, metric):
    """From each tree of five points: the same violations, and a first move that is one of those allowed."""
    for x, w in data_sets(rng, 5):
        zeta, graph = moves_between_all_trees(x, w, linkage, metric)
        for tree, ways in graph.items():
            h = hierarchy_of(tree, x, linkage, metric, sample_weight=w)
            violated = {frozenset(h.members(v)) for v in h.violations().tolist()}
            expected = {naive.members(a) | naive.members(b) for (a, b, _), _ in naive.wanted_moves(tree, zeta)}
            assert violated == expected
            assert h.is_monotone() == naive.is_monotone(tree, zeta)
            h.refine(moves=1)
            assert naive.canonical(nested(h)) in (ways or {tree})
            h.refine()
            assert not graph[naive.canonical(nested(h))]


def test_kernel_makes_the_move_that_ties_ask_for():
    """A tie for the nearer child goes to the one with the older point."""
    x = np.array([[-1.0], [1.0], [0.0]])
    h = hierarchy_of(((0, 1), 2), x, "average", "sqeuclidean")
    kernels.shared.homogenise.homogenise(h.state.live.tree, h.state.live.work, h.state.live.tag, 10, 10)
    assert naive.canonical(nested(h)) == ((0, 2), 1)
    h = hierarchy_of(((0, 1), 2), -x, "average", "sqeuclidean")
    h.refine()
    assert naive.canonical(nested(h)) == ((0, 2), 1)
