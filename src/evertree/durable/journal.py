"""`FileJournal`: edits of a durable hierarchy, on disk before they are applied in memory, and its snapshots."""

from __future__ import annotations

import math
import os
import time
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from evertree import edits
from evertree.durable.digest import digest_of
from evertree.durable.fingerprint import fingerprint
from evertree.durable.records import Record, pack, unpack
from evertree.durable.replay import ReplayCheck
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

#: About how many bytes of a snapshot are written per second.
_BYTES_PER_SECOND = 100e6

#: Seconds between two records of the progress of a refinement.
_PROGRESS_EVERY = 1.0

#: What keeps a record of a refinement, or a snapshot, from being written; edits go on without.
_CANNOT_WRITE = (StoreError, CorruptFileError, OSError, MemoryError)


@dataclass
class _Refinement:
    """A refinement in progress, and whether a part of it has been recorded."""

    goal: str
    is_resumed: bool = False


class _Progress(NamedTuple):
    """How far a tree has been refined: if it is the same, nothing was done."""

    steps: int
    moves: int
    n_pending: int
    goal: int
    ordered_at: int


def _progress(live: LiveTree) -> _Progress:
    goal = int(live.work.state["goal"][0])
    return _Progress(live.n_steps, live.n_moves + live.n_grafts, live.n_pending, goal, live.ordered_at)


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
        For a reader, the mark of the file.
    replayed : ReplayCheck
        Whether the edits that were made again gave the same tree.
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
        self._is_signed = False  # whether the file has the fingerprint of this process
        self._is_replacing = False  # the whole tree is being replaced: a metric, for example, must not edit it now
        self._refining: _Refinement | None = None  # the one in progress
        self._owed: list[tuple[str, Record, int]] = []  # records of refinements, to be written before the next edit
        self.replayed = ReplayCheck(path)
        self._note_progress()

    @property
    def _state(self) -> State:
        state = self._state_of()
        assert state is not None, "a journal lives no longer than its state"
        return state

    def replay(self, file: SQLiteFile, after: int) -> None:
        """Replay the edits that are in the file but not in memory."""
        began, self.seq, state = time.perf_counter(), after, self._state
        self.known = None  # if a refinement is interrupted, the next refresh begins with the snapshot
        for kind, payload, digest in file.read_journal(after):
            try:
                edit = unpack(state, kind, payload)
                if isinstance(edit, Refine):  # which lets readers in, and may be interrupted
                    edits.apply(state, edit)
                    self.seq = file.seq
                    self.replayed.compare(state, digest)
                else:
                    self.replayed.compare(state, digest)
                    with Uninterrupted(), state.lock.access:
                        edits.apply(state, edit)
                        self.seq = file.seq
            except SIGNS_OF_DAMAGE as error:
                raise CorruptFileError(
                    f"{self.path} is damaged: edit {file.seq} cannot be made again: {error}"
                ) from error
        self.known = file.mark(self.seq)
        self._debt += time.perf_counter() - began
        self._note_progress()
        if self.seq > after:
            self.replayed.finish(state, file.written_by())

    def write_to(self, file: SQLiteFile) -> None:
        """Write edits to this file from now on. If they gave another tree when they were made again, keep this one."""
        file.seq, self.file = self.seq, file
        if self.replayed.is_doubtful:
            self._snapshot_if_possible()

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
        """The block in which an edit is applied. It is written first, and retracted if the block raises.

        It is written with a digest of the tree before it.
        """
        self._refuse_while_replacing()
        file = self.writable()
        kind, record = pack(edit)
        if self._refining is not None:  # in a progress callback
            self._record_part(self._refining)
        self._pay()
        self._append(file, kind, record, digest_of(self._state))
        began = time.perf_counter()
        try:
            yield
        except BaseException:
            self._retract(file)
            raise
        self._debt += time.perf_counter() - began
        if self._refining is not None:
            self._note_progress()
        self._snapshot_if_worth(_WORTH, _SOONEST)

    def refining(self, until: str, run: Callable[[Callable[[Report], object]], Report], is_timed: bool) -> Report:
        """Run a refinement, and record its progress about once a second.

        If it has a time limit, no snapshot is written in the meantime.
        """
        self.writable()
        outer, this = self._refining, _Refinement(until)
        self._refining = this
        if outer is None:
            self._note_progress()
        else:  # in a progress callback of another refinement
            self._record_part(outer)
        last = began = time.perf_counter()

        def keep(report: Report) -> None:
            nonlocal last
            now = time.perf_counter()
            if now - last >= _PROGRESS_EVERY and report.stopped_by is None:
                self._record_part(this)
                self._debt += now - last
                last = now
                if not is_timed:
                    self._snapshot_if_worth(_WORTH, _SOONEST)

        try:
            report = run(keep)
            self._record_part(this, is_last=report.stopped_by not in ("moves", "seconds"))
        except BaseException:
            self._record_part(this)
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
        before = self._state.live, self._state.keys.copy(), self._state.column_names
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
                    self._state.live, self._state.keys, self._state.column_names = before
            raise

    def write_snapshot(self, has_new_edit: bool = False) -> None:
        """Write the state in memory, and empty the journal."""
        file = self.writable()
        with Uninterrupted():
            file.write_snapshot(*snapshot.contents(self._state), has_new_edit)
            self.seq = file.seq
            with self._state.lock.access:
                self._state.live.forget_bounds()
            self._debt, self._reluctance = 0.0, 1.0
            self._owed.clear()
            self._note_progress()

    def finish(self) -> None:
        """Write what is still to be written before the file is closed, and a snapshot of it all."""
        if self._trouble is None:
            file = self.writable()
            with Uninterrupted():
                self._pay_if_possible()
            if self._owed or self.seq > file.snapshot_seq():
                self._snapshot_if_possible()

    def is_mine(self) -> bool:
        """Whether this process may close the file."""
        return self.file is not None and not self.is_closed and os.getpid() == self._pid

    def _refuse_while_replacing(self) -> None:
        if self._is_replacing:
            raise ParameterError("a metric must not edit the hierarchy that it is called for; it may read it")

    def _retract(self, file: SQLiteFile) -> None:
        """Retract the record of an edit that was abandoned.

        The next edit writes a snapshot, as counts in memory may have traces of it.
        """
        try:
            file.retract()
        except BaseException as error:
            self._trouble = f"an edit was given up, and may still be in the file: close it and open it again ({error})"
            raise
        self.seq, self._debt = file.seq, math.inf

    def _note_progress(self) -> None:
        """Note that the file has a record of all refinement so far."""
        self._recorded = self._state.live, _progress(self._state.live)

    def _record_part(self, refinement: _Refinement, is_last: bool = False) -> None:
        """Record what a refinement has done since the last record, or that it is done."""
        live, known = self._recorded
        now = _progress(self._state.live)
        if live is not self._state.live or now == known:
            return
        moves, steps = (None, None) if is_last else (now.moves - known.moves, now.steps - known.steps)
        self._record(Refine(refinement.goal, moves, steps, live.ordered_at, refinement.is_resumed))
        refinement.is_resumed = True

    def _record(self, refinement: Refine) -> None:
        """Record a refinement, with a digest of the tree after it. If that fails, it is done later."""
        with Uninterrupted():
            self._owed.append((*pack(refinement), digest_of(self._state)))
            self._note_progress()
            self._pay_if_possible()

    def _pay_if_possible(self) -> None:
        try:
            self._pay()
        except _CANNOT_WRITE as error:
            warnings.warn(f"how far the refinement is could not be written; all edits are safe: {error}", stacklevel=3)

    def _pay(self) -> None:
        """Write the outstanding records. Ctrl-C must not interrupt it."""
        while self._owed:
            self._append(self.writable(), *self._owed[0])
            del self._owed[0]

    def _append(self, file: SQLiteFile, kind: str, record: Record, digest: int) -> None:
        if not self._is_signed:
            file.sign(fingerprint())
            self._is_signed = True
        file.append(kind, record, digest)
        self.seq = file.seq

    def _snapshot_if_worth(self, worth: float, soonest: float) -> None:
        if self._debt <= self._reluctance * soonest:
            return
        if self._debt > self._reluctance * worth * self._state.live.n_bytes / _BYTES_PER_SECOND:
            self._snapshot_if_possible()

    def _snapshot_if_possible(self) -> None:
        try:
            self.write_snapshot()
        except _CANNOT_WRITE as error:
            self._reluctance *= 2
            warnings.warn(f"no snapshot could be written; all edits are safe: {error}", stacklevel=2)
