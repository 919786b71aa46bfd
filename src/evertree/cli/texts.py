"""Text files of points: what pyarrow makes of them, and what is wrong with them in words."""

from __future__ import annotations

import re
from typing import Any, BinaryIO

from evertree.errors import DataError, FileFormatError, ParameterError
from evertree.extras import require

#: In the metadata of a table that comes from a file without types.
MARK = b"evertree: from text"

_NUMBER = r"^\s*[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?\s*$"

#: A column of text is taken for numbers with slips if more than this share of its values are numbers.
_ALMOST = 0.5

#: Bytes that are read at once; no line may be longer.
_BLOCK = 1 << 24

_DELIMITERS = {";": "';'", "\t": "$'\\t'", "|": "'|'", " ": "' '"}


def read(file: BinaryIO, name: str, delimiter: str, has_header: bool, key: str | None) -> Any:
    """A text file as an Arrow table; the column of keys as text."""
    if len(delimiter) != 1:
        raise ParameterError(f"--delimiter must be one character; it is {delimiter!r}")
    csv = require("pyarrow.csv", "reading CSV", "cli")
    lib = require("pyarrow", "reading CSV", "cli")
    key_column = key
    if key is not None and not has_header and key.isdecimal():
        key_column = f"f{int(key) - 1}"  # as pyarrow names it
    # Threads do not count rows.
    reading = csv.ReadOptions(use_threads=False, autogenerate_column_names=not has_header, block_size=_BLOCK)
    try:
        table = csv.read_csv(
            file,
            reading,
            csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            csv.ConvertOptions(column_types={} if key_column is None else {key_column: lib.string()}),
        )
        names = table.column_names
    except lib.ArrowInvalid as error:
        raise _explained(str(error), name, has_header) from None
    except (lib.ArrowException, UnicodeDecodeError, OSError) as error:
        raise FileFormatError(f"{name} cannot be read as text: {error}") from None
    if has_header:
        _refuse_numbers_for_names(names, name)
    else:
        table = table.rename_columns([str(number) for number in range(1, len(names) + 1)])
    return table.replace_schema_metadata({MARK: b""})


def refuse_texts(table: Any, columns: list[str], name: str) -> None:
    """Say where the first value is that is no number, in columns that should have numbers."""
    for column in columns:
        _refuse(table, column, _are_numbers(table, column), name)


def refuse_almost_numbers(table: Any, columns: list[str], name: str) -> None:
    """The same for columns of text of which most values are numbers: to leave them out would hide a slip."""
    for column in columns:
        are_numbers = _are_numbers(table, column)
        if are_numbers is not None and sum(are_numbers) > _ALMOST * len(are_numbers):
            _refuse(table, column, are_numbers, name)


def refuse_blank_lines(content: bytes, table: Any, name: str, has_header: bool) -> None:
    """Say where a file with a single column has a blank line among its numbers: a value that is missing."""
    if _are_numbers(table, table.column_names[0]) is not None:
        return
    lines = [line.strip() for line in content.strip().splitlines()]
    if b"" in lines:
        row = lines.index(b"") + (not has_header)
        raise DataError(f"{name} has a blank line where row {row} should be: fill it, or remove it")


def delimiter_hint(names: list[str]) -> str:
    """Which delimiter a file seems to have, where it was read as a single column."""
    for delimiter, shown in _DELIMITERS.items():
        if delimiter in names[0]:
            return f": did you mean --delimiter {shown}?"
    return ""


def _are_numbers(table: Any, column: str) -> list[bool] | None:
    """Whether each value of a column of text is a number; None for other columns."""
    types = require("pyarrow.types", "reading tables", "cli")
    kind = table.schema.field(column).type
    if not (types.is_string(kind) or types.is_large_string(kind)):
        return None
    compute = require("pyarrow.compute", "reading tables", "cli")
    found: list[bool] = compute.match_substring_regex(table[column], _NUMBER).fill_null(True).to_pylist()
    return found


def _refuse(table: Any, column: str, are_numbers: list[bool] | None, name: str) -> None:
    if are_numbers is None:
        kind = table.schema.field(column).type
        raise DataError(f"{name}: column {column!r} has no numbers, but values of type {kind}")
    if all(are_numbers):
        return
    row = are_numbers.index(False)
    value = table[column][row].as_py()
    raise DataError(
        f"{name}: column {column!r} has {value!r} in row {row + 1}, which is no number: mend it, or name the columns "
        "to compare with --columns"
    )


def _explained(text: str, name: str, has_header: bool) -> FileFormatError:
    """What pyarrow says, in words; its rows count the header."""
    ragged = re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", text)
    if ragged:
        row, expected, found = map(int, ragged.groups())
        return FileFormatError(
            f"{name}: row {row - has_header} has {found} values, and the rows before it have {expected}"
        )
    wrong = re.search(r"In CSV column #(\d+): Row #(\d+): CSV conversion error to (\w+): (.*)", text)
    if wrong:
        column, line, kind, reason = wrong.groups()
        return FileFormatError(
            f"{name}: row {int(line) - has_header}, column {int(column) + 1} cannot be read as {kind}: {reason}"
        )
    if "straddl" in text:
        return FileFormatError(f"{name} has a line of more than {_BLOCK >> 20} MB: is a quotation mark missing?")
    if "Empty CSV" in text:
        return FileFormatError(f"{name} is empty")
    return FileFormatError(f"{name} cannot be read as CSV: {text}")


def _refuse_numbers_for_names(names: list[str], file: str) -> None:
    if names and all(re.match(_NUMBER, column) for column in names):
        raise FileFormatError(
            f"{file} has numbers where the names of columns should be: {', '.join(names[:5])}. "
            "Give --no-header if its first line is a point"
        )
