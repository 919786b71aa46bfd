"""`open`: a durable hierarchy in a new or an existing file."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from evertree.durable.durable_hierarchy import DurableHierarchy, from_journal
from evertree.durable.journal import FileJournal
from evertree.durable.lock import WriterLock
from evertree.durable.snapshots import check_tree, read_snapshot
from evertree.durable.sqlite_file import SQLiteFile, check_place
from evertree.errors import FileFormatError, ParameterError
from evertree.hierarchy import Hierarchy, from_state
from evertree.input.arrays import as_column_names
from evertree.input.metrics import ALIASES
from evertree.io import snapshot
from evertree.locking import Uninterrupted
from evertree.state import State

#: The parameters of `Hierarchy` other than the linkage and the metric.
_OPTIONS = ("metric_params", "goal", "search_width", "working_memory", "seed", "column_names")


def open(  # noqa: A001  as in the standard library's modules that have an open of their own
    path: str | os.PathLike[str],
    linkage: str | None = None,
    metric: str | Callable[..., Any] | None = None,
    *,
    read_only: bool = False,
    start: Hierarchy | None = None,
    **options: Any,
) -> DurableHierarchy:
    """Open a durable hierarchy: one file, with every edit committed before the call returns.

    The file is an SQLite database that includes the points. Whatever happens to the process or the machine, opening it
    again gives the hierarchy with every acknowledged edit, and the same tree. After a crash, another evertree or a
    computer of another kind may come to another tree of the same points: then there is a `ReplayWarning`.

    Parameters
    ----------
    path : str or path
        The file; it is created if it does not exist.
    linkage, metric : optional
        As for `Hierarchy`. By default those of the file, or ``"ward"`` and ``"euclidean"`` for a new one. A file cannot
        hold a function: pass it every time. Without it points can be removed but not inserted.
    read_only : bool
        Only read the file, even while another process writes to it. The hierarchy is as of now; see
        `DurableHierarchy.refresh`.
    start : Hierarchy, optional
        For a new file: the initial hierarchy, such as ``et.load(path)`` or ``et.Hierarchy.from_linkage(...)``. It is
        copied.
    **options
        ``metric_params``, ``goal``, ``search_width``, ``working_memory``, ``seed`` and ``column_names``, as for
        `Hierarchy`.

    Returns
    -------
    h : DurableHierarchy
        Close it, or use ``with``.

    Raises
    ------
    LockedError
        If the file is open for writing elsewhere.
    CorruptFileError
        If the file is damaged. It is left unchanged.
    NewerFormatError
        If a newer evertree wrote it.
    ParameterError
        If an option differs from that of the file.

    Warns
    -----
    ReplayWarning
        If the edits since the last snapshot, made again here, give another tree than where they were made.

    Notes
    -----
    While a file is open, SQLite keeps two more next to it, with the suffixes ``-wal`` and ``-shm``, and there is a lock
    file with the suffix ``-lock``. Copy the file only when it is closed. Locks do not work on some network file
    systems.

    When opening the file would take long, an edit writes a snapshot before it returns. With a million points this takes
    some seconds.

    Examples
    --------
    >>> with et.open("durable.evertree", linkage="average") as h:
    ...     keys = h.insert([[0.0], [5.0], [1.0]], keys=["a", "b", "c"])
    >>> with et.open("durable.evertree") as h:  # in another process, on another day
    ...     h.remove(["b"])
    ...     h.keys(), h.linkage
    (['a', 'c'], 'average')
    """
    place = os.path.realpath(os.fsdecode(path))
    unknown = set(options) - set(_OPTIONS)
    if unknown:
        raise TypeError(f"open() got an unexpected option {min(unknown)!r}; there are {', '.join(_OPTIONS)}")
    wanted = {"linkage": linkage, "metric": metric, **options}
    wanted = {name: value for name, value in wanted.items() if value is not None or name == "search_width"}
    if "column_names" in wanted:
        wanted["column_names"] = as_column_names(wanted["column_names"])
    check_place(place, read_only)
    if read_only:
        if start is not None:
            raise ParameterError("start must be None with read_only=True")
        return _read(place, wanted)
    lock, was_there = None, os.path.exists(place)
    try:
        with Uninterrupted():  # Ctrl-C waits until the lock is known here
            lock = WriterLock(place)
        return _write(place, lock, wanted, start)
    except BaseException:
        if lock is not None:
            if not was_there:
                with suppress(OSError):  # it was not made or, on Windows, another program looks at it
                    os.unlink(place)
            lock.release()
        raise


def _read(place: str, wanted: Mapping[str, Any]) -> DurableHierarchy:
    restored = _restored(place, wanted)
    if restored is None:
        raise FileFormatError(f"{place} is empty: open it for writing first")
    _take_names(restored[1], wanted)
    return from_journal(*restored)


def _write(place: str, lock: WriterLock, wanted: Mapping[str, Any], start: Hierarchy | None) -> DurableHierarchy:
    # Read first, as a reader does, so that a damaged file is left unchanged, with its log.
    restored = _restored(place, wanted) if os.path.exists(place) and os.path.getsize(place) else None
    if restored is not None and start is not None:
        raise ParameterError(f"start must be None for a file that is there already; there is {place}")
    file = SQLiteFile(place, is_checked=True)
    try:
        if restored is None:
            h = Hierarchy(**wanted) if start is None else start.copy()
            h.n_jobs = None  # edits are replayed when the file is opened, by one thread as before
            _check_options(place, h, wanted)
            file.write_snapshot(*snapshot.contents(h.state))
            restored = FileJournal(place, h.state), h.state
        journal, state = restored
        journal.write_to(file)
        if _take_names(state, wanted):
            journal.write_snapshot()
        return from_journal(journal, state, lock)
    except BaseException:
        file.close()
        raise


def _restored(place: str, wanted: Mapping[str, Any]) -> tuple[FileJournal, State] | None:
    """The contents of a file, read-only; None if the file has no hierarchy yet."""
    file = SQLiteFile(place, read_only=True)
    try:
        if file.is_new:
            return None
        with file.reading():
            state = read_snapshot(file, wanted.get("metric"))
            journal = FileJournal(place, state)
            journal.replay(file, file.seq)
    finally:
        file.close()
    check_tree(state, place)
    _check_options(place, from_state(state), wanted)
    return journal, state


def _take_names(state: State, wanted: Mapping[str, Any]) -> bool:
    """Give names to the columns of points that came without any, if they are wanted; return whether they are new."""
    is_new = state.column_names is None and "column_names" in wanted
    if is_new:
        state.column_names = wanted["column_names"]
    return is_new


def _check_options(place: str, h: Hierarchy, wanted: Mapping[str, Any]) -> None:
    """Refuse options that differ from those of the hierarchy in the file."""
    for name, value in wanted.items():
        found = getattr(h, name)
        if name == "column_names" and found is None and h.n_columns in (None, len(value)):
            continue  # the points came without names
        if name == "metric" and isinstance(value, str):
            is_same = ALIASES.get(value, value) == found
        else:
            is_same = _params_agree(found, value) if name == "metric_params" else found == value
        if not is_same:
            shown = h.state.live.scheme.metric_name if name == "metric" else repr(found)
            change = f", or change this one with set_{name}()" if name in ("linkage", "metric") else ""
            raise ParameterError(
                f"{name} must be {shown}, as in {place}; it is {value!r}",
                parameter=name,
                remedy=f"use another file{change}",
            )


def _params_agree(found: Mapping[str, Any] | None, wanted: Mapping[str, Any]) -> bool:
    known = found or {}
    return known.keys() == wanted.keys() and all(np.array_equal(known[name], wanted[name]) for name in known)
