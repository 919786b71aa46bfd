"""Objects: files with the machine code of one kernel for one configuration and processor, kept for later processes.

An object is named by a stamp of all that it was made of: the text of the kernel and of every step it may call, the
constants they read, the columns of trees, the compiler and the processor. So an edit makes new objects for what depends
on it, and no others; and no object is ever out of date.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import sys
import tempfile
import time
import types
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from evertree.kernels.compile import Step, plain
from evertree.kernels.fingerprint import digest_of
from evertree.kernels.signatures import Array, Configuration, is_described

#: Objects that no process has used for so many seconds are removed when a new one of the same kernel is kept.
_KEPT_FOR = 30 * 86_400

#: Bytes of a digest.
_DIGEST_SIZE = hashlib.sha256().digest_size

#: What all machine code depends on.
_COMMON = ("columns.py", "compile.py", "dispatch.py", "numba_compiler.py", "signatures.py")


@cache
def folder() -> Path | None:
    """The folder of objects, None if it cannot be written to. EVERTREE_CACHE_DIR names another."""
    place = _place()
    try:
        if place is not None:
            place.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=place):
                return place
    except OSError:
        pass
    return None


def _place() -> Path | None:
    """Where objects are looked for, also if none can be kept there; None if there is no such place."""
    try:
        if named := os.environ.get("EVERTREE_CACHE_DIR"):
            return Path(named).expanduser()
        if sys.platform == "win32":
            return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData/Local") / "evertree" / "Cache"
        if sys.platform == "darwin":
            return Path.home() / "Library" / "Caches" / "evertree"
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "evertree"
    except RuntimeError:  # there is no home
        return None


def kept(symbol: str, stamp: str) -> bytes | None:
    """The object with this stamp, if there is one that is whole: half of one would crash the process."""
    place = _place()
    if place is None:
        return None
    path = place / f"{symbol}-{stamp}.o"
    try:
        content = path.read_bytes()
    except OSError:
        return None
    code, digest = content[:-_DIGEST_SIZE], content[-_DIGEST_SIZE:]
    if hashlib.sha256(code).digest() != digest:
        return None
    with suppress(OSError):  # it may belong to somebody else
        os.utime(path)
    return code


def keep(symbol: str, stamp: str, code: bytes) -> None:
    """Keep an object with its digest, if possible, and remove old ones of the same kernel."""
    place = folder()
    if place is None:
        return
    part = ""
    try:
        with tempfile.NamedTemporaryFile(dir=place, suffix=".part", delete=False) as file:
            part = file.name
            file.write(code + hashlib.sha256(code).digest())
        os.chmod(part, 0o644)  # others may use the folder, too
        os.replace(part, place / f"{symbol}-{stamp}.o")
        for old in place.glob(f"{symbol}-*.o"):
            if old.stat().st_mtime < time.time() - _KEPT_FOR:
                old.unlink()
    except OSError:
        with suppress(OSError):
            os.unlink(part)


class Target(NamedTuple):
    """What an object is made for."""

    #: A processor: a name of LLVM's, or ``"native"`` for this one.
    cpu: str

    #: Whether it is loaded into a process as it is; otherwise, linked into a library.
    is_loaded: bool


def stamp_of(kernel: Any, configuration: Configuration, target: Target) -> str:
    """What the machine code of a kernel is made of, as a hash."""
    from evertree.kernels import numba_compiler

    digest = hashlib.sha256(_common().encode())
    digest.update(f"{configuration} {numba_compiler.processor(target.cpu)} {target.is_loaded}".encode())
    digest.update(" ".join(_layout_of(kind) for kind in kernel.signature.kinds.values()).encode())
    for _, text in sorted(sources_of(kernel, configuration).items()):
        digest.update(text.encode())
    return digest.hexdigest()[:20]


def _layout_of(kind: Any) -> str:
    """How an argument lies in memory: for a group of columns, what each of them is."""
    if is_described(kind):
        return f"{kind.__qualname__}({', '.join(f'{name}: {_layout_of(x)}' for name, x in kind.kinds().items())})"
    if isinstance(kind, Array) and kind.dtype is not None:
        return f"{np.dtype(kind.dtype).descr} {kind.ndim} {kind.has_strides}"
    return str(kind) if isinstance(kind, (type, Array, types.UnionType)) else type(kind).__qualname__


@cache
def _common() -> str:
    from evertree.kernels import numba_compiler

    return (
        f"{numba_compiler.versions()} {sys.version_info[:2]} {digest_of(Path(__file__).with_name(x) for x in _COMMON)}"
    )


def sources_of(function: Any, configuration: Configuration) -> dict[str, str]:
    """The text of a function, of all that it may call in this configuration, and the constants they read, by name."""
    texts: dict[str, str] = {}
    todo = [function]
    while todo:
        step = todo.pop()
        found = plain(step)
        name = f"{found.__module__}.{found.__qualname__}"
        if name in texts:
            continue
        texts[name] = f"{_text_of(found)} {_options_of(step)}"
        for used, value in _names_in(found):
            if hasattr(value, "chosen_by"):
                value = value.find(getattr(configuration, value.chosen_by))
            if isinstance(value, (Step, types.FunctionType)):
                todo.append(value)
            elif isinstance(value, type):
                texts[used] = _text_of(value) if value.__module__.startswith("evertree") else value.__qualname__
            elif isinstance(value, dict):  # a table of functions
                todo += value.values()
            elif not isinstance(value, types.ModuleType):
                texts[f"{name}:{used}"] = _constant(used, value)
    return texts


def check_sources(kernel: Any, configuration: Configuration, used: Iterable[Any]) -> None:
    """Refuse an object that would not be remade when a step changes: one that `sources_of` did not find."""
    known = sources_of(kernel, configuration)
    missed = [f"{x.__module__}.{x.__qualname__}" for x in used]
    missed = [name for name in missed if name not in known]
    if missed:
        raise AssertionError(f"{kernel.py_func.__qualname__} calls steps that are not found in its text: {missed}")


def _options_of(step: Any) -> str:
    """How a step is compiled, in an order that does not depend on hashes."""
    options = getattr(step, "targetoptions", {})
    return repr(sorted((name, sorted(x) if isinstance(x, set) else x) for name, x in options.items()))


@cache
def _text_of(found: Any) -> str:
    return inspect.getsource(found)


def _names_in(function: Any) -> Iterator[tuple[str, Any]]:
    """The global variables that a function reads, and what it encloses, with their values."""
    codes = [function.__code__]
    for code in codes:
        codes += [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
        for name in code.co_names:
            if name in function.__globals__:
                yield name, function.__globals__[name]
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        yield name, cell.cell_contents


def _constant(name: str, value: Any) -> str:
    if isinstance(value, (int, float, str, bytes, np.generic, tuple, frozenset)) or value is None:
        return f"{name} = {value!r}"
    if isinstance(value, np.dtype):
        return f"{name} = {value.descr}"
    raise TypeError(f"{name} is {value!r}: say how a kernel depends on it")
