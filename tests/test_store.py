"""Durable hierarchies: what is in the file is what is in memory; one writer; options; versions."""

from __future__ import annotations

import os
import pickle
import signal
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import evertree as et
from evertree.errors import (
    ClosedError,
    FileFormatError,
    LockedError,
    NewerFormatError,
    NotSavableError,
    ParameterError,
    ReadOnlyError,
    StoreError,
)
from evertree.store import database, durable
from helpers import SCHEMES, params_of
from store_edits import make_edit, same

FILES = Path(__file__).parent / "files"


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
            patch.setattr(database.Database, "write_snapshot", full)
            with pytest.raises(StoreError, match="full"):
                h.set_linkage("average")
        assert same(h, before)
        h.insert(rng.normal(size=(3, 3)))
        h.validate()
    assert same(et.open(path, read_only=True), h)


def test_snapshots_come_by_themselves(rng, path, monkeypatch):
    monkeypatch.setattr(durable, "_SOONEST", 0.0)
    monkeypatch.setattr(durable, "_WORTH", 0.0)
    h = et.open(path)
    for _ in range(5):
        h.insert(rng.normal(size=(3, 2)))
        rows = sqlite3.connect(path).execute("SELECT count(*) FROM journal").fetchone()
        assert rows == (0,)
    h.close()


def test_a_snapshot_that_fails_is_a_warning(rng, path, monkeypatch):
    monkeypatch.setattr(durable, "_SOONEST", 0.0)
    monkeypatch.setattr(durable, "_WORTH", 0.0)
    h = et.open(path)

    def full(*_):
        raise StoreError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(database.Database, "write_snapshot", full)
        with pytest.warns(UserWarning, match="all edits are safe: the disk is full"):
            h.insert(rng.normal(size=(3, 2)))
    assert same(et.open(path, read_only=True), h)
    h.close()


def test_refinement_is_kept_from_time_to_time(rng, path, monkeypatch):
    monkeypatch.setattr(durable, "_PROGRESS_EVERY", 0.0)
    x = rng.normal(size=(400, 3))
    h = et.open(path, start=et.Hierarchy.random(x, seed=1))
    seen = []

    def look(report):
        found = et.open(path, read_only=True)
        seen.append(found.n_moves)
        if len(seen) > 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("evertree.refinement._PROGRESS_EVERY", 0.0)
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


def test_edits_in_a_progress_callback_keep_their_place(rng, path, monkeypatch):
    monkeypatch.setattr("evertree.refinement._PROGRESS_EVERY", 0.0)
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
        before = h._seq
        h.refine()
        assert h._seq == before


def test_one_writer_at_a_time(path):
    with et.open(path), pytest.raises(LockedError, match=f"by process {os.getpid()}.*read_only=True"):
        et.open(path)
    with et.open(path):
        pass
    assert sorted(os.listdir(path.parent)) == ["tree.db"]


def test_another_name_of_the_file_is_the_same_file(path, tmp_path):
    with et.open(path):
        (tmp_path / "other").symlink_to(path)
        with pytest.raises(LockedError):
            et.open(tmp_path / "other")


@pytest.mark.process
def test_a_second_process_is_told_so(path):
    code = (
        "import sys, evertree as et\ntry:\n    et.open(sys.argv[1])\nexcept et.errors.LockedError as e:\n    print(e)"
    )
    with et.open(path) as h:
        h.insert([[1.0]])
        found = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=True)
        assert f"by process {os.getpid()}" in found.stdout


def test_a_lock_that_was_left_behind_does_not_matter(path):
    Path(f"{path}-lock").write_text("12345")
    with et.open(path) as h:
        h.insert([[1.0]])


def test_a_hierarchy_that_is_forgotten_gives_the_file_back(path):
    h = et.open(path)
    h.insert([[1.0]])
    del h
    with et.open(path) as h:
        assert len(h) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.process
def test_a_forked_child_must_open_the_file_itself(path):
    h = et.open(path)
    h.insert([[1.0]])
    child = os.fork()
    if child == 0:
        try:
            h.insert([[2.0]])
        except StoreError:
            h.close()
            os._exit(17)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 17
    assert os.path.exists(f"{path}-lock")
    h.insert([[3.0]])
    h.close()
    assert len(et.open(path, read_only=True)) == 2


def test_readers_see_one_moment_and_can_go_on(rng, path):
    with et.open(path) as h:
        h.insert(rng.normal(size=(20, 2)))
        reader = et.open(path, read_only=True)
        assert not reader.refresh()
        for number in range(20):
            before = reader.keys()
            make_edit(h, number, 2)
            assert reader.keys() == before
            if number % 3 == 0:
                assert reader.refresh()
                assert same(reader, h)
            if number % 7 == 0:
                h.checkpoint()
        assert not h.refresh()


def test_readers_cannot_write(path):
    et.open(path).close()
    reader = et.open(path, read_only=True)
    assert reader.is_read_only
    for verb in (
        lambda: reader.insert([[1.0]]),
        reader.refine,
        reader.checkpoint,
        lambda: reader.set_linkage("average"),
    ):
        with pytest.raises(ReadOnlyError, match="read_only=True"):
            verb()
    reader.close()
    assert len(reader.copy().insert([[1.0]])) == 1
    assert os.listdir(path.parent) == ["tree.db"]


def test_readers_in_a_place_where_nothing_can_be_written(path, tmp_path, monkeypatch):
    with et.open(path) as h:
        h.insert([[1.0], [2.0]])
    before = path.read_bytes()
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert len(et.open(path, read_only=True)) == 2
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["tree.db"]


def test_readers_in_threads_while_one_writes(rng, path):
    with et.open(path) as h:
        h.insert(rng.normal(size=(30, 2)))
        problems = []

        def read():
            try:
                for _ in range(5):
                    et.open(path, read_only=True).validate()
            except Exception as error:
                problems.append(error)

        threads = [threading.Thread(target=read) for _ in range(3)]
        for thread in threads:
            thread.start()
        for number in range(30):
            make_edit(h, number, 2)
        for thread in threads:
            thread.join()
        assert problems == []


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
    monkeypatch.setattr("evertree.workings.UNDOABLE", 100)
    monkeypatch.setattr("evertree.workings._PART", 50)
    h = et.open(path)
    h.insert(rng.normal(size=(50, 2)))
    before = h.copy()
    live = type(h._live)
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
    monkeypatch.setattr(database, "_PART", 1000)
    expected = et.Hierarchy()
    with et.open(path) as h:
        for tree, x in ((h, np.random.default_rng(1)), (expected, np.random.default_rng(1))):
            tree.insert(x.normal(size=(200, 3)))
            tree.insert(x.normal(size=(2, 3)))
            tree.remove(list(range(150)))
        reader = et.open(path, read_only=True)
        assert same(reader, expected)
        before = h._seq
        with h._recorded("remove", list(range(150, 180)) * 20) as edit:
            assert h._seq > before + 1
            edit.undo()
        assert h._seq == before
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


def test_a_hard_link_is_refused(path, tmp_path):
    et.open(path).close()
    os.link(path, tmp_path / "other.db")
    for read_only in (False, True):
        with pytest.raises(StoreError, match="hard link"):
            et.open(path, read_only=read_only)


def test_a_file_that_is_gone_takes_no_edits(path, tmp_path):
    h = et.open(path)
    h.insert([[1.0]])
    path.rename(tmp_path / "elsewhere.db")
    for edit in (lambda: h.insert([[2.0]]), h.checkpoint):
        with pytest.raises(StoreError, match="moved, removed or replaced"):
            edit()
    assert len(h) == 1
    h.close()


@pytest.mark.parametrize("n_edits", [3, 10, 14])
@pytest.mark.parametrize("snapshot", [False, True])
def test_a_reader_notices_another_file_by_the_same_name(path, tmp_path, n_edits, snapshot):
    with et.open(path) as h:
        for number in range(10):
            make_edit(h, number)
    reader = et.open(path, read_only=True)
    with et.open(tmp_path / "new.db") as h:
        for number in range(n_edits):
            make_edit(h, number + 50)
        if snapshot:
            h.checkpoint()
    os.replace(tmp_path / "new.db", path)
    assert reader.refresh()
    assert same(reader, h)
    reader.validate()


@pytest.mark.slow
def test_a_change_of_linkage_in_a_progress_callback(rng, path, monkeypatch):
    monkeypatch.setattr("evertree.refinement._PROGRESS_EVERY", 0.0)
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
    monkeypatch.setattr(durable, "_PROGRESS_EVERY", 0.0)
    monkeypatch.setattr("evertree.refinement._PROGRESS_EVERY", 0.0)
    h = et.open(path, start=et.Hierarchy.random(rng.normal(size=(400, 3)), seed=1))
    append = database.Database.append

    def interrupted(self, kind, payload):
        append(self, kind, payload)
        monkeypatch.setattr(database.Database, "append", append)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(database.Database, "append", interrupted)
    with pytest.raises(KeyboardInterrupt):
        h.refine()
    assert h.n_moves == et.open(path, read_only=True).n_moves > 0
    assert same(et.open(path, read_only=True), h)
    h.close()


@pytest.mark.parametrize("after", range(0, 40, 3))
def test_ctrl_c_while_opening_leaves_no_lock(path, monkeypatch, after):
    et.open(path).close()
    calls = iter(range(after))

    def press(frame, event, _):
        if event == "call" and next(calls, None) is None:
            sys.setprofile(None)
            signal.raise_signal(signal.SIGINT)

    sys.setprofile(press)
    try:
        et.open(path).close()
    except KeyboardInterrupt:
        pass
    finally:
        sys.setprofile(None)
    with et.open(path) as h:
        h.insert([[1.0]])
    assert os.listdir(path.parent) == ["tree.db"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.process
def test_a_child_does_not_keep_the_lock(path):
    reading, writing = os.pipe()
    holder = os.fork()
    if holder == 0:
        h = et.open(path)
        child = os.fork()
        if child == 0:
            signal.pause()
        os.write(writing, str(child).encode())
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(holder, 0)
    child = int(os.read(reading, 20))
    try:
        with et.open(path) as h:
            h.insert([[1.0]])
    finally:
        os.kill(child, signal.SIGKILL)


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
        ({"linkage": "single"}, r"linkage must be None or 'ward'.*set_linkage"),
        ({"metric": "sqeuclidean"}, r"metric must be None or 'euclidean'.*set_metric"),
        ({"goal": "homogeneous"}, "goal must be None or 'stable'"),
        ({"search_width": None}, "search_width must be None or 7"),
        ({"seed": 3}, "seed must be None or 0"),
        ({"metric_params": {"p": 3}}, "metric_params must be None or None"),
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
    connection.execute(f"PRAGMA user_version = {database.STORE_VERSION + 1}")
    connection.close()
    with pytest.raises(NewerFormatError, match="upgrade"):
        et.open(path)


@pytest.mark.parametrize("version", range(1, database.STORE_VERSION + 1))
@pytest.mark.parametrize("kind", ["ward", "words"])
def test_files_of_every_version_are_opened_and_go_on(tmp_path, version, kind):
    place = tmp_path / "tree.db"
    place.write_bytes((FILES / f"store_{version}_{kind}.db").read_bytes())
    metric = hamming if kind == "words" else None
    expected = et.Hierarchy("complete" if kind == "words" else "ward", metric or "euclidean")
    _edits_of_the_file(expected, kind)
    with et.open(place, metric=metric) as h:
        assert same(h, expected)
        h.verify()
        h.remove([h.keys()[0]])
        h.refine()
    with et.open(place) as h:
        assert len(h) == len(expected) - 1


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
        for number in range(24):
            make_edit(h, number)
            if number == 9 and isinstance(h, et.DurableHierarchy):
                h.checkpoint()
