"""Exact edits: with ``search_width=None`` the tree is the batch tree after each of them."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest

import evertree as et
import naive
from evertree import kernels
from evertree.errors import CorruptFileError
from evertree.io import archive, snapshot
from evertree.kernels.columns import UNLIMITED
from evertree.tree import repair
from helpers import definition, hard_data, nested

SCHEMES = [
    ("average", "euclidean"),
    ("average", "cityblock"),
    ("average", "sqeuclidean"),
    ("average", "cosine"),
    ("complete", "euclidean"),
    ("complete", "chebyshev"),
    ("minimax", "euclidean"),
    ("ward", "euclidean"),
]

#: Of metrics whose square root obeys the triangle inequality, and of which nothing is known.
OTHER_SCHEMES = [("minimax", "sqeuclidean"), ("minimax", "canberra")]


def new(linkage, metric, **options):
    return et.Hierarchy(linkage, metric, search_width=None, **options)


def edit_at_random(h, rng, points):
    """Insert, remove or update a few points."""
    n, kind = len(h), rng.integers(4)
    if n < 4 or kind < 2:
        x = points(int(rng.integers(1, 5)))
        h.insert(x, sample_weight=rng.choice([0.5, 1.0, 2.0], len(x)))
    elif kind == 2:
        h.remove([h.keys()[i] for i in rng.choice(n, min(n - 1, int(rng.integers(1, 4))), replace=False)])
    else:
        h.update([h.keys()[i] for i in rng.choice(n, 2, replace=False)], points(2))


def check(h):
    """The tree is the batch tree, and its slack bounds every pair of clusters that are alive at the same time.

    If one of the two merges first, by its slack; if both merge at the same level, by one of them.
    """
    h.validate()
    assert h.state.live.is_exact
    assert h.is_stable()
    h.certify()
    live, zeta = h.state.live, definition(h)
    position = {leaf: i for i, leaf in enumerate(h.state.leaves().tolist())}
    order, level = repair.merge_order(live)
    cluster = {leaf: frozenset([i]) for leaf, i in position.items()}
    death = {}
    for u in order.tolist():
        a, b = int(live.tree.left[u]), int(live.tree.right[u])
        death[a] = death[b] = level[u]
        cluster[u] = cluster[a] | cluster[b]
    slack = live.exact.slack
    assert all(slack[p] >= death[p] * (1 - 1e-9) for p in death)
    for p, q in itertools.combinations(death, 2):
        if live.tree.parent[p] == live.tree.parent[q] or cluster[p] & cluster[q]:
            continue
        if max(level[p], level[q]) <= min(death[p], death[q]) * (1 + 1e-9):
            first = p if death[p] < death[q] else q
            tied = abs(death[p] - death[q]) <= 1e-9 * death[p]
            bound = min(slack[p], slack[q]) if tied else slack[first]
            assert live.scheme.zeta(bound) <= zeta(cluster[p], cluster[q]) * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("linkage", "metric"), SCHEMES + OTHER_SCHEMES)
def test_random_edits(linkage, metric, seed):
    rng = np.random.default_rng(seed)
    h = new(linkage, metric)
    for _ in range(14):
        edit_at_random(h, rng, lambda count: rng.normal(size=(count, 2 + seed)))
        check(h)
        if linkage != "minimax":  # radii tie
            assert naive.clusters(nested(h)) == naive.clusters(naive.batch(definition(h), len(h)))
        report = h.refine()
        assert report.certified
        assert report.moves == report.grafts == 0


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("linkage", "metric"), SCHEMES)
def test_ties(linkage, metric, seed):
    rng = np.random.default_rng(seed)
    h = new(linkage, metric)
    for _ in range(14):
        edit_at_random(h, rng, lambda count: rng.integers(1, 4, size=(count, 2)).astype(float))
        check(h)


@pytest.mark.parametrize("name", hard_data())
@pytest.mark.parametrize(("linkage", "metric"), [*SCHEMES[:1], *SCHEMES[4:5], *SCHEMES[6:]])
def test_hard_data(linkage, metric, name):
    x = hard_data()[name]
    if len(x) < 3:
        pytest.skip("too few points")
    h = new(linkage, metric)
    h.insert(x[:2])
    for i in range(2, min(len(x), 25)):
        h.insert(x[i : i + 1])
    for key in h.keys()[::3]:
        h.remove([key])
    h.validate()
    assert h.state.live.is_exact
    h.certify()


@pytest.mark.parametrize(("linkage", "metric"), SCHEMES)
def test_to_nothing_and_back(linkage, metric):
    h = new(linkage, metric)
    for x in ([[1.0, 2.0]], [[3.0, 1.0]], [[1.0, 2.0]]):
        h.insert(x)
        check(h)
    for key in list(h.keys()):
        h.remove([key])
        check(h)
    h.insert([[5.0, 5.0]], keys=["a"])
    h.update(["a"], [[4.0, 1.0]])
    check(h)
    h.insert([[1.0, 0.5]], keys=["b"])
    h.update(["a", "b"], [[2.0, 2.0], [1.0, 3.0]])
    check(h)


@pytest.mark.parametrize(("linkage", "metric"), SCHEMES)
def test_a_clustered_batch_between_repairs(rng, linkage, metric):
    """What the last repair has left says nothing of the tree that is made then."""
    h = new(linkage, metric)
    for count in (20, 1, 25, 1, 50, 1):
        h.insert(rng.uniform(1, 2, size=(count, 2)))
        h.remove([h.keys()[3]])
        check(h)


@pytest.mark.parametrize("how", ["copied", "pickled", "saved"])
@pytest.mark.parametrize(("linkage", "metric"), SCHEMES)
def test_another_of_the_same_takes_the_same_edits(linkage, metric, how, tmp_path):
    """To the last bit."""
    rng, points = np.random.default_rng(0), np.random.default_rng(1)
    h = new(linkage, metric)
    h.insert(points.normal(size=(80, 3)))
    for _ in range(8):
        edit_at_random(h, rng, lambda count: points.normal(size=(count, 3)))
    if how == "copied":
        twin = h.copy()
    elif how == "pickled":
        twin = pickle.loads(pickle.dumps(h))
    else:
        h.save(tmp_path / "tree")
        twin = et.load(tmp_path / "tree")
    assert twin.state.live.is_exact
    for seed in range(8):
        for each in (h, twin):
            each_rng = np.random.default_rng(seed)
            edit_at_random(each, each_rng, lambda count, rng=each_rng: rng.normal(size=(count, 3)))
        assert np.array_equal(h.linkage_matrix(), twin.linkage_matrix())
        nodes = h.state.live.nodes()
        assert np.array_equal(h.state.live.exact.slack[nodes], twin.state.live.exact.slack[nodes])


@pytest.mark.parametrize(("linkage", "metric"), SCHEMES)
def test_durable_trees(linkage, metric, tmp_path):
    rng = np.random.default_rng(0)
    with et.open(tmp_path / "tree.db", linkage=linkage, metric=metric, search_width=None) as h:
        for number in range(12):
            edit_at_random(h, rng, lambda count: rng.normal(size=(count, 2)))
            if number == 5:
                h.checkpoint()
        expected = h.linkage_matrix()
        again = et.open(tmp_path / "tree.db", read_only=True)
        assert np.array_equal(again.linkage_matrix(), expected)
        assert again.state.live.is_exact


@pytest.mark.slow
@pytest.mark.parametrize(("linkage", "metric"), SCHEMES)
def test_many_points_at_once_are_clustered(rng, linkage, metric):
    h = new(linkage, metric)
    h.insert(rng.normal(size=(300, 2)))
    h.insert(rng.normal(size=(60, 2)))
    h.update(h.keys()[:60], rng.normal(size=(60, 2)))
    h.remove(h.keys()[:60])
    assert h.state.live.is_exact
    h.certify()


@pytest.mark.parametrize("n_close", [1, 2, 3])
@pytest.mark.parametrize(
    ("linkage", "metric"), [("average", "euclidean"), ("complete", "euclidean"), ("ward", "euclidean")]
)
def test_short_lists_of_what_is_close(monkeypatch, linkage, metric, n_close):
    """Where they are used up, all others are looked at again."""
    monkeypatch.setattr(kernels.repair.state, "N_CLOSE", n_close)
    for seed in range(8):
        rng = np.random.default_rng(seed)
        h = new(linkage, metric)
        h.insert(rng.normal(size=(40, 2)))
        for _ in range(6):
            edit_at_random(h, rng, lambda count, rng=rng: rng.normal(size=(count, 2)))
            h.certify()
            assert h.state.live.is_exact
            heights = et.agglomerate(h.points(), linkage, metric, sample_weight=h.weights()).linkage_matrix()[:, 2]
            np.testing.assert_allclose(h.linkage_matrix()[:, 2], heights, rtol=1e-9)


@pytest.mark.parametrize("linkage", ["average", "complete", "minimax"])
def test_many_duplicates(linkage):
    """Merges at zero, also while all clusters have slots."""
    rng = np.random.default_rng(2)
    h = new(linkage, "euclidean")
    h.insert(np.repeat(rng.normal(size=(4, 2)), 30, axis=0))
    for k in range(4):
        h.insert(np.repeat(h.points()[k : k + 1], 2, axis=0))
        h.insert(rng.normal(size=(1, 2)))
        h.remove(h.keys()[:2])
        check_some(h)


def check_some(h):
    """As `check`, without comparing all pairs of clusters."""
    h.validate()
    h.certify()
    assert h.state.live.is_exact


@pytest.mark.parametrize("why", ["rows", "pairs", "looked at", "memory"])
@pytest.mark.parametrize("comes", [True, False])
def test_a_repair_that_gives_up(rng, monkeypatch, why, comes):
    """Too few rows, or too many comparisons: the points are clustered, or, without the memory, inserted."""
    h = new("average", "euclidean")
    h.insert(rng.normal(size=(60, 2)))
    if why == "pairs":
        monkeypatch.setattr(repair, "_patience", lambda live: (1, UNLIMITED))
    elif why == "looked at":
        monkeypatch.setattr(repair, "_patience", lambda live: (UNLIMITED, 0))
    else:
        monkeypatch.setattr(repair, "N_ROWS", 1)
    if why == "memory":
        monkeypatch.setattr("evertree.tree.batch.may_cluster", lambda *_: False)
        monkeypatch.setattr("evertree.edits.may_cluster", lambda *_: False)
    for seed in range(10):
        point = np.random.default_rng(seed).normal(size=(3, 2))
        if comes:
            h.insert(point)
        else:
            h.remove(h.keys()[:3])
        h.validate()
        if why == "memory":
            assert h.is_homogeneous()
            h.refine()
        assert h.state.live.is_exact
        h.certify()


@pytest.mark.parametrize(("linkage", "metric"), [("average", "euclidean"), ("minimax", "cityblock")])
def test_all_leave_and_it_gives_up(rng, monkeypatch, linkage, metric):
    h = new(linkage, metric)
    h.insert(rng.normal(size=(30, 2)))
    monkeypatch.setattr(repair, "_patience", lambda _: (-1, UNLIMITED))
    h.remove(h.keys())
    h.validate()
    assert len(h) == 0
    h.insert(rng.normal(size=(5, 2)))
    check(h)


@pytest.mark.parametrize("n_top", [1, 20])
@pytest.mark.parametrize("weight", [1e6, 1e9, 1e12])
def test_heavy_points(monkeypatch, weight, n_top):
    """What is left when a heavy point leaves is a small difference of large numbers: no bound may be above ζ."""
    monkeypatch.setattr(repair, "SMALLEST_TOP", n_top)
    monkeypatch.setattr(repair, "LARGEST_TOP", n_top)
    for seed in range(6):
        rng = np.random.default_rng(seed)
        h = new("average", "euclidean")
        x = np.r_[rng.normal(size=(10, 2)), rng.normal(size=(10, 2)) + 3, rng.normal(size=(10, 2)) + 9]
        keys = h.insert(x)
        for _ in range(3):
            h.insert(rng.normal(size=(1, 2)) + 1.5, keys=["heavy"], sample_weight=[weight])
            h.certify()
            h.remove(["heavy"])
            h.certify()
            h.update(keys[:1], rng.normal(size=(1, 2)))
        np.testing.assert_allclose(
            h.linkage_matrix()[:, 2], et.agglomerate(h.points(), "average").linkage_matrix()[:, 2], rtol=1e-12
        )


@pytest.mark.parametrize("how", ["saved", "pickled", "copied"])
def test_a_tree_that_was_only_clustered(rng, tmp_path, how):
    """Its slack is found before its first edit, whatever it went through until then."""
    h = new("average", "euclidean")
    h.insert(rng.normal(size=(60, 2)))
    if how == "saved":
        h.save(tmp_path / "tree")
        h = et.load(tmp_path / "tree")
    else:
        h = h.copy() if how == "copied" else pickle.loads(pickle.dumps(h))
    assert h.state.live.exact.is_rough
    h.insert(rng.normal(size=(1, 2)))
    assert not h.state.live.exact.is_rough
    check(h)


def test_slots_when_clusters_become_smaller(rng, monkeypatch):
    """Where few clusters are left above the level from which on they have slots, it falls."""
    monkeypatch.setattr(repair, "SMALLEST_TOP", 6)
    monkeypatch.setattr(repair, "LARGEST_TOP", 6)
    h = new("average", "euclidean")
    h.insert(100 * rng.normal(size=(50, 2)))
    for _ in range(26):
        h.insert(rng.normal(size=(2, 2)))
        h.remove(h.keys()[:2])
    check(h)
    assert np.count_nonzero(h.state.live.exact.top.node >= 0) >= 6


@pytest.mark.parametrize("n_top", [5, 12])
@pytest.mark.parametrize(("linkage", "metric"), [SCHEMES[0], SCHEMES[1], SCHEMES[4], SCHEMES[5]])
def test_values_of_slots(monkeypatch, linkage, metric, n_top):
    """Values that are kept between the last clusters are those by definition, however they were found."""
    monkeypatch.setattr(repair, "SMALLEST_TOP", n_top)
    monkeypatch.setattr(repair, "LARGEST_TOP", n_top)
    rng = np.random.default_rng(n_top)
    centers = 6 * rng.uniform(1, 2, size=(6, 3))
    h, n_known = new(linkage, metric), 0
    for _ in range(24):
        edit_at_random(h, rng, lambda count: centers[rng.integers(6, size=count)] + rng.normal(size=(count, 3)))
        if len(h) < 25:
            h.insert(centers[rng.integers(6, size=20)] + rng.normal(size=(20, 3)))
        check(h)
        live, zeta, top = h.state.live, definition(h), h.state.live.exact.top
        position = {leaf: i for i, leaf in enumerate(h.state.leaves().tolist())}
        cluster = {u: frozenset(position[i] for i in live.leaves(u).tolist()) for u in live.nodes().tolist()}
        slots = [s for s in np.flatnonzero(top.node >= 0).tolist() if int(top.node[s]) in cluster]
        for s, t in itertools.combinations(slots, 2):
            a, b = cluster[int(top.node[s])], cluster[int(top.node[t])]
            if not a & b and top.error[s, t] <= 1e4:
                n_known += 1
                assert live.scheme.zeta(top.value[s, t]) == pytest.approx(zeta(a, b), rel=1e-9, abs=1e-12)
    assert n_known > 200


def test_more_slots_for_more_points(rng, monkeypatch):
    monkeypatch.setattr(repair, "SMALLEST_TOP", 4)
    h = new("average", "euclidean")
    h.insert(rng.normal(size=(20, 2)))
    h.insert(rng.normal(size=(1, 2)))
    n_slots = h.state.live.exact.top.node.size
    for _ in range(30):
        h.insert(rng.normal(size=(5, 2)))
    assert h.state.live.exact.top.node.size >= 2 * n_slots
    check(h)


@pytest.mark.slow
def test_an_edit_compares_few_pairs():
    """In clusters, a small part of what clustering all points takes."""
    rng = np.random.default_rng(0)
    centers = 8 * rng.normal(size=(20, 8))
    x = centers[rng.integers(20, size=1_020)] + rng.normal(size=(1_020, 8))
    for linkage in ("average", "complete"):
        h = new(linkage, "euclidean")
        h.insert(x[:1_000])
        counts = []
        for i in range(1_000, 1_020):
            before = h.state.live.n_evaluated
            h.insert(x[i : i + 1])
            counts.append(h.state.live.n_evaluated - before)
        assert np.median(counts) < 20 * 1_000  # all pairs are 500 * 1,000
        h.certify()


def test_refinement_of_any_tree_ends_exact(rng):
    h = et.Hierarchy.random(rng.normal(size=(40, 2)), "average", search_width=None)
    assert not h.state.live.is_exact
    assert h.refine().certified
    assert h.state.live.is_exact
    h.insert(rng.normal(size=(1, 2)))
    check(h)


def test_moves_make_another_tree(rng):
    """The paper's moves do not keep a Ward tree stable."""
    h = new("ward", "euclidean")
    h.insert(rng.normal(size=(300, 2)))
    assert h.refine(until="homogeneous").moves > 0
    assert not h.state.live.is_exact
    assert not h.refine(until="homogeneous").certified
    h.refine()
    h.certify()


def test_only_exact_searches_certify(rng):
    x = rng.normal(size=(50, 2))
    for linkage, width, is_proof in (("ward", 4, False), ("ward", None, True), ("single", 4, True)):
        h = et.Hierarchy(linkage, search_width=width)
        h.insert(x)
        assert h.refine().certified == is_proof


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("slack", lambda a: -1 - a),
        ("slack", lambda a: a * np.nan),
        ("slack", lambda a: a[:-1]),
        ("slot", lambda a: a + 1),
        ("slot", lambda a: a.astype(np.int64)),
        ("node", lambda a: a + 2),
        ("node", lambda a: np.where(a == a.max(), a + 64, a)),
        ("node", lambda a: np.where(a >= 0, a[0], a)),
        ("value", lambda a: a[:-1]),
        ("value", lambda a: a * np.nan),
        ("error", lambda a: a - np.inf),
        ("level", lambda a: a * np.nan),
        ("level", lambda a: np.zeros(2)),
    ],
)
def test_damaged_files(rng, tmp_path, name, change):
    h = new("average", "euclidean")
    h.insert(rng.normal(size=(30, 2)))
    h.insert(rng.normal(size=(1, 2)))
    header, arrays = snapshot.contents(h.state)
    arrays = {key: np.array(value) for key, value in arrays.items()}
    with np.errstate(invalid="ignore"):
        arrays[f"exact.{name}"] = change(arrays[f"exact.{name}"])
    archive.write(tmp_path / "tree", header, arrays)
    with pytest.raises(CorruptFileError):
        et.load(tmp_path / "tree")


def test_files_without_slack(rng, tmp_path):
    """Those of older versions."""
    h = new("average", "euclidean")
    h.insert(rng.normal(size=(30, 2)))
    header, arrays = snapshot.contents(h.state)
    archive.write(tmp_path / "tree", header, {k: v for k, v in arrays.items() if not k.startswith("exact")})
    h = et.load(tmp_path / "tree")
    assert not h.state.live.is_exact
    h.insert(rng.normal(size=(1, 2)))
    assert h.refine().certified
    h.certify()
