"""`DurableHierarchy`: a hierarchy whose edits are on disk before they are made in memory."""

from __future__ import annotations

import os
import time
import warnings
import weakref
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from evertree.durable.lock import WriterLock
from evertree.durable.records import pack, pack_edit, pack_window
from evertree.durable.replay import make_again, read_snapshot
from evertree.durable.sqlite_file import Database
from evertree.errors import ClosedError, ParameterError, ReadOnlyError, StoreError
from evertree.hierarchy import Hierarchy
from evertree.hierarchy.workings import UNRECORDED, Edit, checked_progress
from evertree.input.arrays import GOALS, as_choice
from evertree.io import snapshot
from evertree.locking import Uninterrupted, one_at_a_time
from evertree.tree import Incoming, LiveTree
from evertree.tree.refine import Report
from evertree.tree.scheme import Scheme
from evertree.windows import Moment, Window

#: A snapshot is written when making the edits since the last one again would take this many times as long as writing
#: it, so that snapshots take a tenth of the time or less, and no sooner than after so many seconds of edits.
_WORTH = 10.0
_SOONEST = 1.0

#: On closing, where no edit is waiting, sooner.
_WORTH_CLOSING = 0.5
_SOONEST_CLOSING = 0.05

#: Bytes of a snapshot that are written in a second, about.
_BYTES_PER_SECOND = 100e6

#: Seconds between two records of how far a refinement is.
_PROGRESS_EVERY = 1.0


# What is done with edits: they are written down; they are in the file already; or a metric, say, must not make any now.
_RECORDING, _REPLAYING, _CHANGING = "recording", "replaying", "changing"


class DurableHierarchy(Hierarchy):
    """A hierarchy that lives in one file; see `evertree.open`, which makes it.

    It has the verbs of `Hierarchy`. Each edit is committed to the file before the call returns, and survives a crash of
    the process or of the machine. `copy` gives a hierarchy in memory.

    Examples
    --------
    >>> with et.open("durable.evertree") as h:
    ...     keys = h.insert([[0.0], [5.0], [1.0]])
    >>> et.open("durable.evertree", read_only=True)
    DurableHierarchy(linkage='ward', metric='euclidean'): 3 points, 1 column of float64, in durable.evertree, read only
    """

    _path: str
    _pid: int
    _database: Database | None  # None where it was opened for reading alone
    _seq: int  # of the last edit that is in memory
    _known: tuple[bytes, int | None] | None  # the fingerprint of the file, of a reader
    _mode: str  # what is done with edits
    _debt: float  # seconds that it would take to make the edits since the last snapshot again
    _reluctance: float  # grows when snapshots cannot be written
    _trouble: str | None  # why memory and file may differ
    _refining: str | None  # the goal of a refinement that is going on
    _recorded_moves: tuple[LiveTree, int]  # the tree, and its moves and grafts, of which there are records
    _owed: list[bytes]  # records of refinements that could not be written, and go before the next edit
    _closing: weakref.finalize[..., Any]

    def __init__(self, *_: object, **__: object) -> None:
        raise TypeError("a DurableHierarchy is made by evertree.open(path, ...), which takes a start=")

    @classmethod
    def _over(cls, path: str, h: Hierarchy) -> Self:
        """Take over a hierarchy in memory, which is what is in the file, for reading alone."""
        durable = cls._assembled(h.state.seed, h.state.live, h.state.keys, h.state.window)
        durable._path, durable._pid = path, os.getpid()
        durable._database, durable._seq, durable._known = None, 0, None
        durable._mode = _RECORDING
        durable._debt, durable._reluctance = 0.0, 1.0
        durable._trouble = durable._refining = None
        durable._owed = []
        durable._closing = weakref.finalize(durable, _release, os.getpid(), None, None)
        return durable

    def _write_to(self, database: Database, lock: WriterLock) -> None:
        """From now on it may be edited."""
        database.seq = self._seq
        self._closing.detach()
        self._database = database
        self._closing = weakref.finalize(self, _release, os.getpid(), database, lock)

    @property
    def path(self) -> str:
        """The file, as an absolute path.

        Examples
        --------
        >>> with et.open("durable.evertree") as h:
        ...     h.path.endswith("durable.evertree")
        True
        """
        return self._path

    @property
    def is_read_only(self) -> bool:
        """Whether the file was opened for reading alone.

        Examples
        --------
        >>> with et.open("durable.evertree") as h:
        ...     h.is_read_only
        False
        """
        return self._database is None

    def __repr__(self) -> str:
        state = ", read only" if self.is_read_only else "" if self._closing.alive else ", closed"
        return f"Durable{super().__repr__()}, in {os.path.basename(self._path)}{state}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @one_at_a_time
    def close(self) -> None:
        """Let others write to the file. The hierarchy can still be read. `with` does it at the end of its block.

        Where it pays, a snapshot is written first, so that the file opens fast.

        Examples
        --------
        >>> h = et.open("durable.evertree")
        >>> keys = h.insert([[0.0], [5.0]])
        >>> h.close()
        >>> len(h)
        2
        """
        if self._database is None or not self._closing.alive or os.getpid() != self._pid:
            return
        try:
            if self._trouble is None:
                with Uninterrupted():
                    self._pay_if_possible()
                self._snapshot_if_worth(_WORTH_CLOSING, _SOONEST_CLOSING)
        finally:
            self._closing()

    @one_at_a_time
    def checkpoint(self) -> None:
        """Write a snapshot now, so that the file opens fast. It happens by itself from time to time.

        Examples
        --------
        >>> with et.open("durable.evertree") as h:
        ...     keys = h.insert([[0.0], [5.0]])
        ...     h.checkpoint()
        """
        self._write_snapshot(has_new_edit=False)

    @one_at_a_time
    def refresh(self) -> bool:
        """Bring a hierarchy that was opened for reading to what is in the file now; return whether it has changed.

        Examples
        --------
        >>> writer = et.open("durable.evertree")
        >>> reader = et.open("durable.evertree", read_only=True)
        >>> keys = writer.insert([[0.0], [5.0]])
        >>> len(reader), reader.refresh(), len(reader)
        (0, True, 2)
        >>> writer.close()
        """
        if self._database is not None:
            return False
        before = self._known
        database = Database(self._path, read_only=True)
        try:
            with database.reading():
                if database.last_seq() >= self._seq and database.fingerprint(self._seq) == self._known:
                    self._replay(database, self._seq)
                else:  # a new snapshot, or another file by the same name
                    h = read_snapshot(database, self.metric)
                    with self.state.turns.door:
                        self.state.live, self.state.keys, self.state.window = h.state.live, h.state.keys, h.state.window
                        self.__dict__.pop("_lineage", None)
                    self._replay(database, database.seq)
        finally:
            database.close()
        return self._known != before

    @one_at_a_time
    def verify(self) -> None:
        """Check the file, page by page, and the tree, its statistics recomputed from the points.

        Raises
        ------
        CorruptFileError
            If the file is damaged.
        InvariantError
            If the tree is none: a bug in evertree.

        Examples
        --------
        >>> with et.open("durable.evertree") as h:
        ...     h.verify()
        """
        database = self._database if self._closing.alive else None
        if database is None:
            self.refresh()
            database = Database(self._path, read_only=True)
        try:
            database.check_integrity()
        finally:
            if database is not self._database:
                database.close()
        self.validate()

    @one_at_a_time
    def refine(
        self,
        seconds: float | None = None,
        moves: int | None = None,
        until: str | None = None,
        progress: Callable[[Report], object] | None = None,
    ) -> Report:
        """Improve the tree, as `Hierarchy.refine` does. How far it is goes into the file about once a second.

        After a crash the tree is as it was at that moment at the latest, and has all edits. Where `seconds` are given,
        no snapshot is written in the meantime.

        Examples
        --------
        >>> with et.open("durable.evertree") as h:
        ...     keys = h.insert(np.random.default_rng(0).normal(size=(100, 2)))
        ...     h.refine().stopped_by
        'stable'
        """
        if self._mode != _RECORDING:
            return super().refine(seconds, moves, until, progress)
        self._writable()
        goal = as_choice("until", self.goal if until is None else until, GOALS)
        callback = checked_progress(progress)
        outer, self._refining = self._refining, goal
        if outer is None:
            self._note_moves()
        else:  # in a progress callback of another refinement
            self._record_moves(outer)
        live, began = self.state.live, time.perf_counter()
        last = began

        def keep(report: Report) -> None:
            nonlocal last
            now = time.perf_counter()
            if now - last >= _PROGRESS_EVERY and report.stopped_by is None:
                self._record_moves(goal)
                self._debt += now - last
                last = now
                if seconds is None:
                    self._snapshot_if_worth(_WORTH, _SOONEST)
            if callback is not None:
                callback(report)

        try:
            report = super().refine(seconds, moves, until, keep)
            if report.stopped_by in ("moves", "seconds"):
                self._record_moves(goal)
            elif live is self.state.live and (report.checks or report.searches):
                self._record_refinement(goal, None)
        except BaseException:
            self._record_moves(goal)
            raise
        finally:
            self._refining = outer
            self._debt += time.perf_counter() - last
        if seconds is None and time.perf_counter() - began > _SOONEST:
            self._snapshot_if_worth(_WORTH, _SOONEST)
        return report

    def _set_threads(self, n_threads: int | None) -> None:
        if n_threads is not None:
            raise ParameterError(
                "n_jobs must be None for a durable hierarchy: when the file is opened, edits are made again as one "
                "thread made them. Build a large tree in memory with n_jobs, and give it to open(path, start=...)"
            )

    def _set_scheme(self, scheme: Scheme, X: Any) -> Report:
        """All or nothing: the tree of another linkage is in the file as a snapshot, or as it was."""
        self._writable()
        self._refuse_while_changing()
        before = self.state.live, self.state.keys.copy()
        try:
            with self._doing(_CHANGING):
                report = super()._set_scheme(scheme, X)
            self._write_snapshot(has_new_edit=True)
        except BaseException:
            with self.state.turns.door:
                self.state.live, self.state.keys = before
            raise
        return report

    def _refuse_while_changing(self) -> None:
        if self._mode == _CHANGING:
            raise ParameterError("a metric must not edit the hierarchy that it is called for; it may read it")

    def _recorded(
        self,
        kind: str,
        keys: list[Hashable] | None,
        incoming: Incoming | None = None,
        weights: NDArray[np.float64] | None = None,
        moment: Moment | None = None,
    ) -> Edit:
        if self._mode == _REPLAYING:
            return UNRECORDED
        self._refuse_while_changing()
        return _DurableEdit(self, self._writable(), kind, pack_edit(keys, incoming, weights, moment))

    def _recorded_window(self, limits: Window | None, moment: Moment | None) -> Edit:
        if self._mode == _REPLAYING:
            return UNRECORDED
        self._refuse_while_changing()
        return _DurableEdit(self, self._writable(), "keep", pack_window(limits, moment))

    @contextmanager
    def _doing(self, mode: str) -> Iterator[None]:
        before, self._mode = self._mode, mode
        try:
            yield
        finally:
            self._mode = before

    def _replay(self, database: Database, after: int) -> None:
        """Make the edits again that are in the file and not in memory."""
        began, self._seq = time.perf_counter(), after
        with self._doing(_REPLAYING):
            for kind, payload in database.read_journal(after):
                make_again(self, kind, payload, self._path, database.seq)
                self._seq = database.seq
        self._known = database.fingerprint(self._seq)
        self._debt += time.perf_counter() - began

    def _record_moves(self, goal: str) -> None:
        """Write down the moves of a refinement of which there is no record."""
        live, known = self._recorded_moves
        moves = self.state.live.n_moves + self.state.live.n_grafts - known
        if live is self.state.live and moves > 0:
            self._record_refinement(goal, moves)

    def _record_refinement(self, goal: str, moves: int | None) -> None:
        """Write down some moves, or all up to the goal. If that fails, nothing is lost but time: later will do."""
        with Uninterrupted():
            self._owed.append(pack({"until": goal, "moves": moves}, {}))
            self._note_moves()
            self._pay_if_possible()

    def _pay_if_possible(self) -> None:
        try:
            self._pay()
        except StoreError as error:
            warnings.warn(f"how far the refinement is could not be written; all edits are safe: {error}", stacklevel=3)

    def _pay(self) -> None:
        """Write the records that are owed. Ctrl-C must not come in the middle of it."""
        while self._owed:
            database = self._writable()
            database.append("refine", self._owed[0])
            self._seq = database.seq
            del self._owed[0]

    def _note_moves(self) -> None:
        """The file knows of all moves so far."""
        self._recorded_moves = self.state.live, self.state.live.n_moves + self.state.live.n_grafts

    def _write_snapshot(self, has_new_edit: bool) -> None:
        database = self._writable()
        with Uninterrupted():
            database.write_snapshot(*snapshot.contents(self.state.live, self.state.keys, self._options), has_new_edit)
            self._seq = database.seq
            self._debt, self._reluctance = 0.0, 1.0
            self._owed.clear()
            self._note_moves()

    def _snapshot_if_worth(self, worth: float, soonest: float) -> None:
        if self._debt <= self._reluctance * soonest:
            return
        if self._debt <= self._reluctance * worth * self.state.live.n_bytes / _BYTES_PER_SECOND:
            return
        try:
            self.checkpoint()
        except StoreError as error:
            self._reluctance *= 2
            warnings.warn(f"no snapshot could be written; all edits are safe: {error}", stacklevel=2)

    def _writable(self) -> Database:
        if self._database is None:
            raise ReadOnlyError(f"{self._path} was opened with read_only=True: open it for writing, or edit a copy()")
        if not self._closing.alive:
            raise ClosedError(f"{self._path} is closed: open it again, or edit a copy()")
        if os.getpid() != self._pid:
            raise StoreError(f"{self._path} was opened by process {self._pid}: a child has to open it itself")
        if self._trouble is not None:
            raise StoreError(self._trouble)
        return self._database


class _DurableEdit(Edit):
    """Writes an edit down before it is made, and strikes it out if it was not."""

    def __init__(self, h: DurableHierarchy, database: Database, kind: str, payload: bytes) -> None:
        self._h, self._database, self._kind, self._payload = h, database, kind, payload

    def __enter__(self) -> Self:
        h = self._h
        if h._refining is not None:  # in a progress callback
            h._record_moves(h._refining)
        if h._owed:
            h._pay()
        self._database.append(self._kind, self._payload)
        h._seq = self._database.seq
        self._is_undone = False
        self._began = time.perf_counter()
        return self

    def __exit__(self, *error: object) -> None:
        if error[0] is not None and not self._is_undone:
            self.undo()
        if self._is_undone:
            return
        h = self._h
        h._debt += time.perf_counter() - self._began
        if h._refining is not None:
            h._note_moves()
        h._snapshot_if_worth(_WORTH, _SOONEST)

    def undo(self) -> None:
        """The edit was given up, and left no trace in memory."""
        h = self._h
        self._is_undone = True
        try:
            self._database.retract()
        except StoreError as error:
            h._trouble = f"an edit was given up, and may still be in the file: close it and open it again ({error})"
            raise
        h._seq = self._database.seq


def _release(pid: int, database: Database | None, lock: WriterLock | None) -> None:
    """Give up the file, unless this is a child of the process that opened it."""
    if os.getpid() != pid:
        return
    if database is not None:
        database.close()
    if lock is not None:
        lock.release()
