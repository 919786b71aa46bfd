"""The files that commands write: tables with a row for each point, and trees for other tools."""

from __future__ import annotations

import csv
import sys
from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import typer
from numpy.typing import NDArray

from evertree.cli.output import DASH
from evertree.cli.point_table import PointTable
from evertree.errors import ParameterError, listed
from evertree.extras import require
from evertree.hierarchy import Hierarchy

#: The endings that a file may have, for `check_output_files`.
TABLES = (".csv", ".tsv", ".parquet", "-")
PICTURES = (".png", ".svg", ".pdf")
PAGES = (".html", ".htm")

#: Pixels per inch in a picture.
_DPI = 150


def check_output_files(files: Mapping[str, tuple[Path | None, tuple[str, ...]]], *inputs: Path) -> None:
    """Refuse files that cannot be written, before any work is done.

    Parameters
    ----------
    files
        By option: the file, and the endings that it may have, or none if any will do. A dash among the endings allows
        standard output, which only one of the files can have.
    *inputs
        Files that are read, and must not be overwritten.
    """
    given = {option: (path, endings) for option, (path, endings) in files.items() if path is not None}
    on_stdout = [option for option, (path, _) in given.items() if path == DASH]
    for option in on_stdout:
        if "-" not in given[option][1]:
            raise ParameterError(f"{option} cannot go to standard output: name a file")
    if len(on_stdout) > 1:
        raise ParameterError(f"only one of {' and '.join(on_stdout)} can go to standard output: name a file")
    seen: dict[Path, str] = {}
    for option, (path, allowed) in given.items():
        if path == DASH:
            continue
        endings = [ending for ending in allowed if ending != "-"]
        if endings and path.suffix.lower() not in endings:
            raise ParameterError(f"{option} must end with {' or '.join(endings)}; it is {path}")
        if not path.absolute().parent.is_dir():
            raise ParameterError(f"{option} must be in a folder that exists; {path.parent} does not")
        place = path.resolve()
        if place in [source.resolve() for source in inputs]:
            raise ParameterError(f"{option} would write over {path}, which is read")
        if place in seen:
            raise ParameterError(f"{option} would write over the file of {seen[place]}")
        seen[place] = option


def write_table(path: Path, key_name: str, keys: list[Hashable], columns: Mapping[str, NDArray[Any]]) -> None:
    """Write a row for each key, as CSV, TSV or Parquet."""
    if _is_parquet(path):
        arrow = require("pyarrow", "writing Parquet", "cli")
        try:
            key_column = arrow.array(keys)
        except (arrow.ArrowException, TypeError):  # of several types, or of one that Arrow does not have
            key_column = arrow.array([str(key) for key in keys])
        others = {name: arrow.array(values) for name, values in columns.items()}
        _write_parquet(path, arrow.table({key_name: key_column, **others}))
    else:
        rows = zip(keys, *(values.tolist() for values in columns.values()), strict=True)
        _write_csv(path, [key_name, *columns], rows)


def joined_as(path: Path) -> Literal["typed", "text"]:
    """How `write_joined` needs the table that came in: only Parquet has types."""
    return "typed" if _is_parquet(path) else "text"


def refuse_to_join(points: PointTable, names: Iterable[str]) -> None:
    """Refuse cuts whose names the columns of the table have."""
    taken = [name for name in names if name in points.whole.column_names]
    if taken:
        raise ParameterError(f"--join would write a second column {listed(taken)}: {points.file} has one already")


def write_joined(path: Path, points: PointTable, columns: Mapping[str, NDArray[Any]]) -> None:
    """Write the table that came in with more columns, a value for each point; rows that are no points have none."""
    arrow, table = require("pyarrow", "--join", "cli"), points.whole
    for name, values in columns.items():
        spread = np.zeros(points.is_kept.size, values.dtype)
        spread[points.is_kept] = values
        table = table.append_column(name, arrow.array(spread, mask=~points.is_kept))
    if _is_parquet(path):
        _write_parquet(path, table)
    else:
        batches = (zip(*(column.to_pylist() for column in batch.columns), strict=True) for batch in table.to_batches())
        _write_csv(path, table.column_names, (map(_as_text, row) for batch in batches for row in batch))


def _as_text(value: Any) -> Any:
    """A value for CSV, with truth values as pyarrow reads them."""
    return str(value).lower() if isinstance(value, bool) else value


def _is_parquet(path: Path) -> bool:
    return path.suffix.lower() == ".parquet"


def _write_csv(path: Path, names: Sequence[str], rows: Iterable[Iterable[Any]]) -> None:
    with nullcontext(sys.stdout) if path == DASH else path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter="\t" if path.suffix.lower() == ".tsv" else ",", lineterminator="\n")
        writer.writerow(names)
        writer.writerows(rows)


def _write_parquet(path: Path, table: Any) -> None:
    require("pyarrow.parquet", "writing Parquet", "cli").write_table(table, path)


@dataclass(frozen=True)
class TreeExports:
    """The files to which a tree is exported."""

    newick: Path | None = None
    tree_json: Path | None = None
    linkage_matrix: Path | None = None
    html: Path | None = None
    plot: Path | None = None
    save: Path | None = None

    def to_check(self) -> dict[str, tuple[Path | None, tuple[str, ...]]]:
        """For `check_output_files`."""
        if self.plot is not None:
            require("matplotlib", "--plot", "plot")
        return {
            "--newick": (self.newick, ("-",)),
            "--tree-json": (self.tree_json, ("-",)),
            "--linkage-matrix": (self.linkage_matrix, (".npy", ".csv")),
            "--html": (self.html, PAGES),
            "--plot": (self.plot, PICTURES),
            "--save": (self.save, ()),
        }

    @property
    def paths(self) -> dict[str, Path]:
        """The files, by what is in them."""
        return {name: path for name, path in vars(self).items() if path is not None}

    @property
    def on_stdout(self) -> bool:
        """Whether one of them goes to standard output."""
        return DASH in self.paths.values()

    def write(self, h: Hierarchy, labels: NDArray[np.int64] | None = None) -> None:
        """Write them; the labels give a picture and a page their colours."""
        if self.newick is not None:
            _write_text(self.newick, h.to_newick())
        if self.tree_json is not None:
            _write_text(self.tree_json, h.to_json())
        if self.linkage_matrix is not None:
            _write_matrix(self.linkage_matrix, h.linkage_matrix())
        if self.html is not None:
            h.to_html(self.html, labels)
        if self.save is not None:
            h.copy().save(self.save)
        if self.plot is not None:
            draw_tree(self.plot, h, labels)


def written_files(paths: Mapping[str, Path | None]) -> dict[str, str]:
    """The files among these, as text: without those that are None or standard output."""
    return {name: str(path) for name, path in paths.items() if path not in (None, DASH)}


def file_lines(files: Mapping[str, str]) -> list[str]:
    """A line for each file that was written."""
    return [f"{name.replace('_', ' ')}: {path}" for name, path in files.items()]


def draw_tree(path: Path, h: Hierarchy, labels: NDArray[np.int64] | None, **options: Any) -> None:
    """Write a picture of a tree."""
    require("matplotlib", "a picture", "plot").use("agg")  # no display is needed
    pyplot = require("matplotlib.pyplot", "a picture", "plot")
    figure = h.plot(labels, **options).figure
    try:
        figure.savefig(path, dpi=_DPI, bbox_inches="tight")
    finally:
        pyplot.close(figure)


def _write_text(path: Path, text: str) -> None:
    if path == DASH:
        typer.echo(text)
    else:
        path.write_bytes((text + "\n").encode())


def _write_matrix(path: Path, matrix: NDArray[np.float64]) -> None:
    if path.suffix.lower() == ".csv":
        np.savetxt(path, matrix, delimiter=",", fmt="%.17g", header="left,right,height,size", comments="")
    else:
        with path.open("wb") as file:
            np.save(file, matrix)
