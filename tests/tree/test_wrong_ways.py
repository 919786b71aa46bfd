"""Points that went the wrong way when they were inserted, and lists of neighbours that show it."""

from __future__ import annotations

import numpy as np
import pytest

import evertree as et
from evertree import kernels
from evertree.kernels.columns import BOTH_LISTS, NO_LIST, NULL, TO_EXCHANGE
from evertree.kernels.shared.neighbours import note_found, note_in

EMPTY = np.full((1, 4), NULL, np.int32)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_is_as_far_as_the_first_is_not_nearer(dtype):
    """A list in single precision holds a rounded distance, which may be larger than that of the same points."""
    value = 1.1 * np.sqrt(2.0) - 1e-9  # rounds up in float32
    near, near_value = EMPTY.copy(), np.full((1, 4), np.inf, dtype)
    for j in range(2, 10, 2):
        note_in(near, near_value, 0, j, value)
    for j in range(10, 40, 2):
        assert not note_in(near, near_value, 0, j, value)
    assert near.tolist() == [[2, 4, 6, 8]]


def test_only_what_is_much_nearer_counts():
    near, near_value = EMPTY.copy(), np.full((1, 4), np.inf)
    found = [note_in(near, near_value, 0, j, value) for j, value in ((2, 10.0), (4, 9.5), (6, 4.0), (8, 4.5), (6, 4.0))]
    assert found == [True, False, True, False, False]
    assert near.tolist() == [[6, 8, 4, 2]]


@pytest.mark.parametrize("notes", [BOTH_LISTS, NO_LIST])
def test_a_leaf_that_is_found_to_be_near_asks_again(notes):
    h = et.Hierarchy(search_width=4)
    h.insert(np.random.default_rng(0).normal(size=(40, 2)))
    h.refine()
    search = h.state.live.search
    search.state["notes"][0] = notes
    value = 1e-3 * float(search.near_value[[3, 5], 0].min())
    search.near[[3, 5]] = NULL
    search.near_value[[3, 5]] = 1e3
    note_found(search, 6, 10, value)
    expected = TO_EXCHANGE if notes == BOTH_LISTS else 0
    assert search.fresh[[3, 5]].tolist() == [expected, expected]
    h.refine()
    assert not search.fresh.any()
    search.state["notes"][0] = BOTH_LISTS


def test_a_leaf_whose_list_was_wrong_searches_again():
    h = et.Hierarchy(search_width=4)
    h.insert(np.random.default_rng(0).normal(size=(40, 2)))
    h.refine()
    live = h.state.live
    before = live.n_searches
    kernels.shared.neighbours.forget_leaves(live.search, np.array([6], np.int32), TO_EXCHANGE)
    assert not live.is_at_rest
    assert h.refine().stable
    assert live.n_searches == before + 1
    assert live.is_at_rest


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("scale", [1.1, 1.3])
def test_equally_far_points_come_to_an_end(dtype, scale):
    """Each has more neighbours as near as the nearest than a list has room for."""
    h = et.Hierarchy(search_width=4)
    h.insert((np.eye(300) * np.dtype(dtype).type(scale)).astype(dtype))
    report = h.refine()
    assert report.stable
    assert report.searches < 20 * len(h)


@pytest.mark.slow
def test_short_texts_in_single_precision_come_to_an_end():
    rng = np.random.default_rng(0)
    x = np.zeros((400, 700), np.float32)
    for row in x:
        row[rng.choice(700, 3, replace=False)] = rng.random(3) + 0.2
    h = et.Hierarchy("average", "cosine", search_width=4)
    h.insert(x)
    report = h.refine()
    assert report.stable
    assert report.searches < 100 * len(h)


@pytest.mark.slow
def test_points_that_went_the_wrong_way_come_back():
    """In many small clusters, some descents end in another one: a wider one, or those that meet them, help."""
    rng = np.random.default_rng(0)
    centers = 5 * rng.normal(size=(100, 16))
    x = centers[rng.integers(100, size=3_000)] + rng.normal(size=(3_000, 16))
    h = et.Hierarchy(search_width=4)
    h.insert(x[:2_800])
    h.refine()
    h.insert(x[2_800:])
    assert h.refine().stable
    live = h.state.live
    leaves = live.leaves()
    beside = live.tree.size[[h.sibling(int(u)) for u in leaves]]
    own_class = live.tree.height[live.tree.parent[leaves]]
    assert np.count_nonzero((beside > 20) & (own_class > 60)) <= 3
    assert h.instability().fraction < 0.01
