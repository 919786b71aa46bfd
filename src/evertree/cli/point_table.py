"""The points of a file, as commands work with them."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertree.cli.exits import print_error
from evertree.cli.output import plural, some_names
from evertree.errors import ColumnNamesError, DataError, DimensionError, ParameterError, counting_rows_from, name_rows
from evertree.hierarchy import Hierarchy
from evertree.input.frames import to_array


@dataclass(frozen=True)
class PointTable:
    """The points of a file.

    Attributes
    ----------
    file : str
        Its name in messages.
    X : Arrow table, or array of shape (n, n_columns)
        Finite numbers; a table where the columns have names.
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
    is_kept : array of bool
        Which rows of the file are points; ``--drop-missing`` leaves out the others.
    whole : Arrow table or None
        All columns and rows of the file, for ``--join``.
    """

    file: str
    X: Any
    keys: list[Hashable] | None
    key_name: str
    keys_are_text: bool
    columns: list[str]
    left_out: list[str]
    is_kept: NDArray[np.bool_]
    whole: Any = None

    def __len__(self) -> int:
        return len(self.X)

    @property
    def values(self) -> NDArray[Any]:
        """The numbers as an array."""
        return self.X if isinstance(self.X, np.ndarray) else to_array(self.X)

    @property
    def row_numbers(self) -> list[int]:
        """The row of each point in the file, counted from 1."""
        found: list[int] = (np.flatnonzero(self.is_kept) + 1).tolist()
        return found

    @property
    def dropped(self) -> list[int]:
        """The rows that are left out, counted from 1."""
        found: list[int] = (np.flatnonzero(~self.is_kept) + 1).tolist()
        return found

    def for_tree(self, h: Hierarchy, rows: list[int] | slice = slice(None)) -> Any:
        """Some of the points as a tree is given them: with the names of their columns, unless they are distances."""
        if h.metric == "precomputed":
            if self.dropped:
                raise ParameterError("--drop-missing would break the order of precomputed dissimilarities: fill them")
            return self.values[rows]
        if isinstance(self.X, np.ndarray):
            return self.X[rows]
        if isinstance(rows, slice):
            start, stop, _ = rows.indices(len(self))
            return self.X.slice(start, stop - start)
        return self.X.take(rows)

    def summary(self) -> list[str]:
        """What was read, as lines."""
        text = f"{plural(len(self), 'point')}, {plural(len(self.columns), 'column')}"
        if not isinstance(self.X, np.ndarray):
            text += f": {some_names(self.columns)}"
        return [text, *self.left_out_lines]

    @property
    def left_out_lines(self) -> list[str]:
        """A line that names the columns that are not compared, if there are any."""
        return [f"left out, without numbers or a name: {', '.join(self.left_out)}"] if self.left_out else []

    def tell_dropped(self) -> None:
        """Say on standard error which rows are left out, if there are any."""
        dropped = np.array(self.dropped)
        if dropped.size:
            which = f"with missing values {'is' if dropped.size == 1 else 'are'} left out: {name_rows(dropped)}"
            print_error(f"{self.file}: {plural(dropped.size, 'row')} {which}")

    @contextmanager
    def named_in_errors(self) -> Iterator[None]:
        """Name the file in errors about its points, with rows counted from 1, and its columns if they are at fault."""
        try:
            with counting_rows_from(1):
                yield
        except DataError as error:
            problem = error.problem
            parts = [f"{self.file} {problem[2:]}" if problem.startswith("X ") else f"{self.file}: {problem}"]
            if isinstance(error, DimensionError) and not isinstance(error, ColumnNamesError):
                parts[0] += f" ({some_names(self.columns)})"
                parts += self.left_out_lines
            elif self.dropped:
                parts.append("rows are counted without those left out")
            raise type(error)("; ".join(parts), remedy=error.remedy) from None
