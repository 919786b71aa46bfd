"""Who may have a durable hierarchy: one writer, readers, forked children; and files that are moved under them."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import evertree as et
from evertree.durable import lock
from evertree.errors import LockedError, ReadOnlyError, StoreError
from helpers import press_ctrl_c
from store_edits import make_edit, same


@pytest.fixture
def path(tmp_path):
    return tmp_path / "tree.db"


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


def test_a_holder_is_named_where_the_first_byte_cannot_be_read(path, monkeypatch):
    """On Windows it is the lock."""

    class Locked(io.FileIO):
        def read(self, size=-1):
            if self.tell() == 0:
                raise PermissionError(13, "Permission denied")
            return super().read(size)

    with et.open(path):
        monkeypatch.setattr(lock, "open", lambda name, mode, buffering: Locked(name, mode), raising=False)
        with pytest.raises(LockedError, match=f"by process {os.getpid()}"):
            et.open(path)


def test_a_holder_that_cannot_be_read_at_all(path, monkeypatch):
    """It may be about to go: it is waited for, for a moment."""
    asked = []
    with et.open(path):
        monkeypatch.setattr(lock, "_process", lambda _: asked.append(time.monotonic()) or "")
        with pytest.raises(LockedError, match="by process unknown"):
            et.open(path)
        assert len(asked) > 2
    asked.clear()
    h = et.open(path)
    monkeypatch.setattr(lock, "_process", lambda _: h.close() or "")
    with et.open(path):
        pass


def test_the_position_in_a_lock_file_stays(tmp_path):
    """A version of filelock for Windows releases the byte that is there."""
    with (tmp_path / "lock").open("wb+", buffering=0) as file:
        file.write(b"a longer text than the number of a process")
        file.seek(0)
        lock._write_process(file.fileno())
        assert file.tell() == 0
    assert lock._process(str(tmp_path / "lock")) == str(os.getpid())


def test_a_lock_that_cannot_be_made(path):
    Path(f"{path}-lock").mkdir()
    with pytest.raises(StoreError, match=r"tree.db cannot be opened for writing: .*tree.db-lock"):
        et.open(path)
    assert not path.exists()


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
    with et.open(path, search_width=4) as h:
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


@pytest.mark.process
def test_readers_do_not_release_the_locks_of_a_writer_in_the_same_process(path):
    """Or another program could take SQLite's log away, and the next edits with it."""
    code = "import sqlite3, sys\nsqlite3.connect(sys.argv[1], timeout=0.1).execute('PRAGMA journal_mode = DELETE')"
    with et.open(path) as h:
        h.insert([[1.0]])
        assert len(et.open(path, read_only=True)) == 1
        found = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True)
        assert "database is locked" in found.stderr
        h.insert([[2.0]])
        assert len(et.open(path, read_only=True)) == 2


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
    with pytest.warns(UserWarning, match="moved, removed or replaced"):
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


@pytest.mark.parametrize("after", range(0, 40, 3))
def test_ctrl_c_while_opening_leaves_no_lock(path, monkeypatch, after):
    et.open(path).close()
    press_ctrl_c(lambda: et.open(path).close(), after)
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
