"""``evertree anomalies``: the points of a tree or of a file that stand apart most."""

from __future__ import annotations

from collections.abc import Hashable
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from evertree.anomalies import Anomaly
from evertree.cli import options
from evertree.cli.examples import examples
from evertree.cli.input_files import read_points
from evertree.cli.input_source import InputFile
from evertree.cli.output import DASH, Output, plural
from evertree.cli.output_files import TABLES, check_output_files, write_table
from evertree.cli.point_table import PointTable
from evertree.cli.tree_files import open_to_read
from evertree.errors import ParameterError
from evertree.hierarchy import Hierarchy

#: How many points are shown by default.
_DEFAULT_TOP = 10

#: The columns with numbers, as `Anomaly` names them.
_NUMBERS = ("score", "size", "ratio", "height")


@examples(
    ("The ten points of a tree that stand apart most", "evertree anomalies tree.db"),
    ("Those of a table, before they are inserted", "evertree anomalies tree.db new.csv --key id"),
    ("Only alarms: prints nothing if there are none", "evertree anomalies tree.db new.csv --key id --above 25"),
    ("All scores, by another measure", "evertree anomalies tree.db --all --measure displacement -o s.csv"),
    ("In a pipe", "cat new.csv | evertree anomalies tree.db - --columns x,y --output -"),
)
def anomalies(
    tree: options.AnyTree,
    points: Annotated[
        Path | None,
        typer.Argument(
            metavar="POINTS",
            show_default=False,
            help="A table of points, as for insert; - for standard input. By default the points of the tree.",
        ),
    ] = None,
    top: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="How many points: 10 by default, or with --above all that there are."),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All points.")] = False,
    above: Annotated[
        float | None, typer.Option(metavar="SCORE", min=0, help="Only points with a higher score than this.")
    ] = None,
    measure: Annotated[
        options.MeasureName,
        typer.Option(
            metavar="NAME",
            help="jump, which depends on how far a point stands apart, or displacement: how many times larger the "
            "others are than what stands apart.",
        ),
    ] = "jump",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Write a table: .csv, .parquet, or - for CSV on standard output."
        ),
    ] = None,
    key: options.Key = None,
    columns: options.Columns = None,
    drop_missing: options.DropMissing = False,
    file_format: options.Format = None,
    delimiter: options.Delimiter = None,
    decimal: options.Decimal = None,
    header: options.Header = True,
    array: options.Array = None,
    as_json: options.Json = False,
) -> None:
    """Find the points that stand apart from the others, and say why.

    The higher the score, the more anomalous. Each point of a table is scored as if it came alone, and the tree does not
    change. Points are named by their keys, or by their rows, counted from 1.

    The exit code is 0, whatever is found. With --above, nothing is printed if there is nothing to report, so that cron
    sends no mail.
    """
    if everything and top is not None:
        raise typer.BadParameter("give either --top or --all", param_hint="--all")
    how = (key, columns, drop_missing, file_format, delimiter, decimal, header, array)
    if points is None and how != (None, None, False, None, None, None, True, None):
        raise typer.BadParameter("options for reading a table need one: give POINTS", param_hint="POINTS")
    out = Output(as_json, output == DASH)
    check_output_files({"--output": (output, TABLES)}, *(path for path in (tree, points) if path is not None))
    h = open_to_read(tree)
    table = None if points is None else _read(h, InputFile(points, *how))
    limit = None if everything else top or (_DEFAULT_TOP if above is None else None)
    with nullcontext() if table is None else table.named_in_errors():
        found = _find(h, None if table is None else table.for_tree(h), limit, above, measure)
    name, names = _names(found, table)
    numbers = {column: [getattr(anomaly, column) for anomaly in found] for column in _NUMBERS}
    reasons = [anomaly.reason for anomaly in found]
    n_points = len(h) if table is None else len(table)
    about = {"tree": str(tree), "measure": measure, "points": n_points, "found": len(found)}
    if output is None:
        if found:
            out.text(*_lines(name, names, numbers, reasons))
        rows = {"row" if name == "row" else "key": names, **numbers, "reason": reasons}
        dicts = [dict(zip(rows, row, strict=True)) for row in zip(*rows.values(), strict=True)]
        out.json({**about, "output": None, "anomalies": dicts})
    else:
        arrays = {column: np.array(values, np.float64) for column, values in numbers.items()}
        write_table(output, name, names, {**arrays, "reason": np.array(reasons, np.str_)})
        if output != DASH:
            out.text(f"{len(found):,} of {plural(n_points, 'point')}: {output}")
        out.json({**about, "output": str(output)})


def _read(h: Hierarchy, file: InputFile) -> PointTable:
    if not isinstance(h.metric, str):
        raise ParameterError(
            "POINTS must be left out for a tree whose metric is a function: its points need not be rows of numbers. In "
            "Python, score_samples takes them"
        )
    return read_points(file)


def _find(h: Hierarchy, X: Any, limit: int | None, above: float | None, measure: str) -> list[Anomaly]:
    """The points with the highest scores, of X or of the tree."""
    if above is not None:
        n_above = int(np.count_nonzero(h.anomaly_scores(X, measure) > above))
        limit = n_above if limit is None else min(limit, n_above)
    return [] if limit == 0 else h.anomalies(X, limit, measure)


def _names(found: list[Anomaly], table: PointTable | None) -> tuple[str, list[Hashable]]:
    """A heading, and the keys of points, or their rows if they have no keys."""
    if table is None:
        return "key", [anomaly.key for anomaly in found]
    if table.keys is None:
        numbers = table.row_numbers
        return "row", [numbers[anomaly.row] for anomaly in found]
    return table.key_name, [table.keys[anomaly.row] for anomaly in found]


def _lines(name: str, names: list[Hashable], numbers: dict[str, list[float]], reasons: list[str]) -> list[str]:
    """A table with aligned columns."""
    columns = [[name, *map(str, names)]]
    columns += [[column, *(f"{value:,.6g}" for value in values)] for column, values in numbers.items()]
    widths = [max(map(len, column)) for column in columns]
    return [
        "  ".join([first.ljust(widths[0]), *map(str.rjust, others, widths[1:]), reason])
        for first, *others, reason in zip(*columns, ["reason", *reasons], strict=True)
    ]
