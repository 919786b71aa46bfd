"""`Runner`: what the algorithm asks of whatever runs its tasks, and the simplest one."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from typing import Any, Protocol


class Runner(Protocol):
    """Runs pure functions, somewhere, and holds what they return.

    Nothing may depend on where or when a task runs. A function changes none of its arguments.
    """

    def submit(self, name: str, function: Callable[..., Any], *args: Any) -> Any:
        """A handle on what ``function(*args)`` will return; handles among `args`, or in lists there, are resolved."""

    def gather(self, handles: Sequence[Any]) -> list[Any]:
        """The values of some handles."""


def share(runner: Runner, name: str, value: Any) -> Any:
    """A handle of a value that several tasks need, so that it is sent once."""
    return runner.submit(name, _keep, value)


def _keep(value: Any) -> Any:
    return value


class _Held:
    """The handle of `InProcess`: a value, pickled."""

    def __init__(self, value: Any) -> None:
        self.pickled = pickle.dumps(value, protocol=5)


class InProcess:
    """Runs each task at once, in this process.

    Values are pickled on their way, as they would be between machines, so that no task can change what another holds.

    Examples
    --------
    >>> from evertree.distributed.runner import InProcess
    >>> runner = InProcess()
    >>> three = runner.submit("sum", sum, [1, 2])
    >>> runner.gather([three, runner.submit("sum", sum, [three, three])])
    [3, 6]
    """

    def __init__(self) -> None:
        self._bytes_moved = 0
        #: How many tasks of each name have run.
        self.n_tasks: dict[str, int] = {}

    @property
    def bytes_moved(self) -> int:
        """The sizes of all arguments and of what was gathered."""
        return self._bytes_moved

    def submit(self, name: str, function: Callable[..., Any], *args: Any) -> Any:
        """Run a task."""
        self.n_tasks[name] = self.n_tasks.get(name, 0) + 1
        return _Held(function(*(self._resolved(arg) for arg in args)))

    def gather(self, handles: Sequence[Any]) -> list[Any]:
        """The values of some handles."""
        return [self._resolved(handle) for handle in handles]

    def _resolved(self, arg: Any) -> Any:
        if isinstance(arg, list):
            return [self._resolved(entry) for entry in arg]
        held = arg if isinstance(arg, _Held) else _Held(arg)
        self._bytes_moved += len(held.pickled)
        return pickle.loads(held.pickled)
