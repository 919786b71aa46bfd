"""What the tests of `follow` share: a table in each kind of database, and a model of what must be written beside it."""

from __future__ import annotations

import json
import math
from collections import Counter

import numpy as np
import pytest
import sqlalchemy as sa
from sqlalchemy.pool import NullPool

import evertree as et
import postgres
from evertree.errors import DatabaseError
from evertree.sql import Follower, follow

DATABASES = ["sqlite", "postgresql", "duckdb"]

#: The type of a vector in each.
ARRAYS = {"sqlite": "TEXT", "postgresql": "float8[]", "duckdb": "DOUBLE[]"}


class Source:
    """A database with a table ``items`` (id, x, y, version) that tests write to and read from, as its users would."""

    def __init__(self, kind: str, folder, columns: str = "id INTEGER PRIMARY KEY, x FLOAT8, y FLOAT8, version INTEGER"):
        self.kind = kind
        self.url = {
            "sqlite": lambda: f"sqlite:///{folder / 'items.db'}",
            "duckdb": lambda: f"duckdb:///{folder / 'items.duckdb'}",
            "postgresql": lambda: postgres.shared_server().new_database(),
        }[kind]()
        self.engine = sa.create_engine(self.url, poolclass=NullPool)
        if columns:
            self.execute(f"CREATE TABLE items ({columns})")

    def execute(self, statement: str, rows=None) -> list:
        with self.engine.begin() as connection:
            result = connection.execute(sa.text(statement), rows)
            return [tuple(row) for row in result] if result.returns_rows else []

    def insert(self, rows) -> None:
        """Rows of (id, x, y), or of (id, x, y, version)."""
        values = [dict(zip("ixyv", (*row, 0)[:4], strict=True)) for row in rows]
        self.execute("INSERT INTO items VALUES (:i, :x, :y, :v)", values)

    def follow(self, **options) -> Follower:
        options = {"key": "id", "columns": ["x", "y"], "n_clusters": 3, "seconds": 1.0} | options
        return follow(self.url, options.pop("table", "items"), **options)

    def rows(self, table: str, prefix: str = "evertree_items_") -> list:
        """All rows of one of the tables that a follower writes."""
        return self.execute(f'SELECT * FROM "{prefix}{table}"')

    def assignment(self, *cuts: str) -> dict:
        """The labels of each key, at one cut or several."""
        columns = ", ".join(cuts or ["n_clusters_3"])
        rows = self.execute(f"SELECT id, {columns} FROM evertree_items_assignment")
        return {key: labels[0] if len(labels) == 1 else labels for key, *labels in rows}

    def events(self, tick: int | None = None) -> list[dict]:
        names = ["id", "tick", "cut", "event", "cluster", "others", "size_before", "size_after"]
        names += ["key", "from_cluster", "to_cluster"]
        columns = ", ".join(f'"{name}"' for name in names)
        rows = self.execute(f"SELECT {columns} FROM evertree_items_events ORDER BY id")
        events = [dict(zip(names, row, strict=True)) for row in rows]
        return [event for event in events if tick in (None, event["tick"])]

    def state(self) -> dict:
        names = ["tick", "last_version", "next_ids", "next_event", "follower"]
        row = self.execute(f"SELECT {', '.join(names)} FROM evertree_items_state")[0]
        state = dict(zip(names, row, strict=True))
        return {**state, "next_ids": json.loads(state["next_ids"])}


def partitions(h: et.Hierarchy) -> dict:
    """The cuts that `Model` follows."""
    k = min(3, len(h))
    return {
        "n_clusters_3": h.cut(n_clusters=k) if k else [],
        "height_1_5": h.cut(height=1.5) if k else [],
    }


class Model:
    """What a follower must have written, from what the tables had before and what the tree is now."""

    options: dict = {"n_clusters": 3, "height": 1.5, "scores": "jump"}  # noqa: RUF012

    def __init__(self, source: Source) -> None:
        self.source = source
        self.names = ["n_clusters_3", "height_1_5"]
        self.before = {name: et.Partition.of([], []) for name in self.names}
        self.n_events = 0
        self.rows: dict = {}
        self.scores: dict = {}

    def check(self, follower: Follower) -> None:
        """After a poll: compare everything with everything."""
        h = follower.hierarchy
        table = self.source.execute("SELECT id, x, y FROM items")
        usable = {
            key: (x, y) for key, x, y in table if None not in (key, x, y) and math.isfinite(x) and math.isfinite(y)
        }
        assert dict(zip(h.keys(), map(tuple, h.points().tolist() if len(h) else []), strict=True)) == usable
        written, state = self.source.assignment(*self.names), self.source.state()
        assert written.keys() == usable.keys()
        events = self.source.events()
        assert [event["id"] for event in events] == list(range(state["next_event"]))
        for i, name in enumerate(self.names):
            now = et.Partition.of(h.keys(), partitions(h)[name], follow=self.before[name])
            assert dict(zip(now.keys, now.labels.tolist(), strict=True)) == {
                key: row[i] for key, row in written.items()
            }
            assert state["next_ids"][name] == now.next_id
            new = [event for event in events[self.n_events :] if event["cut"] == name]
            assert {event["tick"] for event in new} <= {state["tick"]}
            check_events(new, self.before[name], now)
            self.before[name] = now
        self.n_events = len(events)
        self.check_scores(h, usable)

    def check_scores(self, h: et.Hierarchy, rows: dict) -> None:
        """A row that has come or changed has its score of now; others may have that of before."""
        written = self.source.assignment("score")
        now = dict(zip(h.keys(), h.anomaly_scores().tolist() if len(h) else [], strict=True))
        assert written.keys() == now.keys()
        for key, score in written.items():
            before = [self.scores[key]] if self.rows.get(key) == rows[key] else []
            assert score in [now[key], *before]
        self.rows, self.scores = rows, written


def check_events(events: list[dict], before: et.Partition, now: et.Partition) -> None:
    """Compare the events of one cut with what has become of its clusters and keys."""
    of_clusters = [event for event in events if event["event"] != "moved"]
    found = {(event["event"], event["cluster"]): event for event in of_clusters}
    rows = now.changes(before)
    rows = rows[rows["event"].isin(["born", "died", "split", "merged"])]
    pairs = [(event["event"], event["cluster"]) for event in of_clusters]
    assert Counter(pairs) == Counter(zip(rows["event"], rows["id"], strict=True))
    for row in rows.itertuples():
        event = found[row.event, row.id]
        assert (event["size_before"], event["size_after"]) == (row.before, row.after)
        assert sorted(json.loads(event["others"])) == sorted(row.others)
    explained = set()
    for event in of_clusters:
        for other in json.loads(event["others"]):
            explained |= {(event["cluster"], other)} if event["event"] == "split" else set()
            explained |= {(other, event["cluster"])} if event["event"] == "merged" else set()
    moves = {
        key: (before.cluster_of(key), now.cluster_of(key))
        for key in now.keys
        if before.has_key(key) and before.cluster_of(key) != now.cluster_of(key)
    }
    moved = {event["key"]: (event["from_cluster"], event["to_cluster"]) for event in events if event["key"] is not None}
    assert moved == {key: move for key, move in moves.items() if move not in explained}


def blob_rows(rng: np.random.Generator, keys, spread: float = 0.3) -> list[tuple]:
    """Rows in three clusters."""
    return [(int(key), *(10.0 * rng.integers(3) + spread * rng.normal(size=2)).tolist()) for key in keys]


def fail_once(follower, monkeypatch):
    """A poll that fails when it has written nearly everything."""

    def fail(*_):
        raise sa.exc.OperationalError("UPDATE", {}, Exception("the disk is full"))

    with monkeypatch.context() as patch:
        patch.setattr(follower._output, "write_state", fail)
        patch.setattr(follower._source, "last_version", lambda _: -1)  # so that something is written
        with pytest.raises(DatabaseError, match="the disk is full"):
            follower.poll()
