"""What decides which tree the same edits give: the code, the compiler, and the kind of processor."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import numpy as np

import evertree

_PACKAGE = Path(__file__).parents[1]

#: All code between a record of an edit and the tree.
_SOURCES = ("kernels/**/*.py", "linkages/*.py", "tree/**/*.py", "input/*.py", "edits.py", "windows.py")


@cache
def fingerprint() -> Mapping[str, str]:
    """The fingerprint of this process."""
    from evertree.kernels import machine_code

    return {
        "evertree": evertree.__version__,
        "code": _digest_of_sources(),
        "NumPy": np.__version__,
        **machine_code.origin(),
    }


def described(found: Mapping[str, str]) -> str:
    """A fingerprint in words."""
    if not found:
        return "an older evertree"
    return ", ".join(f"{name} {value}" for name, value in found.items())


def _digest_of_sources() -> str:
    from evertree.kernels.fingerprint import digest_of

    return digest_of(file for pattern in _SOURCES for file in _PACKAGE.glob(pattern))[:16]
