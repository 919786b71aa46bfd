"""Edits of one point take a shorter way, in one kernel: the tree must be the same to the last bit."""

from __future__ import annotations

import signal

import numpy as np
import pytest

from evertree import edits
from evertree.errors import DimensionError, DuplicateKeyError, MagnitudeError, NotFiniteError, PrecisionWarning
from evertree.kernels.statistics import one_point
from evertree.tree import LiveTree, MeanLiveTree
from helpers import Hierarchy, fingerprint, hard_data

pytestmark = pytest.mark.usefixtures("searched")

MEANS = [("ward", "euclidean"), ("average", "sqeuclidean"), ("average", "cosine")]


def _the_long_way(monkeypatch):
    """Let every tree refuse the shorter way."""
    for name in ("insert_point", "update_point", "remove_point"):
        monkeypatch.setattr(MeanLiveTree, name, getattr(LiveTree, name))


def _edited(x, linkage, metric, goal):
    """A tree after edits of one point each."""
    h = Hierarchy(linkage, metric, goal=goal)
    for i in range(len(x)):
        h.insert(x[i : i + 1])
        if i % 3 == 2:
            h.update([h.keys()[i // 3]], x[i : i + 1])
        if i % 5 == 4:
            h.remove(h.keys()[i // 5])
    return h


@pytest.mark.parametrize("goal", ["stable", "homogeneous"])
@pytest.mark.parametrize(("linkage", "metric"), MEANS)
@pytest.mark.parametrize("name", hard_data())
def test_both_ways_give_the_same_tree(monkeypatch, linkage, metric, goal, name):
    x = hard_data()[name]
    if metric == "cosine":
        x = x + (~x.any(axis=1))[:, None].astype(x.dtype)
    quick = _edited(x, linkage, metric, goal)
    with monkeypatch.context() as patch:
        _the_long_way(patch)
        assert fingerprint(_edited(x, linkage, metric, goal)) == fingerprint(quick)
    quick.validate()


def test_the_shorter_way_is_taken(rng, monkeypatch):
    h = Hierarchy(goal="stable")
    h.insert(rng.normal(size=(20, 3)))
    h.state.live.reserve(20)
    monkeypatch.setattr(edits, "check_insert", None)
    monkeypatch.setattr(edits, "check_update", None)
    monkeypatch.setattr(edits, "check_remove", None)
    assert h.insert(rng.normal(size=(1, 3))) == [20]
    assert h.insert(rng.normal(size=(1, 3)), keys=["a"]) == ["a"]
    h.update("a", rng.normal(size=(1, 3)))
    h.remove("a")
    h.remove(20)
    h.validate()


@pytest.mark.parametrize(
    ("row", "error"),
    [
        ([[0.0, np.nan]], NotFiniteError),
        ([[np.inf, 0.0]], NotFiniteError),
        ([[0.0, 1e200]], MagnitudeError),
        ([[0.0, 1.0, 2.0]], DimensionError),
        ([0.0], DimensionError),
    ],
)
def test_what_is_wrong_with_a_point_is_said(rng, row, error):
    h = Hierarchy(goal="stable")
    h.insert(rng.normal(size=(20, 2)))
    before = fingerprint(h)
    with pytest.raises(error):
        h.insert(np.array(row))
    with pytest.raises(error):
        h.update(3, np.array(row))
    assert fingerprint(h)[1:] == before[1:]
    h.validate()


def test_a_total_weight_that_overflows_is_refused():
    h = Hierarchy(goal="stable")
    h.insert([[1e140], [0.0]], sample_weight=[1e20, 1.0])
    with pytest.raises(MagnitudeError, match="total weight"):
        h.insert(np.array([[9e149]]))
    h.insert(np.array([[1.0]]))
    h.validate()


def test_a_key_that_is_taken(rng):
    h = Hierarchy(goal="stable")
    h.insert(rng.normal(size=(20, 2)), keys=range(20))
    with pytest.raises(DuplicateKeyError):
        h.insert(rng.normal(size=(1, 2)), keys=[3])


def test_float64_into_float32_warns(rng):
    h = Hierarchy(goal="stable")
    h.insert(rng.normal(size=(20, 2)).astype(np.float32))
    with pytest.warns(PrecisionWarning):
        h.insert(rng.normal(size=(1, 2)))


def test_rows_of_any_layout(rng):
    x = rng.normal(size=(30, 4))
    plain, odd = Hierarchy(goal="stable"), Hierarchy(goal="stable")
    for h in (plain, odd):
        h.insert(x[:10])
    locked = np.asfortranarray(x)
    locked.flags.writeable = False
    for i in range(10, 30):
        plain.insert(x[i : i + 1])
        odd.insert(locked[i : i + 1] if i % 2 else x[i : i + 1, ::-1][:, ::-1])
    assert fingerprint(plain) == fingerprint(odd)


def test_a_key_that_cannot_be_stored_takes_its_point_along(rng, monkeypatch):
    h = Hierarchy(goal="stable")
    h.insert(rng.normal(size=(20, 2)), keys=list("abcdefghijklmnopqrst"))
    keys = h.keys()
    with monkeypatch.context() as patch:
        patch.setattr(h.state.keys, "_note", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            h.insert(rng.normal(size=(1, 2)), keys=["z"])
    assert h.keys() == keys
    h.validate()


@pytest.mark.parametrize("name", ["insert_point", "update_point", "remove_point"])
def test_ctrl_c_comes_after_the_edit(rng, monkeypatch, name):
    h = Hierarchy(goal="stable")
    h.insert(rng.normal(size=(20, 2)))
    h.state.live.reserve(2)
    whole = getattr(one_point, name)

    def pressed(*args):
        found = whole(*args)
        signal.raise_signal(signal.SIGINT)
        return found

    row = rng.normal(size=(1, 2))
    edit = {"insert": lambda: h.insert(row), "update": lambda: h.update(3, row), "remove": lambda: h.remove(3)}
    with monkeypatch.context() as patch:
        patch.setattr(one_point, name, pressed)
        with pytest.raises(KeyboardInterrupt):
            edit[name.split("_")[0]]()
    assert len(h) == {"insert_point": 21, "update_point": 20, "remove_point": 19}[name]
    h.validate()


def test_iterators_as_keys(rng):
    h = Hierarchy(goal="stable")
    assert h.insert(rng.normal(size=(1, 2)), keys=iter(["a"])) == ["a"]
    assert h.insert(rng.normal(size=(1, 2)).astype(np.float32), keys=iter(["b"])) == ["b"]
    h.update(iter(["a"]), rng.normal(size=(1, 2)).astype(np.float32))
    h.update(iter(["b"]), rng.normal(size=(1, 2)))
    h.remove(iter(["a"]))
    assert h.keys() == ["b"]
    h.update("b", rng.normal(size=(1, 2)))
    h.remove("b")
    h.validate()
