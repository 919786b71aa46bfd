"""Functions of two points as metrics: any objects, each pair once, compiled ones at their speed."""

from __future__ import annotations

import numba
import numpy as np
import pytest

import evertree as et
import naive
from evertree import Hierarchy, errors
from helpers import assert_valid_and_homogeneous, definition, fingerprint, nested

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
    monkeypatch.setattr(et.incoming, "_PROGRESS_EVERY", 0.0)
    calls = []
    h = Hierarchy("complete", edit_distance)
    h.insert(WORDS[:4], progress=lambda done, total: calls.append((done, total)))
    assert calls == [(1, 6), (2, 6), (3, 6), (4, 6), (5, 6), (6, 6), (6, 6)]
    calls.clear()
    h.update([0], ["bat"], progress=lambda done, total: calls.append((done, total)))
    assert calls[-1] == (3, 3)
    with pytest.raises(errors.ParameterError, match="progress must be None or callable"):
        h.insert(["x"], progress=3)


@numba.njit
def compiled_cityblock(x, y):
    return np.abs(x - y).sum()


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
        (-1.0, errors.DataError, "not negative; .* gave -1.0 for point 0 of X and live point 0"),
        (np.nan, errors.NotFiniteError, "must give finite numbers"),
        (np.inf, errors.NotFiniteError, "must give finite numbers"),
        ("far", errors.NotNumericError, "metric must give numbers; it gave 'far'"),
        (None, errors.NotNumericError, "metric must give numbers; it gave None"),
    ):
        h._live.scheme.metric = lambda p, q, bad=bad: bad
        with pytest.raises(error, match=message):
            h.insert(["x"])
    h._live.scheme.metric = edit_distance

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
    with pytest.raises(errors.ParameterError, match=r"is a function, .*load\(path, metric=...\)"):
        read.insert(["new"])
    whole = et.load(tmp_path / "tree", metric=h.metric)
    whole.insert(["new"])
    assert_valid_and_homogeneous(whole)
    with pytest.raises(errors.ParameterError, match="metric must be a function"):
        et.load(tmp_path / "tree", metric="euclidean")
    h.insert([object()])
    with pytest.raises(errors.NotSavableError, match="this one is a object"):
        h.save(tmp_path / "tree")
    plain = Hierarchy()
    plain.insert([[0.0]])
    plain.save(tmp_path / "plain")
    with pytest.raises(errors.ParameterError, match="its metric is 'euclidean'"):
        et.load(tmp_path / "plain", metric=edit_distance)
