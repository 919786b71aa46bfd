"""`Kernel`: a call from Python into machine code.

Every kernel in machine code is a C function ``int64 f(const int64 *words)``. It takes its arguments as words (see
`evertree.kernels.signatures`) and returns 0, or the address of what describes an exception. The numbers that it returns
go to an array whose address is the last word.
"""

from __future__ import annotations

import ctypes
import pickle
import struct
import typing
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertree.kernels.columns import MeanTree, PairTree, Tree
from evertree.kernels.compile import Step
from evertree.kernels.signatures import (
    Address,
    Array,
    Configuration,
    Linked,
    Opaque,
    Signature,
    is_described,
    opaque_words,
)

#: A kernel in machine code. Other threads run during a call.
ENTRY = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_char_p)

#: What a kernel takes that needs no more than the columns that all trees have.
_ANY_TREE = (MeanTree, PairTree, Tree)

#: Names of the dtypes of data: NumPy takes a microsecond to find one.
_NAMES = {np.dtype(name): name for name in ("float32", "float64")}
_DTYPES = {name: dtype for dtype, name in _NAMES.items()}

_first_byte = ctypes.c_char.from_buffer


class Kernel(Step):
    """A kernel that is machine code: of the library, or compiled by Numba when it is first called."""

    def __init__(self, function: Callable[..., Any], options: Mapping[str, Any], is_wide: bool = False) -> None:
        super().__init__(function, options)
        self.is_wide = is_wide
        self._call: Callable[..., Any] = self._first_call

    def __call__(self, *args: Any) -> Any:
        """Call its machine code."""
        return self._call(*args)

    def _first_call(self, *args: Any) -> Any:
        self._call = _call_of(self)
        return self._call(*args)

    @cached_property
    def signature(self) -> Signature:
        """What it takes and returns."""
        return Signature(self.py_func)

    def symbol(self, configuration: Configuration) -> str:
        """The name of its machine code for one configuration."""
        module = self.py_func.__module__.removeprefix("evertree.kernels.").replace(".", "_")
        return f"{module}_{self.py_func.__name__}__{configuration}".rstrip("_")

    def address(self, configuration: Configuration) -> int:
        """Where its machine code for one configuration is."""
        from evertree.kernels import machine_code

        return machine_code.find(self, configuration)


class KernelOfUser(Kernel):
    """A kernel that calls a function which a user compiled with Numba: it is compiled in each process."""

    def address(self, configuration: Configuration) -> int:
        """Where its machine code for one configuration is."""
        from evertree.kernels import machine_code

        return machine_code.the_compiler().compiled_now(
            self.py_func, self.signature, configuration, f"user_{id(self)}_{configuration}"
        )


def _call_of(kernel: Kernel) -> Callable[..., Any]:
    """A function with the kernel's arguments that checks them, packs them into words, and calls its machine code.

    It is generated, as those of dataclasses are: edits of single points consist of such calls. Names that are not
    parameters of the kernel begin with an underscore.
    """
    signature = kernel.signature
    entries: dict[Any, Any] = {}

    def find(tree: type | None, linkage: type | None, dtype: str) -> Any:
        entry = entries[tree, linkage, dtype] = ENTRY(kernel.address(Configuration(tree, linkage, dtype)))
        return entry

    tree, linkage, data = signature.tree, signature.linkage, signature.data
    key = f"{f'{tree}.__class__' if tree else None}, {f'{linkage}.__class__' if linkage else None}, _dtype"
    dtype = "''"
    if data is not None:
        dtype = f"_name_of({data})" if isinstance(signature.kinds[data], Array) else f"{data}.dtype"
    words, codes, known = _words(signature)
    lines = [
        f"def call({', '.join(signature.kinds)}):",
        f"    _dtype = {dtype}",
        *_checks(signature, known),
        f"    _entry = _entries.get(({key})) or _find({key})",
    ]
    if signature.results:
        words.append("_address(_out)")
        codes += "q"
        lines.append("    _out = _results()")
    lines.append(f"    _error = _entry(_pack({', '.join(words)}))")
    lines.append("    if _error: raise _exception_at(_error)")
    if signature.results:
        found = [f"bool(_out[{k}])" if kind is bool else f"_out[{k}]" for k, kind in enumerate(signature.results)]
        lines.append(f"    return {', '.join(found)}{',' if signature.returns_tuple else ''}")
    number = ctypes.c_double if float in signature.results else ctypes.c_int64
    assert set(signature.results) in ({float}, set()) or float not in signature.results, "results of one type only"
    known |= {
        "_entries": entries,
        "_find": find,
        "_pack": struct.Struct(f"={codes}").pack,
        "_results": number * len(signature.results),
        "_address": ctypes.addressof,
        "_place": _place,
        "_name_of": _name_of,
        "_opaque_words": opaque_words,
        "_refuse": _refuse,
        "_exception_at": exception_at,
        "_dtypes": _DTYPES,
    }
    exec("\n".join(lines), known)
    call: Callable[..., Any] = known["call"]
    return call


def _checks(signature: Signature, known: dict[str, Any]) -> list[str]:
    """Lines that refuse columns of another kind, or for data of another dtype; what they name goes to `known`."""
    wrong, groups = [], []
    for name, kind in signature.kinds.items():
        if not (is_described(kind) or signature.tree == name):
            continue
        groups.append(name)
        known[f"_kinds_of_{name}"] = _ANY_TREE if kind is Tree else typing.get_args(kind) or (kind,)
        wrong.append(f"{name}.__class__ not in _kinds_of_{name}")
        if is_described(kind) and kind.dtypes() and name != signature.data:
            wrong.append(f"{name}.dtype != _dtype")
    return [f"    if {' or '.join(wrong)}: _refuse({', '.join(groups)})"] if groups else []


def _words(signature: Signature) -> tuple[list[str], str, dict[str, Any]]:
    """The words of a call as expressions, their codes for `struct`, and the dtypes that the expressions name."""
    words, codes, names = [], "", {}
    for name, kind in signature.kinds.items():
        if isinstance(kind, Array):
            wanted = "_dtypes[_dtype]" if kind.dtype is None else f"_dtype_of_{name}"
            names[f"_dtype_of_{name}"] = kind.dtype and np.dtype(kind.dtype)
            shape = [f"{name}.size"] if kind.ndim == 1 else [f"*{name}.shape"]
            words += [f"_place({name}, {wanted}, {kind.ndim})", *shape]
            codes += "q" * (1 + kind.ndim)
        elif isinstance(kind, Opaque):
            words.append(f"*_opaque_words({name})")
            codes += "qq"
        elif is_described(kind) or signature.tree == name:
            words.append(f"{name}.address")
            codes += "q"
        elif isinstance(kind, Linked):
            words.append(f"{name}.tolerance")
            codes += "d"
        else:
            words.append(name)
            codes += "d" if kind is float else "q"
            assert kind in (int, float) or isinstance(kind, Address), f"{name}: {kind}"
    return words, codes, names


def _place(array: Any, dtype: np.dtype[Any], ndim: int) -> int:
    """The address of an array, which must be contiguous and writeable."""
    if array.dtype != dtype or array.ndim != ndim:
        raise TypeError(
            f"a kernel needs an array of {dtype} with {ndim} dimensions; this is one of {array.dtype} with {array.ndim}"
        )
    return ctypes.addressof(_first_byte(array)) if array.size else 0


def _name_of(array: NDArray[Any]) -> str:
    name = _NAMES.get(array.dtype)
    if name is None:
        raise TypeError(f"a kernel needs data of float32 or float64; these are {array.dtype}")
    return name


def _refuse(*columns: Any) -> None:
    found = ", ".join(f"{type(x).__name__} of {x.dtype}" if hasattr(x, "dtype") else repr(x) for x in columns)
    raise TypeError(f"a kernel was called with columns that do not fit it, or each other: {found}")


class _Raised(ctypes.Structure):
    """What describes an exception: Numba's ``excinfo_t``."""

    _fields_ = (
        ("pickled", ctypes.c_void_p),
        ("length", ctypes.c_int32),
        ("values", ctypes.c_void_p),
        ("pickle", ctypes.c_void_p),
        ("is_dynamic", ctypes.c_int32),  # some arguments are values of variables, which only Numba can read
    )


def exception_at(address: int) -> BaseException:
    """The exception that machine code has raised."""
    raised = _Raised.from_address(address)
    kind, args, *_ = pickle.loads(ctypes.string_at(raised.pickled, raised.length))
    if raised.is_dynamic:
        args = [arg for arg in args if isinstance(arg, (str, int, float))]
    exception: BaseException = kind(*(args or ()))
    return exception
