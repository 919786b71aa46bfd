"""Progress bars on standard error, where that is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager

from evertree.cli.output import moves_text, quality_text
from evertree.cli.point_table import PointTable
from evertree.errors import counting_rows_from
from evertree.hierarchy import Hierarchy
from evertree.tree.batch import may_be_faster, may_cluster
from evertree.tree.refine import Report

#: Points inserted between two updates of the progress bar.
_CHUNK = 4096


@contextmanager
def progress_bar(title: str, total: float) -> Iterator[Callable[[float, str], None]]:
    """Show a bar; call what this yields with how much is done, and a text."""
    if not sys.stderr.isatty():
        yield lambda done, text: None  # noqa: ARG005
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[text]}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(title, total=total, text="")
        yield lambda done, text: progress.update(task, completed=done, text=text)


def insert_with_bar(h: Hierarchy, points: PointTable, time: float | None = None) -> list[Hashable]:
    """Insert points into an empty tree in memory; return their keys."""
    n = len(points)
    live = h.state.live
    if h.metric == "precomputed" or may_cluster(live, n) or may_be_faster(live, n, points.X.shape[1]):
        return h.insert(points.for_tree(h), keys=points.keys, time=time)
    keys: list[Hashable] = []
    # A large tree is cut to take in as many points as there are in it.
    is_doubled = h.state.live.scheme.has_statistics
    with progress_bar("Inserting", n) as show:
        while len(keys) < n:
            chunk = slice(len(keys), len(keys) + (max(_CHUNK, len(keys)) if is_doubled else _CHUNK))
            some = None if points.keys is None else points.keys[chunk]
            with counting_rows_from(len(keys) + 1):
                keys += h.insert(points.for_tree(h, chunk), keys=some, time=time)
            show(len(keys), f"{len(keys):,} of {n:,} points")
    return keys


def refine_with_bar(
    h: Hierarchy, seconds: float | None, moves: int | None = None, until: str | None = None
) -> Report | None:
    """Refine a tree; None if Ctrl-C ended it, which keeps what was done."""
    with progress_bar("Refining", 1.0) as show:

        def on_progress(report: Report) -> None:
            show(report.quality or 0.0, f"{quality_text(report)}, {moves_text(report)}")

        try:
            return h.refine(seconds, moves=moves, until=until, progress=on_progress)
        except KeyboardInterrupt:
            return None
