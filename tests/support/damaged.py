"""Files of hierarchies, damaged at random or forged with right checksums: each change follows from its number."""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import io
import json
import os
import sqlite3
import tempfile
import uuid
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import pdist, squareform

import evertree as et
from evertree.durable.records import as_record, from_record
from evertree.errors import NotSavableError
from evertree.io.archive import encode_header
from forgeries import Rng, forge_arrays, forge_json, quiet


def edit_distance(a: Any, b: Any) -> float:
    """A metric on texts that is fast enough: how many characters differ, and by how much the lengths do."""
    a, b = str(a), str(b)  # a forged file may hold anything
    return float(sum(s != t for s, t in zip(a, b, strict=False)) + abs(len(a) - len(b)))


class Original(NamedTuple):
    """A hierarchy, and the bytes of its file: of `Hierarchy.save`, and of `evertree.open`."""

    name: str
    h: et.Hierarchy
    saved: bytes
    stored: bytes


class Mutant(NamedTuple):
    """A changed file."""

    original: Original
    is_store: bool
    what: str  # what was done to it
    content: bytes
    is_forged: bool  # its checksums are right: it may be another hierarchy


# -- the originals


def _points(n: int, seed: int, dtype: Any = np.float64) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, 3)).round(1).astype(dtype)  # with ties


def _texts(n: int) -> list[str]:
    letters = np.random.default_rng(4).choice(list("abcd"), size=(n, 5))
    return ["".join(row) for row in letters]


def _mixed_keys(n: int) -> list[Any]:
    kinds: list[Callable[[int], Any]] = [
        lambda i: i,
        lambda i: f"k{i}",
        lambda i: (i, "x", None),
        lambda i: uuid.UUID(int=i),
        lambda i: datetime.date(2020, 1, 1) + datetime.timedelta(i),
        lambda i: bytes([i]),
        lambda i: frozenset({i, -i}),
        lambda i: i + 0.5,
    ]
    return [kinds[i % len(kinds)](i) for i in range(n)]


def _started(name: str) -> tuple[et.Hierarchy, Callable[[et.Hierarchy], None]]:
    """An empty hierarchy, and edits that fill it."""
    weights = np.random.default_rng(2).integers(1, 4, 40).astype(float)

    def ward(h: et.Hierarchy) -> None:
        h.insert(_points(40, 1), sample_weight=weights)
        h.remove([3, 4, 20])
        h.update([7], [[0.5, 0.5, 0.5]])

    def window(h: et.Hierarchy) -> None:
        h.keep(last=30, max_age=10, time=0)
        for day in range(4):
            h.insert(_points(10, day, np.float32), time=day)

    def mixed(h: et.Hierarchy) -> None:
        h.insert(1 + _points(40, 1), keys=_mixed_keys(40), sample_weight=weights)
        h.remove([0, "k1"])
        h.refine()

    def matrix(h: et.Hierarchy) -> None:
        h.insert(squareform(pdist(_points(36, 3))), keys=[f"k{i}" for i in range(36)])
        h.remove(["k3"])

    def texts(h: et.Hierarchy) -> None:
        h.insert(_texts(36), keys=[(i, f"{i}") for i in range(36)])
        h.remove([(3, "3")])

    makers: dict[str, tuple[Callable[[], et.Hierarchy], Callable[[et.Hierarchy], None]]] = {
        "ward": (et.Hierarchy, ward),
        "window": (lambda: et.Hierarchy("ward", search_width=None), window),
        "cosine": (lambda: et.Hierarchy("average", "cosine"), mixed),
        "complete": (lambda: et.Hierarchy("complete"), mixed),
        "minimax": (lambda: et.Hierarchy("minimax", goal="homogeneous"), ward),
        "precomputed": (lambda: et.Hierarchy("average", "precomputed"), matrix),
        "objects": (lambda: et.Hierarchy("complete", edit_distance), texts),
        "one": (et.Hierarchy, lambda h: h.insert([[1.0, 2.0, 3.0]])),
        "empty": (et.Hierarchy, lambda h: None),
    }
    make, fill = makers[name]
    return make(), fill


NAMES = ("ward", "window", "cosine", "complete", "minimax", "precomputed", "objects", "one", "empty")


@cache
def original(name: str) -> Original:
    """One of `NAMES`. Its store has a snapshot and edits after it."""
    h, fill = _started(name)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "store"
        with et.open(place, start=h) as durable:
            fill(durable)
            if len(durable) > 5:
                durable.checkpoint()
                durable.remove(durable.keys()[4:5])
                if name not in ("precomputed", "window"):
                    durable.insert(_texts(3) if name == "objects" else 1 + _points(3, 9, durable.points().dtype))
            durable.state.journal._debt = 0.0  # no snapshot when it is closed
        stored = place.read_bytes()
        fill(h)
        if len(durable) > 5:
            h.remove(h.keys()[4:5])
            if name not in ("precomputed", "window"):
                h.insert(_texts(3) if name == "objects" else 1 + _points(3, 9, h.points().dtype))
        h.save(place)
        return Original(name, h, place.read_bytes(), stored)


# -- damage: bytes that change, with checksums that do not


def _stretch(rng: Rng, data: bytes) -> slice:
    length = int(min(len(data), rng.choice([1, 4, 16, 100, 1_000, 4_096])))
    start = int(rng.integers(0, len(data) - length + 1))
    return slice(start, start + length)


def _flip_bits(rng: Rng, data: bytearray, _: bytes) -> bytes:
    for place in rng.integers(0, len(data), rng.choice([1, 1, 1, 5])):
        data[place] ^= 1 << int(rng.integers(8))
    return bytes(data)


def _change_bytes(rng: Rng, data: bytearray, _: bytes) -> bytes:
    where = _stretch(rng, data)
    data[where] = rng.bytes(where.stop - where.start)
    return bytes(data)


def _truncate(rng: Rng, data: bytearray, _: bytes) -> bytes:
    return bytes(data[: rng.integers(0, len(data))])


def _extend(rng: Rng, data: bytearray, other: bytes) -> bytes:
    more = [bytes(int(rng.integers(1, 5_000))), rng.bytes(100), bytes(data), other]
    return bytes(data) + more[rng.integers(len(more))]


def _zero(rng: Rng, data: bytearray, _: bytes) -> bytes:
    where = _stretch(rng, data)
    data[where] = bytes(where.stop - where.start)
    return bytes(data)


def _splice(rng: Rng, data: bytearray, other: bytes) -> bytes:
    source = bytes(data) if rng.integers(2) else other
    data[_stretch(rng, data)] = source[_stretch(rng, source)]
    return bytes(data)


_DAMAGE = (_flip_bits, _flip_bits, _change_bytes, _truncate, _extend, _zero, _splice)


# -- archives


def _members(content: bytes) -> list[tuple[str, bytes]]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return [(name, archive.read(name)) for name in archive.namelist()]


def _archive(members: list[tuple[str, bytes]], kind: int = zipfile.ZIP_STORED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", kind) as archive, quiet():
        for name, data in members:
            archive.writestr(name, data)
    return file.getvalue()


def _change_members(rng: Rng, content: bytes, other: bytes) -> tuple[str, bytes]:
    members, theirs = _members(content), dict(_members(other))
    k = int(rng.integers(len(members)))
    name, data = members[k]
    choice = rng.integers(7)
    if choice == 0:
        del members[k]
        return f"without {name}", _archive(members)
    if choice == 1:
        members.append((name, data if rng.integers(2) else theirs.get(name, b"")))
        return f"{name} twice", _archive(members)
    if choice == 2:
        members[k] = name, theirs.get(name, data[::-1])
        return f"{name} of another file", _archive(members)
    if choice == 3:
        j = int(rng.integers(len(members)))
        members[k], members[j] = (name, members[j][1]), (members[j][0], data)
        return f"{name} and {members[j][0]} exchanged", _archive(members)
    if choice == 4:
        odd = rng.choice(["../x.npy", "/etc/x.npy", "x" * 5_000, "header.npy", ".", "a/../header.npy", "é\n.npy"])
        members[k] = str(odd), data
        return f"{name} by an odd name", _archive(members)
    if choice == 5:
        return "packed", _archive(members, zipfile.ZIP_DEFLATED)
    members[k] = name, _DAMAGE[rng.integers(len(_DAMAGE))](rng, bytearray(data), theirs.get(name) or data)
    return f"{name} damaged", _archive(members)


# -- forgery: other content with right checksums


def contents_of(saved: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The header, without checksums, and the arrays of a file of `Hierarchy.save`."""
    with np.load(io.BytesIO(saved)) as archive:
        arrays = {name: archive[name] for name in archive.files}
    header = json.loads(arrays.pop("header").tobytes())
    del arrays["header_sha256"], header["sha256"]
    return header, arrays


def saved_with(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> bytes:
    """A file with right checksums."""
    text = np.frombuffer(encode_header(header, arrays), np.uint8)
    file, digest = io.BytesIO(), np.frombuffer(hashlib.sha256(text.tobytes()).digest(), np.uint8)
    np.savez(file, header=text, header_sha256=digest, **arrays)
    return file.getvalue()


def _forge_saved(rng: Rng, content: bytes, other: bytes) -> tuple[str, bytes]:
    header, arrays = contents_of(content)
    theirs, their_arrays = contents_of(other)
    what, changed = _forge(rng, header, arrays, theirs, their_arrays)
    return what, saved_with(*changed)


def _forge(rng: Rng, header: Any, arrays: Any, theirs: Any, their_arrays: Any) -> tuple[str, tuple[Any, Any]]:
    choice = rng.integers(12)
    if choice == 0:
        return "the header of another", (theirs, arrays)
    if choice <= 4 or not arrays:
        what, header = forge_json(rng, header, theirs)
        return what, (header if isinstance(header, dict) else {}, arrays)
    what, arrays = forge_arrays(rng, arrays, their_arrays)
    return what, (header, arrays)


# -- stores


@contextlib.contextmanager
def _database(content: bytes) -> Iterator[tuple[sqlite3.Connection, Path]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store"
        path.write_bytes(content)
        connection = sqlite3.connect(path, isolation_level=None)
        try:
            connection.execute("PRAGMA journal_mode = DELETE")
            yield connection, path
        finally:
            connection.close()


def _change_rows(rng: Rng, content: bytes, other: bytes) -> tuple[str, bytes]:
    """Rows without care for checksums."""
    odd = (None, 1, -1, 1.5, "", "insert", b"", b"\0" * 100, 2**62)
    with _database(content) as (db, path):
        table = str(rng.choice(["snapshot", "journal"]))
        rows = [row for (row,) in db.execute(f"SELECT rowid FROM {table}")]
        if not rows:
            table, rows = "snapshot", [row for (row,) in db.execute("SELECT rowid FROM snapshot")]
        row, choice = int(rng.choice(rows)), rng.integers(4)
        columns = ["seq", "kind", "payload", "crc"] if table == "journal" else ["name", "part", "bytes"]
        column, value = str(rng.choice(columns)), odd[rng.integers(len(odd))]
        what = f"row {row} of {table}"
        with contextlib.suppress(sqlite3.Error):
            if choice == 0:
                db.execute(f"DELETE FROM {table} WHERE rowid = ?", (row,))
                what = f"without {what}"
            elif choice == 1:
                db.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (value, row))
                what += f": {column} = {value!r}"
            elif choice == 2:
                db.execute(f"DROP TABLE {table}" if rng.integers(2) else f"CREATE INDEX i ON {table} ({column})")
                what = "the schema"
            else:
                owner, version = int(rng.choice([0, 7, 0x65767472])), int(rng.choice([0, 1, 3, -1]))
                db.execute(f"PRAGMA application_id = {owner}")
                db.execute(f"PRAGMA user_version = {version}")
                what = f"owner {owner:x} and version {version}"
        db.close()
        return what, path.read_bytes()


def _forge_store(rng: Rng, content: bytes, other: bytes) -> tuple[str, bytes]:
    """The snapshot, or an edit after it, with right checksums."""
    with _database(content) as (db, path), _database(other) as (their_db, _):
        edits = db.execute("SELECT seq, kind, payload FROM journal").fetchall()
        if edits and rng.integers(2):
            what = _forge_edit(rng, db, edits, their_db.execute("SELECT seq, kind, payload FROM journal").fetchall())
        else:
            what = _forge_snapshot(rng, db, their_db)
        db.close()
        return what, path.read_bytes()


def _forge_edit(rng: Rng, db: sqlite3.Connection, edits: list[Any], theirs: list[Any]) -> str:
    seq, kind, payload = edits[rng.integers(len(edits))]
    header, arrays = from_record(payload)
    choice = rng.integers(5)
    if choice == 0:
        kind = str(rng.choice(["insert", "remove", "update", "keep", "refine", "more", "other", ""]))
        what = f"kind {kind!r}"
    elif choice == 1 and theirs:
        _, kind, payload = theirs[rng.integers(len(theirs))]
        header, arrays = from_record(payload)
        what = "of another"
    elif choice == 2 or not arrays:
        what, header = forge_json(rng, {**header, "until": "stable"}, {})
    else:
        what, arrays = forge_arrays(rng, arrays, {})
    record = as_record(header if isinstance(header, dict) else {}, arrays)
    if rng.integers(8) == 0:
        record = _DAMAGE[rng.integers(len(_DAMAGE))](rng, bytearray(record), payload)
    crc = zlib.crc32(record, zlib.crc32(f"{seq} {kind} ".encode()))
    db.execute("UPDATE journal SET kind = ?, payload = ?, crc = ? WHERE seq = ?", (kind, record, crc, seq))
    return f"edit {seq}: {what}"


def _snapshot_of(db: sqlite3.Connection) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    header = json.loads(db.execute("SELECT bytes FROM snapshot WHERE name = 'header'").fetchone()[0])
    arrays = {}
    for name, (kind, shape) in header["layout"].items():
        found = db.execute("SELECT bytes FROM snapshot WHERE name = ?", (f"array {name}",)).fetchone()
        arrays[name] = np.frombuffer(found[0] if found else b"", kind).reshape(shape)
    return header, arrays


def _forge_snapshot(rng: Rng, db: sqlite3.Connection, their_db: sqlite3.Connection) -> str:
    header, arrays = _snapshot_of(db)
    what, (header, arrays) = _forge(rng, header, arrays, *_snapshot_of(their_db))
    header.pop("sha256", None)
    if rng.integers(4):
        header["layout"] = {name: [array.dtype.str, array.shape] for name, array in arrays.items()}
    text = encode_header(header, arrays)
    rows = {"header": text, "header_sha256": hashlib.sha256(text).digest()}
    rows |= {f"array {name}": np.ascontiguousarray(array).tobytes() for name, array in arrays.items()}
    db.execute("DELETE FROM snapshot WHERE name NOT IN ('id', 'seq')")
    for name, data in rows.items():
        if data:
            db.execute("INSERT INTO snapshot VALUES (?, 0, ?)", (name, data))
    return f"snapshot: {what}"


# -- all together


def mutant(seed: int, number: int, names: Sequence[str] = NAMES) -> Mutant:
    """The changed file of a number, of one of some originals."""
    rng = np.random.default_rng([seed, number])
    first, second = original(str(rng.choice(names))), original(str(rng.choice(names)))
    is_store, choice = bool(rng.integers(2)), rng.integers(10)
    content, other = (first.stored, second.stored) if is_store else (first.saved, second.saved)
    if choice < 4:
        change = _DAMAGE[rng.integers(len(_DAMAGE))]
        what, changed = change.__name__.strip("_"), change(rng, bytearray(content), other)
    elif choice == 4:
        what, changed = (_change_rows if is_store else _change_members)(rng, content, other)
    else:
        try:
            what, changed = (_forge_store if is_store else _forge_saved)(rng, content, other)
        except NotSavableError:
            what, changed = "nothing, as it could not be written", content
    # A row that is gone from the end of the journal is an edit that was not made.
    return Mutant(first, is_store, what, changed, bool(choice > 4) or "of journal" in what)


def write(mutant: Mutant, folder: str | os.PathLike[str]) -> Path:
    """Write the file to a folder, in the place of the last one, and nothing beside it."""
    for file in Path(folder).iterdir():
        file.unlink()
    path = Path(folder) / "tree.evertree"
    path.write_bytes(mutant.content)
    return path
