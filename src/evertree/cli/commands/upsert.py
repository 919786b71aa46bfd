"""``evertree upsert``: new values for points that are in a durable tree, and those that are not."""

from __future__ import annotations

from typing import Annotated

import typer

from evertree.cli import options
from evertree.cli.examples import examples
from evertree.cli.input_source import InputFile
from evertree.cli.option_groups import ClusteringOptions, WindowOptions
from evertree.cli.tree_edits import edit_tree


@examples(
    ("New values for points that are there, and new points", "evertree upsert tree.db changes.csv --key id"),
    ("From a pipe", "cat changes.csv | evertree upsert tree.db - --key id --columns x,y"),
)
def upsert(
    tree: options.NewTree,
    file: options.File,
    key: Annotated[
        str,
        typer.Option(
            metavar="COLUMN", help="The column with the keys, which say which points are meant (in .npz: the array)."
        ),
    ],
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
    """Update the points of a file that are in a durable tree, and insert the others.

    The keys say which are there. Either all of this is done or, on an error, nothing. Columns, keys and windows are as
    for insert.
    """
    source = InputFile(file, key, columns, drop_missing, file_format, delimiter, decimal, header, array)
    clustering = ClusteringOptions(linkage, metric, metric_params, goal, search_width)
    window = WindowOptions(keep_last, max_age, time_of_points)
    edit_tree(tree, source, clustering, window, updates=True, as_json=as_json)
