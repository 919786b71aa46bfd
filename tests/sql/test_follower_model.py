"""A follower against a model: any changes, on any of the databases, with restarts and failures."""

from __future__ import annotations

import pytest

from conftest import COMPILED
from followed import DATABASES, Model, Source, blob_rows, fail_once

N_STEPS = 16 if COMPILED else 6


class Writer:
    """Makes random changes to the table of a source, with versions that grow."""

    def __init__(self, source: Source, rng) -> None:
        self.source, self.rng = source, rng
        self.next_key, self.version = 0, 0

    def insert(self, count: int) -> None:
        keys = range(self.next_key, self.next_key + count)
        self.next_key += count
        self.version += 1
        rows = [(*row, self.version) for row in blob_rows(self.rng, keys)]
        if count > 3:  # rows that are no points
            rows[0] = (rows[0][0], None, 1.0, self.version)
            rows[1] = (rows[1][0], float("inf"), 1.0, self.version)
        self.source.insert(rows)

    def change(self) -> None:
        live = [key for (key,) in self.source.execute("SELECT id FROM items ORDER BY id")]
        gone = [key for key in live if self.rng.random() < 0.1]
        changed = [key for key in live if key not in gone and self.rng.random() < 0.2]
        self.version += 1
        values = [
            {"i": key, "x": None if self.rng.random() < 0.1 else x, "y": y, "v": self.version}
            for key, x, y in blob_rows(self.rng, changed, spread=1.0)
        ]
        if values:
            self.source.execute("UPDATE items SET x = :x, y = :y, version = :v WHERE id = :i", values)
        if gone:
            self.source.execute("DELETE FROM items WHERE id = :i", [{"i": key} for key in gone])
            self.source.insert([(gone[0], 5.0, 5.0, self.version)])  # is back, elsewhere
        if self.rng.random() < 0.5:
            self.insert(int(self.rng.integers(1, 8)))
        if self.rng.random() < 0.1:
            self.source.execute("DELETE FROM items")


@pytest.mark.parametrize("version", [None, "version"])
@pytest.mark.parametrize("kind", DATABASES)
def test_any_changes_on_any_database(kind, version, tmp_path, rng, monkeypatch):
    source = Source(kind, tmp_path)
    writer, model = Writer(source, rng), Model(source)
    writer.insert(40)
    options = {"version": version, "chunk": 7, "seconds": None, **model.options}
    follower = source.follow(**options)
    model.check(follower)
    for _ in range(N_STEPS // 2 if kind == "duckdb" else N_STEPS):  # which takes long to open and close a file
        for _ in range(int(rng.integers(1, 3))):
            writer.change()
        fate = rng.random()
        if fate < 0.2:
            follower.close()
            follower = source.follow(**options)
        elif fate < 0.4:
            fail_once(follower, monkeypatch)
            if rng.random() < 0.5:
                writer.change()
            follower.poll()
        else:
            follower.poll()
        model.check(follower)
    tick = source.state()["tick"]
    follower.poll()
    assert source.state()["tick"] == tick  # nothing has changed, and nothing is written
    follower.close()


@pytest.mark.parametrize("version", [None, "version"])
def test_a_tree_in_a_file_is_not_made_again(version, tmp_path, rng):
    source = Source("sqlite", tmp_path)
    writer, model = Writer(source, rng), Model(source)
    writer.insert(40)
    options = {"version": version, "store": tmp_path / "tree.evertree", "seconds": None, **model.options}
    for _ in range(3):
        with source.follow(**options) as follower:
            model.check(follower)
            writer.change()
            follower.poll()
            model.check(follower)
            n_points = len(follower.hierarchy)
        with source.follow(**options) as follower:
            tick = follower.poll()
            assert len(follower.hierarchy) == n_points
            assert (tick.inserted, tick.updated, tick.removed) == (0, 0, 0)
            model.check(follower)
        writer.change()
