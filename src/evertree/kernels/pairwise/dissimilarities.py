"""Dissimilarities between rows of the data, as functions whose address a kernel takes as an argument.

A row function ``f(x, params, i, js, out)`` writes to ``out[t]`` the dissimilarity between the rows ``i`` and ``js[t]``
of `x`. In machine code all of them take words, so that a kernel which takes one is compiled once for all, and for all
dtypes of `x`.

Names and values are those of SciPy's ``cdist``, except that zero divided by zero is zero here. All arithmetic is in
float64, also on float32 data. A pair has one value to the last bit, whichever of the two comes first.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

import numpy as np

from evertree.kernels.compile import IS_COMPILED, OPTIONS, REASSOCIATE, inline, inline_sum, kernel, when_compiling
from evertree.kernels.signatures import Configuration, DataMatrix, Floats, Ints


@inline
def _ratio(part, whole):
    """A share of a whole, with 0 / 0 = 0: two rows of zeros are equal, where SciPy has NaN."""
    return part / whole if whole != 0.0 else 0.0


@inline_sum
def _squares(x, i, j):
    """The sum of the squared differences. O(m)."""
    total = 0.0
    for k in range(x.shape[1]):
        difference = np.float64(x[i, k]) - np.float64(x[j, k])
        total += difference * difference
    return total


@inline
def _largest(x, i, j):
    """The largest absolute difference. O(m).

    Nonnegative floats are ordered like their bits, and the compiler vectorises the maximum of integers.
    """
    largest = np.int64(0)
    for k in range(x.shape[1]):
        difference = np.float64(abs(np.float64(x[i, k]) - np.float64(x[j, k])))
        largest = max(largest, difference.view(np.int64))
    return np.int64(largest).view(np.float64)


@inline_sum
def _sum(x, i):
    """The sum of a row. O(m)."""
    total = 0.0
    for k in range(x.shape[1]):
        total += np.float64(x[i, k])
    return total


@inline_sum
def _counts(x, i, j):
    """Number of columns in which both rows are nonzero, only `i` is, and only `j` is. O(m)."""
    both, in_i, in_j = 0.0, 0.0, 0.0
    for k in range(x.shape[1]):
        a = 1.0 if x[i, k] != 0.0 else 0.0
        b = 1.0 if x[j, k] != 0.0 else 0.0
        both += a * b
        in_i += a
        in_j += b
    return both, in_i - both, in_j - both


@inline
def _entropy_lost(delta):
    """((1 + δ) log(1 + δ) + (1 − δ) log(1 − δ)) / 2 for −1 ≤ δ ≤ 1.

    The two terms cancel out to second order. So where δ is small the series is summed instead, whose terms are
    δ²ⁿ / (2n (2n − 1)): without it, the distance of rows that are almost equal would be off by 1e-8.
    """
    square = delta * delta
    if square < 1e-3:
        return square * (1 / 2 + square * (1 / 12 + square * (1 / 30 + square * (1 / 56 + square / 90))))
    if square == 1.0:
        return math.log(2.0)
    return 0.5 * ((1.0 + delta) * math.log(1.0 + delta) + (1.0 - delta) * math.log(1.0 - delta))


def _stored(name, x, params, i, j):
    """The entry of a triangle without its diagonal, stored in `x` row by row. O(1)."""
    return 0.0 if i == j else np.float64(x[0, j * (j - 1) // 2 + i])


def _euclidean(name, x, params, i, j):
    return math.sqrt(_squares(x, i, j))


def _sqeuclidean(name, x, params, i, j):
    """With a factor: the cosine dissimilarity is half the squared distance between rows of length 1."""
    return params[0] * _squares(x, i, j)


def _cityblock(name, x, params, i, j):
    total = 0.0
    for k in range(x.shape[1]):
        total += abs(np.float64(x[i, k]) - np.float64(x[j, k]))
    return total


def _chebyshev(name, x, params, i, j):
    return _largest(x, i, j)


def _minkowski(name, x, params, i, j):
    """In units of the largest difference, so that no power overflows; this also gives the limit for p = ∞."""
    p, unit = params[0], _largest(x, i, j)
    if unit == 0.0:
        return 0.0
    total = 0.0
    for k in range(x.shape[1]):
        total += (abs(np.float64(x[i, k]) - np.float64(x[j, k])) / unit) ** p
    return unit * total ** (1.0 / p)


def _hamming(name, x, params, i, j):
    total = 0.0
    for k in range(x.shape[1]):
        total += 1.0 if x[i, k] != x[j, k] else 0.0
    return total / x.shape[1]


def _canberra(name, x, params, i, j):
    """A column in which both rows are zero adds nothing."""
    total = 0.0
    for k in range(x.shape[1]):
        a, b = np.float64(x[i, k]), np.float64(x[j, k])
        whole = abs(a) + abs(b)
        total += abs(a - b) / (whole if whole != 0.0 else 1.0)
    return total


def _braycurtis(name, x, params, i, j):
    part, whole = 0.0, 0.0
    for k in range(x.shape[1]):
        a, b = np.float64(x[i, k]), np.float64(x[j, k])
        part += abs(a - b)
        whole += abs(a + b)
    return _ratio(part, whole)


def _jensenshannon(name, x, params, i, j):
    """The root of half of Σ p log(p/μ) + q log(q/μ), where μ = (p + q)/2, for rows without negative entries."""
    sum_i, sum_j = _sum(x, i), _sum(x, j)
    total = 0.0
    for k in range(x.shape[1]):
        p, q = np.float64(x[i, k]) / sum_i, np.float64(x[j, k]) / sum_j
        if p != q:
            total += (p + q) * _entropy_lost((p - q) / (p + q))
    if params[0] != 0.0:
        total /= math.log(params[0])
    return math.sqrt(max(0.5 * total, 0.0))


def _jaccard(name, x, params, i, j):
    """Two rows of zeros are equal."""
    both, only_i, only_j = _counts(x, i, j)
    return (only_i + only_j) / max(both + only_i + only_j, 1.0)


def _dice(name, x, params, i, j):
    both, only_i, only_j = _counts(x, i, j)
    return _ratio(only_i + only_j, 2.0 * both + only_i + only_j)


def _rogerstanimoto(name, x, params, i, j):
    _, only_i, only_j = _counts(x, i, j)
    return 2.0 * (only_i + only_j) / (x.shape[1] + only_i + only_j)


def _russellrao(name, x, params, i, j):
    """A row is far from itself where it is zero: the only dissimilarity here that is not 0 on the diagonal."""
    both, _, _ = _counts(x, i, j)
    return (x.shape[1] - both) / x.shape[1]


def _sokalsneath(name, x, params, i, j):
    both, only_i, only_j = _counts(x, i, j)
    return _ratio(2.0 * (only_i + only_j), both + 2.0 * (only_i + only_j))


def _yule(name, x, params, i, j):
    """Zero where one row has all that the other has, even if it has more."""
    both, only_i, only_j = _counts(x, i, j)
    unequal = only_i * only_j
    if unequal == 0.0:
        return 0.0
    neither = x.shape[1] - both - only_i - only_j
    return 2.0 * unequal / (both * neither + unequal)


_PAIRS = {
    "stored": _stored,
    "euclidean": _euclidean,
    "sqeuclidean": _sqeuclidean,
    "cityblock": _cityblock,
    "chebyshev": _chebyshev,
    "minkowski": _minkowski,
    "hamming": _hamming,
    "canberra": _canberra,
    "braycurtis": _braycurtis,
    "jensenshannon": _jensenshannon,
    "jaccard": _jaccard,
    "dice": _dice,
    "rogerstanimoto": _rogerstanimoto,
    "russellrao": _russellrao,
    "sokalsneath": _sokalsneath,
    "yule": _yule,
}


def dissimilarity(name, x, params, i, j):
    """The dissimilarity with this name between the rows i ≤ j of `x`. O(m); reads two rows."""
    return _PAIRS[name](name, x, params, i, j)


#: How it is compiled: a part of what machine code is stamped with.
dissimilarity.targetoptions = {  # type: ignore[attr-defined]
    **OPTIONS,
    "forceinline": True,
    "error_model": "numpy",
    "fastmath": set(REASSOCIATE),
}


def _tell_compiler() -> None:
    from evertree.kernels import numba_compiler

    def typed(name, x, params, i, j):
        return _PAIRS.get(numba_compiler.literal(name))

    numba_compiler.overload(dissimilarity, typed, dissimilarity.targetoptions)  # type: ignore[attr-defined]


def _row(name: str) -> Any:
    """The row function of a dissimilarity, with the name as a constant."""

    def row(x: DataMatrix, params: Floats, i: int, js: Ints, out: Floats) -> None:
        for t in range(js.size):
            j = np.int64(js[t])
            out[t] = dissimilarity(name, x, params, min(i, j), max(i, j))

    row.__name__ = row.__qualname__ = name
    return kernel(row)


#: The row functions. Those of `stored` look up in a triangle, of which `x` is a view of shape (1, N): the rows i > j
#: have their entry at i (i − 1) / 2 + j. The first entry of `params` is a factor for `sqeuclidean`, p for `minkowski`,
#: and for `jensenshannon` the base of the logarithm, where 0 means e; the others ignore it.
ROWS: dict[str, Callable[..., None]] = {name: _row(name) for name in _PAIRS}


def call_row(row, x, params, i, js, out):
    """Call a row function by what `row_address` has found."""
    row(x, params, i, js, out)


if IS_COMPILED:
    when_compiling(_tell_compiler)
    from evertree.kernels.compile import AddressCall

    call_row = AddressCall(call_row)


@cache
def row_address(name: str, dtype: Any) -> Any:
    """What `call_row` takes: where the machine code of a row function is, or the function itself in plain Python."""
    row: Any = ROWS[name]
    return row.address(Configuration(None, None, str(dtype))) if IS_COMPILED else row


@lru_cache
def compiled_row(metric: Callable[..., Any]) -> Any:
    """The row function of a metric that a user compiled with Numba, a function of two rows.

    It is called with the row of smaller index first, and not at all for a row and itself.
    """

    def row(x: DataMatrix, params: Floats, i: int, js: Ints, out: Floats) -> None:
        for t in range(js.size):
            j = np.int64(js[t])
            out[t] = 0.0 if i == j else np.float64(metric(x[min(i, j)], x[max(i, j)]))  # type: ignore[call-overload]

    if not IS_COMPILED:
        return row
    from evertree.kernels.calls import KernelOfUser

    return KernelOfUser(row, {})
