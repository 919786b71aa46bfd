"""The options that commands share, each defined once."""

from __future__ import annotations

import json
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from evertree.input.metrics import METRICS
from evertree.linkages import LINKAGES

LinkageName = StrEnum("LinkageName", [(name.upper(), name) for name in LINKAGES])  # type: ignore[misc]
FormatName = Literal["csv", "tsv", "json", "jsonl"]
GoalName = Literal["stable", "homogeneous"]
MeasureName = Literal["jump", "displacement"]
MethodName = Literal["eom", "leaf"]

# Options in the panels of a command's help.
_reading = partial(typer.Option, rich_help_panel="How the file is read")
_clustering = partial(typer.Option, rich_help_panel="How points are compared")
_window = partial(typer.Option, rich_help_panel="Which points stay")
_cuts = partial(typer.Option, rich_help_panel="Cuts")
_exports = partial(typer.Option, rich_help_panel="Exports", metavar="FILE")


def _metrics(incomplete: str) -> list[str]:
    return [name for name in [*METRICS, "precomputed"] if name.startswith(incomplete)]


def _json_object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise typer.BadParameter("""must be a JSON object, such as '{"p": 3}'""")
    return found


# How the file is read.
File = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        show_default=False,
        help="A table of points: CSV, TSV, JSON or JSON lines (also with .gz), Parquet, .npy or .npz; - for standard "
        "input.",
    ),
]
Key = Annotated[
    str | None,
    _reading(
        metavar="COLUMN",
        help="The column with the keys of the points (in an .npz file: the array). By default they are numbered.",
    ),
]
Columns = Annotated[
    str | None,
    _reading(
        metavar="A,B,C",
        help="The columns to compare, in this order: by name, or by number from 1 where they have none. "
        "By default all that have numbers, except the key.",
    ),
]
DropMissing = Annotated[
    bool,
    _reading(
        "--drop-missing",
        help="Leave out rows that have no value in one of these columns or no key, and say on standard error which.",
    ),
]
Format = Annotated[
    FormatName | None,
    _reading(
        "--format",
        metavar="NAME",
        help="csv, tsv, jsonl (an object in each line) or json (an array of objects). By default the first bytes and "
        "the name of the file tell.",
    ),
]
Delimiter = Annotated[
    str | None,
    _reading(
        metavar="CHARACTER",
        help="What separates the columns of a text file, such as ';' or tab. By default a comma; in .tsv files a tab.",
    ),
]
Decimal = Annotated[
    str | None,
    _reading(metavar="CHARACTER", help="The decimal point of a text file: ',' for a comma. By default a point."),
]
Header = Annotated[
    bool, _reading("--header/--no-header", help="Whether the first line of a text file has the names of the columns.")
]
Array = Annotated[
    str | None,
    _reading(metavar="NAME", help="Which array of an .npz file has the points. By default X, or the only matrix."),
]

# How points are compared.
Linkage = Annotated[
    LinkageName | None, _clustering(metavar="NAME", help=f"One of {', '.join(LINKAGES)}; ward by default.")
]
Metric = Annotated[
    str | None,
    _clustering(
        metavar="NAME",
        autocompletion=_metrics,
        help="A SciPy metric, euclidean by default; seuclidean to put all columns on one scale, cosine for embeddings; "
        "or precomputed, where the file is a square matrix.",
    ),
]
MetricParams = Annotated[
    dict[str, Any] | None,
    _clustering(
        metavar="JSON", parser=_json_object, help="""Parameters of the metric, such as '{"p": 3}' for minkowski."""
    ),
]
Goal = Annotated[
    GoalName | None,
    _clustering(
        metavar="NAME",
        help="What refinement aims at: stable (the default), a tree that batch clustering could have made, or "
        "homogeneous, the weaker goal of the paper.",
    ),
]
SearchWidth = Annotated[
    int | None,
    _clustering(
        metavar="N",
        min=0,
        help="How widely to search for where points belong; 0 searches everywhere, for the exact tree, as is done by "
        "default where it is cheap.",
    ),
]

Jobs = Annotated[
    int | None,
    _clustering(
        "--jobs",
        metavar="N",
        help="How many threads build a large tree: -1 for all processors. The tree does not depend on it.",
    ),
]

Batch = Annotated[
    bool,
    _clustering(
        "--batch",
        help="Start from the batch tree: exact, but in quadratic time and, except for ward and single, memory.",
    ),
]

# Which points stay.
KeepLast = Annotated[
    int | None, _window(metavar="N", min=0, help="From now on keep only the N points inserted last; 0 lifts the limit.")
]
MaxAge = Annotated[
    float | None,
    _window(
        metavar="AGE",
        min=0,
        help="From now on drop points older than this: in seconds, or in the unit of --time; 0 lifts the limit.",
    ),
]
Time = Annotated[
    float | None,
    _window(
        "--time",
        metavar="NUMBER",
        help="When the points came, if --max-age goes by the clock of the data. By default now.",
    ),
]

# Cuts.
NClusters = Annotated[
    list[int] | None, _cuts("--n-clusters", "-k", metavar="N", min=1, help="Cut into N clusters. Repeatable.")
]
Heights = Annotated[
    list[float] | None,
    _cuts("--height", metavar="HEIGHT", min=0, help="Cut at a height: no cluster merges above it. Repeatable."),
]
MinClusterSize = Annotated[
    int | None,
    _cuts(
        metavar="N",
        min=1,
        help="The fewest points of a cluster; points in smaller pieces get the label -1. Alone, it finds clusters "
        "without a number, as HDBSCAN does.",
    ),
]
Method = Annotated[
    MethodName | None,
    _cuts(
        metavar="NAME",
        help="With --min-cluster-size alone: eom for the most stable clusters (the default), leaf for the smallest.",
    ),
]
Epsilon = Annotated[
    float | None,
    _cuts(
        metavar="HEIGHT",
        min=0,
        help="With --min-cluster-size alone: clusters that split below this height stay one.",
    ),
]
AllowSingleCluster = Annotated[
    bool,
    _cuts(
        "--allow-single-cluster",
        help="With --min-cluster-size alone: all points may be one cluster where nothing splits.",
    ),
]
Join = Annotated[
    bool, _cuts("--join", help="Write all columns of FILE, with the clusters beside them; rows left out have none.")
]
Labels = Annotated[
    Path | None,
    _cuts(
        "--output",
        "-o",
        metavar="FILE",
        help="Where the clusters go, a line for each point: .csv, .tsv, .parquet, or - for standard output, as by "
        "default.",
    ),
]

# Exports.
Newick = Annotated[Path | None, _exports(help="The tree as Newick text; - for standard output.")]
TreeJson = Annotated[Path | None, _exports(help="The tree as nested JSON; - for standard output.")]
LinkageMatrix = Annotated[Path | None, _exports(help="SciPy's linkage matrix, .npy or .csv.")]
Html = Annotated[Path | None, _exports(help="A page to explore the tree, .html.")]
Plot = Annotated[Path | None, _exports(help="A picture of the tree: .png, .svg or .pdf.")]
Save = Annotated[Path | None, _exports(help="The tree as a file that evertree.load reads.")]
Store = Annotated[Path | None, _exports(help="A new durable tree, for insert, remove, refine and follow.")]

# Trees, and the rest.
Tree = Annotated[
    Path,
    typer.Argument(
        metavar="TREE", show_default=False, help="The file of a durable tree, which insert or cluster --store has made."
    ),
]
NewTree = Annotated[
    Path,
    typer.Argument(metavar="TREE", show_default=False, help="The file of a durable tree; it is made if there is none."),
]
AnyTree = Annotated[
    Path,
    typer.Argument(
        metavar="TREE",
        show_default=False,
        help="The file of a durable tree, also while others write to it, or one written by --save.",
    ),
]
Seconds = Annotated[
    float | None,
    typer.Option(metavar="SECONDS", min=0, help="How long refinement may take. By default until the goal is reached."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
