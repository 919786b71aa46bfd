"""The leaf of each key, in the order in which the keys were inserted."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Hashable, Sequence
from decimal import Decimal
from itertools import islice
from numbers import Real

import numpy as np
from numpy.typing import NDArray

from evertree.errors import DuplicateKeyError, InvalidKeyError, UnknownKeyError, listed
from evertree.kernels.columns import NULL

#: About how many empty entries of a dict are skipped in the time that it takes to copy one entry.
_PASSED_PER_COPY = 100


class KeyTable:
    """A dictionary from live keys to leaves, oldest first.

    As long as all keys are numbers assigned by the table itself (0, 1, 2, …), they are kept in two sorted arrays, at
    twelve bytes per key. The first key chosen by a user turns them into a dict.

    Attributes
    ----------
    next_birth : int
        The number of points inserted so far, which is the insertion number of the next.
    next_number : int
        The next key to assign if the user gives none: above every integer used so far.
    """

    def __init__(self) -> None:
        self.next_birth = 0
        self.next_number = 0
        # Numbered keys: ascending, with the leaf NULL where the key was removed.
        self._numbers = np.empty(0, np.int64)
        self._leaves = np.empty(0, np.int32)
        self._n_slots = 0
        self._first = 0  # slots below it have no leaf
        self._n_live = 0
        # Chosen keys: both are None until there are any.
        self._leaf_of: dict[Hashable, int] | None = None
        self._key_of: dict[int, Hashable] | None = None
        self._leaves_in_order: NDArray[np.int32] | None = None  # of chosen keys; None if they have changed since
        self._n_passed = 0  # keys discarded since the dict was copied: their empty entries may still be there

    def __len__(self) -> int:
        return self._n_live if self._leaf_of is None else len(self._leaf_of)

    def __contains__(self, key: object) -> bool:
        return self._find(key) != NULL

    def keys(self) -> list[Hashable]:
        """The live keys, oldest first."""
        if self._leaf_of is not None:
            return list(self._leaf_of)
        return self._live_numbers().tolist()

    def births(self, birth: NDArray[np.int64]) -> NDArray[np.int64]:
        """The insertion numbers of the live keys, in the order of `keys`; `birth` has that of each leaf."""
        return birth[self.leaves()] if self._leaf_of is not None else self._live_numbers()

    def _live_numbers(self) -> NDArray[np.int64]:
        return self._numbers[: self._n_slots][self._leaves[: self._n_slots] != NULL]

    def leaves(self) -> NDArray[np.int32]:
        """The leaves of the live keys, in the order of `keys`."""
        if self._leaf_of is not None:
            if self._leaves_in_order is None:
                self._leaves_in_order = np.fromiter(self._leaf_of.values(), np.int32, len(self._leaf_of))
            return self._leaves_in_order.copy()
        leaves = self._leaves[: self._n_slots]
        return leaves[leaves != NULL]

    def keys_of(self, leaves: NDArray[np.int32], births: NDArray[np.int64]) -> list[Hashable]:
        """The keys of some leaves, whose insertion numbers are `births`."""
        if self._key_of is not None:
            return [self._key_of[leaf] for leaf in leaves.tolist()]
        return births.tolist()  # a numbered key is the insertion number

    def youngest_leaf(self) -> int:
        """The leaf of the youngest live key or, if keys are numbered, of the last one, NULL if it is gone. O(1)."""
        if self._leaf_of is not None:
            return next(reversed(self._leaf_of.values()), NULL)
        last = self._n_slots - 1
        return int(self._leaves[last]) if last >= 0 and self._numbers[last] == self.next_number - 1 else NULL

    def next_births(self, count: int) -> NDArray[np.int64]:
        """The insertion numbers of the next `count` points."""
        return np.arange(self.next_birth, self.next_birth + count)

    def leaf_of(self, key: Hashable) -> int:
        """The leaf of a live key."""
        leaf = self._find(key)
        return leaf if leaf != NULL else int(self.leaves_of([key])[0])  # which says that there is none

    def leaves_of(self, keys: Sequence[Hashable]) -> NDArray[np.int32]:
        """The leaves of some keys, all of which must be live."""
        if self._leaf_of is None and self._n_slots and all(type(key) is int and 0 <= key < 2**63 for key in keys):
            numbers = np.array(keys, np.int64)
            slots = np.searchsorted(self._numbers[: self._n_slots], numbers).clip(max=self._n_slots - 1)
            leaves = np.where(self._numbers[slots] == numbers, self._leaves[slots], np.int32(NULL))
        else:
            leaves = np.array([self._find(key) for key in keys], np.int32)
        if np.any(leaves == NULL):
            unknown = [key for key, leaf in zip(keys, leaves.tolist(), strict=True) if leaf == NULL]
            raise UnknownKeyError(f"no live point has the key {listed(unknown)}: see keys() for the live keys")
        return leaves

    def check_new(self, keys: Sequence[Hashable], count: int) -> None:
        """Refuse keys that are taken, or too many or too few for `count` points."""
        if len(keys) != count:
            raise InvalidKeyError(f"keys must have one key for each point, {count} in all; there are {len(keys)}")
        taken = [key for key in keys if key in self]
        if taken:
            raise DuplicateKeyError(
                f"keys must be new; taken already: {listed(taken)}", remedy="use update() to change live points"
            )

    def oldest(self, count: int) -> tuple[list[Hashable], NDArray[np.int32]]:
        """The `count` oldest live keys, or all if there are fewer, and their leaves.

        O(count), amortised; for chosen keys O(count + √n), because a dict skips the entries of discarded keys.
        """
        if self._leaf_of is not None:
            if self._n_passed**2 > _PASSED_PER_COPY * len(self._leaf_of):
                self._leaf_of = dict(self._leaf_of)
                self._n_passed = 0
            found = dict(islice(self._leaf_of.items(), count))
            return list(found), np.fromiter(found.values(), np.int32, len(found))
        slots, stop = np.empty(0, np.intp), self._first
        while slots.size < min(count, self._n_live):
            stop = min(self._first + max(count, 2 * (stop - self._first)), self._n_slots)
            slots = self._first + np.flatnonzero(self._leaves[self._first : stop] != NULL)
        if slots.size:
            self._first = int(slots[0])
        return self._numbers[slots[:count]].tolist(), self._leaves[slots[:count]]

    def add(self, keys: Sequence[Hashable] | None, leaves: NDArray[np.int32], n_passing: int = 0) -> list[Hashable]:
        """Assign keys to new leaves, by default the next numbers; return them.

        The first `n_passing` are for points that are removed immediately and have no leaves.
        """
        count = n_passing + leaves.size
        if keys is None and self._leaf_of is None:
            first, stop = self.next_number, self.next_number + count
            added: list[Hashable] = list(range(first, stop))
            self._append(np.arange(first + n_passing, stop), leaves)
        else:
            self._use_dict()
            if keys is None:
                numbers = self._free_numbers(count)
                added, stop = list(numbers), numbers.stop
            else:
                added = list(keys)
                stop = max(self.next_number, 1 + max(map(whole_part, added), default=-1))
            self._note(added[n_passing:], leaves.tolist())
        self.next_birth += count
        self.next_number = stop
        return added

    def add_one(self, keys: Sequence[Hashable] | None, leaf: int) -> list[Hashable]:
        """As `add` for one leaf, for which there is room."""
        if keys is not None or self._leaf_of is not None:
            return self.add(keys, np.array([leaf], np.int32))
        slot, number = self._n_slots, self.next_number
        self._numbers[slot] = number
        self._leaves[slot] = leaf
        self._n_slots += 1
        self._n_live += 1
        self.next_birth += 1
        self.next_number += 1
        return [number]

    def _note(self, keys: list[Hashable], leaves: list[int]) -> None:
        """Add chosen keys, all or none of them."""
        assert self._leaf_of is not None
        assert self._key_of is not None
        self._leaves_in_order = None
        try:
            self._leaf_of.update(zip(keys, leaves, strict=True))
            self._key_of.update(zip(leaves, keys, strict=True))
        except BaseException:  # also of a user's own class of keys
            for key, leaf in zip(keys, leaves, strict=True):
                self._leaf_of.pop(key, None)
                self._key_of.pop(leaf, None)
            raise

    def discard(self, keys: Sequence[Hashable]) -> None:
        """Forget live keys."""
        if self._leaf_of is not None and self._key_of is not None:
            self._leaves_in_order = None
            for key in keys:
                del self._key_of[self._leaf_of.pop(key)]
            self._n_passed += len(keys)
            return
        if len(keys) == 1:
            self._leaves[self._slot(int(keys[0]))] = NULL  # type: ignore[call-overload]
        else:
            self._leaves[np.searchsorted(self._numbers[: self._n_slots], np.array(keys, np.int64))] = NULL
        self._n_live -= len(keys)
        if self._n_slots > 2 * self._n_live + 16:
            self._keep_live()

    def relocate(self, place: NDArray[np.int32]) -> None:
        """Renumber the leaves: ``place[leaf]`` is the new number of each."""
        if self._leaf_of is not None and self._key_of is not None:
            self._leaf_of = {key: int(place[leaf]) for key, leaf in self._leaf_of.items()}
            self._key_of = {leaf: key for key, leaf in self._leaf_of.items()}
            self._leaves_in_order = None
        leaves = self._leaves[: self._n_slots]
        leaves[leaves != NULL] = place[leaves[leaves != NULL]]

    @classmethod
    def assembled(
        cls, keys: Sequence[Hashable], leaves: NDArray[np.int32], is_numbered: bool, next_birth: int, next_number: int
    ) -> KeyTable:
        """A table of keys that are already known."""
        table = cls()
        if is_numbered:
            table._append(np.array(keys, np.int64), leaves)
        else:
            table.add(keys, leaves)
        table.next_birth, table.next_number = next_birth, next_number
        return table

    def copy(self) -> KeyTable:
        """An independent copy of this table."""
        twin = KeyTable()
        twin.__dict__.update(self.__dict__)
        twin._numbers, twin._leaves = self._numbers.copy(), self._leaves.copy()
        twin._leaf_of = None if self._leaf_of is None else dict(self._leaf_of)
        twin._key_of = None if self._key_of is None else dict(self._key_of)
        return twin

    @property
    def is_numbered(self) -> bool:
        """Whether all keys so far were assigned by the table."""
        return self._leaf_of is None

    @property
    def n_bytes(self) -> int:
        """Memory of the numbered keys, in bytes; that of chosen keys is unknown."""
        return self._n_slots * (self._numbers.itemsize + self._leaves.itemsize)

    def _free_numbers(self, count: int) -> range:
        """The next numbers that do not equal a live key: 7.0, Decimal(7) and 7 + 0j equal 7."""
        numbers = range(self.next_number, self.next_number + count)
        assert self._leaf_of is not None
        while True:
            taken = max((number for number in numbers if number in self._leaf_of), default=None)
            if taken is None:
                break
            numbers = range(taken + 1, taken + 1 + count)
        return numbers

    def _find(self, key: object) -> int:
        try:
            if self._leaf_of is not None:
                return self._leaf_of.get(key, NULL)
            number = int(key)  # type: ignore[call-overload]
            if number != key:
                return NULL
        except (TypeError, ValueError, OverflowError):
            return NULL
        slot = self._slot(number)
        return int(self._leaves[slot]) if slot < self._n_slots and self._numbers[slot] == number else NULL

    def _slot(self, number: int) -> int:
        """The first slot with a number that is not smaller."""
        return bisect_left(memoryview(self._numbers), number, 0, self._n_slots)  # type: ignore[arg-type]

    def reserve(self, count: int) -> None:
        """Make room for numbered keys, so that adding them cannot fail."""
        needed = self._n_slots + count
        if self._leaf_of is None and needed > self._numbers.size:
            room = max(needed, self._numbers.size + self._numbers.size // 2)
            numbers, leaves = np.empty(room, np.int64), np.empty(room, np.int32)
            numbers[: self._n_slots] = self._numbers[: self._n_slots]
            leaves[: self._n_slots] = self._leaves[: self._n_slots]
            self._numbers, self._leaves = numbers, leaves

    def _append(self, numbers: NDArray[np.int64], leaves: NDArray[np.int32]) -> None:
        self.reserve(leaves.size)
        needed = self._n_slots + leaves.size
        self._numbers[self._n_slots : needed] = numbers
        self._leaves[self._n_slots : needed] = leaves
        self._n_slots = needed
        self._n_live += leaves.size

    def _keep_live(self) -> None:
        """Drop the slots of removed keys."""
        live = self._leaves[: self._n_slots] != NULL
        self._numbers = self._numbers[: self._n_slots][live]
        self._leaves = self._leaves[: self._n_slots][live]
        self._n_slots = self._leaves.size
        self._first = 0

    def _use_dict(self) -> None:
        if self._leaf_of is None:
            self._leaf_of = dict(zip(self.keys(), self.leaves().tolist(), strict=True))
            self._key_of = {leaf: key for key, leaf in self._leaf_of.items()}
            self._numbers, self._leaves = np.empty(0, np.int64), np.empty(0, np.int32)
            self._n_slots = self._first = self._n_live = 0


def whole_part(key: Hashable) -> int:
    """The largest integer up to a key; -1 for a key that is not a number, or that counting never reaches."""
    if isinstance(key, (Real, Decimal)) and -1 < key < 2**62:
        return math.floor(key)
    return -1
