"""The cache lines that kernels touch: they run in plain Python, on columns that note what is read and written.

The columns are views of those of a tree, whose addresses count, and keep what is written to themselves: so a kernel can
do a little of its work ahead, and nothing changes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertree.kernels.signatures import address_of

#: Bytes of a cache line.
LINE = 64


class Lines:
    """The cache lines that a kernel has touched, and what it has written."""

    def __init__(self) -> None:
        self.read: set[int] = set()
        self.written: set[int] = set()
        self.values: dict[int, Any] = {}

    def take(self) -> int:
        """The bytes since the last call: lines that were touched, and those that were written once more."""
        count = len(self.read | self.written) + len(self.written)
        self.read.clear()
        self.written.clear()
        return LINE * count


class Column:
    """An array, as a kernel in plain Python sees it. What is written is kept aside: the array stays as it is."""

    def __init__(self, array: NDArray[Any], lines: Lines) -> None:
        self.array, self.lines = array, lines
        self.shape, self.size, self.dtype = array.shape, array.size, array.dtype
        self._start, self._strides = address_of(array), array.strides

    def _address(self, at: Any) -> int:
        if isinstance(at, tuple):
            return self._start + int(at[0]) * self._strides[0] + int(at[1]) * self._strides[1]
        return self._start + int(at) * self._strides[0]

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice) or (len(self.shape) == 2 and not isinstance(at, tuple)):
            return Column(self.array[at], self.lines)
        value, address = self.array[at], self._address(at)  # out of range is an error of the array
        self.lines.read.add(address // LINE)
        return self.lines.values.get(address, value)

    def __setitem__(self, at: Any, value: Any) -> None:
        address = self._address(at)
        self.lines.written.add(address // LINE)
        self.lines.values[address] = self.dtype.type(value)


def watched(value: Any, lines: Lines) -> Any:
    """An argument of a kernel, with its arrays as columns. Counters, which are always in the cache, are copied."""
    if isinstance(value, np.ndarray):
        return value.copy() if value.dtype.names else Column(value, lines)
    if not isinstance(value, tuple):
        return value
    columns: Any = type(value)
    return columns._make(watched(x, lines) for x in value)


def lines_of(rows: NDArray[Any], width: int = 0) -> float:
    """Cache lines that a row, or so many bytes of it, lies in, on average."""
    first = address_of(rows) + np.arange(len(rows)) * rows.strides[0]
    return float(np.mean((first + (width or rows.strides[0]) - 1) // LINE - first // LINE + 1))
