"""Points in text files: read by pyarrow, with its errors explained."""

from __future__ import annotations

import re
from typing import Any, BinaryIO

from evertree.cli.input_source import InputFile
from evertree.errors import DataError, FileFormatError
from evertree.extras import require

#: A number as text, in pyarrow's regular expressions and in Python's.
NUMBER = r"^\s*[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?\s*$"

#: Bytes that are read at once; no line may be longer.
_BLOCK = 1 << 24

#: Delimiters, and how to type them in a shell.
_DELIMITERS = {";": "';'", "\t": "tab", "|": "'|'", ",": "','", " ": "' '"}

#: What to do about text in another encoding.
_TO_UTF8 = "convert it, with iconv -f LATIN1 -t UTF-8, say"

#: Bytes from the start of a file that show what its delimiter is.
_N_SHOWING = 4096


def read_csv(stream: BinaryIO, file: InputFile) -> Any:
    """A text file as an Arrow table, with the keys as text."""
    keys = [] if file.key is None else [_arrow_name(file.key, file.has_header)]
    table = _parse(stream, file, keys)
    names = table.column_names
    if file.has_header and names and all(re.match(NUMBER, column) for column in names):
        raise FileFormatError(
            f"{file.name} has numbers where the names of columns should be: {', '.join(names[:5])}. "
            "Give --no-header if its first line is a point"
        )
    if len(names) == 1:
        _refuse_one_that_is_several(stream, table, file)
        _refuse_blank_lines(stream, table, file)
    return table


def read_again(stream: BinaryIO, file: InputFile, names: list[str]) -> Any:
    """The same table for ``--join``: all values as they are written, or all with the types that they seem to have."""
    as_written = names if file.join == "text" else []
    return _parse(stream, file, [_arrow_name(name, file.has_header) for name in as_written])


def _arrow_name(name: str, has_header: bool) -> str:
    """A column as pyarrow names it: where there are no names, f0 is the first."""
    return name if has_header or not name.isdecimal() else f"f{int(name) - 1}"


def _parse(stream: BinaryIO, file: InputFile, text_columns: list[str]) -> Any:
    """The table, with its columns named as the command line names them."""
    table = _read(stream, file, text_columns)
    names = table.column_names
    if not file.has_header:
        return table.rename_columns([str(number) for number in range(1, len(names) + 1)])
    padded = [name for name in names if name.strip() != name and name.strip() in text_columns]
    if padded:  # pyarrow knows them with the spaces around them
        table = _read(stream, file, [*text_columns, *padded])
    return table.rename_columns([name.strip() for name in names])


def _read(stream: BinaryIO, file: InputFile, text_columns: list[str]) -> Any:
    """The table with pyarrow's names of columns."""
    csv = require("pyarrow.csv", "reading CSV", "cli")
    arrow = require("pyarrow", "reading CSV", "cli")
    stream.seek(0)
    try:
        table = csv.read_csv(
            stream,
            # With threads, errors do not say in which row they are.
            csv.ReadOptions(use_threads=False, autogenerate_column_names=not file.has_header, block_size=_BLOCK),
            csv.ParseOptions(delimiter=file.delimiter_character, newlines_in_values=True),
            csv.ConvertOptions(
                column_types=dict.fromkeys(text_columns, arrow.string()), decimal_point=file.decimal_character
            ),
        )
        _ = table.column_names  # or an error
    except arrow.ArrowInvalid as error:
        raise FileFormatError(f"{file.name}{_explain(str(error), stream, file)}") from None
    except UnicodeDecodeError:
        raise FileFormatError(f"{file.name} is not text in UTF-8: {_TO_UTF8}") from None
    except (arrow.ArrowException, OSError) as error:
        raise FileFormatError(f"{file.name} cannot be read as text: {error}") from None
    return table


def _explain(text: str, stream: BinaryIO, file: InputFile) -> str:
    """What an error of pyarrow means, to follow the name of the file. Pyarrow's rows count the header."""
    if found := re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", text):
        row, n_expected, n_found = map(int, found.groups())
        problem = f": row {row - file.has_header} has {n_found} values, and the rows before it have {n_expected}"
        return problem + _delimiter_hint(stream, file)
    if found := re.search(r"In CSV column #(\d+): Row #(\d+): CSV conversion error to (\w+): (.*)", text):
        column, line, kind, reason = found.groups()
        where = f": row {int(line) - file.has_header}, column {int(column) + 1}"
        if "UTF8" in reason:
            return f"{where} is not text in UTF-8: {_TO_UTF8}"
        return f"{where} cannot be read as {kind}: {reason}"
    if "straddl" in text:
        return f" has a line of more than {_BLOCK >> 20} MB: is a quotation mark missing?"
    return " is empty" if "Empty CSV" in text else f" cannot be read as CSV: {text}"


def _delimiter_hint(stream: BinaryIO, file: InputFile) -> str:
    """Which other delimiter a file seems to have: one that all its first lines have, equally often."""
    stream.seek(0)
    first = stream.read(_N_SHOWING)
    lines = [line for line in first.decode("utf-8-sig", "replace").splitlines() if line.strip()]
    if len(first) == _N_SHOWING:
        lines = lines[:-1]  # the last is cut off
    for delimiter, typed in _DELIMITERS.items():
        counts = {line.count(delimiter) for line in lines}
        if delimiter != file.delimiter_character and len(counts) == 1 and counts != {0}:
            return f": did you mean --delimiter {typed}?"
    return ""


def _refuse_one_that_is_several(stream: BinaryIO, table: Any, file: InputFile) -> None:
    """Refuse a column of text that another delimiter divides into several."""
    hint = _delimiter_hint(stream, file) if table.num_rows and not _is_typed(table) else ""
    if hint:
        raise FileFormatError(f"{file.name} has one column, {table.column_names[0]!r}, that looks like several{hint}")


def _refuse_blank_lines(stream: BinaryIO, table: Any, file: InputFile) -> None:
    """Refuse a file with a single column of numbers and a blank line among them: a missing value."""
    if not _is_typed(table):
        return
    stream.seek(0)
    lines = [line.strip() for line in stream.read().strip().splitlines()]
    if b"" in lines:
        row = lines.index(b"") + (not file.has_header)
        raise DataError(f"{file.name} has a blank line where row {row} should be: fill it, or remove it")


def _is_typed(table: Any) -> bool:
    """Whether the only column has other values than text."""
    types = require("pyarrow.types", "reading CSV", "cli")
    return not types.is_string(table.schema.field(0).type)
