"""Rows that can be points, and rows that cannot."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest

from evertree.errors import InvalidKeyError, ParameterError
from evertree.sql.follow_options import FollowOptions, as_cuts, as_float_type
from evertree.sql.row_decoder import RowBatch, RowDecoder
from evertree.tree.scheme import Scheme
from followed import Source


def decoder(metric: str = "euclidean", params: dict | None = None, **options) -> RowDecoder:
    """Of columns ``x`` and ``name``, or of a column ``v``."""
    given = {"columns": ("x", "name"), "vector": None, "dtype": None} | options
    given["dtype"] = as_float_type(given["dtype"])
    more = {
        "version": None,
        "cuts": as_cuts(2, (), None),
        "scores": None,
        "schema": None,
        "prefix": "p_",
        "seconds": 0,
        "chunk": 9,
    }
    chosen = FollowOptions("items", "id", scheme=Scheme("average", metric, params), **given, **more)
    return RowDecoder(chosen, dict.fromkeys(chosen.values, "TEXT"), False)


def vectors(values, n_columns: int | None = None, **options) -> RowBatch:
    made = decoder(columns=(), vector="v", **options)
    return made.decode(list(enumerate(values)), n_columns)


def test_a_column_without_numbers():
    batch = decoder().decode([(1, 0.5, "abc"), (2, None, "d"), (3, 0.5, None)], None)
    assert (batch.keys, len(batch.points), batch.skipped) == ([], 0, [1, 2, 3])
    assert batch.complaint == (
        "columns must hold numbers; 'name' has values such as 'abc': leave it out, or make a number of it in a view"
    )


def test_one_row_that_is_a_point_is_nothing_to_complain_about():
    batch = decoder().decode([(1, 0.5, "abc"), (2, 1.5, 2)], None)
    assert (batch.keys, batch.points.tolist(), batch.skipped, batch.complaint) == ([2], [[1.5, 2.0]], [1], None)


@pytest.mark.parametrize("value", [None, float("nan"), float("inf"), Decimal("NaN"), Decimal("sNaN"), 10**400])
def test_missing_numbers_are_nothing_to_complain_about(value):
    batch = decoder().decode([(1, 0.5, value), (2, 0.5, None)], None)
    assert (batch.keys, batch.skipped, batch.complaint) == ([], [1, 2], None)


@pytest.mark.parametrize("lists", [([1.0], [2.0]), ([1.0, 2.0], [3.0, 4.0]), ([1.0], [2.0, 3.0])])
def test_lists_are_no_numbers(lists):
    batch = decoder().decode([(i, 0.5, value) for i, value in enumerate(lists)], None)
    assert (batch.keys, batch.skipped) == ([], [0, 1])
    assert "'name' has values such as [1.0" in batch.complaint


def test_a_column_without_vectors():
    batch = vectors(["abc", None, "[1,2", "[[1]]"])
    assert (batch.keys, batch.skipped) == ([], [0, 1, 2, 3])
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
    assert batch.skipped == [0, 1]


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_bytes_after_nothing(kind):
    packed = [kind(np.array(vector, "<f4").tobytes()) for vector in ([1, 2], [3, 4])]
    batch = vectors([None, *packed, kind(b"abc"), kind(b""), "abc"], dtype="float32")
    assert (batch.keys, batch.points.tolist(), batch.skipped) == ([1, 2], [[1, 2], [3, 4]], [0, 3, 4, 5])
    with pytest.raises(ParameterError, match="dtype must be 'float32' or 'float64', because the column 'v' has bytes"):
        vectors([None, *packed])


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_bytes_after_texts(kind):
    packed = kind(np.array([3, 4], "<f4").tobytes())
    assert vectors(["[1,2]", packed, [5, 6]], dtype="float32").points.tolist() == [[1, 2], [3, 4], [5, 6]]
    assert vectors(["[1,2]", packed, [5, 6]]).skipped == [1]
    assert vectors(["[1,2,3,4,5,6,7,8]", packed, [1] * 8]).skipped == [1]


def test_bytes_that_are_any_nan():
    signaling = np.array([0x7F800001, 0], "<u4").tobytes()
    good = np.array([1, 2], "<f4").tobytes()
    assert vectors([signaling, good], dtype="float32").skipped == [0]
    assert vectors([signaling, good, b"abc"], dtype="float32").skipped == [0, 2]


def test_texts_do_not_become_vectors_of_other_rows():
    batch = vectors(["[1,2],[3,4]", "[5", "6]", "[7,8]"])
    assert (batch.keys, batch.points.tolist(), batch.skipped) == ([3], [[7, 8]], [0, 1, 2])
    assert vectors(["[1,2],[3,4]", "[5", "6]"]).skipped == [0, 1, 2]
    assert vectors(['["]', '[",5]', "[1,2]"]).skipped == [0, 1]


@pytest.mark.parametrize(
    "text", ["", "5", "[]", "[1,2]]", "[[1,2]]", "{1,2}", "[1,2],", "[1;2]", "[" * 100_000, f"[1,1{'0' * 400}]"]
)
def test_texts_that_are_no_vectors(text):
    batch = vectors(["[1,2]", text, " [3, 4]\n"])
    assert (batch.points.tolist(), batch.skipped) == ([[1, 2], [3, 4]], [1])
    assert vectors([text]).keys == []


def test_the_length_of_most_vectors():
    batch = vectors(["[1,2]", "[1,2,3]", None, "[4,5,6]", [7, 8, 9, 10]])
    assert (batch.keys, batch.points.tolist()) == ([1, 3], [[1, 2, 3], [4, 5, 6]])
    assert (batch.skipped, batch.complaint) == ([0, 2, 4], None)
    assert vectors(["[1,2]", "[1,2,3]", "[4,5,6]"], 2).keys == [0]
    assert vectors(["[1,2,3]", "[4,5,6]"], 2).skipped == [0, 1]


@pytest.mark.parametrize("key", [[1, 2], Decimal("sNaN"), {}])
def test_keys_that_cannot_be_keys(key):
    with pytest.raises(InvalidKeyError, match=r"key must be a column of values .*; 'id' of the table 'items' has "):
        decoder().decode([(1, 0.5, 0.5), (key, 0.5, 0.5)], None)
