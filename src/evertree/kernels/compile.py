"""The decorators of all kernels: compiled by Numba, cached on disk, and never stale.

Kernels allocate nothing: they write into given arrays. So reference counting is switched off (``_nrt=False``); with it,
every call would count the references of every column of the tree, which costs more than a check of sixteen dimensions.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.extending import overload

from evertree.kernels.notice import tell_when_compiled

#: Freedoms that let the compiler sum with vector instructions. NaN and infinity keep their meaning.
REASSOCIATE = frozenset({"reassoc", "contract", "nsz"})

_PACKAGE = Path(__file__).parents[1]


@cache
def _fingerprint(*outside: str) -> str:
    """A hash of all the code that kernels are compiled from: the package's, and files outside it."""
    return digest_of([*_PACKAGE.glob("kernels/**/*.py"), *_PACKAGE.glob("linkages/*.py"), *map(Path, outside)])


def digest_of(sources: Iterable[Path]) -> str:
    """A hash of some files."""
    digest = hashlib.sha256()
    for source in sorted(sources):
        digest.update(source.name.encode())
        digest.update(source.read_bytes())
    return digest.hexdigest()


def _stamp(function: Callable[..., Any]) -> str:
    """What the machine code of a kernel depends on. A kernel may be in a file outside the package."""
    file = function.__code__.co_filename
    return _fingerprint() if Path(file).is_relative_to(_PACKAGE) else _fingerprint(file)


#: Options of kernels called from Python, never from C: code that unpacks a tree for a caller takes long to compile.
_FOR_PYTHON = {"_nrt": False, "no_cfunc_wrapper": True, "nogil": True}

#: Options of functions called only by kernels.
_FOR_KERNELS = {"_nrt": False, "no_cfunc_wrapper": True, "no_cpython_wrapper": True}


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a kernel that Python calls: on its first call, unless its machine code is cached on disk.

    Numba's own cache looks only at the file that defines a function: an edit in a file whose functions it calls would
    go unnoticed. So the cache is stamped with the sources of all kernels of the package, and of the function.

    Other threads run meanwhile: the caller must hold the lock of what it changes.
    """
    if numba.config.DISABLE_JIT:
        return function
    try:
        compiled = numba.njit(cache=True, **_FOR_PYTHON)(function)
        cache_file = compiled._cache._cache_file
        cache_file._source_stamp  # noqa: B018  checks that this Numba has it
        cache_file._source_stamp = _stamp(function)
        cache_file._load_index = _or_nothing(cache_file._load_index)
    except (
        RuntimeError,
        AttributeError,
        OSError,
    ):  # it cannot be cached or stamped: compile in every process
        return numba.njit(**_FOR_PYTHON)(function)
    return compiled


def long_kernel(function: Callable[..., Any]) -> Any:
    """As `kernel`, for one that takes long to compile and says so."""
    compiled = kernel(function)
    if not numba.config.DISABLE_JIT:
        tell_when_compiled(compiled)
    return compiled


def _or_nothing(load_index: Callable[[], dict[Any, Any]]) -> Callable[[], dict[Any, Any]]:
    """The index on disk, or nothing if it cannot be read: it may name classes that no longer exist."""

    def load() -> dict[Any, Any]:
        try:
            return load_index()
        except Exception:
            return {}

    return load


def step(function: Callable[..., Any]) -> Any:
    """Compile a step that is too long to be inlined into each kernel that uses it."""
    return numba.njit(**_FOR_KERNELS)(function)


def short_step(function: Callable[..., Any]) -> Any:
    """As `step`, for a short one used in many places: compiled once, and inlined by LLVM."""
    return numba.njit(forceinline=True, **_FOR_KERNELS)(function)


def inline(function: Callable[..., Any]) -> Any:
    """Inline a step into each kernel that uses it: it is compiled each time, so keep it short, or use it once."""
    return numba.njit(_nrt=False, inline="always")(function)


def inline_sum(function: Callable[..., Any]) -> Any:
    """As `short_step`, for one that sums over the columns of the data: the order of the sum is free."""
    return numba.njit(forceinline=True, fastmath=set(REASSOCIATE), **_FOR_KERNELS)(function)


def choose(by: str, table: Mapping[Any, Callable[..., Any]], key: Callable[[type], Any] = lambda kind: kind) -> Any:
    """A function chosen at compile time by the class of the argument `by`.

    The functions in `table` are steps, or plain ones, and have the same arguments. Classes are those of NamedTuples;
    the keys of the table are these classes, or what `key` maps them to.
    """
    return chosen_by(by, lambda kind: table[key(kind)], next(iter(table.values())))


def chosen_by(by: str, find: Callable[[type], Callable[..., Any]], like: Callable[..., Any]) -> Any:
    """As `choose`, by a function that finds the one for a class. All have the arguments of `like`.

    Plain functions are inlined into each kernel that uses them; steps are called as they are.
    """
    signature = inspect.signature(_plain(like))
    position = list(signature.parameters).index(by)

    def chosen(*args: Any) -> Any:
        return find(type(args[position]))(*args)

    def register(is_inlined: bool) -> None:
        def typed(*args: Any) -> Any:
            found = find(args[position].instance_class)
            return _plain(found) if (_plain(found) is found) == is_inlined else None

        typed.__signature__ = signature  # type: ignore[attr-defined]
        overload(chosen, jit_options={**_FOR_KERNELS, "forceinline": is_inlined})(typed)

    chosen.__signature__ = signature  # type: ignore[attr-defined]
    register(True)
    register(False)
    return chosen


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """The Python function that a step was compiled from."""
    plain: Callable[..., Any] = getattr(function, "py_func", function)
    return plain
