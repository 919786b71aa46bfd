"""Files of NumPy: .npy, and .npz with several arrays in it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from evertree.cli.keys import of_array
from evertree.errors import DataError, DimensionError, EvertreeError, FileFormatError, InvalidKeyError, listed

#: The array that has the points, where several could.
_USUAL = "X"


@dataclass(frozen=True)
class Arrays:
    """The points of a file, and the other arrays in it, by name."""

    points: NDArray[Any]
    others: Mapping[str, Any]

    def keys_in(self, name: str, file: str) -> list[Hashable]:
        """The keys in one of the other arrays."""
        if name not in self.others:
            raise InvalidKeyError(f"{file} has no array {name!r} with keys; it has {listed(self.others)}")
        try:
            keys = np.asarray(self.others[name])
        except ValueError as error:
            raise InvalidKeyError(f"{file}: {name!r} cannot be read: {error}") from None
        if keys.shape != (len(self.points),):
            raise InvalidKeyError(
                f"{file}: {name!r} must have a key for each of the {len(self.points)} points; its shape is {keys.shape}"
            )
        return of_array(keys, f"{file}: {name!r}")


def read(file: BinaryIO, name: str, array: str | None) -> Arrays:
    """The points in an .npy or .npz file: a matrix of numbers. Other arrays are read when they are asked for."""
    try:
        content = np.load(file, allow_pickle=False)
        is_archive = not isinstance(content, np.ndarray)
        points = _chosen(content, name, array) if is_archive else content
    except EvertreeError:
        raise
    except Exception as error:  # NumPy and zipfile raise many kinds of errors on damaged files
        raise FileFormatError(f"{name} cannot be read: {error}") from None
    if points.ndim != 2:
        dimensions = "1 dimension" if points.ndim == 1 else f"{points.ndim} dimensions"
        raise DimensionError(f"{name} must have a matrix, a row for each point; the array has {dimensions}")
    if points.dtype.kind not in "fiub":
        raise DataError(f"{name} must have numbers; the array is of type {points.dtype}")
    return Arrays(points, content if is_archive else {})


def _chosen(content: Any, name: str, array: str | None) -> NDArray[Any]:
    names = list(content.files)
    if "header" in names and "header_sha256" in names:
        raise FileFormatError(f"{name} is a saved tree, not a table of points: see evertree cut, plot and export")
    if array is not None:
        if array not in names:
            raise DataError(f"{name} has no array {array!r}; it has {listed(names)}")
        return np.asarray(content[array])
    if _USUAL in names:
        return np.asarray(content[_USUAL])
    matrices = [key for key in names if _is_matrix(content, key)]
    if len(matrices) != 1:
        which = f"the matrices {listed(matrices)}" if matrices else f"no matrix, but {listed(names)}"
        raise DataError(f"{name} has {which}: name the one with the points with --array")
    return np.asarray(content[matrices[0]])


def _is_matrix(content: Any, name: str) -> bool:
    try:
        found = content[name]
    except ValueError:  # Python objects, which are not read
        return False
    return isinstance(found, np.ndarray) and found.ndim == 2
