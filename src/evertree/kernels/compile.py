"""The decorators of all kernels and of the steps that they consist of.

Kernels are functions in Python, and run as such where the compiler is switched off (``NUMBA_DISABLE_JIT=1``). Otherwise
they are machine code: of the library that comes with the package (`evertree.kernels.library`), or compiled by Numba
when first called (`evertree.kernels.numba_compiler`).

Kernels allocate nothing: they write into given arrays. So reference counting is switched off (``_nrt=False``); with it,
every call would count the references of every column of the tree, which costs more than a check of sixteen dimensions.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from typing import Any

#: Whether kernels are machine code.
IS_COMPILED = os.environ.get("NUMBA_DISABLE_JIT", "0") in ("", "0")

#: Freedoms that let the compiler sum with vector instructions. NaN and infinity keep their meaning.
REASSOCIATE = frozenset({"reassoc", "contract", "nsz"})

#: Options of all functions: they are called from machine code only.
OPTIONS = {"_nrt": False, "no_cfunc_wrapper": True, "no_cpython_wrapper": True}

#: What Numba must be told before it compiles anything; None once it has been.
_before_compiling: list[Callable[[], object]] | None = []


def when_compiling(tell: Callable[[], object]) -> None:
    """Call a function before anything is compiled, so that Numba is imported only if needed."""
    if _before_compiling is None:
        tell()
    else:
        _before_compiling.append(tell)


def prepare_to_compile() -> None:
    """Do all that was put off by `when_compiling`."""
    global _before_compiling
    for tell in _before_compiling or ():
        tell()
    _before_compiling = None


class Step:
    """A function that kernels call, with the options to compile it by. From Python, it is called as it is."""

    def __init__(self, function: Callable[..., Any], options: Mapping[str, Any]) -> None:
        self.py_func = function
        self.targetoptions = dict(options)
        self.__name__, self.__doc__, self.__module__ = function.__name__, function.__doc__, function.__module__
        self.__wrapped__ = function

    def __call__(self, *args: Any) -> Any:
        """Call the function in Python."""
        return self.py_func(*args)

    @property
    def _numba_type_(self) -> Any:
        from evertree.kernels import numba_compiler

        return numba_compiler.type_of_step(self)


class AddressCall(Step):
    """A step that calls machine code by its address."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function, {})

    @property
    def _numba_type_(self) -> Any:
        from evertree.kernels import numba_compiler

        return numba_compiler.type_of_address_call()


def kernel(function: Callable[..., Any]) -> Any:
    """A kernel that Python calls. Its annotations say what it takes: see `evertree.kernels.signatures`.

    Other threads run meanwhile: the caller must hold the lock of what it changes.
    """
    return _kernel(function)


def wide_kernel(function: Callable[..., Any]) -> Any:
    """As `kernel`, by the widest vectors that a processor has: for long loops of arithmetic, where they pay."""
    return _kernel(function, is_wide=True)


def _kernel(function: Callable[..., Any], is_wide: bool = False) -> Any:
    if not IS_COMPILED:
        return function
    from evertree.kernels.calls import Kernel

    return Kernel(function, OPTIONS, is_wide)


def _step(function: Callable[..., Any], **options: Any) -> Any:
    return Step(function, options) if IS_COMPILED else function


def step(function: Callable[..., Any]) -> Any:
    """Compile a step that is too long to be inlined into each kernel that uses it."""
    return _step(function, **OPTIONS)


def short_step(function: Callable[..., Any]) -> Any:
    """As `step`, for a short one used in many places: compiled once, and inlined by LLVM."""
    return _step(function, forceinline=True, **OPTIONS)


def inline(function: Callable[..., Any]) -> Any:
    """Inline a step into each kernel that uses it: it is compiled each time, so keep it short, or use it once."""
    return _step(function, _nrt=False, inline="always")


def inline_sum(function: Callable[..., Any]) -> Any:
    """As `short_step`, for one that sums over the columns of the data: the order of the sum is free."""
    return _step(function, forceinline=True, fastmath=set(REASSOCIATE), **OPTIONS)


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
    signature = inspect.signature(plain(like))
    position = list(signature.parameters).index(by)

    def chosen(*args: Any) -> Any:
        return find(type(args[position]))(*args)

    def typed_for(is_inlined: bool) -> Callable[..., Any]:
        def typed(*args: Any) -> Any:
            found = find(args[position].instance_class)
            return plain(found) if (plain(found) is found) == is_inlined else None

        typed.__signature__ = signature  # type: ignore[attr-defined]
        return typed

    def tell() -> None:
        from evertree.kernels import numba_compiler

        for is_inlined in (True, False):
            numba_compiler.overload(chosen, typed_for(is_inlined), {**OPTIONS, "forceinline": is_inlined})

    chosen.__signature__ = signature  # type: ignore[attr-defined]
    chosen.chosen_by, chosen.find = by, find  # type: ignore[attr-defined]
    if IS_COMPILED:
        when_compiling(tell)
    return chosen


def plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """The Python function that a step was made from."""
    found: Callable[..., Any] = getattr(function, "py_func", function)
    return found
