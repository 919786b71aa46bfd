"""Which points stay in a hierarchy: the last to come, those that are not too old, or both. And when they came."""

from __future__ import annotations

import math
import time as clock
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

from evertree.errors import ParameterError, TimeError
from evertree.input.arrays import as_count, as_number, as_whole_number

#: A point may stay longer than the age limit by this share of it, so that a few marks say when all points came.
RESOLUTION = 1e-3


@dataclass(frozen=True)
class Window:
    """Which points stay in a hierarchy; see `Hierarchy.keep`.

    Attributes
    ----------
    last : int or None
        So many points at most: those that were inserted last.
    max_age : float or None
        No points that came longer ago than that.

    Examples
    --------
    >>> h = et.Hierarchy()
    >>> h.keep(last=1000)
    []
    >>> h.window
    Window(last=1000, max_age=None)
    """

    last: int | None = None
    max_age: float | None = None

    def __post_init__(self) -> None:
        if self.last is not None:
            object.__setattr__(self, "last", as_count("last", self.last))
        if self.max_age is not None:
            age = as_number("max_age", self.max_age)
            if age <= 0:
                raise ParameterError(f"max_age must be positive; it is {self.max_age!r}")
            object.__setattr__(self, "max_age", age)


class Moment(NamedTuple):
    """When something happened, and whether the user said so: otherwise the computer's clock did."""

    time: float
    is_given: bool


class MovingWindow:
    """A window, and what it has to know of the points that are in it.

    Points are known by their insertion numbers. These ascend in time, so a few marks say when all points came: those
    with numbers below that of a mark, and not below that of the mark before, came at the time of the mark or up to
    `RESOLUTION` times the age limit before it.

    Parameters
    ----------
    limits
        What stays.
    """

    def __init__(self, limits: Window) -> None:
        self.limits = limits
        self._marks: deque[tuple[int, float]] = deque()
        self._began = -math.inf  # when the first points of the last mark came
        self._now: Moment | None = None  # the latest moment that is known

    @property
    def n_marks(self) -> int:
        """How many marks there are."""
        return len(self._marks)

    def n_passing(self, count: int) -> int:
        """How many points of a batch are outside as soon as its last one has come."""
        return 0 if self.limits.last is None else max(count - self.limits.last, 0)

    def moment(self, time: Any) -> Moment | None:
        """The moment of an edit, checked; None where there is no age limit. Nothing is noted yet.

        The computer's clock may be set back: then time stands still until it has caught up.
        """
        given = None if time is None else as_number("time", time)
        if self.limits.max_age is None:
            return None
        if self._now is not None and self._now.is_given != (given is not None):
            known, remedy = (
                ("given", "give time= here too")
                if self._now.is_given
                else ("the computer's", "leave time= out, or lift the limit first, with max_age=None")
            )
            problem = f"time must be by one clock, which so far was {known}; it is {time!r}"
            raise TimeError(problem, parameter="time", remedy=remedy)
        if given is None:
            return Moment(clock.time() if self._now is None else max(clock.time(), self._now.time), False)
        if self._now is not None and given < self._now.time:
            raise TimeError(f"time must not go back: it was {self._now.time!r}, and is {given!r} now: sort the batches")
        return Moment(given, True)

    def admit(self, next_birth: int, moment: Moment | None) -> None:
        """Note that all points since the last mark, up to the next to be inserted, came at a moment. O(1)."""
        if moment is None or self.limits.max_age is None:
            return
        if self._marks and moment.time - self._began <= RESOLUTION * self.limits.max_age:
            self._marks[-1] = next_birth, moment.time
        else:
            self._marks.append((next_birth, moment.time))
            self._began = moment.time

    def too_old(self, moment: Moment | None) -> int:
        """The insertion number below which points are too old at a moment. O(marks that are)."""
        birth = 0
        if moment is not None and self.limits.max_age is not None:
            for following, time in self._marks:
                if moment.time - time <= self.limits.max_age:
                    break
                birth = following
        return birth

    def move_to(self, moment: Moment | None) -> None:
        """It is this moment, and points that are too old are gone: forget when they came. O(1), amortised.

        Where no point has come yet and no time was given, it stays open by whose clock times are.
        """
        if moment is None or not (moment.is_given or self._marks or self._now):
            return
        self._now = moment
        birth = self.too_old(moment)
        while self._marks and self._marks[0][0] <= birth:
            self._marks.popleft()

    def changed(self, limits: Window) -> MovingWindow:
        """A window with other limits that knows when points came, where both have an age limit."""
        other = MovingWindow(limits)
        if self.limits.max_age is not None and limits.max_age is not None:
            other._marks, other._began, other._now = self._marks.copy(), self._began, self._now
        return other

    def copy(self) -> MovingWindow:
        """A window that shares nothing with this one."""
        return self.changed(self.limits)

    def state(self) -> dict[str, Any]:
        """All that it knows, as JSON can have it."""
        return {
            "last": self.limits.last,
            "max_age": self.limits.max_age,
            "marks": [list(mark) for mark in self._marks],
            "began": self._began if self._marks else None,
            "now": None if self._now is None else list(self._now),
        }

    @classmethod
    def of_state(cls, state: Mapping[str, Any], next_birth: int) -> MovingWindow:
        """The window that `state` told all about; ValueError, LookupError or TypeError if it is none.

        The next point to be inserted has the number `next_birth`.
        """
        window = cls(Window(state["last"], state["max_age"]))
        window._marks.extend(
            (as_whole_number("birth", birth), as_number("time", time)) for birth, time in state["marks"]
        )
        if window._marks:
            window._began = as_number("time", state["began"])
        if state["now"] is not None:
            time, is_given = state["now"]
            if type(is_given) is not bool:
                raise TypeError("it is not known whose clock a window goes by")
            window._now = Moment(as_number("time", time), is_given)
        latest = next_birth, -math.inf if window._now is None else window._now.time
        if any(a[0] > b[0] or a[1] > b[1] for a, b in pairwise([*window._marks, latest])):
            raise ValueError("the marks of a window do not ascend")
        return window


def moment_of(window: MovingWindow | None, time: Any) -> Moment | None:
    """The moment of an edit, checked also where there is no window and it does not matter."""
    if window is not None:
        return window.moment(time)
    if time is not None:
        as_number("time", time)
    return None
