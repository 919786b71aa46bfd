"""Files of points: CSV and Parquet read by pyarrow, .npy and .npz read by NumPy, all of them also from pipes."""

from __future__ import annotations

import codecs
import csv
import io
import sys
from collections import Counter
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from evertree.cli import input_csv
from evertree.cli.input_numpy import ArrayFile, read_arrays
from evertree.cli.key_text import keys_from_array, parse_key
from evertree.cli.output import DASH, plural
from evertree.durable.sqlite_file import MAGIC
from evertree.errors import (
    DataError,
    DimensionError,
    FileFormatError,
    InvalidKeyError,
    KeysError,
    ParameterError,
    listed,
    name_rows,
)
from evertree.extras import require
from evertree.input.arrays import as_keys
from evertree.input.frames import to_array

#: The first bytes of files.
_NPY, _ZIP, _PARQUET, _GZIP = b"\x93NUMPY", b"PK\x03\x04", b"PAR1", b"\x1f\x8b"

#: How many bytes decide what a file is.
_N_FIRST = 1024


@dataclass(frozen=True)
class InputFile:
    """A file of points, and the options that say how to read it."""

    path: Path
    key: str | None = None
    columns: str | None = None
    delimiter: str | None = None
    has_header: bool = True
    array: str | None = None

    @property
    def name(self) -> str:
        """The file in messages."""
        return "standard input" if self.path == DASH else str(self.path)

    @property
    def column_names(self) -> list[str] | None:
        """The columns in ``--columns``."""
        return None if self.columns is None else split_names(self.columns)


def split_names(text: str) -> list[str]:
    """Names separated by commas; one that has a comma in it is quoted."""
    names = [name.strip() for name in next(csv.reader([text]), [])]
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise ParameterError(f"--columns must name each column once; given more than once: {listed(repeated)}")
    return names


@dataclass(frozen=True)
class PointTable:
    """The points of a file.

    Attributes
    ----------
    file : str
        Its name in messages.
    values : array of shape (n, n_columns)
        Finite numbers.
    keys : list or None
        None without ``--key``.
    key_name : str
        The column of the keys.
    keys_are_text : bool
        Whether they come from a file without types: see `match_live_keys`.
    columns : list of str
        The columns that are compared.
    left_out : list of str
        Columns without numbers, or without a name.
    """

    file: str
    values: NDArray[Any]
    keys: list[Hashable] | None
    key_name: str
    keys_are_text: bool
    columns: list[str]
    left_out: list[str]

    def summary(self) -> list[str]:
        """What was read, as lines."""
        text = f"{plural(len(self.values), 'point')}, {plural(len(self.columns), 'column')}"
        if not all(name.isdecimal() for name in self.columns):  # they have names
            text += f": {', '.join(self.columns[:8])}{', …' if len(self.columns) > 8 else ''}"
        return [text, *self.left_out_lines]

    @property
    def left_out_lines(self) -> list[str]:
        """A line that names the columns that are not compared, if there are any."""
        return [f"left out, without numbers or a name: {', '.join(self.left_out)}"] if self.left_out else []

    @contextmanager
    def named_in_errors(self) -> Iterator[None]:
        """Name the file and its columns in errors about the number of columns."""
        try:
            yield
        except DimensionError as error:
            text = f"{self.file}: {error} ({', '.join(self.columns[:8])})"
            raise DimensionError("; ".join([text, *self.left_out_lines])) from None


def read_points(file: InputFile) -> PointTable:
    """Read a file in any format."""
    _ = file.column_names  # or an error, before a pipe is read
    with _open(file) as stream:
        first = stream.read(_N_FIRST)
        stream.seek(0)
        if first.startswith((_NPY, _ZIP)):
            points = _from_arrays(read_arrays(stream, file.name, file.array), file)
        else:
            points = _from_table(*_read_table(stream, first, file), file)
    _refuse_missing(points)
    if points.keys is not None:
        try:
            as_keys(points.keys)
        except KeysError as error:
            raise type(error)(f"{file.name}, --key {file.key}: {error}") from None
    return points


def read_stdin() -> bytes:
    """All of standard input."""
    if sys.stdin is None:
        raise DataError("standard input is closed: there is nothing to read")
    return sys.stdin.buffer.read()


@contextmanager
def _open(file: InputFile) -> Iterator[BinaryIO]:
    """The bytes of a file as a stream that can seek: a pipe is read to its end."""
    if file.path == DASH:
        yield io.BytesIO(read_stdin())
    elif file.path.is_file():
        with file.path.open("rb") as stream:
            yield stream
    else:  # a pipe, or an error
        yield io.BytesIO(file.path.read_bytes())


def _read_table(stream: BinaryIO, first: bytes, file: InputFile) -> tuple[Any, bool]:
    """An Arrow table, and whether it comes from text."""
    if first.startswith(MAGIC):
        raise FileFormatError(
            f"{file.name} is an SQLite database: see evertree follow for a table in it, and evertree cut for a tree"
        )
    if first.startswith(_PARQUET) and (b"\0" in first or _ends_with(stream, _PARQUET)):
        parquet = require("pyarrow.parquet", "reading Parquet", "cli")
        try:
            return parquet.read_table(stream), False
        except Exception as error:  # of several kinds
            raise FileFormatError(f"{file.name} is damaged: {error}") from None
    is_gzip = first.startswith(_GZIP)
    if first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) and b"\0" in first:
        raise FileFormatError(f"{file.name} is text in UTF-16: save it as UTF-8, with iconv -f UTF-16 -t UTF-8, say")
    if b"\0" in first and not is_gzip:
        raise FileFormatError(f"{file.name} is neither text (in UTF-8) nor Parquet, .npy or .npz")
    delimiter = file.delimiter or ("\t" if {".tsv", ".tab"} & set(file.path.suffixes) else ",")
    table = input_csv.read_csv(_unzip(stream, is_gzip), file.name, delimiter, file.has_header, file.key)
    if table.num_columns == 1:
        input_csv.refuse_blank_lines(_unzip(stream, is_gzip).read(), table, file.name, file.has_header)
    return table, True


def _ends_with(stream: BinaryIO, ending: bytes) -> bool:
    stream.seek(-len(ending), io.SEEK_END)
    found = stream.read()
    stream.seek(0)
    return found == ending


def _unzip(stream: BinaryIO, is_gzip: bool) -> BinaryIO:
    """A text file from its start, decompressed."""
    stream.seek(0)
    if not is_gzip:
        return stream
    content = io.BytesIO(stream.read())  # pyarrow closes what it decompresses
    unzipped: BinaryIO = require("pyarrow", "reading CSV", "cli").input_stream(content, compression="gzip")
    return unzipped


def _from_table(table: Any, is_text: bool, file: InputFile) -> PointTable:
    names, wanted, key = list(table.column_names), file.column_names, file.key
    repeated = sorted(name for name, count in Counter(names).items() if count > 1)
    if repeated:
        raise DataError(f"{file.name} has more than one column named {listed(repeated)}")
    for name in [*(wanted or []), *([] if key is None else [key])]:
        if name not in names:
            raise DataError(f"{file.name} has no column {name!r}; it has {listed(names)}")
    if key is not None and key in (wanted or []):
        raise ParameterError(f"--columns must leave out the key: {key!r} cannot be a column to compare, too")
    if table.num_rows == 0:  # so that no column has a type
        raise DataError(f"{file.name} has columns, but no rows")
    numeric = {field.name for field in table.schema if _is_numeric(field.type)}
    if wanted is None:
        candidates = [name for name in names if name != key]
        chosen = [name for name in candidates if name in numeric and name]  # one without a name is an index
        input_csv.refuse_mistakes(table, [name for name in candidates if name not in numeric], file.name)
        left_out = [name or "(no name)" for name in candidates if name not in chosen]
    else:
        chosen, left_out = wanted, []
        input_csv.require_numbers(table, [name for name in chosen if name not in numeric], file.name)
    if not chosen:
        hint = input_csv.delimiter_hint(names)
        raise DataError(f"{file.name} has no column of numbers to compare; it has {listed(names)}{hint}")
    keys = None if key is None else _keys_from_column(table[key], f"{file.name}: column {key!r}", is_text)
    values = to_array(table.select(chosen))
    return PointTable(file.name, values, keys, key or "key", is_text and key is not None, chosen, left_out)


def _is_numeric(kind: Any) -> bool:
    types = require("pyarrow.types", "reading tables", "cli")
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind))


def _keys_from_column(column: Any, where: str, is_text: bool) -> list[Hashable]:
    types = require("pyarrow.types", "reading tables", "cli")
    if (types.is_timestamp(column.type) or types.is_duration(column.type)) and not column.null_count:
        return keys_from_array(column.to_numpy(), where, "Z" if getattr(column.type, "tz", None) else "")
    words: list[Hashable] = column.to_pylist()
    missing = [row for row, word in enumerate(words, 1) if word is None or word == ""]
    if missing:
        raise InvalidKeyError(f"{where} has no key in {name_rows(np.array(missing))}")
    return [parse_key(str(word)) for word in words] if is_text else words


def _from_arrays(found: ArrayFile, file: InputFile) -> PointTable:
    names = [str(number) for number in range(1, found.points.shape[1] + 1)]
    chosen = names if file.column_names is None else file.column_names
    unknown = [name for name in chosen if name not in names]
    if unknown:
        raise DataError(f"{file.name} has columns 1 to {len(names)}; there is no column {listed(unknown)}")
    values = found.points if chosen is names else found.points[:, [int(name) - 1 for name in chosen]]
    keys = None if file.key is None else found.keys(file.key, file.name)
    return PointTable(file.name, values, keys, file.key or "key", False, chosen, [])


def _refuse_missing(points: PointTable) -> None:
    if len(points.values) == 0:
        raise DataError(f"{points.file} has columns, but no rows")
    bad = ~np.isfinite(points.values)
    if bad.any():
        columns = [points.columns[k] for k in np.flatnonzero(bad.any(axis=0))]
        raise DataError(
            f"{points.file} has missing or infinite values in {name_rows(np.flatnonzero(bad.any(axis=1)) + 1)}, "
            f"column{'s' if len(columns) > 1 else ''} {listed(columns)}: fill them, or remove these rows"
        )
