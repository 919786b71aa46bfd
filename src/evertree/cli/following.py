"""``evertree follow``: the rows of a table in a database, and clusters that follow them."""

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
from evertree.cli.cluster import Scheme
from evertree.cli.examples import examples
from evertree.cli.exits import INTERRUPTED, complain
from evertree.cli.output import Voice, check_targets, counted
from evertree.cli.tables import split_names

if TYPE_CHECKING:
    from evertree.sql import Tick


@examples(
    (
        "Follow a table of an SQLite file, and look every five seconds",
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
    key: Annotated[str, typer.Option(metavar="COLUMN", help="The column that tells rows apart.")],
    url: Annotated[
        str | None,
        typer.Argument(
            metavar="URL",
            envvar="EVERTREE_URL",
            show_default=False,
            help="The database: a URL such as postgresql://user@host/name or duckdb:///file, or an SQLite file.",
        ),
    ] = None,
    columns: Annotated[
        str | None, typer.Option(metavar="A,B,C", help="The columns that make a point, a number each.")
    ] = None,
    vector: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Or the one that has all numbers: an array, or text or bytes.")
    ] = None,
    version: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="One that grows whenever a row is written: then only new rows are read."),
    ] = None,
    url_env: Annotated[
        str | None, typer.Option(metavar="NAME", help="The environment variable that has the URL.")
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Look at the table once, and end.")] = False,
    interval: Annotated[float, typer.Option(metavar="SECONDS", min=0, help="Seconds from one look to the next.")] = 5.0,
    listen: Annotated[
        str | None, typer.Option(metavar="CHANNEL", help="PostgreSQL: look at once after a NOTIFY on this channel.")
    ] = None,
    full_every: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", min=0, help="How often to compare all rows, where there is a --version."),
    ] = None,
    seconds: Annotated[
        float, typer.Option(metavar="SECONDS", min=0, help="How long to refine the tree after each look.")
    ] = 0.1,
    store: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Keep the tree in this file: the next start is faster.")
    ] = None,
    schema: Annotated[str | None, typer.Option(help="The schema of the table, and of those that are written.")] = None,
    dtype: Annotated[
        str | None, typer.Option(metavar="TYPE", help="float32 or float64: what the bytes of a --vector are.")
    ] = None,
    prefix: Annotated[
        str | None, typer.Option(help="How the names of the tables begin that are written; evertree_TABLE_ by default.")
    ] = None,
    reset: Annotated[bool, typer.Option("--reset", help="Drop the tables that are written, and begin anew.")] = False,
    n_clusters: options.NClusters = None,
    height: options.Heights = None,
    min_cluster_size: options.MinClusterSize = None,
    scores: Annotated[
        options.MeasureName | None,
        typer.Option(
            metavar="NAME",
            help="Write how far a row stands apart when it comes or changes, too: jump or displacement.",
        ),
    ] = None,
    linkage: options.Linkage = None,
    metric: options.Metric = None,
    metric_params: options.MetricParams = None,
    goal: options.Goal = None,
    search_width: options.SearchWidth = None,
    as_json: options.Json = False,
) -> None:
    """Cluster the rows of a table, and follow its changes.

    The tables evertree_TABLE_assignment and evertree_TABLE_events have the cluster of each key, with ids that last, and
    what became of clusters. Without cuts there are 10 clusters. Ctrl-C ends it after the look that is under way.
    """
    from evertree.sql import follow as follow_table

    place = _url(url, url_env)
    if (columns is None) == (vector is None):
        raise typer.BadParameter("give either --columns or --vector", param_hint="--columns")
    check_targets({"--store": (store, ())})
    scheme = Scheme(linkage, metric, options.params_of(metric_params), goal, search_width)
    is_default = not (n_clusters or height or min_cluster_size)
    voice = _Ticks(as_json)
    stop = threading.Event()
    with _logged(), _until_terminated(stop):
        follower = follow_table(
            place,
            table,
            key,
            None if columns is None else split_names(columns),
            vector,
            version,
            n_clusters=10 if is_default else n_clusters or None,
            height=height or (),
            min_cluster_size=min_cluster_size,
            scores=None if scores is None else str(scores),
            store=store,
            schema=schema,
            dtype=dtype,
            prefix=prefix,
            reset=reset,
            seconds=seconds,
            **scheme.given(),
        )
        with follower:
            assert follower.last is not None
            voice.started(follower.last, len(follower.hierarchy))
            if once:
                return
            follower.run(interval, listen, lambda tick: voice.tick(tick, len(follower.hierarchy)), stop, full_every)
    if not stop.is_set():
        raise typer.Exit(INTERRUPTED)


def _url(url: str | None, variable: str | None) -> str:
    """Where the database is. It may hold a password, so no text ever shows it."""
    if variable is not None:
        url = os.environ.get(variable)
        if not url:
            raise typer.BadParameter(f"the environment variable {variable} is not set", param_hint="--url-env")
    if not url:
        raise typer.BadParameter("name a database, or give --url-env", param_hint="URL")
    return url


class _Ticks:
    """What is said of each look: a line of text if something has changed, or a line of JSON in any case."""

    def __init__(self, as_json: bool) -> None:
        self._voice = Voice(as_json)

    def started(self, tick: Tick, n_points: int) -> None:
        """The first look, of which something is said in any case."""
        self._voice.say(_line(tick, n_points))
        self._voice.answer({"started": True, **_numbers(tick, n_points)})

    def tick(self, tick: Tick, n_points: int) -> None:
        if any(_changes(tick).values()):
            self._voice.say(_line(tick, n_points))
        self._voice.answer(_numbers(tick, n_points))


def _changes(tick: Tick) -> dict[str, int]:
    names = ("inserted", "updated", "removed", "skipped", "events", "moved")
    return {name: getattr(tick, name) for name in names}


def _line(tick: Tick, n_points: int) -> str:
    said = ", ".join(f"{count:,} {name}" for name, count in _changes(tick).items() if count)
    return f"{time.strftime('%H:%M:%S')}  {said or 'nothing new'}; {counted(n_points, 'point')}"


def _numbers(tick: Tick, n_points: int) -> dict[str, Any]:
    numbers = {name: getattr(tick, name) for name in ("assigned", "seconds", "seconds_clustering")}
    return {**_changes(tick), **numbers, "points": n_points, "quality": tick.report.quality}


class _Complaints(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        complain(record.getMessage())


@contextmanager
def _logged() -> Iterator[None]:
    """What the follower logs, on standard error."""
    logger, handler = logging.getLogger("evertree.sql"), _Complaints()
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


@contextmanager
def _until_terminated(stop: threading.Event) -> Iterator[None]:
    """Let SIGTERM, as service managers send it, end the loop in order."""
    if threading.current_thread() is not threading.main_thread():  # others get no signals
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda *_: stop.set())
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
