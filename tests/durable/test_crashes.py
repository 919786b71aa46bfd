"""Kills, failing writes and damaged files, for real: child processes, a shim before the C library, flipped bits."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import evertree as et
from evertree.durable import journal, records
from evertree.errors import CorruptFileError, EvertreeError, StoreError
from evertree.io import archive, snapshot
from helpers import crash
from store_edits import make_edit, same

resource = pytest.importorskip("resource", reason="limits on the size of files are set as on Unix")

SUPPORT = Path(__file__).parents[1] / "support"

process = pytest.mark.process


def run(script, *args, **variables):
    """What a script of the tests prints; it must end well."""
    found = subprocess.run(
        [sys.executable, SUPPORT / script, *map(str, args)],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert found.returncode == 0, found.stderr[-2000:]
    return found.stdout


@process
@pytest.mark.skipif(not hasattr(os, "fork"), reason="children are forked")
@pytest.mark.parametrize(
    ("linkage", "n_kills", "last"),
    [
        ("ward", 200, 0),
        ("complete", 40, 0),
        ("ward", 60, 25),
    ],
)
def test_a_process_that_is_killed_loses_nothing(tmp_path, linkage, n_kills, last):
    told = run("kill_driver.py", tmp_path / "killed.db", n_kills, linkage, 0, last)
    assert told.startswith(f"{n_kills} kills")
    assert int(told.split()[2]) > n_kills  # edits


@pytest.fixture(scope="module")
def shim(tmp_path_factory):
    """A library that makes writes fail."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("there is no C compiler, or no LD_PRELOAD, to make writes fail with")
    library = tmp_path_factory.mktemp("shim") / "faults.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, SUPPORT / "faults.c", "-ldl"], check=True)
    return library


@process
def test_every_write_may_fail(tmp_path, shim):
    told = run("fault_driver.py", tmp_path, LD_PRELOAD=str(shim))
    assert told.count(" faults") == 12


def _insert_until_full(path: Path, limit: int) -> None:
    """With files limited to some bytes: the last write is cut short, all after it fail."""
    import resource  # which Windows does not have

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    h, expected = et.open(path), et.Hierarchy()
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    rng = np.random.default_rng(0)
    n_refused = 0
    for _ in range(60):
        x = rng.normal(size=(40, 5))
        try:
            h.insert(x)
        except StoreError:
            n_refused += 1
            continue
        expected.insert(x)
    assert n_refused
    assert same(h, expected)
    h.validate()
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    for tree in (h, expected):
        tree.insert(x)
    h.close()
    with et.open(path) as again:
        assert same(again, expected)
        again.verify()


@process
@pytest.mark.filterwarnings("ignore:no snapshot could be written")
@pytest.mark.parametrize("limit", [30_000, 50_001, 77_777])
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the limit is set for a child")
def test_files_that_cannot_grow(tmp_path, limit):
    child = os.fork()
    if child == 0:
        try:
            _insert_until_full(tmp_path / "full.db", limit)
            os._exit(0)
        except BaseException as error:
            sys.stderr.write(f"{error!r}\n")
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_full_database(rng, tmp_path, monkeypatch):
    monkeypatch.setattr(journal, "_SOONEST", np.inf)  # a snapshot would fit where an earlier one is
    with et.open(tmp_path / "tree.db") as h:
        h.insert(rng.normal(size=(10, 3)))
        before = h.copy()
        pages = h.state.journal.file._connection.execute("PRAGMA page_count").fetchone()[0]
        h.state.journal.file._connection.execute(f"PRAGMA max_page_count = {pages}")
        for edit in (lambda: h.insert(rng.normal(size=(5000, 3))), h.checkpoint, lambda: h.set_linkage("average")):
            with pytest.raises(StoreError, match=r"full.*free some space; the hierarchy is as it was"):
                edit()
            assert same(h, before)
        h.state.journal.file._connection.execute("PRAGMA max_page_count = 1000000")
        h.remove([3])
    assert len(et.open(tmp_path / "tree.db", read_only=True)) == 9


@pytest.fixture
def sound(tmp_path, monkeypatch):
    """A file with a snapshot and edits after it, and what it holds."""
    monkeypatch.setattr(journal, "_SOONEST", np.inf)
    path = tmp_path / "tree.db"
    h = et.open(path, search_width=4)
    for number in range(30):
        make_edit(h, number)
        if number == 15:
            h.checkpoint()
    expected = h.copy()
    crash(h)  # without a last snapshot
    return path, expected


@pytest.mark.slow
def test_damage_is_noticed_and_the_file_kept(rng, sound):
    path, expected = sound
    content = path.read_bytes()
    n_noticed = 0
    for trial in range(300):
        damaged = bytearray(content)
        for _ in range(rng.integers(1, 4)):
            damaged[rng.integers(len(damaged))] ^= 1 << rng.integers(8)
        if trial % 10 == 0:
            del damaged[rng.integers(100, len(damaged)) :]
        path.write_bytes(damaged)
        try:
            found = et.open(path, read_only=True)
        except EvertreeError:
            n_noticed += 1
        else:
            assert same(found, expected)  # a place that nothing is read from
        assert path.read_bytes() == damaged
    assert n_noticed > 200


def test_a_writer_keeps_a_damaged_file_too(sound):
    path, _ = sound
    damaged = bytearray(path.read_bytes())
    damaged[-3000:-1000] = bytes(2000)
    path.write_bytes(damaged)
    with pytest.raises(CorruptFileError, match="is damaged"):
        et.open(path)
    assert path.read_bytes() == damaged
    assert os.listdir(path.parent) == ["tree.db"]


@pytest.fixture
def crashed(sound, tmp_path):
    """A file whose writer was killed, with its log beside it."""
    path, _ = sound
    other = tmp_path / "crashed.db"
    with et.open(path) as h:
        make_edit(h, 30)
        make_edit(h, 31)
        expected = h.copy()
        for end in ("", "-wal"):
            shutil.copy(f"{path}{end}", f"{other}{end}")
    return other, expected


def test_readers_leave_a_log_as_it_is(crashed):
    path, expected = crashed
    before = path.read_bytes(), Path(f"{path}-wal").read_bytes()
    assert same(et.open(path, read_only=True), expected)
    assert (path.read_bytes(), Path(f"{path}-wal").read_bytes()) == before
    with et.open(path) as h:
        assert same(h, expected)


@pytest.mark.parametrize("read_only", [True, False])
def test_a_damaged_file_with_a_log_is_kept(crashed, read_only):
    path, _ = crashed
    damaged = bytearray(path.read_bytes())
    damaged[-3000:-1000] = bytes(2000)
    path.write_bytes(damaged)
    log = Path(f"{path}-wal").read_bytes()
    with pytest.raises(CorruptFileError):
        et.open(path, read_only=read_only)
    assert path.read_bytes() == damaged
    assert Path(f"{path}-wal").read_bytes() == log


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("tree.state", 0, -1),
        ("tree.state", 0, 10**6),
        ("tree.state", 1, 10**9),
        ("tree.state", 2, -5),
        ("tree.left", 3, 10**8),
        ("tree.right", 5, -7),
        ("tree.parent", 5, 10**8),
        ("work.state", 0, 10**9),
        ("work.state", 7, 10**9),
        ("search.state", 3, 10**9),
        ("search.state", 2, 10**9),
        ("search.near", 3, 10**8),
    ],
)
@pytest.mark.parametrize("linkage", ["ward", "single"])
def test_forged_numbers_of_nodes_are_refused(tmp_path, rng, linkage, name, place, value):
    """With checksums that are right."""
    h = et.Hierarchy(linkage)
    h.insert(rng.normal(size=(30, 3)))
    header, arrays = snapshot.contents(h.state)
    forged = arrays[name].copy()
    forged.reshape(-1)[place] = value
    archive.write(tmp_path / "forged", header, arrays | {name: forged})
    with pytest.raises(CorruptFileError):
        et.load(tmp_path / "forged")


@pytest.mark.parametrize(
    "change",
    [
        {"next_birth": 10**30},
        {"next_number": "a"},
        {"search_width": 10**12},
        {"keys": [{"tuple": 3}] * 30},
        {"metric_params": [1]},
    ],
)
def test_forged_headers_are_refused(tmp_path, rng, change):
    h = et.Hierarchy()
    h.insert(rng.normal(size=(30, 3)))
    header, arrays = snapshot.contents(h.state)
    archive.write(tmp_path / "forged", header | change, arrays)
    with pytest.raises(CorruptFileError):
        et.load(tmp_path / "forged")


@pytest.mark.parametrize(
    ("kind", "header", "arrays"),
    [
        ("update", {"keys": None}, {"weights": np.ones(1), "points": np.ones((1, 3))}),
        ("insert", {"keys": None, "n_evaluated": 1}, {"weights": np.ones(1), "dissimilarities": np.ones((1, 31))}),
        ("insert", {"keys": None}, {"weights": np.ones(2), "points": np.ones((1, 3))}),
        ("insert", {"keys": None}, {"weights": -np.ones(1), "points": np.ones((1, 3))}),
        ("insert", {"keys": None}, {"weights": np.ones(1), "points": np.ones((1, 4))}),
        ("insert", {"keys": [0]}, {"weights": np.ones(1), "points": np.ones((1, 3))}),
        ("remove", {"keys": [77]}, {}),
        ("remove", {}, {}),
        ("refine", {"until": "ever", "moves": 3}, {}),
        ("paint", {}, {}),
    ],
)
def test_forged_edits_are_refused(tmp_path, rng, kind, header, arrays):
    h = et.open(tmp_path / "tree.db")
    h.insert(rng.normal(size=(30, 3)))
    h.state.journal.file.append(kind, records.as_record(header, arrays))
    crash(h)
    with pytest.raises(CorruptFileError, match="cannot be made again"):
        et.open(tmp_path / "tree.db")


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("DELETE FROM journal WHERE seq = (SELECT min(seq) + 2 FROM journal)", "edit .* is missing"),
        ("UPDATE journal SET kind = 'remove' WHERE kind = 'insert'", "does not have its checksum"),
        ("UPDATE journal SET payload = 'text'", "does not have its checksum"),
        ("UPDATE snapshot SET bytes = zeroblob(length(bytes)) WHERE name = 'array tree.parent'", "checksum"),
        ("UPDATE snapshot SET bytes = 'text' WHERE name = 'array tree.parent'", "is damaged"),
        ("DELETE FROM snapshot WHERE name = 'array tree.mean'", "is damaged"),
        ("DELETE FROM snapshot", "is damaged"),
        ("UPDATE snapshot SET bytes = x'7b7d' WHERE name = 'header'", "checksum"),
        ("CREATE TRIGGER t AFTER INSERT ON journal BEGIN DELETE FROM snapshot; END", "its tables are not"),
        ("DROP TABLE journal", "its tables are not"),
    ],
)
def test_edits_by_hand_are_noticed(sound, statement, message):
    path, _ = sound
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(statement)
    connection.close()
    for read_only in (True, False):
        with pytest.raises(CorruptFileError, match=message):
            et.open(path, read_only=read_only)


def test_sqlite_alone_writes_its_files(tmp_path, monkeypatch):
    """No other handle of a file than SQLite's is ever open for writing."""
    opened = []

    def note(event, args):
        if event == "open" and isinstance(args[1], str) and set(args[1]) & set("wax+"):
            opened.append(str(args[0]))

    sys.addaudithook(lambda event, args: note(event, args) if is_noting else None)
    is_noting = True
    with et.open(tmp_path / "tree.db") as h:
        for number in range(40):
            make_edit(h, number)
    is_noting = False
    assert not [name for name in opened if "tree.db" in name and not name.endswith("-lock")]
