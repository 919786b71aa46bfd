"""Linkages by their formulas and by definition (appendices A, C), and the table of their properties."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import naive
from evertree.errors import DimensionError, LinkageError, ParameterError
from evertree.input.metrics import METRICS, named_metric
from evertree.kernels.shared.linkage_values import linkage_value
from evertree.linkages import LINKAGES
from evertree.tree.scheme import Scheme
from helpers import WITH_STATISTICS, Hierarchy, definition, hard_data, hierarchy_of, params_of


@pytest.mark.parametrize(("linkage", "metric"), WITH_STATISTICS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_value_from_statistics_is_the_definition(rng, linkage, metric, weighted, dtype):
    """`eq.WardLinkage`, `eq.AverageLinkSimple` and `eq.Cosine` (appendix C), between any two disjoint nodes."""
    x = rng.normal(size=(25, 4)).astype(dtype)
    w = rng.uniform(0.2, 3, size=25) if weighted else None
    h = hierarchy_of(naive.random_tree(rng, 25), x, linkage, metric, sample_weight=w)
    zeta = definition(h)
    live = h.state.live
    below = {u: frozenset(h.members(u)) for u in h.nodes().tolist()}
    for u, v in itertools.combinations(below, 2):
        if not below[u] & below[v]:
            value = live.scheme.zeta(linkage_value(live.tag, live.tree, u, v))
            assert value == pytest.approx(zeta(below[u], below[v]), rel=1e-9 if dtype == np.float64 else 1e-4)


@pytest.mark.parametrize("name", hard_data())
def test_value_of_hard_data(rng, name):
    """Rounding in the last bits, and nothing worse, separates a value from its definition."""
    x = hard_data()[name]
    if len(x) < 3 or "far" in name or "bits" in name:
        pytest.skip("too few points, or differences as small as rounding")
    for linkage, metric in (("ward", "euclidean"), ("average", "sqeuclidean")):
        h = hierarchy_of(naive.random_tree(rng, len(x)), x, linkage, metric)
        zeta = definition(h)
        for u in h.nodes().tolist():
            if h.children(u):
                a, b = (frozenset(h.members(child)) for child in h.children(u))
                value = linkage_value(h.state.live.tag, h.state.live.tree, *h.children(u))
                assert value == pytest.approx(zeta(a, b), rel=1e-4 if x.dtype == np.float32 else 1e-8)


def test_cosine_of_near_duplicates_keeps_its_digits():
    """1 − c·c of vectors that are 1e-7 apart would be rounding; half the squared distance is not."""
    h = Hierarchy("average", "cosine")
    h.insert([[1.0, 0.0], [1.0, 1e-7]])
    assert h.height(h.root) == pytest.approx(0.5e-14, rel=1e-6)


def test_cosine_needs_only_directions(rng):
    x = rng.normal(size=(30, 3))
    plain, scaled = Hierarchy("average", "cosine"), Hierarchy("average", "cosine")
    plain.insert(x)
    scaled.insert(x * 2.0 ** rng.integers(-500, 480, size=(30, 1)))
    np.testing.assert_array_equal(plain.linkage_matrix(), scaled.linkage_matrix())


def test_ward_is_the_growth_of_the_sum_of_squared_errors(rng):
    """`eq.WardLinkageSSE` (appendix A)."""
    x, w = rng.normal(size=(20, 3)), rng.uniform(0.5, 2, size=20)
    zeta = naive.ward(x, w)
    for _ in range(20):
        order = rng.permutation(20)
        a, b = order[:7], order[7:12]
        both = np.r_[a, b]
        growth = naive.sum_of_squared_errors(x[both], w[both]) - sum(
            naive.sum_of_squared_errors(x[part], w[part]) for part in (a, b)
        )
        assert zeta(frozenset(a), frozenset(b)) == pytest.approx(growth)


def test_mahalanobis_is_scipys(rng):
    """Whitening makes it Euclidean, also where the matrix is singular."""
    from scipy.spatial.distance import cdist

    x = rng.normal(size=(10, 3))
    singular = np.diag([1.0, 2.0, 0.0])
    for matrix in (params_of("mahalanobis", 3)["VI"], singular):
        coordinates = named_metric("mahalanobis", {"VI": matrix}).coordinates(x)
        expected = cdist(x, x, "mahalanobis", VI=matrix)
        np.testing.assert_allclose(cdist(coordinates, coordinates), expected, atol=1e-12)


def three_clusters(rng, linkage):
    """ζ between three random disjoint clusters A, B, C and their unions."""
    sizes = rng.integers(1, 6, size=3)
    n = int(sizes.sum())
    x = rng.normal(size=(n, int(rng.integers(1, 4)))) if rng.random() < 0.7 else rng.integers(0, 3, size=(n, 2)) * 1.0
    w = rng.uniform(0.1, 10, size=n)
    d = rng.uniform(size=(n, n))
    zeta = naive.ward(x, w) if linkage == "ward" else getattr(naive, linkage)(np.triu(d, 1) + np.triu(d, 1).T, w)
    parts = np.split(np.arange(n), np.cumsum(sizes)[:2])
    return zeta, *(frozenset(part.tolist()) for part in parts)


def is_reducible(z, A, B, C):
    """`eq.Reducibility`."""
    return z(A, B) > min(z(A, C), z(B, C)) or z(A | B, C) >= min(z(A, C), z(B, C)) * (1 - 1e-12)


def is_strongly_reducible(z, A, B, C):
    """`eq.StrongReducibility`."""
    return z(A | B, C) >= min(z(A, C), z(B, C)) * (1 - 1e-12)


def is_nni_reducible(z, A, B, C):
    """`eq.NNI-Reducibility`."""
    if z(B, C) > min(z(A, B), z(A, C)):
        return True
    after = z(B, C) + z(B | C, A)
    return min(z(A, B) + z(A | B, C), z(A, C) + z(A | C, B)) >= after * (1 - 1e-12)


PROPERTIES = {
    "reducible": is_reducible,
    "strongly_reducible": is_strongly_reducible,
    "nni_reducible": is_nni_reducible,
}


@pytest.mark.parametrize("prop", PROPERTIES)
@pytest.mark.parametrize("linkage", LINKAGES)
def test_table_of_properties(rng, linkage, prop):
    """`def.ReducibleLinkage`, `def.Contraction`: where the table says yes it always holds, otherwise not always."""
    holds = [PROPERTIES[prop](*three_clusters(rng, linkage)) for _ in range(2000)]
    assert all(holds) == getattr(LINKAGES[linkage], prop)


@pytest.mark.parametrize(("linkage", "metric"), list(itertools.product(LINKAGES, METRICS)))
def test_only_ward_is_refused_and_only_without_euclidean_geometry(linkage, metric):
    euclidean = ("euclidean", "sqeuclidean", "mahalanobis", "seuclidean", "minkowski")
    if linkage == "ward" and metric not in euclidean:
        with pytest.raises(LinkageError, match=f"linkage='ward' with metric='{metric}'.*Euclidean geometry"):
            Hierarchy(linkage, metric)
    else:
        assert Hierarchy(linkage, metric, metric_params=params_of(metric, 2)).metric == metric


def test_table_says_what_has_statistics():
    """`tab.Complexity`."""
    found = {
        (linkage, metric)
        for linkage, metric in itertools.product(LINKAGES, METRICS)
        if (linkage != "ward" or metric in ("euclidean", "sqeuclidean", "mahalanobis", "seuclidean", "minkowski"))
        and Scheme(linkage, metric, params_of(metric, 2)).has_statistics
    }
    more = {("ward", "seuclidean"), ("ward", "minkowski"), ("average", "correlation")}
    assert found == {*WITH_STATISTICS} | more


def test_refusals_name_the_remedy():
    with pytest.raises(
        LinkageError,
        match=r"Ward needs Euclidean geometry: use metric=.*, or linkage='average', 'complete', 'minimax' or 'single'",
    ):
        Hierarchy("ward", "cosine")
    with pytest.raises(LinkageError, match="metric='precomputed' has no meaning"):
        Hierarchy("ward", "precomputed")
    with pytest.raises(LinkageError, match="Ward needs Euclidean geometry"):
        Hierarchy("ward", metric_params={"p": 3}, metric="minkowski")
    with pytest.raises(LinkageError, match=r"set_linkage\(linkage, metric=...\) changes both in one call"):
        Hierarchy("average", "cityblock").set_linkage("ward")
    with pytest.raises(LinkageError, match=r"linkage must be 'average', .* or 'ward'; it is 'wards'"):
        Hierarchy("wards")
    with pytest.raises(LinkageError, match=r"metric must be 'euclidean', .*, or a callable; it is None"):
        Hierarchy("ward", None)


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        (None, ParameterError, "needs metric_params=.*it has none"),
        ({"V": np.eye(2)}, ParameterError, "metric_params may have 'VI' .*it has 'V'"),
        ({"VI": "abc"}, ParameterError, "must be a matrix of numbers"),
        ({"VI": [[1, 2], [3]]}, ParameterError, "must be a matrix of numbers"),
        ({"VI": np.eye(2) * 1j}, ParameterError, "must be real; it is complex"),
        ([1], ParameterError, "metric_params must be None or a dict"),
        ({"VI": np.ones(3)}, DimensionError, "must be a square matrix"),
        ({"VI": [[1, np.nan], [np.nan, 1]]}, ParameterError, "must be finite"),
        ({"VI": [[1, 2], [0, 1]]}, ParameterError, "must be symmetric"),
        ({"VI": [[1, 0], [0, -1]]}, ParameterError, "no negative eigenvalue; it has -1"),
    ],
)
def test_bad_matrices_are_refused(params, error, message):
    with pytest.raises(error, match=message):
        Hierarchy("ward", "mahalanobis", metric_params=params)


def test_params_of_a_metric_without_any_are_refused():
    with pytest.raises(ParameterError, match="metric_params must be None for metric='euclidean'; it has 'p'"):
        Hierarchy(metric_params={"p": 3})


@pytest.mark.parametrize("linkage", ["ward", "average"])
def test_a_check_costs_the_same_whatever_the_size_of_the_clusters(rng, linkage):
    """`tab.Complexity`: it reads the rows of five nodes only. All others are poisoned, and it gives the same."""
    from evertree.kernels.shared.check import find_near

    h = hierarchy_of(naive.random_tree(rng, 200), rng.normal(size=(200, 3)), linkage, "sqeuclidean")
    live = h.state.live
    answers = set()
    for v in h.nodes().tolist():
        if not h.children(v) or v == h.root:
            continue
        family = [*h.children(v), h.sibling(v), v, h.parent(v)]
        expected = find_near(live.tag, live.tree, 1e-9, v)
        poisoned = live.tree._replace(
            size=np.full_like(live.tree.size, np.nan),
            variance=np.full_like(live.tree.variance, np.nan),
            height=np.full_like(live.tree.height, np.nan),
            mean=np.full_like(live.tree.mean, np.nan),
            birth=np.full_like(live.tree.birth, -(2**60)),
        )
        for name in ("size", "variance", "height", "mean", "birth"):
            getattr(poisoned, name)[family] = getattr(live.tree, name)[family]
        assert find_near(live.tag, poisoned, 1e-9, v) == expected
        answers.add(expected == -1)
    assert answers == {True, False}
