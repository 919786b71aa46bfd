"""Row functions: dissimilarities as SciPy has them, in both directions the same, and usable in kernels."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.spatial import distance

from evertree.kernels.compile import plain
from evertree.kernels.pairwise.dissimilarities import ROWS, compiled_row

NOTHING = np.zeros(0)
#: Those that look only at which entries are zero.
BOOLEAN = ("jaccard", "dice", "rogerstanimoto", "russellrao", "sokalsneath", "yule")
METRICS = [name for name in ROWS if name != "stored"]
#: The parameters to check a metric with; one that takes none is checked without.
PARAMS = {"sqeuclidean": [1.0, 0.5], "minkowski": [0.5, 1.0, 1.5, 2.0, 3.0, np.inf], "jensenshannon": [0.0, 2.0]}
DTYPES = [np.float64, np.float32]


def matrix(row, x, params=NOTHING, n=None):
    """All dissimilarities, row after row."""
    js = np.arange(len(x) if n is None else n, dtype=np.int32)
    out = np.full((js.size, js.size), np.nan)
    for i in js.tolist():
        row(x, params, i, js, out[i])
    return out


def params_of(name):
    return [np.array([value]) for value in PARAMS[name]] if name in PARAMS else [NOTHING]


def expected(name, x, params):
    """What SciPy says; `cdist` takes no factor, and no base of a logarithm."""
    x = x.astype(np.float64)
    if name in BOOLEAN:
        x = x.astype(bool)
    if name == "minkowski":
        return distance.cdist(x, x, name, p=params[0])
    if name == "jensenshannon":
        with np.errstate(invalid="ignore"):
            based = distance.jensenshannon(x[:, None], x[None], base=params[0] or None, axis=2)
        d = based if params[0] else distance.cdist(x, x, name)
        return np.nan_to_num(d)  # where rows are equal but for rounding, it may be the root of a negative number
    d = distance.cdist(x, x, name) * (params[0] if name == "sqeuclidean" else 1.0)
    return np.nan_to_num(d)  # zero divided by zero is zero here


def data(name, rng, n, m):
    """Numbers as they come, and ties, duplicates and rows of zeros."""
    x = {
        "normal": rng.normal(size=(n, m)),
        "integers": rng.integers(-2, 3, size=(n, m)).astype(float),
        "bits": rng.integers(0, 2, size=(n, m)).astype(float),
        "sparse": rng.normal(size=(n, m)) * (rng.random((n, m)) < 0.2),
    }[name]
    x[n // 2 : n // 2 + 2] = x[:2]
    if name != "normal":
        x[-2:] = 0.0
    return x


def distributions(x):
    """The data as rows that have a Jensen-Shannon distance: not negative, and with a sum."""
    x = np.abs(x)
    x[x.sum(axis=1) == 0, 0] = 1.0
    return x


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", METRICS)
def test_values_of_scipy(rng, name, dtype):
    for kind, m in itertools.product(["normal", "integers", "bits", "sparse"], [1, 3, 20]):
        x = data(kind, rng, 14, m)
        if name in ("jensenshannon", "braycurtis"):
            x = distributions(x)
        x = x.astype(dtype)
        for params in params_of(name):
            found, wanted = matrix(ROWS[name], x, params), expected(name, x, params)
            atol = 0.0
            if name == "jensenshannon":  # SciPy's rounding errors are those of the square
                found, wanted, atol = found**2, wanted**2, 1e-14
            np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=atol, err_msg=f"{kind}, {m} columns")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", METRICS)
def test_one_value_for_a_pair(rng, name, dtype):
    for m in [1, 2, 3, 16, 64, 65]:  # with and without a rest after the last full vector instruction
        x = np.abs(rng.normal(size=(8, m))) * rng.integers(0, 2, size=(8, m))
        x[:, 0] += 0.1
        x[7] = x[0]
        x = x.astype(dtype)
        for params in params_of(name):
            d = matrix(ROWS[name], x, params)
            assert np.array_equal(d, d.T)
            assert not np.any(np.isnan(d))
            if name != "russellrao":
                assert np.all(np.diag(d) == 0)
                assert d[0, 7] == 0


@pytest.mark.parametrize("name", METRICS)
def test_float32_is_computed_in_float64(rng, name):
    x = np.abs(rng.normal(size=(6, 7))).astype(np.float32)
    for params in params_of(name):
        narrow = matrix(ROWS[name], x, params)
        wide = matrix(ROWS[name], x.astype(np.float64), params)
        np.testing.assert_allclose(narrow, wide, rtol=1e-13, atol=1e-300)


@pytest.mark.parametrize("name", ["braycurtis", "dice", "sokalsneath"])
def test_two_rows_of_zeros_are_equal(name):
    """SciPy has NaN here, which is no dissimilarity."""
    x = np.zeros((2, 3))
    assert np.all(matrix(ROWS[name], x) == 0)


@pytest.mark.parametrize("scale", [1e150, 1e-150])
@pytest.mark.parametrize("p", PARAMS["minkowski"])
def test_minkowski_of_extreme_magnitudes(rng, p, scale):
    x, params, row = rng.normal(size=(6, 5)), np.array([p]), ROWS["minkowski"]
    np.testing.assert_allclose(matrix(row, x * scale, params) / scale, matrix(row, x, params), rtol=1e-12)


def test_euclidean_of_large_coordinates(rng):
    x, row = rng.uniform(-1, 1, size=(6, 5)), ROWS["euclidean"]
    np.testing.assert_allclose(matrix(row, x * 1e150) / 1e150, matrix(row, x), rtol=1e-12)


def test_jensenshannon_of_almost_equal_rows(rng):
    """Of second order in the difference, where the logarithms leave nothing but rounding."""
    p = np.full(8, 1 / 8)
    direction = np.tile([1.0, -1.0], 4) / 8
    for step in [1e-1, 1e-2, 1e-5, 1e-8]:
        d = matrix(ROWS["jensenshannon"], np.stack([p, p + step * direction]), np.zeros(1))[0, 1]
        # the rows are (1, 1) and (1 + s, 1 - s) over and over, so d² = s² / 8 + O(s⁴)
        assert d == pytest.approx(step / math.sqrt(8), rel=step**2 + 1e-15 / step, abs=0.0)
    x = rng.random((5, 6))
    d = matrix(ROWS["jensenshannon"], np.concatenate([x, 3 * x]), np.zeros(1))
    assert np.all(np.diag(d, 5) < 1e-15)


@pytest.mark.parametrize("dtype", DTYPES)
def test_stored_triangle(rng, dtype):
    n = 9
    full = np.tril(rng.random((n, n)), -1).astype(dtype)
    flat = full[np.tril_indices(n, -1)]
    found = matrix(ROWS["stored"], flat.reshape(1, -1), n=n)
    np.testing.assert_array_equal(found, full + full.T)


def test_index_into_a_triangle_has_64_bits():
    class Triangle:
        """Too large to exist: it returns where it was looked at."""

        def __getitem__(self, index):
            return index[1]

    out = np.zeros(2)
    plain(ROWS["stored"])(Triangle(), NOTHING, 7, np.array([2, 70_000], dtype=np.int32), out)
    assert out.tolist() == [7 * 6 // 2 + 2, 70_000 * 69_999 // 2 + 7]


@pytest.fixture
def numba():
    """The compiler of users."""
    return pytest.importorskip("numba")


@pytest.mark.parametrize("dtype", DTYPES)
def test_metric_of_a_user(rng, dtype, numba):
    @numba.njit
    def cityblock(a, b):
        return np.sum(np.abs(a - b))

    x = rng.normal(size=(7, 4)).astype(dtype)
    row = compiled_row(cityblock)
    assert compiled_row(cityblock) is row
    rtol = 1e-12 if dtype == np.float64 else 1e-5
    np.testing.assert_allclose(matrix(row, x), expected("cityblock", x, NOTHING), rtol=rtol)


def test_metric_of_a_user_need_not_be_symmetric(numba):
    @numba.njit
    def difference(a, b):
        return int(b[0] - a[0]) + 7

    d = matrix(compiled_row(difference), np.array([[0.0], [10.0], [30.0]]))
    np.testing.assert_array_equal(d, [[0, 17, 37], [17, 0, 27], [37, 27, 0]])


def test_metric_of_a_user_that_fails_raises(numba):
    """Also from machine code, after the values before it."""

    @numba.njit
    def fails(a, b):
        if b[0] > 1.0:
            raise ValueError("too large")
        return 1.0

    x, js, out = np.array([[0.0], [1.0], [2.0], [3.0]]), np.arange(4, dtype=np.int32), np.full(4, np.nan)
    with pytest.raises(ValueError, match="too large"):
        compiled_row(fails)(x, NOTHING, 0, js, out)
    np.testing.assert_array_equal(out, [0, 1, np.nan, np.nan])


def test_metric_of_a_user_that_fails_with_values_of_variables_raises(numba):
    @numba.njit
    def fails(a, b):
        if b[0] > 0.0:
            raise ValueError("too large:", b[0])
        return 1.0

    x, js, out = np.array([[0.0], [1.0]]), np.arange(2, dtype=np.int32), np.zeros(2)
    with pytest.raises(ValueError, match="too large"):
        compiled_row(fails)(x, NOTHING, 0, js, out)
