"""Tables that are written, a row for each point: CSV for text and pipes, Parquet for many."""

from __future__ import annotations

import csv
import sys
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from evertree.cli.output import DASH
from evertree.extras import require

#: How the file may end, for `output.check_targets`.
ENDINGS = (".csv", ".tsv", ".parquet", "-")

Columns = Mapping[str, NDArray[Any]]


def write(path: Path, key_name: str, keys: list[Hashable], columns: Columns) -> None:
    """Write a row for each key."""
    if path == DASH:
        _write_text(sys.stdout, ",", key_name, keys, columns)
    elif path.suffix.lower() == ".parquet":
        _write_parquet(path, key_name, keys, columns)
    else:
        with path.open("w", newline="", encoding="utf-8") as file:
            _write_text(file, "\t" if path.suffix.lower() == ".tsv" else ",", key_name, keys, columns)


def _write_text(file: Any, delimiter: str, key_name: str, keys: list[Hashable], columns: Columns) -> None:
    writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
    writer.writerow([key_name, *columns])
    writer.writerows(zip(keys, *(values.tolist() for values in columns.values()), strict=True))


def _write_parquet(path: Path, key_name: str, keys: list[Hashable], columns: Columns) -> None:
    lib = require("pyarrow", "writing Parquet", "cli")
    parquet = require("pyarrow.parquet", "writing Parquet", "cli")
    try:
        column = lib.array(keys)
    except (lib.ArrowException, TypeError):  # of several types, or of one that Arrow does not have
        column = lib.array([str(key) for key in keys])
    parquet.write_table(
        lib.table({key_name: column, **{name: lib.array(values) for name, values in columns.items()}}), path
    )
