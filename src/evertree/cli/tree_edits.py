"""What the commands that put the points of a file into a durable tree have in common."""

from __future__ import annotations

import time
from collections.abc import Hashable
from pathlib import Path

import evertree
from evertree.cli.input_files import read_points
from evertree.cli.input_source import InputFile
from evertree.cli.key_text import match_live_keys
from evertree.cli.option_groups import ClusteringOptions, WindowOptions
from evertree.cli.output import Output, plural
from evertree.cli.point_table import PointTable
from evertree.cli.progress_bar import insert_with_bar
from evertree.cli.tree_files import is_durable, open_to_write
from evertree.hierarchy import Hierarchy
from evertree.input.arrays import as_keys


def edit_tree(
    tree: Path,
    file: InputFile,
    clustering: ClusteringOptions,
    window: WindowOptions,
    updates: bool,
    as_json: bool,
) -> None:
    """Insert the points of a file, or update those that are there, and say what was done. A new tree is made first."""
    began = time.perf_counter()
    is_new = not tree.exists()
    if is_new:
        clustering.check()
    else:
        is_durable(tree)  # or an error, before a pipe is read
    points = read_points(file)
    n_before = n_updated = 0
    if is_new:
        with points.named_in_errors():
            h, keys = _new_tree(tree, points, clustering, window)
    else:
        with open_to_write(tree, **clustering.keywords()) as h, points.named_in_errors():
            n_before = len(h)
            keys, n_updated = _upsert(h, points, window) if updates else (_insert(h, points, window), 0)
    n_gone = n_before + len(keys) - len(h)
    numbered = f" (keys {keys[0]} to {keys[-1]})" if keys and points.keys is None else ""
    updated = f", {n_updated:,} updated" if updates else ""
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
            "dropped": points.dropped,
            "seconds": time.perf_counter() - began,
        }
    )


def _insert(h: Hierarchy, points: PointTable, window: WindowOptions) -> list[Hashable]:
    """Insert points; return their keys."""
    return window.insert(h, points.for_tree(h), None if points.keys is None else _keys(h, points))


def _upsert(h: Hierarchy, points: PointTable, window: WindowOptions) -> tuple[list[Hashable], int]:
    """Update points that are live and insert others; return the keys of these, and how many were updated."""
    keys = _keys(h, points)
    live = [key for key in keys if key in h]
    inserted = window.upsert(h, points.for_tree(h), keys)
    return inserted, sum(key in h for key in live)  # some may have left the window


def _keys(h: Hierarchy, points: PointTable) -> list[Hashable]:
    """The keys of points, in the types that those of a tree have."""
    assert points.keys is not None
    return as_keys(match_live_keys(h, points.keys) if points.keys_are_text else points.keys)


def _new_tree(
    path: Path, points: PointTable, clustering: ClusteringOptions, window: WindowOptions
) -> tuple[Hierarchy, list[Hashable]]:
    """A new durable tree, and the keys of its points. It is made in memory first, so that an error leaves no file."""
    h = Hierarchy(**clustering.keywords(points))
    window.apply(h)
    keys = insert_with_bar(h, points, window.time)
    evertree.open(path, start=h).close()
    return h, keys
