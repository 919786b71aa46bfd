"""``evertree cluster``: from a file of points to a tree, cuts, exports and pictures."""

from __future__ import annotations

import time
from pathlib import Path

import typer

import evertree
from evertree.cli import options
from evertree.cli.examples import examples
from evertree.cli.exits import INTERRUPTED, print_error
from evertree.cli.input_files import read_points
from evertree.cli.input_source import InputFile
from evertree.cli.option_groups import DEFAULT_CUT, ClusteringOptions, CutOptions, cut_lines, describe_cuts
from evertree.cli.output import DASH, Output, report_json, report_text
from evertree.cli.output_files import (
    TABLES,
    TreeExports,
    check_output_files,
    file_lines,
    joined_as,
    refuse_to_join,
    write_joined,
    write_table,
    written_files,
)
from evertree.cli.progress_bar import insert_with_bar, refine_with_bar
from evertree.errors import ParameterError
from evertree.hierarchy import Hierarchy


@examples(
    ("Three clusters of the rows of a table, as CSV", "evertree cluster points.csv --key id --n-clusters 3"),
    ("The same table with its clusters", "evertree cluster points.csv --columns x,y -k 3 --join -o joined.csv"),
    ("JSON lines from a pipe", "cat points.jsonl | evertree cluster - --format jsonl --key id -k 3"),
    (
        "Columns in different units, on one scale",
        "evertree cluster points.csv --metric seuclidean -k 2 -k 5 -o labels.csv",
    ),
    (
        "A picture, and the tree for SciPy",
        "evertree cluster points.npy -k 3 --plot tree.png --linkage-matrix Z.npy",
    ),
    ("Clusters without a number, and noise", "evertree cluster points.csv --linkage single --min-cluster-size 20"),
    ("Only what three seconds allow", "evertree cluster points.parquet --seconds 3 --min-cluster-size 5"),
    ("In a pipe", "cat points.csv | evertree cluster - --columns x,y --newick -"),
    ("A tree that lives on, for insert, remove and refine", "evertree cluster points.csv --key id --store new.db"),
)
def cluster(
    file: options.File,
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
    jobs: options.Jobs = None,
    seconds: options.Seconds = None,
    batch: options.Batch = False,
    n_clusters: options.NClusters = None,
    height: options.Heights = None,
    min_cluster_size: options.MinClusterSize = None,
    method: options.Method = None,
    epsilon: options.Epsilon = None,
    allow_single_cluster: options.AllowSingleCluster = False,
    join: options.Join = False,
    output: options.Labels = None,
    newick: options.Newick = None,
    tree_json: options.TreeJson = None,
    linkage_matrix: options.LinkageMatrix = None,
    html: options.Html = None,
    plot: options.Plot = None,
    save: options.Save = None,
    store: options.Store = None,
    as_json: options.Json = False,
) -> None:
    """Cluster the points of a file.

    The tree is refined until it is the one that batch clustering would make, or until the time is over; Ctrl-C ends
    the refinement and keeps what was reached. Without any cut or export, it is cut into 10 clusters.
    """
    began = time.perf_counter()
    clustering = ClusteringOptions(linkage, metric, metric_params, goal, search_width, jobs)
    cuts = CutOptions(n_clusters or [], height or [], min_cluster_size, method, epsilon, allow_single_cluster)
    exports = TreeExports(newick, tree_json, linkage_matrix, html, plot, save)
    if not cuts and not exports.paths and store is None:
        cuts = DEFAULT_CUT
    label_file = DASH if output is None and cuts and not as_json else output
    if label_file is not None and not cuts:
        raise typer.BadParameter("needs --n-clusters, --height or --min-cluster-size", param_hint="--output")
    if join and label_file is None:
        raise typer.BadParameter("needs a table of clusters: give --output and a cut", param_hint="--join")
    as_it_came = joined_as(label_file) if join and label_file else None
    source = InputFile(file, key, columns, drop_missing, file_format, delimiter, decimal, header, array, as_it_came)
    out = Output(as_json, label_file == DASH or exports.on_stdout)
    clustering.check()
    _check_files(label_file, exports, store, file)

    points = read_points(source)
    cuts.check(len(points))
    if join:
        refuse_to_join(points, cuts.named(len(points)))
    out.text(*points.summary())
    h = Hierarchy(**clustering.keywords(points))
    with points.named_in_errors():
        if batch:
            h = evertree.agglomerate(points.for_tree(h), keys=points.keys, **clustering.keywords(points))
        else:
            insert_with_bar(h, points)
    report = refine_with_bar(h, seconds)
    if report is None:
        print_error("interrupted: the results are of the tree as far as it was refined")
    else:
        out.text(f"{h.linkage} on {h.metric}: {report_text(report)}")
    labels = cuts.cut(h)
    out.text(*cut_lines(labels))

    if label_file is not None and join:
        write_joined(label_file, points, labels)
    elif label_file is not None:
        write_table(label_file, points.key_name, h.keys(), labels)
    exports.write(h, next(iter(labels.values()), None))
    if store is not None:
        evertree.open(store, start=h).close()
    files = written_files({"labels": label_file, **exports.paths, "store": store})
    out.text(*file_lines(files))
    out.json(
        {
            "points": len(h),
            "columns": points.columns,
            "left_out": points.left_out,
            "dropped": points.dropped,
            "linkage": h.linkage,
            "metric": h.metric,
            "goal": h.goal,
            "refinement": None if report is None else report_json(report),
            "cuts": describe_cuts(labels),
            "files": files,
            "seconds": time.perf_counter() - began,
        }
    )
    if report is None:
        raise typer.Exit(INTERRUPTED)


def _check_files(labels: Path | None, exports: TreeExports, store: Path | None, source: Path) -> None:
    check_output_files({"--output": (labels, TABLES), **exports.to_check(), "--store": (store, ())}, source)
    if store is not None and store.exists():
        raise ParameterError(f"--store makes a new tree, and {store} exists already: see evertree insert")
