"""Points in JSON: an object in each line, or an array of objects."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, BinaryIO

from evertree.errors import DataError, FileFormatError
from evertree.extras import require

#: What JSON calls the values that Python's types stand for.
_KINDS = {list: "an array", str: "a text", bool: "a truth value", int: "a number", float: "a number"}

#: What Python raises on what is not JSON, on numbers of thousands of digits, and on thousands of brackets.
_ERRORS = (ValueError, RecursionError)

_REMEDY = "a table is an array of objects, or has an object in each line (in pandas: orient='records')"


def read_json(stream: BinaryIO, file: str) -> tuple[Any, dict[str, list[Any]]]:
    """An Arrow table, and the values of its columns as Python has them. Fields that a row lacks are missing values."""
    try:
        text = stream.read().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise FileFormatError(f"{file} is not text in UTF-8, as JSON must be: convert it, with iconv, say") from None
    rows = list(_from_array(text, file) if text.lstrip().startswith("[") else _from_lines(text, file))
    if not rows:
        raise DataError(f"{file} {'has no rows' if text.strip() else 'is empty'}")
    names = list(dict.fromkeys(name for row in rows for name in row))
    if len(rows) == 1 and any(isinstance(value, dict) for value in rows[0].values()):
        raise FileFormatError(f"{file} is one JSON object of others: {_REMEDY}")
    columns = {name: [row.get(name) for row in rows] for name in names}
    arrow = require("pyarrow", "reading JSON", "cli")
    return arrow.table({name: _to_arrow(arrow, values) for name, values in columns.items()}), columns


def _from_array(text: str, file: str) -> Iterator[dict[str, Any]]:
    try:
        rows = json.loads(text)
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":  # an array in each line
            yield from _from_lines(text, file)
        raise FileFormatError(f"{file} cannot be read as JSON: {error}") from None
    except _ERRORS as error:
        raise FileFormatError(f"{file} cannot be read as JSON: {error}") from None
    for number, row in enumerate(rows, 1):
        yield _checked(row, f"{file}: row {number}")


def _from_lines(text: str, file: str) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(text.split("\n"), 1):  # texts in JSON may have other line ends in them
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except _ERRORS as error:
            if _is_one_object(text):
                raise FileFormatError(f"{file} is one JSON object: {_REMEDY}") from None
            reason = f"{error.msg} at column {error.colno}" if isinstance(error, json.JSONDecodeError) else error
            raise FileFormatError(f"{file}: line {number} cannot be read as JSON: {reason}") from None
        yield _checked(row, f"{file}: line {number}")


def _is_one_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except _ERRORS:
        return False


def _checked(row: Any, where: str) -> dict[str, Any]:
    if not isinstance(row, dict):
        raise FileFormatError(f"{where} is {_KINDS.get(type(row), 'null')}, not an object: {_REMEDY}")
    return row


def _to_arrow(arrow: Any, values: list[Any]) -> Any:
    """A column. Values of several kinds, arrays and objects become text."""
    kinds = {type(value) for value in values} - {type(None)}
    if kinds <= {int, float}:
        try:
            return arrow.array(values)
        except (arrow.ArrowInvalid, OverflowError):  # integers that no type has exactly
            return arrow.array([None if value is None else float(str(value)) for value in values])
    if kinds in ({str}, {bool}):
        return arrow.array(values)
    return arrow.array([value if value is None or isinstance(value, str) else json.dumps(value) for value in values])
