"""Functions of two points as metrics: any objects, each pair once, compiled ones at their speed."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

import evertree as et
import naive
from evertree import errors
from evertree.input import points
from evertree.kernels.compile import IS_COMPILED
from helpers import Hierarchy, assert_valid_and_homogeneous, definition, fingerprint, nested


def njit(function):
    """A function as users compile it; where Numba is missing, as it is, and tests that need it are skipped."""
    try:
        import numba
    except ImportError:
        return function
    return numba.njit(function)


#: For tests of compiled functions.
needs_numba = pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="Numba compiles metrics of users")

LINKAGES = ["single", "complete", "average", "minimax"]


def edit_distance(s, t):
    row = list(range(len(t) + 1))
    for i, a in enumerate(s, 1):
        previous, row[0] = row[0], i
        for j, b in enumerate(t, 1):
            previous, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, previous + (a != b))
    return row[-1]


def jaccard(s, t):
    return 1 - len(s & t) / len(s | t)


def differing_fields(a, b):
    return sum(a.get(key) != b.get(key) for key in a.keys() | b.keys())


WORDS = ["cat", "cart", "card", "care", "dog", "dig", "dug", "house", "mouse", "moose", "goose", "loose", "cat"]
SETS = [frozenset(word) for word in WORDS]
DICTS = [{"length": len(word), "first": word[0], "last": word[-1]} for word in WORDS]
OBJECTS = {"words": (edit_distance, WORDS), "sets": (jaccard, SETS), "dicts": (differing_fields, DICTS)}


class Counted:
    """A metric that notes which pairs it is called with."""

    def __init__(self, metric):
        self.metric, self.pairs = metric, []

    def __call__(self, p, q):
        self.pairs.append(tuple(sorted([id(p), id(q)])))
        return self.metric(p, q)


@pytest.mark.parametrize("kind", OBJECTS)
@pytest.mark.parametrize("linkage", LINKAGES)
def test_objects_of_any_kind(rng, linkage, kind):
    metric, objects = OBJECTS[kind]
    h = Hierarchy(linkage, metric)
    h.insert(objects[:5])
    for one in objects[5:]:
        h.insert([one])
    assert_valid_and_homogeneous(h)
    assert h.points() == objects
    assert naive.is_homogeneous(nested(h), definition(h))
    h.remove([1, 7])
    h.update([0, 5], [objects[7], objects[1]])
    assert h.points()[0] == objects[7]
    assert_valid_and_homogeneous(h)
    assert naive.is_homogeneous(nested(h), definition(h))
    assert len(set(h.cut(n_clusters=3))) == 3


@pytest.mark.parametrize("linkage", LINKAGES)
def test_each_pair_is_evaluated_once_at_most(linkage):
    words = [word + suffix for word in WORDS for suffix in ("", "s")]
    objects = [[word] for word in words]  # each with an identity of its own
    metric = Counted(lambda p, q: edit_distance(p[0], q[0]))
    h = Hierarchy(linkage, metric)
    h.insert(objects[:10])
    for n, one in enumerate(objects[10:], 10):
        before = len(metric.pairs)
        h.insert([one])
        assert len(metric.pairs) - before == n
    n_calls = len(objects) * (len(objects) - 1) // 2
    assert len(metric.pairs) == len(set(metric.pairs)) == n_calls == h.n_dissimilarities
    h.refine()
    h.remove([3])
    h.set_linkage("average" if linkage != "average" else "complete")
    h.cophenetic()
    et.quality.cophenetic_correlation(h)
    h.prototypes()
    h.copy()
    h.points()
    assert len(metric.pairs) == n_calls


def test_progress_is_told(monkeypatch):
    monkeypatch.setattr(points, "_PROGRESS_EVERY", 0.0)
    calls = []
    h = Hierarchy("complete", edit_distance)
    h.insert(WORDS[:4], progress=lambda done, total: calls.append((done, total)))
    assert calls == [(1, 6), (2, 6), (3, 6), (4, 6), (5, 6), (6, 6), (6, 6)]
    calls.clear()
    h.update([0], ["bat"], progress=lambda done, total: calls.append((done, total)))
    assert calls[-1] == (3, 3)
    with pytest.raises(errors.ParameterError, match="progress must be True, False, None or callable"):
        h.insert(["x"], progress=3)


@njit
def compiled_cityblock(x, y):
    return np.abs(x - y).sum()


@needs_numba
def test_a_compiled_metric(rng):
    x = rng.normal(size=(60, 3))
    for linkage in LINKAGES:
        h = Hierarchy(linkage, compiled_cityblock)
        h.insert(x[:20])
        h.insert(x[20:].tolist())
        expected = Hierarchy(linkage, "cityblock")
        expected.insert(x)
        np.testing.assert_allclose(h.linkage_matrix(), expected.linkage_matrix(), rtol=1e-9)
        h.update([3], [[1, 2, 3]])
        h.remove([5])
        assert_valid_and_homogeneous(h)
        np.testing.assert_array_equal(h.points()[3], [1, 2, 3])
    calls = []
    h.insert(x[:2], progress=lambda done, total: calls.append((done, total)))
    assert calls == [(119, 119)]


def test_vectors_with_a_function(rng):
    """Rows of an array are given as arrays, and the points can be used with any other metric."""
    x = rng.normal(size=(30, 2))
    h = Hierarchy("single", lambda p, q: float(np.abs(p - q).max()))
    h.insert(x)
    expected = Hierarchy("single", "chebyshev")
    expected.insert(x)
    np.testing.assert_allclose(h.linkage_matrix(), expected.linkage_matrix())
    np.testing.assert_array_equal(h.points(), x)
    h.insert([[0.0, 0.0]])
    assert h.set_linkage("ward", metric="euclidean").homogeneous
    assert_valid_and_homogeneous(h)


def test_what_a_function_gives_must_be_a_dissimilarity():
    h = Hierarchy("average", edit_distance)
    h.insert(WORDS[:3])
    before = fingerprint(h)
    for bad, error, message in (
        (-1.0, errors.DataError, "not negative .* gave -1.0 for point 0 of X and live point 0"),
        (np.nan, errors.NotFiniteError, "must give finite numbers"),
        (1e200, errors.MagnitudeError, "and at most 1e"),
        (10**400, errors.NotNumericError, "metric must give numbers"),
        (np.inf, errors.NotFiniteError, "must give finite numbers"),
        ("far", errors.NotNumericError, "metric must give numbers; it gave 'far'"),
        (None, errors.NotNumericError, "metric must give numbers; it gave None"),
    ):
        h.state.live.scheme.metric = lambda p, q, bad=bad: bad
        with pytest.raises(error, match=message):
            h.insert(["x"])
    h.state.live.scheme.metric = edit_distance

    def fails(p, q):
        raise ZeroDivisionError("by the user")

    with pytest.raises(ZeroDivisionError, match="by the user"):
        h.set_metric(fails)
    with pytest.raises(errors.NotNumericError, match="must be a collection of points"):
        h.insert("word")
    with pytest.raises(errors.NotNumericError, match="must be a collection of points"):
        h.insert({"a": 1})
    with pytest.raises(errors.NotNumericError, match="must be a collection of points"):
        h.insert(5)
    with pytest.raises(errors.ParameterError, match="metric_params must be None"):
        Hierarchy("single", edit_distance, metric_params={"p": 2})
    assert fingerprint(h) == before
    with pytest.raises(errors.DimensionError, match=r"use X.reshape\(1, -1\)"):
        Hierarchy("single", edit_distance).insert(np.arange(3.0))
    with pytest.raises(errors.DimensionError, match=r"use list\(X\)"):
        h.insert(np.arange(3.0))
    with pytest.raises(errors.NotNumericError, match="must be a collection of points"):
        h.insert(np.array("abc"))


class Table:
    """What a data frame looks like: an array of objects that iterates over its columns."""

    columns = ("name", "city")

    def __array__(self, dtype=None, copy=None):
        return np.array([["a", "b"], ["c", "d"]], object)

    def __iter__(self):
        return iter(self.columns)


def test_a_table_of_text_is_refused():
    with pytest.raises(errors.NotNumericError, match=r"it is a table: use X.to_dict\('records'\)"):
        Hierarchy("single", edit_distance).insert(Table())


@pytest.mark.parametrize("dtype", [np.bool_, np.uint64, np.int32, np.float32])
def test_rows_of_an_array_come_as_they_are(dtype):
    """Bits, integers and floats keep their type, for the function and in points()."""
    seen = set()

    def metric(p, q):
        seen.update([p.dtype, q.dtype])
        return int((p != q).sum())

    x = np.array([[0, 1, 1], [1, 0, 1], [1, 1, 1]]).astype(dtype)
    if dtype == np.uint64:
        x[0] = 2**63 + np.arange(3, dtype=np.uint64)
    h = Hierarchy("average", metric)
    h.insert(x[:2])
    h.insert(x[2:])
    assert seen == {np.dtype(dtype)}
    assert h.points().dtype == dtype
    np.testing.assert_array_equal(h.points(), x)
    h.insert([[0.5, 0.5, 0.5]])  # and where they must, they change it
    np.testing.assert_array_equal(h.points()[:3], x)
    assert h.points()[3, 0] == 0.5
    assert_valid_and_homogeneous(h)


def test_callbacks_may_not_edit_the_hierarchy():
    h = Hierarchy("single", lambda p, q: abs(p - q))
    h.insert([0.0, 10.0, 20.0])
    before = fingerprint(h)
    with pytest.raises(errors.ParameterError, match="changed by its own metric or progress callback"):
        h.insert([60.0], progress=lambda done, total: 0 in h and h.insert([5.0], progress=None))
    h.remove([3])
    assert fingerprint(h)[2] == before[2]
    assert_valid_and_homogeneous(h)


@pytest.mark.parametrize("verb", ["insert", "locate", "score_samples"])
def test_metrics_may_not_edit_the_hierarchy(verb):
    edits = []

    def metric(p, q):
        if edits:
            edits.pop()()
        return abs(p - q)

    h = Hierarchy("single", metric)
    h.insert([0.0, 10.0, 20.0, 40.0])
    for edit in (lambda: h.remove([0]), lambda: h.keep(last=2)):
        edits.append(edit)
        with pytest.raises(errors.ParameterError, match=r"changed by its own metric|must not edit"):
            getattr(h, verb)([60.0, 70.0])
        assert_valid_and_homogeneous(h)
    assert h.keys() == ([2, 3] if verb == "insert" else [0, 1, 2, 3])  # who reads it is not let in to edit it
    empty = Hierarchy("single", metric)
    edits.append(lambda: empty.set_metric("euclidean"))
    with pytest.raises(errors.ParameterError, match="changed by its own metric"):
        empty.insert([1.0, 2.0])
    assert len(empty) == 0


def test_cheap_checks_come_before_calls():
    metric = Counted(lambda p, q: abs(p - q))
    h = Hierarchy("single", metric)
    h.insert([0.0, 1.0], keys=["a", "b"])
    n_calls = len(metric.pairs)
    with pytest.raises(errors.DuplicateKeyError):
        h.insert([2.0, 3.0], keys=["c", "a"])
    with pytest.raises(errors.WeightError):
        h.insert([2.0], sample_weight=[-1.0])
    with pytest.raises(errors.WeightError):
        h.update(["a"], [2.0], sample_weight=[-1.0])
    with pytest.raises(errors.DimensionError, match="X must have 2 points"):
        h.set_metric(Counted(metric), X=[1.0, 2.0, 3.0])
    assert len(metric.pairs) == n_calls


def test_an_emptied_hierarchy_may_hold_anything_else(rng):
    h = Hierarchy("single", edit_distance)
    h.insert(WORDS)
    h.remove(h.keys())
    h.set_metric("euclidean")
    h.insert(rng.normal(size=(5, 2)))
    assert_valid_and_homogeneous(h)
    h.remove(h.keys())
    h.set_metric("precomputed")
    h.insert(np.ones((2, 2)) - np.eye(2))
    h.remove(h.keys())
    with pytest.raises(errors.DimensionError, match="X must be None for an empty hierarchy; it has 2 points"):
        h.set_metric("euclidean", X=[[1.0], [2.0]])
    h.set_linkage("ward", metric="euclidean")
    h.insert(rng.normal(size=(5, 3)))
    assert_valid_and_homogeneous(h)


@njit
def differing_letters(s, t):
    return abs(len(s) - len(t))


@needs_numba
def test_a_compiled_metric_of_other_objects():
    h = Hierarchy("complete", differing_letters)
    h.insert(WORDS)
    assert_valid_and_homogeneous(h)
    assert h.points() == WORDS


@njit
def gives_an_array(x, y):
    return x - y


@needs_numba
@pytest.mark.skipif(not IS_COMPILED, reason="the compiler is off")
def test_a_compiled_metric_that_gives_no_number():
    with pytest.raises(errors.ParameterError, match="metric must be a compiled function of two arrays of float64"):
        Hierarchy("complete", gives_an_array).insert(np.ones((2, 2)))


def test_save_and_load(tmp_path):
    points = [*WORDS, ("a", 1), {"set": {1, 2}}, b"x", None]
    h = Hierarchy("complete", lambda p, q: float(p != q))
    h.insert(points)
    h.save(tmp_path / "tree")
    read = et.load(tmp_path / "tree")
    assert read.points() == points
    np.testing.assert_array_equal(read.linkage_matrix(), h.linkage_matrix())
    read.remove([2])
    read.refine()
    assert_valid_and_homogeneous(read)
    with pytest.raises(errors.ParameterError, match="is a function, which a file cannot hold: give it as metric="):
        read.insert(["new"])
    whole = et.load(tmp_path / "tree", metric=h.metric)
    whole.insert(["new"])
    assert_valid_and_homogeneous(whole)
    with pytest.raises(errors.ParameterError, match="metric must be a function"):
        et.load(tmp_path / "tree", metric="euclidean")
    h.insert([object()])
    with pytest.raises(errors.NotSavableError, match="this one is of type object"):
        h.save(tmp_path / "tree")
    plain = Hierarchy()
    plain.insert([[0.0]])
    plain.save(tmp_path / "plain")
    with pytest.raises(errors.ParameterError, match="its metric is 'euclidean'"):
        et.load(tmp_path / "plain", metric=edit_distance)
