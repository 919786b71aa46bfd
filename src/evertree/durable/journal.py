"""`FileJournal`: edits of a durable hierarchy, on disk before they are applied in memory, and its snapshots."""

from __future__ import annotations

import os
import time
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from evertree import edits
from evertree.durable.records import pack, unpack
from evertree.durable.sqlite_file import SQLiteFile
from evertree.edits import Edit, Refine
from evertree.errors import ClosedError, CorruptFileError, ParameterError, ReadOnlyError, StoreError
from evertree.io import snapshot
from evertree.io.archive import SIGNS_OF_DAMAGE
from evertree.locking import Uninterrupted
from evertree.state import State
from evertree.tree import LiveTree
from evertree.tree.refine import Report

#: A snapshot is written when replaying the edits since the last one would take this many times as long as writing it,
#: so that snapshots take at most a tenth of the time, and not before this many seconds of edits.
_WORTH = 10.0
_SOONEST = 1.0

#: On closing, when no edit is waiting, sooner.
_WORTH_CLOSING = 0.5
_SOONEST_CLOSING = 0.05

#: About how many bytes of a snapshot are written per second.
_BYTES_PER_SECOND = 100e6

#: Seconds between two records of the progress of a refinement.
_PROGRESS_EVERY = 1.0

#: What keeps a record of a refinement, or a snapshot, from being written; edits go on without.
_CANNOT_WRITE = (StoreError, CorruptFileError, OSError, MemoryError)


class FileJournal:
    """The file of a durable hierarchy, kept in step with its state in memory.

    Parameters
    ----------
    path
        The file.
    state
        The state in memory.

    Attributes
    ----------
    file : SQLiteFile or None
        The file, open for writing; None if it was opened read-only.
    seq : int
        The number of the last edit in memory.
    known : tuple or None
        For a reader, the fingerprint of the file.
    """

    def __init__(self, path: str, state: State) -> None:
        self.path = path
        self.file: SQLiteFile | None = None
        self.is_closed = False
        self.seq = 0
        self.known: tuple[bytes, int | None] | None = None
        self._state_of = weakref.ref(state)  # the state holds its journal
        self._pid = os.getpid()
        self._debt = 0.0  # seconds that it would take to replay the edits since the last snapshot
        self._reluctance = 1.0  # grows when snapshots cannot be written
        self._trouble: str | None = None  # why memory and file may differ
        self._is_replacing = False  # the whole tree is being replaced: a metric, for example, must not edit it now
        self._refining: str | None = None  # the goal of a refinement in progress
        self._owed: list[Refine] = []  # refinements with records still to be written, before the next edit
        self._note_moves()

    @property
    def _state(self) -> State:
        state = self._state_of()
        assert state is not None, "a journal lives no longer than its state"
        return state

    def replay(self, file: SQLiteFile, after: int) -> None:
        """Replay the edits that are in the file but not in memory."""
        began, self.seq = time.perf_counter(), after
        for kind, payload in file.read_journal(after):
            try:
                edit = unpack(self._state, kind, payload)
                if isinstance(edit, Refine):  # which lets readers in, and may be interrupted
                    edits.apply(self._state, edit)
                    self.seq = file.seq
                else:
                    with Uninterrupted(), self._state.lock.access:
                        edits.apply(self._state, edit)
                        self.seq = file.seq
            except SIGNS_OF_DAMAGE as error:
                raise CorruptFileError(
                    f"{self.path} is damaged: edit {file.seq} cannot be made again: {error}"
                ) from error
        self.known = file.fingerprint(self.seq)
        self._debt += time.perf_counter() - began
        self._note_moves()

    def write_to(self, file: SQLiteFile) -> None:
        """Write edits to this file from now on."""
        file.seq, self.file = self.seq, file

    def writable(self) -> SQLiteFile:
        """The file, if it can be written to."""
        if self.file is None:
            raise ReadOnlyError(f"{self.path} was opened with read_only=True: open it for writing, or edit a copy()")
        if self.is_closed:
            raise ClosedError(f"{self.path} is closed: open it again, or edit a copy()")
        if os.getpid() != self._pid:
            raise StoreError(f"{self.path} was opened by process {self._pid}: a child has to open it itself")
        if self._trouble is not None:
            raise StoreError(self._trouble)
        return self.file

    @contextmanager
    def recording(self, edit: Edit) -> Iterator[None]:
        """The block in which an edit is applied. It is written first, and retracted if the block raises."""
        self._refuse_while_replacing()
        file = self.writable()
        kind, payload = pack(edit)
        if self._refining is not None:  # in a progress callback
            self._record_moves(self._refining)
        self._pay()
        file.append(kind, payload)
        self.seq = file.seq
        began = time.perf_counter()
        try:
            yield
        except BaseException:
            self._retract(file)
            raise
        self._debt += time.perf_counter() - began
        if self._refining is not None:
            self._note_moves()
        self._snapshot_if_worth(_WORTH, _SOONEST)

    def refining(self, until: str, run: Callable[[Callable[[Report], object]], Report], is_timed: bool) -> Report:
        """Run a refinement, and record its progress about once a second.

        If it has a time limit, no snapshot is written in the meantime.
        """
        self.writable()
        outer, self._refining = self._refining, until
        if outer is None:
            self._note_moves()
        else:  # in a progress callback of another refinement
            self._record_moves(outer)
        live, began = self._state.live, time.perf_counter()
        last = began

        def keep(report: Report) -> None:
            nonlocal last
            now = time.perf_counter()
            if now - last >= _PROGRESS_EVERY and report.stopped_by is None:
                self._record_moves(until)
                self._debt += now - last
                last = now
                if not is_timed:
                    self._snapshot_if_worth(_WORTH, _SOONEST)

        try:
            report = run(keep)
            if report.stopped_by in ("moves", "seconds"):
                self._record_moves(until)
            elif live is self._state.live and (report.checks or report.searches):
                self._record(Refine(until, None))
        except BaseException:
            self._record_moves(until)
            raise
        finally:
            self._refining = outer
            self._debt += time.perf_counter() - last
        if not is_timed and time.perf_counter() - began > _SOONEST:
            self._snapshot_if_worth(_WORTH, _SOONEST)
        return report

    @contextmanager
    def replacing(self) -> Iterator[None]:
        """The block in which the whole tree is replaced. At its end it is written as a snapshot, or else restored."""
        self.writable()
        self._refuse_while_replacing()
        before = self._state.live, self._state.keys.copy()
        self._is_replacing, is_written = True, False
        try:
            try:
                yield
            finally:
                self._is_replacing = False
            with Uninterrupted():  # Ctrl-C comes when it is known that the file has the new tree
                self.write_snapshot(has_new_edit=True)
                is_written = True
        except BaseException:
            if not is_written:
                with self._state.lock.access:
                    self._state.live, self._state.keys = before
            raise

    def write_snapshot(self, has_new_edit: bool = False) -> None:
        """Write the state in memory, and empty the journal."""
        file = self.writable()
        with Uninterrupted():
            file.write_snapshot(*snapshot.contents(self._state), has_new_edit)
            self.seq = file.seq
            self._debt, self._reluctance = 0.0, 1.0
            self._owed.clear()
            self._note_moves()

    def finish(self) -> None:
        """Write what is still to be written before the file is closed."""
        if self._trouble is None:
            with Uninterrupted():
                self._pay_if_possible()
            self._snapshot_if_worth(_WORTH_CLOSING, _SOONEST_CLOSING)

    def is_mine(self) -> bool:
        """Whether this process may close the file."""
        return self.file is not None and not self.is_closed and os.getpid() == self._pid

    def _refuse_while_replacing(self) -> None:
        if self._is_replacing:
            raise ParameterError("a metric must not edit the hierarchy that it is called for; it may read it")

    def _retract(self, file: SQLiteFile) -> None:
        """Retract the record of an edit that was abandoned and left no trace in memory."""
        try:
            file.retract()
        except BaseException as error:
            self._trouble = f"an edit was given up, and may still be in the file: close it and open it again ({error})"
            raise
        self.seq = file.seq

    def _note_moves(self) -> None:
        """Note that the file has a record of all moves so far."""
        live = self._state.live
        self._recorded: tuple[LiveTree, int] = live, live.n_moves + live.n_grafts

    def _record_moves(self, goal: str) -> None:
        """Record the moves of a refinement that are not recorded yet."""
        live, known = self._recorded
        moves = self._state.live.n_moves + self._state.live.n_grafts - known
        if live is self._state.live and moves > 0:
            self._record(Refine(goal, moves))

    def _record(self, refinement: Refine) -> None:
        """Record some moves, or all up to the goal. If that fails, it is done later; only time is lost."""
        with Uninterrupted():
            self._owed.append(refinement)
            self._note_moves()
            self._pay_if_possible()

    def _pay_if_possible(self) -> None:
        try:
            self._pay()
        except _CANNOT_WRITE as error:
            warnings.warn(f"how far the refinement is could not be written; all edits are safe: {error}", stacklevel=3)

    def _pay(self) -> None:
        """Write the outstanding records. Ctrl-C must not interrupt it."""
        while self._owed:
            file = self.writable()
            file.append(*pack(self._owed[0]))
            self.seq = file.seq
            del self._owed[0]

    def _snapshot_if_worth(self, worth: float, soonest: float) -> None:
        if self._debt <= self._reluctance * soonest:
            return
        if self._debt <= self._reluctance * worth * self._state.live.n_bytes / _BYTES_PER_SECOND:
            return
        try:
            self.write_snapshot()
        except _CANNOT_WRITE as error:
            self._reluctance *= 2
            warnings.warn(f"no snapshot could be written; all edits are safe: {error}", stacklevel=2)
