"""Windows in files: saved ones, durable ones, and damaged ones."""

from __future__ import annotations

import contextlib
import math
import sqlite3

import pytest

import evertree as et
from evertree.durable import journal, records
from evertree.durable.sqlite_file import STORE_VERSION, SQLiteFile, store_version
from evertree.edits import Keep
from evertree.errors import CorruptFileError, ReadOnlyError, StoreError, TimeError
from evertree.windows import Moment
from helpers import crash


@pytest.mark.parametrize(
    "damage",
    [
        {"last": 0},
        {"last": "4"},
        {"max_age": -1.0},
        {"marks": [[2, 0.5], [1, 0.6]]},
        {"marks": [[1, 0.6], [2, 0.5]]},
        {"marks": [[1, math.nan]]},
        {"marks": [[1.5, 0.5]]},
        {"marks": [[-1, 0.5]]},
        {"marks": [[3, 0.5]]},  # the next point has the number 2
        {"began": None},
        {"now": [1.0]},
        {"now": [1.0, "given"]},
        {"now": [0.5, True]},  # before the last mark
        {"now": None},
    ],
)
def test_damaged_windows_are_refused(tmp_path, damage):
    h = et.Hierarchy()
    h.keep(last=4, max_age=10, time=0)
    h.insert([[0.0], [1.0]], time=1)
    state = h.state.window.state() | damage
    h.state.window.state = lambda: state
    h.save(tmp_path / "tree")
    with pytest.raises(CorruptFileError):
        et.load(tmp_path / "tree")


def test_a_durable_window_is_seen_by_readers(tmp_path):
    path = tmp_path / "tree.db"
    with et.open(path) as h:
        reader = et.open(path, read_only=True)
        h.insert([[0.0], [1.0], [2.0]])
        h.keep(last=2, max_age=10, time=0)
        assert reader.refresh()
        assert (reader.window, reader.keys()) == (h.window, [1, 2])
        for edit in (lambda: reader.keep(last=1), lambda: reader.expire(time=100)):
            with pytest.raises(ReadOnlyError):
                edit()
            assert (reader.window, reader.keys()) == (h.window, [1, 2])
        assert reader.expire(time=5) == []
        h.insert([[3.0]], time=11)
        assert reader.refresh()
        assert reader.keys() == [3]
        h.checkpoint()
        h.keep_all()
        assert reader.refresh()
        assert reader.window is None
        h.keep(last=7)
        h.checkpoint()
        assert reader.refresh()
        assert reader.window == et.Window(last=7)


def test_what_expires_is_an_edit(tmp_path):
    """After a crash, time cannot go back behind it."""
    h = et.open(tmp_path / "tree.db")
    h.keep(max_age=10, time=0)
    h.insert([[0.0]], time=1)
    h.insert([[1.0]], time=5)
    assert h.expire(time=12) == [0]
    crash(h)  # as a crash does
    with et.open(tmp_path / "tree.db") as again:
        assert again.keys() == [1]
        assert again.state.window.state() == h.state.window.state()
        with pytest.raises(TimeError, match="must not go back"):
            again.insert([[2.0]], time=11)


def test_a_store_that_fails_leaves_the_window_as_it_was(tmp_path, monkeypatch):
    with et.open(tmp_path / "tree.db") as h:
        h.keep(max_age=10, time=0)
        h.insert([[0.0], [1.0]], time=1)
        before = h.keys(), h.state.window.state()

        def full(*_):
            raise StoreError("the disk is full")

        with monkeypatch.context() as patched:
            patched.setattr(SQLiteFile, "append", full)
            for edit in (lambda: h.keep(last=1), lambda: h.expire(time=20), lambda: h.insert([[2.0]], time=20)):
                with pytest.raises(StoreError, match="full"):
                    edit()
                assert (h.keys(), h.state.window.state()) == before
        assert h.insert([[2.0]], time=2) == [2]
        seq = h.state.journal.seq
    assert len(et.open(tmp_path / "tree.db", read_only=True)) == seq == 3


def test_an_older_store_becomes_a_new_one_when_it_is_written_to(tmp_path):
    """An evertree that knows no windows would not understand what is written from then on."""
    path = tmp_path / "tree.db"
    with et.open(path) as h:
        h.insert([[0.0], [1.0], [2.0]])
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("ALTER TABLE journal DROP COLUMN digest")
        connection.execute("PRAGMA user_version = 1")
    assert len(et.open(path, read_only=True)) == 3
    assert store_version(path) == 1
    with et.open(path) as h:
        h.keep(last=2)
    assert store_version(path) == STORE_VERSION
    assert et.open(path, read_only=True).keys() == [1, 2]


def test_damaged_moments_are_refused(tmp_path):
    moment = Moment(math.nan, True)
    h = et.open(tmp_path / "tree.db")
    h.state.journal.file.append(*records.pack(Keep(et.Window(max_age=1.0), moment)))
    crash(h)
    with pytest.raises(CorruptFileError, match="time must be a finite number"):
        et.open(tmp_path / "tree.db")


def test_the_file_of_an_endless_stream_stays_small(tmp_path, monkeypatch, rng):
    monkeypatch.setattr(journal, "_WORTH", 0.0)
    monkeypatch.setattr(journal, "_SOONEST", 0.0)
    n_pages = []
    with et.open(tmp_path / "tree.db") as h:
        h.keep(last=50, max_age=40, time=0)
        for k in range(150):
            h.insert(rng.normal(size=(2, 3)), time=k)
            n_pages.append(h.state.journal.file._pragma("page_count"))
        assert not list(h.state.journal.file.read_journal(h.state.journal.seq))
    assert max(n_pages[50:]) <= 1.2 * n_pages[50]
