"""What decides which tree the same edits give: the code, the compiler, and the kind of processor."""

from __future__ import annotations

import hashlib
import platform
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
    """The fingerprint of this process. It loads Numba, as edits do."""
    import numba

    is_compiled = not numba.config.DISABLE_JIT
    return {
        "evertree": evertree.__version__,
        "code": _digest_of_sources(),
        "NumPy": np.__version__,
        "Numba": f"{numba.__version__} with llvmlite {_llvmlite_version()}" if is_compiled else "off",
        "CPU": _processor() if is_compiled else platform.machine(),
    }


def described(found: Mapping[str, str]) -> str:
    """A fingerprint in words."""
    if not found:
        return "an older evertree"
    return ", ".join(f"{name} {value}" for name, value in found.items())


def _digest_of_sources() -> str:
    from evertree.kernels.compile import digest_of

    return digest_of(file for pattern in _SOURCES for file in _PACKAGE.glob(pattern))[:16]


def _llvmlite_version() -> str:
    import llvmlite

    return str(llvmlite.__version__)


def _processor() -> str:
    """The processor that Numba compiles for, by name, and a digest of what it can do."""
    from llvmlite import binding
    from numba import config

    name = config.CPU_NAME or binding.get_host_cpu_name()
    features = config.CPU_FEATURES or binding.get_host_cpu_features().flatten()
    return f"{platform.machine()} {name} {hashlib.sha256(features.encode()).hexdigest()[:8]}"
