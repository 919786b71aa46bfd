"""``evertree info``: what is in the file of a tree."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from evertree.cli import options
from evertree.cli.examples import examples
from evertree.cli.output import Output, plural, some_names
from evertree.cli.tree_files import is_durable, open_to_read
from evertree.durable import DurableHierarchy
from evertree.durable.sqlite_file import STORE_VERSION, store_version
from evertree.hierarchy import Hierarchy


@examples(
    ("What is in a file", "evertree info tree.db"),
    ("And how far the tree is from batch clustering", "evertree info tree.db --measure"),
    ("For a program", "evertree info tree.db --json"),
)
def info(
    tree: options.AnyTree,
    measure: Annotated[
        bool,
        typer.Option("--measure", help="Search for blocking pairs at up to 1,000 nodes: takes time on a large tree."),
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Show what is in the file of a tree."""
    h = open_to_read(tree, allow_empty=True)
    found = _info(tree, h)
    if measure:
        found["instability"] = h.instability()._asdict()
    out = Output(as_json)
    rows = {name: value for name, value in _text(found).items() if value}
    width = max(map(len, rows))
    out.text(*(f"{name:{width}}  {value}" for name, value in rows.items()))
    out.json(found)


def _info(path: Path, h: Hierarchy) -> dict[str, Any]:
    trial = h.copy() if isinstance(h, DurableHierarchy) else h
    report = trial.refine(moves=0)  # makes no moves, and reports what is left to do
    return {
        "tree": str(path),
        "kind": "durable" if is_durable(path) else "saved",
        "format_version": _version(path),
        "bytes": _size(path),
        "points": len(h),
        "columns": h.n_columns if len(h) else None,
        "column_names": None if h.column_names is None else list(h.column_names),
        "dtype": h.dtype.name if len(h) and h.n_columns is not None else None,
        "linkage": h.linkage,
        "metric": h.metric if isinstance(h.metric, str) else getattr(h.metric, "__name__", "a function"),
        "goal": h.goal,
        "search_width": h.search_width,
        "window": None if h.window is None else asdict(h.window),
        "moves": h.n_moves,
        "grafts": h.n_grafts,
        "pending": report.pending + report.due,
        "root_height": h.height(h.root) if len(h) else None,
        "memory": h.n_bytes,
    }


def _text(found: dict[str, Any]) -> dict[str, str]:
    """The rows of a table for people, some of them empty."""
    from rich.filesize import decimal as size_text

    n_nodes = max(2 * found["points"] - 1, 0)
    pending, window, share = found["pending"], found["window"] or {}, found.get("instability")
    limits = [f"the last {plural(window['last'], 'point')}"] if window.get("last") else []
    limits += [f"none that came more than {window['max_age']:,g} ago"] if window.get("max_age") else []
    return {
        "file": f"{found['tree']}, {size_text(found['bytes'])}",
        "kind": f"{found['kind']}, format version {found['format_version']}",
        "points": f"{found['points']:,}",
        "columns": "" if found["columns"] is None else f"{found['columns']:,} of {found['dtype']}",
        "column names": some_names(found["column_names"] or []),
        "linkage": f"{found['linkage']} on {found['metric']}",
        "goal": found["goal"],
        "search width": "exhaustive" if found["search_width"] is None else str(found["search_width"]),
        "window": ", ".join(limits),
        "made so far": f"{found['moves']:,} moves, {found['grafts']:,} grafts",
        "still to do": f"{pending:,} of {n_nodes:,} nodes to check: see evertree refine"
        if pending
        else "nothing: the tree has reached its goal",
        "root height": "" if found["root_height"] is None else f"{found['root_height']:.6g}",
        "memory": size_text(found["memory"]),
        "blocked": f"{share['fraction']:.2%} of {share['n_nodes']:,} nodes are in a blocking pair" if share else "",
    }


def _version(path: Path) -> int:
    if is_durable(path):
        return store_version(path) or STORE_VERSION  # that of a new tree may still be in SQLite's log
    with np.load(path, allow_pickle=False) as archive:
        return int(json.loads(archive["header"].tobytes())["version"])


def _size(path: Path) -> int:
    """The bytes of a file, and of SQLite's log beside it."""
    log = Path(f"{path}-wal")
    return path.stat().st_size + (log.stat().st_size if log.exists() else 0)
