"""Points in text files: read by pyarrow, with its errors explained."""

from __future__ import annotations

import re
from typing import Any, BinaryIO

from evertree.errors import DataError, FileFormatError, ParameterError
from evertree.extras import require

_NUMBER = r"^\s*[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?\s*$"

#: A column of text is taken for numbers with mistakes if more than this share of its values are numbers.
_MOSTLY_NUMBERS = 0.5

#: Bytes that are read at once; no line may be longer.
_BLOCK = 1 << 24

#: Other delimiters, and how to type them in a shell.
_DELIMITERS = {";": "';'", "\t": "$'\\t'", "|": "'|'", " ": "' '"}


def read_csv(stream: BinaryIO, file: str, delimiter: str, has_header: bool, key: str | None) -> Any:
    """A text file as an Arrow table, with the keys as text."""
    if len(delimiter) != 1:
        raise ParameterError(f"--delimiter must be one character; it is {delimiter!r}")
    csv = require("pyarrow.csv", "reading CSV", "cli")
    arrow = require("pyarrow", "reading CSV", "cli")
    if key is not None and not has_header and key.isdecimal():
        key = f"f{int(key) - 1}"  # as pyarrow names it
    try:
        table = csv.read_csv(
            stream,
            # With threads, errors do not say in which row they are.
            csv.ReadOptions(use_threads=False, autogenerate_column_names=not has_header, block_size=_BLOCK),
            csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            csv.ConvertOptions(column_types={} if key is None else {key: arrow.string()}),
        )
        names = table.column_names
    except arrow.ArrowInvalid as error:
        raise FileFormatError(f"{file}{_explain(str(error), has_header)}") from None
    except (arrow.ArrowException, UnicodeDecodeError, OSError) as error:
        raise FileFormatError(f"{file} cannot be read as text: {error}") from None
    if not has_header:
        return table.rename_columns([str(number) for number in range(1, len(names) + 1)])
    if names and all(re.match(_NUMBER, column) for column in names):
        raise FileFormatError(
            f"{file} has numbers where the names of columns should be: {', '.join(names[:5])}. "
            "Give --no-header if its first line is a point"
        )
    return table


def _explain(text: str, has_header: bool) -> str:
    """What an error of pyarrow means, to follow the name of the file. Pyarrow's rows count the header."""
    if found := re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", text):
        row, n_expected, n_found = map(int, found.groups())
        return f": row {row - has_header} has {n_found} values, and the rows before it have {n_expected}"
    if found := re.search(r"In CSV column #(\d+): Row #(\d+): CSV conversion error to (\w+): (.*)", text):
        column, line, kind, reason = found.groups()
        return f": row {int(line) - has_header}, column {int(column) + 1} cannot be read as {kind}: {reason}"
    if "straddl" in text:
        return f" has a line of more than {_BLOCK >> 20} MB: is a quotation mark missing?"
    return " is empty" if "Empty CSV" in text else f" cannot be read as CSV: {text}"


def require_numbers(table: Any, columns: list[str], file: str) -> None:
    """Refuse columns that have other values than numbers; the error names the first."""
    for column in columns:
        are_numbers = _are_numbers(table, column)
        if are_numbers is None:
            kind = table.schema.field(column).type
            raise DataError(f"{file}: column {column!r} has no numbers, but values of type {kind}")
        if not all(are_numbers):
            row = are_numbers.index(False)
            raise DataError(
                f"{file}: column {column!r} has {table[column][row].as_py()!r} in row {row + 1}, which is not a "
                "number: correct it, or choose the columns to compare with --columns"
            )


def refuse_mistakes(table: Any, columns: list[str], file: str) -> None:
    """Refuse columns of text with mostly numbers in them: to leave them out would hide a mistake."""
    for column in columns:
        are_numbers = _are_numbers(table, column)
        if are_numbers is not None and sum(are_numbers) > _MOSTLY_NUMBERS * len(are_numbers):
            require_numbers(table, [column], file)


def refuse_blank_lines(content: bytes, table: Any, file: str, has_header: bool) -> None:
    """Refuse a file with a single column of numbers and a blank line among them: a missing value."""
    if _are_numbers(table, table.column_names[0]) is not None:
        return
    lines = [line.strip() for line in content.strip().splitlines()]
    if b"" in lines:
        row = lines.index(b"") + (not has_header)
        raise DataError(f"{file} has a blank line where row {row} should be: fill it, or remove it")


def delimiter_hint(names: list[str]) -> str:
    """Which delimiter a file seems to have if it was read as a single column."""
    if len(names) == 1:
        for delimiter, typed in _DELIMITERS.items():
            if delimiter in names[0]:
                return f": did you mean --delimiter {typed}?"
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
