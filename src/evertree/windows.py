"""Which points are kept in a hierarchy (the last ones, those that are not too old, or both), and when they arrived."""

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

#: A point may stay longer than the age limit by this share of it, so that a few marks record when all points arrived.
RESOLUTION = 1e-3


@dataclass(frozen=True)
class Window:
    """Which points are kept in a hierarchy; see `Hierarchy.keep`.

    Attributes
    ----------
    last : int or None
        The maximum number of points: those inserted last are kept.
    max_age : float or None
        The maximum age of a point.

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
    """When something happened, and whether the time is from the user or from the computer's clock."""

    time: float
    is_given: bool


class MovingWindow:
    """A window, and what it has to know about the points in it.

    Points are identified by their insertion numbers. These ascend in time, so a few marks record when all points
    arrived: those with numbers below that of a mark, and not below that of the previous mark, arrived at the time of
    the mark or up to `RESOLUTION` times the age limit before it.

    Parameters
    ----------
    limits
        Which points are kept.
    """

    def __init__(self, limits: Window) -> None:
        self.limits = limits
        self._marks: deque[tuple[int, float]] = deque()
        self._began = -math.inf  # when the first points of the last mark arrived
        self._now: Moment | None = None  # the latest known moment

    @property
    def n_marks(self) -> int:
        """The number of marks."""
        return len(self._marks)

    def n_passing(self, count: int) -> int:
        """How many points of a batch are outside the window once its last point has arrived."""
        return 0 if self.limits.last is None else max(count - self.limits.last, 0)

    def moment(self, time: Any) -> Moment | None:
        """The moment of an edit, checked; None if there is no age limit. Nothing is recorded yet.

        If the computer's clock is set back, time stands still until it has caught up.
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
        """Record that all points since the last mark, up to the next to be inserted, arrived at a moment. O(1)."""
        if moment is None or self.limits.max_age is None:
            return
        if self._marks and moment.time - self._began <= RESOLUTION * self.limits.max_age:
            self._marks[-1] = next_birth, moment.time
        else:
            self._marks.append((next_birth, moment.time))
            self._began = moment.time

    def too_old(self, moment: Moment | None) -> int:
        """The insertion number below which points are too old at a moment. O(number of such marks)."""
        birth = 0
        if moment is not None and self.limits.max_age is not None:
            for following, time in self._marks:
                if moment.time - time <= self.limits.max_age:
                    break
                birth = following
        return birth

    def move_to(self, moment: Moment | None) -> None:
        """Move to this moment, and forget the arrival times of points that are too old and gone. O(1), amortised.

        If no point has arrived yet and no time was given, the choice of clock stays open.
        """
        if moment is None or not (moment.is_given or self._marks or self._now):
            return
        self._now = moment
        birth = self.too_old(moment)
        while self._marks and self._marks[0][0] <= birth:
            self._marks.popleft()

    def changed(self, limits: Window) -> MovingWindow:
        """A window with other limits; it keeps the arrival times if both have an age limit."""
        other = MovingWindow(limits)
        if self.limits.max_age is not None and limits.max_age is not None:
            other._marks, other._began, other._now = self._marks.copy(), self._began, self._now
        return other

    def copy(self) -> MovingWindow:
        """An independent copy of this window."""
        return self.changed(self.limits)

    def state(self) -> dict[str, Any]:
        """The complete state, as JSON values."""
        return {
            "last": self.limits.last,
            "max_age": self.limits.max_age,
            "marks": [list(mark) for mark in self._marks],
            "began": self._began if self._marks else None,
            "now": None if self._now is None else list(self._now),
        }

    @classmethod
    def of_state(cls, state: Mapping[str, Any], next_birth: int) -> MovingWindow:
        """The window with this `state`; ValueError, LookupError or TypeError if it is not one.

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
    """The moment of an edit, checked even if there is no window and it does not matter."""
    if window is not None:
        return window.moment(time)
    if time is not None:
        as_number("time", time)
    return None
