"""Columns have names: kept from the first data frame, saved, and used to put later frames in order."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import evertree as et
from evertree.errors import ColumnNamesError, CorruptFileError, DimensionError, ParameterError

X = np.random.default_rng(0).normal(size=(12, 3))
NAMES = ("price", "weight", "age")
KINDS = {
    "pandas": lambda x, names: pd.DataFrame(dict(zip(names, x.T, strict=True))),
    "polars": lambda x, names: pl.DataFrame(dict(zip(names, x.T, strict=True))),
    "lazy polars": lambda x, names: pl.DataFrame(dict(zip(names, x.T, strict=True))).lazy(),
    "Arrow": lambda x, names: pa.table(dict(zip(names, x.T, strict=True))),
}


def named(x, names=NAMES, kind="pandas"):
    return KINDS[kind](np.asarray(x), names)


def shuffled(x, kind="pandas"):
    """The same points, with the columns in another order."""
    return named(np.asarray(x)[:, [2, 0, 1]], ("age", "price", "weight"), kind)


@pytest.mark.parametrize("kind", KINDS)
def test_a_frame_in_another_order_is_put_in_order(kind):
    h = et.Hierarchy()
    h.insert(named(X[:5], kind=kind))
    assert h.column_names == NAMES
    h.insert(shuffled(X[5:8], kind))
    h.update([0], shuffled(X[8:9], kind))
    h.upsert(shuffled(X[9:11], kind), keys=[1, "new"])
    np.testing.assert_array_equal(h.points([0, 1, 5, 6, 7, "new"]), X[[8, 9, 5, 6, 7, 10]])
    np.testing.assert_array_equal(h.anomaly_scores(shuffled(X[11:], kind)), h.anomaly_scores(X[11:]))
    assert h.locate(shuffled(X[11:], kind)) == h.locate(X[11:])


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("price", "weight", "height"), "it lacks 'age', and has the unknown 'height'"),
        (("price", "weight"), "it lacks 'age'"),
        ((*NAMES, "height"), "it has the unknown 'height'"),
    ],
)
def test_other_columns_are_refused_by_name(names, message):
    h = et.Hierarchy()
    h.insert(named(X))
    x = np.random.default_rng(1).normal(size=(2, len(names)))
    before = h.linkage_matrix().tolist()
    for verb in (h.insert, h.locate, h.anomaly_scores, h.check):
        with pytest.raises(ColumnNamesError, match=message):
            verb(named(x, names))
    with pytest.raises(ColumnNamesError, match=message):
        h.update([0, 1], named(x, names))
    assert h.linkage_matrix().tolist() == before


def test_a_name_given_twice_is_refused():
    h = et.Hierarchy()
    h.insert(named(X))
    frame = pd.DataFrame(X[:2][:, [0, 1, 1]], columns=["price", "weight", "weight"])
    with pytest.raises(ColumnNamesError, match="it lacks 'age', and has more than one 'weight'"):
        h.insert(frame)


def test_arrays_and_numbered_columns_go_by_position():
    h = et.Hierarchy()
    h.insert(X[:3])
    assert h.column_names is None
    h.insert(pd.DataFrame(X[3:5]))
    assert h.column_names is None  # 0, 1, 2 are numbers and no names
    h.insert(pd.DataFrame(X[5:6], columns=["a", "a", "b"]))
    assert h.column_names is None
    h.insert(named(X[6:8]))  # the first frame with names
    assert h.column_names == NAMES
    h.insert(X[8:10])
    h.insert(shuffled(X[10:]))
    np.testing.assert_array_equal(h.points(), X)


def test_the_key_column_is_none_of_them():
    h = et.Hierarchy()
    h.insert(named(X).assign(id=list("abcdefghijkl")), keys="id")
    assert h.column_names == NAMES
    h.upsert(shuffled(X[:2]).assign(id=["a", "z"])[["id", "age", "price", "weight"]], keys="id")
    np.testing.assert_array_equal(h.points(["a", "z"]), X[:2])


def test_names_last(tmp_path):
    h = et.Hierarchy()
    h.insert(named(X))
    h.save(tmp_path / "tree.evertree")
    for other in (h.copy(), et.load(tmp_path / "tree.evertree"), pickle.loads(pickle.dumps(h))):
        assert other.column_names == NAMES
        other.insert(shuffled(X[:1]))
        np.testing.assert_array_equal(other.points()[-1], X[0])
    h.remove(h.keys())
    assert h.column_names == NAMES


def test_a_durable_tree_keeps_them(tmp_path, monkeypatch):
    monkeypatch.setattr(et.DurableHierarchy, "close", lambda self: self._release())  # as after a crash
    with et.open(tmp_path / "tree") as h:
        h.insert(X[:2])
        h.insert(named(X[2:4]))
    with et.open(tmp_path / "tree") as h:
        assert h.column_names == NAMES
        h.insert(shuffled(X[4:]))
    np.testing.assert_array_equal(et.open(tmp_path / "tree", read_only=True).points(), X)
    with pytest.raises(ParameterError, match="column_names must be"):
        et.open(tmp_path / "tree", column_names=["a", "b", "c"])


def test_names_of_a_file_without_any(tmp_path):
    with et.open(tmp_path / "tree") as h:
        h.insert(X)
    reader = et.open(tmp_path / "tree", read_only=True, column_names=NAMES)
    assert et.open(tmp_path / "tree", read_only=True).column_names is None
    with et.open(tmp_path / "tree") as h:
        h.insert(X[:1])
        h.checkpoint()
    assert reader.refresh()
    assert reader.column_names == NAMES
    with et.open(tmp_path / "tree", column_names=NAMES):
        pass
    with et.open(tmp_path / "tree") as h:
        assert h.column_names == NAMES
        h.insert(shuffled(X[:1]))
        np.testing.assert_array_equal(h.points()[-1], X[0])


def test_names_at_the_start():
    h = et.Hierarchy(column_names=NAMES)
    with pytest.raises(DimensionError, match="3 columns, 'price', 'weight', 'age'; it has 2"):
        h.insert(X[:, :2])
    h.insert(X[:6])
    h.insert(shuffled(X[6:]))
    np.testing.assert_array_equal(h.points(), X)
    assert et.Hierarchy(column_names=NAMES).insert([]) == et.Hierarchy(column_names=NAMES).upsert([], keys=[]) == []
    with pytest.raises(ParameterError, match="there are no columns"):
        et.Hierarchy("single", "precomputed", column_names=NAMES)
    for wrong in ([], ["a", "a"], ["a", 1], 7):
        with pytest.raises(ParameterError, match="column_names must be None or different strings"):
            et.Hierarchy(column_names=wrong)
    assert et.Hierarchy(column_names="only").column_names == ("only",)


@pytest.mark.parametrize("make", [et.Hierarchy.random, et.agglomerate])
def test_other_ways_to_start(make):
    h = make(named(X))
    assert h.column_names == NAMES
    np.testing.assert_array_equal(h.points(), X)


def test_another_metric():
    h = et.Hierarchy("average", "sqeuclidean")
    h.insert(named(X))
    h.set_metric("cosine")
    assert h.column_names == NAMES
    h.set_metric("euclidean", X=shuffled(X))  # other points: the columns are those of the frame
    assert h.column_names == ("age", "price", "weight")
    h.set_metric("precomputed", X=np.ones((12, 12)) - np.eye(12))
    assert h.column_names is None


def test_a_forged_file(tmp_path):
    from evertree.io import snapshot

    h = et.Hierarchy()
    h.insert(named(X))
    for names in (("a",), ("a", "b", 3), ("a", "a", "b"), "abc", {"a": 1, "b": 2, "c": 3}):
        h.state.column_names = names
        h.save(tmp_path / "forged")
        with pytest.raises(CorruptFileError):
            snapshot.load(tmp_path / "forged")


def test_names_are_shown():
    h = et.Hierarchy()
    h.insert(named(X))
    assert repr(h).endswith("12 points, 3 columns of float64: price, weight, age")
    assert "price, weight, age" in h._repr_html_()
    h = et.Hierarchy(column_names=list("abcdefg"))
    h.insert(np.zeros((2, 7)))
    assert repr(h).endswith("7 columns of float64: a, b, c, d, e, …")


def test_scikit_learn():
    model = et.AnytimeClustering(n_clusters=2).fit(named(X))
    assert model.feature_names_in_.tolist() == list(NAMES)
    assert model.hierarchy_.column_names == NAMES
    with pytest.raises(ValueError, match="same order"):  # as in scikit-learn
        model.predict(shuffled(X))
