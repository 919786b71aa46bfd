"""`follow`: begin to follow a table of a database."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import Any

import sqlalchemy as sa

from evertree.errors import DatabaseError, ParameterError, listed
from evertree.hierarchy import Hierarchy
from evertree.input.arrays import as_count, as_seconds
from evertree.sql.database import Database
from evertree.sql.follower import Follower, close_all
from evertree.sql.rows import Decoder
from evertree.sql.settings import Settings, checked_settings
from evertree.sql.tables import Tables


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
    scores: str | None = None,
    linkage: str = "ward",
    metric: str | Callable[..., Any] = "euclidean",
    metric_params: Mapping[str, Any] | None = None,
    goal: str = "stable",
    search_width: int | None = 4,
    dtype: str | None = None,
    store: str | os.PathLike[str] | None = None,
    schema: str | None = None,
    prefix: str | None = None,
    reset: bool = False,
    seconds: float | None = 0.1,
    chunk: int = 50_000,
) -> Follower:
    """Cluster the rows of a table, and keep the clusters up to date in the same database.

    The table is read once, in chunks. After that each `Follower.poll` looks for rows that are new, changed or gone, and
    writes what that means for the clusters, all in one transaction.

    Parameters
    ----------
    url : str, path, sqlalchemy.URL or sqlalchemy.Engine
        Of an SQLite file, or a PostgreSQL or DuckDB database: ``"sqlite:///file.db"`` or just ``"file.db"``,
        ``"postgresql://user:password@host/name"``, ``"duckdb:///file.duckdb"``. Passwords appear nowhere again.
    table : str
        A table or a view.
    key : str
        The column that tells rows apart: unique, and best the primary key. Rows without one are left out.
    columns : list of str, optional
        The columns that make a point, one number each. With a function as the metric, their values as they are: that
        of a single column, tuples of several.
    vector : str, optional
        Instead of `columns`: one column that has all numbers of a row. An array, a text such as ``[1,2,3]`` (JSON,
        pgvector), or bytes, for which `dtype` must be given.
    version : str, optional
        A column that grows whenever a row is written, such as a counter or a time, with an index: only rows from the
        last version on are read then. Without it, every poll reads the whole table and compares.
    n_clusters, height : int and float, or collections of them
        The cuts, as for `Hierarchy.cuts`. Clusters are at most as many as rows.
    min_cluster_size : int, optional
        For all cuts, as for `Hierarchy.cut`; alone, with ``n_clusters=None``, it is a cut by itself.
    scores : {"jump", "displacement"}, optional
        Write how far each row stands apart, too, by one of the measures of `Hierarchy.score_samples`.
    linkage, metric, metric_params, goal, search_width
        As for `Hierarchy`.
    dtype : {"float32", "float64"}, optional
        How numbers are kept, and what bytes are. By default float32 where all columns are, and float64 otherwise.
    store : str or path, optional
        Keep the tree in a file, as `evertree.open` does: then the next start does not insert all rows again. Without
        it the tree is made from the table; the ids of clusters persist either way.
    schema : str, optional
        Of the table, and of the tables that are written.
    prefix : str, optional
        How the names of the tables that are written begin; by default ``evertree_{table}_``.
    reset : bool
        Drop these tables, and begin anew.
    seconds : float, optional
        How long to refine the tree in each poll, also in the first; None for until the goal is reached.
    chunk : int
        Rows that are read at a time.

    Returns
    -------
    follower : Follower
        See `Follower.poll` and `Follower.run`.

    Notes
    -----
    Three tables are written:

    - ``{prefix}assignment``: a row for each key, in a column that has its name and type, and a column for each cut,
      ``n_clusters_10``, ``height_2_5`` or ``min_cluster_size_5``, with the id of the cluster. -1 is none. Ids persist:
      a cluster keeps its id for as long as it lives, also over restarts, and no other ever gets it. With `scores` there
      is a column ``score``, as of the poll in which the row came or was last changed: later rows do not change it.
    - ``{prefix}events``: a row for each cluster that was ``born``, ``died``, ``split`` or ``merged``, and for each key
      that ``moved`` by itself: ``tick``, ``at`` (UTC), ``cut``, ``event``; of clusters ``cluster``, ``size_before``,
      ``size_after`` and ``others`` (JSON), of keys ``key``, ``from_cluster`` and ``to_cluster``.
    - ``{prefix}state``: one row that says how far this is, such as ``last_version``.

    Rows whose values are missing, not finite or no numbers are left out, and a warning is logged (``evertree.sql``).

    One follower at a time writes the tables: a new one takes over, and the one before gets a `ReplacedError`.

    Versions must grow from commit to commit. With a time or a sequence, a slow transaction may commit rows with a
    version that has passed: new rows are found even so if the number of rows has changed; for changed ones, and for one
    that came when another left, use ``poll(full=True)`` now and then, or ``run(full_every=...)``.

    With SQLite others wait while a poll is under way. Give them a timeout of some seconds, more for the first poll.

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
    settings = checked_settings(
        table,
        schema,
        key,
        columns,
        vector,
        version,
        (n_clusters, height, min_cluster_size),
        scores,
        (linkage, metric, metric_params),
        dtype,
        prefix,
    )
    budget, n_rows = as_seconds(seconds), as_count("chunk", chunk)
    h = Hierarchy(linkage, metric, metric_params=metric_params, goal=goal, search_width=search_width)
    database, token = Database(url), secrets.token_hex(8)
    if store is not None:
        h = _opened(store, h)
    try:
        tables, decoder, before = database.call(_prepare, database, settings, token, reset)
        follower = Follower(database, settings, tables, decoder, h, budget, n_rows, token)
        try:
            follower.poll()
        except BaseException:
            if before is not None:
                with suppress(DatabaseError):  # as far as that is possible
                    database.call(_give_back, database, tables, token, before)
            raise
    except BaseException:
        close_all(database, h)
        raise
    return follower


def _give_back(database: Database, tables: Tables, token: str, before: str) -> None:
    """Let the follower that wrote the tables before go on."""
    with database.transaction(is_snapshot=False) as connection:
        tables.give_back(connection, token, before)


def _prepare(database: Database, settings: Settings, token: str, reset: bool) -> tuple[Tables, Decoder, str | None]:
    """Look at the table, and make those that are written, or take them over from a follower, whose token it returns."""
    # Not one snapshot: it waits for the poll of another follower that may be under way.
    with database.transaction(is_snapshot=False) as connection:
        types = database.column_types(connection, settings.table, settings.schema)
        if not types:
            where = "" if settings.schema is None else f" in the schema {settings.schema!r}"
            raise ParameterError(
                f"table must be a table or a view of the database; there is no {settings.table!r}{where}"
            )
        asked = {"key": [settings.key], "columns": settings.columns, "vector": [settings.vector]}
        for parameter, names in (*asked.items(), ("version", [settings.version])):
            unknown = [name for name in names if name is not None and name not in types]
            if unknown:
                raise ParameterError(
                    f"{parameter} must be of the table {settings.table!r}, which has {listed(types)}; it has no "
                    f"{listed(unknown)}"
                )
        tables = Tables(database, settings, types)
        before = tables.prepare(connection, token, reset)
    return tables, Decoder(settings, types, tables.is_packed), before


def _opened(store: str | os.PathLike[str], like: Hierarchy) -> Hierarchy:
    """The hierarchy in a file, or a new one, with the options of another."""
    from evertree.durable import open as open_store

    return open_store(
        store,
        like.linkage,
        like.metric,
        metric_params=like.metric_params,
        goal=like.goal,
        search_width=like.search_width,
    )
