"""The shape of the tree: edits, free nodes, the validator, growth."""

from __future__ import annotations

import numpy as np
import pytest

import naive
from evertree import kernels
from evertree.errors import InvariantError
from evertree.kernels.columns import NULL
from helpers import Hierarchy, hierarchy_of, nested


@pytest.fixture
def h(rng):
    return hierarchy_of(naive.random_tree(rng, 30), rng.normal(size=(30, 2)))


def test_move_swaps_a_grandchild_with_its_uncle(rng):
    """`eq.NNImove`: the only cluster that goes is the parent of G, and the one that comes is uncle and sibling of G."""
    for _ in range(50):
        tree = naive.random_tree(rng, 12)
        h = hierarchy_of(tree, rng.normal(size=(12, 2)))
        grandchildren = [u for u in h.nodes().tolist() if u != h.root and h.parent(u) != h.root]
        far = int(rng.choice(grandchildren))
        before = naive.clusters(tree)
        parent_members = frozenset(h.members(h.parent(far)))
        joined = frozenset(h.members(h.sibling(far))) | frozenset(h.members(h.sibling(h.parent(far))))
        kernels.shared.topology.swap_with_uncle(h.state.live.tree, far)
        h.state.live.rebuild()
        h.validate()
        assert naive.clusters(nested(h)) == (before - {parent_members}) | {joined}


def test_move_agrees_with_naive(rng):
    for _ in range(50):
        tree = naive.random_tree(rng, 8)
        a, b, c = naive.families(tree)[0]
        h = hierarchy_of(tree, rng.normal(size=(8, 2)))
        far = next(u for u in h.nodes().tolist() if frozenset(h.members(u)) == naive.members(a))
        kernels.shared.topology.swap_with_uncle(h.state.live.tree, far)
        assert naive.clusters(nested(h)) == naive.clusters(naive.nni(tree, (a, b, c), a))


def test_attach_undoes_detach(h):
    before = naive.clusters(nested(h))
    for u in (h.leaf(3), h.parent(h.leaf(3))):
        s = kernels.shared.topology.detach(h.state.live.tree, u)
        kernels.shared.topology.attach(h.state.live.tree, u, s)
        h.validate()
        assert naive.clusters(nested(h)) == before


def test_detach_of_a_child_of_the_root(h):
    u, s = h.children(h.root)
    assert kernels.shared.topology.detach(h.state.live.tree, u) == s
    assert h.root == s
    assert h.parent(s) == NULL
    assert kernels.shared.topology.detach(h.state.live.tree, s) == NULL
    assert h.state.live.tree.state["root"][0] == NULL


def test_free_nodes_are_used_again(h):
    tree = h.state.live.tree
    u = h.leaf(0)
    p = h.parent(u)
    s = kernels.shared.topology.detach(tree, u)
    assert tree.state["free_inner"][0] == p
    assert kernels.shared.topology.attach(tree, u, s) == p
    assert tree.state["free_inner"][0] == NULL


def test_postorder_has_children_first_and_leaves_side_by_side(h):
    nodes = h.nodes().tolist()
    assert len(set(nodes)) == 59
    leaves = [u for u in nodes if not h.children(u)]
    for u in nodes:
        assert all(nodes.index(child) < nodes.index(u) for child in h.children(u))
        places = [leaves.index(h.leaf(key)) for key in h.members(u)]
        assert max(places) - min(places) == len(places) - 1


@pytest.mark.slow
def test_a_path_of_many_nodes_is_a_legal_tree():
    n = 200_000
    Z = np.column_stack([np.r_[0, np.arange(n, 2 * n - 2)], np.arange(1, n), np.ones(n - 1), np.arange(2, n + 1)])
    x = np.random.default_rng(0).normal(size=(n, 1))
    h = Hierarchy.from_linkage(Z, x)
    assert h.nodes().size == 2 * n - 1
    assert len(h.members(h.root)) == n
    assert h.linkage_matrix().shape == (n - 1, 4)
    assert np.unique(h.cut(n_clusters=7)).size == 7
    h.refine(moves=1000)
    h.remove(range(0, n, 2))
    assert len(h) == n // 2
    assert h.is_homogeneous()


def test_columns_grow_by_a_factor(rng):
    h = Hierarchy()
    capacities = set()
    for x in rng.normal(size=(300, 1, 2)):
        h.insert(x)
        capacities.add(h.state.live.capacity)
    h.validate()
    assert len(capacities) < 20
    assert max(capacities) <= 1.5 * 300


def test_a_batch_gets_exactly_the_room_that_it_needs(rng):
    h = Hierarchy()
    h.insert(rng.normal(size=(1000, 2)))
    assert h.state.live.capacity == 1000


def test_rows_of_removed_points_are_used_again(rng):
    h = Hierarchy()
    h.insert(rng.normal(size=(100, 2)))
    capacity = h.state.live.capacity
    for _ in range(20):
        h.remove(h.keys()[:50])
        h.insert(rng.normal(size=(50, 2)))
        h.validate()
    assert h.state.live.capacity == capacity


def _break_parent(h):
    h.state.live.tree.parent[h.leaf(0)] = h.root


def _break_root(h):
    h.state.live.tree.state["root"][0] = h.leaf(0)


def _break_child(h):
    h.state.live.tree.left[h.root] = h.state.live.tree.right[h.root]


def _break_cycle(h):
    tree = h.state.live.tree
    u = next(u for u in h.children(h.root) if h.children(u))
    v, w = h.children(u)
    tree.left[h.root], tree.right[h.root] = v, h.sibling(u)
    tree.parent[v] = h.root
    tree.left[u], tree.parent[u] = u, u
    assert w != NULL


def _break_free_list(h):
    h.state.live.tree.state["free_inner"][0] = h.root


def _break_worklist(h):
    h.state.live.work.mark[h.root] ^= 1


def _break_keys(h):
    h.state.keys.discard([0])


@pytest.mark.parametrize(
    "damage",
    [_break_parent, _break_root, _break_child, _break_cycle, _break_free_list, _break_worklist, _break_keys],
)
def test_validator_sees_damage(h, damage):
    h.validate()
    damage(h)
    with pytest.raises(InvariantError):
        h.validate()


def path_of(n: int) -> Hierarchy:
    """A tree in which each point joins all that came before it."""
    before = np.concatenate([[0], np.arange(n, 2 * n - 2)])
    Z = np.column_stack([before, np.arange(1, n), np.arange(1, n), np.arange(2, n + 1)]).astype(float)
    return Hierarchy.from_linkage(Z, np.arange(n)[:, None] ** 2.0)


@pytest.mark.parametrize("column", ["size", "birth", "mean", "variance", "height", "radius"])
def test_validator_sees_wrong_statistics_anywhere_on_a_long_path(column):
    """Where few nodes are compared with their members, too."""
    h = path_of(600)
    h.validate()
    values = getattr(h.state.live.tree, column)
    u = h.leaf(0)
    for _ in range(5):
        for _ in range(113):
            u = h.parent(u)
        kept = values[u].copy()
        values[u] = 0.9 * kept if column == "radius" else kept + 1 + kept / 100  # a radius is no more than a bound
        with pytest.raises(InvariantError):
            h.validate()
        values[u] = kept
    h.validate()
