"""Rows that cannot be points, and addresses that cannot be databases."""

from __future__ import annotations

import logging
import os
from decimal import Decimal

import numpy as np
import pytest
import sqlalchemy as sa
from test_follow_errors import check_secret

import evertree as et
from evertree.errors import InvalidKeyError, ParameterError
from evertree.sql import follow
from evertree.sql.credentials import make_engine, scrubbed, shown
from evertree.sql.rows import Batch, Decoder
from evertree.sql.settings import Cut, checked_settings
from followed import Source

NONE = et.Partition.of([], [])


def decoder(**options) -> Decoder:
    """Of columns ``x`` and ``name``, or of a column ``v``."""
    given = {"columns": ["x", "name"], "vector": None, "dtype": None, "metric": "euclidean", "params": None} | options
    settings = checked_settings(
        "items",
        None,
        "id",
        given["columns"],
        given["vector"],
        None,
        (2, (), None),
        None,
        ("average", given["metric"], given["params"]),
        given["dtype"],
        None,
    )
    return Decoder(settings, dict.fromkeys(settings.values, "TEXT"), False)


def vectors(values, n_columns: int | None = None, **options) -> Batch:
    made = decoder(columns=None, vector="v", **options)
    return made.decode(list(enumerate(values)), n_columns)


ADDRESSES = [
    "host=db user=me password=hunter2 dbname=x",
    "host = db password = hunter2",
    "postgresql:/me:hunter2@host/db",
    "postgresql//me:hunter2@h/db",
    "postgresql:me:hunter2@h/db",
    "postgresql:me:hunter2",
    "POSTGRES:hunter2",
    "me:hunter2@h/db",
    "md:db?motherduck_token=hunter2",
    "MD:db?motherduck_token=hunter2",
    "md:hunter2",
    "duckdb:/md:db?motherduck_token=hunter2",
    "duckdb:hunter2",
    "db?hunter2",
    "token hunter2",
    f"me:hunter2@{'h' * 300}/db",  # longer than the name of a file can be
    "hunter2@\0",
    "postgresql:///me:hunter2@host/db",
    "postgresql://host/me:hunter2@host/db",
    "sqlite:///md:db%3Fmotherduck_token=hunter2",
    "sqlite:///file:db%3Fpassword=hunter2",
    "sqlite:///me:hunter2@h/db",
    "duckdb:///host=db password=hunter2",
    "duckdb:///file:db%3Fpassword=hunter2",
]


@pytest.mark.parametrize("url", ADDRESSES)
def test_addresses_that_are_no_urls_are_not_shown(url, tmp_path, monkeypatch, caplog):
    caplog.set_level(logging.DEBUG)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ParameterError) as caught:
        follow(url, "items", "id", ["x"])
    check_secret(caught.value, caplog, "hunter2")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["a@b.db", "token=1?.db", "md:x", "postgres.db", "file:x"])
def test_files_with_unusual_names(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).touch()
    for path in (name, tmp_path / name):
        assert make_engine(path).url.database == str(path)


def test_names_in_the_bytes_of_the_file_system(tmp_path):
    (tmp_path / "é.db").touch()
    with os.scandir(os.fsencode(tmp_path)) as entries:
        (entry,) = entries
    assert make_engine(entry).url.database == str(tmp_path / "é.db")


def test_uris_and_databases_elsewhere_are_not_looked_for():
    assert make_engine("sqlite:///file:no.db?mode=ro&uri=true").url.database == "file:no.db"
    assert make_engine("duckdb:///md:name").url.database == "md:name"


def test_a_token_in_the_name_of_a_database():
    place = sa.make_url("duckdb:///md:db%3Fmotherduck_token=hunter2&user=me")
    assert shown(place) == "duckdb:///md:db"
    assert scrubbed("md:db?motherduck_token=hunter2&user=me", place) == "md:db?motherduck_token=***&user=me"


def test_a_column_without_numbers():
    batch = decoder().decode([(1, 0.5, "abc"), (2, None, "d"), (3, 0.5, None)], None)
    assert (batch.keys, len(batch.points), batch.left_out) == ([], 0, [1, 2, 3])
    assert batch.complaint == (
        "columns must hold numbers; 'name' has values such as 'abc': leave it out, or make a number of it in a view"
    )


def test_one_row_that_is_a_point_is_nothing_to_complain_about():
    batch = decoder().decode([(1, 0.5, "abc"), (2, 1.5, 2)], None)
    assert (batch.keys, batch.points.tolist(), batch.left_out, batch.complaint) == ([2], [[1.5, 2.0]], [1], None)


@pytest.mark.parametrize("value", [None, float("nan"), float("inf"), Decimal("NaN"), Decimal("sNaN"), 10**400])
def test_missing_numbers_are_nothing_to_complain_about(value):
    batch = decoder().decode([(1, 0.5, value), (2, 0.5, None)], None)
    assert (batch.keys, batch.left_out, batch.complaint) == ([], [1, 2], None)


@pytest.mark.parametrize("lists", [([1.0], [2.0]), ([1.0, 2.0], [3.0, 4.0]), ([1.0], [2.0, 3.0])])
def test_lists_are_no_numbers(lists):
    batch = decoder().decode([(i, 0.5, value) for i, value in enumerate(lists)], None)
    assert (batch.keys, batch.left_out) == ([], [0, 1])
    assert "'name' has values such as [1.0" in batch.complaint


def test_a_column_without_vectors():
    batch = vectors(["abc", None, "[1,2", "[[1]]"])
    assert (batch.keys, batch.left_out) == ([], [0, 1, 2, 3])
    assert (
        batch.complaint == "vector must be a column of arrays, or of texts like '[1,2,3]'; 'v' has values such as 'abc'"
    )
    assert len(vectors(["abc" * 10_000]).complaint) < 200
    assert vectors([None]).complaint is None
    assert vectors(["[1,2]", "[3,4]"], 3).complaint is None
    assert vectors(["[1,2]", "abc"], 2).complaint is None


def test_complaints_of_rows_do_not_end_a_follower(tmp_path):
    """A poll that reads nothing but a bad row leaves it out."""
    source = Source("sqlite", tmp_path)
    source.insert([(i, float(i), 0.0, i) for i in range(5)])
    with source.follow(version="version") as follower:
        source.execute("UPDATE items SET x = 'abc', version = 7 WHERE id = 4")  # the only row from version 4 on
        tick = follower.poll()
        assert (tick.removed, tick.skipped) == (1, 1)
        assert follower.poll().skipped == 0
        source.insert([(8, 8.0, 0.0, 8)])
        assert follower.poll().inserted == 1
        assert follower.hierarchy.keys() == [0, 1, 2, 3, 8]


@pytest.mark.parametrize("chunk", [1, 2, 100])
def test_which_rows_are_left_out_does_not_depend_on_chunks(chunk, tmp_path):
    source = Source("sqlite", tmp_path)
    source.insert([(i, float(i), 0.0) for i in range(5)])
    source.execute("UPDATE items SET x = 'abc' WHERE id IN (1, 3, 4)")
    with source.follow(chunk=chunk) as follower:
        assert follower.hierarchy.keys() == [0, 2]


def test_a_batch_without_vectors_has_no_length():
    """Nothing to compare with the matrix of a metric."""
    batch = vectors([None, "abc"], metric="mahalanobis", params={"VI": np.eye(2)})
    assert batch.left_out == [0, 1]


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_bytes_after_nothing(kind):
    packed = [kind(np.array(vector, "<f4").tobytes()) for vector in ([1, 2], [3, 4])]
    batch = vectors([None, *packed, kind(b"abc"), kind(b""), "abc"], dtype="float32")
    assert (batch.keys, batch.points.tolist(), batch.left_out) == ([1, 2], [[1, 2], [3, 4]], [0, 3, 4, 5])
    with pytest.raises(ParameterError, match="dtype must be 'float32' or 'float64', because the column 'v' has bytes"):
        vectors([None, *packed])


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_bytes_after_texts(kind):
    packed = kind(np.array([3, 4], "<f4").tobytes())
    assert vectors(["[1,2]", packed, [5, 6]], dtype="float32").points.tolist() == [[1, 2], [3, 4], [5, 6]]
    assert vectors(["[1,2]", packed, [5, 6]]).left_out == [1]
    assert vectors(["[1,2,3,4,5,6,7,8]", packed, [1] * 8]).left_out == [1]


def test_bytes_that_are_any_nan():
    signaling = np.array([0x7F800001, 0], "<u4").tobytes()
    good = np.array([1, 2], "<f4").tobytes()
    assert vectors([signaling, good], dtype="float32").left_out == [0]
    assert vectors([signaling, good, b"abc"], dtype="float32").left_out == [0, 2]


def test_texts_do_not_become_vectors_of_other_rows():
    batch = vectors(["[1,2],[3,4]", "[5", "6]", "[7,8]"])
    assert (batch.keys, batch.points.tolist(), batch.left_out) == ([3], [[7, 8]], [0, 1, 2])
    assert vectors(["[1,2],[3,4]", "[5", "6]"]).left_out == [0, 1, 2]
    assert vectors(['["]', '[",5]', "[1,2]"]).left_out == [0, 1]


@pytest.mark.parametrize(
    "text", ["", "5", "[]", "[1,2]]", "[[1,2]]", "{1,2}", "[1,2],", "[1;2]", "[" * 100_000, f"[1,1{'0' * 400}]"]
)
def test_texts_that_are_no_vectors(text):
    batch = vectors(["[1,2]", text, " [3, 4]\n"])
    assert (batch.points.tolist(), batch.left_out) == ([[1, 2], [3, 4]], [1])
    assert vectors([text]).keys == []


def test_the_length_of_most_vectors():
    batch = vectors(["[1,2]", "[1,2,3]", None, "[4,5,6]", [7, 8, 9, 10]])
    assert (batch.keys, batch.points.tolist()) == ([1, 3], [[1, 2, 3], [4, 5, 6]])
    assert (batch.left_out, batch.complaint) == ([0, 2, 4], None)
    assert vectors(["[1,2]", "[1,2,3]", "[4,5,6]"], 2).keys == [0]
    assert vectors(["[1,2,3]", "[4,5,6]"], 2).left_out == [0, 1]


def test_clusters_of_a_minimum_size_are_as_many_as_there_are():
    h = et.Hierarchy(goal="stable")
    h.insert([[0.0], [1.0], [10.0], [11.0], [20.0], [21.0], [90.0]])
    h.refine()
    cut = Cut("n_clusters_3", 3, None, 2)
    assert cut.partition(h, NONE).labels.tolist() == [0, 0, 1, 1, 2, 2, -1]
    assert Cut("n_clusters_2", 2, None, 2).partition(h, NONE).labels.max() == 1
    h.remove([4, 6])
    h.refine()
    assert cut.partition(h, NONE).labels.tolist()[:4] == [0, 0, 1, 1]
    h.remove([0, 1, 2, 3])
    assert cut.partition(h, NONE).labels.tolist() == [-1]


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


@pytest.mark.parametrize("key", [[1, 2], Decimal("sNaN"), {}])
def test_keys_that_cannot_be_keys(key):
    with pytest.raises(InvalidKeyError, match=r"key must be a column of values .*; 'id' of the table 'items' has "):
        decoder().decode([(1, 0.5, 0.5), (key, 0.5, 0.5)], None)
