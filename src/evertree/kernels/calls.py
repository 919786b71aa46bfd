"""`Kernel`: a call from Python into machine code.

Every kernel in machine code is a C function ``int64 f(const int64 *words)``. It takes its arguments as words (see
`evertree.kernels.signatures`) and returns 0, or the address of what describes an exception. The numbers that it returns
go to an array whose address is the last word.
"""

from __future__ import annotations

import ctypes
import pickle
import struct
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertree.kernels.compile import Step
from evertree.kernels.signatures import (
    Address,
    Array,
    Configuration,
    Linked,
    Opaque,
    Signature,
    address_of,
    is_described,
)

#: A kernel in machine code. Other threads run during a call.
ENTRY = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_char_p)

#: Names of the dtypes of data: NumPy takes a microsecond to find one.
_NAMES = {np.dtype(name): name for name in ("float32", "float64")}
_DTYPES = {name: dtype for dtype, name in _NAMES.items()}

_first_byte = ctypes.c_char.from_buffer


class Kernel(Step):
    """A kernel that is machine code: of the library, or compiled by Numba when it is first called."""

    def __init__(self, function: Callable[..., Any], options: Mapping[str, Any]) -> None:
        super().__init__(function, options)
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
        from evertree.kernels import numba_compiler

        return numba_compiler.compiled_now(
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
    words, codes, names = _words(signature)
    lines = [
        f"def call({', '.join(signature.kinds)}):",
        f"    _dtype = {dtype}",
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
    known = {
        **names,
        "_entries": entries,
        "_find": find,
        "_pack": struct.Struct(f"={codes}").pack,
        "_results": number * len(signature.results),
        "_address": ctypes.addressof,
        "_place": _place,
        "_name_of": _name_of,
        "_address_of": address_of,
        "_exception_at": exception_at,
        "_dtypes": _DTYPES,
    }
    exec("\n".join(lines), known)
    call: Callable[..., Any] = known["call"]
    return call


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
            words += [f"_address_of({name})", f"{name}.shape[1]"]
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
    return _NAMES.get(array.dtype) or str(array.dtype)


class _Raised(ctypes.Structure):
    """What describes an exception: Numba's ``excinfo_t``."""

    _fields_ = (
        ("pickled", ctypes.c_void_p),
        ("length", ctypes.c_int32),
        ("values", ctypes.c_void_p),
        ("pickle", ctypes.c_void_p),
        ("is_dynamic", ctypes.c_int32),  # its text has values of variables, which only Numba can read
    )


def exception_at(address: int) -> BaseException:
    """The exception that machine code has raised."""
    raised = _Raised.from_address(address)
    if raised.is_dynamic:
        return RuntimeError("the compiled function raised an exception whose text is not constant")
    kind, args, *_ = pickle.loads(ctypes.string_at(raised.pickled, raised.length))
    exception: BaseException = kind(*(args or ()))
    return exception
