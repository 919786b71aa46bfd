"""Pieces of trees: a live tree and back, split and joined."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import evertree as et
import helpers
import naive
from evertree.distributed import routing
from evertree.distributed.pieces import Piece, deflate, inflate, join, side_by_side, split
from evertree.distributed.runner import InProcess
from evertree.kernels.columns import NULL
from evertree.tree import Aim, invariants
from evertree.tree.scheme import Scheme

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


def clusters(piece: Piece) -> set[frozenset[int]]:
    """The ids below each node."""
    first, stop = piece.stretches()
    return {frozenset(piece.ids[a:b].tolist()) for a, b in zip(first, stop, strict=True)}


def assert_same(one: Piece, other: Piece) -> None:
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
def test_a_live_tree_becomes_a_piece_and_back(name, linkage, metric):
    live = live_of(DATA[name], linkage, metric)
    piece, order = deflate(live)
    assert clusters(piece) == clusters_of(live)
    np.testing.assert_array_equal(piece.ids, live.tree.birth[order[: piece.n_leaves]])
    twin = inflate(pickle.loads(pickle.dumps(piece)), live.scheme, live.aim)
    invariants.check_shape(twin)
    invariants.check_worklist(twin)
    invariants.check_search(twin)
    invariants.check_points(twin)
    invariants.check_statistics(twin)
    assert clusters_of(twin) == clusters_of(live)
    assert_same(deflate(twin)[0], piece)


def test_children_come_before_parents_and_the_older_first():
    piece, _ = deflate(live_of(DATA["random"]))
    k = piece.n_leaves
    assert np.all(piece.children.max(axis=1) < k + np.arange(k - 1))
    first, _ = piece.stretches()
    births = np.array([piece.ids[first[u] : piece.stretches()[1][u]].min() for u in range(piece.n_nodes)])
    assert np.all(births[piece.children[:, 0]] < births[piece.children[:, 1]])
    assert piece.roots().tolist() == [2 * k - 2]


@pytest.mark.parametrize("metric", ["cosine", "correlation"])
def test_points_come_back_bit_for_bit(metric):
    x = np.random.default_rng(3).normal(size=(20, 3))
    live = live_of(x, "average", metric)
    piece, _ = deflate(live)
    np.testing.assert_array_equal(piece.points, x[piece.ids])
    twin = inflate(piece, live.scheme, live.aim)
    np.testing.assert_array_equal(twin.points(twin.leaves()), x[twin.tree.birth[twin.leaves()]])


@pytest.mark.parametrize("name", EACH)
@pytest.mark.parametrize("seed", range(3))
def test_join_is_the_inverse_of_split(name, seed):
    live = live_of(DATA[name], weights=np.random.default_rng(seed).uniform(0.5, 3, len(DATA[name])))
    piece, _ = deflate(live)
    rng = np.random.default_rng(seed)
    twin = inflate(piece, live.scheme, live.aim)
    wanted = np.zeros(piece.n_nodes, np.bool_)
    wanted[rng.choice(piece.n_nodes, min(seed * 2, piece.n_nodes), replace=False)] = True
    is_open = np.zeros(len(piece.children), np.bool_)
    et.kernels.shared.cross_partition.open_paths(piece.children, piece.n_leaves, wanted, is_open)
    crown = split(piece, twin, is_open, 1000)
    assert set(np.flatnonzero(wanted) + 1000) - set(crown.ids) <= set(np.flatnonzero(is_open) + piece.n_leaves + 1000)
    first, stop = piece.stretches()
    nodes = crown.ids - 1000
    parts = [piece.subtree(int(u), int(first[u]), int(stop[u])) for u in nodes]
    assert_same(join(crown.children, parts), piece)
    assert crown.n_points == piece.n_points == sum(part.n_leaves for part in parts)
    # What is computed of unions above atoms is what was computed of them above points.
    upper = inflate(crown, live.scheme, live.aim)
    u, v = upper.root, twin.root
    assert upper.tree.height[u] == pytest.approx(twin.tree.height[v], rel=1e-12)
    assert upper.tree.variance[u] == pytest.approx(twin.tree.variance[v], rel=1e-12)
    assert upper.tree.birth[u] == 0


def test_several_subtrees_side_by_side():
    x = DATA["random"]
    pieces = [deflate(live_of(some))[0] for some in (x[:10], x[10:11], x[11:])]
    pieces = [piece._replace(ids=piece.ids + start) for piece, start in zip(pieces, (0, 10, 11), strict=True)]
    forest = side_by_side(pieces)
    first, stop = forest.stretches()
    roots = forest.roots()
    assert stop[roots].tolist() == [10, 11, 40]
    for root, piece in zip(roots, pieces, strict=True):
        assert_same(forest.subtree(int(root), int(first[root]), int(stop[root])), piece)
    live = inflate(forest, Scheme("ward", "euclidean"), AIM)
    assert live.root >= 0
    assert np.count_nonzero(live.tree.parent[: live.n_used] == NULL) >= 3
    assert_same(deflate(live)[0], forest)


def test_nothing_is_a_piece():
    piece = Piece(np.empty(0, np.int64), np.empty(0), np.empty((0, 2)), np.empty((0, 2), np.int32))
    live = inflate(piece, Scheme("ward", "euclidean"), AIM)
    assert live.root == NULL
    assert deflate(live)[0].n_nodes == 0


def test_tasks_in_process_share_nothing():
    runner = InProcess()
    array = np.zeros(3)
    held = runner.submit("keep", lambda a: a, array)
    array[0] = 1
    taken = runner.gather([held, held])
    taken[0][1] = 1
    assert taken[1].tolist() == [0, 0, 0]
    assert runner.n_tasks == {"keep": 1}
    assert runner.bytes_moved > 0


@pytest.mark.parametrize(("linkage", "metric"), [("ward", "euclidean"), ("average", "sqeuclidean")])
def test_the_nearest_of_some_nodes(linkage, metric, monkeypatch):
    """By definition, some points at a time."""
    monkeypatch.setattr(routing, "_DISTANCES_AT_ONCE", 9)
    x, new = DATA["random"][:12], DATA["random"][12:20]
    piece, _ = deflate(live_of(x, linkage, metric))
    nodes = np.array([0, 5, 17, 20])
    found = routing.find_nearest(new, piece, nodes, Scheme(linkage, metric), AIM)
    everything = np.concatenate([x, new])
    zeta = naive.ward(everything) if linkage == "ward" else naive.average(naive.sqeuclidean(everything))
    first, stop = piece.stretches()
    below = [frozenset(piece.ids[first[u] : stop[u]].tolist()) for u in nodes]
    expected = [min(range(4), key=lambda k: zeta(below[k], frozenset([i]))) for i in range(12, 20)]
    assert found.tolist() == expected
    assert len(set(expected)) > 1
