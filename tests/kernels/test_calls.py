"""Calls into machine code: what they check, what they return, what they raise."""

from __future__ import annotations

import numpy as np
import pytest

from evertree import Hierarchy, kernels
from evertree.kernels.compile import IS_COMPILED, kernel, step
from evertree.kernels.signatures import FloatMatrix, Floats, Ints

pytestmark = pytest.mark.skipif(not IS_COMPILED, reason="there is no machine code")


@pytest.fixture
def tree(rng):
    h = Hierarchy()
    h.insert(rng.normal(size=(5, 2)))
    return h.state.live.tree


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        (np.zeros(9, np.int64), "an array of int32 with 1 dimensions; this is one of int64 with 1"),
        (np.zeros((3, 3), np.int32), "an array of int32 with 1 dimensions; this is one of int32 with 2"),
        (np.zeros(18, np.int32)[::2], "not C contiguous"),
        (np.frombuffer(bytes(36), np.int32), "not writable"),
    ],
)
def test_arrays_are_checked(tree, nodes, words):
    with pytest.raises((TypeError, BufferError), match=words):
        kernels.shared.traverse.postorder(tree, 0, nodes)


def test_numbers_are_checked(tree):
    nodes = np.zeros(9, np.int32)
    for wrong in (0.5, "0", None, 1 << 70):
        with pytest.raises(Exception, match=r"integer|int too large|argument out of range"):
            kernels.shared.traverse.postorder(tree, wrong, nodes)
    with pytest.raises(TypeError, match="positional argument"):
        kernels.shared.traverse.postorder(tree, 0)


def test_columns_are_checked(rng):
    """Of another kind, or for data of another dtype, they would be read as what they are not."""
    h = Hierarchy()
    h.insert(rng.normal(size=(5, 2)))
    live = h.state.live
    narrow = live.search._replace(near_value=live.search.near_value.astype(np.float32))
    for work, search in ((live.search, live.search), (live.work, narrow), (live.work, live.work)):
        with pytest.raises(TypeError, match="columns that do not fit it, or each other: MeanTree of float64"):
            kernels.shared.stabilise.stabilise(live.tree, work, search, live.tag, 1, 1)
    with pytest.raises(TypeError, match="needs data of float32 or float64; these are int64"):
        kernels.pairwise.pairs.store_rows(np.zeros((1, 3), np.int64), *[np.zeros(1, np.int32)] * 2, np.zeros((1, 1)))


def test_an_empty_array_is_one(tree):
    kernels.shared.topology.release_nodes(tree, np.empty(0, np.int32))
    assert tree.state["free_leaf"][0] == -1


@step
def half_of(number):
    return number / 2


@kernel
def of_all_kinds(i: int, x: float, numbers: Ints, table: FloatMatrix, out: Floats) -> tuple[int, int]:
    """Every kind of argument but columns."""
    for k in range(out.size):
        out[k] = half_of(x) + i + numbers[k] + table[k, 1]
    return i + 1, numbers.size


@kernel
def mean_of(numbers: Floats, count: int) -> float:
    """It may fail."""
    return numbers[0] / count


@kernel
def is_positive(numbers: Floats) -> bool:
    """A single truth value."""
    return numbers[0] > 0.0


@pytest.fixture(scope="module")
def _numba():
    pytest.importorskip("numba", reason="kernels outside the package are compiled by Numba")


@pytest.mark.usefixtures("_numba")
def test_arguments_and_results_of_all_kinds():
    out = np.empty(3)
    found = of_all_kinds(4, 3, np.arange(3, dtype=np.int32), np.arange(6.0).reshape(3, 2), out)
    assert found == (5, 3)
    np.testing.assert_array_equal(out, 1.5 + 4 + np.arange(3) + [1, 3, 5])
    assert mean_of(np.array([3.0]), 2) == 1.5
    assert [is_positive(np.array([x])) for x in (1.0, -1.0)] == [True, False]


@pytest.mark.usefixtures("_numba")
def test_an_error_in_a_kernel_is_an_exception():
    """With the class and the text that Python has."""
    for _ in range(3):
        with pytest.raises(ZeroDivisionError, match="division by zero"):
            mean_of(np.array([3.0]), 0)
    assert mean_of(np.array([3.0]), 1) == 3.0


@pytest.mark.usefixtures("_numba")
def test_a_kernel_knows_its_function():
    assert mean_of.py_func(np.array([3.0]), 2) == 1.5
    assert mean_of.__doc__ == "It may fail."
    assert half_of(3.0) == 1.5
