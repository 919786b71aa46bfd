"""How far points stand apart, against the definition."""

from __future__ import annotations

import math

import numpy as np
import pytest

import evertree as et
import naive
from evertree.errors import DimensionError, EmptyHierarchyError, NotFiniteError, ParameterError
from helpers import ONE_OF_EACH, WITH_STATISTICS, dissimilarities, params_of

MEASURES = ["displacement", "jump"]


def step(measure, size, size_above, height, height_above):
    """How far a cluster stands apart in the node above it, by definition."""
    if height_above <= 0:
        return 0.0
    if measure == "displacement":
        return (size_above - size) / size
    return max(height_above - height, 0.0) * math.log2(size_above / size)


def weight(h, node):
    return float(h.state.live.tree.size[node])


def live_score(h, key, measure):
    """The best step from a leaf to the root, the highest of equal ones: (score, node)."""
    best = 0.0, None
    u = h.leaf(key)
    while u != h.root:
        above = h.parent(u)
        worth = step(measure, weight(h, u), weight(h, above), h.height(u), h.height(above))
        if worth > 0 and worth >= best[0]:
            best = worth, u
        u = above
    return best


def score_from(h, place, height, measure):
    """The same for a new point that would hang beside `place`."""
    best = step(measure, 1, weight(h, place) + 1, 0, height)
    u, own = place, height
    while u != h.root:
        above = h.parent(u)
        best = max(best, step(measure, weight(h, u) + 1, weight(h, above) + 1, own, h.height(above)))
        u, own = above, h.height(above)
    return best


def greedy_place(h, point):
    """Down to the nearer child while the point would join it before its sibling does, with ζ by definition."""
    twin = h.copy()
    twin.insert([point], keys=["the new one"])  # for the definition only: this tree is not looked at
    sizes = np.append(h.state.live.tree.size[h.state.keys.leaves()], 1.0)
    points = twin.points().astype(np.float64)
    if h.metric == "mahalanobis":
        points = points @ np.linalg.cholesky(h.metric_params["VI"])
    zeta = naive.ward(points, sizes) if h.linkage == "ward" else naive.average(dissimilarities(twin), sizes)
    position = {key: i for i, key in enumerate(h.keys())}

    def height(node):
        value = zeta(frozenset(position[key] for key in h.members(node)), frozenset([len(h)]))
        return math.sqrt(2 * value) if h.linkage == "ward" else value

    u = h.root
    while h.children(u):
        near = min(h.children(u), key=height)
        if not height(near) < h.height(u) * (1 - 1e-9):
            break
        u = near
    return u, height(u)


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize(("linkage", "metric"), ONE_OF_EACH)
def test_live_points_are_scored_by_definition(rng, linkage, metric, measure):
    x = np.concatenate([rng.normal(size=(30, 2)), rng.normal(size=(6, 2)) * 0.1 + 9, [[40.0, 0.0]]])
    h = et.Hierarchy(linkage, metric)
    h.insert(x, sample_weight=rng.uniform(0.5, 3, len(x)))
    scores, found = h.anomaly_scores(measure=measure), h.anomalies(n=None, measure=measure)
    expected = [live_score(h, key, measure) for key in list(h.keys())]
    assert scores == pytest.approx([score for score, _ in expected])
    assert [a.score for a in found] == sorted(scores, reverse=True)
    for anomaly in found:
        score, node = expected[anomaly.row]
        assert (anomaly.key, anomaly.score, anomaly.node) == (h.keys()[anomaly.row], pytest.approx(score), node)
        assert anomaly.key in h.members(node)
        assert anomaly.beside == h.sibling(node)
        assert anomaly.size == pytest.approx(weight(h, node))
        assert anomaly.beside_size == pytest.approx(weight(h, h.sibling(node)))
        assert anomaly.height == pytest.approx(h.height(h.parent(node)))
        assert anomaly.ratio == pytest.approx(anomaly.beside_size / anomaly.size)


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("linkage", ["ward", "single"])
def test_a_few_points_are_scored_as_all_are(rng, linkage, measure):
    """Only the nodes above them are looked at; single linkage makes a path of points that are further and further."""
    h = et.Hierarchy(linkage)
    h.insert(np.concatenate([rng.normal(size=(140, 1)), 5.0 + np.arange(60.0)[:, None] ** 2]))
    scores = h.anomaly_scores(measure=measure)
    for keys in ([7], [199, 3], [150, 190], []):
        assert h.anomaly_scores(keys=keys, measure=measure).tolist() == scores[keys].tolist()


def test_the_score_of_the_only_point():
    h = et.Hierarchy()
    h.insert([[1.0]])
    assert h.anomaly_scores(keys=[0], measure="jump").tolist() == [0.0]


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize(("linkage", "metric"), WITH_STATISTICS)
def test_new_points_are_scored_on_the_greedy_way_down(rng, linkage, metric, measure):
    x = np.concatenate([rng.normal(size=(25, 2)) + 3, rng.normal(size=(5, 2)) * 0.1 + 9])
    new = np.concatenate([2 * rng.normal(size=(10, 2)) + 3, x[:3], [[60.0, -40.0], [9.0, 9.1]]])
    h = et.Hierarchy(linkage, metric, metric_params=params_of(metric, 2))
    h.insert(x, sample_weight=rng.integers(1, 3, len(x)))
    expected = [score_from(h, *greedy_place(h, point), measure) for point in new]
    assert h.anomaly_scores(new, measure) == pytest.approx(expected)


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("linkage", ["single", "complete", "average", "minimax"])
def test_new_points_are_scored_where_they_would_be_inserted(rng, linkage, measure):
    x, new = rng.normal(size=(30, 2)), 2 * rng.normal(size=(8, 2))
    h = et.Hierarchy(linkage, "euclidean")
    h.insert(x)
    expected = [score_from(h, place.beside, place.height, measure) for place in h.locate(new)]
    assert h.anomaly_scores(new, measure) == pytest.approx(expected)


def test_displacement_on_a_tree_that_is_not_refined(rng):
    x, new = rng.normal(size=(40, 3)), rng.normal(size=(20, 3))
    h = et.Hierarchy.random(x, seed=3)
    assert not h.is_monotone()
    expected = [score_from(h, *greedy_place(h, point), "displacement") for point in new]
    assert h.anomaly_scores(new, "displacement") == pytest.approx(expected)
    assert h.anomaly_scores(measure="displacement") == pytest.approx(
        [live_score(h, key, "displacement")[0] for key in list(h.keys())]
    )


def test_jump_where_heights_are_not_monotone():
    """The way down does not end at a node that is low, as there are higher ones below it."""
    X = np.array([[-2000.0], [2000.0], [0.5], [3000.0]])
    h = et.Hierarchy.from_linkage([[0, 1, 1, 2], [2, 4, 2, 3], [3, 5, 3, 4]], X)
    expected = score_from(h, *greedy_place(h, [0.1]), "jump")
    assert h.anomaly_scores([[0.1]]) == pytest.approx([expected])
    assert h.anomaly_scores() == pytest.approx([live_score(h, key, "jump")[0] for key in range(4)])


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize(("linkage", "metric"), ONE_OF_EACH)
def test_an_outlier_stands_apart_most(rng, linkage, metric, measure):
    x = np.append(rng.normal(size=(60, 3)), [[50.0, 50.0, 50.0]], axis=0)
    h = et.Hierarchy(linkage, metric)
    h.insert(x)
    assert int(h.anomaly_scores(measure=measure).argmax()) == 60
    assert h.anomalies(n=1, measure=measure)[0].reason.startswith("joins 60 points, 60 times as many, at a height of")
    scores = h.anomaly_scores([[0.0, 0.1, 0.0], [-50.0, 50.0, -50.0]], measure=measure)
    assert scores[1] > scores[0]


def test_a_pair_of_outliers_cannot_hide_each_other(rng):
    h = et.Hierarchy("average")
    h.insert(np.append(rng.normal(size=(98, 2)), [[50.0, 50.0], [50.1, 50.0]], axis=0))
    first, second = h.anomalies(n=2, measure="jump")
    assert (first.key, second.key) == (98, 99)
    assert h.anomaly_scores(measure="displacement")[98:].tolist() == [49.0, 49.0]
    assert first.reason.startswith("with 1 other point joins 98 points, 49 times as many, at a height of")


@pytest.mark.parametrize("linkage", ["ward", "single"])
def test_of_equal_steps_the_highest_counts(linkage):
    h = et.Hierarchy(linkage)
    h.insert([[0.0], [5.0], [5.5]])
    (anomaly,) = h.anomalies([[0.1]], measure="displacement")
    assert (anomaly.score, anomaly.size, anomaly.beside_size) == (1.0, 2.0, 2.0)
    assert h.members(anomaly.node) == [0]


@pytest.mark.parametrize(
    ("weights", "reason"),
    [
        ([1, 1, 1, 1], "joins 3 points, 3 times as many, at a height of"),
        ([1, 1, 1, 3], "joins 3 points, just as many, at a height of"),
        ([1, 1, 1, 0.5], "joins 3 points, 6 times as much, at a height of"),
        ([1, 1, 0.5, 2.5], "joins a weight of 2.5, just as much, at a height of"),
        ([1, 1, 1e6, 0.3], "joins 1,000,002 points, 3,333,340 times as much, at a height of"),
        ([1e99, 1, 1, 1], "joins 1e+99 points, 1e+99 times as many, at a height of"),
    ],
)
def test_reasons_read_well(weights, reason):
    """A point of some weight alone is with no other points."""
    h = et.Hierarchy("single")
    h.insert([[0.0], [1.0], [2.0], [50.0]], sample_weight=weights)
    found = {anomaly.key: anomaly for anomaly in h.anomalies(measure="jump")}
    assert found[3].reason.startswith(reason)
    assert found[3].size == weights[3]
    (new,) = h.anomalies([[50.0]])
    kind = "1 live point" if weights[3] == 1 else f"{weights[3]} live points"
    expected = f"with {kind if weights[3] in (1, 3) else f'a further weight of {weights[3]}'} joins "
    assert new.reason.startswith(expected)


def test_displacement_is_the_ratio(rng):
    """To the last bit, also where one side is nothing beside the other."""
    h = et.Hierarchy()
    h.insert([[0.0], [1.0], [2.0]], sample_weight=[1e100, 1e-100, 1.0])
    h.insert(rng.normal(size=(20, 1)), sample_weight=rng.uniform(0.1, 3, 20))
    for anomaly in (*h.anomalies(n=None, measure="displacement"), *h.anomalies([[0.3], [9.0]], measure="displacement")):
        assert anomaly.score == anomaly.ratio > 0


@pytest.mark.parametrize("linkage", ["ward", "single"])
def test_equal_points_are_one(linkage):
    h = et.Hierarchy(linkage)
    h.insert([[0.0]] * 50 + [[1.0]] * 50)
    assert h.anomaly_scores(measure="displacement").tolist() == [1.0] * 100
    assert h.anomaly_scores([[0.0]], "displacement") == pytest.approx([50 / 51])
    assert h.anomaly_scores([[0.0]], "jump") < h.anomaly_scores([[30.0]], "jump")


@pytest.mark.parametrize("linkage", ["ward", "complete"])
def test_few_points(linkage):
    h = et.Hierarchy(linkage)
    with pytest.raises(EmptyHierarchyError, match="anomaly_scores needs at least one point"):
        h.anomaly_scores([[1.0]])
    h.insert([[1.0]])
    assert h.anomaly_scores(measure="displacement").tolist() == [0.0]
    (alone,) = h.anomalies()
    nothing = "nothing stands apart: it joins no other point above height 0"
    assert (alone.node, alone.beside, alone.reason) == (None, None, nothing)
    assert alone.ratio == 0
    assert h.anomaly_scores([[1.0], [4.0]], "displacement").tolist() == [0.0, 1.0]
    assert h.anomaly_scores([[4.0]], "jump") == pytest.approx([3.0])
    assert h.anomaly_scores(np.empty((0, 1))).shape == (0,)
    h.insert([[1.0]])
    assert h.anomaly_scores(measure="displacement").tolist() == [0.0, 0.0]
    assert h.anomalies()[0].reason == nothing


@pytest.mark.parametrize(("linkage", "metric"), ONE_OF_EACH)
def test_reading_scores_changes_nothing(rng, linkage, metric):
    h = et.Hierarchy(linkage, metric)
    h.insert(rng.normal(size=(40, 2)))
    before = h.linkage_matrix().tolist(), h.keys(), h.n_moves, h.n_grafts, h.n_bytes
    h.anomaly_scores(rng.normal(size=(30, 2)))
    h.anomalies(rng.normal(size=(3, 2)), measure="jump")
    h.anomalies()
    assert (h.linkage_matrix().tolist(), h.keys(), h.n_moves, h.n_grafts, h.n_bytes) == before
    h.validate()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_types_and_layouts_give_the_same_scores(rng, dtype):
    x, new = rng.normal(size=(50, 4)).astype(dtype), rng.normal(size=(20, 8)).astype(dtype)[:, ::2]
    h = et.Hierarchy()
    h.insert(x)
    new.flags.writeable = False
    assert h.anomaly_scores(new).tolist() == h.anomaly_scores(new.copy()).tolist()
    assert h.anomaly_scores(new.tolist()).tolist() == h.anomaly_scores(new).tolist()
    one_by_one = [h.anomaly_scores(new[i : i + 1], "jump")[0] for i in range(len(new))]
    assert one_by_one == h.anomaly_scores(new, "jump").tolist()


def test_values_far_apart(rng):
    x = rng.normal(size=(40, 2)) * 10.0 ** rng.uniform(-150, 140, size=(40, 1))
    for linkage in ("ward", "single"):
        h = et.Hierarchy(linkage)
        h.insert(x)
        for measure in MEASURES:
            for scores in (h.anomaly_scores(measure=measure), h.anomaly_scores(x[::-1], measure)):
                assert np.isfinite(scores).all()
                assert (scores >= 0).all()


def test_other_kinds_of_points(rng):
    h = et.Hierarchy("average", metric=lambda s, t: float(len(set(s) ^ set(t))))
    h.insert(["abc", "abcd", "abce", "xyzuvw"])
    assert h.anomalies(n=1)[0].key == 3
    assert h.anomaly_scores(["abc", "uvwxy"]).argmax() == 1
    d = np.abs(np.subtract.outer([0.0, 1.0, 2.0, 90.0], [0.0, 1.0, 2.0, 90.0]))
    h = et.Hierarchy("average", metric="precomputed")
    h.insert(d)
    assert h.anomaly_scores(measure="displacement").tolist() == [1.0, 1.0, 2.0, 3.0]
    assert h.anomaly_scores([[1.0, 0.0, 1.0, 89.0], [900.0, 900.0, 900.0, 900.0]]).argmax() == 1


def test_what_is_refused(rng):
    h = et.Hierarchy()
    h.insert(rng.normal(size=(5, 2)))
    with pytest.raises(ParameterError, match="measure must be 'jump' or 'displacement'; it is 'depth'"):
        h.anomaly_scores(measure="depth")
    with pytest.raises(ParameterError, match="n must be"):
        h.anomalies(n=0)
    with pytest.raises(DimensionError, match="2 columns"):
        h.anomaly_scores([[1.0]])
    with pytest.raises(NotFiniteError, match="row"):
        h.anomaly_scores([[1.0, np.nan]])
