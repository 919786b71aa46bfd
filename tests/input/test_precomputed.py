"""Dissimilarities that the user has: rows come in, rows are used again, and everything works as with points."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import pdist, squareform

import evertree as et
import naive
from evertree import errors
from helpers import Hierarchy, assert_valid_and_homogeneous, definition, fingerprint, nested

LINKAGES = ["single", "complete", "average", "minimax"]


def matrix(rng, n, ties=False):
    """Any symmetric matrix; not a metric."""
    d = rng.integers(1, 6, size=(n, n)).astype(float) if ties else rng.uniform(0.1, 1, size=(n, n))
    d = np.triu(d, 1)
    return d + d.T


class Table:
    """All dissimilarities there will ever be, by key, and the arrays that a hierarchy takes."""

    def __init__(self, rng, n, ties):
        self.d = matrix(rng, n, ties)

    def between(self, keys, others):
        return self.d[np.ix_(keys, others)]


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("linkage", LINKAGES)
def test_any_edits_agree_with_the_definition(rng, linkage, ties):
    table = Table(rng, 60, ties)
    h = Hierarchy(linkage, "precomputed")
    fresh = iter(range(60))
    for step in range(25):
        live = h.keys()
        if step % 4 == 3 and len(live) > 6:
            h.remove(rng.choice(live, 3, replace=False).tolist())
        elif step % 4 == 2 and live:
            changed = rng.choice(live, min(2, len(live)), replace=False).tolist()
            change = np.triu(rng.integers(1, 6, size=(60, 60)) * 1.0, 1)
            for key in changed:
                table.d[key], table.d[:, key] = (change + change.T)[key], (change + change.T)[:, key]
            h.update(changed, table.between(changed, live))
        else:
            keys = [next(fresh) for _ in range(int(rng.integers(1, 4)))]
            h.insert(table.between(keys, live + keys), keys=keys)
        np.testing.assert_array_equal(h.points(), table.between(h.keys(), h.keys()))
        assert_valid_and_homogeneous(h)
        if len(h) > 2:
            assert naive.is_homogeneous(nested(h), definition(h))


@pytest.mark.parametrize("linkage", LINKAGES)
def test_the_same_as_with_points(rng, linkage):
    x = rng.normal(size=(80, 3))
    points, distances = Hierarchy(linkage), Hierarchy(linkage, "precomputed")
    points.insert(x)
    distances.insert(squareform(pdist(x)))
    np.testing.assert_allclose(points.linkage_matrix(), distances.linkage_matrix(), rtol=1e-9)


def test_square_condensed_and_mapped_matrices_start_the_same_tree(rng, tmp_path):
    condensed = pdist(rng.normal(size=(50, 2)))
    square = squareform(condensed)
    np.save(tmp_path / "d.npy", square)
    mapped = np.load(tmp_path / "d.npy", mmap_mode="r")
    trees = []
    for d in (square, condensed, mapped, np.asfortranarray(square)):
        h = Hierarchy("complete", "precomputed")
        h.insert(d)
        trees.append(h.linkage_matrix())
        assert_valid_and_homogeneous(h)
        again = Hierarchy.random(d, "complete", "precomputed")
        assert again.refine().homogeneous
    for tree in trees[1:]:
        np.testing.assert_array_equal(tree, trees[0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_storage_has_the_type_that_was_given(rng, dtype):
    d = matrix(rng, 20).astype(dtype)
    h = Hierarchy("average", "precomputed")
    h.insert(d[:10, :10])
    h.insert(d[10:, :].astype(np.float64))
    assert h.state.live.tree.pairs.x.dtype == h.points().dtype == dtype
    np.testing.assert_array_equal(h.points(), d)
    assert_valid_and_homogeneous(h)


def test_values_that_the_storage_cannot_hold_are_refused():
    h = Hierarchy("average", "precomputed")
    h.insert(np.array([[0, 1], [1, 0]], np.float32))
    with pytest.raises(errors.MagnitudeError, match=r"at most 3\.4e"):
        h.insert([[1e39, 1.0, 0.0]])
    assert_valid_and_homogeneous(h)


def test_rows_of_deleted_points_are_used_again(rng):
    d = matrix(rng, 200)
    h = Hierarchy("single", "precomputed")
    h.insert(d[:40, :40])
    size = h.state.live.tree.pairs.x.size
    for first in range(40, 200, 10):
        live = h.keys()[10:]
        h.remove(h.keys()[:10])
        keys = list(range(first, first + 10))
        h.insert(d[np.ix_(keys, live + keys)], keys=keys)
        assert_valid_and_homogeneous(h)
    assert h.state.live.tree.pairs.x.size == size
    np.testing.assert_array_equal(h.points(), d[np.ix_(h.keys(), h.keys())])


def test_one_row_updates_one_key(rng):
    d = matrix(rng, 10)
    h = Hierarchy("complete", "precomputed")
    h.insert(d)
    row = rng.uniform(1, 2, size=10)
    row[4] = 0
    h.update(4, row)
    d[4], d[:, 4] = row, row
    np.testing.assert_array_equal(h.points(), d)
    assert_valid_and_homogeneous(h)


BAD = {
    "not square": (np.zeros((3, 4)), errors.DimensionError, r"must be a square matrix .*its shape is \(3, 4\)"),
    "no triangle": (np.zeros(4), errors.DimensionError, "4 values are no triangle"),
    "three dimensions": (np.zeros((2, 2, 2)), errors.DimensionError, "must be a square matrix"),
    "negative": ([[0.0, -1.0], [-1.0, 0.0]], errors.DataError, "must be not negative; some are: see rows 0, 1"),
    "not finite": ([[0.0, np.nan], [np.nan, 0.0]], errors.NotFiniteError, "NaN or infinity: see rows 0, 1"),
    "too large": ([[0.0, 1e200], [1e200, 0.0]], errors.MagnitudeError, "must be at most 1e"),
    "diagonal": ([[0.0, 1.0], [1.0, 0.5]], errors.DataError, "must have zeros on its diagonal, .* see row 1"),
    "asymmetric": ([[0.0, 1.0], [2.0, 0.0]], errors.DataError, "must be symmetric; points 0 and 1 have 1.0 and 2.0"),
    "a number": (5.0, errors.DimensionError, "must be a square matrix"),
    "text": ([["a"]], errors.NotNumericError, "X must be an array of"),
}


@pytest.mark.parametrize("what", BAD)
def test_what_is_no_dissimilarity_is_refused(what):
    d, error, message = BAD[what]
    h = Hierarchy("average", "precomputed")
    with pytest.raises(error, match=message):
        h.insert(d)
    assert len(h) == 0


def test_wrong_shapes_and_asymmetry_later_leave_all_as_it_was(rng):
    d = matrix(rng, 12)
    h = Hierarchy("average", "precomputed")
    h.insert(d[:10, :10])
    before = fingerprint(h)
    with pytest.raises(errors.DimensionError, match=r"must have shape \(k, 10 \+ k\).*its shape is \(2, 10\)"):
        h.insert(d[10:, :10])
    with pytest.raises(errors.DimensionError, match=r"must have shape \(2, 10\)"):
        h.update([0, 1], d[:2, :9])
    crooked = d[10:].copy()
    crooked[0, 11] += 1
    with pytest.raises(errors.DataError, match="must be symmetric; points 0 and 1"):
        h.insert(crooked)
    two = d[:2, :10].copy()
    two[0, 1] += 1
    with pytest.raises(errors.DataError, match="must be symmetric"):
        h.update([0, 1], two)
    assert fingerprint(h) == before


def test_save_load_and_copy(rng, tmp_path):
    d = matrix(rng, 40).astype(np.float32)
    h = Hierarchy("average", "precomputed")
    h.insert(d[:30, :30])
    h.remove([3, 4])
    h.save(tmp_path / "tree")
    keys = list(range(30, 40))
    new = d[np.ix_(keys, [*h.keys(), *keys])]
    for twin in (et.load(tmp_path / "tree"), h.copy()):
        np.testing.assert_array_equal(twin.linkage_matrix(), h.linkage_matrix())
        twin.insert(new)
        assert_valid_and_homogeneous(twin)
    h.insert(new)
    np.testing.assert_array_equal(twin.linkage_matrix(), h.linkage_matrix())


def test_a_condensed_matrix_of_no_points():
    h = Hierarchy("single", "precomputed")
    assert h.insert(np.zeros((0, 0))) == []
    assert h.insert([[0.0]]) == [0]
    assert h.insert([[2.0, 0.0]]) == [1]
    assert h.height(h.root) == 2.0
    h.remove([0, 1])
    assert h.insert([[0.0]]) == [2]
    assert h.cophenetic().size == 0
    assert repr(h) == "Hierarchy(linkage='single', metric='precomputed'): 1 point"
