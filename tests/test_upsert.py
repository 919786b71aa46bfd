"""`upsert`: points that are live are updated and others inserted, all or nothing."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import evertree as et
from evertree.errors import (
    DataError,
    DimensionError,
    DuplicateKeyError,
    InvalidKeyError,
    NotFiniteError,
    TimeError,
    WeightError,
)
from helpers import ONE_OF_EACH

RNG = np.random.default_rng(5)
OLD, NEW = RNG.normal(size=(20, 2)), RNG.normal(size=(6, 2))
KEYS = [3, "a", 7, "b", 19, "c"]  # three live ones among new ones


def wanted():
    """The points, by key, after `NEW` was upserted."""
    points = dict(enumerate(OLD.tolist()))
    points.update(zip(KEYS, NEW.tolist(), strict=True))
    return points


def check(h):
    h.validate()
    points = wanted()
    assert h.keys() == list(points)
    h.refine()
    return points


@pytest.mark.parametrize("goal", ["stable", "homogeneous"])
@pytest.mark.parametrize(("linkage", "metric"), ONE_OF_EACH)
def test_vectors(linkage, metric, goal):
    h = et.Hierarchy(linkage, metric, goal=goal)
    h.insert(OLD)
    assert h.upsert(NEW, keys=KEYS) == ["a", "b", "c"]
    points = check(h)
    np.testing.assert_array_equal(h.points(), list(points.values()))


@pytest.mark.parametrize("linkage", ["single", "complete", "average", "minimax"])
def test_dissimilarities(linkage):
    h = et.Hierarchy(linkage, "precomputed")
    h.insert(cdist(OLD, OLD))
    points = np.array(list(wanted().values()))
    assert h.upsert(cdist(NEW, points), keys=KEYS) == ["a", "b", "c"]
    check(h)
    np.testing.assert_allclose(h.points(), cdist(points, points))


def test_a_function_is_called_once_for_each_pair():
    calls = []

    def metric(a, b):
        calls.append((a, b))
        return abs(a - b)

    h = et.Hierarchy("average", metric)
    h.insert([float(x) for x in range(10)])
    calls.clear()
    assert h.upsert([20.0, 30.0, 40.0], keys=[2, "x", 5]) == ["x"]
    assert len(calls) == 3 * 8 + 3 == len(set(calls))
    assert h.n_dissimilarities == 45 + len(calls)
    h.validate()
    values = [0.0, 1.0, 20.0, 3.0, 4.0, 40.0, 6.0, 7.0, 8.0, 9.0, 30.0]
    assert h.points() == values
    h.refine()
    other = et.Hierarchy("average", metric)
    other.insert(values)
    other.refine()
    np.testing.assert_allclose(h.linkage_matrix()[:, 2], other.linkage_matrix()[:, 2])


def test_only_live_and_only_new_ones():
    h = et.Hierarchy()
    assert h.upsert(OLD[:2], keys=["x", "y"]) == ["x", "y"]
    assert h.upsert(OLD[2:4], keys=["y", "x"]) == []
    assert h.upsert([], keys=[]) == []
    np.testing.assert_array_equal(h.points(["y", "x"]), OLD[2:4])


def test_weights():
    h = et.Hierarchy()
    h.insert(OLD[:2], sample_weight=[2, 3])
    h.upsert(OLD[2:4], keys=[0, "x"])
    assert h.weights().tolist() == [2, 3, 1]
    h.upsert(OLD[2:4], keys=[1, "y"], sample_weight=[7, 8])
    assert h.weights([1, "y"]).tolist() == [7, 8]


@pytest.mark.parametrize(
    ("points", "keys", "weights", "error"),
    [
        ([[1.0, np.nan], [1.0, 2.0]], [0, "x"], None, NotFiniteError),
        ([[1.0, 2.0], [1.0, np.inf]], [0, "x"], None, NotFiniteError),
        ([[1.0, 2.0]], [0, "x"], None, DimensionError),
        ([[1.0], [2.0]], [0, "x"], None, DimensionError),
        ([[1.0, 2.0], [3.0, 4.0]], [0, 0], None, DuplicateKeyError),
        ([[1.0, 2.0], [3.0, 4.0]], [0, ["x"]], None, InvalidKeyError),
        ([[1.0, 2.0], [3.0, 4.0]], [0, "x"], [1, -1], WeightError),
        ([[1.0, 2.0], [3.0, 4.0]], [0, "x"], [1], WeightError),
        ([[1.0, 2.0], [3.0, 4.0]], None, None, InvalidKeyError),
    ],
)
def test_what_is_refused_changes_nothing(points, keys, weights, error):
    h = et.Hierarchy()
    h.insert(OLD)
    before = h.linkage_matrix().tolist(), h.keys(), h.points().tolist(), h.n_moves
    with pytest.raises(error):
        h.upsert(points, keys=keys, sample_weight=weights)
    assert (h.linkage_matrix().tolist(), h.keys(), h.points().tolist(), h.n_moves) == before


def test_a_matrix_that_is_not_symmetric():
    h = et.Hierarchy("single", "precomputed")
    h.insert(cdist(OLD, OLD))
    matrix = cdist(NEW, list(wanted().values()))
    matrix[0, 20] += 1.0  # from key 3, which is live, to "a", which is new
    with pytest.raises(DataError, match="symmetric"):
        h.upsert(matrix, keys=KEYS)
    with pytest.raises(DimensionError, match=r"shape \(6, 23\)"):
        h.upsert(matrix[:, :20], keys=KEYS)
    assert len(h) == 20


@pytest.mark.parametrize("metric", ["euclidean", "precomputed"])
def test_a_window_moves_after_it(metric):
    """An updated point may fall out of the window, and so may some of the new ones."""
    h = et.Hierarchy("average", metric)
    h.insert(OLD if metric == "euclidean" else cdist(OLD, OLD))
    h.keep(last=2)
    assert h.keys() == [18, 19]
    x = {18: OLD[18], 19: NEW[0], "a": NEW[1], "b": NEW[2], "c": NEW[3]}
    matrix = np.array(list(x.values()))
    rows = np.array([x[key] for key in (19, "a", "b", "c")])
    given = rows if metric == "euclidean" else cdist(rows, matrix)
    assert h.upsert(given, keys=[19, "a", "b", "c"]) == ["a", "b", "c"]
    assert h.keys() == ["b", "c"]
    h.validate()


@pytest.mark.parametrize("metric", ["euclidean", "cityblock", "precomputed"])
def test_a_durable_tree_makes_it_again(tmp_path, metric):
    first, then = OLD, NEW
    if metric == "precomputed":
        first, then = cdist(OLD, OLD), cdist(NEW, list(wanted().values()))
    h = et.open(tmp_path / "tree", "average", metric)
    h.insert(first)
    h.upsert(then, keys=KEYS)
    twin = et.open(tmp_path / "tree", read_only=True)  # from the journal
    assert twin.keys() == h.keys() == list(wanted())
    np.testing.assert_array_equal(twin.linkage_matrix(), h.linkage_matrix())
    np.testing.assert_array_equal(twin.points(), h.points())
    h.close()


def test_time_goes_on_without_new_points():
    h = et.Hierarchy()
    h.keep(max_age=10, time=0)
    h.insert([[0.0], [1.0]], keys=["a", "b"], time=0)
    h.insert([[5.0]], keys=["c"], time=9)
    assert h.upsert([[6.0]], keys=["c"], time=15) == []
    assert h.keys() == ["c"]
    assert h.upsert([], keys=[], time=30) == []
    assert len(h) == 0
    with pytest.raises(TimeError):
        h.insert([[1.0]], time=20)
