"""The SQLite file of a durable hierarchy: a snapshot of it, and the edits since then.

There are two tables. ``snapshot`` has a header and named arrays, with the checksums of `evertree.io.archive`, in parts
of a megabyte; it also has what wrote the journal. ``journal`` has a numbered record of each edit since then, with a
checksum and with a digest of the tree; the snapshot holds the number of the last edit before it. Writing a snapshot and
emptying the journal are one transaction.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import sqlite3
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from evertree.durable.records import Record, array_of, chunks, joined, size_of
from evertree.errors import CorruptFileError, FileFormatError, NewerFormatError, StoreError
from evertree.io.archive import decode_header, encode_header, verify_checksums
from evertree.io.json_values import to_json

#: SQLite keeps both in the header of the file: the application and the version.
APPLICATION_ID = 0x65767472
STORE_VERSION = 3

#: Bytes of an array in one row, about: SQLite copies a row, twice, before it writes it.
_PART = 1 << 20

#: Bytes that the write-ahead log may keep on disk when it is empty. SQLite starts over in it after 1,000 pages: commits
#: that make a file longer take longer.
_LOG_KEPT = 1 << 24

#: Seconds to wait for another program that has locked the file.
_PATIENCE = 10.0

#: The start of every SQLite file.
MAGIC = b"SQLite format 3\0"

_TABLES = {
    "journal": "CREATE TABLE journal (seq INTEGER PRIMARY KEY, kind TEXT NOT NULL, payload BLOB NOT NULL, "
    "crc INTEGER NOT NULL, digest INTEGER)",
    "snapshot": "CREATE TABLE snapshot (name TEXT NOT NULL, part INTEGER NOT NULL, bytes BLOB NOT NULL, "
    "PRIMARY KEY (name, part))",
}

#: The first version that has digests, and the tables before it.
_DIGESTS_SINCE = 3
_OLD_TABLES = _TABLES | {"journal": _TABLES["journal"].replace(", digest INTEGER", "")}

#: The kind of a row whose record continues in the next row.
_MORE = "more"

_APPEND = "INSERT INTO journal VALUES (?, ?, ?, ?, ?)"


class SQLiteFile:
    """A connection to the file.

    Attributes
    ----------
    path : str
    is_new : bool
        Whether the file is still empty.
    seq : int
        The number of the last edit in the file.
    """

    def __init__(self, path: str, read_only: bool = False, is_checked: bool = False) -> None:
        self.path = path
        self.seq = 0
        self._is_checked = is_checked
        self._has_digests = True
        self._written_by = b""  # if this connection has said so
        self._n_rows = 1  # of the last record
        with self._errors():
            self._connection = sqlite3.connect(
                _uri(path, read_only), timeout=_PATIENCE, isolation_level=None, check_same_thread=False, uri=True
            )
        try:
            with self._errors():
                self.is_new = self._prepare(read_only)
            self._file = os.stat(path)
        except BaseException:
            self.close()
            raise

    def _prepare(self, read_only: bool) -> bool:
        """Set the connection up, and check that the file is ours; return whether it is empty."""
        ask = self._connection.execute
        ask("PRAGMA trusted_schema = OFF")
        ask("PRAGMA cell_size_check = ON")
        tables = dict(ask("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall())
        owner, version = self._pragma("application_id"), self._pragma("user_version")
        is_new = not tables and owner == 0
        if not is_new:
            self._has_digests = version >= _DIGESTS_SINCE
            self._check_owner(owner, version, tables)
        if read_only:
            ask("PRAGMA query_only = ON")
        else:
            ask("PRAGMA journal_mode = WAL")
            ask("PRAGMA synchronous = FULL")
            ask(f"PRAGMA journal_size_limit = {_LOG_KEPT}")
            if not is_new and version < STORE_VERSION:
                self._upgrade()
        return is_new

    def _upgrade(self) -> None:
        """Make the file one of this version: an older evertree could not read what is written from now on."""
        with self._transaction("IMMEDIATE"):
            if not self._has_digests:
                self._connection.execute("ALTER TABLE journal ADD COLUMN digest INTEGER")
            self._connection.execute(f"PRAGMA user_version = {STORE_VERSION}")
        self._has_digests = True

    def _check_owner(self, owner: int, version: int, tables: dict[str, str]) -> None:
        if owner != APPLICATION_ID:
            raise FileFormatError(f"{self.path} is an SQLite database, but not one that evertree.open has written")
        if version > STORE_VERSION:
            raise NewerFormatError(
                f"{self.path} has store version {version}, and this evertree reads up to {STORE_VERSION}: upgrade "
                "evertree to open it"
            )
        if tables != (_TABLES if self._has_digests else _OLD_TABLES):
            raise CorruptFileError(f"{self.path} is damaged: its tables are not those of evertree.open")
        if not self._is_checked:
            self._refuse_problems("quick_check")

    def _refuse_problems(self, check: str) -> None:
        problem = self._pragma(f"{check}(1)")
        if problem != "ok":
            raise CorruptFileError(f"{self.path} is damaged: {problem}")

    def _pragma(self, name: str) -> Any:
        return self._connection.execute(f"PRAGMA {name}").fetchone()[0]

    def check_integrity(self) -> None:
        """Let SQLite check every page and every index. O(size of the file)."""
        with self._errors():
            self._refuse_problems("integrity_check")

    def check_in_place(self) -> None:
        """Refuse to write to a file that no longer exists: the data would be lost."""
        try:
            is_same = os.path.samestat(os.stat(self.path), self._file)
        except FileNotFoundError:
            is_same = False
        if not is_same:
            raise StoreError(f"{self.path} was moved, removed or replaced while it was open: save() what is in memory")

    def append(self, kind: str, record: Record, digest: int | None = None) -> None:
        """Commit the record of an edit, with a digest of the tree."""
        self.check_in_place()
        if size_of(record) > _PART:
            self._append_parts(kind, record, digest)
            return
        seq, payload = self.seq + 1, joined(record)
        try:  # no context manager: it would take as long as the rest
            self._connection.execute(_APPEND, (seq, kind, payload, _checksum(seq, kind, payload, digest), digest))
        except sqlite3.Error as error:
            raise _translated(error, self.path) from error
        self.seq, self._n_rows = seq, 1

    def _append_parts(self, kind: str, record: Record, digest: int | None) -> None:
        """Append a record that is too large for one row as several rows, the last of which has its kind."""
        first = last = self.seq + 1
        with self._transaction("IMMEDIATE"):
            for part in chunks(record, _PART):
                self._connection.execute(_APPEND, (last, _MORE, part, _checksum(last, _MORE, part, None), None))
                last += 1
            self._connection.execute(_APPEND, (last, kind, b"", _checksum(last, kind, b"", digest), digest))
        self.seq, self._n_rows = last, last - first + 1

    def sign(self, written_by: Mapping[str, str]) -> None:
        """Say what writes the journal from now on."""
        text = to_json(written_by)
        with self._transaction("IMMEDIATE"):
            if self._get("written_by") != text:
                self._connection.execute("DELETE FROM snapshot WHERE name = 'written_by'")
                self._put("written_by", text)
        self._written_by = text

    def written_by(self) -> dict[str, str]:
        """What wrote the journal; nothing if that is unknown."""
        text = bytes(self._get("written_by")) or b"{}"
        try:
            return dict(json.loads(text))
        except (TypeError, ValueError) as error:
            raise CorruptFileError(f"{self.path} is damaged: it is not clear what wrote its journal") from error

    def retract(self) -> None:
        """Retract the last record."""
        with self._errors():
            self._connection.execute("DELETE FROM journal WHERE seq > ?", (self.seq - self._n_rows,))
        self.seq -= self._n_rows

    def write_snapshot(
        self, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], has_new_edit: bool = False
    ) -> None:
        """Replace the snapshot with one of a hierarchy that has all edits, and empty the journal.

        The hierarchy may have one more edit, which is then only in the snapshot.
        """
        if not self.is_new:
            self.check_in_place()
        seq = self.seq + has_new_edit
        layout = {name: [array.dtype.str, array.shape] for name, array in arrays.items()}
        text = encode_header({**header, "seq": seq, "layout": layout}, arrays)
        with self._transaction("IMMEDIATE"):
            if self.is_new:
                for statement in _TABLES.values():
                    self._connection.execute(statement)
                self._connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                self._connection.execute(f"PRAGMA user_version = {STORE_VERSION}")
            self._connection.execute("DELETE FROM snapshot")
            self._connection.execute("DELETE FROM journal")
            self._put("id", secrets.token_bytes(16))
            self._put("seq", str(seq).encode())
            self._put("header", text)
            self._put("header_sha256", hashlib.sha256(text).digest())
            self._put("written_by", self._written_by)
            for name, array in arrays.items():
                self._put(f"array {name}", np.ascontiguousarray(array).reshape(-1).view(np.uint8))
        self.is_new, self.seq = False, seq

    def _put(self, name: str, data: Any) -> None:
        for part, start in enumerate(range(0, len(data), _PART)):
            row = (name, part, memoryview(data[start : start + _PART]))
            self._connection.execute("INSERT INTO snapshot VALUES (?, ?, ?)", row)

    @contextmanager
    def reading(self) -> Iterator[Self]:
        """A block that sees a consistent state of the file."""
        with self._transaction("DEFERRED"):
            yield self

    def snapshot_seq(self) -> int:
        """The number of the last edit before the snapshot, without reading the rest of it."""
        text = self._get("seq")
        if not text.isdigit():
            raise CorruptFileError(f"{self.path} is damaged: its snapshot has no number")
        return int(text)

    def mark(self, seq: int) -> tuple[bytes, int | None]:
        """Marks of the snapshot and of an edit: they tell whether a reader at that edit has the same edits."""
        found = self._connection.execute("SELECT crc FROM journal WHERE seq = ?", (seq,)).fetchone()
        return bytes(self._get("id")), None if found is None else found[0]

    def last_seq(self) -> int:
        """The number of the last edit."""
        found = self._connection.execute("SELECT max(seq) FROM journal").fetchone()[0]
        return self.snapshot_seq() if found is None else int(found)

    def read_snapshot(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """The header and the arrays of the snapshot, checked; `seq` is then that of the snapshot."""
        header = self._header()
        arrays = {}
        for name, (kind, shape) in header["layout"].items():
            arrays[name] = array_of(self._get(f"array {name}"), kind, shape)
        verify_checksums(header, arrays, self.path)
        self.seq = self.snapshot_seq()
        if header.get("seq") != self.seq:
            raise CorruptFileError(f"{self.path} is damaged: its snapshot has two numbers")
        return header, arrays

    def _header(self) -> dict[str, Any]:
        text = bytes(self._get("header"))
        if hashlib.sha256(text).digest() != bytes(self._get("header_sha256")):
            raise CorruptFileError(f"{self.path} is damaged: the header of its snapshot does not have its checksum")
        return decode_header(text, self.path)

    def _get(self, name: str) -> bytearray:
        data = bytearray()
        for (part,) in self._connection.execute("SELECT bytes FROM snapshot WHERE name = ? ORDER BY part", (name,)):
            if not isinstance(part, bytes):
                raise CorruptFileError(f"{self.path} is damaged: its snapshot holds something else than bytes")
            data += part
        return data

    def read_journal(self, after: int) -> Iterator[tuple[str, bytes | bytearray, int | None]]:
        """The records of the edits after number `after`, in order, with their digests; `seq` follows them."""
        self.seq = after
        digest = "digest" if self._has_digests else "NULL"
        select = f"SELECT seq, kind, payload, {digest}, crc FROM journal WHERE seq > ? ORDER BY seq"
        parts: bytes | bytearray = b""
        for seq, kind, payload, digest, crc in self._connection.execute(select, (after,)):
            if seq != self.seq + 1:
                raise CorruptFileError(f"{self.path} is damaged: edit {self.seq + 1} is missing")
            if type(kind) is not str or type(payload) is not bytes or crc != _checksum(seq, kind, payload, digest):
                raise CorruptFileError(f"{self.path} is damaged: edit {seq} does not have its checksum")
            self.seq = seq
            if parts or kind == _MORE:
                parts = parts or bytearray()
                parts += payload
            if kind != _MORE:
                yield kind, parts or payload, digest
                parts = b""

    def close(self) -> None:
        """Close the connection. Only the first call does anything."""
        self._connection.close()

    @contextmanager
    def _transaction(self, kind: str) -> Iterator[None]:
        with self._errors():
            self._connection.execute(f"BEGIN {kind}")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Turn errors of SQLite into ours."""
        try:
            yield
        except sqlite3.Error as error:
            raise _translated(error, self.path) from error
        except UnicodeError as error:  # SQLite quotes damaged text in its errors
            raise CorruptFileError(f"{self.path} is damaged: {error}") from error


def _translated(error: sqlite3.Error, path: str) -> StoreError | CorruptFileError:
    name = getattr(error, "sqlite_errorname", "")
    if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_FORMAT")):
        return CorruptFileError(f"{path} is damaged: {error}")
    remedy = "the hierarchy is as it was before the call"
    if name == "SQLITE_FULL":
        remedy = f"free some space; {remedy}"
    elif name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        remedy = f"another program has locked it; {remedy}"
    return StoreError(f"{path} cannot be used: {error} ({remedy})")


def _checksum(seq: int, kind: str, payload: Any, digest: int | None) -> int:
    start = f"{seq} {kind} " if digest is None else f"{seq} {kind} {digest} "
    return zlib.crc32(payload, zlib.crc32(start.encode()))


def check_place(path: str, read_only: bool) -> None:
    """Refuse a path where no file can be, and files of other programs."""
    place = Path(path)
    if place.is_dir():
        raise IsADirectoryError(f"{path} is a folder; a durable hierarchy is a file")
    if not place.exists():
        if read_only:
            raise FileNotFoundError(f"there is no {path} to read")
        if not place.parent.is_dir():
            raise FileNotFoundError(f"there is no folder {place.parent} for a file in it")
        return
    if not place.is_file():
        raise FileFormatError(f"{path} is a pipe or a device; a durable hierarchy is a file")
    if place.stat().st_nlink > 1:
        raise StoreError(
            f"{path} has another name, by a hard link, under which it could be written at the same time: copy it, or "
            "use a symbolic link"
        )
    if os.path.exists(f"{path}-wal"):
        return  # if this process has it open, to close another handle would release the locks that SQLite holds
    with place.open("rb") as file:
        beginning = file.read(len(MAGIC))
    if beginning.startswith(b"PK"):
        raise FileFormatError(
            f"{path} was written by Hierarchy.save, not by open: use load(path), or open(new_path, start=load(path))"
        )
    if beginning and beginning != MAGIC:
        raise FileFormatError(f"{path} is not a durable hierarchy, or its beginning is damaged")


def store_version(path: str | os.PathLike[str]) -> int:
    """The version of a file's format, from its header."""
    with Path(path).open("rb") as file:
        return int.from_bytes(file.read(64)[60:64], "big")


def _uri(path: str, read_only: bool) -> str:
    """The URI with which SQLite opens the file.

    SQLite leaves the files that it creates next to the database behind unless it may write. But if a log is waiting,
    after a crash or because there is a writer, a reader leaves everything unchanged. If nothing may be written and no
    log is waiting, SQLite must be told that nothing will change.
    """
    uri = Path(path).absolute().as_uri()
    if not read_only:
        return f"{uri}?mode=rwc"
    if os.path.exists(f"{path}-wal"):
        return f"{uri}?mode=ro"
    may_write = os.access(path, os.W_OK) and os.access(Path(path).parent, os.W_OK)
    return f"{uri}?mode=rw" if may_write else f"{uri}?mode=ro&immutable=1"
