"""A file of points, and the options that say how to read it."""

from __future__ import annotations

import csv
import difflib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from evertree.cli.output import DASH
from evertree.errors import DataError, ParameterError, listed

#: Tabs as people type them.
_TABS = ("tab", "\\t")


@dataclass(frozen=True)
class InputFile:
    """A file of points, and the options that say how to read it."""

    path: Path
    key: str | None = None
    columns: str | None = None
    drop_missing: bool = False
    format: str | None = None
    delimiter: str | None = None
    decimal: str | None = None
    has_header: bool = True
    array: str | None = None
    join: Literal["typed", "text"] | None = None  # how to keep the whole table, if it is needed

    @property
    def name(self) -> str:
        """The file in messages."""
        return "standard input" if self.path == DASH else str(self.path)

    @property
    def column_names(self) -> list[str] | None:
        """The columns in ``--columns``."""
        return None if self.columns is None else split_names(self.columns)

    @property
    def delimiter_character(self) -> str:
        """What separates the columns of a text file."""
        if self.delimiter is None:
            is_tabbed = self.format == "tsv" or (self.format is None and {".tsv", ".tab"} & set(self.path.suffixes))
            return "\t" if is_tabbed else ","
        return "\t" if self.delimiter in _TABS else _one_character("--delimiter", self.delimiter)

    @property
    def decimal_character(self) -> str:
        """What separates the fraction of a number in a text file."""
        return "." if self.decimal is None else _one_character("--decimal", self.decimal)

    def check(self) -> None:
        """Refuse options that cannot be, before a pipe is read."""
        _ = self.column_names, self.delimiter_character, self.decimal_character

    def require_columns(self, wanted: Iterable[str], names: Sequence[str]) -> None:
        """Refuse columns that are not among those of the file."""
        for name in wanted:
            if name not in names:
                raise DataError(f"{self.name} has no column {name!r}; it has {listed(names)}{_similar(name, names)}")


def split_names(text: str) -> list[str]:
    """Names separated by commas; one that has a comma in it is quoted."""
    names = [name.strip() for name in next(csv.reader([text]), [])]
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise ParameterError(f"--columns must name each column once; given more than once: {listed(repeated)}")
    return names


def _one_character(option: str, text: str) -> str:
    if len(text) != 1:
        raise ParameterError(f"{option} must be one character; it is {text!r}")
    return text


def _similar(name: str, names: Sequence[str]) -> str:
    """The column that may be meant, as the end of a message."""
    by_lower = {other.lower(): other for other in names}
    found = difflib.get_close_matches(name.lower(), by_lower, 1)
    return f": did you mean {by_lower[found[0]]!r}?" if found else ""
