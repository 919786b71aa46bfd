"""Subtrees as plain arrays: a live tree and back, collapsed and joined."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import evertree as et
import helpers
import naive
from evertree.distributed import routing
from evertree.distributed.subtrees import Subtrees, collapse, concatenate, from_live, join, to_live
from evertree.kernels.columns import NULL
from evertree.tree import Aim, invariants
from evertree.tree.scheme import Scheme
from in_process import InProcess

AIM = Aim("stable", 4)
DATA = {name: x for name, x in helpers.hard_data().items() if len(x)}
#: With the compiler off, these say enough.
FEW = ("duplicates", "float32 far from the origin", "one point", "two points")
EACH = [pytest.param(name, marks=[] if name in FEW else pytest.mark.slow) for name in DATA]


def live_of(x: np.ndarray, linkage: str = "ward", metric: str = "euclidean", weights=None):
    h = et.Hierarchy(linkage, metric, metric_params=helpers.params_of(metric, x.shape[1]))
    h.insert(x, sample_weight=weights)
    h.refine()
    return h.state.live


def clusters(subtrees: Subtrees) -> set[frozenset[int]]:
    """The ids below each node."""
    first, stop = subtrees.leaf_ranges()
    return {frozenset(subtrees.ids[a:b].tolist()) for a, b in zip(first, stop, strict=True)}


def assert_same(one: Subtrees, other: Subtrees) -> None:
    for a, b in zip(one, other, strict=True):
        if isinstance(a, tuple):
            assert_same(a, b)
        elif a is None or b is None:
            assert a is b
        else:
            np.testing.assert_array_equal(a, b)
            assert a.dtype == b.dtype


def clusters_of(live) -> set[frozenset[int]]:
    return {frozenset(live.tree.birth[live.leaves(int(u))].tolist()) for u in live.nodes()}


@pytest.mark.parametrize("name", EACH)
@pytest.mark.parametrize(("linkage", "metric"), [("ward", "euclidean"), ("average", "sqeuclidean")])
def test_a_live_tree_becomes_arrays_and_back(name, linkage, metric):
    live = live_of(DATA[name], linkage, metric)
    subtrees, order = from_live(live)
    assert clusters(subtrees) == clusters_of(live)
    np.testing.assert_array_equal(subtrees.ids, live.tree.birth[order[: subtrees.n_leaves]])
    twin = to_live(pickle.loads(pickle.dumps(subtrees)), live.scheme, live.aim)
    invariants.check_shape(twin)
    invariants.check_worklist(twin)
    invariants.check_search(twin)
    invariants.check_points(twin)
    invariants.check_statistics(twin)
    assert clusters_of(twin) == clusters_of(live)
    assert_same(from_live(twin)[0], subtrees)


def test_children_come_before_parents_and_the_older_first():
    subtrees, _ = from_live(live_of(DATA["random"]))
    k = subtrees.n_leaves
    assert np.all(subtrees.children.max(axis=1) < k + np.arange(k - 1))
    first, _ = subtrees.leaf_ranges()
    births = np.array([subtrees.ids[first[u] : subtrees.leaf_ranges()[1][u]].min() for u in range(subtrees.n_nodes)])
    assert np.all(births[subtrees.children[:, 0]] < births[subtrees.children[:, 1]])
    assert subtrees.roots().tolist() == [2 * k - 2]


@pytest.mark.parametrize("metric", ["cosine", "correlation"])
def test_points_come_back_bit_for_bit(metric):
    x = np.random.default_rng(3).normal(size=(20, 3))
    live = live_of(x, "average", metric)
    subtrees, _ = from_live(live)
    np.testing.assert_array_equal(subtrees.points, x[subtrees.ids])
    twin = to_live(subtrees, live.scheme, live.aim)
    np.testing.assert_array_equal(twin.points(twin.leaves()), x[twin.tree.birth[twin.leaves()]])


@pytest.mark.parametrize("name", EACH)
@pytest.mark.parametrize("seed", range(3))
def test_join_is_the_inverse_of_collapse(name, seed):
    live = live_of(DATA[name], weights=np.random.default_rng(seed).uniform(0.5, 3, len(DATA[name])))
    subtrees, _ = from_live(live)
    rng = np.random.default_rng(seed)
    twin = to_live(subtrees, live.scheme, live.aim)
    wanted = np.zeros(subtrees.n_nodes, np.bool_)
    wanted[rng.choice(subtrees.n_nodes, min(seed * 2, subtrees.n_nodes), replace=False)] = True
    is_open = np.zeros(len(subtrees.children), np.bool_)
    et.kernels.shared.cross_partition.open_paths(subtrees.children, subtrees.n_leaves, wanted, is_open)
    upper = collapse(subtrees, twin, is_open, 1000)
    opened = np.flatnonzero(is_open) + subtrees.n_leaves
    assert set(np.flatnonzero(wanted) + 1000) - set(upper.ids) <= set(opened + 1000)
    below = subtrees.at(upper.ids - 1000)
    assert_same(join(upper.children, below), subtrees)
    assert upper.n_points == subtrees.n_points == sum(tree.n_leaves for tree in below)
    # What is computed of unions above stubs is what was computed of them above points.
    above = to_live(upper, live.scheme, live.aim)
    u, v = above.root, twin.root
    assert above.tree.height[u] == pytest.approx(twin.tree.height[v], rel=1e-12)
    assert above.tree.variance[u] == pytest.approx(twin.tree.variance[v], rel=1e-12)
    assert above.tree.birth[u] == 0


def test_several_subtrees_side_by_side():
    x = DATA["random"]
    trees = [from_live(live_of(some))[0] for some in (x[:10], x[10:11], x[11:])]
    trees = [tree._replace(ids=tree.ids + start) for tree, start in zip(trees, (0, 10, 11), strict=True)]
    forest = concatenate(trees)
    assert forest.leaf_ranges()[1][forest.roots()].tolist() == [10, 11, 40]
    for one, other in zip(forest.split(), trees, strict=True):
        assert_same(one, other)
    live = to_live(forest, Scheme("ward", "euclidean"), AIM)
    assert live.root >= 0
    assert np.count_nonzero(live.tree.parent[: live.n_used] == NULL) >= 3
    assert_same(from_live(live)[0], forest)


def test_no_points():
    subtrees = Subtrees(np.empty(0, np.int64), np.empty(0), np.empty((0, 2)), np.empty((0, 2), np.int32))
    live = to_live(subtrees, Scheme("ward", "euclidean"), AIM)
    assert live.root == NULL
    assert from_live(live)[0].n_nodes == 0


def test_tasks_in_process_share_nothing():
    runner = InProcess()
    array = np.zeros(3)
    held = runner.submit("keep", lambda a: a, array)
    array[0] = 1
    taken = runner.gather([held, held])
    taken[0][1] = 1
    assert taken[1].tolist() == [0, 0, 0]
    assert runner.n_tasks == {"keep": 1}


@pytest.mark.parametrize(("linkage", "metric"), [("ward", "euclidean"), ("average", "sqeuclidean")])
def test_the_nearest_of_some_nodes(linkage, metric, monkeypatch):
    """By definition, some points at a time."""
    monkeypatch.setattr(routing, "_DISTANCES_AT_ONCE", 9)
    x, new = DATA["random"][:12], DATA["random"][12:20]
    subtrees, _ = from_live(live_of(x, linkage, metric))
    nodes = np.array([0, 5, 17, 20])
    found = routing.find_nearest(new, subtrees, nodes, Scheme(linkage, metric), AIM)
    everything = np.concatenate([x, new])
    zeta = naive.ward(everything) if linkage == "ward" else naive.average(naive.sqeuclidean(everything))
    first, stop = subtrees.leaf_ranges()
    below = [frozenset(subtrees.ids[first[u] : stop[u]].tolist()) for u in nodes]
    expected = [min(range(4), key=lambda k: zeta(below[k], frozenset([i]))) for i in range(12, 20)]
    assert found.tolist() == expected
    assert len(set(expected)) > 1
