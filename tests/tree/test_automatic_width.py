"""``search_width="auto"``: exact where that is cheap, and the heuristic width beyond."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import evertree as et
from evertree.errors import ParameterError
from evertree.tree import statistics

#: The limits of the trees in these tests.
N_POINTS, N_MEGABYTES = 30, 30 * 30 // 2 * 8 / 2**20

SCHEMES = [("ward", "euclidean"), ("average", "sqeuclidean"), ("average", "euclidean"), ("complete", "cityblock")]


@pytest.fixture(autouse=True)
def _limits(monkeypatch):
    monkeypatch.setattr(statistics, "MOST_EXACT", N_POINTS)


def new(linkage="ward", metric="euclidean", **options):
    return et.Hierarchy(linkage, metric, working_memory=N_MEGABYTES, **options)


def insert(h, rng, count):
    return h.insert(rng.uniform(1, 2, size=(count, 3)))


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize(("linkage", "metric"), SCHEMES)
def test_exact_as_far_as_the_limit(rng, linkage, metric, n_jobs):
    h = new(linkage, metric, n_jobs=n_jobs)
    assert h.search_width == "auto"
    while len(h) < N_POINTS:
        insert(h, rng, 3)
        assert h.state.live.is_exact
        h.certify()
    assert h.refine().certified
    insert(h, rng, 1)
    assert not h.state.live.is_exact
    report = h.refine()
    assert report.stable
    assert not report.certified
    assert h.search_width == "auto"


@pytest.mark.parametrize("count", [3, 20, 40])
@pytest.mark.parametrize(("linkage", "metric"), SCHEMES)
def test_over_the_limit_and_back(rng, linkage, metric, count):
    """A tree that has become small is exact again only well below the limit, once it is refined."""
    h = new(linkage, metric)
    while len(h) <= N_POINTS:
        insert(h, rng, count)
    h.refine()
    h.remove(h.keys()[: len(h) - 2 * N_POINTS // 3])
    assert not h.refine().certified
    h.remove(h.keys()[: len(h) - N_POINTS // 3])
    assert h.refine().certified
    h.certify()
    insert(h, rng, 2)
    assert h.state.live.is_exact
    h.certify()


@pytest.mark.parametrize(("linkage", "metric"), SCHEMES)
def test_by_upserts_and_windows(rng, linkage, metric):
    h = new(linkage, metric)
    h.keep(last=N_POINTS + 10)
    for start in range(0, 80, 5):
        h.upsert(rng.uniform(1, 2, size=(8, 3)), keys=range(start, start + 8))
        h.validate()
        assert h.state.live.is_exact == (len(h) <= N_POINTS)
    h.keep(last=10)
    assert h.refine().certified
    h.certify()


@pytest.mark.parametrize("how", ["copied", "pickled", "saved", "durable"])
@pytest.mark.parametrize(("linkage", "metric"), SCHEMES)
def test_another_of_the_same_goes_the_same_way(rng, linkage, metric, how, tmp_path):
    h = new(linkage, metric)
    if how == "durable":
        h = et.open(tmp_path / "tree", linkage=linkage, metric=metric, working_memory=N_MEGABYTES)
    twin = new(linkage, metric)
    points = rng.uniform(1, 2, size=(100, 3))
    for k in range(24):
        if k % 8 < 5:
            x = points[4 * k : 4 * k + 4]
            h.insert(x, keys=range(4 * k, 4 * k + 4))
            twin.insert(x, keys=range(4 * k, 4 * k + 4))
        else:
            gone = h.keys()[1::2]
            h.remove(gone)
            twin.remove(gone)
        if k % 3 == 0:
            h.refine()
            twin.refine()
        if how == "copied":
            h = h.copy()
        elif how == "pickled":
            h = pickle.loads(pickle.dumps(h))
        elif how == "saved":
            h.save(tmp_path / "tree")
            h = et.load(tmp_path / "tree")
        elif k % 4 == 3:
            h.close()
            h = et.open(tmp_path / "tree")
        h.validate()
        assert h.state.live.width == twin.state.live.width
        np.testing.assert_array_equal(h.linkage_matrix(), twin.linkage_matrix())
    if how == "durable":
        h.close()


@pytest.mark.parametrize(("linkage", "metric"), SCHEMES)
def test_another_linkage(rng, linkage, metric):
    h = new("single", "euclidean")
    insert(h, rng, 20)
    h.set_linkage(linkage)
    h.set_metric(metric)
    assert h.refine().certified
    h.certify()
    insert(h, rng, 1)
    h.certify()


def test_the_paper_has_no_width(rng):
    h = new(goal="homogeneous")
    insert(h, rng, 20)
    assert not h.state.live.is_exact
    assert h.is_homogeneous()


def test_what_it_may_be():
    for width in ("wide", 0, 2.5, True):
        with pytest.raises(ParameterError, match="'auto', a positive integer, or None"):
            et.Hierarchy(search_width=width)
