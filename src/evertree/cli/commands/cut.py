"""``evertree cut``: the clusters of a tree."""

from __future__ import annotations

import typer

from evertree.cli import options
from evertree.cli.examples import examples
from evertree.cli.option_groups import CutOptions, cut_lines, describe_cuts
from evertree.cli.output import DASH, Output
from evertree.cli.output_files import TABLES, check_output_files, write_table
from evertree.cli.tree_files import open_to_read


@examples(
    ("Three clusters, as CSV", "evertree cut tree.db --n-clusters 3"),
    ("Several levels in one table", "evertree cut tree.db -k 2 -k 5 --height 1.5 --output labels.parquet"),
    ("Clusters of at least 5 points, without a number", "evertree cut tree.db --min-cluster-size 5 | head"),
    ("The smallest of them", "evertree cut tree.db --min-cluster-size 5 --method leaf"),
)
def cut(
    tree: options.AnyTree,
    n_clusters: options.NClusters = None,
    height: options.Heights = None,
    min_cluster_size: options.MinClusterSize = None,
    method: options.Method = None,
    epsilon: options.Epsilon = None,
    allow_single_cluster: options.AllowSingleCluster = False,
    output: options.Labels = None,
    as_json: options.Json = False,
) -> None:
    """Cut a tree into clusters, and write the cluster of each point."""
    cuts = CutOptions(n_clusters or [], height or [], min_cluster_size, method, epsilon, allow_single_cluster)
    if not cuts:
        raise typer.BadParameter("give --n-clusters, --height or --min-cluster-size")
    if output is None and not as_json:
        output = DASH
    out = Output(as_json, output == DASH)
    check_output_files({"--output": (output, TABLES)}, tree)
    h = open_to_read(tree)
    labels = cuts.cut(h)
    found = {"tree": str(tree), "points": len(h), "cuts": describe_cuts(labels), "output": output and str(output)}
    if output is None:
        found |= {"keys": h.keys(), "labels": {name: values.tolist() for name, values in labels.items()}}
    else:
        write_table(output, "key", h.keys(), labels)
    if output != DASH:
        out.text(*cut_lines(labels))
    out.json(found)
