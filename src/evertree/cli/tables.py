"""Files of points: CSV and Parquet through pyarrow, .npy and .npz through NumPy, all of them from pipes too."""

from __future__ import annotations

import codecs
import csv
import io
from collections import Counter
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from evertree.cli import arrays, texts
from evertree.cli.keys import key_of, of_array, standard_input
from evertree.cli.output import DASH, counted
from evertree.durable.sqlite_file import MAGIC
from evertree.errors import (
    DataError,
    DimensionError,
    FileFormatError,
    InvalidKeyError,
    KeysError,
    ParameterError,
    listed,
)
from evertree.extras import require
from evertree.input.arrays import as_keys
from evertree.input.frames import to_array

#: How files begin.
_NPY, _ZIP, _PARQUET, _GZIP = b"\x93NUMPY", b"PK\x03\x04", b"PAR1", b"\x1f\x8b"

#: Bytes that are looked at to tell what a file is.
_BEGINNING = 1024


@dataclass(frozen=True)
class Source:
    """What the user said about a file of points."""

    path: Path
    key: str | None = None
    columns: str | None = None
    delimiter: str | None = None
    has_header: bool = True
    array: str | None = None

    @property
    def name(self) -> str:
        """The file in a text."""
        return "standard input" if self.path == DASH else str(self.path)

    @property
    def wanted(self) -> list[str] | None:
        """The names of the columns that the user asked for."""
        return None if self.columns is None else split_names(self.columns)


def split_names(text: str) -> list[str]:
    """Names between commas; one with a comma in it stands in quotes."""
    names = [name.strip() for name in next(csv.reader([text]), [])]
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ParameterError(f"--columns must name each column once; given more than once: {listed(twice)}")
    return names


@dataclass(frozen=True)
class Points:
    """Points that have been read: all of them numbers.

    Attributes
    ----------
    values : array of shape (n, n_columns)
    keys : list or None
        None where the user named none.
    key_name : str
        Of the column that they stand in.
    keys_are_text : bool
        Whether a file without types has them: see `live_keys`.
    columns : list of str
        The names of the columns that are compared.
    left_out : list of str
        Columns without numbers, and without a name.
    """

    values: NDArray[Any]
    keys: list[Hashable] | None
    key_name: str
    keys_are_text: bool
    columns: list[str]
    left_out: list[str]

    def summary(self) -> str:
        """What was read, in a line or two."""
        text = f"{counted(len(self.values), 'point')}, {counted(len(self.columns), 'column')}"
        if not all(name.isdecimal() for name in self.columns):  # they have names
            text += f": {', '.join(self.columns[:8])}{', …' if len(self.columns) > 8 else ''}"
        return f"{text}\n{self.left_out_text}" if self.left_out else text

    @property
    def left_out_text(self) -> str:
        """The columns that are not compared."""
        return f"left out, without numbers or a name: {', '.join(self.left_out)}"


@contextmanager
def naming_columns(points: Points, source: Source) -> Iterator[None]:
    """Let an error about the number of columns say of which file they are, and which."""
    try:
        yield
    except DimensionError as error:
        text = f"{source.name}: {error} ({', '.join(points.columns[:8])})"
        raise DimensionError(f"{text}; {points.left_out_text}" if points.left_out else text) from None


def read_points(source: Source) -> Points:
    """Read a file, whatever its format is."""
    _ = source.wanted  # or an error, before a pipe is read
    with _opened(source) as file:
        beginning = file.read(_BEGINNING)
        file.seek(0)
        if beginning.startswith((_NPY, _ZIP)):
            found = arrays.read(file, source.name, source.array)
            points = _of_array(found, source)
        else:
            points = _of_table(_read_table(file, beginning, source), source)
    _refuse_missing(points, source)
    if points.keys is not None:
        try:
            as_keys(points.keys)
        except KeysError as error:
            raise type(error)(f"{source.name}, --key {source.key}: {error}") from None
    return points


@contextmanager
def _opened(source: Source) -> Iterator[BinaryIO]:
    """The bytes of a file, in a form in which one can go back: a pipe is read to its end."""
    if source.path == DASH:
        yield io.BytesIO(standard_input())
    elif source.path.is_file():
        with source.path.open("rb") as file:
            yield file
    else:  # a pipe, or an error
        yield io.BytesIO(source.path.read_bytes())


def _read_table(file: BinaryIO, beginning: bytes, source: Source) -> Any:
    if beginning.startswith(MAGIC):
        raise FileFormatError(
            f"{source.name} is an SQLite database: see evertree follow for a table in it, and evertree cut for a tree"
        )
    if beginning.startswith(_PARQUET) and (b"\0" in beginning or _ends_with(file, _PARQUET)):
        parquet = require("pyarrow.parquet", "reading Parquet", "cli")
        try:
            return parquet.read_table(file)
        except Exception as error:  # of several kinds
            raise FileFormatError(f"{source.name} is damaged: {error}") from None
    is_gzip = beginning.startswith(_GZIP)
    if b"\0" in beginning and not is_gzip:
        if beginning.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise FileFormatError(
                f"{source.name} is text in UTF-16: save it as UTF-8, with iconv -f UTF-16 -t UTF-8, say"
            )
        raise FileFormatError(f"{source.name} is neither text (in UTF-8) nor Parquet, .npy or .npz")
    delimiter = source.delimiter or ("\t" if {".tsv", ".tab"} & set(source.path.suffixes) else ",")
    table = texts.read(_unpacked(file, is_gzip), source.name, delimiter, source.has_header, source.key)
    if table.num_columns == 1:
        texts.refuse_blank_lines(_unpacked(file, is_gzip).read(), table, source.name, source.has_header)
    return table


def _ends_with(file: BinaryIO, ending: bytes) -> bool:
    file.seek(-len(ending), io.SEEK_END)
    found = file.read()
    file.seek(0)
    return found == ending


def _unpacked(file: BinaryIO, is_gzip: bool) -> BinaryIO:
    """A file of text, from its beginning."""
    file.seek(0)
    if not is_gzip:
        return file
    content = io.BytesIO(file.read())  # as pyarrow closes what it unpacks
    stream: BinaryIO = require("pyarrow", "reading CSV", "cli").input_stream(content, compression="gzip")
    return stream


def _of_table(table: Any, source: Source) -> Points:
    names = list(table.column_names)
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise DataError(f"{source.name} has more than one column of the name {listed(twice)}")
    for name in [*(source.wanted or []), *([source.key] if source.key is not None else [])]:
        if name not in names:
            raise DataError(f"{source.name} has no column {name!r}; it has {listed(names)}")
    if source.key is not None and source.key in (source.wanted or []):
        raise ParameterError(f"--columns must leave out the key: {source.key!r} cannot be a column to compare, too")
    if table.num_rows == 0:  # so that no column has a type
        raise DataError(f"{source.name} has columns, but no rows")
    numeric = [field.name for field in table.schema if _is_numeric(field.type)]
    if source.wanted is None:
        candidates = [name for name in names if name != source.key]
        chosen = [name for name in candidates if name in numeric and name]  # one without a name is an index
        texts.refuse_almost_numbers(table, [name for name in candidates if name not in numeric], source.name)
        left_out = [name or "(no name)" for name in candidates if name not in chosen]
    else:
        chosen, left_out = source.wanted, []
        texts.refuse_texts(table, [name for name in chosen if name not in numeric], source.name)
    if not chosen:
        hint = texts.delimiter_hint(names) if len(names) == 1 else ""
        raise DataError(f"{source.name} has no column of numbers to compare; it has {listed(names)}{hint}")
    keys, are_text = _keys_in(table, source)
    return Points(to_array(table.select(chosen)), keys, source.key or "key", are_text, chosen, left_out)


def _is_numeric(kind: Any) -> bool:
    types = require("pyarrow.types", "reading tables", "cli")
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind))


def _is_time(kind: Any) -> bool:
    types = require("pyarrow.types", "reading tables", "cli")
    return bool(types.is_timestamp(kind) or types.is_duration(kind))


def _keys_in(table: Any, source: Source) -> tuple[list[Hashable] | None, bool]:
    if source.key is None:
        return None, False
    where, column = f"{source.name}: column {source.key!r}", table[source.key]
    if _is_time(column.type) and not column.null_count:
        zone = "Z" if getattr(column.type, "tz", None) else ""
        return of_array(column.to_numpy(), where, zone), False
    words = column.to_pylist()
    missing = [row for row, word in enumerate(words, 1) if word is None or word == ""]
    if missing:
        raise InvalidKeyError(f"{where} has no key in {_rows(missing)}")
    is_text = table.schema.metadata is not None and texts.MARK in table.schema.metadata
    return ([key_of(word) for word in words] if is_text else words), is_text


def _of_array(found: arrays.Arrays, source: Source) -> Points:
    names = [str(number) for number in range(1, found.points.shape[1] + 1)]
    chosen = names if source.wanted is None else source.wanted
    unknown = [name for name in chosen if name not in names]
    if unknown:
        raise DataError(f"{source.name} has columns 1 to {len(names)}; there is no column {listed(unknown)}")
    values = found.points if source.wanted is None else found.points[:, [int(name) - 1 for name in chosen]]
    keys = None
    if source.key is not None:
        keys = found.keys_in(source.key, source.name)
    return Points(values, keys, source.key or "key", False, chosen, [])


def _refuse_missing(points: Points, source: Source) -> None:
    if len(points.values) == 0:
        raise DataError(f"{source.name} has columns, but no rows")
    if points.values.dtype.kind != "f":
        return
    bad = ~np.isfinite(points.values)
    if not bad.any():
        return
    rows = np.flatnonzero(bad.any(axis=1))
    columns = [points.columns[k] for k in np.flatnonzero(bad.any(axis=0))]
    raise DataError(
        f"{source.name} has missing or infinite values in {_rows((rows + 1).tolist())}, "
        f"column{'s' if len(columns) > 1 else ''} {listed(columns)}: fill them, or remove these rows"
    )


def _rows(rows: list[int]) -> str:
    """Rows in a text, which are counted from 1, without the header."""
    return f"row{'s' if len(rows) > 1 else ''} {listed(rows)}"
