"""What kernels leave to the linkage: steps of which each linkage has its own, chosen when a kernel is compiled.

A linkage is a file of `evertree.linkages`. Kernels import none of them: the class of the tag, which is the argument
`linkage`, says in which file it stands.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from typing import Any

from evertree.kernels.compile import choose, chosen_by


def linkage_must_define(step: Callable[..., Any]) -> Any:
    """Let a step be that of the same name in the file of the linkage. This one only says what it has to do.

    There it is a plain function, which is compiled into the kernels that use it, or a `step` if it is long. What is
    called from Python, too, works on arrays of NumPy, and is a plain one.
    """
    return _from_file(step, otherwise=None)


def linkage_may_define(step: Callable[..., Any]) -> Any:
    """As `linkage_must_define`. This one is for all linkages that have none in their files."""
    return _from_file(step, otherwise=step)


def by_property(name: str, table: Mapping[Any, Callable[..., Any]]) -> Any:
    """A step that is another one for each value that a property of the linkage may have."""
    return choose("linkage", table, lambda tag: getattr(sys.modules[tag.__module__].LINKAGE, name))


def _from_file(step: Callable[..., Any], otherwise: Callable[..., Any] | None) -> Any:
    name = step.__name__

    def find(tag: type) -> Callable[..., Any]:
        found: Any = getattr(sys.modules[tag.__module__], name, otherwise)
        if found is chosen:  # a file may import the step, to use it
            found = otherwise
        if found is None:
            raise NotImplementedError(f"{tag.__module__} must define {name}{inspect.signature(step)}")
        return found

    chosen = chosen_by("linkage", find, step)
    chosen.__name__, chosen.__doc__ = name, step.__doc__
    return chosen
