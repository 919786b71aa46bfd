"""Insertion, deletion and update: by definition, by key, all or nothing, and homogeneous after each."""

from __future__ import annotations

import os
import signal
import threading

import numpy as np
import pytest

import naive
from evertree import agglomerate, edits, kernels
from evertree.errors import PrecisionWarning
from evertree.input.points import receive
from evertree.kernels.shared.check import MANY_COLUMNS
from evertree.locking import Uninterrupted
from evertree.tree import MeanLiveTree, statistics
from helpers import (
    ONE_OF_EACH,
    SCHEMES,
    Hierarchy,
    assert_valid_and_homogeneous,
    definition,
    fingerprint,
    hard_data,
    hierarchy_of,
    nested,
    new,
)

COMPILED = os.environ.get("NUMBA_DISABLE_JIT", "0") == "0"


@pytest.mark.parametrize(("linkage", "metric"), SCHEMES)
def test_place_of_a_new_point_is_the_papers(rng, linkage, metric):
    """`tab.Insert`: the node beside which a point belongs, on random and on homogeneous trees, ties included."""
    for trial in range(30 if COMPILED else 12):
        x = rng.normal(size=(21, 2)) if trial % 2 else rng.integers(1, 4, size=(21, 2)).astype(float)
        h = hierarchy_of(naive.random_tree(rng, 20), x[:20], linkage, metric)
        if trial % 3:
            h.refine()
        tree = nested(h)
        live = h.state.live
        live.reserve(1)
        leaf = live.add_leaves(receive(live.scheme, x[20:], live), np.ones(1), np.array([20]), np.empty(0, np.int32))
        live.never_pause()
        place = np.empty(1, np.int32)
        kernels.shared.locate.find_places(live.tree, live.search, live.tag, leaf, 0, place, np.empty(1))
        everything = new(linkage, metric)
        everything.insert(x)
        assert frozenset(h.members(place[0])) == naive.members(naive.find_place(tree, 20, definition(everything)))


@pytest.mark.parametrize("goal", ["stable", "homogeneous"])
@pytest.mark.parametrize(("linkage", "metric"), [("ward", "euclidean"), ("average", "sqeuclidean")])
def test_columns_of_zeros_change_nothing(rng, linkage, metric, goal):
    """With many columns a check is made only if it may fail."""
    x = rng.normal(size=(120, 3))
    few, many = (Hierarchy(linkage, metric, goal=goal) for _ in range(2))
    for h, points in ((few, x), (many, np.hstack([x, np.zeros((120, MANY_COLUMNS))]))):
        h.insert(points[:80])
        h.remove(list(range(0, 80, 3)))
        h.insert(points[80:])
        h.refine()
        assert h.is_homogeneous() or linkage == "ward"
    np.testing.assert_allclose(few.linkage_matrix(), many.linkage_matrix(), rtol=1e-9)


@pytest.mark.parametrize(("linkage", "metric"), ONE_OF_EACH)
def test_a_point_that_is_as_near_to_two_others_goes_to_the_older(linkage, metric):
    for older in ([[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]):
        h = new(linkage, metric)
        h.insert([*older, [1.0, 1.0]])
        assert h.members(h.sibling(h.leaf(2))) == [0]


@pytest.mark.parametrize("name", hard_data())
@pytest.mark.parametrize(("linkage", "metric"), ONE_OF_EACH)
def test_every_edit_of_hard_data_leaves_a_homogeneous_tree(rng, linkage, metric, name):
    x = hard_data()[name]
    if not COMPILED:
        x = x[:16]  # all is checked after every edit
    h = Hierarchy(linkage, metric)
    for row in x:
        h.insert(row[None, :])
        assert_valid_and_homogeneous(h)
    for key in rng.permutation(h.keys()).tolist():
        h.update([key], x[rng.integers(len(x), size=1)])
        assert_valid_and_homogeneous(h)
    for key in rng.permutation(h.keys()).tolist():
        h.remove([key])
        assert_valid_and_homogeneous(h)
    assert len(h) == 0
    if len(x):
        h.insert(x)
        assert_valid_and_homogeneous(h)


@pytest.mark.parametrize(("linkage", "metric"), SCHEMES)
def test_edits_agree_with_the_definition(rng, linkage, metric):
    h = new(linkage, metric)
    h.insert(rng.normal(size=(20, 2)), sample_weight=rng.uniform(0.5, 3, size=20))
    for step in range(15):
        keys = rng.choice(h.keys(), 3, replace=False).tolist()
        if step % 3 == 0:
            h.remove(keys)
        elif step % 3 == 1:
            h.update(keys, rng.normal(size=(3, 2)))
        else:
            h.insert(rng.normal(size=(4, 2)))
        assert_valid_and_homogeneous(h)
        assert naive.is_homogeneous(nested(h), definition(h))


@pytest.mark.parametrize(("linkage", "metric"), SCHEMES)
def test_a_batch_is_the_same_as_one_by_one(rng, linkage, metric):
    x = rng.normal(size=(150, 3))
    batch, single = new(linkage, metric, 3), new(linkage, metric, 3)
    batch.insert(x)
    for row in x:
        single.insert([row])
    np.testing.assert_array_equal(batch.linkage_matrix(), single.linkage_matrix())
    # The same point is a duplicate, however it comes.
    coordinates = batch.state.live.scheme.vectors.coordinates
    np.testing.assert_array_equal(np.vstack([coordinates(row[None, :]) for row in x]), coordinates(x))


def test_the_same_input_gives_the_same_tree(rng):
    x = rng.integers(0, 4, size=(100, 2)).astype(float)
    trees = []
    for _ in range(2):
        h = Hierarchy()
        h.insert(x)
        h.remove(range(10, 30))
        h.update([5, 6, 7], x[:3])
        trees.append(h.linkage_matrix())
    np.testing.assert_array_equal(*trees)


def test_a_point_of_weight_two_is_two_points(rng):
    """The value between clusters, the paper's H, and heights: for Ward and for average."""
    x = rng.normal(size=(12, 2))
    shape = naive.random_tree(rng, 12)
    doubled = naive.replaced(shape, 3, (3, 12))
    for linkage, metric in (("ward", "euclidean"), ("average", "sqeuclidean")):
        w = np.ones(12)
        w[3] = 2
        weighted = hierarchy_of(shape, x, linkage, metric, sample_weight=w)
        twice = hierarchy_of(doubled, np.vstack([x, x[3]]), linkage, metric)
        for u in weighted.nodes().tolist():
            if not weighted.children(u):
                continue
            below = set(weighted.members(u))
            same = next(
                v for v in twice.nodes().tolist() if set(twice.members(v)) - {12} == below and twice.children(v)
            )
            assert weighted.height(u) == pytest.approx(twice.height(same))


def test_float32_stays_float32(rng):
    x = rng.normal(size=(50, 3)).astype(np.float32)
    h = Hierarchy()
    h.insert(x)
    with pytest.warns(PrecisionWarning):
        h.insert(rng.normal(size=(5, 3)))  # later points are converted
    assert h.state.live.tree.mean.dtype == np.float32
    assert h.points().dtype == np.float32
    np.testing.assert_array_equal(h.points()[:50], x)
    assert_valid_and_homogeneous(h)


@pytest.mark.parametrize("dtype", [int, np.int8, bool, np.float16, object, np.longdouble])
def test_everything_else_becomes_float64(dtype):
    h = Hierarchy()
    h.insert(np.array([[0, 1], [1, 0], [1, 1]], dtype))
    assert h.points().dtype == np.float64


def test_points_come_back_bit_for_bit(rng):
    x = rng.normal(size=(30, 2))
    for linkage, metric in SCHEMES:
        h = new(linkage, metric)
        h.insert(x)
        h.update([4], x[:1])
        np.testing.assert_array_equal(h.points(), np.vstack([x[:4], x[:1], x[5:]]))


def test_points_can_be_removed_down_to_none_and_come_again(rng):
    h = Hierarchy()
    for _ in range(5):
        h.insert(rng.normal(size=(40, 2)))
        assert_valid_and_homogeneous(h)
        h.remove(h.keys())
        assert_valid_and_homogeneous(h)
        assert len(h) == 0
        assert h.keys() == []
    assert h.state.live.capacity == 40
    assert h.insert([[0.0, 0.0]]) == [200]


def test_removal_of_many_duplicates_checks_each_node_once():
    """Equal points hang on one long path; a batch computes each node of it once, however many points leave."""
    n = 1_000
    h = Hierarchy()
    h.insert(np.ones((n, 2)))
    before = h.state.live.n_checks
    h.remove(range(0, n, 2))
    assert h.state.live.n_checks - before <= n
    assert_valid_and_homogeneous(h)


def test_keys():
    h = Hierarchy()
    assert h.insert([[0.0], [1.0]]) == [0, 1]
    assert h.insert([[2.0]], keys=["a"]) == ["a"]
    assert h.insert([[3.0]], keys=np.array([10])) == [10]
    assert h.insert([[4.0]]) == [11]  # after the largest number, so that none is used twice
    assert h.keys() == [0, 1, "a", 10, 11]
    assert ("a" in h, 10 in h, "b" in h, [1] in h, 2 in h) == (True, True, False, False, False)
    h.remove([0, "a"])
    assert h.keys() == [1, 10, 11]
    assert h.insert([[5.0]], keys=["a"]) == ["a"]
    assert h.keys() == [1, 10, 11, "a"]
    h.update([10], [[9.0]])
    assert h.keys() == [1, 10, 11, "a"]
    np.testing.assert_array_equal(h.points().ravel(), [1, 9, 4, 5])
    h.validate()


def test_numbered_keys_are_never_used_twice(rng):
    h = Hierarchy()
    h.insert(rng.normal(size=(100, 2)))
    h.remove(range(100))
    assert h.insert([[0.0, 0.0]]) == [100]
    assert 99 not in h
    assert 100 in h
    assert 100.0 in h
    assert "100" not in h
    assert 100.5 not in h


def test_numbers_are_not_given_where_an_equal_key_is_live():
    """A float index, as pandas has it: 1.0 equals 1."""
    h = Hierarchy()
    h.insert([[0.0], [1.0], [2.0]], keys=[0.0, 1.0, 2.5])
    assert h.insert([[3.0], [4.0]]) == [3, 4]
    h.insert([[5.0]], keys=[6 + 0j])
    assert h.insert([[6.0], [7.0]]) == [7, 8]
    assert len(h) == 8
    h.validate()


def test_times_as_keys():
    keys = np.array(["2020-01-01", "2020-01-02"], "datetime64[ns]")
    h = Hierarchy()
    h.insert([[0.0], [1.0]], keys=keys)
    assert keys[0] in h
    assert 1577836800000000000 not in h
    h.remove(keys[:1])
    assert h.keys() == [keys[1]]


@pytest.mark.parametrize("nothing", [[], (), np.empty((0, 3)), np.empty((0, 0))])
def test_no_points_decide_nothing(nothing):
    for h in (Hierarchy.random(nothing), agglomerate(nothing), Hierarchy.from_linkage(np.empty((0, 4)), nothing)):
        assert h.insert(np.eye(3)) == [0, 1, 2]
        assert h.insert([]) == []


def test_one_key_needs_no_list():
    h = Hierarchy()
    h.insert([[0.0], [1.0], [2.0]], keys=["a", "bc", 7])
    h.remove("bc")
    h.update(7, [[5.0]])
    h.remove(7)
    assert h.keys() == ["a"]


@pytest.mark.parametrize("keys", [[], np.array([], int), ()])
def test_no_keys_is_no_work(keys):
    h = Hierarchy()
    h.insert([[0.0], [1.0]])
    before = fingerprint(h)
    h.remove(keys)
    h.update(keys, np.empty((0, 1)))
    assert h.insert(np.empty((0, 1))) == []
    assert fingerprint(h) == before


def test_keys_of_many_kinds(rng):
    keys = ["a", 1, 2.5, (1, "x"), b"y", None, frozenset({3}), True]
    h = Hierarchy()
    with pytest.raises(ValueError, match="keys must differ"):
        h.insert(rng.normal(size=(8, 2)), keys=keys)  # True == 1
    h.insert(rng.normal(size=(7, 2)), keys=keys[:-1])
    assert h.keys() == keys[:-1]
    assert True in h
    h.remove([(1, "x"), None])
    assert h.keys() == ["a", 1, 2.5, b"y", frozenset({3})]
    h.validate()


def test_an_edit_of_an_unrefined_tree_refines_all_of_it(rng):
    h = Hierarchy.random(rng.normal(size=(60, 2)))
    h.insert([[0.0, 0.0]])
    assert_valid_and_homogeneous(h)
    h = Hierarchy.random(rng.normal(size=(60, 2)))
    h.refine(moves=10)
    h.remove([3])
    assert_valid_and_homogeneous(h)


def test_update_takes_new_weights(rng):
    h = Hierarchy()
    h.insert(rng.normal(size=(5, 2)), sample_weight=[1, 2, 3, 4, 5])
    h.update([1, 2], rng.normal(size=(2, 2)))
    np.testing.assert_array_equal(h.state.live.tree.size[h.state.keys.leaves()], [1, 2, 3, 4, 5])
    h.update([1, 2], rng.normal(size=(2, 2)), sample_weight=[7, 8])
    np.testing.assert_array_equal(h.state.live.tree.size[h.state.keys.leaves()], [1, 7, 8, 4, 5])
    assert_valid_and_homogeneous(h)


def test_changing_the_scheme_keeps_the_tree_and_refines_it(rng):
    """Time-varying linkage and dissimilarity."""
    h = Hierarchy()
    h.insert(rng.normal(size=(60, 3)))
    x = h.points()
    for linkage, metric in (SCHEMES * 2)[1:]:
        before = h.linkage_matrix()
        report = h.set_linkage(linkage, metric=metric, metric_params=_params(metric))
        assert report.homogeneous
        assert (h.linkage, h.metric) == (linkage, metric)
        assert_valid_and_homogeneous(h)
        assert naive.is_homogeneous(nested(h), definition(h))
        np.testing.assert_array_equal(h.points(), x)
        assert before.shape == h.linkage_matrix().shape


def _params(metric):
    return {"VI": np.diag([1.0, 2.0, 3.0])} if metric == "mahalanobis" else None


def test_a_scheme_that_changes_nothing_makes_no_moves(rng):
    h = Hierarchy()
    h.insert(rng.normal(size=(60, 3)))
    before = h.linkage_matrix()
    assert h.set_metric("mahalanobis", {"VI": np.eye(3)}).moves == 0
    np.testing.assert_allclose(h.linkage_matrix(), before, rtol=1e-12)
    assert h.set_metric("euclidean").moves == 0


def test_a_metric_that_learns(rng):
    """The matrix of Mahalanobis may change while points come (the paper's conclusion)."""
    h = Hierarchy("ward", "mahalanobis", metric_params={"VI": np.eye(2)})
    h.insert(rng.normal(size=(40, 2)))
    for scale in (1.0, 3.0, 10.0):
        matrix = np.diag([scale, 1 / scale])
        h.set_metric("mahalanobis", metric_params={"VI": matrix})
        h.insert(rng.normal(size=(5, 2)))
        assert_valid_and_homogeneous(h)
        np.testing.assert_array_equal(h.metric_params["VI"], matrix)
        assert naive.is_homogeneous(nested(h), definition(h))


def test_scheme_of_an_empty_hierarchy():
    h = Hierarchy()
    h.set_linkage("average", metric="cosine")
    h.insert([[1.0, 0.0], [0.0, 1.0]])
    assert h.height(h.root) == pytest.approx(1.0)
    h.remove([0, 1])
    h.set_metric("sqeuclidean")
    h.insert([[1.0, 0.0], [0.0, 1.0]])
    assert h.height(h.root) == pytest.approx(2.0)


def press_ctrl_c_while_inserting(monkeypatch, part):
    """Ctrl-C comes in the middle of an insertion, which is made in parts of so many points."""
    insert = MeanLiveTree.insert

    def interrupted(live, leaves):
        insert(live, leaves)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(MeanLiveTree, "insert", interrupted)
    monkeypatch.setattr(statistics, "PART", part)


@pytest.mark.parametrize("n_before", [0, 20])
def test_ctrl_c_during_a_large_insertion_undoes_all_of_it(rng, monkeypatch, n_before):
    h = Hierarchy()
    h.insert(rng.normal(size=(n_before, 2)))
    before = fingerprint(h)
    with monkeypatch.context() as patched:
        press_ctrl_c_while_inserting(patched, part=7)
        patched.setattr(edits, "UNDOABLE", 30)
        with pytest.raises(KeyboardInterrupt):
            h.insert(rng.normal(size=(30, 2)))
    assert fingerprint(h) == before
    h.insert(rng.normal(size=(10, 2)))
    assert_valid_and_homogeneous(h)


def test_ctrl_c_during_a_small_insertion_comes_after_it(rng, monkeypatch):
    h = Hierarchy()
    h.insert(rng.normal(size=(50, 2)))
    with monkeypatch.context() as patched:
        press_ctrl_c_while_inserting(patched, part=7)
        with pytest.raises(KeyboardInterrupt):
            h.insert(rng.normal(size=(30, 2)))
        with pytest.raises(KeyboardInterrupt):
            h.update([3, 4], rng.normal(size=(2, 2)))
    assert len(h) == 80
    assert_valid_and_homogeneous(h)


def test_a_handler_that_does_not_raise_undoes_nothing(rng, monkeypatch):
    h = Hierarchy()
    press_ctrl_c_while_inserting(monkeypatch, part=7)
    monkeypatch.setattr(edits, "UNDOABLE", 30)
    calls = []
    before = signal.signal(signal.SIGINT, lambda *_: calls.append(1))
    try:
        assert len(h.insert(rng.normal(size=(30, 2)))) == 30
    finally:
        signal.signal(signal.SIGINT, before)
    assert calls == [1]
    assert_valid_and_homogeneous(h)


@pytest.mark.parametrize("where", ["add_leaves", "insert", "check_range", "reserve"])
def test_a_failure_inside_an_edit_leaves_the_hierarchy_as_it_was(rng, monkeypatch, where):
    """Such as a lack of memory."""
    h = Hierarchy()
    h.insert(rng.normal(size=(20, 2)))
    h.remove([3])
    before = fingerprint(h)

    def fail(*_):
        raise MemoryError("no more")

    with monkeypatch.context() as patched:
        patched.setattr(MeanLiveTree, where, fail)
        with pytest.raises(MemoryError, match="no more"):
            h.insert(rng.normal(size=(5, 2)))
    h.validate()
    assert fingerprint(h)[2:] == before[2:]
    h.insert(rng.normal(size=(5, 2)))
    assert_valid_and_homogeneous(h)


def test_too_little_memory_for_searches(rng, monkeypatch):
    """They have room for as many points as the tree, or kernels would write where there is none."""
    h = Hierarchy(goal="stable")
    h.insert(rng.normal(size=(20, 2)))

    def fail(*_):
        raise MemoryError("no more")

    with monkeypatch.context() as patched:
        patched.setattr(MeanLiveTree, "_new_search", fail)
        with pytest.raises(MemoryError, match="no more"):
            h.insert(rng.normal(size=(50, 2)))
    assert h.state.live.search.fresh.size == h.state.live.capacity
    assert len(h.insert(rng.normal(size=(50, 2)))) == 50
    h.validate()


def test_threads_wait_for_each_other(rng):
    h = Hierarchy()
    rows = rng.normal(size=(4, 100, 1, 2))

    def work(mine):
        for row in mine:
            (key,) = h.insert(row)
            h.update([key], row + 1)
            h.refine()

    threads = [threading.Thread(target=work, args=(mine,)) for mine in rows]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(h) == 400
    assert_valid_and_homogeneous(h)


def test_edits_in_other_threads_need_no_signals(rng):
    h = Hierarchy()
    thread = threading.Thread(target=h.insert, args=(rng.normal(size=(50, 2)),))
    thread.start()
    thread.join()
    assert len(h) == 50
    assert_valid_and_homogeneous(h)


def test_handlers_of_others_are_put_back(rng):
    calls = []

    def mine(*_):
        calls.append(1)

    before = signal.signal(signal.SIGINT, mine)
    try:
        Hierarchy().insert(rng.normal(size=(5, 2)))
        assert signal.getsignal(signal.SIGINT) is mine
        with Uninterrupted():
            signal.raise_signal(signal.SIGINT)
            assert not calls
        assert calls == [1]
        with Uninterrupted() as outer, Uninterrupted():
            signal.raise_signal(signal.SIGINT)
        assert calls == [1, 1]
        assert not outer.should_stop
        assert signal.getsignal(signal.SIGINT) is mine
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_tuple_that_is_a_live_key_is_one_key():
    h = Hierarchy()
    keys = ["a", "b", ("a", "b"), frozenset("ab"), ("c",)]
    h.insert(np.arange(5.0).reshape(-1, 1), keys=keys)
    assert h.points(("a", "b")).tolist() == [[2.0]]
    assert h.weights(frozenset("ab")).shape == (1,)
    assert h.positions(("a", "b")).tolist() == [2]
    h.update(("a", "b"), [[7.0]])
    assert h.anomaly_scores(keys=("a", "b")).shape == (1,)
    h.remove(("a", "b"))
    assert h.keys() == ["a", "b", frozenset("ab"), ("c",)]
    h.remove(("a", "b"))  # now it is a collection
    assert h.keys() == [frozenset("ab"), ("c",)]
    h.remove([("c",)])
    assert h.keys() == [frozenset("ab")]


@pytest.mark.parametrize(
    "call",
    [
        lambda h: h.insert([[1.0]], ["a"]),
        lambda h: h.update([0], [[1.0]], [2.0]),
        lambda h: h.refine(1.0, 5),
        lambda h: h.cut(2),
        lambda h: h.partition(2),
        lambda h: h.cuts([2]),
        lambda h: h.keep(10),
        lambda h: h.check([[1.0]], ["a"]),
    ],
)
def test_what_could_be_mixed_up_is_given_by_name(call):
    """`insert(X, y)` took labels for keys."""
    h = Hierarchy()
    h.insert([[0.0], [5.0]])
    with pytest.raises(TypeError, match="positional argument"):
        call(h)
    assert len(h) == 2


@pytest.mark.parametrize("metric", ["euclidean", "precomputed"])
def test_float64_after_a_float32_start_warns_once(metric):
    h = Hierarchy("average", metric)
    x = np.array([[0.0, 0.1], [0.1, 0.0]])
    h.insert(x.astype(np.float32))
    h.insert([[0.5, 0.25]] if metric == "euclidean" else [[0.5, 0.25, 0.0]])  # they are the same in float32
    third = [0.1, 0.7] if metric == "euclidean" else [0.1, 0.7, 0.9, 0.0]
    with pytest.warns(PrecisionWarning, match="rounded to about seven digits") as caught:
        h.insert([third])
    assert caught[0].filename == __file__
    h.insert([third if metric == "euclidean" else [*third, 0.0]])  # a second warning would be an error here
    assert h.dtype == np.float32


def test_float32_after_float32_and_float64_after_float64_do_not_warn(rng):
    for dtype in (np.float32, np.float64):
        h = Hierarchy()
        for _ in range(2):
            h.insert(rng.normal(size=(3, 2)).astype(dtype))
    h = Hierarchy()
    h.insert(rng.normal(size=(3, 2)))
    h.insert(rng.normal(size=(3, 2)).astype(np.float32))


def test_a_batch_whose_keys_cannot_be_stored_is_undone(rng, monkeypatch):
    h = Hierarchy()
    h.insert(rng.normal(size=(20, 2)), keys=[f"point {i}" for i in range(20)])
    before = h.keys(), h.state.keys.next_birth

    class Full(dict):
        def update(self, *_):
            raise MemoryError

    table = h.state.keys
    monkeypatch.setattr(table, "_key_of", Full(table._key_of))
    with pytest.raises(MemoryError):
        h.insert(rng.normal(size=(5, 2)), keys=list("abcde"))
    assert (h.keys(), h.state.keys.next_birth) == before
    h.validate()


def test_one_point_whose_key_cannot_be_stored_is_taken_out_of_an_emptied_tree(monkeypatch):
    h = Hierarchy()
    h.insert([[0.0], [1.0]], keys=["a", "b"])
    h.remove(["a", "b"])
    with monkeypatch.context() as patch:
        patch.setattr(h.state.keys, "_note", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            h.insert([[5.0]], keys=["c"])
    assert len(h) == h.state.live.n_points == 0
    h.validate()
    h.insert([[1.0], [2.0]], keys=["c", "d"])
    h.validate()
