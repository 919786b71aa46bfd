"""Streams by way of river: its own checks, features that come and go, a window, clusters that keep their numbers."""

from __future__ import annotations

import copy
import functools
import os
import pickle
import signal
import sys

import numpy as np
import pytest
from scipy.spatial.distance import pdist

try:
    import river.checks
    from river import base, evaluate, metrics, preprocessing
except ModuleNotFoundError:
    if os.environ.get("CI"):
        raise
    pytest.skip("river is not installed: pip install river", allow_module_level=True)

import evertree as et
from evertree.errors import DimensionError, MissingExtraError, NotFiniteError, NotNumericError, ParameterError
from evertree.integrations.river import _BLIND_TO_ZEROS

MODELS = [et.RiverClustering, et.RiverAnomalies]

# Those of an anomaly detector hold all that river has for a model without targets; of a clusterer it asks less.
CHECKS = list(river.checks.yield_checks(et.RiverAnomalies()))


def as_stream(X):
    return [{f"f{k}": value for k, value in enumerate(row)} for row in X.tolist()]


def grouped(rng, n, centers=((0.0, 0.0), (9.0, 0.0), (0.0, 9.0))):
    """Points around some centres in turn, as dicts, and where each belongs."""
    truth = np.arange(n) % len(centers)
    return as_stream(np.array(centers)[truth] + rng.normal(size=(n, len(centers[0])))), truth.tolist()


def learned(model, points):
    for x in points:
        model.learn_one(x)
    return model


def with_anomalies():
    """What river's checks learn from: (features, whether the point is an anomaly)."""
    X = np.random.default_rng(1).normal(size=(150, 6))
    X[20::20] *= 8
    return [(x, int(k >= 20 and k % 20 == 0)) for k, x in enumerate(as_stream(X))]


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_rivers_own_checks(model, check):
    """Those that need data would fetch it from the net, and get ours instead."""
    if isinstance(check, functools.partial):
        check = functools.partial(check.func, dataset=with_anomalies())
    check(model(window=40))


def test_river_has_the_checks_that_we_think_of():
    names = {check.__name__ for check in CHECKS}
    assert len(names) >= 25
    assert names >= {
        "check_clone_is_independent",
        "check_pickling",
        "check_shuffle_features_no_impact",
        "check_emerging_features",
        "check_radically_disappearing_features",
        "check_no_state_aliasing_with_input",
        "check_bounded_memory_growth",
        "check_roc_auc",
    }


def test_kinds():
    assert isinstance(et.RiverClustering(), base.Clusterer)
    assert not isinstance(et.RiverClustering(), base.AnomalyDetector)  # or river would ask it for scores alone
    assert isinstance(et.RiverAnomalies(), base.AnomalyDetector)


def test_before_the_first_point():
    model = et.RiverClustering()
    assert (model.predict_one({"a": 1.0}), model.score_one({"a": 1.0}), model.centers) == (0, 0.0, {})


def test_only_the_newest_points_are_kept(rng):
    points, _ = grouped(rng, 60)
    model = learned(et.RiverClustering(3, window=25), points)
    assert model.hierarchy.keys() == list(range(35, 60))
    expected = [list(x.values()) for x in points[35:]]
    np.testing.assert_array_equal(model.hierarchy.points(), expected)
    model.hierarchy.validate()
    assert len(learned(et.RiverClustering(window=None), points).hierarchy) == 60


@pytest.mark.slow
def test_memory_is_bounded(rng):
    points, _ = grouped(rng, 120)
    model = et.RiverClustering(3, window=20)
    used = []
    for x in points:
        model.learn_one(x)
        model.predict_one(x)
        used.append(model._raw_memory_usage)
    assert max(used[80:]) < 1.1 * max(used[40:80])


def test_the_tree_is_refined(rng, monkeypatch):
    monkeypatch.setattr("evertree.tree.statistics.MOST_EXACT", 0)
    points, truth = grouped(rng, 90)
    model = learned(et.RiverClustering(3, refresh=0.0), points)
    assert model.hierarchy.is_stable()
    np.testing.assert_allclose(
        model.hierarchy.linkage_matrix()[:, 2],
        et.agglomerate(model.hierarchy.points()).linkage_matrix()[:, 2],
    )
    assert et.quality.dendrogram_purity(model.hierarchy, truth) == 1.0
    hasty = learned(et.RiverClustering(3, refresh=0.0, max_moves=0), points)
    assert not hasty.hierarchy.is_stable()


@pytest.mark.slow
def test_clusters_keep_their_numbers(rng):
    """Three groups go on, one of them moves away, and another one appears."""
    model = et.RiverClustering(n_clusters=3, window=60)
    learned(model, grouped(rng, 90)[0])
    places = [{"f0": 0.0, "f1": 0.0}, {"f0": 9.0, "f1": 0.0}, {"f0": 0.0, "f1": 9.0}]
    before = [model.predict_one(x) for x in places]
    assert sorted(before) == [0, 1, 2]
    for _ in range(5):
        learned(model, grouped(rng, 30)[0])
        assert [model.predict_one(x) for x in places] == before
    learned(model, grouped(rng, 80, centers=((0.0, 0.0), (9.0, 0.0), (30.0, 30.0)))[0])
    assert [model.predict_one(x) for x in places[:2]] == before[:2]
    assert model.predict_one({"f0": 30.0, "f1": 30.0}) not in before
    assert set(model.centers) == {*before[:2], model.predict_one({"f0": 30.0, "f1": 30.0})}


def test_cut_at_a_height(rng):
    model = et.RiverClustering(n_clusters=None, distance_threshold=12.0)
    learned(model, grouped(rng, 90)[0])
    assert len(model.centers) == 3
    for cluster, center in model.centers.items():
        assert model.predict_one(center) == cluster
        assert np.allclose(list(center.values()), np.round(np.array(list(center.values())) / 9) * 9, atol=0.8)


def test_a_point_after_the_last_cut_has_the_cluster_of_its_companions(rng):
    model = learned(et.RiverClustering(3, refresh=0.9), grouped(rng, 60)[0])
    cluster = model.predict_one({"f0": 9.0, "f1": 0.0})
    partition = model._partition
    new = [{"f0": 11.5, "f1": -2.0}, {"f0": 11.6, "f1": -2.1}]
    learned(model, new)
    assert model._partition is partition
    assert 61 not in partition
    assert [model.predict_one(x) for x in new] == [cluster] * 2


def test_predictions_and_scores_change_nothing(rng):
    points, _ = grouped(rng, 60)
    model = learned(et.RiverClustering(3), points)
    model.predict_one(points[0])  # which cuts the tree, once
    before = pickle.dumps(model)
    for x in (*points[:5], {"f0": 1e3, "never seen": 4.0}, {}):
        seen = dict(x)
        assert isinstance(model.predict_one(x), int)
        assert model.score_one(x) >= 0
        assert x == seen
    assert pickle.dumps(model) == before


def test_far_is_anomalous(rng):
    model = learned(et.RiverAnomalies(), grouped(rng, 90)[0])
    assert max(model.score_one({"f0": 9.1, "f1": 0.3}), model.score_one({})) < model.score_one({"f0": 30.0})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("linkage", "metric"), [("ward", "euclidean"), ("complete", "cityblock"), ("average", "hamming")]
)
def test_features_come_and_go(rng, linkage, metric):
    """A feature that is not there is 0, whether it is known by then or not."""
    X = np.where(rng.random((40, 6)) < 0.5, 0.0, rng.normal(size=(40, 6)).round(1))
    X[0] = [1, 0, 0, 0, 0, 0]
    full = as_stream(X)
    sparse = [{name: value for name, value in x.items() if value} for x in full]
    options = {"linkage": linkage, "metric": metric, "refresh": 0.0, "window": 30}
    model, expected = (learned(et.RiverAnomalies(**options), points) for points in (sparse, full))
    assert model.hierarchy.keys() == expected.hierarchy.keys()
    order = [model._column_of[f"f{k}"] for k in range(6)]
    np.testing.assert_array_equal(model.hierarchy.points()[:, order], X[10:])
    model.hierarchy.validate()
    if metric == "hamming":  # counts columns, so there is no room for more
        assert model.hierarchy.points().shape == (30, 6)
    else:
        heights = (m.hierarchy.linkage_matrix()[:, 2] for m in (model, expected))
        np.testing.assert_allclose(*heights)


def test_room_for_features_grows_in_leaps():
    model = et.RiverAnomalies()
    widths = []
    for k in range(20):
        model.learn_one({f"word {k}": 1})
        widths.append(model.hierarchy.points().shape[1])
    assert sorted(set(widths)) == [1, 2, 4, 8, 16, 32]
    np.testing.assert_array_equal(model.hierarchy.points()[:, :20], np.eye(20))
    assert model.hierarchy.keys() == list(range(20))


@pytest.mark.parametrize("metric", sorted(_BLIND_TO_ZEROS))
def test_room_for_features_changes_no_distance(rng, metric):
    X = np.where(rng.random((20, 5)) < 0.3, 0.0, rng.random((20, 5)))
    X[:, 0] += 0.1  # no row of zeros
    np.testing.assert_allclose(pdist(np.pad(X, ((0, 0), (0, 3))), metric), pdist(X, metric))


def test_an_interrupt_loses_nothing(rng, monkeypatch):
    """Ctrl-C that comes while a point is inserted is raised when all that belongs to it is done."""
    points, _ = grouped(rng, 12)
    model = learned(et.RiverClustering(3, window=8), points[:10])
    insert = et.Hierarchy.insert

    def interrupted(h, *args, **kwargs):
        keys = insert(h, *args, **kwargs)
        signal.raise_signal(signal.SIGINT)
        return keys

    with monkeypatch.context() as patch:
        patch.setattr(et.Hierarchy, "insert", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.learn_one(points[10])
    model.learn_one(points[11])
    assert model.hierarchy.keys() == list(range(4, 12))


def test_refreshes_that_are_interrupted_can_be_made_up_for(rng, monkeypatch):
    """Even when all points of the last cut have gone."""
    points, _ = grouped(rng, 30)
    model = learned(et.RiverClustering(3, window=8), points[:10])
    model.predict_one(points[9])

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(et.Hierarchy, "refine", interrupted)
        for x in points[10:]:
            with pytest.raises(KeyboardInterrupt):
                model.learn_one(x)
            assert model.predict_one(x) in model.centers
    assert model.hierarchy.keys() == list(range(22, 30))


def test_features_of_all_kinds_of_numbers():
    model = et.RiverClustering()
    model.learn_one({"a": True, 2: np.float32(1.5), ("b", 3): np.int64(7), "c": np.bool_(False)})
    assert model.hierarchy.points().tolist() == [[1.0, 0.0, 7.0, 1.5]]  # by name, whatever the order in the dict


@pytest.mark.parametrize(
    ("x", "error", "match"),
    [
        ({"f0": 1.0, "f1": "red"}, NotNumericError, "these are not: 'f1'. Put river.preprocessing.OneHotEncoder"),
        (
            {"f0": 1.0, "f1": None},
            NotFiniteError,
            "missing, NaN or infinite: 'f1'. Put river.preprocessing.StatImputer",
        ),
        ({"f0": np.nan, "new": 2.0}, NotFiniteError, "'f0'"),
        ({"f0": 10**400, "new": 2.0}, NotFiniteError, "'f0'"),
        ({"f0": 1e200, "new": 2.0}, et.EvertreeError, "scale"),
        ([1.0, 2.0], NotNumericError, "x must be a dict of features by name; it is list"),
    ],
)
def test_bad_points_change_nothing(rng, x, error, match):
    model = learned(et.RiverClustering(3), grouped(rng, 12)[0])
    before = pickle.dumps(model)
    with pytest.raises(error, match=match):
        model.learn_one(x)
    assert pickle.dumps(model) == before
    if "scale" not in match:
        with pytest.raises(error, match=match):
            model.predict_one(x)


def test_a_first_point_has_features():
    with pytest.raises(DimensionError, match="at least one feature"):
        et.RiverClustering().learn_one({})


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"n_clusters": 0}, "n_clusters"),
        ({"n_clusters": None}, "exactly one of n_clusters and distance_threshold must be given"),
        ({"distance_threshold": 1.0}, "exactly one of n_clusters and distance_threshold must be given"),
        ({"n_clusters": None, "distance_threshold": -1.0}, "distance_threshold"),
        ({"window": 0}, "window"),
        ({"refresh": 1.0}, "refresh must be a share of the points, below 1; it is 1.0"),
        ({"refresh": -0.1}, "refresh"),
        ({"max_moves": -1}, "max_moves"),
        ({"metric": "precomputed"}, "metric must compare features"),
        ({"linkage": "nearest"}, "linkage"),
    ],
)
def test_parameters_that_make_no_sense(options, match):
    with pytest.raises(ParameterError, match=match):
        et.RiverClustering(**options)


def shared_words(a, b):
    return 1 - len(a["words"] & b["words"]) / len(a["words"] | b["words"])


def test_a_function_compares_dicts():
    texts = ["a b c", "a b d", "x y", "x y z", "x z"]
    model = et.RiverClustering(2, linkage="average", metric=shared_words, window=4)
    learned(model, [{"words": set(text.split())} for text in texts])
    assert model.predict_one({"words": {"a", "b"}}) != model.predict_one({"words": {"y", "z"}})
    assert model.centers == {}
    twin = pickle.loads(pickle.dumps(model))
    assert twin.predict_one({"words": {"y"}}) == model.predict_one({"words": {"y"}})


@pytest.mark.slow
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_copies_go_on_alike(rng, copied):
    points, _ = grouped(rng, 90)
    model = et.RiverClustering(3, window=30)
    for x in points[:50]:
        model.learn_one(x)
        model.predict_one(x)
    twin = copied(model)
    ours, theirs = [], []
    for x in points[50:]:
        for one, found in ((model, ours), (twin, theirs)):
            one.learn_one(x)
            found.append((one.predict_one(x), one.score_one(x)))
    assert ours == theirs


@pytest.mark.slow
def test_in_a_pipeline(rng):
    points, truth = grouped(rng, 200)
    stream = [({"f0": 1000 * x["f0"], "f1": x["f1"]}, y) for x, y in zip(points, truth, strict=True)]
    model = preprocessing.StandardScaler() | et.RiverClustering(3, window=100)
    assert evaluate.progressive_val_score(stream, model, metrics.AdjustedRand()).get() > 0.9
    silhouette = evaluate.progressive_val_score(stream, model.clone(), metrics.Silhouette())
    assert 0 < silhouette.get() < 0.5  # the distance to the own centre over that to the next one


@pytest.mark.slow
def test_anomalies_in_a_pipeline():
    model = preprocessing.StandardScaler() | et.RiverAnomalies()
    assert evaluate.progressive_val_score(with_anomalies(), model, metrics.RollingROCAUC()).get() > 0.95


def test_without_river(monkeypatch):
    monkeypatch.delattr(et, "RiverClustering")  # kept there once it was used
    monkeypatch.setitem(sys.modules, "river", None)
    monkeypatch.delitem(sys.modules, "evertree.integrations.river")
    with pytest.raises(MissingExtraError, match=r"pip install 'evertree\[river\]'"):
        _ = et.RiverClustering


def test_clusters_keep_their_numbers_when_a_feature_comes():
    model = et.RiverClustering(n_clusters=2, refresh=0.1)
    for value in (1.0, 1.1, 9.0, 9.1):
        model.learn_one({"a": value})
    first = model.predict_one({"a": 1.0}), model.predict_one({"a": 9.0})
    for value in (1.2, 9.2, 1.3):
        model.learn_one({"a": value, "b": 0.1})
    assert (model.predict_one({"a": 1.0}), model.predict_one({"a": 9.0})) == first


def test_a_threshold_at_equality_is_scikit_learns():
    model = et.RiverClustering(n_clusters=None, distance_threshold=1.0, linkage="single")
    for value in (1.0, 2.0):
        model.learn_one({"a": value})
    assert model.predict_one({"a": 1.0}) != model.predict_one({"a": 2.0})
