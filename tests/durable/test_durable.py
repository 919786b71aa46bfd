"""Durable hierarchies: what is in the file is what is in memory; one writer; options; versions."""

from __future__ import annotations

import os
import pickle
import signal
import sqlite3
import subprocess
import sys
import tracemalloc
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import evertree as et
from evertree import edits
from evertree.durable import journal, sqlite_file
from evertree.edits import Remove
from evertree.errors import (
    ClosedError,
    FileFormatError,
    NewerFormatError,
    NotSavableError,
    ParameterError,
    StoreError,
)
from helpers import SCHEMES, params_of
from store_edits import make_edit, same

FILES = Path(__file__).parents[1] / "files"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "tree.db"


@pytest.mark.parametrize(
    ("linkage", "metric", "goal"),
    [
        *((linkage, metric, "stable") for linkage, metric in SCHEMES),
        ("ward", "euclidean", "homogeneous"),
        ("complete", "euclidean", "homogeneous"),
    ],
)
def test_edits_are_in_the_file_before_the_call_returns(path, linkage, metric, goal):
    options = {"linkage": linkage, "metric": metric, "metric_params": params_of(metric, 3), "goal": goal}
    expected = et.Hierarchy(**options)
    h = et.open(path, **options)
    for number in range(25):
        make_edit(expected, number)
        make_edit(h, number)
        if number % 6 == 5:
            reader = et.open(path, read_only=True)
            assert same(reader, expected)
            reader.verify()
        if number == 11:
            h.checkpoint()
        if number == 17:
            h.close()
            h = et.open(path)
    h.close()
    assert same(h, expected)
    assert same(et.open(path, read_only=True), expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_types_weights_and_keys_survive(rng, path, dtype):
    x = rng.normal(size=(20, 3)).astype(dtype)
    expected = et.Hierarchy()
    with et.open(path) as h:
        for tree in (h, expected):
            tree.insert(x, keys=[("a", k) if k % 2 else f"é{k}" for k in range(20)], sample_weight=np.arange(1, 21))
            tree.insert(x[:3])
    with et.open(path) as h:
        assert same(h, expected)
        assert h.points().dtype == dtype
        assert h.insert(x[:1]) == expected.insert(x[:1])


def test_dissimilarities_are_durable(rng, path):
    d = rng.uniform(1, 2, size=(8, 8))
    d = d + d.T
    np.fill_diagonal(d, 0)
    expected = et.Hierarchy("average", "precomputed")
    with et.open(path, "average", "precomputed") as h:
        for tree in (h, expected):
            tree.insert(d[:5, :5], keys=list("abcde"))
            tree.insert(d[5:, :], keys=list("fgh"))
            tree.update(["c"], 2 * d[[2]])
            tree.remove(["a"])
    assert same(et.open(path, read_only=True), expected)


def hamming(a, b):
    return sum(x != y for x, y in zip(a, b, strict=True))


def test_a_function_is_not_called_again(path):
    words = ["kitten", "mitten", "sitten", "banana", "bandit", "bonnet"]
    expected = et.Hierarchy("complete", hamming)
    with et.open(path, "complete", hamming) as h:
        for tree in (h, expected):
            tree.insert(words[:4], keys=words[:4])
            tree.insert(words[4:], keys=words[4:])
            tree.update(["banana"], ["cabana"])
    with et.open(path) as h:  # without the function
        assert h.keys() == expected.keys()
        assert np.array_equal(h.linkage_matrix(), expected.linkage_matrix())
        h.remove(["kitten"])
        with pytest.raises(ParameterError, match="metric="):
            h.insert(["barred"])
        assert len(h) == 5
    with et.open(path, metric=hamming) as h:
        h.insert(["barred"])
        assert len(h) == 6
    with pytest.raises(ParameterError, match="metric must be"):
        et.open(path, metric="euclidean")


def test_what_cannot_be_written_changes_nothing(path):
    with et.open(path) as h:
        h.insert([[0.0]], keys=["a"])
        with pytest.raises(NotSavableError):
            h.insert([[1.0]], keys=[object()])
        assert h.keys() == ["a"]
    assert et.open(path, read_only=True).keys() == ["a"]


def test_a_change_of_linkage_is_in_the_file(rng, path):
    with et.open(path) as h:
        h.insert(rng.normal(size=(40, 3)))
        reader = et.open(path, read_only=True)
        h.set_linkage("average")
        assert reader.linkage == "ward"
        assert reader.refresh()
        assert same(reader, h)
        h.set_metric("cosine")
    with et.open(path) as reopened:
        assert (reopened.linkage, reopened.metric) == ("average", "cosine")
        assert same(h, reopened)


def test_a_change_of_linkage_that_cannot_be_written_does_not_happen(rng, path, monkeypatch):
    with et.open(path) as h:
        h.insert(rng.normal(size=(40, 3)))
        before = h.copy()

        def full(*_):
            raise StoreError("the disk is full")

        with monkeypatch.context() as patch:
            patch.setattr(sqlite_file.SQLiteFile, "write_snapshot", full)
            with pytest.raises(StoreError, match="full"):
                h.set_linkage("average")
        assert same(h, before)
        h.insert(rng.normal(size=(3, 3)))
        h.validate()
    assert same(et.open(path, read_only=True), h)


def test_snapshots_come_by_themselves(rng, path, monkeypatch):
    monkeypatch.setattr(journal, "_SOONEST", 0.0)
    monkeypatch.setattr(journal, "_WORTH", 0.0)
    h = et.open(path)
    for _ in range(5):
        h.insert(rng.normal(size=(3, 2)))
        rows = sqlite3.connect(path).execute("SELECT count(*) FROM journal").fetchone()
        assert rows == (0,)
    h.close()


def test_a_snapshot_that_fails_is_a_warning(rng, path, monkeypatch):
    monkeypatch.setattr(journal, "_SOONEST", 0.0)
    monkeypatch.setattr(journal, "_WORTH", 0.0)
    h = et.open(path)

    def full(*_):
        raise StoreError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(sqlite_file.SQLiteFile, "write_snapshot", full)
        with pytest.warns(UserWarning, match="all edits are safe: the disk is full"):
            h.insert(rng.normal(size=(3, 2)))
    assert same(et.open(path, read_only=True), h)
    h.close()


def test_refinement_is_kept_from_time_to_time(rng, path, monkeypatch):
    monkeypatch.setattr(journal, "_PROGRESS_EVERY", 0.0)
    x = rng.normal(size=(400, 3))
    h = et.open(path, start=et.Hierarchy.random(x, seed=1))
    seen = []

    def look(report):
        found = et.open(path, read_only=True)
        seen.append(found.n_moves)
        if len(seen) > 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("evertree.tree.refine._PROGRESS_EVERY", 0.0)
        with pytest.raises(KeyboardInterrupt):
            h.refine(progress=look)
    assert seen == sorted(seen)
    assert seen[-1] > 0
    assert same(et.open(path, read_only=True), h)
    h.refine()
    assert same(et.open(path, read_only=True), h)
    expected = et.Hierarchy.random(x, seed=1)
    expected.refine()
    assert same(h, expected)
    h.close()


@pytest.mark.parametrize("budget", [{"moves": 7}, {"until": "homogeneous"}, {"seconds": 0.02}, {"seconds": 0.0}])
def test_refinement_within_a_budget_is_in_the_file(rng, path, budget):
    h = et.open(path, start=et.Hierarchy.random(rng.normal(size=(300, 3)), seed=1))
    h.refine(**budget)
    assert same(et.open(path, read_only=True), h)
    h.close()


@pytest.mark.parametrize("first_work", [1, 20_000, 60_000], ids=["at once", "on the way", "at the end"])
def test_edits_in_a_progress_callback_keep_their_place(rng, path, monkeypatch, first_work):
    monkeypatch.setattr("evertree.tree.refine._PROGRESS_EVERY", 0.0)
    monkeypatch.setattr("evertree.tree.refine._FIRST_WORK", first_work)
    x = rng.normal(size=(300, 3))
    h = et.open(path, start=et.Hierarchy.random(x, seed=1))
    calls = []

    def meddle(report):
        calls.append(report)
        if len(calls) == 2:
            h.insert(x[:2] + 1)
            h.refine(moves=3)
        if len(calls) == 3:
            h.remove([5])

    h.refine(progress=meddle)
    assert len(calls) > 3
    assert same(et.open(path, read_only=True), h)
    h.close()


def test_refinement_that_changes_nothing_writes_nothing(rng, path):
    with et.open(path) as h:
        h.insert(rng.normal(size=(30, 2)))
        h.refine()
        before = h.state.journal.seq
        h.refine()
        assert h.state.journal.seq == before


def test_after_closing_it_can_be_read_but_not_edited(path):
    h = et.open(path)
    h.insert([[1.0], [2.0]])
    h.close()
    h.close()
    assert len(h) == 2
    assert "closed" in repr(h)
    h.verify()
    for verb in (lambda: h.insert([[1.0]]), lambda: h.remove([0]), h.refine, h.checkpoint):
        with pytest.raises(ClosedError, match="open it again"):
            verb()


def test_it_is_made_by_open_alone():
    with pytest.raises(TypeError, match=r"evertree\.open"):
        et.DurableHierarchy()
    with pytest.raises(TypeError, match=r"evertree\.open"):
        et.DurableHierarchy.random(np.eye(3))


@pytest.mark.slow
def test_ctrl_c_in_a_large_batch_takes_it_back(rng, path, monkeypatch):
    monkeypatch.setattr("evertree.edits.UNDOABLE", 100)
    monkeypatch.setattr("evertree.tree.statistics.PART", 50)
    h = et.open(path, search_width=4)
    h.insert(rng.normal(size=(50, 2)))
    before = h.copy()
    live = type(h.state.live)
    insert = live.insert

    def interrupted(tree, leaves):
        insert(tree, leaves)
        signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(live, "insert", interrupted)
        with pytest.raises(KeyboardInterrupt):
            h.insert(rng.normal(size=(400, 2)))
    assert same(h, before)
    assert same(et.open(path, read_only=True), before)
    h.insert(rng.normal(size=(4, 2)))
    assert same(et.open(path, read_only=True), h)
    h.close()


def test_records_of_any_size(rng, path, monkeypatch):
    monkeypatch.setattr(sqlite_file, "_PART", 1000)
    expected = et.Hierarchy()
    with et.open(path) as h:
        for tree, x in ((h, np.random.default_rng(1)), (expected, np.random.default_rng(1))):
            tree.insert(x.normal(size=(200, 3)))
            tree.insert(x.normal(size=(2, 3)))
            tree.remove(list(range(150)))
        reader = et.open(path, read_only=True)
        assert same(reader, expected)
        before = h.state.journal.seq
        with (
            suppress(KeyboardInterrupt),
            h.state.journal.recording(Remove(list(range(150, 180)) * 20, np.empty(0, np.int32))),
        ):
            assert h.state.journal.seq > before + 1
            raise KeyboardInterrupt
        assert h.state.journal.seq == before
        assert not reader.refresh()
    with et.open(path) as h:
        assert same(h, expected)


def test_a_key_that_would_come_back_as_another_is_refused(path):
    with et.open(path) as h:
        for key in (np.datetime64(5, "ns"), np.timedelta64(5, "s"), np.longdouble(1.5), 10**5000, _nested(400)):
            with pytest.raises(NotSavableError):
                h.insert([[0.0]], keys=[key])
        h.insert([[0.0], [1.0]], keys=[np.float32(1.5), np.str_("a")])
    assert et.open(path, read_only=True).keys() == [1.5, "a"]


def _nested(depth):
    key = ()
    for _ in range(depth):
        key = (key,)
    return key


def test_other_names_of_a_metric(path):
    for _ in range(2):
        with et.open(path, "average", "manhattan") as h:
            assert h.metric == "cityblock"


@pytest.mark.slow
def test_a_change_of_linkage_in_a_progress_callback(rng, path, monkeypatch):
    monkeypatch.setattr("evertree.tree.refine._PROGRESS_EVERY", 0.0)
    h = et.open(path, start=et.Hierarchy.random(rng.normal(size=(300, 3)), "average", seed=1))
    calls = []

    def change(report):
        calls.append(report)
        if len(calls) == 2:
            h.set_linkage("ward", metric="euclidean")

    h.refine(progress=change)
    assert same(et.open(path, read_only=True), h)
    h.insert(rng.normal(size=(3, 3)))
    assert same(et.open(path, read_only=True), h)
    h.close()


def test_a_metric_may_not_edit(rng, path):
    h = et.open(path, "average", "cosine")
    h.insert(rng.normal(size=(20, 3)))
    before = h.copy()

    def meddling(a, b):
        h.insert(rng.normal(size=(1, 3)))
        return 1.0

    with pytest.raises(ParameterError, match="must not edit"):
        h.set_metric(meddling)
    assert same(h, before)
    h.insert(rng.normal(size=(2, 3)))
    h.verify()
    h.close()
    assert same(et.open(path, read_only=True), h)


def test_ctrl_c_while_progress_is_written(rng, path, monkeypatch):
    monkeypatch.setattr(journal, "_PROGRESS_EVERY", 0.0)
    monkeypatch.setattr("evertree.tree.refine._PROGRESS_EVERY", 0.0)
    h = et.open(path, start=et.Hierarchy.random(rng.normal(size=(400, 3)), seed=1))
    append = sqlite_file.SQLiteFile.append

    def interrupted(self, *args):
        append(self, *args)
        monkeypatch.setattr(sqlite_file.SQLiteFile, "append", append)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(sqlite_file.SQLiteFile, "append", interrupted)
    with pytest.raises(KeyboardInterrupt):
        h.refine()
    assert h.n_moves == et.open(path, read_only=True).n_moves > 0
    assert same(et.open(path, read_only=True), h)
    h.close()


def test_copies_are_in_memory(rng, path):
    with et.open(path) as h:
        h.insert(rng.normal(size=(9, 2)))
        for twin in (h.copy(), pickle.loads(pickle.dumps(h))):
            assert type(twin) is et.Hierarchy
            twin.remove([0])
        h.save(path.parent / "saved.evertree")
        assert len(h) == 9
    assert len(et.load(path.parent / "saved.evertree")) == 9


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"linkage": "single"}, r"linkage must be 'ward'.*set_linkage"),
        ({"metric": "sqeuclidean"}, r"metric must be 'euclidean'.*set_metric"),
        ({"goal": "homogeneous"}, "goal must be 'stable'"),
        ({"search_width": None}, "search_width must be 7"),
        ({"seed": 3}, "seed must be 0"),
        ({"metric_params": {"p": 3}}, "metric_params must be None"),
    ],
)
def test_other_options_than_those_of_the_file_are_refused(path, wanted, message):
    et.open(path, search_width=7).close()
    with pytest.raises(ParameterError, match=message):
        et.open(path, **wanted)
    et.open(path, "ward", "euclidean", goal="stable", search_width=7, seed=0).close()


def test_options_that_are_none(path):
    with pytest.raises(TypeError, match="unexpected option 'colour'"):
        et.open(path, colour="red")
    with pytest.raises(ParameterError, match="linkage"):
        et.open(path, linkage="nearest")
    assert not path.exists()


def test_a_start_is_for_a_new_file(rng, path):
    start = et.Hierarchy("average")
    start.insert(rng.normal(size=(9, 2)))
    with pytest.raises(ParameterError, match="linkage must be"):
        et.open(path, "ward", start=start)
    assert not path.exists()
    with et.open(path, start=start) as h:
        assert same(h, start)
        h.remove([3])
        assert len(start) == 9
    with pytest.raises(ParameterError, match="start must be None"):
        et.open(path, start=start)
    with pytest.raises(ParameterError, match="start must be None"):
        et.open(path, start=start, read_only=True)


def test_places_that_cannot_be_opened(tmp_path):
    with pytest.raises(IsADirectoryError, match="is a folder"):
        et.open(tmp_path)
    with pytest.raises(FileNotFoundError, match="no folder"):
        et.open(tmp_path / "none" / "tree.db")
    with pytest.raises(FileNotFoundError, match="to read"):
        et.open(tmp_path / "none.db", read_only=True)
    assert os.listdir(tmp_path) == []


def test_an_empty_file_is_a_new_one(path):
    path.touch()
    with pytest.raises(FileFormatError, match="empty"):
        et.open(path, read_only=True)
    with et.open(path) as h:
        h.insert([[1.0]])


def test_files_of_others_are_refused_and_kept(tmp_path):
    text, saved, other = tmp_path / "text", tmp_path / "saved", tmp_path / "other"
    text.write_text("once upon a time, in a file that was no database")
    et.Hierarchy().save(saved)
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE t (x)")
    connection.close()
    for place, message in ((text, "not a durable"), (saved, "Hierarchy.save"), (other, "not one that evertree")):
        before = place.read_bytes()
        for read_only in (False, True):
            with pytest.raises(FileFormatError, match=message):
                et.open(place, read_only=read_only)
        assert place.read_bytes() == before


def test_newer_versions_are_refused(path):
    et.open(path).close()
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {sqlite_file.STORE_VERSION + 1}")
    connection.close()
    with pytest.raises(NewerFormatError, match="upgrade"):
        et.open(path)


@pytest.mark.filterwarnings("ignore::evertree.errors.ReplayWarning")  # other kernels may have written them
@pytest.mark.parametrize(
    ("version", "kind"),
    [
        *((version, kind) for version in range(1, sqlite_file.STORE_VERSION + 1) for kind in ("ward", "words")),
        *((version, "window") for version in range(2, sqlite_file.STORE_VERSION + 1)),
    ],
)
def test_files_of_every_version_are_opened_and_go_on(tmp_path, version, kind):
    place = tmp_path / "tree.db"
    place.write_bytes((FILES / f"store_{version}_{kind}.db").read_bytes())
    metric = hamming if kind == "words" else None
    expected = et.Hierarchy("complete" if kind == "words" else "ward", metric or "euclidean", search_width=4)
    _edits_of_the_file(expected, kind)
    with et.open(place, metric=metric) as h:
        assert same(h, expected)
        h.verify()
        h.remove([h.keys()[0]])
        h.refine()
        assert h.window == expected.window
    with et.open(place) as h:
        assert len(h) == len(expected) - 1
    assert (
        sqlite_file.store_version(place) == sqlite_file.STORE_VERSION
    )  # an older evertree must not write to it any more


def _edits_of_the_file(h, kind):
    """What the files of older versions were made with: a snapshot, and edits of every kind after it."""
    if kind == "words":
        h.insert(["kitten", "mitten", "banana"], keys=["k", "m", "b"])
        if isinstance(h, et.DurableHierarchy):
            h.checkpoint()
        h.insert(["sitten", "bandit"], sample_weight=[2.0, 1.0])
        h.update(["b"], ["cabana"])
        h.remove(["m"])
    else:
        if kind == "window":
            h.keep(last=30, max_age=20, time=0)
        for number in range(24):
            make_edit(h, number)
            if number == 9 and isinstance(h, et.DurableHierarchy):
                h.checkpoint()


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_large_batch_is_not_copied(path, order):
    x = np.asarray(np.random.default_rng(0).normal(size=(250, 25_000)), order=order)  # 50 MB
    with et.open(path) as h:
        edit = edits.check_insert(h.state, x)
        tracemalloc.start()
        try:
            with suppress(ZeroDivisionError), h.state.journal.recording(edit):
                raise ZeroDivisionError
            assert tracemalloc.get_traced_memory()[1] < 0.1 * x.nbytes
        finally:
            tracemalloc.stop()


@pytest.mark.process
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux tells how much memory was taken")
def test_sqlite_does_not_copy_a_large_batch_either(path):
    code = """
import sys, numpy as np, evertree as et
from evertree import edits

def taken(name):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(name)) * 1024

h = et.open(sys.argv[1])
x = np.random.default_rng(0).normal(size=(250, 25_000))
some, all = edits.check_insert(h.state, x[:2]), edits.check_insert(h.state, x)
with h.state.journal.recording(some):
    pass
open("/proc/self/clear_refs", "w").write("5")
before = taken("VmRSS:")
with h.state.journal.recording(all):
    pass
print((taken("VmHWM:") - before) / x.nbytes)
"""
    found = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=True)
    assert float(found.stdout) < 0.5
