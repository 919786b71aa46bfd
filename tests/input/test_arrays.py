"""Every bad input gets its named error, which says what to do, and leaves the hierarchy as it was to the last bit."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from scipy.sparse import csr_array

from evertree import EvertreeError, Hierarchy, errors
from helpers import fingerprint


@pytest.fixture
def h(rng):
    h = Hierarchy()
    h.insert(rng.normal(size=(6, 3)), keys=list("abcdef"))
    return h


NAN = np.array([[0, 0, 0], [0, np.nan, 0], [0, 0, 0], [np.inf, 0, 0]])
MANY_NAN = np.full((9, 3), np.nan)

POINTS = [
    (
        np.ones((2, 2)),
        errors.DimensionError,
        ValueError,
        "X must have 3 columns, as the points before it had; it has 2",
    ),
    (np.ones(3), errors.DimensionError, ValueError, r"two dimensions.*it has 1: use X.reshape\(1, -1\) for one point"),
    (1.0, errors.DimensionError, ValueError, "two dimensions.*it has 0: wrap a single number"),
    (np.ones((2, 3, 1)), errors.DimensionError, ValueError, r"it has 3: use X.reshape\(len\(X\), -1\)"),
    (np.ones((2, 0)), errors.DimensionError, ValueError, "at least one column"),
    (NAN, errors.NotFiniteError, ValueError, "NaN or infinity in rows 1, 3, columns 0, 1: remove or fill"),
    (MANY_NAN, errors.NotFiniteError, ValueError, "rows 0, 1, 2, 3, 4 and 4 more"),
    ([[0, 0, 1e151]], errors.MagnitudeError, ValueError, r"no value above 1e\+150, because their squares.*see row 0"),
    (
        [["a", "b", "c"]],
        errors.NotNumericError,
        TypeError,
        "array of real numbers, a row for each point; it is of type <U1",
    ),
    ([["1", "2", "3"]], errors.NotNumericError, TypeError, "it is of type <U1"),
    (np.array([["1", 2, 3]], object), errors.NotNumericError, TypeError, "some values are text"),
    ([[object(), 1, 2]], errors.NotNumericError, TypeError, "X must be an array of numbers, a row for each point"),
    (np.zeros((2, 3), "datetime64[D]"), errors.NotNumericError, TypeError, "of type datetime64"),
    (np.ma.masked_equal(np.eye(3), 1), errors.NotFiniteError, ValueError, "some are masked: fill them or drop"),
    ([[1, 2, 3], [4, 5]], errors.NotNumericError, TypeError, "row 1 has 2 values, and others 3"),
    ([[1j, 0, 0]], errors.NotNumericError, TypeError, "real numbers.*it is of type complex128"),
    (csr_array(np.eye(3)), errors.NotNumericError, TypeError, r"it is sparse: pass X.toarray\(\)"),
    (None, errors.NotNumericError, TypeError, "X must be an array of real numbers, a row for each point; it is None"),
    ({"x": 1}, errors.NotNumericError, TypeError, "X must be an array of numbers"),
]


@pytest.mark.parametrize(("x", "error", "builtin", "message"), POINTS)
def test_points(h, x, error, builtin, message):
    before = fingerprint(h)
    for edit in (lambda: h.insert(x), lambda: h.update(["a"], x)):
        with pytest.raises(error, match=message) as caught:
            edit()
        assert isinstance(caught.value, EvertreeError)
        assert isinstance(caught.value, builtin)
        assert fingerprint(h) == before


def test_values_that_float32_cannot_hold():
    h = Hierarchy()
    h.insert(np.ones((2, 2), np.float32))
    with pytest.raises(errors.MagnitudeError, match=r"no value above 3.4e\+38, because the hierarchy holds float32"):
        h.insert([[1e39, 0]])


def test_weights_and_values_that_overflow_together(rng):
    h = Hierarchy()
    h.insert(1e140 * rng.normal(size=(5, 2)))
    before = fingerprint(h)
    for edit in (
        lambda: h.insert([[1.0, 1.0]], sample_weight=[1e30]),
        lambda: h.update([3], [[1.0, 1.0]], sample_weight=[1e30]),
    ):
        with pytest.raises(errors.MagnitudeError, match="overflows: scale X to at most"):
            edit()
        assert fingerprint(h) == before
    with pytest.raises(errors.MagnitudeError, match="overflows"):
        Hierarchy.random([[1e149], [-1e149]], sample_weight=[1e12, 1.0])
    h.insert([[1.0, 1.0]], sample_weight=[1e20])
    assert np.all(np.isfinite(h.linkage_matrix()))
    h.validate()


@pytest.mark.parametrize("key", [10**400, -(10**400), Fraction(10**400), 1e308, float("inf"), Decimal("Infinity")])
def test_huge_keys(key):
    h = Hierarchy()
    h.insert([[0.0], [1.0]], keys=[key, 0.5])
    assert h.insert([[2.0]]) == [1]
    assert key in h
    h.validate()


def test_largest_values_are_accepted():
    h = Hierarchy()
    h.insert([[1e150, -1e150], [-1e150, 1e150], [1e-150, 0]])
    h.validate()
    assert np.all(np.isfinite(h.linkage_matrix()))


INSERTS = [
    (
        {"keys": ["x", "a"]},
        errors.DuplicateKeyError,
        ValueError,
        r"keys must be new; taken already: 'a': use update\(\)",
    ),
    ({"keys": ["x", "x"]}, errors.DuplicateKeyError, ValueError, "keys must differ; given more than once: 'x'"),
    ({"keys": ["x"]}, errors.InvalidKeyError, ValueError, "one key for each point, 2 in all; there are 1"),
    ({"keys": ["x", []]}, errors.InvalidKeyError, TypeError, "keys must be hashable, such as numbers"),
    (
        {"keys": [1.0, float("nan")]},
        errors.InvalidKeyError,
        TypeError,
        "nan does not, so it could never be found again",
    ),
    ({"sample_weight": [1, 0]}, errors.WeightError, ValueError, "sample_weight must be positive.*see row 1"),
    ({"sample_weight": [1, -2]}, errors.WeightError, ValueError, "must be positive"),
    ({"sample_weight": [1, np.nan]}, errors.WeightError, ValueError, "must be positive"),
    ({"sample_weight": [np.inf, 1]}, errors.WeightError, ValueError, "must be positive.*see row 0"),
    ({"sample_weight": [1]}, errors.WeightError, ValueError, r"shape \(2,\), one for each point; it has \(1,\)"),
    ({"sample_weight": 2.0}, errors.WeightError, ValueError, r"must have shape \(2,\)"),
    ({"sample_weight": ["a", "b"]}, errors.WeightError, ValueError, "must be an array of numbers"),
]


@pytest.mark.parametrize(("arguments", "error", "builtin", "message"), INSERTS)
def test_insert(h, arguments, error, builtin, message):
    before = fingerprint(h)
    with pytest.raises(error, match=message) as caught:
        h.insert(np.ones((2, 3)), **arguments)
    assert isinstance(caught.value, EvertreeError)
    assert isinstance(caught.value, builtin)
    assert fingerprint(h) == before


@pytest.mark.parametrize(
    ("keys", "error", "builtin", "message"),
    [
        (["a", "x"], errors.UnknownKeyError, KeyError, r"no live point has the key 'x': see keys\(\)"),
        (list("uvwxyz"), errors.UnknownKeyError, KeyError, "'u', 'v', 'w', 'x', 'y' and 1 more"),
        ("x", errors.UnknownKeyError, KeyError, "'x'"),
        (None, errors.UnknownKeyError, KeyError, "None"),
        (["a", "a"], errors.DuplicateKeyError, ValueError, "given more than once: 'a'"),
        ([["a"]], errors.InvalidKeyError, TypeError, "hashable"),
    ],
)
def test_keys_of_remove_and_update(h, keys, error, builtin, message):
    before = fingerprint(h)
    for edit in (lambda: h.remove(keys), lambda: h.update(keys, np.ones((2, 3)))):
        with pytest.raises(error, match=message) as caught:
            edit()
        assert isinstance(caught.value, EvertreeError)
        assert isinstance(caught.value, builtin)
        assert not str(caught.value).startswith('"')
        assert fingerprint(h) == before


def test_update_with_the_wrong_number_of_rows(h):
    before = fingerprint(h)
    with pytest.raises(errors.DimensionError, match="X must have a row for each key, 2 in all; it has 1"):
        h.update(["a", "b"], np.ones((1, 3)))
    with pytest.raises(errors.WeightError, match="must be positive"):
        h.update(["a", "b"], np.ones((2, 3)), sample_weight=[1, 0])
    assert fingerprint(h) == before


def test_numbered_keys_that_are_unknown(rng):
    h = Hierarchy()
    h.insert(rng.normal(size=(5, 2)))
    h.remove([2])
    before = fingerprint(h)
    for keys in ([2], [0, 2], [5], [-1], [0, 1, 99], ["a"], [0.5], [2**80], [0, 2**80], [0, (1, "x")], [(0, 1)]):
        with pytest.raises(errors.UnknownKeyError, match=r"no live point has the key ."):
            h.remove(keys)
    assert fingerprint(h) == before


def test_zero_rows_have_no_direction(rng):
    h = Hierarchy("average", "cosine")
    h.insert(rng.normal(size=(4, 2)))
    before = fingerprint(h)
    with pytest.raises(errors.ZeroVectorError, match="row of zeros has no direction; remove row 1 or use"):
        h.insert([[1.0, 1.0], [0.0, 0.0]])
    with pytest.raises(errors.ZeroVectorError, match="no direction"):
        h.update([0], [[0.0, 0.0]])
    assert fingerprint(h) == before


def test_a_scheme_that_the_points_do_not_allow(rng):
    h = Hierarchy("average", "sqeuclidean")
    h.insert([[0.0, 0.0], [1.0, 1.0]])
    before = fingerprint(h)
    with pytest.raises(errors.ZeroVectorError, match="no direction"):
        h.set_metric("cosine")
    with pytest.raises(errors.ParameterError, match="give X, the matrix of dissimilarities in the order of keys"):
        h.set_metric("precomputed")
    with pytest.raises(errors.DimensionError, match="X must have 2 points, one for each of keys"):
        h.set_metric("precomputed", X=np.zeros((3, 3)))
    with pytest.raises(errors.DimensionError, match=r"metric_params\['VI'\] must be 2 × 2.*it is 3 × 3"):
        h.set_linkage("ward", metric="mahalanobis", metric_params={"VI": np.eye(3)})
    with pytest.raises(errors.MagnitudeError, match=r"scaled by metric_params\['VI'\] exceed"):
        h.set_linkage("ward", metric="mahalanobis", metric_params={"VI": np.eye(2) * 1e305})
    with pytest.raises(errors.LinkageError, match="linkage must be"):
        h.set_linkage("nearest")
    assert fingerprint(h) == before


def test_an_error_before_the_first_points_leaves_nothing_behind():
    h = Hierarchy()
    before = fingerprint(h)
    for x in (np.ones(3), [[np.nan]], np.ones((2, 0))):
        with pytest.raises(errors.DataError):
            h.insert(x)
    with pytest.raises(errors.DuplicateKeyError):
        h.insert([[1.0], [2.0]], keys=["a", "a"])
    assert fingerprint(h) == before
    h.insert(np.ones((2, 5)))
    assert len(h) == 2


def test_every_error_is_one_of_ours():
    kinds = [kind for kind in vars(errors).values() if getattr(kind, "__module__", "") == errors.__name__]
    kinds = [kind for kind in kinds if isinstance(kind, type)]
    assert len(kinds) > 15
    for kind in kinds:
        assert issubclass(kind, (EvertreeError, errors.EvertreeWarning))
        assert kind.__doc__


def test_numbers_that_no_float_holds_are_refused():
    for X in (np.array([[10**400]], object), [[10**400]]):
        with pytest.raises(errors.MagnitudeError, match="too large"):
            Hierarchy().insert(X)
    if np.finfo(np.longdouble).max > np.finfo(np.float64).max:
        with pytest.raises(errors.NotFiniteError, match="row 0"):
            Hierarchy().insert(np.full((1, 1), np.longdouble("1e4000")))
