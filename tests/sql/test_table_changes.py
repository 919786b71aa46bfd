"""Following a table through what happens to tables: versions that go back, types that change, starts that fail."""

from __future__ import annotations

import sqlite3

import pytest

from evertree.errors import (
    DatabaseError,
    DimensionError,
    NotNumericError,
    ParameterError,
    ReplacedError,
    TransientDatabaseError,
)
from followed import DATABASES, Source
from helpers import press_ctrl_c

ROWS = [(key, float(key), 2.0 * key, 100 + key) for key in range(6)]


@pytest.fixture(params=DATABASES)
def source(request, tmp_path):
    made = Source(request.param, tmp_path)
    made.insert(ROWS)
    return made


@pytest.mark.parametrize("shift", [0, 20])
def test_versions_that_go_back(source, shift):
    with source.follow(version="version") as follower:
        source.execute("DELETE FROM items")
        source.insert([(key + shift, x + 7, y, version - 100) for key, x, y, version in ROWS])
        tick = follower.poll()
        assert tick.updated + tick.inserted == 6
        assert sorted(source.assignment()) == [key + shift for key in range(6)]
        assert dict(zip(follower.hierarchy.keys(), follower.hierarchy.points()[:, 0], strict=True)) == {
            key + shift: x + 7 for key, x, *_ in ROWS
        }


@pytest.mark.parametrize("kind", DATABASES)
def test_versions_of_single_precision(kind, tmp_path):
    source = Source(kind, tmp_path, "id INTEGER PRIMARY KEY, x FLOAT8, y FLOAT8, version REAL")
    source.insert([(1, 1.0, 1.0, 0.7), (2, 2.0, 2.0, 0.7), (3, 9.0, 9.0, 0.7)])
    with source.follow(version="version") as follower:
        source.execute("UPDATE items SET x = 5 WHERE id = 2")
        assert follower.poll().updated == 1


def test_vectors_that_all_change_their_length(tmp_path):
    source = Source("postgresql", tmp_path, "id INTEGER PRIMARY KEY, v float8[]")
    source.execute("INSERT INTO items SELECT i, ARRAY[i, 2 * i] FROM generate_series(1, 6) i")
    with source.follow(columns=None, vector="v") as follower:
        source.execute("UPDATE items SET v = v || 3.0::float8")
        with pytest.raises(DimensionError, match=r"2 numbers.*'v' has 3 now: start again with reset=True"):
            follower.poll()
        assert len(source.assignment()) == 6
    with source.follow(columns=None, vector="v", reset=True) as follower:
        assert len(follower.hierarchy) == 6


def test_keys_of_a_strict_table_stay_what_they_are(tmp_path):
    source = Source("sqlite", tmp_path, "id ANY PRIMARY KEY, x REAL, y REAL, version INT")
    source.execute("DROP TABLE items")
    source.execute("CREATE TABLE items (id ANY PRIMARY KEY, x REAL, y REAL, version INT) STRICT")
    source.insert([("12", 1.0, 1.0), ("012", 2.0, 2.0), ("x", 9.0, 9.0), (12, 5.0, 5.0)])
    with source.follow():
        assert set(source.assignment()) == {"12", "012", "x", 12}


def test_columns_that_are_computed(tmp_path):
    source = Source("sqlite", tmp_path, "id INTEGER PRIMARY KEY, x REAL, y REAL AS (2 * x)")
    source.execute("INSERT INTO items (id, x) VALUES (1, 1), (2, 2), (3, 9)")
    with source.follow() as follower:
        assert follower.hierarchy.points()[2].tolist() == [9.0, 18.0]


def test_per_cent_in_names(tmp_path):
    source = Source("postgresql", tmp_path, "")
    source.execute('CREATE TABLE "a%b" ("k%y" INTEGER PRIMARY KEY, x FLOAT8, y FLOAT8, version INTEGER)')
    source.execute('INSERT INTO "a%b" SELECT i, i, i * i, 0 FROM generate_series(1, 6) i')
    with source.follow(table="a%b", key="k%y", version="version") as follower:
        for key in (1, 2):
            source.execute(f'DELETE FROM "a%b" WHERE "k%y" = {key}')
            assert follower.poll().removed == 1


def test_times_of_the_hour_that_comes_twice(tmp_path):
    source = Source("postgresql", tmp_path, "id timestamptz PRIMARY KEY, x FLOAT8, y FLOAT8")
    source.execute("ALTER DATABASE " + source.engine.url.database + " SET TimeZone = 'Europe/Berlin'")
    source.execute("INSERT INTO items VALUES ('2024-10-27 00:30+00', 1, 1), ('2024-10-27 01:30+00', 2, 2)")
    with source.follow() as follower:
        assert len(follower.hierarchy) == 2


def test_a_key_of_another_type_than_before(tmp_path):
    source = Source("postgresql", tmp_path)
    source.insert(ROWS)
    source.follow().close()
    source.execute("ALTER TABLE items ALTER COLUMN id TYPE bigint")
    with pytest.raises(ParameterError, match=r"key must be of the type that it had.*integer.*bigint now"):
        source.follow()
    source.follow(reset=True).close()


def test_a_start_that_failed_leaves_nothing_to_disagree_with(source):
    source.execute("ALTER TABLE items ADD COLUMN name TEXT")
    source.execute("UPDATE items SET name = 'abc'")
    with pytest.raises(NotNumericError, match="'name'"):
        source.follow(columns=["x", "name"])
    with source.follow() as follower:
        assert len(follower.hierarchy) == 6


def test_a_start_that_failed_lets_the_one_before_go_on(source, monkeypatch):
    with source.follow() as follower:
        with monkeypatch.context() as patch:
            patch.setattr("evertree.sql.follower.Follower._poll", lambda *_: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                source.follow()
        source.execute("DELETE FROM items WHERE id = 2")
        assert follower.poll().removed == 1
        with source.follow(), pytest.raises(ReplacedError):
            follower.poll()


@pytest.mark.parametrize("after", range(1, 400, 9))
def test_ctrl_c_in_a_poll_leaves_the_database_to_others(tmp_path, after):
    source = Source("sqlite", tmp_path)
    source.insert(ROWS)
    with source.follow(version="version") as follower:
        source.execute("UPDATE items SET x = 70, version = 200 WHERE id = 3")
        press_ctrl_c(follower.poll, after)
        other = sqlite3.connect(tmp_path / "items.db", timeout=0)
        with other:
            other.execute("UPDATE items SET y = 3 WHERE id = 4")
        other.close()
        follower.poll(full=True)
        assert follower.hierarchy.points()[3:5].tolist() == [[70.0, 6.0], [4.0, 3.0]]
        assert len(source.assignment()) == 6


def test_a_table_that_is_gone_is_no_passing_trouble(source):
    with source.follow() as follower:
        source.execute("DROP TABLE items")
        with pytest.raises(DatabaseError) as caught:
            follower.run(interval=0.01)
        assert not isinstance(caught.value, TransientDatabaseError)


def test_times_with_a_zone_in_duckdb(tmp_path):
    source = Source("duckdb", tmp_path, "id TIMESTAMPTZ PRIMARY KEY, x DOUBLE, y DOUBLE, version TIMESTAMPTZ")
    source.execute("INSERT INTO items VALUES ('2024-10-27 00:30+00', 1, 1, '2024-01-01 00:00+00')")
    with source.follow(version="version") as follower:
        source.execute("INSERT INTO items VALUES ('2024-10-28 00:30+00', 2, 2, '2024-01-02 00:00+00')")
        assert follower.poll().inserted == 1
