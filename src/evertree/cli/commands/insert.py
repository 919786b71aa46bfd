"""``evertree insert``: more points for a durable tree, or a new one."""

from __future__ import annotations

import time
from collections.abc import Hashable
from pathlib import Path
from typing import Annotated

import typer

import evertree
from evertree.cli import options
from evertree.cli.commands.cluster import insert_with_bar
from evertree.cli.examples import examples
from evertree.cli.input_files import InputFile, PointTable, read_points
from evertree.cli.key_text import match_live_keys
from evertree.cli.option_groups import ClusteringOptions, WindowOptions
from evertree.cli.output import Output, plural
from evertree.cli.tree_files import is_durable, open_to_write
from evertree.hierarchy import Hierarchy
from evertree.input.arrays import as_keys
from evertree.locking import Uninterrupted


@examples(
    ("A new tree, or more points for an existing one", "evertree insert tree.db new.csv --key id"),
    ("Also new values for existing points", "evertree insert tree.db changes.csv --key id --update"),
    ("Keep only the last 1,000 points, now and later", "evertree insert tree.db new.csv --key id --keep-last 1000"),
    ("From a pipe, into a new tree of another kind", "cat points.csv | evertree insert other.db - --linkage average"),
)
def insert(
    tree: options.Tree,
    file: options.File,
    update: Annotated[
        bool, typer.Option("--update", help="Points whose key is live already get the values in the file.")
    ] = False,
    key: options.Key = None,
    columns: options.Columns = None,
    delimiter: options.Delimiter = None,
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

    Either all of them are inserted or, on an error, none. The file must have the same columns as the points before, in
    the same order: a tree does not know their names. Keys in text files are integers if they are written like one, and
    otherwise text. A window that is given stays with the tree.
    """
    if update and key is None:
        raise typer.BadParameter("needs --key, to know which points are meant", param_hint="--update")
    began = time.perf_counter()
    clustering = ClusteringOptions(linkage, metric, metric_params, goal, search_width)
    window = WindowOptions(keep_last, max_age, time_of_points)
    is_new = not tree.exists()
    if is_new:
        clustering.check()
    else:
        is_durable(tree)  # or an error, before a pipe is read
    points = read_points(InputFile(file, key, columns, delimiter, header, array))
    n_before = n_updated = 0
    if is_new:
        h, keys = _new_tree(tree, points, clustering, window)
    else:
        with open_to_write(tree, **clustering.keywords()) as h, points.named_in_errors():
            n_before = len(h)
            keys, n_updated = _upsert(h, points, window) if update else (_insert(h, points, window), 0)
    n_gone = n_before + len(keys) - len(h)
    numbered = f" (keys {keys[0]} to {keys[-1]})" if keys and points.keys is None else ""
    updated = f", {n_updated:,} updated" if update else ""
    gone = "" if h.window is None else f", {n_gone:,} gone"
    out = Output(as_json)
    out.text(f"{plural(len(keys), 'point')} inserted{numbered}{updated}{gone}; {tree} has {len(h):,}")
    out.text(*points.left_out_lines)
    out.json(
        {
            "tree": str(tree),
            "created": is_new,
            "inserted": len(keys),
            "updated": n_updated,
            "gone": n_gone,
            "first_key": keys[0] if keys else None,
            "last_key": keys[-1] if keys else None,
            "points": len(h),
            "columns": points.columns,
            "left_out": points.left_out,
            "seconds": time.perf_counter() - began,
        }
    )


def _new_tree(
    path: Path, points: PointTable, clustering: ClusteringOptions, window: WindowOptions
) -> tuple[Hierarchy, list[Hashable]]:
    """A new durable tree, and the keys of its points. It is made in memory first, so that an error leaves no file."""
    h = Hierarchy(**clustering.keywords(points.values))
    window.apply(h)
    keys = insert_with_bar(h, points, window.time)
    evertree.open(path, start=h).close()
    return h, keys


def _insert(h: Hierarchy, points: PointTable, window: WindowOptions) -> list[Hashable]:
    """Insert points; return their keys."""
    return window.insert(h, points.values, None if points.keys is None else _keys(h, points))


def _upsert(h: Hierarchy, points: PointTable, window: WindowOptions) -> tuple[list[Hashable], int]:
    """Insert new points, and update those that are live; return the new keys, and how many were updated."""
    keys = _keys(h, points)
    live = [row for row, key in enumerate(keys) if key in h]
    new = [row for row, key in enumerate(keys) if key not in h]
    if live and h.metric != "precomputed":  # refuse their values before points leave the window, which could not return
        h.check(points.values[live])
    with Uninterrupted():  # Ctrl-C waits for both edits
        inserted = window.insert(h, points.values[new], [keys[row] for row in new])
        live = [row for row in live if keys[row] in h]  # some may have left the window
        try:
            if live:
                h.update([keys[row] for row in live], points.values[live])
        except BaseException:
            h.remove([key for key in inserted if key in h])
            raise
    return inserted, len(live)


def _keys(h: Hierarchy, points: PointTable) -> list[Hashable]:
    assert points.keys is not None
    return as_keys(match_live_keys(h, points.keys) if points.keys_are_text else points.keys)
