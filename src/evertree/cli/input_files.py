"""Files of points: CSV, JSON and Parquet, .npy and .npz, all of them also from pipes."""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from evertree.cli import input_csv
from evertree.cli.file_kinds import BINARY, GZIP, find_kind
from evertree.cli.input_json import read_json
from evertree.cli.input_numpy import read_arrays
from evertree.cli.input_source import InputFile
from evertree.cli.input_table import TableFile, points_from_arrays, points_from_table
from evertree.cli.output import DASH
from evertree.cli.point_table import PointTable
from evertree.errors import DataError, FileFormatError, KeysError
from evertree.extras import require
from evertree.input.arrays import as_keys


def read_points(file: InputFile) -> PointTable:
    """Read a file in any format."""
    file.check()
    with _open(file) as stream:
        kind = find_kind(stream, file)
        if kind == "arrays":
            points = points_from_arrays(read_arrays(stream, file.name, file.array), file)
        else:
            points = points_from_table(_READERS[kind](stream, file), file)
    if points.keys is not None:
        try:
            as_keys(points.keys)
        except KeysError as error:
            raise type(error)(f"{file.name}, --key {file.key}: {error}") from None
    points.tell_dropped()
    return points


def read_stdin() -> bytes:
    """All of standard input."""
    if sys.stdin is None:
        raise DataError("standard input is closed: there is nothing to read")
    return sys.stdin.buffer.read()


@contextmanager
def _open(file: InputFile) -> Iterator[BinaryIO]:
    """The bytes of a file, decompressed, as a stream that can seek."""
    with _open_compressed(file) as stream:
        is_gzip = stream.read(len(GZIP)) == GZIP
        stream.seek(0)
        if not is_gzip:
            yield stream
            return
        try:
            yield _unzip(stream)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise FileFormatError(f"{file.name} cannot be read: {error}") from None


@contextmanager
def _open_compressed(file: InputFile) -> Iterator[BinaryIO]:
    if file.path == DASH:
        yield io.BytesIO(read_stdin())
    elif file.path.is_file():
        with file.path.open("rb") as stream:
            yield stream
    else:  # a pipe, which is read to its end, or an error
        yield io.BytesIO(file.path.read_bytes())


def _unzip(stream: BinaryIO) -> BinaryIO:
    unzipped: BinaryIO = gzip.GzipFile(fileobj=stream)  # type: ignore[assignment]
    is_binary = unzipped.read(max(map(len, BINARY))).startswith(BINARY)
    unzipped.seek(0)
    return io.BytesIO(unzipped.read()) if is_binary else unzipped


def _read_csv(stream: BinaryIO, file: InputFile) -> TableFile:
    table = input_csv.read_csv(stream, file)
    whole = None if file.join is None else input_csv.read_again(stream, file, table.column_names)
    return TableFile(table, is_text=True, as_it_came=whole)


def _read_json(stream: BinaryIO, file: InputFile) -> TableFile:
    table, objects = read_json(stream, file.name)
    return TableFile(table, objects=objects)


def _read_parquet(stream: BinaryIO, file: InputFile) -> TableFile:
    parquet = require("pyarrow.parquet", "reading Parquet", "cli")
    try:
        return TableFile(parquet.read_table(stream))
    except Exception as error:  # of several kinds
        raise FileFormatError(f"{file.name} is damaged: {error}") from None


_READERS = {"csv": _read_csv, "json": _read_json, "parquet": _read_parquet}
