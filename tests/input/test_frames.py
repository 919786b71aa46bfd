"""Data frames of other libraries, and keys from them."""

from __future__ import annotations

import subprocess
import sys

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import evertree as et
from evertree.errors import InvalidKeyError, MissingExtraError, NotFiniteError, NotNumericError

COLUMNS = {"a": [0.0, 1.0, 8.0], "b": [0, 1, 9]}
MAKERS = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table}


@pytest.fixture(params=MAKERS)
def make(request):
    """What makes a table of a library from a dict of columns."""
    return MAKERS[request.param]


class OnlyExchange:
    """A data frame that can do nothing but be exchanged."""

    def __init__(self, frame):
        self._frame = frame

    def __dataframe__(self, **options):
        return self._frame.__dataframe__(**options)


def points_of(X, **options):
    h = et.Hierarchy()
    h.insert(X, **options)
    return h


def test_numbers(make):
    h = points_of(make(COLUMNS))
    np.testing.assert_array_equal(h.points(), np.column_stack(list(COLUMNS.values())))
    h.insert(make({"a": [5.0], "b": [5.0]}))
    h.update([0], make({"a": [7.0], "b": [7.0]}))
    assert h.points()[0].tolist() == [7.0, 7.0]


def test_float32_stays(make):
    h = points_of(make({"a": np.zeros(3, np.float32), "b": np.arange(3, dtype=np.float32)}))
    assert h.points().dtype == np.float32
    assert points_of(make({"a": np.zeros(3, np.float32), "b": np.arange(3.0)})).points().dtype == np.float64


def test_keys_from_a_column(make):
    h = points_of(make({"id": ["x", "y", "z"], **COLUMNS}), keys="id")
    assert h.keys() == ["x", "y", "z"]
    assert h.points().shape == (3, 2)
    assert et.agglomerate(make({**COLUMNS, "id": [7, 8, 9]}), keys="id").keys() == [7, 8, 9]
    assert et.Hierarchy.random(make({"id": [7, 8, 9], **COLUMNS}), keys="id").keys() == [7, 8, 9]


def test_keys_from_an_index():
    frame = pd.DataFrame(COLUMNS, index=pd.Index(["x", "y", "z"], name="id"))
    assert points_of(frame, keys="id").keys() == ["x", "y", "z"]
    assert points_of(frame, keys=frame.index).keys() == ["x", "y", "z"]
    assert points_of(frame).keys() == [0, 1, 2]
    two = pd.DataFrame(COLUMNS, index=pd.MultiIndex.from_tuples([(1, "x"), (1, "y"), (2, "z")], names=["day", "id"]))
    assert points_of(two, keys="id").keys() == ["x", "y", "z"]


def test_a_name_that_is_not_there(make):
    with pytest.raises(InvalidKeyError, match=r"X has no 'name': it has 'a', 'b'"):
        points_of(make(COLUMNS), keys="name")
    h = et.Hierarchy()
    assert h.insert([[1.0]], keys="name") == ["name"]  # a single key, where X is no table


def test_missing_values_are_named(make):
    with pytest.raises(NotFiniteError, match=r"missing values, NaN or infinity in rows 1, 2, columns 'a', 'c'"):
        points_of(make({"a": [0.0, None, 2.0], "b": [0, 1, 2], "c": [1, 2, None]}))


@pytest.mark.parametrize("dtype", ["Int64", "Float64", "boolean", "Float32"])
def test_types_of_pandas_that_know_missing_values(dtype):
    column = pd.array([1, None, 0], dtype=dtype)
    with pytest.raises(NotFiniteError, match="row 1, column 'b'"):
        points_of(pd.DataFrame({"a": [0.0, 1.0, 2.0], "b": column}))
    full = pd.DataFrame({"b": pd.array([1, 0, 0], dtype=dtype)})
    assert points_of(full).points().ravel().tolist() == [1.0, 0.0, 0.0]


def test_text_is_named(make):
    with pytest.raises(NotNumericError, match=r"other values: 'name'. Drop them, or name the one that has the keys"):
        points_of(make({"name": ["x", "y", "z"], **COLUMNS}))


@pytest.mark.parametrize(
    "column",
    [
        pd.array(["1", "2", "3"], dtype="string"),
        pd.Categorical(["1", "2", "3"]),
        pd.Categorical([1, 2, 3]),
        pd.array(["1", "2", "3"], dtype="str"),
        np.array([b"1", b"2", b"3"], object),
        pd.to_datetime(["2020-01-01"] * 3),
        pd.to_datetime(["2020-01-01"] * 3, utc=True),
        pd.array(["1", "2", "3"], dtype=pd.ArrowDtype(pa.string())),
    ],
)
def test_what_only_looks_like_numbers(column):
    with pytest.raises(NotNumericError, match="other values: 'zip'"):
        points_of(pd.DataFrame({"zip": column, "a": [0.0, 1.0, 2.0]}))


def test_lists_and_batches():
    with pytest.raises(NotNumericError, match="other values: 'b'"):
        points_of(pl.DataFrame({"a": [1.0], "b": [[1.0, 2.0]]}, schema={"a": pl.Float64, "b": pl.Array(pl.Float64, 2)}))
    batch = pa.record_batch({"a": [1, None], "b": [True, False]})
    with pytest.raises(NotFiniteError, match="row 1, column 'a'"):
        points_of(batch)
    with pytest.raises(NotNumericError, match="'b'"):
        points_of(pa.record_batch({"a": [1], "b": ["x"]}))


def test_nullable_float32_stays():
    frame = pd.DataFrame({"a": pd.array([1, 2], dtype="Float32"), "b": pd.array([1, 2], dtype="float32[pyarrow]")})
    assert points_of(frame).points().dtype == np.float32


def test_columns_may_have_any_name():
    frame = pd.DataFrame({"id": ["x", "y"], "column_names": [1.0, 2.0], "drop_columns": [1.0, 2.0], "drop": [0.0, 0.0]})
    h = points_of(frame, keys="id")
    assert (h.keys(), h.points().shape) == (["x", "y"], (2, 3))


def test_keys_that_are_missing_or_ambiguous(make):
    with pytest.raises(InvalidKeyError, match=r"keys must all be there; 'id' has missing values in row 1"):
        points_of(make({"id": ["x", None, "z"], **COLUMNS}), keys="id")
    frame = pd.DataFrame([[1.0, 2.0, 3.0]], columns=["id", "id", "a"])
    with pytest.raises(InvalidKeyError, match="there are 2 of the name 'id'"):
        points_of(frame, keys="id")
    numbers = pd.DataFrame({"id": pd.array([1, None], dtype="Int64"), "a": [0.0, 1.0]})
    with pytest.raises(InvalidKeyError, match="missing values in row 1"):
        points_of(numbers, keys="id")


def test_objects_that_are_numbers():
    frame = pd.DataFrame({"a": np.array([1, 2.5, None], object)})
    with pytest.raises(NotFiniteError, match="row 2, column 'a'"):
        points_of(frame)
    assert points_of(frame[:2]).points().ravel().tolist() == [1.0, 2.5]


def test_a_frame_of_an_unknown_library(monkeypatch):
    h = points_of(OnlyExchange(pd.DataFrame(COLUMNS)))
    assert h.points().shape == (3, 2)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'evertree\[pandas\]'"):
        points_of(OnlyExchange(None))


def test_columns_of_one_name():
    frame = pd.DataFrame({"id": ["x", "y"], "a": [0.0, 1.0], "b": [2.0, 3.0]}).set_axis(["id", "a", "a"], axis=1)
    table = pa.table({"a": [0.0, 1.0], "b": [2.0, 3.0]}).rename_columns(["a", "a"])
    for X, keys in ((frame, "id"), (table, None), (table.to_batches()[0], None)):
        np.testing.assert_array_equal(points_of(X, keys=keys).points(), [[0.0, 2.0], [1.0, 3.0]])


def test_lazy_frames():
    relation = duckdb.sql("select * from (values ('x', 1.5, 2), ('y', 0.0, 3)) as t(id, a, b)")
    for X in (relation, relation.pl().lazy(), nw.from_native(relation), nw.from_native(relation.pl())):
        h = points_of(X, keys="id")
        assert (h.keys(), h.points().tolist()) == (["x", "y"], [[1.5, 2.0], [0.0, 3.0]])
    with pytest.raises(NotNumericError, match="other values: 'id'"):
        points_of(relation)


def test_numbers_of_categories_are_refused():
    for X in (pd.DataFrame({"a": pd.Categorical([1, 2])}), pa.table({"a": pa.array([1, 2]).dictionary_encode()})):
        with pytest.raises(NotNumericError, match="other values: 'a'"):
            points_of(X)


@pytest.mark.process
def test_arrays_import_no_library_of_frames():
    code = "import sys, evertree as et; et.Hierarchy().check([[1.0]]); print({'narwhals', 'pandas'} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"


def test_anything_with_an_array():
    class Wrapped:
        def __array__(self, dtype=None, copy=None):
            return np.arange(6.0).reshape(3, 2)

    assert points_of(Wrapped()).points().shape == (3, 2)
    assert points_of(pd.DataFrame(COLUMNS).to_numpy()).points().shape == (3, 2)


def test_empty_tables(make):
    h = et.Hierarchy()
    assert h.insert(make({"a": np.empty(0), "b": np.empty(0)})) == []
