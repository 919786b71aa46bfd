"""``evertree follow``: clusters that follow the rows of a table in a database."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evertree.cli import options
from evertree.cli.examples import examples
from evertree.cli.exits import INTERRUPTED, print_error
from evertree.cli.input_source import split_names
from evertree.cli.option_groups import ClusteringOptions
from evertree.cli.output import Output, plural
from evertree.cli.output_files import check_output_files

if TYPE_CHECKING:
    from evertree.sql import Tick

#: What a look can change, as `Tick` names it.
_CHANGES = ("inserted", "updated", "removed", "skipped", "events", "moved")


@examples(
    (
        "Follow a table in an SQLite file, with a look every five seconds",
        "evertree follow items.db --table items --key id --columns x,y",
    ),
    (
        "Look once, as a cron job would",
        "evertree follow items.db --table items --key id --columns x,y --once",
    ),
    (
        "With scores for alarms",
        "evertree follow items.db --table items --key id --vector v --scores jump",
    ),
    (
        "Without a password on the command line, a JSON line for each look",
        "evertree follow --url-env URL --table items --key id --vector v --json",
    ),
)
def follow(
    table: Annotated[str, typer.Option(help="The table, or a view.")],
    key: Annotated[str, typer.Option(metavar="COLUMN", help="The column that identifies a row.")],
    url: Annotated[
        str | None,
        typer.Argument(
            metavar="URL",
            envvar="EVERTREE_URL",
            show_default=False,
            help="The database: a URL such as postgresql://user@host/name or duckdb:///file, or an SQLite file.",
        ),
    ] = None,
    columns: Annotated[str | None, typer.Option(metavar="A,B,C", help="The columns of a point, a number each.")] = None,
    vector: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Or the column with all numbers: an array, text or bytes.")
    ] = None,
    version: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="A column that grows with every write, so that only new rows are read."),
    ] = None,
    url_env: Annotated[str | None, typer.Option(metavar="NAME", help="The environment variable with the URL.")] = None,
    once: Annotated[bool, typer.Option("--once", help="Look at the table once, and exit.")] = False,
    interval: Annotated[float, typer.Option(metavar="SECONDS", min=0, help="Seconds from one look to the next.")] = 5.0,
    listen: Annotated[
        str | None, typer.Option(metavar="CHANNEL", help="PostgreSQL: look at once after a NOTIFY on this channel.")
    ] = None,
    full_every: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", min=0, help="With --version: how often to compare all rows all the same."),
    ] = None,
    seconds: Annotated[
        float, typer.Option(metavar="SECONDS", min=0, help="How long to refine the tree after each look.")
    ] = 0.1,
    store: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Keep the tree in this file, for a faster start next time.")
    ] = None,
    schema: Annotated[str | None, typer.Option(help="The schema of the table, and of the tables written.")] = None,
    dtype: Annotated[
        str | None, typer.Option(metavar="TYPE", help="float32 or float64: the type of a --vector in bytes.")
    ] = None,
    prefix: Annotated[
        str | None, typer.Option(help="The prefix of the tables written; evertree_TABLE_ by default.")
    ] = None,
    reset: Annotated[bool, typer.Option("--reset", help="Drop the tables written before, and start over.")] = False,
    n_clusters: options.NClusters = None,
    height: options.Heights = None,
    min_cluster_size: options.MinClusterSize = None,
    method: options.Method = None,
    scores: Annotated[
        options.MeasureName | None,
        typer.Option(
            metavar="NAME",
            help="Also write how far a row stands apart when it comes or changes: jump or displacement.",
        ),
    ] = None,
    linkage: options.Linkage = None,
    metric: options.Metric = None,
    metric_params: options.MetricParams = None,
    goal: options.Goal = None,
    search_width: options.SearchWidth = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object for each look instead of text.")] = False,
) -> None:
    """Cluster the rows of a table, and follow its changes.

    The tables evertree_TABLE_assignment and evertree_TABLE_events have the cluster of each key, with ids that last, and
    what became of clusters. Without cuts there are 10 clusters. Ctrl-C ends it when the current look is done.
    """
    from evertree.sql import follow as follow_table

    database = _url(url, url_env)
    if (columns is None) == (vector is None):
        raise typer.BadParameter("give either --columns or --vector", param_hint="--columns")
    check_output_files({"--store": (store, ())})
    clustering = ClusteringOptions(linkage, metric, metric_params, goal, search_width)
    is_default = not (n_clusters or height or min_cluster_size)
    out = Output(as_json)
    stop = threading.Event()
    with _log_to_stderr(), _stop_on_sigterm(stop):
        follower = follow_table(
            database,
            table,
            key,
            None if columns is None else split_names(columns),
            vector,
            version,
            n_clusters=10 if is_default else n_clusters or None,
            height=height or (),
            min_cluster_size=min_cluster_size,
            method=method,
            scores=scores,
            store=store,
            schema=schema,
            dtype=dtype,
            prefix=prefix,
            reset=reset,
            seconds=seconds,
            **clustering.keywords(),
        )

        def report(tick: Tick) -> None:
            if any(getattr(tick, name) for name in _CHANGES):
                out.text(_line(tick, len(follower.hierarchy)))
            out.json(_numbers(tick, len(follower.hierarchy)))

        with follower:
            assert follower.last is not None
            n_points = len(follower.hierarchy)
            out.text(_line(follower.last, n_points))
            out.json({"started": True, **_numbers(follower.last, n_points)})
            if once:
                return
            follower.run(interval, listen, report, stop, full_every)
    if not stop.is_set():
        raise typer.Exit(INTERRUPTED)


def _url(url: str | None, variable: str | None) -> str:
    """The URL of the database. It may hold a password, so no message ever shows it."""
    if variable is not None:
        url = os.environ.get(variable)
        if not url:
            raise typer.BadParameter(f"the environment variable {variable} is not set", param_hint="--url-env")
    if not url:
        raise typer.BadParameter("name a database, or give --url-env", param_hint="URL")
    return url


def _line(tick: Tick, n_points: int) -> str:
    """A look in one line of text."""
    changes = [f"{getattr(tick, name):,} {name}" for name in _CHANGES if getattr(tick, name)]
    return f"{time.strftime('%H:%M:%S')}  {', '.join(changes) or 'nothing new'}; {plural(n_points, 'point')}"


def _numbers(tick: Tick, n_points: int) -> dict[str, Any]:
    """A look for programs."""
    numbers = {name: getattr(tick, name) for name in (*_CHANGES, "assigned", "seconds", "seconds_clustering")}
    return {**numbers, "points": n_points, "quality": tick.report.quality}


class _ErrorHandler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        print_error(record.getMessage())


@contextmanager
def _log_to_stderr() -> Iterator[None]:
    """Print what the follower logs on standard error."""
    logger, handler = logging.getLogger("evertree.sql"), _ErrorHandler()
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


@contextmanager
def _stop_on_sigterm(stop: threading.Event) -> Iterator[None]:
    """End the loop cleanly on SIGTERM, which service managers send."""
    if threading.current_thread() is not threading.main_thread():  # other threads get no signals
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda *_: stop.set())
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
