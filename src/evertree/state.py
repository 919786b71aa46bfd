"""`State`: what a hierarchy holds. Edits change it, and everything else reads it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from evertree.errors import EmptyHierarchyError, ParameterError, PrecisionWarning, warn
from evertree.input.arrays import as_keys
from evertree.input.keys import KeyTable
from evertree.locking import ReadWriteLock
from evertree.tree import LiveTree
from evertree.windows import MovingWindow

if TYPE_CHECKING:
    from evertree.edits import Edit
    from evertree.tree.refine import Report


class Journal(Protocol):
    """Where edits are written before they are applied: what `edits` requires of a durable hierarchy."""

    def recording(self, edit: Edit) -> AbstractContextManager[object]:
        """The block in which an edit is applied. It is written first, and retracted if the block raises."""

    def refining(self, until: str, run: Callable[[Callable[[Report], object]], Report], is_timed: bool) -> Report:
        """Run a refinement, which calls back with a report from time to time, and record its progress."""

    def replacing(self) -> AbstractContextManager[object]:
        """The block in which the whole tree is replaced. The new tree is written at its end."""


@dataclass(eq=False)
class State:
    """The tree, its keys and its window, and the lock for edits and readers.

    This is the low level of a hierarchy, for code that makes, saves or checks whole trees, and for those who want to
    see the arrays. `docs/data-model.md` explains them; they may change with any release. Read them while you hold
    ``lock.reading()``, and change them by edits alone.

    Attributes
    ----------
    live : LiveTree
        The tree, indexed by node: ``live.tree`` has its columns.
    keys : KeyTable
        The leaf of each key.
    window : MovingWindow or None
        Which points are kept.
    seed : int
        The seed of random choices.
    column_names : tuple of str or None
        The names of the columns, if a data frame had some.
    n_edits : int
        The number of edits so far, to detect one made by a callback.
    has_narrowed : bool
        Whether float64 values were rounded to float32, which is said once.
    journal : Journal or None
        Where edits are written before they are made; None in memory.
    lock : ReadWriteLock
        Held by edits and by readers.
    lineage : object
        A token shared by the partitions of this hierarchy and of no other, not even of a copy.
    family : object or None
        A token shared with copies; None for a tree that was loaded, whose origin is unknown.
    """

    live: LiveTree
    keys: KeyTable
    window: MovingWindow | None
    seed: int
    column_names: tuple[str, ...] | None = None
    n_edits: int = 0
    has_narrowed: bool = False
    journal: Journal | None = None
    lock: ReadWriteLock = field(default_factory=ReadWriteLock)
    lineage: object = field(default_factory=object)
    family: object = field(default_factory=object)

    def copy(self) -> State:
        """A state that shares nothing with this one, in memory."""
        live = self.live.copy()
        if self.live.has_threads:  # what is left to do is counted when they are done
            live.recount()
        window = None if self.window is None else self.window.copy()
        return State(live, self.keys.copy(), window, self.seed, self.column_names, family=self.family)

    def replace(self, other: State) -> None:
        """Take over the tree, the keys and the window of another state, which is no longer used."""
        with self.lock.access:
            if other.column_names is not None or other.live.n_columns != self.live.n_columns:
                self.column_names = other.column_names
            self.live, self.keys, self.window = other.live, other.keys, other.window
            self.lineage = object()

    def leaves(self, keys: Any = None) -> NDArray[np.int32]:
        """The leaves of some keys as passed by users; by default of all keys, oldest first."""
        return self.keys.leaves() if keys is None else self.keys.leaves_of(self.named(keys))

    def named(self, keys: Any) -> list[Hashable]:
        """The keys that a user names: a collection of keys, or one key. A tuple that is a live key is one key."""
        if isinstance(keys, Hashable) and isinstance(keys, Iterable) and keys in self.keys:
            return [keys]
        return as_keys(keys)

    def note_narrowing(self) -> None:
        """Warn, once, that values are rounded to float32."""
        if not self.has_narrowed:
            warn(
                "X has float64 values, and the hierarchy holds float32, as its first points were: from now on such "
                "values are rounded to about seven digits. Start with X.astype(np.float64) if that matters",
                PrecisionWarning,
            )
            self.has_narrowed = True

    def require_points(self, what: str) -> None:
        """Refuse an empty hierarchy."""
        if len(self.keys) == 0:
            raise EmptyHierarchyError(
                f"{what} needs at least one point, and the hierarchy is empty: insert points first"
            )

    def refuse_edits_since(self, n_edits: int) -> None:
        """Refuse an edit if a callback edited the hierarchy while it was checked."""
        if self.n_edits != n_edits:
            raise ParameterError(
                "the hierarchy was changed by its own metric or progress callback while points were compared: they may "
                "read it, but not edit it"
            )
