"""``evertree insert``: more points for a durable tree, or a new one."""

from __future__ import annotations

from typing import Annotated

import typer

from evertree.cli import options
from evertree.cli.examples import examples
from evertree.cli.input_source import InputFile
from evertree.cli.option_groups import ClusteringOptions, WindowOptions
from evertree.cli.tree_edits import edit_tree


@examples(
    ("A new tree, or more points for an existing one", "evertree insert tree.db new.csv --key id"),
    ("From JSON lines, without incomplete rows", "evertree insert tree.db points.jsonl --drop-missing --columns x,y"),
    ("Keep only the last 1,000 points, now and later", "evertree insert tree.db new.csv --key id --keep-last 1000"),
    ("From a pipe, into a new tree of another kind", "cat points.csv | evertree insert other.db - --linkage average"),
)
def insert(
    tree: options.NewTree,
    file: options.File,
    update: Annotated[
        bool,
        typer.Option("--update", help="Points whose key is there already get the values in the file, as by upsert."),
    ] = False,
    key: options.Key = None,
    columns: options.Columns = None,
    drop_missing: options.DropMissing = False,
    file_format: options.Format = None,
    delimiter: options.Delimiter = None,
    decimal: options.Decimal = None,
    header: options.Header = True,
    array: options.Array = None,
    linkage: options.Linkage = None,
    metric: options.Metric = None,
    metric_params: options.MetricParams = None,
    goal: options.Goal = None,
    search_width: options.SearchWidth = None,
    keep_last: options.KeepLast = None,
    max_age: options.MaxAge = None,
    time_of_points: options.Time = None,
    as_json: options.Json = False,
) -> None:
    """Insert the points of a file into a durable tree, new or existing.

    Either all of them are inserted or, on an error, none. The file must have the same columns as the points before: by
    name and in any order or, where they have no names, in the same order. Keys in text files are integers if they are
    written like one, and otherwise text. A window that is given stays with the tree.
    """
    if update and key is None:
        raise typer.BadParameter("needs --key, to know which points are meant", param_hint="--update")
    source = InputFile(file, key, columns, drop_missing, file_format, delimiter, decimal, header, array)
    clustering = ClusteringOptions(linkage, metric, metric_params, goal, search_width)
    window = WindowOptions(keep_last, max_age, time_of_points)
    edit_tree(tree, source, clustering, window, updates=update, as_json=as_json)
