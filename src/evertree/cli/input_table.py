"""From a table to points: which columns are compared, which rows are left out, what the keys are."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertree.cli.input_csv import NUMBER
from evertree.cli.input_numpy import ArrayFile
from evertree.cli.input_source import InputFile
from evertree.cli.key_text import keys_from_array, parse_key
from evertree.cli.point_table import PointTable
from evertree.errors import DataError, InvalidKeyError, ParameterError, listed, name_rows
from evertree.extras import require
from evertree.input.frames import to_array

#: A column of text is taken for numbers with mistakes if more than this share of its values are numbers.
_MOSTLY_NUMBERS = 0.5


@dataclass(frozen=True)
class TableFile:
    """A table as it was read.

    Attributes
    ----------
    table : Arrow table
    is_text : bool
        Whether the file has no types, so that numbers and keys are known by how they are written.
    objects : dict of lists
        The values of columns as Python has them, if Arrow may have changed them.
    as_it_came : Arrow table or None
        The table that ``--join`` adds to, if it is another one.
    """

    table: Any
    is_text: bool = False
    objects: dict[str, list[Any]] | None = None
    as_it_came: Any = None

    def keys(self, name: str, where: str) -> list[Hashable]:
        """The keys in a column; None where one is missing."""
        if self.objects is not None:
            return self.objects[name]
        column = self.table[name]
        types = require("pyarrow.types", "reading tables", "cli")
        if types.is_timestamp(column.type) or types.is_duration(column.type):
            known = column.drop_null()
            zone = "Z" if getattr(column.type, "tz", None) else ""
            found = iter(keys_from_array(known.to_numpy(), where, zone))
            return [next(found) if is_known else None for is_known in column.is_valid().to_pylist()]
        words: list[Hashable] = column.to_pylist()
        return [parse_key(str(word)) if word else None for word in words] if self.is_text else words


def points_from_table(found: TableFile, file: InputFile) -> PointTable:
    """The points in a table."""
    names, key = list(found.table.column_names), file.key
    repeated = sorted(name for name, count in Counter(names).items() if count > 1)
    if repeated:
        raise DataError(f"{file.name} has more than one column named {listed(repeated)}")
    file.require_columns([*(file.column_names or []), *([] if key is None else [key])], names)
    if key is not None and key in (file.column_names or []):
        raise ParameterError(f"--columns must leave out the key: {key!r} cannot be a column to compare, too")
    if found.table.num_rows == 0:  # so that no column has a type
        raise DataError(f"{file.name} has columns, but no rows")
    table, chosen, left_out = _choose(found, file)
    keys = None if key is None else found.keys(key, f"{file.name}: column {key!r}")
    is_kept = _kept_rows([to_array(table.select([name]))[:, 0] for name in chosen], chosen, keys, file)
    whole = found.table if found.as_it_came is None else found.as_it_came
    X = table.select(chosen) if is_kept.all() else table.select(chosen).filter(is_kept)
    return PointTable(
        file.name,
        X if file.has_header or not found.is_text else to_array(X),
        None if keys is None else [keys[row] for row in np.flatnonzero(is_kept).tolist()],
        key or "key",
        found.is_text and key is not None,
        chosen,
        left_out,
        is_kept,
        None if file.join is None else whole,
    )


def points_from_arrays(found: ArrayFile, file: InputFile) -> PointTable:
    """The points in a matrix."""
    names = [str(number) for number in range(1, found.points.shape[1] + 1)]
    chosen = names if file.column_names is None else file.column_names
    unknown = [name for name in chosen if name not in names]
    if unknown:
        raise DataError(f"{file.name} has columns 1 to {len(names)}; there is no column {listed(unknown)}")
    if len(found.points) == 0:
        raise DataError(f"{file.name} has columns, but no rows")
    values = found.points if chosen is names else found.points[:, [int(name) - 1 for name in chosen]]
    keys = None if file.key is None else found.keys(file.key, file.name)
    is_kept = _kept_rows(list(values.T), chosen, keys, file)
    if not is_kept.all():
        values = values[is_kept]
        keys = None if keys is None else [key for key, is_there in zip(keys, is_kept, strict=True) if is_there]
    whole = None if file.join is None else _whole(found, file)
    return PointTable(file.name, values, keys, file.key or "key", False, chosen, [], is_kept, whole)


def _whole(found: ArrayFile, file: InputFile) -> Any:
    """A matrix and its keys as a table."""
    arrow = require("pyarrow", "--join", "cli")
    columns = {} if file.key is None else {file.key: arrow.array(found.keys(file.key, file.name))}
    return arrow.table(columns | {str(k + 1): arrow.array(found.points[:, k]) for k in range(found.points.shape[1])})


def _choose(found: TableFile, file: InputFile) -> tuple[Any, list[str], list[str]]:
    """The table with numbers in the columns to compare, these columns, and those that are left out."""
    table, names = found.table, list(found.table.column_names)
    numeric = {field.name for field in table.schema if _is_numeric(field.type)}
    texts = _TextColumns(table, file, found.is_text)
    if file.column_names is not None:
        written = [name for name in file.column_names if name not in numeric]
        texts.require_numbers(written)
        return texts.with_numbers(written), file.column_names, []
    candidates = [name for name in names if name != file.key]
    written = [name for name in candidates if name not in numeric and texts.are_mostly_numbers(name)]
    texts.require_numbers(written)
    if found.is_text:  # in other files, numbers that are written as text may be names
        numeric |= set(written)
        table = texts.with_numbers(written)
    chosen = [name for name in candidates if name in numeric and name]  # one without a name is an index
    if not chosen:
        hint = f": choose those that have numbers as text with --columns {','.join(written)}" if written else ""
        raise DataError(f"{file.name} has no column of numbers to compare; it has {listed(names)}{hint}")
    return table, chosen, [name or "(no name)" for name in candidates if name not in chosen]


def _is_numeric(kind: Any) -> bool:
    types = require("pyarrow.types", "reading tables", "cli")
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind))


class _TextColumns:
    """The columns of a table that have text, which may be numbers with mistakes among them."""

    def __init__(self, table: Any, file: InputFile, is_text: bool) -> None:
        self._table, self._file = table, file
        self._decimal = file.decimal_character if is_text else "."
        self._has_comma = is_text and self._decimal == "."  # which would be a mistake that can be named

    def are_mostly_numbers(self, name: str) -> bool:
        """Whether so many values are numbers that leaving the column out would hide a mistake."""
        are_numbers = self._are_numbers(name, "[.,]" if self._has_comma else re.escape(self._decimal))
        return are_numbers is not None and sum(are_numbers) > _MOSTLY_NUMBERS * len(are_numbers)

    def require_numbers(self, names: Sequence[str]) -> None:
        """Refuse columns that have other values than numbers; the error names the first."""
        for name in names:
            are_numbers = self._are_numbers(name, re.escape(self._decimal))
            if are_numbers is None:
                kind = self._table.schema.field(name).type
                raise DataError(f"{self._file.name}: column {name!r} has no numbers, but values of type {kind}")
            if not all(are_numbers):
                row = are_numbers.index(False)
                value = self._table[name][row].as_py()
                where = f"{self._file.name}: column {name!r} has {value!r} in row {row + 1}, which is not a number: "
                if self._has_comma and re.match(_number(","), value):
                    raise DataError(f"{where}give --decimal ',' if that is a decimal comma")
                raise DataError(f"{where}correct it, or choose the columns to compare with --columns")

    def with_numbers(self, names: Sequence[str]) -> Any:
        """The table with numbers in these columns, all of whose values are written like one."""
        arrow, table = require("pyarrow", "reading tables", "cli"), self._table
        for name in names:
            words = [word and word.strip().replace(self._decimal, ".") for word in table[name].to_pylist()]
            numbers = arrow.array([float(word) if word else None for word in words], arrow.float64())
            table = table.set_column(table.column_names.index(name), name, numbers)
        return table

    def _are_numbers(self, name: str, decimal: str) -> list[bool] | None:
        """Whether each value of a column of text is a number, or missing; None for other columns."""
        types = require("pyarrow.types", "reading tables", "cli")
        kind = self._table.schema.field(name).type
        if not (types.is_string(kind) or types.is_large_string(kind)):
            return None
        compute = require("pyarrow.compute", "reading tables", "cli")
        pattern = rf"{_number(decimal)}|^\s*$"
        found: list[bool] = compute.match_substring_regex(self._table[name], pattern).fill_null(True).to_pylist()
        return found


def _number(decimal: str) -> str:
    """A pattern for numbers with another decimal point."""
    return NUMBER.replace(r"\.", decimal)


def _kept_rows(
    values: list[NDArray[Any]], names: list[str], keys: list[Hashable] | None, file: InputFile
) -> NDArray[np.bool_]:
    """The rows without missing values: all of them, unless ``--drop-missing`` allows others to be left out."""
    missing = np.column_stack([np.isnan(column) for column in values])
    has_key = np.ones(len(missing), np.bool_) if keys is None else np.array([key not in (None, "") for key in keys])
    is_kept: NDArray[np.bool_] = ~missing.any(axis=1) & has_key
    if not file.drop_missing:
        if not has_key.all():
            raise InvalidKeyError(
                f"{file.name}: column {file.key!r} has no key in {name_rows(np.flatnonzero(~has_key) + 1)}"
            )
        _refuse_values(missing, "missing", "fill them, or leave these rows out with --drop-missing", names, file)
    infinite = np.column_stack([np.isinf(column) for column in values]) & is_kept[:, None]
    _refuse_values(infinite, "infinite", "correct them, or remove these rows", names, file)
    if not is_kept.any():
        raise DataError(f"{file.name} has no row without missing values")
    return is_kept


def _refuse_values(bad: NDArray[np.bool_], what: str, remedy: str, names: list[str], file: InputFile) -> None:
    if bad.any():
        columns = [names[k] for k in np.flatnonzero(bad.any(axis=0))]
        raise DataError(
            f"{file.name} has {what} values in {name_rows(np.flatnonzero(bad.any(axis=1)) + 1)}, "
            f"column{'s' if len(columns) > 1 else ''} {listed(columns)}: {remedy}"
        )
