"""Edits that are made again: by the same code they give the same tree, and where they do not, users are told."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pytest

import evertree as et
from evertree.durable import fingerprint, journal, replay
from evertree.durable.digest import digest_of
from evertree.errors import CorruptFileError, ReplayWarning, StoreError
from evertree.io import snapshot
from evertree.kernels import machine_code
from evertree.tree import Aim
from helpers import crash
from store_edits import make_edit, same

FILES = Path(__file__).parents[1] / "files"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "tree.db"


def ask(path, question):
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        return connection.execute(question).fetchall()


def n_records(path):
    return ask(path, "SELECT count(*) FROM journal")[0][0]


@pytest.fixture(autouse=True)
def no_snapshots_between(monkeypatch):
    """Where a machine is slow, a snapshot may seem worth its time, and then nothing is replayed."""
    monkeypatch.setattr(journal, "_SOONEST", np.inf)


@pytest.fixture
def crashed(path, rng):
    """A file with edits after its snapshot, of which some leave a choice to the width of searches."""
    h = et.open(path, search_width=None)
    h.insert(rng.normal(size=(60, 2)))
    h.checkpoint()
    h.insert(rng.normal(size=(120, 2)), sample_weight=rng.uniform(1, 2, 120), keys=[f"k{i}" for i in range(120)])
    for number in range(8):
        make_edit(h, number, 2)
    expected = h.copy()
    crash(h)
    return path, expected


@contextlib.contextmanager
def other_kernels():
    """As if other kernels decided: searches are the narrowest."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(snapshot, "_aim_of", lambda header: Aim(header["goal"], 1))
        patch.setattr(replay, "fingerprint", lambda: fingerprint.fingerprint() | {"code": "another"})
        patch.setattr(journal, "fingerprint", replay.fingerprint)
        yield


@contextlib.contextmanager
def other_fingerprint():
    """As if another computer decided the same."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replay, "fingerprint", lambda: fingerprint.fingerprint() | {"CPU": "abacus"})
        patch.setattr(journal, "fingerprint", replay.fingerprint)
        yield


@pytest.fixture
def validations(monkeypatch):
    """The numbers of points of the trees that were validated."""
    found = []
    validate = replay.checks.validate
    monkeypatch.setattr(
        replay.checks, "validate", lambda state, most=None: [found.append(len(state.keys)), validate(state, most)]
    )
    return found


def test_another_tree_is_kept_with_one_warning(crashed, validations):
    path, expected = crashed
    with other_kernels():
        with pytest.warns(ReplayWarning) as caught:
            h = et.open(path)
        assert len(caught) == 1
        assert caught[0].filename == __file__
        text = str(caught[0].message)
        for part in (str(path), "points, keys and weights are exactly", "shape may differ", "code another", "NumPy"):
            assert part in text
        assert validations == [len(expected)]
        assert h.keys() == expected.keys()
        assert np.array_equal(h.points(), expected.points())
        assert np.array_equal(h.weights(), expected.weights())
        assert not np.array_equal(h.linkage_matrix(), expected.linkage_matrix())
        h.validate()
        assert n_records(path) == 0  # a snapshot has taken their place
        h.insert([[0.0, 0.0]])
        crash(h)
        again = et.open(path)  # without a warning
        assert same(again, h)
        again.close()


def test_a_reader_is_warned_and_writes_nothing(crashed):
    path, expected = crashed
    before = path.read_bytes()
    with other_kernels():
        for _ in range(2):
            with pytest.warns(ReplayWarning):
                assert et.open(path, read_only=True).keys() == expected.keys()
    assert path.read_bytes() == before
    assert same(et.open(path, read_only=True), expected)


def test_a_reader_is_warned_once(crashed):
    path, _ = crashed
    writer = et.open(path)
    with other_kernels():
        with pytest.warns(ReplayWarning):
            reader = et.open(path, read_only=True)
        for number in range(8, 14):
            make_edit(writer, number, 2)
            reader.refresh()
            assert reader.keys() == writer.keys()
    writer.close()


def test_another_computer_that_decides_the_same(crashed, validations):
    path, expected = crashed
    with other_fingerprint():
        reader = et.open(path, read_only=True)
        assert same(reader, expected)
        assert validations == [len(expected)]
        assert n_records(path) > 0
        with et.open(path) as h:
            assert same(h, expected)
            assert n_records(path) == 0
            make_edit(h, 20, 2)
            reader.refresh()
            make_edit(h, 21, 2)
            reader.refresh()
        assert validations == 2 * [len(expected)]  # once for each that was opened
    with other_fingerprint():
        et.open(path).close()
    assert len(validations) == 2  # there was nothing to replay


def test_what_wrote_the_journal_is_in_the_file(path):
    def written_by():
        return [text for (text,) in ask(path, "SELECT bytes FROM snapshot WHERE name = 'written_by'")]

    with et.open(path) as h:
        assert written_by() == []
        h.insert([[0.0], [1.0]])
        (text,) = written_by()
        assert all(name.encode() in text for name in fingerprint.fingerprint())
        h.checkpoint()
        assert written_by() == [text]
    with other_fingerprint(), et.open(path) as h:
        assert written_by() == [text]
        h.insert([[2.0]])
        assert b"abacus" in written_by()[0]


def test_a_fingerprint_is_of_all_code_that_decides(tmp_path, monkeypatch):
    package = fingerprint._PACKAGE
    twin = tmp_path / "evertree"
    shutil.copytree(package, twin, ignore=shutil.ignore_patterns("__pycache__", "io", "cli", "sql", "plotting"))
    monkeypatch.setattr(fingerprint, "_PACKAGE", twin)
    before = fingerprint._digest_of_sources()
    assert before == fingerprint.fingerprint()["code"]
    for name in (
        "kernels/shared/stabilise.py",
        "linkages/ward.py",
        "tree/statistics.py",
        "input/metrics.py",
        "edits.py",
    ):
        source = (twin / name).read_bytes()
        (twin / name).write_bytes(source + b"\n")
        assert fingerprint._digest_of_sources() != before
        (twin / name).write_bytes(source)
    (twin / "quality.py").write_text("")
    assert fingerprint._digest_of_sources() == before


def test_compiled_and_plain_code_have_other_fingerprints(monkeypatch):
    """And so have the library and what Numba compiles here."""
    found = []
    for is_compiled in (True, False):
        monkeypatch.setattr(machine_code, "IS_COMPILED", is_compiled)
        found.append(fingerprint.fingerprint.__wrapped__())
    assert found[1]["Numba"] == "off"
    assert found[0]["Numba"] != "off"
    assert found[0]["CPU"]
    numba = pytest.importorskip("numba")
    monkeypatch.setattr(machine_code, "IS_COMPILED", True)
    monkeypatch.setattr(machine_code.library, "opened", lambda: None)
    assert fingerprint.fingerprint.__wrapped__()["Numba"].startswith(numba.__version__)


@pytest.mark.parametrize("linkage", ["ward", "complete"])
def test_a_digest_shows_where_a_point_went(rng, linkage):
    h = et.Hierarchy(linkage)
    h.insert(rng.normal(size=(40, 2)))
    before = digest_of(h.state)
    assert digest_of(h.copy().state) == before
    found = set()
    for x in rng.normal(size=(20, 2)):
        twin = h.copy()
        twin.insert([x])
        found.add((digest_of(twin.state), twin.sibling(int(twin.state.leaves([40])[0]))))
    digests, siblings = zip(*found, strict=True)
    assert len(set(digests)) >= len(set(siblings)) > 5


def test_digests_are_stored_with_every_record_and_sealed(crashed):
    path, _ = crashed
    assert all(digest is not None for (digest,) in ask(path, "SELECT digest FROM journal"))
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("UPDATE journal SET digest = digest + 1 WHERE seq = (SELECT max(seq) FROM journal)")
    connection.close()
    with pytest.raises(CorruptFileError, match="does not have its checksum"):
        et.open(path)


@pytest.mark.parametrize("text", [b"[1]", b"nothing", b"\xff"])
def test_a_damaged_fingerprint_is_refused(crashed, text):
    path, _ = crashed
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("UPDATE snapshot SET bytes = ? WHERE name = 'written_by'", (text,))
    connection.close()
    with pytest.raises(CorruptFileError, match="what wrote its journal"):
        et.open(path)


@pytest.mark.parametrize("by_hand", [True, False])
def test_the_last_key_may_be_gone_before_a_snapshot(path, by_hand):
    """Numbers of removed keys are in memory, but not in the file."""
    h = et.open(path)
    h.insert([[0.0], [1.0], [5.0]], keys=["a", "b", "c"] if by_hand else None)
    h.remove(["c"] if by_hand else [2])
    h.checkpoint()
    h.insert([[7.0]])
    h.remove(["a"] if by_hand else [0])
    crash(h)
    assert len(et.open(path, read_only=True)) == 2


@pytest.mark.parametrize("scheme", [("ward", "euclidean"), ("average", "cosine"), ("complete", "euclidean")])
@pytest.mark.parametrize("every", [0.0, np.inf])
def test_a_refinement_that_ran_out_of_time_is_made_again_exactly(path, scheme, every, monkeypatch):
    """With what it searched in vain after its last move, on which later decisions depend."""
    monkeypatch.setattr(journal, "_SOONEST", np.inf)
    monkeypatch.setattr(journal, "_PROGRESS_EVERY", every)
    monkeypatch.setattr("evertree.tree.refine._PROGRESS_EVERY", 0.0)
    rng = np.random.default_rng(3)
    h = et.open(path, *scheme)
    h.insert(rng.normal(size=(80, 3)))
    for number in range(5):
        h.refine(seconds=0.004 * number)
        h.insert(rng.normal(size=(4, 3)), sample_weight=rng.integers(1, 5, 4))
        h.locate(rng.normal(size=(2, 3)))
        if number == 2:
            h.checkpoint()
        h.remove(h.keys()[number::30])
        h.update(h.keys()[:1], rng.normal(size=(1, 3)))
    found = et.open(path, read_only=True)
    assert same(found, h)
    for count in ("n_checks", "n_moves", "n_grafts", "n_searches", "n_pending"):
        assert getattr(found.state.live, count) == getattr(h.state.live, count)
    crash(h)


@pytest.mark.slow
def test_renumbered_nodes_are_renumbered_again(path, monkeypatch):
    """It depends on the time that is left, and what is searched next on the numbers."""
    monkeypatch.setattr(journal, "_SOONEST", np.inf)
    monkeypatch.setattr(journal, "_PROGRESS_EVERY", 0.1)
    monkeypatch.setattr("evertree.tree.statistics.FEWEST_BYTES_TO_REORDER", 100_000)
    rng = np.random.default_rng(3)
    h = et.open(path)
    h.insert(rng.normal(size=(4_000, 4)))
    orders = set()
    for seconds in (0.01, 0.5, 0.045, 0.3, 0.2):
        h.refine(seconds=seconds)
        orders.add(h.state.live.ordered_at)
        h.insert(rng.normal(size=(1_500, 4)))
    assert len(orders) > 1
    found = et.open(path, read_only=True)
    assert same(found, h)
    assert found.state.live.ordered_at == h.state.live.ordered_at
    crash(h)


def test_a_refinement_that_is_stopped_before_its_first_move_is_recorded(rng, path, monkeypatch):
    monkeypatch.setattr("evertree.tree.refine._PROGRESS_EVERY", 0.0)
    monkeypatch.setattr("evertree.tree.refine._FIRST_WORK", 1)
    h = et.open(path, search_width=4)
    h.insert(rng.normal(size=(60, 2)))
    h.refine()
    h.insert(rng.normal(size=(1, 2)))
    before, n_moves = h.state.journal.seq, h.n_moves

    def stop(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        h.refine(progress=stop)
    assert h.n_moves == n_moves
    assert h.state.journal.seq == before + 1
    found = et.open(path, read_only=True)
    assert same(found, h)
    assert np.array_equal(found.state.live.search.near[:61], h.state.live.search.near[:61])
    crash(h)


def test_an_interrupted_refresh_starts_again(rng, path, monkeypatch):
    h = et.open(path, start=et.Hierarchy.random(rng.normal(size=(300, 3)), seed=1))
    reader = et.open(path, read_only=True)
    h.refine(moves=200)
    run = journal.edits.apply

    def interrupted(state, edit):
        run(state, edit)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(journal.edits, "apply", interrupted)
        with pytest.raises(KeyboardInterrupt):
            reader.refresh()
    assert reader.refresh()
    assert same(reader, h)
    crash(h)


def test_a_clean_close_leaves_a_snapshot(path, rng):
    with et.open(path) as h:
        h.insert(rng.normal(size=(5, 2)))
    assert n_records(path) == 0
    with et.open(path) as h:
        h.remove([0])
    assert n_records(path) == 0
    before = ask(path, "SELECT bytes FROM snapshot WHERE name = 'id'")
    with et.open(path) as h:
        assert h.keys() == [1, 2, 3, 4]
    assert ask(path, "SELECT bytes FROM snapshot WHERE name = 'id'") == before  # nothing has changed
    h = et.open(path)
    h.insert([[1.0, 2.0]])
    crash(h)
    assert n_records(path) == 1
    et.open(path).close()
    assert n_records(path) == 0


def test_a_close_that_cannot_leave_a_snapshot(path, monkeypatch):
    h = et.open(path)
    h.insert([[0.0], [1.0]])

    def full(*_):
        raise StoreError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr("evertree.durable.sqlite_file.SQLiteFile.write_snapshot", full)
        with pytest.warns(UserWarning, match="all edits are safe: the disk is full"):
            h.close()
    assert len(et.open(path, read_only=True)) == 2


def test_a_file_of_an_older_version_is_validated_and_gets_a_snapshot(tmp_path, validations):
    """It has no digests, so there is nothing to warn of."""
    path = shutil.copy(FILES / "store_2_ward.db", tmp_path / "tree.db")
    before = Path(path).read_bytes()
    reader = et.open(path, read_only=True)
    assert validations == [len(reader)]
    assert Path(path).read_bytes() == before
    with et.open(path) as h:
        assert same(h, reader)
        assert n_records(path) == 0
        make_edit(h, 3)
        assert ask(path, "SELECT count(digest) FROM journal") == [(1,)]


def test_large_trees_are_validated_in_linear_time(crashed, monkeypatch):
    path, _ = crashed
    monkeypatch.setattr(replay, "_MOST_CHECKED_WHOLE", 10)

    def never(_):
        raise AssertionError("it would take long")

    monkeypatch.setattr("evertree.tree.invariants.check_statistics", never)
    with other_fingerprint():
        et.open(path, read_only=True)


def test_opening_takes_no_fingerprint_where_nothing_is_replayed(path, monkeypatch):
    def never():
        raise AssertionError("it would load Numba")

    for module in (replay, journal):
        monkeypatch.setattr(module, "fingerprint", never)
    et.open(path).close()
    et.open(path, read_only=True)
