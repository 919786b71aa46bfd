"""The library of machine code that comes with the package, for processors like this one.

There is a file for each level of processors, with a function for each kernel and configuration, and a small one that
asks this processor for its level. The build puts a fingerprint of all kernels into each: a library that was made of
other sources than those beside it is not used.
"""

from __future__ import annotations

import ctypes
import logging
import os
import sys
from functools import cache
from pathlib import Path

from evertree.kernels.fingerprint import fingerprint_of

#: The folder of the library, and how its files end.
FOLDER = Path(__file__).with_name("lib")
SUFFIX = ".dll" if sys.platform == "win32" else ".so"

#: The file that knows the level of this processor.
DETECTOR = f"cpu_level{SUFFIX}"

#: Levels of which each has all instructions of those after it.
LEVELS = ("x86-64-v4", "x86-64-v3", "x86-64-v2")

_logger = logging.getLogger("evertree")


class Library:
    """A file of machine code.

    Raises
    ------
    OSError
        If it cannot be loaded, or was made of other sources.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._functions = ctypes.CDLL(str(path))
        if self._text("evertree_fingerprint") != fingerprint():
            raise OSError(f"{path.name} was made of other sources")

    @property
    def compiler(self) -> str:
        """The versions of Numba and of LLVM's binding that made it."""
        return self._text("evertree_compiler")

    def _text(self, name: str) -> str:
        try:
            return (ctypes.c_char_p.in_dll(self._functions, name).value or b"").decode()
        except ValueError:
            return ""

    def address(self, symbol: str) -> int | None:
        """Where a function is; None if there is none."""
        try:
            return ctypes.cast(getattr(self._functions, symbol), ctypes.c_void_p).value
        except AttributeError:
            return None


@cache
def fingerprint() -> str:
    """A hash of all the code that kernels are compiled from."""
    return fingerprint_of(Path(__file__).parents[1])


@cache
def level() -> str | None:
    """The level of this processor, as it says itself; None where nothing can ask it, or it has none."""
    try:
        ask = ctypes.CDLL(str(FOLDER / DETECTOR)).evertree_cpu_level
    except (OSError, AttributeError):
        return None
    ask.restype = ctypes.c_char_p
    found = ask()
    return found.decode() if found else None


@cache
def _found() -> Library | str:
    """The library for this processor, or why there is none."""
    if os.environ.get("EVERTREE_KERNELS") == "numba":
        return "EVERTREE_KERNELS=numba"
    own = level()
    if own is None:
        return "this installation has no compiled kernels for this kind of processor"
    for name in LEVELS[LEVELS.index(own) :] if own in LEVELS else (own,):
        path = FOLDER / f"{name}{SUFFIX}"
        if path.exists():
            try:
                return Library(path)
            except OSError as error:
                return str(error)
    return f"this installation has no compiled kernels for {own}"


@cache
def opened() -> Library | None:
    """The library for this processor, opened once; None if there is none that fits."""
    found = _found()
    if isinstance(found, Library):
        return found
    _logger.info("kernels are compiled by Numba: %s", found)
    return None


def why_not() -> str:
    """Why kernels have to be compiled."""
    found = _found()
    return found if isinstance(found, str) else f"{found.path.name} does not have it"
