"""The exceptions of evertree: one tree, so that ``except EvertreeError`` catches them all.

Where a built-in exception has the same meaning, ours is also a subclass of it: code written for ``ValueError`` or
``KeyError`` keeps working.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
from numpy.typing import NDArray


class EvertreeError(Exception):
    """Base class of everything that evertree raises on purpose.

    Parameters
    ----------
    *args
        What is wrong, as for other exceptions.
    parameter : str, optional
        The parameter at fault, if the message begins with its name. The command line names the option instead.
    remedy : str, optional
        What to do about it; the end of the message. Parameters are written ``name=`` or ``name=value`` and methods
        ``name()``, so that the command line can replace them by its own terms.
    """

    def __init__(self, *args: object, parameter: str | None = None, remedy: str | None = None) -> None:
        super().__init__(*args)
        self.parameter = parameter
        self.remedy = remedy

    @property
    def problem(self) -> str:
        """The message without the remedy.

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> keys = h.insert([[0.0]], keys=["a"])
        >>> try:
        ...     h.insert([[1.0]], keys=["a"])
        ... except et.EvertreeError as error:
        ...     error.problem, error.remedy
        ("keys must be new; taken already: 'a'", 'use update() to change live points')
        """
        # KeyError would show the repr of the text, with quotes and escapes.
        return str(self.args[0]) if len(self.args) == 1 else super().__str__()

    def __str__(self) -> str:
        return self.problem if self.remedy is None else f"{self.problem}: {self.remedy}"


class EvertreeWarning(UserWarning):
    """Base class of all warnings of evertree."""


class PrecisionWarning(EvertreeWarning):
    """Values are rounded to float32, because the first points of the hierarchy were float32."""


class ReplayWarning(EvertreeWarning):
    """The edits of a durable hierarchy, made again by another evertree or on another computer, gave another tree.

    It is a valid tree of the same points, keys and weights.
    """


class ParameterError(EvertreeError, ValueError):
    """An option has an invalid value. The message lists the valid ones."""


class TimeError(ParameterError):
    """A time that goes back, or is from another clock than earlier ones. The message says how to continue."""


class LinkageError(ParameterError):
    """A linkage and a metric that are unknown or cannot be combined. The message lists valid combinations."""


class UnstableError(EvertreeError):
    """The tree is not a batch tree: `refine` with ``search_width=None`` makes it one."""


class DataError(EvertreeError, ValueError):
    """The points themselves cannot be used. The message names the rows."""


class DimensionError(DataError):
    """The wrong number of dimensions, columns or rows: reshape, or use the same columns as earlier points."""


class ColumnNamesError(DimensionError):
    """A data frame whose columns are not those of earlier points. The message names them."""


class NotNumericError(DataError, TypeError):
    """The points are not real numbers or not a collection, or a metric returned something that is not a number."""


class NotFiniteError(DataError):
    """NaN or infinity among the values: fill them in, or drop their rows, which the message names."""


class MagnitudeError(DataError):
    """Values so large that their squares overflow: scale the data."""


class ZeroVectorError(DataError):
    """A row of zeros, or of equal values, for which the metric is undefined: it has no direction or no distribution.

    Drop it, or use another metric.
    """


class WeightError(DataError):
    """Weights that are not positive numbers, one per point: leave out points that should have no weight."""


class KeysError(EvertreeError):
    """Something is wrong with the keys. The message names them."""


class UnknownKeyError(KeysError, KeyError):
    """A key that no live point has: see ``keys()``, or check ``key in h`` first."""


class DuplicateKeyError(KeysError, ValueError, KeyError):
    """A key that is already in use or given twice: `update` changes a live point."""


class InvalidKeyError(KeysError, TypeError, ValueError):
    """A key that cannot be a key (not hashable, NaN), or the wrong number of keys."""


class NotSavableError(InvalidKeyError):
    """A key or a point that cannot be written to a file: use numbers, strings, dates, or tuples of these."""


class UnknownNodeError(EvertreeError, ValueError, IndexError):
    """A number that is not a node of the current tree: get the nodes again after an edit or a refinement."""


class EmptyHierarchyError(EvertreeError, ValueError):
    """The result is not defined for a hierarchy without points: insert some, or check ``len(h)`` first."""


class FileFormatError(EvertreeError, ValueError):
    """Not a file that this version of evertree can read. The message says what it seems to be."""


class NewerFormatError(FileFormatError):
    """The file was written by a newer version of evertree: upgrade."""


class CorruptFileError(FileFormatError):
    """The file is damaged, or was edited by hand. It is left unchanged: use an earlier copy."""


class StoreError(EvertreeError, OSError):
    """The file of a durable hierarchy cannot be used: for example, the disk is full or the path is not writable."""


class LockedError(StoreError):
    """The file is open for writing elsewhere: close it there, or open it with ``read_only=True``."""


class ReadOnlyError(StoreError):
    """An edit of a hierarchy that was opened read-only: open it for writing, or edit a ``copy()``."""


class ClosedError(StoreError, ValueError):
    """An edit of a durable hierarchy that has been closed: open it again, or edit a ``copy()``."""


class InvariantError(EvertreeError, AssertionError):
    """The tree broke one of its own invariants: a bug in evertree, please report it."""


class MissingExtraError(EvertreeError, ImportError):
    """A required optional package is not installed. The message has the command that installs it."""


class DatabaseError(EvertreeError, OSError):
    """A database failed, or rejected a request. The message never contains the password."""


class TransientDatabaseError(DatabaseError):
    """A database cannot be reached or is busy: a retry may succeed."""


class ReplacedError(EvertreeError, RuntimeError):
    """Another follower has taken over the tables that this one wrote: stop this one, or give it another prefix."""


def listed(names: Iterable[Any]) -> str:
    """Names for an error message: the first five, and how many more there are."""
    words = [repr(name) for name in names]
    more = f" and {len(words) - 5} more" if len(words) > 5 else ""
    return ", ".join(words[:5]) + more


def either(names: Iterable[Any]) -> str:
    """The valid alternatives, for an error message."""
    words = [repr(name) for name in names]
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


#: The number of the first row being checked.
_first_row: ContextVar[int] = ContextVar("first_row", default=0)


@contextmanager
def counting_rows_from(first: int) -> Iterator[None]:
    """Count rows from `first` in error messages of this block, which checks a part of the user's input."""
    token = _first_row.set(first)
    try:
        yield
    finally:
        _first_row.reset(token)


def name_rows(rows: NDArray[np.intp]) -> str:
    """Row numbers for an error message."""
    return f"row{'s' if rows.size > 1 else ''} {listed((rows + _first_row.get()).tolist())}"


def warn(message: str, category: type[EvertreeWarning]) -> None:
    """Warn at the line of the user's code that called into evertree."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "evertree":
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
