"""What ``evertree info`` tells of a tree and its file."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from evertree.cli.opening import is_durable
from evertree.cli.output import counted
from evertree.durable import DurableHierarchy
from evertree.durable.sqlite_file import STORE_VERSION, store_version
from evertree.hierarchy import Hierarchy


def of(path: Path, h: Hierarchy) -> dict[str, Any]:
    """What there is to know, in the order in which it is shown."""
    twin = h.copy() if isinstance(h, DurableHierarchy) else h
    report = twin.refine(moves=0)  # it makes none, and tells what is left to do
    return {
        "tree": str(path),
        "kind": "durable" if is_durable(path) else "saved",
        "format_version": _version(path),
        "bytes": _size(path),
        "points": len(h),
        "columns": h.n_columns if len(h) else None,
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


def text(found: dict[str, Any]) -> str:
    """A table of two columns."""
    n_nodes = max(2 * found["points"] - 1, 0)
    columns = "" if found["columns"] is None else f"{found['columns']:,} of {found['dtype']}"
    rows = {
        "file": f"{found['tree']}, {_bytes(found['bytes'])}",
        "kind": f"{found['kind']}, format version {found['format_version']}",
        "points": f"{found['points']:,}",
        "columns": columns,
        "linkage": f"{found['linkage']} on {found['metric']}",
        "goal": found["goal"],
        "search width": "exhaustive" if found["search_width"] is None else str(found["search_width"]),
        "window": "" if found["window"] is None else _window(found["window"]),
        "made so far": f"{found['moves']:,} moves, {found['grafts']:,} grafts",
        "still to do": f"{found['pending']:,} of {n_nodes:,} nodes to look at: see evertree refine"
        if found["pending"]
        else "nothing: the tree has reached its goal",
        "root height": "" if found["root_height"] is None else f"{found['root_height']:.6g}",
        "memory": _bytes(found["memory"]),
    }
    if "instability" in found:
        share = found["instability"]
        rows["blocked"] = f"{share['fraction']:.2%} of {share['n_nodes']:,} nodes would rather merge with another"
    width = max(map(len, rows))
    return "\n".join(f"{name:{width}}  {value}" for name, value in rows.items() if value)


def _window(limits: dict[str, Any]) -> str:
    last = [] if limits["last"] is None else [f"the last {counted(limits['last'], 'point')}"]
    age = [] if limits["max_age"] is None else [f"none that came more than {limits['max_age']:,g} ago"]
    return ", ".join(last + age)


def _version(path: Path) -> int:
    if is_durable(path):
        return store_version(path) or STORE_VERSION  # that of a new tree may still be in SQLite's log
    with np.load(path, allow_pickle=False) as archive:
        return int(json.loads(archive["header"].tobytes())["version"])


def _size(path: Path) -> int:
    """With the log beside it, where there is one."""
    log = Path(f"{path}-wal")
    return path.stat().st_size + (log.stat().st_size if log.exists() else 0)


def _bytes(number: int) -> str:
    size = float(number)
    for unit in ("bytes", "KB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            return f"{size:,.0f} {unit}" if unit == "bytes" else f"{size:,.1f} {unit}"
        size /= 1000
    raise AssertionError
