"""Points in files of NumPy: .npy, and .npz with several arrays."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from evertree.cli.key_text import keys_from_array
from evertree.errors import DataError, DimensionError, EvertreeError, FileFormatError, InvalidKeyError, listed

#: The array with the points, where several could be.
_DEFAULT_ARRAY = "X"


@dataclass(frozen=True)
class ArrayFile:
    """The points of a file, and all its arrays by name."""

    points: NDArray[Any]
    arrays: Mapping[str, Any]

    def keys(self, name: str, file: str) -> list[Hashable]:
        """The keys in one of the arrays."""
        if name not in self.arrays:
            raise InvalidKeyError(f"{file} has no array {name!r} with keys; it has {listed(self.arrays)}")
        try:
            keys = np.asarray(self.arrays[name])
        except ValueError as error:
            raise InvalidKeyError(f"{file}: {name!r} cannot be read: {error}") from None
        if keys.shape != (len(self.points),):
            raise InvalidKeyError(
                f"{file}: {name!r} must have a key for each of the {len(self.points)} points; its shape is {keys.shape}"
            )
        return keys_from_array(keys, f"{file}: {name!r}")


def read_arrays(stream: BinaryIO, file: str, array: str | None) -> ArrayFile:
    """The points in an .npy or .npz file, a matrix of numbers. Other arrays are read when they are needed."""
    try:
        content = np.load(stream, allow_pickle=False)
        is_archive = not isinstance(content, np.ndarray)
        points = _find_points(content, file, array) if is_archive else content
    except EvertreeError:
        raise
    except Exception as error:  # NumPy and zipfile raise many kinds of errors on damaged files
        raise FileFormatError(f"{file} cannot be read: {error}") from None
    if points.ndim != 2:
        dimensions = "1 dimension" if points.ndim == 1 else f"{points.ndim} dimensions"
        raise DimensionError(f"{file} must have a matrix, a row for each point; the array has {dimensions}")
    if points.dtype.kind not in "fiub":
        raise DataError(f"{file} must have numbers; the array is of type {points.dtype}")
    return ArrayFile(points, content if is_archive else {})


def _find_points(archive: Any, file: str, array: str | None) -> NDArray[Any]:
    _refuse_other_archives(archive.zip.namelist(), file)
    names = list(archive.files)
    if "header" in names and "header_sha256" in names:
        raise FileFormatError(f"{file} is a saved tree, not a table of points: see evertree cut, plot and export")
    if array is None and _DEFAULT_ARRAY in names:
        array = _DEFAULT_ARRAY
    if array is None:
        matrices = [name for name in names if _is_matrix(archive, name)]
        if len(matrices) != 1:
            which = f"the matrices {listed(matrices)}" if matrices else f"no matrix, but {listed(names)}"
            raise DataError(f"{file} has {which}: name the one with the points with --array")
        array = matrices[0]
    if array not in names:
        raise DataError(f"{file} has no array {array!r}; it has {listed(names)}")
    return np.asarray(archive[array])


def _refuse_other_archives(members: list[str], file: str) -> None:
    """Refuse zip archives without arrays, such as those of office programs."""
    if any(member.startswith("xl/") for member in members):
        raise FileFormatError(f"{file} is an Excel file: save the table as CSV")
    if "content.xml" in members:
        raise FileFormatError(f"{file} is an OpenDocument file: save the table as CSV")
    if members and not any(member.endswith(".npy") for member in members):
        raise FileFormatError(f"{file} is a zip archive without NumPy's arrays: unpack it")


def _is_matrix(archive: Any, name: str) -> bool:
    try:
        found = archive[name]
    except ValueError:  # Python objects, which are not read
        return False
    return isinstance(found, np.ndarray) and found.ndim == 2
