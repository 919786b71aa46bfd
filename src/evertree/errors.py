"""The exceptions of evertree: one tree, so that ``except EvertreeError`` catches them all.

Where a built-in exception says the same, ours is a subclass of it too: code written for
``ValueError`` or ``KeyError`` goes on working.
"""

from __future__ import annotations

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
        The parameter at fault, where the text begins with its name. The command line names the option instead.
    remedy : str, optional
        What to do about it; it ends the text. Parameters are written ``name=`` or ``name=value`` and methods
        ``name()``, so that the command line can turn them into its own words.
    """

    def __init__(self, *args: object, parameter: str | None = None, remedy: str | None = None) -> None:
        super().__init__(*args)
        self.parameter = parameter
        self.remedy = remedy

    @property
    def problem(self) -> str:
        """The text without the remedy.

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


class ParameterError(EvertreeError, ValueError):
    """An option has a value that it cannot have. The text says which it may have."""


class TimeError(ParameterError):
    """A time that goes back, or is by another clock than those before it. The text says how to go on."""


class LinkageError(ParameterError):
    """A linkage and a metric that have no meaning together, or are not known. The text names those that go together."""


class UnstableError(EvertreeError):
    """A tree is not one that batch clustering would have made: `refine` with ``search_width=None`` takes it there."""


class DataError(EvertreeError, ValueError):
    """The points themselves cannot be used. The text names the rows."""


class DimensionError(DataError):
    """The wrong number of dimensions, columns or rows: reshape, or choose the columns of the points before."""


class NotNumericError(DataError, TypeError):
    """The points are not real numbers, or no collection; or a metric gave something that is no number."""


class NotFiniteError(DataError):
    """NaN or infinity among the values: fill these, or drop their rows, which the text names."""


class MagnitudeError(DataError):
    """Values so large that their squares overflow: scale the data."""


class ZeroVectorError(DataError):
    """A row of zeros, or of equal values, that the metric makes nothing of: it has no direction, or no distribution.

    Drop it, or take another metric.
    """


class WeightError(DataError):
    """Weights that are not positive numbers, one for each point: leave points out that should weigh nothing."""


class KeysError(EvertreeError):
    """Something is wrong with the keys. The text names them."""


class UnknownKeyError(KeysError, KeyError):
    """A key that no live point has: see ``keys()``, or ask ``key in h`` first."""


class DuplicateKeyError(KeysError, ValueError, KeyError):
    """A key that is taken already, or given twice: `update` changes a live point."""


class InvalidKeyError(KeysError, TypeError, ValueError):
    """A key that cannot be a key (not hashable, NaN), or the wrong number of keys."""


class NotSavableError(InvalidKeyError):
    """A key or a point that cannot be written to a file: use numbers, strings, dates, or tuples of these."""


class UnknownNodeError(EvertreeError, ValueError, IndexError):
    """A number that is not a node of the tree as it is now: ask for nodes again after an edit or a refinement."""


class EmptyHierarchyError(EvertreeError, ValueError):
    """The question has no answer for a hierarchy without points: insert some, or ask ``len(h)`` first."""


class FileFormatError(EvertreeError, ValueError):
    """Not a file that this version of evertree can read. The text says what it seems to be."""


class NewerFormatError(FileFormatError):
    """The file was written by a newer version of evertree: upgrade."""


class CorruptFileError(FileFormatError):
    """The file is damaged, or was changed by hand. It is left as it is: take a copy that was made before."""


class StoreError(EvertreeError, OSError):
    """The file of a durable hierarchy cannot be used: the disk is full, say, or a place cannot be written to."""


class LockedError(StoreError):
    """The file is open for writing elsewhere: close it there, or open it with ``read_only=True``."""


class ReadOnlyError(StoreError):
    """An edit of a hierarchy that was opened for reading alone: open it for writing, or edit a ``copy()``."""


class ClosedError(StoreError, ValueError):
    """An edit of a durable hierarchy that has been closed: open it again, or edit a ``copy()``."""


class InvariantError(EvertreeError, AssertionError):
    """The tree broke one of its own invariants: a bug in evertree, please report it."""


class MissingExtraError(EvertreeError, ImportError):
    """An optional package is needed that is not installed. The text has the command that installs it."""


class DatabaseError(EvertreeError, OSError):
    """A database failed, or refused what was asked of it. The text never has the password."""


class TransientDatabaseError(DatabaseError):
    """A database cannot be reached, or is busy: what failed may work if it is tried again."""


class ReplacedError(EvertreeError, RuntimeError):
    """Another follower has taken over the tables that this one wrote: stop this one, or give it another prefix."""


def listed(names: Iterable[Any]) -> str:
    """Some names for an error text: the first five, and how many more there are."""
    words = [repr(name) for name in names]
    more = f" and {len(words) - 5} more" if len(words) > 5 else ""
    return ", ".join(words[:5]) + more


def either(names: Iterable[Any]) -> str:
    """The words of which one is right, for an error text."""
    words = [repr(name) for name in names]
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


#: The number of the first row of what is being checked.
_first_row: ContextVar[int] = ContextVar("first_row", default=0)


@contextmanager
def counting_rows_from(first: int) -> Iterator[None]:
    """Let error texts in this block count rows from `first`: what is checked there is a part of what the user gave."""
    token = _first_row.set(first)
    try:
        yield
    finally:
        _first_row.reset(token)


def name_rows(rows: NDArray[np.intp]) -> str:
    """Some row numbers for an error text."""
    return f"row{'s' if rows.size > 1 else ''} {listed((rows + _first_row.get()).tolist())}"
