"""Dispatch by linkage: steps that each linkage defines for itself, chosen when a kernel is compiled.

A linkage is a file of `evertree.linkages`. Kernels import none of them: the class of the tag, which is the argument
`linkage`, says in which file it is.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from typing import Any

from evertree.kernels.compile import choose, chosen_by


def linkage_must_define(step: Callable[..., Any]) -> Any:
    """Replace a step by that of the same name in the file of the linkage. This one only documents it.

    There it is a plain function, which is inlined into the kernels that use it, or a `step` if it is long. One that is
    also called from Python works on NumPy arrays, and is a plain function.
    """
    return _from_file(step, otherwise=None)


def linkage_may_define(step: Callable[..., Any]) -> Any:
    """As `linkage_must_define`. This one is the default for linkages that define none."""
    return _from_file(step, otherwise=step)


def by_property(name: str, table: Mapping[Any, Callable[..., Any]]) -> Any:
    """A step chosen by the value of a property of the linkage."""
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
