"""Files that somebody has damaged, forged, or made to do harm: all are refused in time, or are what they say."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import sqlite3
import zipfile
from pathlib import Path

import numpy as np
import pytest

import evertree as et
from damaged import contents_of, mutant, saved_with, write
from evertree.cli.input_files import InputFile, read_points
from evertree.errors import CorruptFileError, DataError, EvertreeError, FileFormatError
from evertree.io.json_values import numeric_dtype
from fuzz_files import outcome

N_MUTANTS = 200


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "tree.evertree"


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> bytes:
    path = tmp_path_factory.mktemp("saved") / "tree"
    h = et.Hierarchy(search_width=4)
    h.insert(np.random.default_rng(0).normal(size=(12, 2)))
    h.save(path)
    return path.read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_damaged_and_forged_files(tmp_path, part):
    """A small part of what ``make fuzz`` does."""
    for number in range(part * N_MUTANTS // 4, (part + 1) * N_MUTANTS // 4):
        case = mutant(0, number, ("ward", "window", "complete", "one", "empty"))
        result = outcome(case, write(case, tmp_path))
        assert not result.startswith("!"), (number, case.what)


def test_most_mutants_are_changed(tmp_path):
    """The tests above would pass if nothing were ever changed."""
    cases = [mutant(0, number, ("one", "empty")) for number in range(60)]
    same = [case for case in cases if case.content == (case.original.stored if case.is_store else case.original.saved)]
    assert len(same) < 12
    assert {case.is_store for case in cases} == {case.is_forged for case in cases} == {False, True}


def forged(saved: bytes, name: str, change) -> bytes:
    """The file with an array changed in place, and right checksums."""
    header, arrays = contents_of(saved)
    change(arrays[name])
    return saved_with(header, arrays)


def turn_round(parent):
    parent[1], parent[3] = 3, 1


def note_an_unused_node(due):
    due[np.flatnonzero(due)[0]], due[-1] = 0, 1


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("tree.parent", turn_round),
        ("work.due", note_an_unused_node),
        ("tree.left", lambda left: left.__setitem__(1, 1)),
        ("tree.left", lambda left: left.__setitem__(1, 10_000)),
        ("tree.size", lambda size: size.__setitem__(1, 3.5)),
        ("tree.size", lambda size: size.__setitem__(0, np.inf)),
        ("tree.birth", lambda birth: birth.__setitem__(1, 7)),
        ("tree.mean", lambda mean: mean.__setitem__(1, 5.0)),
        ("tree.mean", lambda mean: mean.__setitem__(0, np.nan)),
        ("tree.mean", lambda mean: mean.__setitem__(0, 1e200)),
        ("tree.variance", lambda variance: variance.__setitem__(1, 99.0)),
        ("tree.height", lambda height: height.__setitem__(1, 99.0)),
        ("tree.radius", lambda radius: radius.__setitem__(1, -1.0)),
        ("search.near", lambda near: near.__setitem__((0, 0), 1)),
        ("work.queue", lambda queue: queue.__setitem__(0, queue[1])),
        ("work.queue", lambda queue: queue.__setitem__(0, 10_000)),
        ("work.queue", lambda queue: queue.__setitem__(0, -1)),
        ("work.levels", lambda levels: levels.__setitem__(0, -1)),
        ("work.levels", lambda levels: levels.__setitem__(0, 1 << 13)),
        ("work.state", lambda state: state.__setitem__(11, 9)),
        ("work.state", lambda state: state.__setitem__(2, -5)),
        ("leaves", lambda leaves: leaves.__setitem__(0, 2)),
        ("numbers", lambda numbers: numbers.__setitem__(0, 1)),
        ("numbers", lambda numbers: numbers.__iadd__(100)),
    ],
)
def test_arrays_that_make_no_tree_are_refused(saved, path, name, change):
    path.write_bytes(forged(saved, name, change))
    with pytest.raises(CorruptFileError, match="is damaged"):
        et.load(path)


@pytest.mark.parametrize("names", [["work.queue"], ["work.levels"], ["work.queue", "work.levels"]])
def test_a_parent_far_below_is_refused_without_a_queue(saved, path, names):
    """Files of older versions have none: it is made when the shape of the tree has been checked."""
    header, arrays = contents_of(saved)
    for name in names:
        del arrays[name]
    arrays["tree.parent"][np.flatnonzero(arrays["work.due"][::2])[0] * 2] = -2_000_000_000
    path.write_bytes(saved_with(header, arrays))
    with pytest.raises(CorruptFileError, match="is damaged"):
        et.load(path)


def test_what_a_file_says_of_rows_that_no_node_has_is_forgotten(saved, path):
    """The last inner row of a tree is free."""
    path.write_bytes(forged(saved, "tree.parent", lambda parent: parent.__setitem__(-1, 5)))
    h = et.load(path)
    assert h.state.live.tree.parent[-1] == 0
    h.insert(np.zeros_like(h.points()[:3]))
    h.refine()
    h.validate()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": -1}, "not a version"),
        ({"version": 4.0}, "not a version"),
        ({"next_number": 3}, "the number of the next key is taken"),
        ({"next_birth": 3}, "a point is younger than the next one"),
        ({"keys": [float("nan"), *range(11)]}, "must equal themselves"),
        ({"keys": [1, 1, *range(10)]}, "keys must differ"),
        ({"keys": [[1], *range(11)]}, "must be hashable"),
        ({"keys": [{"array": ["<U500000000", ["a"]]}, *range(11)]}, "not a numeric dtype"),
        ({"search_width": 2**60}, "wider than any tree"),
    ],
)
def test_forged_headers_are_refused(saved, path, change, message):
    header, arrays = contents_of(saved)
    path.write_bytes(saved_with({**header, **change}, arrays))
    with pytest.raises(CorruptFileError, match=message):
        et.load(path)


def test_a_wide_search_takes_no_more_room_than_the_tree():
    h = et.Hierarchy(search_width=2**30)
    h.insert([[0.0], [5.0], [1.0], [6.0]])
    assert h.search_width == 2**30
    assert h.state.live.search.front.nbytes < 1_000
    assert h.cut(n_clusters=2).tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize("name", ["a5", "O", "f", "<U3", "f99", "V8", "M8[s]", "f8,f8", 7, None, ["f8"]])
def test_names_of_types_that_hold_no_numbers_are_refused(name):
    assert numeric_dtype(np.zeros(1, "float32").dtype.str) == np.float32
    with pytest.raises(ValueError, match=r"is not a numeric dtype|not understood"):
        numeric_dtype(name)


@pytest.mark.parametrize("value", [5, "", 2.5])
def test_snapshots_of_anything_but_bytes_are_refused(tmp_path, value):
    path = tmp_path / "tree.db"
    et.open(path, start=et.Hierarchy.random(np.arange(6.0)[:, None])).close()
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE OR REPLACE snapshot SET bytes = ? WHERE name = 'array tree.parent'", (value,))
    with pytest.raises(CorruptFileError, match="is damaged"):
        et.open(path)


def archive(members: dict[str, bytes], kind: int = zipfile.ZIP_STORED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", kind) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return file.getvalue()


def members_of(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def npy(dtype: str, shape: tuple[int, ...], data: bytes = b"") -> bytes:
    """An array that says what it likes about its size."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": dtype, "fortran_order": False, "shape": shape})
    return file.getvalue() + data


def pickled() -> bytes:
    file = io.BytesIO()
    np.save(file, np.array([{"x": 1}], object), allow_pickle=True)
    return file.getvalue()


def encrypted(content: bytes) -> bytes:
    """The archive with the flags that say so."""
    changed = bytearray(content)
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = changed.find(mark)
        while place >= 0:
            changed[place + offset] |= 1
            place = changed.find(mark, place + 4)
    return bytes(changed)


def hostile(saved: bytes) -> dict[str, bytes]:
    members = members_of(saved)
    return {
        "a bomb": archive(
            {**members, "tree.mean.npy": npy("<f8", (10**6, 10), bytes(8 * 10**7))}, zipfile.ZIP_DEFLATED
        ),
        "a bomb of a header": archive(
            {**members, "header.npy": npy("|u1", (10**8,), bytes(10**8))}, zipfile.ZIP_DEFLATED
        ),
        "more than there is": archive({**members, "tree.mean.npy": npy("<f8", (10**15, 10))}),
        "less than nothing": archive({**members, "tree.mean.npy": npy("<f8", (-1, 10))}),
        "one archive in another": archive({"header.npy": saved}),
        "a pickle": archive({**members, "header.npy": pickled()}),
        "a pickle for an array": archive({**members, "tree.mean.npy": pickled()}),
        "a password": encrypted(saved),
        "other paths": archive({f"../../{name}": data for name, data in members.items()}),
        "absolute paths": archive({f"/{name}": data for name, data in members.items()}),
        "something before it": b"PK" + saved,
        "packed": gzip.compress(saved),
        "a long name": archive({"x" * 60_000: b"", **members})[:-30],
    }


@pytest.mark.parametrize("what", hostile(archive({"header.npy": b""})))
def test_hostile_archives_are_refused(saved, path, what):
    path.write_bytes(hostile(saved)[what])
    before = {*path.parent.parent.rglob("*")}
    with pytest.raises(FileFormatError):
        et.load(path)
    with pytest.raises(FileFormatError):
        et.open(path)
    assert {*path.parent.parent.rglob("*")} - {path.with_name(f"{path.name}-lock")} == before


def test_what_stands_beside_the_arrays_is_not_read(saved, path):
    """Neither a bomb that nobody asks for, nor a name that leads elsewhere."""
    path.write_bytes(archive({**members_of(saved), "../../elsewhere": b"x", "/tmp/elsewhere": b"x"}))
    assert len(et.load(path)) == 12
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_links_and_folders(saved, path):
    path.write_bytes(saved)
    link = path.with_name("link")
    link.symlink_to(path)
    assert len(et.load(link)) == 12
    loop = path.with_name("loop")
    loop.symlink_to(loop)
    with pytest.raises(OSError, match="symbolic links"):
        et.load(loop)
    for call in (et.load, et.open):
        with pytest.raises(IsADirectoryError):
            call(path.parent)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_pipes_and_devices_are_refused_without_waiting(path):
    os.mkfifo(path)
    for call in (et.load, et.open, lambda place: et.open(place, read_only=True)):
        for place in (path, Path("/dev/zero")):
            with pytest.raises(FileFormatError, match="is a pipe or a device"):
                call(place)


# -- files of points


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.npy", pickled()),
        ("x.npy", npy("<f8", (10**15, 10))),
        ("x.npy", npy("<f8", (10**9, 2), bytes(100))),
        ("x.npy", npy("<f8", (-1, 5), bytes(100))),
        ("x.npy", npy("|S1000000000", (1, 2), bytes(100))),
        ("x.npz", archive({"X.npy": pickled()})),
        ("x.npz", archive({"X.npy": npy("<f8", (10**15, 10))})),
        ("x.npz", encrypted(archive({"X.npy": npy("<f8", (1, 2), bytes(16))}))),
        ("x.npz", archive({"a.zip": archive({"X.npy": npy("<f8", (1, 2), bytes(16))})})),
        ("x.npz", archive({})),
        ("x.csv", b"a,b\n" + b"\0" * 2_000),
        ("x.csv", gzip.compress(b"a,b\n1,2\n")[:-6]),
        ("x.csv", b"\x1f\x8b" + b"nothing of the kind"),
        ("x.csv", b"PAR1" + bytes(100) + b"PAR1"),
        ("x.parquet", b"PAR1" + b"\xff" * 100 + b"\xff\xff\xff\x7fPAR1"),
        ("x.csv", b'a,"b\n1,2\n' * 3),
        ("x.csv", b"a" * 100_000),
        ("x.csv", b"PK\x03\x04" + bytes(50)),
        ("x.csv", b""),
    ],
)
def test_hostile_files_of_points_are_refused(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises((FileFormatError, DataError)):
        read_points(InputFile(path))
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_points_of_other_types_are_refused(tmp_path):
    path = tmp_path / "x.npy"
    for array in (np.ones((2, 2), complex), np.array([["a", "b"]]), np.ones((2, 2), "M8[s]"), np.ones((2, 2, 2))):
        np.save(path, array)
        with pytest.raises(EvertreeError, match="must have"):
            read_points(InputFile(path))
