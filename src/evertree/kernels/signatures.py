"""The types of what kernels take, and how it lies in memory.

The annotations of a kernel say what it takes. From them follow the checks of a call, the machine code, and the list of
all machine code that there is to build: a kernel of any tree is compiled for each kind of tree, one with a linkage for
each linkage that such a tree may have, and one with data for each dtype.

To a kernel in machine code every argument is one or more *words* of 64 bits. A number is one, an array its address and
its shape, and a group of columns the address of its description: see `described`.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Annotated, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

#: The dtypes of data.
DTYPES = ("float32", "float64")


@dataclass(frozen=True)
class Array:
    """An array: contiguous, or a column with strides, one field of the records of all nodes.

    A dtype of None is that of the data.
    """

    dtype: Any
    ndim: int = 1
    has_strides: bool = False

    def dtype_for(self, data: str) -> np.dtype[Any]:
        """Its dtype, for data of the given one."""
        return np.dtype(data if self.dtype is None else self.dtype)


class Opaque:
    """A matrix of any dtype, of which only the function at an address knows more: its address and number of columns."""


class Address:
    """The address of a function; in plain Python, the function."""


@dataclass(frozen=True)
class Linked:
    """A linkage, as kernels see it: its tag. `has` says for which linkages a kernel is compiled."""

    has: Callable[[Any], bool]


Ints = Annotated[NDArray[np.int32], Array(np.int32)]
ShortInts = Annotated[NDArray[np.int16], Array(np.int16)]
LongInts = Annotated[NDArray[np.int64], Array(np.int64)]
Bytes = Annotated[NDArray[np.uint8], Array(np.uint8)]
Bools = Annotated[NDArray[np.bool_], Array(np.bool_)]
Floats = Annotated[NDArray[np.float64], Array(np.float64)]
ByteMatrix = Annotated[NDArray[np.uint8], Array(np.uint8, 2)]
IntMatrix = Annotated[NDArray[np.int32], Array(np.int32, 2)]
LongMatrix = Annotated[NDArray[np.int64], Array(np.int64, 2)]
FloatMatrix = Annotated[NDArray[np.float64], Array(np.float64, 2)]
ShortFloatMatrix = Annotated[NDArray[np.float32], Array(np.float32, 2)]
FloatCube = Annotated[NDArray[np.float64], Array(np.float64, 3)]

#: In the dtype of the data.
Data = Annotated[NDArray[Any], Array(None)]
DataMatrix = Annotated[NDArray[Any], Array(None, 2)]

# Columns: fields of the records of all nodes.
IntColumn = Annotated[NDArray[np.int32], Array(np.int32, has_strides=True)]
ShortIntColumn = Annotated[NDArray[np.int16], Array(np.int16, has_strides=True)]
LongColumn = Annotated[NDArray[np.int64], Array(np.int64, has_strides=True)]
ByteColumn = Annotated[NDArray[np.uint8], Array(np.uint8, has_strides=True)]
FloatColumn = Annotated[NDArray[np.float64], Array(np.float64, has_strides=True)]
ShortFloatColumn = Annotated[NDArray[np.float32], Array(np.float32, has_strides=True)]

OpaqueMatrix = Annotated[NDArray[Any], Opaque()]
FunctionAddress = Annotated[Any, Address()]

#: The linkage of the tree that a kernel takes.
AnyLinkage = Annotated[Any, Linked(lambda linkage: True)]  # noqa: ARG005
AverageLinkage = Annotated[Any, Linked(lambda linkage: linkage.name == "average")]
LinkageWithRecurrence = Annotated[Any, Linked(lambda linkage: not linkage.has_centers)]
LinkageWithCenters = Annotated[Any, Linked(lambda linkage: linkage.has_centers)]


_Columns = TypeVar("_Columns", bound=type)


class Described:
    """A group of columns with a description of itself in memory, made when it is first used.

    The description has, for each array, its address, shape and strides; for another group, the address of its
    description; and numbers as they are. Groups never change (they are NamedTuples), so it stays valid.
    """

    @classmethod
    @cache
    def kinds(cls) -> dict[str, Any]:
        """What each of its columns is, in order."""
        hints = typing.get_type_hints(cls, include_extras=True)
        return {name: kind_of(hints[name]) for name in cls._fields}  # type: ignore[attr-defined]

    @classmethod
    def dtypes(cls) -> tuple[str, ...]:
        """The dtypes of data that it may have."""
        return DTYPES if any(_follows_dtype(kind) for kind in cls.kinds().values()) else ()

    @cached_property
    def dtype(self) -> str:
        """The dtype of the data, if any of the columns has it; otherwise an empty string."""
        columns = zip(self.kinds().values(), self, strict=True)  # type: ignore[call-overload]
        return next((str(value.dtype) for kind, value in columns if _follows_dtype(kind)), "")

    @property
    def words(self) -> NDArray[np.int64]:
        """The description: one for all threads, as its address is passed on."""
        found: NDArray[np.int64] | None = self.__dict__.get("_words")
        return self.__dict__.setdefault("_words", self._describe()) if found is None else found

    def _describe(self) -> NDArray[np.int64]:
        words: list[int] = []
        for (name, kind), value in zip(self.kinds().items(), self, strict=True):  # type: ignore[call-overload]
            if isinstance(kind, Array):
                _check(value, kind, self.dtype, f"{type(self).__name__}.{name}")
                words += [address_of(value), *value.shape, *value.strides]
            elif isinstance(kind, Opaque):
                words += opaque_words(value)
            elif isinstance(kind, Address):
                words.append(value or 0)
            else:
                words.append(value.address)
        return np.array(words, np.int64)

    @cached_property
    def address(self) -> int:
        """The address of the description."""
        return address_of(self.words)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(self)  # type: ignore[arg-type]  # addresses mean nothing to another process


def described(columns: _Columns) -> _Columns:
    """Let a NamedTuple of arrays be an argument of kernels."""
    names = {"__module__": columns.__module__, "__qualname__": columns.__qualname__, "__doc__": columns.__doc__}
    return type(columns.__name__, (columns, Described), names)  # type: ignore[return-value]


def _follows_dtype(kind: Any) -> bool:
    return isinstance(kind, Array) and kind.dtype is None


def address_of(array: NDArray[Any]) -> int:
    """Where the first entry of an array is."""
    address: int = array.__array_interface__["data"][0]
    return address


def opaque_words(matrix: NDArray[Any]) -> list[int]:
    """The address and the number of columns of a contiguous matrix."""
    if not (matrix.ndim == 2 and matrix.flags.c_contiguous):
        raise TypeError("a kernel needs a contiguous matrix")
    return [address_of(matrix), matrix.shape[1]]


def _check(array: NDArray[Any], kind: Array, data: str, name: str) -> None:
    wanted = kind.dtype_for(data)
    if array.dtype != wanted or array.ndim != kind.ndim or not (kind.has_strides or array.flags.carray):
        raise TypeError(
            f"{name} must be {'an' if kind.has_strides else 'a contiguous, writeable'} array of {wanted} with "
            f"{kind.ndim} dimensions; it is one of {array.dtype} with {array.ndim}"
        )


def kind_of(hint: Any) -> Any:
    """What an annotation stands for: a class of this module, a class of columns, or a type of Python."""
    if typing.get_origin(hint) is Annotated:
        return typing.get_args(hint)[1]
    return hint


class Configuration(NamedTuple):
    """What a kernel is compiled for."""

    #: The class of the tree; None if it takes none, or works on all trees alike.
    tree: type | None

    #: The class of the tag of the linkage, or None.
    linkage: type | None

    #: The dtype of the data; an empty string if there are none.
    dtype: str

    def __str__(self) -> str:
        names = [self.tree and self.tree.__name__, self.linkage and self.linkage.__name__, self.dtype]
        return "_".join(name.lower() for name in names if name)


class Signature:
    """What a kernel takes and returns, from its annotations."""

    def __init__(self, function: Callable[..., Any]) -> None:
        hints = typing.get_type_hints(function, include_extras=True)
        result = hints.pop("return", type(None))
        missing = [name for name in inspect.signature(function).parameters if name not in hints]
        if missing:
            raise TypeError(f"{function.__qualname__} must say what these are: {', '.join(missing)}")
        self.kinds = {name: kind_of(hint) for name, hint in hints.items()}
        self.returns_tuple = typing.get_origin(result) is tuple
        #: The types of the numbers that it returns.
        self.results = typing.get_args(result) if self.returns_tuple else () if result is type(None) else (result,)

    @cached_property
    def tree(self) -> str | None:
        """The parameter whose class decides for which kind of tree it is compiled, if any."""
        return next((name for name, kind in self.kinds.items() if _trees(kind)), None)

    @cached_property
    def linkage(self) -> str | None:
        """The parameter that is a linkage, if any."""
        return next((name for name, kind in self.kinds.items() if isinstance(kind, Linked)), None)

    @cached_property
    def data(self) -> str | None:
        """The parameter whose dtype decides for which dtype of data it is compiled, if any: a tree comes first."""
        if self.tree is not None:
            return self.tree
        for name, kind in self.kinds.items():
            if _follows_dtype(kind) or (is_described(kind) and kind.dtypes()):
                return name
        return None

    def configurations(self, linkages: list[Any]) -> Iterator[Configuration]:
        """All that there is to compile it for, given all linkages."""
        for tree in (None,) if self.tree is None else _trees(self.kinds[self.tree]):
            tags: list[Any] = [None]
            if self.linkage is not None:
                has = self.kinds[self.linkage].has
                tags = [x.tag for x in linkages if has(x) and (tree is None or tree.may_have(x))]
            dtypes = ("",) if self.data is None else DTYPES if tree is None else tree.dtypes()
            for tag in tags:
                for dtype in dtypes:
                    yield Configuration(tree, tag, dtype)


def is_described(kind: Any) -> bool:
    """Whether an argument is a group of columns."""
    return isinstance(kind, type) and issubclass(kind, Described)


def _trees(kind: Any) -> tuple[Any, ...]:
    """The classes of trees among those that an argument may have; none if all trees are alike."""
    return tuple(x for x in typing.get_args(kind) or (kind,) if hasattr(x, "may_have"))
