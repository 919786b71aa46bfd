"""Windows: which points stay, when they came, and that a stream can run for ever in bounded memory."""

from __future__ import annotations

import math
import pickle
import signal
import tracemalloc
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evertree as et
from evertree import edits, windows
from evertree.errors import DuplicateKeyError, ParameterError, TimeError
from evertree.input.keys import KeyTable
from evertree.tree import MeanLiveTree
from evertree.windows import RESOLUTION, MovingWindow
from helpers import ONE_OF_EACH, crash

slow = pytest.mark.slow


class NaiveWindow:
    """The definition: every point with its key and its time, oldest first."""

    def __init__(self):
        self.points: list[list] = []
        self.last = self.max_age = None
        self.next_number = 0

    @property
    def keys(self):
        return [key for key, _ in self.points]

    def keep(self, last, max_age, time):
        if self.max_age is None:
            for point in self.points:
                point[1] = time
        self.last, self.max_age = last, max_age
        return self.moved(time)

    def insert(self, keys, count, time):
        keys = list(range(self.next_number, self.next_number + count)) if keys is None else keys
        self.next_number = max([self.next_number, *(key + 1 for key in keys if isinstance(key, int))])
        self.points += [[key, time] for key in keys]
        self.moved(time)
        return keys

    def remove(self, keys):
        self.points = [point for point in self.points if point[0] not in keys]

    def moved(self, time):
        before = self.keys
        if self.max_age is not None:
            self.points = [point for point in self.points if time - point[1] <= self.max_age]
        if self.last is not None:
            self.points = self.points[-self.last :]
        return [key for key in before if key not in self.keys]


class Stream:
    """A hierarchy beside the definition, and edits of both at random. Whole times: marks are finer than that."""

    def __init__(self, h, seed, reopen):
        self.h, self.model, self.reopen = h, NaiveWindow(), reopen
        self.rng = np.random.default_rng(seed)
        self.time = 0
        self.n_named = 0

    def some_keys(self, most):
        keys = self.h.keys()
        return [keys[i] for i in self.rng.permutation(len(keys))[: self.rng.integers(1, most)]]

    def points(self, count):
        return self.rng.integers(1, 6, (count, 2)).astype(float)  # many ties

    def keep(self):
        last = None if self.rng.integers(3) == 0 else int(self.rng.integers(1, 12))
        max_age = None if self.rng.integers(3) == 0 else int(self.rng.integers(1, 20))
        if last is None and max_age is None:
            self.h.keep_all()
            assert self.model.keep(None, None, self.time) == []
        else:
            gone = self.h.keep(last=last, max_age=max_age, time=self.time)
            assert gone == self.model.keep(last, max_age, self.time)
        limits = (last, max_age)
        assert self.h.window == (None if limits == (None, None) else et.Window(*limits))

    def insert(self):
        count, keys = int(self.rng.integers(0, 8)), None
        if self.rng.integers(2):
            keys = [f"point {self.n_named + i}" for i in range(count)]
            self.n_named += count
        added = self.h.insert(self.points(count), keys=keys, time=self.time)
        assert added == self.model.insert(keys, count, self.time)

    def expire(self):
        assert self.h.expire(time=self.time) == self.model.moved(self.time)

    def remove(self):
        keys = self.some_keys(4)
        self.h.remove(keys)
        self.model.remove(keys)

    def update(self):
        keys = self.some_keys(4)
        self.h.update(keys, self.points(len(keys)))

    def refine(self):
        self.h.refine()

    def pass_on(self):
        self.h = self.reopen(self.h)

    def step(self):
        self.time += int(self.rng.integers(0, 4))
        verbs = [self.keep, self.insert, self.insert, self.insert, self.expire, self.refine, self.pass_on]
        if len(self.h):
            verbs += [self.remove, self.update]
        verbs[self.rng.integers(len(verbs))]()
        assert self.h.keys() == self.model.keys
        self.h.validate()


def saved_and_loaded(path):
    def reopen(h):
        h.save(path)
        return et.load(path)

    return reopen


def in_memory(path):
    ways = [saved_and_loaded(path), lambda h: h.copy(), lambda h: pickle.loads(pickle.dumps(h))]
    rng = np.random.default_rng(0)
    return lambda h: ways[rng.integers(len(ways))](h)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("linkage", "metric"), ONE_OF_EACH)
def test_the_points_are_those_of_the_definition(tmp_path, linkage, metric, seed):
    stream = Stream(et.Hierarchy(linkage, metric), seed, in_memory(tmp_path / "tree"))
    for _ in range(60):
        stream.step()


@pytest.mark.parametrize("seed", range(3))
def test_durable_windows_are_those_of_the_definition(tmp_path, seed):
    path = tmp_path / "tree.db"
    rng = np.random.default_rng(seed)

    def reopen(h):
        reader = et.open(path, read_only=True)
        assert (reader.keys(), reader.window) == (h.keys(), h.window)
        if rng.integers(2):
            h.checkpoint()
        crash(h)  # as a crash does: without a snapshot
        return et.open(path)

    stream = Stream(et.open(path), seed, reopen)
    for _ in range(60):
        stream.step()
    stream.h.verify()


AGES = st.sampled_from([1e-3, 1.0, 60.0, 1e6])


@given(age=AGES, seed=st.integers(0, 10_000), offset=st.sampled_from([0.0, -1e6, 1.7e9]))
def test_marks_know_when_points_came(age, seed, offset):
    """To a thousandth of the age limit: never too early, and never later than that."""
    rng = np.random.default_rng(seed)
    moving, times, time, n_gone = MovingWindow(et.Window(max_age=age)), [], offset, 0
    rounding = 4 * math.ulp(abs(offset) + 100 * age)
    for _ in range(200):
        time += age * float(rng.choice([0.0, 1e-4, 3e-4, 2e-3, 0.1, 1.5], p=[0.2, 0.3, 0.3, 0.15, 0.04, 0.01]))
        moment = moving.moment(time)
        times += [time] * int(rng.integers(1, 4))
        moving.admit(len(times), moment)
        n_gone = max(n_gone, moving.too_old(moment))
        ages = time - np.array(times)
        assert np.all(ages[:n_gone] > age)
        assert n_gone >= np.count_nonzero(ages > age * (1 + RESOLUTION) + rounding)
        moving.move_to(moment)
        assert moving.too_old(moment) == 0
        if rng.integers(20) == 0:
            moving = moving.copy()


def test_there_are_few_marks():
    moving = MovingWindow(et.Window(max_age=100.0))
    for k in range(200_000):
        moment = moving.moment(k * 0.01)
        moving.admit(k + 1, moment)
        moving.move_to(moment)
        assert moving.n_marks <= 1 / RESOLUTION + 2


def test_keeping_the_same_again_makes_no_point_younger():
    """Whoever calls keep() before each insertion would otherwise keep all points for ever."""
    often, once = et.Hierarchy(), et.Hierarchy()
    once.keep(max_age=10.0, time=0)
    for k in range(300):
        often.keep(max_age=10.0, time=k * 0.05)
        for h in (often, once):
            h.insert([[k % 7]], time=k * 0.05)
    assert often.keys() == once.keys()
    assert often.state.window.state() == once.state.window.state()


def test_a_batch_that_is_larger_than_the_window(rng):
    x = rng.normal(size=(1000, 2))
    h = et.Hierarchy()
    h.insert(x[:3])
    h.keep(last=10)
    assert h.insert(x[3:]) == list(range(3, 1000))
    assert h.keys() == h.members(h.root) == list(range(990, 1000))
    assert np.array_equal(h.points(), x[990:])
    assert h.state.live.capacity < 40
    assert h.insert([[0.0, 0.0]]) == [1000]
    named = h.insert(x[:30], keys=range(5000, 5030))
    assert named == list(range(5000, 5030))
    assert h.insert(x[:1]) == [5030]
    h.validate()


def test_all_points_of_a_batch_are_checked(rng):
    h = et.Hierarchy()
    h.keep(last=2)
    h.insert([[0.0], [1.0]], keys=["a", "b"])
    for x, keys, weights in (
        ([[math.nan], [0.0], [0.0], [0.0]], None, None),
        ([[0.0], [0.0], [0.0], [0.0]], ["a", "x", "y", "z"], None),
        ([[0.0], [0.0], [0.0], [0.0]], None, [-1.0, 1.0, 1.0, 1.0]),
    ):
        with pytest.raises(et.EvertreeError):
            h.insert(x, keys=keys, sample_weight=weights)
        assert h.keys() == ["a", "b"]
    h.insert([[0.0], [0.0], [0.0], [3.0]], keys=["p", "q", "r", "s"], sample_weight=[1, 2, 3, 4])
    assert h.state.live.tree.size[h.leaf("s")] == 4
    assert h.insert([[0.0]], keys=["p"]) == ["p"]  # it is gone, so its key is free
    with pytest.raises(DuplicateKeyError):
        h.insert([[0.0]], keys=["s"])


def test_ctrl_c_leaves_the_window_as_it_was(rng, monkeypatch):
    h = et.Hierarchy(search_width=4)
    h.keep(last=25, max_age=10, time=0)
    h.insert(rng.normal(size=(20, 2)), time=1)
    before = h.keys(), h.state.window.state()
    insert = MeanLiveTree.insert

    def interrupted(live, leaves):
        insert(live, leaves)
        signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patched:
        patched.setattr(MeanLiveTree, "insert", interrupted)
        patched.setattr(edits, "UNDOABLE", 20)
        with pytest.raises(KeyboardInterrupt):
            h.insert(rng.normal(size=(40, 2)), time=20)
    assert (h.keys(), h.state.window.state()) == before
    assert h.insert([[0.0, 0.0]], time=2) == [20]
    h.validate()
    assert h.expire(time=11.5) == list(range(20))


@pytest.mark.parametrize("count", [2, 5, 9])
def test_stored_dissimilarities(rng, count):
    """The columns of points that go at once are left out, too."""
    x = rng.normal(size=(30, 2))
    square = np.linalg.norm(x[:, None] - x[None], axis=2)
    given_ones, called = et.Hierarchy("average", "precomputed"), et.Hierarchy("average", lambda a, b: abs(a - b))
    for h in (given_ones, called):
        h.keep(last=5)
    for start in range(0, 30 - count, count):
        order = [*given_ones.keys(), *range(start, start + count)]
        given_ones.insert(square[start : start + count][:, order])
        called.insert(list(range(start, start + count)))
    expected = range(max(start + count - 5, 0), start + count)
    assert given_ones.keys() == called.keys() == list(expected)
    assert np.array_equal(given_ones.points(), square[np.ix_(expected, expected)])
    assert called.points() == list(expected)
    for h in (given_ones, called):
        h.validate()
        h.refine()
        h.certify()


def test_an_update_makes_no_point_younger():
    h = et.Hierarchy()
    h.keep(last=3, max_age=10, time=0)
    h.insert([[0.0], [1.0], [2.0]], time=0)
    h.update([0], [[9.0]])
    h.insert([[3.0]], time=5)
    assert h.keys() == [1, 2, 3]
    h.update([1], [[9.0]])
    assert h.expire(time=11) == [1, 2]


def test_points_that_were_there_before_count_from_then_on():
    h = et.Hierarchy()
    h.insert([[0.0], [1.0]])
    assert h.keep(max_age=10, time=100) == []
    h.insert([[2.0]], time=105)
    assert h.expire(time=110) == []
    assert h.keep(max_age=8, time=112) == [0, 1]  # their times are known, and stay
    assert h.keep(last=5) == []  # which forgets times
    assert h.keep(max_age=1, time=0) == []
    assert h.expire(time=2) == [2]
    assert len(h) == 0


def test_lifting_the_window():
    h = et.Hierarchy()
    h.keep(last=2)
    with pytest.raises(ParameterError, match=r"keep takes last, max_age or both; it got neither: use keep_all\(\)"):
        h.keep()
    assert h.window == et.Window(last=2)
    h.keep_all()
    h.keep_all()
    assert h.window is None
    assert len(h.insert([[0.0], [1.0], [2.0]], time=5.0)) == len(h) == 3
    assert h.expire() == h.expire(time=7) == []


def test_the_computers_clock(monkeypatch):
    now = 1000.0
    monkeypatch.setattr(windows.clock, "time", lambda: now)
    h = et.Hierarchy()
    h.keep(max_age=60)
    h.insert([[0.0]])
    now = 900.0  # it is set back: time stands still
    h.insert([[1.0]])
    now = 1059.0
    assert h.insert([]) == []
    assert len(h) == 2
    now = 1061.0
    assert h.insert([]) == []
    assert len(h) == 0


def test_times_must_not_go_back_nor_be_by_two_clocks():
    h = et.Hierarchy()
    h.keep(max_age=60)
    h.expire()  # there are no points, so it is open whose clock it is
    h.insert([[0.0]], time=100)
    before = h.keys()
    for call, message in (
        (lambda: h.insert([[1.0]], time=99.5), "must not go back: it was 100.0, and is 99.5 now"),
        (lambda: h.expire(time=0), "must not go back"),
        (lambda: h.keep(max_age=30, time=0), "must not go back"),
        (lambda: h.insert([[1.0]]), "by one clock, which so far was given; it is None: give time="),
        (h.expire, "give time="),
    ):
        with pytest.raises(TimeError, match=message):
            call()
        assert h.keys() == before
    h.insert([[1.0]], time=100)
    h.keep(max_age=1000.0, time=120)
    h.keep_all()
    h.keep(max_age=30)
    with pytest.raises(TimeError, match=r"so far was the computer's; it is 130: leave time= out, or lift"):
        h.insert([[1.0]], time=130)


@pytest.mark.parametrize("last", [0, -1, 2.5, True, "3"])
def test_bad_numbers_of_points(last):
    with pytest.raises(ParameterError, match="last must be a positive integer"):
        et.Hierarchy().keep(last=last)


@pytest.mark.parametrize("value", [math.nan, math.inf, 10**400, -(10**400), True, np.True_, "soon", None])
def test_bad_ages_and_times(value):
    h = et.Hierarchy()
    h.insert([[0.0]])
    if value is not None:
        with pytest.raises(ParameterError, match="max_age must be a finite number"):
            h.keep(max_age=value)
        for verb in (lambda: h.insert([[1.0]], time=value), lambda: h.expire(time=value)):
            with pytest.raises(ParameterError, match="time must be a finite number"):
                verb()
    for age in (0, -1):
        with pytest.raises(ParameterError, match="max_age must be positive"):
            h.keep(max_age=age)
    assert h.window is None
    assert h.keys() == [0]


def test_windows_are_values():
    limits = et.Window(np.int64(3), np.float32(2))
    assert limits == et.Window(3, 2.0)
    assert (type(limits.last), type(limits.max_age)) == (int, float)
    with pytest.raises(FrozenInstanceError):
        limits.last = 4


def test_copies_have_windows_of_their_own():
    h = et.Hierarchy()
    h.keep(max_age=10, time=0)
    h.insert([[0.0]], time=0)
    twin = h.copy()
    h.insert([[1.0]], time=20)
    assert (h.keys(), twin.keys()) == ([1], [0])
    assert twin.expire(time=9) == []
    assert twin.expire(time=11) == [0]


@pytest.mark.parametrize("verb", ["keep", "expire", "insert"])
def test_ctrl_c_comes_before_or_after(verb, monkeypatch):
    """Not between what goes and what the window knows of it."""
    h = et.Hierarchy()
    h.keep(max_age=10, time=0)
    h.insert([[0.0], [1.0]], time=1)
    h.insert([[2.0]], time=5)
    expected = h.copy()
    edit = {
        "keep": lambda h: h.keep(last=2, max_age=9, time=12),
        "expire": lambda h: h.expire(time=12),
        "insert": lambda h: h.insert([[3.0]], time=12),
    }[verb]
    edit(expected)
    release = MeanLiveTree.release

    def interrupted(live, leaves):
        release(live, leaves)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(MeanLiveTree, "release", interrupted)
    with pytest.raises(KeyboardInterrupt):
        edit(h)
    assert (h.keys(), h.state.window.state()) == (expected.keys(), expected.state.window.state())


def test_the_oldest_of_chosen_keys_are_found_fast():
    """A dict passes over all places that were in use before them, so it is copied from time to time."""
    table = KeyTable()
    table.add([f"key {k}" for k in range(400)], 2 * np.arange(400, dtype=np.int32))
    most = 0
    for k in range(400, 3000):
        keys, leaves = table.oldest(1)
        assert keys == [f"key {k - 400}"]
        table.discard(keys)
        table.add([f"key {k}"], leaves)
        most = max(most, table._n_passed)
    assert most < 250
    assert table.keys() == [f"key {k}" for k in range(2600, 3000)]


@slow
def test_stamps_of_searches_begin_anew(rng):
    """They are numbers of 32 bits: a search more than these can count must not take old stamps for its own."""
    x = rng.normal(size=(400, 3))
    for linkage in ("ward", "complete"):
        near, far = et.Hierarchy(linkage, search_width=4), et.Hierarchy(linkage, search_width=4)
        for h in (near, far):
            h.keep(last=60)
            h.insert(x[:60])
        near.state.live.search.seen[:] = rng.integers(1, 40, near.state.live.search.seen.size)  # as after 2³¹ searches
        near.state.live.search.state["stamp"][0] = 2**31 - 40
        for start in range(60, 400, 10):
            for h in (near, far):
                h.insert(x[start : start + 10])
                h.refine()
        assert 0 < near.state.live.search.state["stamp"][0] < 2**30
        assert np.array_equal(near.linkage_matrix(), far.linkage_matrix())
        near.validate()


@slow
@pytest.mark.parametrize("named", [False, True])
def test_nothing_grows(rng, named):
    h = et.Hierarchy()
    h.keep(last=100)
    x = rng.normal(size=(100, 2))
    p, before = None, None
    for k in range(40):
        for _ in range(20):
            first = h.state.keys.next_birth
            batch = x[: rng.integers(1, 9)]
            h.insert(batch, keys=[f"key {first + i}" for i in range(len(batch))] if named else None)
        p = h.partition(n_clusters=5, follow=p)
        sizes = h.state.live.capacity, h.n_bytes - h.state.keys.n_bytes, len(pickle.dumps(p)) // 300
        if k == 20:
            before = sizes
    assert sizes == before
    assert h.state.keys.n_bytes <= 12 * (2 * 100 + 16 + 8)
    assert len(h.state.keys._leaf_of or ()) == (100 if named else 0)
    h.validate()


def test_ids_last_over_many_steps(rng):
    """A cluster that stays in place keeps its id, although all its points go several times over."""
    h = et.Hierarchy()
    h.keep(last=30)
    centers = np.array([[0.0, 0.0], [50.0, 0.0], [0.0, 50.0]])
    h.insert(np.repeat(centers, 10, axis=0) + rng.normal(size=(30, 2)))
    p = h.partition(n_clusters=3)
    first = {tuple(np.round(h.points()[p.labels == i].mean(axis=0) / 50)): i for i in p.ids}
    for _ in range(300):
        h.insert(centers + rng.normal(size=(3, 2)))
        p = h.partition(n_clusters=3, follow=p)
    now = {tuple(np.round(h.points()[p.labels == i].mean(axis=0) / 50)): i for i in p.ids}
    assert now == first


@slow
def test_a_million_points(rng):
    """They pass through a window of a thousand; then the tree is the one that batch clustering makes of the last."""
    n, last, batch = 1_000_000, 1_000, 1_000
    h = et.Hierarchy(search_width=None)
    h.keep(last=last)
    sizes, traced = [], []
    for start in range(0, n, batch):
        if start == n - 250_000:
            tracemalloc.start()  # late, as it takes longer than all the rest
        drift = start / n
        x = rng.normal(size=(batch, 3)) + rng.choice([-5.0, 0.0, 5.0 * drift], (batch, 1))
        h.insert(x)
        if start % 50_000 == 0:
            sizes.append((h.state.live.capacity, h.n_bytes))
            traced.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    capacity, n_bytes = zip(*sizes, strict=True)
    assert max(capacity) <= 3 * last
    assert max(n_bytes[1:]) <= 1.01 * n_bytes[1]
    assert 0 < traced[-1] <= 1.2 * traced[-4]
    assert h.keys() == list(range(n - last, n))
    assert np.array_equal(h.points(), x[-last:])
    h.validate()
    h.refine()
    h.certify()
    batch_tree = et.agglomerate(h.points())
    np.testing.assert_allclose(h.linkage_matrix()[:, 2], batch_tree.linkage_matrix()[:, 2], rtol=1e-9)
