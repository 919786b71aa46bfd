"""`DurableHierarchy`: a hierarchy whose edits are written to disk before they are applied in memory."""

from __future__ import annotations

import os
import weakref
from typing import Any, Self

from evertree import exports
from evertree.durable.journal import FileJournal
from evertree.durable.lock import WriterLock
from evertree.durable.snapshots import read_snapshot
from evertree.durable.sqlite_file import SQLiteFile
from evertree.hierarchy import Hierarchy
from evertree.locking import editing
from evertree.state import State


class DurableHierarchy(Hierarchy):
    """A hierarchy stored in one file, created by `evertree.open`.

    It has the methods of `Hierarchy`. Each edit is committed to the file before the call returns, and survives a crash
    of the process or of the machine. The progress of a refinement is recorded about once a second: after a crash the
    tree is as it was then or later, with all edits. If `refine` has a time limit, no snapshot is written meanwhile.
    `close` leaves a snapshot, and with it this very tree, in the file.
    `copy` returns a hierarchy in memory.

    Examples
    --------
    >>> with et.open("durable.evertree") as h:
    ...     keys = h.insert([[0.0], [5.0], [1.0]])
    >>> et.open("durable.evertree", read_only=True)
    DurableHierarchy(linkage='ward', metric='euclidean'): 3 points, 1 column of float64, in durable.evertree, read only
    """

    _journal: FileJournal
    _release: weakref.finalize[..., Any] | None  # releases the file; None if it was opened read-only

    def __init__(self, *_: object, **__: object) -> None:
        raise TypeError("a DurableHierarchy is made by evertree.open(path, ...), which takes a start=")

    @property
    def path(self) -> str:
        """The file, as an absolute path.

        Examples
        --------
        >>> with et.open("durable.evertree") as h:
        ...     h.path.endswith("durable.evertree")
        True
        """
        return self._journal.path

    @property
    def is_read_only(self) -> bool:
        """Whether the file was opened read-only.

        Examples
        --------
        >>> with et.open("durable.evertree") as h:
        ...     h.is_read_only
        False
        """
        return self._journal.file is None

    def __repr__(self) -> str:
        state = ", read only" if self.is_read_only else ", closed" if self._journal.is_closed else ""
        return f"DurableHierarchy({exports.describe(self.state)}, in {os.path.basename(self.path)}{state}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @editing
    def close(self) -> None:
        """Let others write to the file. The hierarchy can still be read. A `with` block calls it at its end.

        A snapshot is written first, if anything was edited since the last one: the file then opens fast, and holds
        this very tree for every later version of evertree.

        Examples
        --------
        >>> h = et.open("durable.evertree")
        >>> keys = h.insert([[0.0], [5.0]])
        >>> h.close()
        >>> len(h)
        2
        """
        if self._release is None or not self._journal.is_mine():
            return
        try:
            self._journal.finish()
        finally:
            self._release()

    @editing
    def checkpoint(self) -> None:
        """Write a snapshot now, so that the file opens fast. This happens automatically from time to time.

        Examples
        --------
        >>> with et.open("durable.evertree") as h:
        ...     keys = h.insert([[0.0], [5.0]])
        ...     h.checkpoint()
        """
        self._journal.write_snapshot()

    @editing
    def refresh(self) -> bool:
        """Update a read-only hierarchy to what is in the file now; return whether it has changed.

        Examples
        --------
        >>> writer = et.open("durable.evertree")
        >>> reader = et.open("durable.evertree", read_only=True)
        >>> keys = writer.insert([[0.0], [5.0]])
        >>> len(reader), reader.refresh(), len(reader)
        (0, True, 2)
        >>> writer.close()
        """
        if not self.is_read_only:
            return False
        journal = self._journal
        before = journal.known
        file = SQLiteFile(journal.path, read_only=True)
        try:
            with file.reading():
                if file.last_seq() >= journal.seq and file.mark(journal.seq) == journal.known:
                    journal.replay(file, journal.seq)
                else:  # a new snapshot, or another file with the same name
                    self.state.replace(read_snapshot(file, self.metric))
                    journal.replay(file, file.seq)
        finally:
            file.close()
        return journal.known != before

    @editing
    def verify(self) -> None:
        """Check the file, page by page, and the tree, with statistics recomputed from the points.

        Raises
        ------
        CorruptFileError
            If the file is damaged.
        InvariantError
            If the tree is not valid: a bug in evertree.

        Examples
        --------
        >>> with et.open("durable.evertree") as h:
        ...     h.verify()
        """
        file = None if self._journal.is_closed else self._journal.file
        if file is None:
            self.refresh()
            file = SQLiteFile(self.path, read_only=True)
        try:
            file.check_integrity()
        finally:
            if file is not self._journal.file:
                file.close()
        self.validate()


def from_journal(journal: FileJournal, state: State, lock: WriterLock | None = None) -> DurableHierarchy:
    """The hierarchy in a file: read-only or, with the lock of the file, editable."""
    h = DurableHierarchy.__new__(DurableHierarchy)
    h.state, h._journal, state.journal = state, journal, journal
    h._release = None if lock is None else weakref.finalize(h, _release, os.getpid(), journal, lock)
    return h


def _release(pid: int, journal: FileJournal, lock: WriterLock) -> None:
    """Release the file, unless this is a child of the process that opened it."""
    journal.is_closed = True
    if os.getpid() == pid:
        if journal.file is not None:
            journal.file.close()
        lock.release()
