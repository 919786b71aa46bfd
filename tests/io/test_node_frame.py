"""The tree as a data frame of pandas."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest

from evertree.errors import MissingExtraError
from evertree.io import to_node_frame
from matrices import N_DEEP, PAIR, caterpillar, random_linkage


@pytest.mark.parametrize("n", [0, 1, 2, 30])
def test_frame(rng, n):
    Z, keys = random_linkage(rng, n), [("key", i) for i in range(n)]
    frame = to_node_frame(Z, keys)
    assert frame.index.name == "node"
    assert list(frame.index) == list(range(max(2 * n - 1, 0)))
    assert {name: str(dtype) for name, dtype in frame.dtypes.items()} == {
        "parent": "Int64", "left": "Int64", "right": "Int64", "height": "float64", "size": "int64", "key": "object",
    }  # fmt: skip
    leaves, inner = frame.iloc[:n], frame.iloc[n:]
    assert leaves["key"].tolist() == keys
    assert all(key is None for key in inner["key"])
    assert leaves[["left", "right"]].isna().all(axis=None)
    assert np.array_equal(inner[["left", "right", "height", "size"]].to_numpy(float), Z)
    assert (leaves["height"] == 0).all()
    assert (leaves["size"] == 1).all()
    if n > 0:
        assert frame["parent"].iloc[-1] is pd.NA
        assert not frame["parent"].iloc[:-1].isna().any()
    for node, row in inner.iterrows():
        assert frame["parent"][row["left"]] == frame["parent"][row["right"]] == node


def test_frame_keeps_the_types_of_keys():
    assert [type(key) for key in to_node_frame(PAIR, [1, "1"])["key"]] == [int, str, type(None)]
    assert [type(key) for key in to_node_frame(PAIR, ["a", "b"])["key"]] == [str, str, type(None)]
    assert [type(key) for key in to_node_frame(PAIR, [1, 2])["key"]] == [int, int, type(None)]


def test_deep_frame(seconds):
    assert len(to_node_frame(caterpillar(N_DEEP), range(N_DEEP))) == 2 * N_DEEP - 1


def test_missing_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError) as caught:
        to_node_frame(PAIR, ["a", "b"])
    assert str(caught.value) == "to_frame needs pandas: pip install 'evertree[pandas]'"
