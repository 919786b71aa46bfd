"""Threads that read a hierarchy while another changes it: each answer is of one moment, and nobody waits for ever."""

from __future__ import annotations

import pickle
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from scipy.cluster.hierarchy import is_valid_linkage

import evertree as et
from evertree.errors import ParameterError, UnknownKeyError, UnknownNodeError
from evertree.tree import LiveTree, refine
from evertree.tree.parallel import rounds
from helpers import ONE_OF_EACH

#: Points come and go in batches of so many: at each moment, all of a batch are there, or none.
BATCH = 5

#: Seconds in which whoever does not wait for ever has had a turn.
LONG = 60


def batch(rng: np.random.Generator, count: int = BATCH) -> np.ndarray:
    return rng.normal(size=(count, 3)) + 6 * rng.integers(3, size=(count, 1))


def are_whole(keys: list) -> bool:
    return len(keys) > 0 and set(Counter(number for number, _ in keys).values()) == {BATCH}


def is_tree(Z: np.ndarray) -> bool:
    return is_valid_linkage(Z) and (len(Z) + 1) % BATCH == 0


def questions(h: et.Hierarchy) -> list[Callable[[], bool]]:
    """Each true at any one moment, however many edits there are, and false or an error between two."""

    def copied() -> bool:
        twin = h.copy()
        twin.validate()
        return are_whole(twin.keys())

    def pickled() -> bool:
        twin = pickle.loads(pickle.dumps(h))
        twin.validate()
        return are_whole(twin.keys())

    def cut_in_two() -> bool:
        labels = h.cut(n_clusters=2)
        return set(labels.tolist()) == {0, 1} and len(labels) % BATCH == 0

    def partitioned() -> bool:
        p = h.partition(n_clusters=2)
        return are_whole(p.keys) and len(p.labels) == len(p.keys)

    def located() -> bool:
        place = h.locate([[0.0, 0.0, 0.0]])[0]
        return len(place.path) < 10_000 and np.isfinite(place.height)

    def above() -> bool:
        key = h.keys()[-1]
        try:
            return key in h.members(h.copy().root) or len(h.ancestors(key)) < 10_000
        except (UnknownKeyError, UnknownNodeError):  # these are three questions
            return True

    return [
        copied,
        pickled,
        cut_in_two,
        partitioned,
        located,
        above,
        lambda: are_whole(h.keys()),
        lambda: is_tree(h.linkage_matrix()),
        lambda: len(h.points()) % BATCH == 0,
        lambda: h.nodes().size % (2 * BATCH) == 2 * BATCH - 1,
        lambda: h.is_monotone() in (True, False),  # not while a change of the linkage is refined
        lambda: h.violations().size < len(h.nodes()) and h.instability(sample=3).fraction >= 0,
        lambda: h.anomaly_scores().size % BATCH == 0 and len(h.anomalies([[9.0, 9.0, 9.0]], n=1)) == 1,
        lambda: (h.to_newick().count(",") + 1) // 2 % BATCH == 0,  # the keys have a comma too
        lambda: h.to_html().startswith("<!doctype html>") and "points" in h._repr_html_(),
        lambda: et.quality.total_linkage(h) > 0 and et.quality.cophenetic_correlation(h) <= 1 + 1e-9,
        lambda: h.validate() is None,
    ]


@contextmanager
def readers(h: et.Hierarchy, asked: list[Callable[[], bool]], n_threads: int = 3) -> Iterator[list[int]]:
    """Threads that ask one question after the other until the block ends. Their errors are raised there.

    The list has how often each thread has asked.
    """
    stop, errors, counts = threading.Event(), [], [0] * n_threads

    def read(number: int) -> None:
        try:
            while not stop.is_set():
                question = asked[(counts[number] * n_threads + number) % len(asked)]
                assert question(), question
                counts[number] += 1
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=read, args=(number,), daemon=True) for number in range(n_threads)]
    for thread in threads:
        thread.start()
    try:
        yield counts
    finally:
        stop.set()
        for thread in threads:
            thread.join(LONG)
        if errors:
            raise errors[0]
    assert not any(thread.is_alive() for thread in threads)


def edit(h: et.Hierarchy, rng: np.random.Generator, number: int, others: list[tuple[str, str]]) -> None:
    """One edit, or refinement, of many kinds."""
    keys = h.keys()
    kind = number % 6
    if kind < 3 or len(keys) < 8 * BATCH:
        h.insert(batch(rng), keys=[(number, i) for i in range(BATCH)])
    elif kind == 3:
        gone = {keys[int(rng.integers(len(keys)))][0] for _ in range(4)}
        h.remove([key for key in keys if key[0] in gone])
    elif kind == 4:
        some = [keys[i] for i in rng.choice(len(keys), 3, replace=False)]
        h.update(some, batch(rng, 3))
    elif number % 30 == 5 and others:
        h.set_linkage(*others[number // 30 % len(others)])
    else:
        h.refine(seconds=0.01) if number % 12 == 5 else h.refine(moves=3)


def begin(h: et.Hierarchy, rng: np.random.Generator) -> et.Hierarchy:
    for number in range(10):
        h.insert(batch(rng), keys=[(-1 - number, i) for i in range(BATCH)])
    for question in questions(h):
        assert question()  # compiled, and true while nobody edits
    return h


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["plain", "windowed", "durable", "threads"])
def test_each_answer_is_of_one_moment(kind, rng, tmp_path):
    h = et.open(tmp_path / "tree") if kind == "durable" else et.Hierarchy(n_jobs=2 if kind == "threads" else None)
    if kind == "windowed":
        h.keep(last=20 * BATCH, max_age=60, time=0)
    begin(h, rng) if kind != "windowed" else [edit_in_time(h, rng, number) for number in range(30)]
    with readers(h, questions(h)) as counts:
        for number in range(240):
            if kind == "windowed":
                edit_in_time(h, rng, number + 30)
            else:
                edit(h, rng, number, [("average", "sqeuclidean"), ("ward", "euclidean")])
    assert min(counts) > 0
    h.validate()
    if kind == "durable":
        h.close()


def edit_in_time(h: et.Hierarchy, rng: np.random.Generator, number: int) -> None:
    h.insert(batch(rng), keys=[(number, i) for i in range(BATCH)], time=number)
    if number % 7 == 0:
        h.expire(time=number)
    if number % 50 == 49:
        h.keep(last=(10 + number % 3) * BATCH, max_age=60, time=number)


@pytest.mark.slow
@pytest.mark.parametrize(("linkage", "metric"), ONE_OF_EACH[1:])
def test_each_answer_is_of_one_moment_for_every_linkage(linkage, metric, rng):
    h = begin(et.Hierarchy(linkage, metric), rng)
    with readers(h, questions(h), n_threads=2) as counts:
        for number in range(40):
            edit(h, rng, number, [])
    assert min(counts) > 0
    h.validate()


@pytest.mark.parametrize("n_jobs", [None, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("linkage", "metric"), [("ward", "euclidean"), ("complete", "euclidean")])
def test_a_tree_is_read_while_it_is_refined_however_long_that_takes(linkage, metric, n_jobs, rng, monkeypatch):
    monkeypatch.setattr(rounds, "FEWEST_POINTS", 30)
    monkeypatch.setattr(rounds, "FEWEST_NUMBERS", 0)
    monkeypatch.setattr(refine, "FEW", 0)
    monkeypatch.setattr(refine, "_PROGRESS_EVERY", 0.0)
    monkeypatch.setattr(refine, "_SLICE", 0.0)
    h = et.Hierarchy.random(batch(rng, 100), linkage, metric, n_jobs=n_jobs)
    h.cut(n_clusters=2)
    have_read = threading.Barrier(3, timeout=LONG)
    reports = []

    def progress(report: et.Report) -> None:
        """Goes on only when both readers have had an answer since the last time."""
        reports.append(report)
        if len(reports) <= 2:
            have_read.wait()

    def read() -> None:
        for _ in range(2):
            assert len(h.cut(n_clusters=2)) == 100
            h.copy().refine(until="homogeneous")
            have_read.wait()

    threads = [threading.Thread(target=read, daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    assert h.refine(progress=progress).stopped_by == "stable"
    for thread in threads:
        thread.join(LONG)
    assert reports[0].stopped_by is None
    h.validate()


def test_a_copy_of_a_tree_that_threads_refine_is_refined_on(rng, monkeypatch):
    monkeypatch.setattr(rounds, "FEWEST_POINTS", 30)
    monkeypatch.setattr(rounds, "FEWEST_NUMBERS", 0)
    monkeypatch.setattr(refine, "FEW", 0)
    monkeypatch.setattr(refine, "_PROGRESS_EVERY", 0.0)
    monkeypatch.setattr(refine, "_SLICE", 0.0)
    h = et.Hierarchy.random(batch(rng, 90), goal="homogeneous", n_jobs=2)
    twins = []
    h.refine(progress=lambda _: twins.append(h.copy()))
    assert len(twins) > 1
    for twin in twins:
        twin.n_jobs = None
        assert twin.refine().homogeneous
        assert twin.is_homogeneous()
        twin.validate()


@pytest.mark.parametrize(("linkage", "metric"), [("ward", "euclidean"), ("complete", "euclidean")])
def test_nobody_reads_a_tree_whose_shape_is_copied(rng, monkeypatch, linkage, metric):
    """While a point is located, the tree has a guest, whose row the copy has no room for."""
    h = et.Hierarchy(linkage, metric)
    h.insert(batch(rng, 20))
    has_access = []
    adopt = LiveTree.adopt
    monkeypatch.setattr(LiveTree, "adopt", lambda *args: (has_access.append(h.state.lock.has_access()), adopt(*args)))
    h.set_linkage("average")
    assert has_access == [True]
    h.validate()


def test_an_edit_waits_for_a_refinement_and_not_for_its_readers(rng):
    """As many edits as there are, and readers that never pause: both get on."""
    h = et.Hierarchy()
    h.insert(batch(rng, 20))
    with readers(h, [lambda: h.cut(n_clusters=2).size >= 20]) as counts:
        for _ in range(50):
            h.insert(batch(rng, 1))
        while min(counts) < 3:
            h.update([0], batch(rng, 1))
    assert len(h) == 70


def test_a_metric_reads_the_tree_that_it_is_called_for_and_never_edits_it(rng):
    """Neither while points are inserted nor while they are located, where another thread may be waiting to refine."""
    edits = []

    def difference(a: float, b: float) -> float:
        if edits:
            edits.pop()()
        return abs(a - b)

    h = et.Hierarchy("complete", difference)
    h.insert([0.0, 1.0, 5.0])
    for ask in (lambda: h.locate([2.0]), lambda: h.insert([2.0]), lambda: h.anomaly_scores([2.0])):
        edits.append(lambda: h.remove([0]))
        with pytest.raises(ParameterError, match="may read it"):
            ask()
    edits.append(lambda: h.cut(n_clusters=2))
    assert h.locate([6.0])[0].nearest == len(h.points()) - 1 + int(h.keys()[0] > 0)
