"""Where points would go, without inserting them."""

from __future__ import annotations

import os

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import evertree as et
from evertree import kernels
from evertree.errors import DimensionError, EmptyHierarchyError, NotFiniteError, ParameterError
from evertree.io import snapshot
from evertree.kernels.columns import SEARCH_STATE
from evertree.tree import incoming
from helpers import ONE_OF_EACH

GOALS = ["stable", "homogeneous"]
COMPILED = os.environ.get("NUMBA_DISABLE_JIT", "0") == "0"


def state(h):
    """All that a reader must not change."""
    return h.linkage_matrix().tolist(), h.keys(), h.n_moves, h.n_grafts, h.n_dissimilarities, h.n_bytes


def check(h, x, place, distances):
    """A place against the definition, and against a real insertion, where no move follows it."""
    assert place.nearest == h.keys()[int(distances.argmin())]
    assert place.distance == pytest.approx(distances.min())
    assert list(place.path) == h.ancestors(h.members(place.beside)[0])[-len(place.path) :] or not place.path
    inserted = h.copy()
    inserted.insert([x], keys=["new"])
    if inserted.n_moves == h.n_moves:
        leaf = inserted.leaf("new")
        assert inserted.members(inserted.sibling(leaf)) == h.members(place.beside)
        assert inserted.height(inserted.parent(leaf)) == pytest.approx(place.height)
        return 1
    return 0


@pytest.mark.parametrize("goal", GOALS)
@pytest.mark.parametrize(("linkage", "metric"), ONE_OF_EACH)
def test_a_place_is_where_insertion_goes(rng, linkage, metric, goal):
    x, new = rng.normal(size=(40, 2)), 1.5 * rng.normal(size=(16, 2))
    h = et.Hierarchy(linkage, metric, goal=goal)
    h.insert(x)
    before = state(h)
    places = h.locate(new)
    assert state(h) == before
    h.validate()
    distances = cdist(new, x, metric)
    assert sum(check(h, point, place, row) for point, place, row in zip(new, places, distances, strict=True)) > 2


@pytest.mark.parametrize("goal", GOALS)
@pytest.mark.parametrize("linkage", ["single", "complete", "average", "minimax"])
def test_dissimilarities_and_functions_give_the_same(rng, linkage, goal):
    x, new = rng.normal(size=(25, 2)), rng.normal(size=(4, 2))
    by_vectors = et.Hierarchy(linkage, goal=goal)
    by_matrix = et.Hierarchy(linkage, "precomputed", goal=goal)
    by_function = et.Hierarchy(linkage, lambda a, b: float(cdist([a], [b])[0, 0]), goal=goal)
    by_vectors.insert(x)
    by_matrix.insert(cdist(x, x))
    by_function.insert(list(x))
    wanted = by_vectors.locate(new)
    before = state(by_function)
    for found in (by_matrix.locate(cdist(new, x)), by_function.locate(list(new))):
        assert [place.nearest for place in found] == [place.nearest for place in wanted]
        np.testing.assert_allclose([place.height for place in found], [place.height for place in wanted])
    assert state(by_function) == before


@pytest.mark.parametrize("count", [1, 2, 7, 90])
def test_more_points_than_there_are(rng, count):
    """Room is made for all of them at once."""
    x, new = rng.normal(size=(3, 2)), rng.normal(size=(count, 2))
    by_matrix = et.Hierarchy("single", "precomputed")
    by_matrix.insert(cdist(x, x))
    by_function = et.Hierarchy("single", lambda a, b: float(cdist([a], [b])[0, 0]))
    by_function.insert(list(x))
    for found in (by_matrix.locate(cdist(new, x)), by_function.locate(list(new))):
        assert [place.nearest for place in found] == cdist(new, x).argmin(axis=1).tolist()


def test_a_function_is_not_called_for_pairs_of_new_points():
    calls = []

    def metric(a, b):
        calls.append((a, b))
        return abs(len(a) - len(b))

    h = et.Hierarchy("single", metric)
    h.insert(["a", "bbb"])
    calls.clear()
    assert [place.nearest for place in h.locate(["xx", "yyyy", "z"])] == [0, 1, 0]
    assert len(calls) == 6
    with pytest.raises(et.errors.DataError):
        h.locate("text")


def test_each_point_is_alone(rng):
    """The places of many are those of each."""
    h = et.Hierarchy()
    h.insert(rng.normal(size=(50, 3)))
    new = rng.normal(size=(10, 3))
    assert h.locate(new) == [h.locate([point])[0] for point in new]


def test_points_that_are_there_find_themselves(rng):
    x = rng.normal(size=(60, 3))
    h = et.Hierarchy()
    h.insert(x)
    for key, place in enumerate(h.locate(x)):
        assert place.nearest == key
        assert place.distance == 0
        assert place.height == 0
        assert h.members(place.beside) == [key]


def test_rejection():
    h = et.Hierarchy("single")
    h.insert([[0.0], [1.0], [5.0]])
    near, far = h.locate([[5.5], [30.0]])
    assert (near.rejected, far.rejected) == (False, True)
    assert far.reason == "would join at 25, above the root, which is at 4"
    assert near.reason == "would join at 0.5, not above the root, which is at 4"
    assert h.locate([[5.5]], reject_above=0.4)[0].reason == "would join at 0.5, above 0.4"
    assert not h.locate([[5.5]], reject_above=0.5)[0].rejected


@pytest.mark.parametrize("n", [1, 2])
def test_small_trees(n):
    h = et.Hierarchy()
    h.insert(np.arange(float(n)).reshape(-1, 1))
    (place,) = h.locate([[5.0]])
    assert place.nearest == n - 1
    assert h.locate(np.empty((0, 1))) == []
    assert place.rejected == (n > 1)  # one point does not say what is far


def test_bad_input(rng):
    with pytest.raises(EmptyHierarchyError, match="locate needs at least one point"):
        et.Hierarchy().locate([[1.0]])
    h = et.Hierarchy()
    h.insert(rng.normal(size=(5, 2)))
    with pytest.raises(DimensionError, match="2 columns"):
        h.locate([[1.0]])
    with pytest.raises(NotFiniteError):
        h.locate([[1.0, np.nan]])
    with pytest.raises(ParameterError, match="reject_above must be a non-negative number; it is -1"):
        h.locate([[1.0, 2.0]], reject_above=-1)
    h = et.Hierarchy("single", "precomputed")
    h.insert(np.ones((4, 4)) - np.eye(4))
    with pytest.raises(DimensionError, match="X must have 4 columns"):
        h.locate(np.ones((1, 5)))


@pytest.mark.parametrize(("linkage", "metric"), ONE_OF_EACH)
def test_many_points_are_located_piece_by_piece(linkage, metric, rng, monkeypatch):
    """So that Ctrl-C is heard in between; and the answers are the same."""
    h = et.Hierarchy(linkage, metric)
    h.insert(rng.normal(size=(20, 2)))
    x = rng.normal(size=(12, 2))
    whole, sizes, find = h.locate(x), [], kernels.shared.locate.find_places
    scores = h.anomaly_scores(x)

    def counted(tree, search, tag, leaves, *rest):
        sizes.append(leaves.size)
        find(tree, search, tag, leaves, *rest)

    monkeypatch.setattr(kernels.shared.locate, "find_places", counted)
    monkeypatch.setattr(incoming, "GUESTS_AT_ONCE", 7)
    assert h.locate(x) == whole
    assert sizes == [7, 5]
    assert h.anomaly_scores(x).tolist() == scores.tolist()


def written(h):
    """All that would be written to a file, but for the number of the last search."""
    header, arrays = snapshot.contents(h.state)
    arrays["search.state"] = arrays["search.state"].copy().view(SEARCH_STATE)
    arrays["search.state"]["stamp"] = 0
    return header, {name: array.tobytes() for name, array in arrays.items()}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("goal", GOALS)
@pytest.mark.parametrize(("linkage", "metric"), ONE_OF_EACH)
@pytest.mark.parametrize("is_full", [False, True])
def test_nothing_of_the_tree_changes(rng, linkage, metric, goal, dtype, is_full, monkeypatch):
    """Not a bit of what is saved, with free rows and without, nor of what edits make of it afterwards."""
    x = rng.normal(size=(60, 2)).astype(dtype)
    h = et.Hierarchy(linkage, metric, goal=goal)
    if COMPILED and dtype == np.float32 and not h.state.live.scheme.has_statistics:
        pytest.skip("it takes minutes to compile, and is tested with the compiler off")
    h.insert(x[:40])
    if not is_full:
        h.remove([3, 17, 30])
    h.refine(moves=5)
    twin = h.copy()
    before, weight = written(h), h.state.live._lightest
    new = 3 * rng.normal(size=(70, 2)).astype(dtype)
    places, scores = h.locate(new), h.anomaly_scores(new)
    assert written(h) == before
    assert h.state.live._lightest == weight
    monkeypatch.setattr(type(h.state.live), "find_places", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        h.locate(new)
    monkeypatch.undo()
    assert written(h) == before
    assert (h.locate(new), h.anomaly_scores(new).tolist()) == (places, scores.tolist())
    for tree in (h, twin):
        tree.insert(x[40:])
        tree.refine()
        tree.validate()
    np.testing.assert_array_equal(h.linkage_matrix(), twin.linkage_matrix())


@pytest.mark.parametrize("goal", GOALS)
def test_the_nearest_point_is_found_exactly(rng, goal):
    for trial in range(20):
        n_columns = 1 + trial % 3
        x = rng.integers(0, 6, size=(40, n_columns)) + (1e6 if trial % 4 == 3 else 0.0)  # with ties and duplicates
        new = rng.integers(-1, 7, size=(30, n_columns)) + (1e6 if trial % 4 == 3 else 0.0)
        h = et.Hierarchy.random(x, goal=goal, seed=trial) if trial % 2 else et.Hierarchy(goal=goal)
        if not len(h):
            h.insert(x)
        distances = cdist(new, x)
        places = h.locate(new)
        assert [place.nearest for place in places] == distances.argmin(axis=1).tolist()  # the oldest of equal ones
        np.testing.assert_allclose([place.distance for place in places], distances.min(axis=1), rtol=1e-12)


@pytest.mark.parametrize("metric", ["euclidean", "precomputed"])
def test_no_points_are_nowhere(metric):
    h = et.Hierarchy("single", metric)
    h.insert([[0.0, 1.0], [1.0, 0.0]])
    assert h.locate([]) == []
    assert h.locate(np.empty((0, 2))) == []


def test_looking_at_large_values_refuses_nothing_later():
    h = et.Hierarchy()
    h.insert([[0.0], [1.0], [2.0]], sample_weight=[1e60] * 3)
    h.locate([[1e120]])
    h.check([[1e120]])
    h.insert([[2.0]], sample_weight=[1e65])
