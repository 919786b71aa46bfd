"""`follow`: start to follow a table of a database."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack, suppress
from typing import Any

import sqlalchemy as sa

from evertree.durable import open as open_durable
from evertree.errors import DatabaseError
from evertree.hierarchy import Hierarchy
from evertree.input.arrays import as_count, as_seconds
from evertree.sql.database import FollowedDatabase
from evertree.sql.follow_options import FollowOptions, as_columns, as_cuts, as_float_type
from evertree.sql.follower import Follower
from evertree.sql.output_tables import OutputTables
from evertree.sql.source_table import SourceTable
from evertree.tree.scheme import Scheme


def follow(
    url: str | os.PathLike[str] | sa.URL | sa.Engine,
    table: str,
    key: str,
    columns: Collection[str] | None = None,
    vector: str | None = None,
    version: str | None = None,
    *,
    n_clusters: int | Collection[int] | None = 10,
    height: float | Collection[float] | None = (),
    min_cluster_size: int | None = None,
    method: str | None = None,
    scores: str | None = None,
    linkage: str = "ward",
    metric: str | Callable[..., Any] = "euclidean",
    metric_params: Mapping[str, Any] | None = None,
    goal: str = "stable",
    search_width: int | str | None = "auto",
    dtype: str | None = None,
    store: str | os.PathLike[str] | None = None,
    schema: str | None = None,
    prefix: str | None = None,
    reset: bool = False,
    seconds: float | None = 0.1,
    chunk: int = 50_000,
) -> Follower:
    """Cluster the rows of a table, and keep the clusters up to date in the same database.

    The table is read once, in chunks. After that, each `Follower.poll` finds the rows that are new, changed or gone,
    updates the tree and writes the clusters, all in one transaction.

    Parameters
    ----------
    url : str, path, sqlalchemy.URL or sqlalchemy.Engine
        Of an SQLite file, or a PostgreSQL or DuckDB database: ``"sqlite:///file.db"`` or just ``"file.db"``,
        ``"postgresql://user:password@host/name"``, ``"duckdb:///file.duckdb"``. Passwords are never shown.
    table : str
        A table or a view.
    key : str
        A column with a unique value for each row, such as the primary key. Rows where it is NULL are ignored.
    columns : list of str, optional
        The columns that make a point, one number each. With a function as the metric, points are the values of a
        single column, or tuples of the values of several.
    vector : str, optional
        Instead of `columns`: one column with all the numbers of a row: an array, a text such as ``[1,2,3]`` (JSON,
        pgvector), or bytes, which need a `dtype`.
    version : str, optional
        A column that grows whenever a row is written, such as a counter or a time, with an index: polls read only the
        rows from the last version on. Without it, every poll reads the whole table and compares.
    n_clusters, height : int and float, or collections of them
        The cuts, as for `Hierarchy.cuts`. There are at most as many clusters as rows.
    min_cluster_size : int, optional
        For all cuts, as for `Hierarchy.cut`; alone, with ``n_clusters=None``, it finds clusters without a number.
        Where there are fewer clusters of that size than `n_clusters`, these are the clusters.
    method : {"eom", "leaf"}, optional
        With `min_cluster_size` alone, as for `Hierarchy.cut`: ``"eom"`` by default. Tables that release 0.1 wrote go on
        with ``"leaf"``, and with nothing else.
    scores : {"jump", "displacement"}, optional
        Also write an anomaly score of each row, by this measure of `Hierarchy.anomaly_scores`.
    linkage, metric, metric_params, goal, search_width
        As for `Hierarchy`.
    dtype : {"float32", "float64"}, optional
        The type of the numbers in the tree, and of bytes. By default float32 if all columns are, and float64
        otherwise.
    store : str or path, optional
        Keep the tree in a file, as `evertree.open` does: then the next start does not insert all rows again. Without
        it, the tree is built from the table; the ids of clusters persist either way.
    schema : str, optional
        The schema of the table, and of the tables that are written.
    prefix : str, optional
        The prefix of the names of the tables that are written; by default ``evertree_{table}_``.
    reset : bool
        Drop these tables, and start again without them.
    seconds : float, optional
        How long to refine the tree in each poll, including the first; None for until the goal is reached.
    chunk : int
        The number of rows to read at a time.

    Returns
    -------
    follower : Follower
        See `Follower.poll` and `Follower.run`.

    Notes
    -----
    Three tables are written:

    - ``{prefix}assignment``: a row for each key, with the name and type that it has in the table, and a column for each
      cut, ``n_clusters_10``, ``height_2_5`` or ``min_cluster_size_5``, with the id of its cluster; -1 is noise. Ids
      persist: a cluster keeps its id while it lives, even over restarts, and no other ever gets it. With `scores`,
      there is a column ``score``, as of the poll in which the row was inserted or last changed.
    - ``{prefix}events``: a row for each cluster that was ``born``, ``died``, ``split`` or ``merged``, and for each key
      that ``moved`` by itself: ``tick``, ``at`` (UTC), ``cut``, ``event``; of clusters ``cluster``, ``size_before``,
      ``size_after`` and ``others`` (JSON), of keys ``key``, ``from_cluster`` and ``to_cluster``.
    - ``{prefix}state``: one row with what the last poll has reached, such as ``last_version``.

    Rows with a value that is missing, not finite or not a number are left out, with a warning in the log
    (``evertree.sql``).

    One follower at a time writes the tables: a new one takes over, and the previous one gets a `ReplacedError`.

    Versions must grow from commit to commit. With a time or a sequence, a slow transaction may commit rows with a
    version that has passed. If the number of rows has changed, new rows are found nevertheless; for changed ones, and
    for one that came when another left, use ``poll(full=True)`` now and then, or ``run(full_every=...)``.

    With SQLite, other writers wait during a poll. Give them a timeout of some seconds, and more for the first poll.

    Examples
    --------
    >>> import sqlite3
    >>> db = sqlite3.connect("items.db")
    >>> with db:
    ...     _ = db.execute("CREATE TABLE items (id TEXT PRIMARY KEY, x REAL, y REAL)")
    ...     _ = db.executemany("INSERT INTO items VALUES (?, ?, ?)", [("a", 0, 0), ("b", 0, 1), ("c", 9, 9)])
    >>> follower = et.follow("items.db", "items", key="id", columns=["x", "y"], n_clusters=2)
    >>> db.execute("SELECT id, x, n_clusters_2 FROM items JOIN evertree_items_assignment USING (id)").fetchall()
    [('a', 0.0, 0), ('b', 0.0, 0), ('c', 9.0, 1)]

    The table changes:

    >>> with db:
    ...     _ = db.execute("INSERT INTO items VALUES ('d', 9, 8)")
    ...     _ = db.execute("UPDATE items SET x = 9, y = 7 WHERE id = 'b'")
    >>> tick = follower.poll()
    >>> tick.inserted, tick.updated, tick.moved
    (1, 1, 1)
    >>> db.execute("SELECT event, key, from_cluster, to_cluster FROM evertree_items_events WHERE tick = 2").fetchall()
    [('moved', 'b', 0, 1)]
    >>> follower.close()
    >>> db.close()
    """
    options = FollowOptions(
        table=table,
        key=key,
        columns=as_columns(columns),
        vector=vector,
        version=version,
        cuts=as_cuts(n_clusters, height, min_cluster_size, method),
        scores=scores,
        scheme=Scheme(linkage, metric, metric_params),
        dtype=as_float_type(dtype),
        schema=schema,
        prefix=f"evertree_{table}_" if prefix is None else prefix,
        seconds=as_seconds(seconds),
        chunk=as_count("chunk", chunk),
    )
    names = None if callable(metric) else options.columns or None
    how: dict[str, Any] = {"goal": goal, "search_width": search_width, "column_names": names}
    h = Hierarchy(linkage, metric, metric_params=metric_params, **how)
    database = FollowedDatabase(url)
    with ExitStack() as on_failure:
        on_failure.callback(database.close)
        if store is not None:
            store_options = {"metric_params": h.metric_params, **how}
            h = on_failure.enter_context(open_durable(store, h.linkage, h.metric, **store_options))
        source, output, previous = database.call(_prepare, database, options, reset)
        if previous is not None:
            on_failure.callback(_give_back, database, output, previous)
        follower = Follower(database, options, source, output, h)
        follower.poll()
        on_failure.pop_all()
    return follower


def _prepare(
    database: FollowedDatabase, options: FollowOptions, reset: bool
) -> tuple[SourceTable, OutputTables, str | None]:
    """Inspect the user's table, and create ours or take them over from another follower, whose token is returned."""
    # Not a snapshot: it waits for the current poll of the other follower.
    with database.transaction(is_snapshot=False) as connection:
        source = SourceTable(database, options, database.column_types(connection, options.table, options.schema))
        output = OutputTables(database, options, source)
        return source, output, output.prepare(connection, reset)


def _give_back(database: FollowedDatabase, output: OutputTables, previous: str) -> None:
    """Let the previous follower continue, if the database can be reached."""

    def give_back() -> None:
        with database.transaction(is_snapshot=False) as connection:
            output.give_back(connection, previous)

    with suppress(DatabaseError):  # the error that made the start fail matters more
        database.call(give_back)
