"""Following a table: what may be in it, what is written, and what happens over time."""

from __future__ import annotations

import json
import logging
import uuid
from datetime import datetime, timedelta

import numpy as np
import pytest
import sqlalchemy as sa
from sqlalchemy.pool import StaticPool

import evertree as et
from evertree.errors import DuplicateKeyError, NotNumericError, ParameterError, ReplacedError
from evertree.sql import follow
from followed import ARRAYS, DATABASES, Source

#: Two clusters and a point alone.
POINTS = [(0.0, 0.0), (0.0, 1.0), (9.0, 9.0), (9.0, 8.0), (50.0, 50.0)]
ROWS = [(key, *point) for key, point in enumerate(POINTS)]


@pytest.fixture(params=DATABASES)
def source(request, tmp_path):
    made = Source(request.param, tmp_path)
    made.insert(ROWS)
    return made


@pytest.fixture
def sqlite_source(tmp_path):
    made = Source("sqlite", tmp_path)
    made.insert(ROWS)
    return made


def together(labels: dict) -> set:
    """The clusters as sets of keys."""
    return {frozenset(key for key in labels if labels[key] == label) for label in labels.values()}


def test_what_is_written_at_first(source):
    with source.follow(n_clusters=[3, 2], height=2.5) as follower:
        assert len(follower.hierarchy) == 5
    labels = source.assignment("n_clusters_3", "n_clusters_2", "height_2_5")
    assert [len({row[k] for row in labels.values()}) for k in range(3)] == [3, 2, 3]
    assert together({key: row[0] for key, row in labels.items()}) == {
        frozenset({0, 1}),
        frozenset({2, 3}),
        frozenset({4}),
    }
    events = source.events()
    assert {event["event"] for event in events} == {"born"}
    assert [event["id"] for event in events] == list(range(8))
    assert {event["cut"] for event in events} == {"n_clusters_3", "n_clusters_2", "height_2_5"}


def test_users_join_it_with_their_table(source):
    source.follow().close()
    rows = source.execute(
        "SELECT n_clusters_3, count(*), avg(x) FROM items JOIN evertree_items_assignment USING (id) "
        "GROUP BY n_clusters_3 ORDER BY n_clusters_3"
    )
    assert rows == [(0, 2, 0.0), (1, 2, 9.0), (2, 1, 50.0)]


def test_insert_update_delete(source):
    with source.follow() as follower:
        source.insert([(7, 50.0, 51.0)])
        source.execute("UPDATE items SET x = 9.5, y = 9.5 WHERE id = 0")
        source.execute("DELETE FROM items WHERE id = 2")
        tick = follower.poll()
        assert (tick.inserted, tick.updated, tick.removed, tick.skipped) == (1, 1, 1, 0)
        assert together(source.assignment()) == {frozenset({1}), frozenset({0, 3}), frozenset({4, 7})}
        assert (tick.events, tick.moved, tick.assigned) == (0, 1, 3)
        (moved,) = source.events(tick=2)
        assert (moved["event"], moved["key"], moved["from_cluster"], moved["to_cluster"]) == ("moved", 0, 0, 1)
        assert 0 < tick.seconds_clustering <= tick.seconds
        tick = follower.poll()
        assert (tick.inserted, tick.updated, tick.removed, tick.assigned, tick.events) == (0, 0, 0, 0, 0)


def test_split_and_merged_clusters(source):
    with source.follow(n_clusters=None, height=3.0) as follower:
        source.execute("UPDATE items SET y = 9.0 WHERE id = 1")  # splits {0, 1}
        source.execute("UPDATE items SET x = 9.0, y = 8.5 WHERE id = 4")  # {4} is merged with {2, 3}
        follower.poll()
        events = {event["event"]: event for event in source.events(tick=2)}
        assert events.keys() == {"born", "died", "split", "merged"}
        assert json.loads(events["split"]["others"]) == [events["born"]["cluster"]]
        assert json.loads(events["merged"]["others"]) == [events["died"]["cluster"]]


def test_ids_last_over_restarts_and_are_never_used_again(source):
    source.follow().close()
    before = source.assignment()
    source.execute("DELETE FROM items WHERE id = 4")
    source.follow(n_clusters=3).close()  # the cluster of 4 has died, and one of the others was split
    assert before[4] not in source.assignment().values()
    source.insert([(4, 50.0, 50.0)])
    with source.follow() as follower:
        now = source.assignment()
        assert together(now) == together(before)
        assert now[4] not in before.values()
        assert follower.poll().assigned == 0


@pytest.mark.parametrize("kind", DATABASES)
def test_vectors_in_one_column(kind, tmp_path):
    source = Source(kind, tmp_path, f"id INTEGER PRIMARY KEY, v {ARRAYS[kind]}")
    values = [str(list(point)) if kind == "sqlite" else list(point) for point in POINTS]
    statement = f"INSERT INTO items VALUES (:i, CAST(:v AS {ARRAYS[kind]}))"
    source.execute(statement, [{"i": i, "v": value} for i, value in enumerate(values)])
    with source.follow(columns=None, vector="v") as follower:
        assert follower.hierarchy.points().tolist() == [list(point) for point in POINTS]
        source.execute(statement, [{"i": 5, "v": None}, {"i": 6, "v": values[0]}])
        tick = follower.poll()
        assert (tick.inserted, tick.skipped) == (1, 1)


@pytest.mark.parametrize(
    ("kind", "column", "dtype"),
    [
        ("postgresql", "real[]", "float32"),
        ("postgresql", "float8[]", "float64"),
        ("postgresql", "text", "float64"),  # as pgvector, where it is not installed
        ("duckdb", "FLOAT[2]", "float32"),
        ("duckdb", "DOUBLE[2]", "float64"),
        ("duckdb", "VARCHAR", "float64"),
        ("sqlite", "JSON", "float64"),
    ],
)
def test_numbers_are_kept_as_the_column_has_them(kind, column, dtype, tmp_path):
    source = Source(kind, tmp_path, f"id INTEGER PRIMARY KEY, v {column}")
    is_text = column in ("text", "VARCHAR", "JSON")
    rows = [{"i": i, "v": f"[{x},{y}]" if is_text else [x + 0.1, y]} for i, (x, y) in enumerate(POINTS)]
    source.execute(f"INSERT INTO items VALUES (:i, CAST(:v AS {'text' if is_text else column}))", rows)
    with source.follow(columns=None, vector="v") as follower:
        assert follower.hierarchy.points().dtype == dtype
        assert follower.poll().updated == 0
    with source.follow(columns=None, vector="v", dtype="float64", prefix="double_") as follower:
        assert follower.hierarchy.points().dtype == "float64"


def test_vectors_as_bytes_need_a_type(tmp_path):
    source = Source("sqlite", tmp_path, "id INTEGER PRIMARY KEY, v BLOB")
    rows = [{"i": i, "v": np.array(point, "<f4").tobytes()} for i, point in enumerate(POINTS)]
    source.execute("INSERT INTO items VALUES (:i, :v)", [*rows, {"i": 9, "v": b"123"}])
    with pytest.raises(ParameterError, match="dtype must be 'float32' or 'float64', because the column 'v' has bytes"):
        source.follow(columns=None, vector="v")
    with source.follow(columns=None, vector="v", dtype="float32") as follower:
        assert follower.hierarchy.points().tolist() == [list(point) for point in POINTS]


def test_vectors_of_another_length_are_left_out(tmp_path, caplog):
    source = Source("sqlite", tmp_path, "id INTEGER PRIMARY KEY, v TEXT")
    texts = ["[1,2,3]", "[0,0]", "[0,1]", "[9,9]", "oops", "[9,null]", "7", "[[1,2]]", None, "[8,9]"]
    source.execute("INSERT INTO items VALUES (:i, :v)", [{"i": i, "v": text} for i, text in enumerate(texts)])
    with source.follow(columns=None, vector="v", n_clusters=2) as follower:
        assert follower.hierarchy.keys() == [1, 2, 3, 9]
        assert "6 rows of 'items' are left out" in caplog.text
        source.execute("UPDATE items SET v = '[1,1]' WHERE id = 0")
        assert follower.poll().inserted == 1


def test_a_function_as_metric_gets_what_the_columns_hold(tmp_path):
    source = Source("sqlite", tmp_path, "id INTEGER PRIMARY KEY, word TEXT, kind TEXT")
    words = ["cat", "act", "dog", "god", None]
    source.execute("INSERT INTO items VALUES (:i, :w, 'a')", [{"i": i, "w": word} for i, word in enumerate(words)])
    options = {"linkage": "complete", "n_clusters": 2}
    seen = []

    def letters(s, t):
        seen.append((s, t))
        return float(len(set(s) ^ set(t)))

    with source.follow(columns=["word"], metric=letters, **options) as follower:
        assert follower.hierarchy.points() == words[:4]
        assert together(source.assignment("n_clusters_2")) == {frozenset({0, 1}), frozenset({2, 3})}
        source.execute("UPDATE items SET word = 'tac' WHERE id = 2")
        tick = follower.poll()
        assert (tick.updated, tick.inserted) == (1, 0)
    with source.follow(columns=["word", "kind"], metric=letters, prefix="pairs_", **options) as follower:
        assert follower.hierarchy.points()[0] == ("cat", "a")


@pytest.mark.parametrize("kind", DATABASES)
def test_any_name_is_a_name(kind, tmp_path):
    source = Source(kind, tmp_path, "")
    table, key, x, y, version = 'My "odd"; table', "select", "a:b %(c)s", "Ünï'cøde", "ver sion"

    def quoted(name):
        return '"' + name.replace('"', '""') + '"'

    def run(statement):
        with source.engine.begin() as connection:
            raw = connection.connection.cursor()
            raw.execute(statement)

    columns = f"{quoted(key)} INTEGER PRIMARY KEY, {quoted(x)} FLOAT8, {quoted(y)} FLOAT8, {quoted(version)} INTEGER"
    run(f"CREATE TABLE {quoted(table)} ({columns})")
    for i, (a, b) in enumerate(POINTS):
        run(f"INSERT INTO {quoted(table)} VALUES ({i}, {a}, {b}, {i})")
    run("CREATE TABLE victim (id INTEGER)")
    options = {"key": key, "columns": [x, y], "version": version, "prefix": 'pre"fix; DROP TABLE victim; -- %s :x '}
    with source.follow(table=table, **options) as follower:
        assert follower.hierarchy.keys() == [0, 1, 2, 3, 4]
        run(f"DELETE FROM {quoted(table)} WHERE {quoted(key)} = 2")
        run(f"INSERT INTO {quoted(table)} VALUES (7, 1, 1, 7)")
        tick = follower.poll()
        assert (tick.inserted, tick.removed) == (1, 1)
    names = sa.inspect(source.engine).get_table_names()
    assert {"victim", table} < set(names)
    assert len(names) == 5


@pytest.mark.parametrize(
    ("kind", "column", "keys"),
    [
        ("sqlite", "TEXT", ["a", "b'; DROP TABLE items; --", "", "ü", "NULL"]),
        ("sqlite", "", [1, "1", 2.5, b"\0", "x"]),  # no type at all
        ("sqlite", "INTEGER", [-5, 0, 2**62, -(2**63), 7]),
        ("postgresql", "text", ["a", "b'; DROP TABLE items; --", "", '{"x"}', "NULL"]),
        ("postgresql", "uuid", [uuid.UUID(int=i) for i in range(5)]),
        ("postgresql", "timestamptz", [datetime(2024, 1, 1).astimezone() + timedelta(days=i) for i in range(5)]),
        ("postgresql", "numeric", [0, 1, 10**30, -5, 7]),
        ("postgresql", "smallint", [-5, 0, 1, 2, 3]),
        ("postgresql", "bytea", [b"", b"a", b"\0", b"\xff", b"x"]),
        ("duckdb", "VARCHAR", ["a", "b'; DROP TABLE items; --", "", "ü", "NULL"]),
        ("duckdb", "UUID", [uuid.UUID(int=i) for i in range(5)]),
        ("duckdb", "HUGEINT", [0, 1, 10**30, -5, 7]),
        ("duckdb", "DATE", [datetime(2024, 1, i + 1).date() for i in range(5)]),
    ],
)
def test_keys_of_any_type(kind, column, keys, tmp_path):
    source = Source(kind, tmp_path, f"id {column}, x FLOAT8, y FLOAT8, version INTEGER")
    rows = [(key, *point, i) for i, (key, point) in enumerate(zip(keys, POINTS, strict=True))]
    source.insert(rows[:4])
    with source.follow(version="version") as follower:
        source.insert(rows[4:])
        source.execute("DELETE FROM items WHERE version = 0")
        source.execute("UPDATE items SET version = 9, x = 50, y = 49 WHERE version = 1")
        tick = follower.poll()
        assert (tick.inserted, tick.updated, tick.removed) == (1, 1, 1)
        assert set(follower.hierarchy.keys()) == set(keys[1:])
        assert set(source.assignment()) == set(keys[1:])
        assert len(source.execute("SELECT 1 FROM items JOIN evertree_items_assignment USING (id)")) == 4
    with source.follow(version="version") as follower:
        assert follower.poll().assigned == 0


@pytest.mark.parametrize("kind", DATABASES)
def test_versions_may_be_times(kind, tmp_path):
    source = Source(kind, tmp_path, "id INTEGER PRIMARY KEY, x FLOAT8, y FLOAT8, version TIMESTAMP")
    start = datetime(2024, 1, 1, 12, 0, 0, 123456)
    times = [start + timedelta(microseconds=i) for i in range(7)]
    at = [str(time) if kind == "sqlite" else time for time in times]
    source.insert([(*row, at[row[0]]) for row in ROWS])
    with source.follow(version="version") as follower:
        assert str(source.state()["last_version"]) == str(times[4])
        source.insert([(5, 1.0, 1.0, at[4]), (6, 1.0, 1.0, at[5])])  # one with the last version, and one after it
        assert follower.poll().inserted == 2


def test_rows_that_are_committed_late_or_without_a_version_are_found(source):
    source.execute("UPDATE items SET version = 10")
    with source.follow(version="version") as follower:
        source.insert([(7, 1.0, 1.0, 3)])
        assert follower.poll().inserted == 1
        source.insert([(8, 1.0, 2.0, None)])
        assert follower.poll().inserted == 1
        source.execute("UPDATE items SET x = 2 WHERE id = 8")
        assert follower.poll().updated == 1
        source.execute("UPDATE items SET x = 2, version = 4 WHERE id = 7")  # nothing says that it has changed
        assert follower.poll().updated == 0
        assert follower.poll(full=True).updated == 1


def test_rows_that_change_and_keep_the_last_version_are_found(sqlite_source):
    """Two transactions may come in one tick of a clock."""
    with sqlite_source.follow(version="version") as follower:
        sqlite_source.execute("UPDATE items SET x = x + 1 WHERE id = 0")
        assert follower.poll().updated == 1


def test_unusable_rows_come_and_go(source, caplog):
    source.insert([(7, None, 1.0), (8, float("inf"), 1.0), (9, 1e200, 1.0)])
    if source.kind != "sqlite":  # which has no NaN
        source.insert([(10, float("nan"), 1.0)])
    n_out = 3 if source.kind == "sqlite" else 4
    with caplog.at_level(logging.WARNING, "evertree.sql"), source.follow(version="version") as follower:
        assert set(follower.hierarchy.keys()) == {0, 1, 2, 3, 4}
        assert f"{n_out} rows of 'items' are left out" in caplog.text
        caplog.clear()
        assert follower.poll().skipped == 0
        assert not caplog.text
        source.execute("UPDATE items SET x = NULL, version = 1 WHERE id = 0")
        source.execute("UPDATE items SET x = 1, version = 1 WHERE id = 7")
        tick = follower.poll()
        assert (tick.inserted, tick.removed, tick.skipped) == (1, 1, 1)
        source.execute("DELETE FROM items WHERE id = 8")
        tick = follower.poll()
        assert (tick.inserted, tick.updated, tick.removed, tick.skipped) == (0, 0, 0, 0)
        assert set(source.assignment()) == {1, 2, 3, 4, 7}


def test_points_that_the_metric_cannot_compare_are_left_out(sqlite_source):
    with sqlite_source.follow(linkage="average", metric="cosine", n_clusters=2) as follower:
        assert follower.hierarchy.keys() == [1, 2, 3, 4]  # 0 has no direction


def test_keys_that_are_null_or_not_unique(tmp_path):
    source = Source("sqlite", tmp_path, "id INTEGER, x REAL, y REAL, version INTEGER")
    source.insert([*ROWS, (None, 1.0, 1.0)])
    with source.follow(version="version") as follower:
        assert follower.hierarchy.keys() == [0, 1, 2, 3, 4]
        assert follower.poll().skipped == 0
    source.insert([(1, 5.0, 5.0)])
    for chunk in (2, 100):
        with pytest.raises(DuplicateKeyError, match=r"key must be .* without duplicates; 'id' .* more than once: 1"):
            source.follow(version="version", chunk=chunk)


def test_a_table_that_is_or_becomes_empty(source):
    source.execute("DELETE FROM items")
    with source.follow(n_clusters=[1, 3], height=1.0, version="version") as follower:
        assert source.assignment() == {}
        assert repr(follower).endswith("): 0 points")
        source.insert(ROWS[:2])
        assert follower.poll().inserted == 2
        assert len(set(source.assignment().values())) == 2  # as many clusters as there are rows
        before = source.assignment()
        source.execute("DELETE FROM items")
        assert follower.poll().removed == 2
        assert source.assignment() == {}
        source.insert(ROWS)
        assert follower.poll().inserted == 5
        assert not set(before.values()) & set(source.assignment().values())


def test_clusters_of_a_minimum_size(sqlite_source):
    sqlite_source.follow(n_clusters=None, min_cluster_size=2).close()
    labels = sqlite_source.assignment("min_cluster_size_2")
    assert labels[4] == -1
    assert together(labels) == {frozenset({0, 1}), frozenset({2, 3}), frozenset({4})}


def test_views_and_schemas(tmp_path):
    source = Source("postgresql", tmp_path)
    source.insert(ROWS)
    source.execute("CREATE SCHEMA other")
    source.execute("CREATE VIEW other.far AS SELECT id, x + 1 AS x, y FROM items WHERE x > 5")
    with source.follow(table="far", schema="other", n_clusters=2) as follower:
        assert follower.hierarchy.keys() == [2, 3, 4]
        source.execute("DELETE FROM items WHERE id = 2")
        assert follower.poll().removed == 1
        assert len(source.execute("SELECT * FROM other.evertree_far_assignment")) == 2
    with pytest.raises(ParameterError, match=r"there is no 'far'$"):
        source.follow(table="far")


def test_an_engine_with_a_database_in_memory():
    engine = sa.create_engine("sqlite://", poolclass=StaticPool)
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE items (id INTEGER PRIMARY KEY, x REAL)")
        connection.exec_driver_sql("INSERT INTO items VALUES (1, 0), (2, 1), (3, 9)")
    with follow(engine, "items", "id", ["x"], n_clusters=2) as follower:
        assert follower.poll().assigned == 0
    with engine.begin() as connection:  # it is not ours to close
        rows = connection.exec_driver_sql("SELECT n_clusters_2 FROM evertree_items_assignment ORDER BY id").all()
    assert rows == [(0,), (0,), (1,)]
    engine.dispose()


def test_a_new_follower_takes_over(source):
    with source.follow() as old, source.follow() as new:
        source.insert([(7, 1.0, 1.0)])
        with pytest.raises(ReplacedError, match=r"another follower has taken over .* 'evertree_items_'"):
            old.poll()
        assert new.poll().inserted == 1


def test_tables_of_other_settings_are_not_touched(sqlite_source):
    sqlite_source.follow().close()
    before = sqlite_source.rows("assignment")
    for options, word in (
        ({"n_clusters": 2}, "cuts must be"),
        ({"columns": ["x"]}, "columns must be"),
        ({"linkage": "average"}, "linkage must be 'ward'"),
        ({"key": "version"}, "key must be 'id'"),
        ({"scores": "jump"}, "scores must be None"),
    ):
        with pytest.raises(ParameterError, match=f"{word}.* give another prefix=, or reset=True"):
            sqlite_source.follow(**options)
    assert sqlite_source.rows("assignment") == before
    sqlite_source.follow(n_clusters=2, reset=True).close()
    assert len(set(sqlite_source.assignment("n_clusters_2").values())) == 2
    sqlite_source.execute("DROP TABLE evertree_items_state")
    with pytest.raises(ParameterError, match="prefix must be that of a follower's three tables, or of none"):
        sqlite_source.follow(n_clusters=2)


def test_tables_of_a_newer_version_are_not_touched(sqlite_source):
    sqlite_source.follow().close()
    sqlite_source.execute("UPDATE evertree_items_state SET format = 99")
    with pytest.raises(et.errors.NewerFormatError, match="in format 99"):
        sqlite_source.follow()


def test_columns_that_are_no_numbers(source):
    source.execute("ALTER TABLE items ADD COLUMN name VARCHAR(10)")
    source.execute("UPDATE items SET name = 'abc'")
    with pytest.raises(NotNumericError, match="columns must hold numbers; 'name' has values such as 'abc'"):
        source.follow(columns=["x", "name"], prefix="other_")
    with pytest.raises(NotNumericError, match="vector must be a column of arrays"):
        source.follow(columns=None, vector="name", prefix="another_")


def test_a_text_among_numbers_is_left_out(sqlite_source):
    sqlite_source.execute("UPDATE items SET x = 'abc' WHERE id = 2")
    with sqlite_source.follow() as follower:
        assert follower.hierarchy.keys() == [0, 1, 3, 4]


def test_others_can_write_between_polls(source):
    """Nothing is locked while a follower waits."""
    with source.follow() as follower:
        with source.engine.connect() as connection, connection.begin():
            connection.execute(sa.text("UPDATE items SET x = x + 1"))
        assert follower.poll().updated == 5


def test_a_window_is_refused(tmp_path):
    """The table says which points there are."""
    source = Source("sqlite", tmp_path)
    source.insert([(1, 0.0, 0.0), (2, 1.0, 1.0)])
    with source.follow(store=tmp_path / "tree.db", n_clusters=1) as follower:
        follower.hierarchy.keep(last=5)
        wanted = r"must have no window; it has Window\(last=5, .*lift it by keep_all\(\)"
        with pytest.raises(ParameterError, match=wanted):
            follower.poll()
    with pytest.raises(ParameterError, match="must have no window"):
        source.follow(store=tmp_path / "tree.db", n_clusters=1)
    with et.open(tmp_path / "tree.db") as h:
        h.keep_all()
    with source.follow(store=tmp_path / "tree.db", n_clusters=1) as follower:
        assert len(follower.hierarchy) == 2


def test_a_closed_follower(tmp_path):
    source = Source("sqlite", tmp_path)
    source.insert([(1, 0.0, 0.0)])
    follower = source.follow()
    follower.close()
    follower.close()
    assert repr(follower).endswith("items.db): closed")
    with pytest.raises(ParameterError, match="must not be closed"):
        follower.poll()


def test_a_follower_whose_clusters_become_too_small(tmp_path):
    source = Source("sqlite", tmp_path)
    source.insert([(i, 10.0 * (i // 2) + 0.1 * i, 0.0) for i in range(6)])
    with source.follow(min_cluster_size=2) as follower:
        assert set(source.assignment().values()) == {0, 1, 2}
        source.execute("DELETE FROM items WHERE id > 2")
        assert follower.poll().removed == 3
        source.execute("DELETE FROM items WHERE id > 0")
        follower.poll()
        assert source.assignment() == {0: -1}
