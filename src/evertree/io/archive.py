"""The file format: a header in JSON and named arrays in a zip archive (NumPy's ``.npz``), without pickle.

The header holds the format version, the caller's entries and a SHA-256 of every array; the archive also holds a SHA-256
of the header. Files of a newer version are refused with a remedy; damaged or edited ones are refused too.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertree.errors import CorruptFileError, EvertreeError, FileFormatError, NewerFormatError
from evertree.io.atomic_write import atomic_write
from evertree.io.json_values import to_json

#: Written into every file. It increases when older versions could not read the file.
FORMAT_VERSION = 4

_FORMAT = "evertree hierarchy"

#: How an SQLite file begins.
_SQLITE = b"SQLite format 3"

#: The errors caused by damaged or forged content.
SIGNS_OF_DAMAGE = (
    EvertreeError,
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)


def write(path: str | os.PathLike[str], header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write a file, atomically."""
    text = np.frombuffer(encode_header(header, arrays), np.uint8)
    with atomic_write(path) as file:
        np.savez(file, header=text, header_sha256=_digest_of_text(text), **arrays)  # type: ignore[arg-type]


def encode_header(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """A header as JSON text, with the format, its version and a SHA-256 of every array."""
    digests = {name: _digest(array) for name, array in arrays.items()}
    return to_json({"format": _FORMAT, "version": FORMAT_VERSION, **header, "sha256": digests})


def decode_header(text: bytes, path: str | os.PathLike[str]) -> dict[str, Any]:
    """The header that `encode_header` wrote, if this version can read it. `verify_checksums` checks the arrays."""
    header = json.loads(text)
    if not isinstance(header, dict) or header.get("format") != _FORMAT:
        raise FileFormatError(f"{path} is not a file written by Hierarchy.save")
    if type(header["version"]) is not int or header["version"] < 1:
        raise CorruptFileError(f"{path} is damaged: {header['version']!r} is not a version")
    if header["version"] > FORMAT_VERSION:
        raise NewerFormatError(
            f"{path} has format version {header['version']}, and this evertree reads up to {FORMAT_VERSION}: "
            "upgrade evertree to read it"
        )
    return header


def verify_checksums(header: dict[str, Any], arrays: Mapping[str, NDArray[Any]], path: str | os.PathLike[str]) -> None:
    """Refuse arrays that do not have the checksums in the header."""
    for name, digest in header["sha256"].items():
        if _digest(arrays[name]) != digest:
            raise CorruptFileError(f"{path} is damaged: {name!r} does not have its checksum")


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The header and the arrays of a file, checked. They take no more memory than the file on disk."""
    if not os.path.isfile(path) and os.path.exists(path) and not os.path.isdir(path):
        raise FileFormatError(f"{path} must be a file; it is a pipe or a device: write its content to a file first")
    with open(path, "rb") as file:
        beginning = file.read(len(_SQLITE))
        if beginning == _SQLITE:
            raise FileFormatError(
                f"{path} is an SQLite database: if it is a durable hierarchy, use evertree.open(path)"
            )
        if not beginning.startswith(b"PK"):
            raise FileFormatError(f"{path} is not a file written by Hierarchy.save")
        try:
            with zipfile.ZipFile(file) as archive:
                return _read_archive(archive, path)
        except (EvertreeError, MemoryError):
            raise
        except zipfile.BadZipFile as error:
            raise CorruptFileError(f"{path} is damaged: its end, or a part of it, is missing or changed") from error
        except Exception as error:  # zipfile and NumPy raise many kinds of errors on damaged files
            raise CorruptFileError(f"{path} is damaged: {error}") from error


def _read_archive(
    archive: zipfile.ZipFile, path: str | os.PathLike[str]
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    if "header.npy" not in archive.namelist():
        raise FileFormatError(f"{path} is not a file written by Hierarchy.save")
    members = archive.infolist()
    if sum(member.file_size for member in members) > os.path.getsize(path):
        raise CorruptFileError(f"{path} is damaged, or was compressed: its content is larger than the file")
    if min(member.header_offset for member in members) > 0:
        raise CorruptFileError(f"{path} is damaged: there is something before the archive")
    text = _read_array(archive, "header")
    header = decode_header(text.tobytes(), path)
    if not np.array_equal(_read_array(archive, "header_sha256"), _digest_of_text(text)):
        raise CorruptFileError(f"{path} is damaged: its header does not have its checksum")
    arrays = {name: _read_array(archive, name) for name in header["sha256"]}
    verify_checksums(header, arrays, path)
    return header, arrays


def _read_array(archive: zipfile.ZipFile, name: str) -> NDArray[Any]:
    with archive.open(f"{name}.npy") as member:
        is_first = np.lib.format.read_magic(member) == (1, 0)
        read_shape = np.lib.format.read_array_header_1_0 if is_first else np.lib.format.read_array_header_2_0
        shape, _, dtype = read_shape(member)
        expected = member.tell() + math.prod(shape) * dtype.itemsize
        if expected != archive.getinfo(member.name).file_size:  # before memory is allocated
            raise ValueError(f"{name!r} does not have {expected} bytes")
        member.seek(0)
        return np.lib.format.read_array(member, allow_pickle=False)


def _digest_of_text(text: NDArray[np.uint8]) -> NDArray[np.uint8]:
    return np.frombuffer(hashlib.sha256(text.tobytes()).digest(), np.uint8)


def _digest(array: NDArray[Any]) -> str:
    digest = hashlib.sha256(f"{array.dtype.str} {array.shape}".encode())
    digest.update(np.ascontiguousarray(array).data)  # no copy if it is contiguous
    return digest.hexdigest()
