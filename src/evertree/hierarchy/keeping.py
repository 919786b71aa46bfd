"""`HierarchyWindows`: a hierarchy over the points of a stream that came last, so that it can run for ever."""

from __future__ import annotations

from collections.abc import Hashable

from evertree.hierarchy.workings import HierarchyWorkings
from evertree.locking import one_edit_at_a_time
from evertree.windows import Window, moment_of


class HierarchyWindows(HierarchyWorkings):
    """What sets a window, and moves it on where no points come."""

    @one_edit_at_a_time
    def keep(self, last: int | None = None, max_age: float | None = None, time: float | None = None) -> list[Hashable]:
        """From now on keep only the points that came last: at once, and after every insertion in the same call.

        Called with neither limit, it lifts the window, and points stay until they are removed.

        Parameters
        ----------
        last : int, optional
            How many points stay: those that were inserted last. An update makes a point no younger.
        max_age : float, optional
            Points that came longer ago than that go, at every insertion and at `expire`. In seconds, or in the unit
            of the times that you give.
        time : float, optional
            Now, by the clock of your data, as a number (of a date, its ``timestamp()``); by default the computer's, in
            seconds. Points that are there already count as having come now, unless there was an age limit before.

        Returns
        -------
        gone : list
            The keys of the points that went at once, oldest first.

        Notes
        -----
        Whoever gives a time has to give one for each insertion, so that no clocks are mixed. Times must not go back.
        The computer's clock may be set back: then time stands still until it has caught up.

        Arrival times take next to no memory, because they are kept to a thousandth of the age limit of that moment: a
        point may go so much later than it should, and never goes earlier. A window is saved, copied and, in a durable
        hierarchy, committed with the tree.

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> h.insert([[0.0], [5.0], [1.0]])
        [0, 1, 2]
        >>> h.keep(last=2)
        [0]
        >>> h.insert([[6.0]])
        [3]
        >>> h.keys()
        [2, 3]

        With the times of the data, in days:

        >>> h = et.Hierarchy()
        >>> h.keep(max_age=7, time=0)
        []
        >>> for day in range(10):
        ...     keys = h.insert([[day % 3], [day % 5]], time=day)
        >>> h.keys()[0], len(h)
        (4, 16)
        """
        limits = None if last is None and max_age is None else Window(last, max_age)
        window = self._window_with(limits)
        return self._keep(window, moment_of(window, time))

    @one_edit_at_a_time
    def expire(self, time: float | None = None) -> list[Hashable]:
        """Remove the points that are too old by now, where no new ones come to do that.

        Parameters
        ----------
        time : float, optional
            Now, as for `keep`.

        Returns
        -------
        gone : list
            The keys of the points that went, oldest first.

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> h.keep(max_age=60, time=0)
        []
        >>> keys = h.insert([[0.0], [5.0]], time=10)
        >>> h.expire(time=70), h.expire(time=71)
        ([], [0, 1])
        """
        moment = self._moment(time)
        if self.state.window is None:
            return []
        if self._outside(moment)[0]:
            return self._keep(self.state.window, moment)
        with self.state.turns.door:
            self.state.window.settle(moment)
        return []
