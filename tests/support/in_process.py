"""A runner for distributed trees that needs no Dask."""

from __future__ import annotations

import pickle


class _Held:
    """A handle: a value, pickled."""

    def __init__(self, value) -> None:
        self.pickled = pickle.dumps(value, protocol=5)


class InProcess:
    """Runs each task at once, in this process.

    Values are pickled on their way, as between machines, so that no task can change what another holds.
    """

    def __init__(self) -> None:
        #: The number of tasks of each name.
        self.n_tasks: dict[str, int] = {}

    def submit(self, name, function, *args):
        self.n_tasks[name] = self.n_tasks.get(name, 0) + 1
        return _Held(function(*(self._resolved(arg) for arg in args)))

    def gather(self, handles):
        return [self._resolved(handle) for handle in handles]

    def _resolved(self, arg):
        if isinstance(arg, list):
            return [self._resolved(entry) for entry in arg]
        held = arg if isinstance(arg, _Held) else _Held(arg)
        return pickle.loads(held.pickled)
