"""The scikit-learn face."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.cluster import AgglomerativeClustering
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import evertree as et
from evertree.errors import ParameterError

#: A point of weight zero has no place in a tree.
EXPECTED_TO_FAIL = {"check_sample_weight_equivalence_on_dense_data": "weights must be positive"}


def blobs(rng, n=60, n_columns=3, n_classes=3):
    y = np.arange(n) % n_classes
    return 10.0 * np.eye(n_classes, n_columns)[y] + rng.normal(size=(n, n_columns)), y


@pytest.mark.slow
@pytest.mark.parametrize("keep_last", [None, 5])
def test_scikit_learns_checks(keep_last):
    results = check_estimator(
        et.AnytimeClustering(keep_last=keep_last), expected_failed_checks=EXPECTED_TO_FAIL, on_skip=None
    )
    status = {result["check_name"]: result["status"] for result in results}
    assert list(status.values()).count("passed") > 40
    assert {name for name, value in status.items() if value == "xfail"} == set(EXPECTED_TO_FAIL)


@pytest.mark.parametrize("linkage", ["ward", "complete", "average", "single"])
def test_it_is_agglomerative_clustering(rng, linkage):
    X, _ = blobs(rng)
    ours = et.AnytimeClustering(n_clusters=4, linkage=linkage, search_width=None).fit(X)
    theirs = AgglomerativeClustering(n_clusters=4, linkage=linkage, compute_distances=True).fit(X)
    assert adjusted_rand_score(ours.labels_, theirs.labels_) == 1
    np.testing.assert_allclose(ours.distances_, np.sort(theirs.distances_))
    assert ours.children_.shape == theirs.children_.shape
    assert ours.n_leaves_ == theirs.n_leaves_ == len(X)
    assert ours.n_clusters_ == 4
    np.testing.assert_array_equal(ours.linkage_matrix_, ours.hierarchy_.linkage_matrix())
    np.testing.assert_array_equal(ours.fit_predict(X), ours.labels_)


def test_distance_threshold(rng):
    X, _ = blobs(rng)
    ours = et.AnytimeClustering(n_clusters=None, distance_threshold=12.0, search_width=None).fit(X)
    theirs = AgglomerativeClustering(n_clusters=None, distance_threshold=12.0).fit(X)
    assert adjusted_rand_score(ours.labels_, theirs.labels_) == 1
    assert ours.n_clusters_ == theirs.n_clusters_


@pytest.mark.parametrize("linkage", ["ward", "complete", "average", "single"])
def test_a_threshold_at_equality_is_scikit_learns(linkage):
    X = np.array([[0.0], [0.0], [1.0], [3.0], [7.0], [15.0]])

    def cut(model, threshold):
        return model.set_params(n_clusters=None, distance_threshold=max(float(threshold), 0.0)).fit(X)

    ours, theirs = et.AnytimeClustering(linkage=linkage), AgglomerativeClustering(linkage=linkage)
    heights, other = ours.fit(X).distances_, theirs.set_params(compute_distances=True).fit(X).distances_
    np.testing.assert_allclose(heights, other)  # by the last digit each is cut at its own
    for k, shift in [(k, shift) for k in range(5) for shift in (-1e-9, 0.0, 1e-9)]:
        cut(ours, heights[k] + shift)
        cut(theirs, other[k] + shift)
        assert ours.n_clusters_ == theirs.n_clusters_
        assert adjusted_rand_score(ours.labels_, theirs.labels_) == 1


def test_predict_copies_nothing(rng, monkeypatch):
    X, _ = blobs(rng, 300)
    model = et.AnytimeClustering(n_clusters=3).fit(X)
    state = model.hierarchy_.state
    monkeypatch.setattr(type(state.live), "copy", None)
    monkeypatch.setattr(type(state.keys), "keys", None)
    monkeypatch.setattr(type(state.keys), "leaves", None)
    assert model.predict(X[:150]).tolist() == model.labels_[:150].tolist()


def test_partial_fit_keeps_labels(rng):
    X, y = blobs(rng, 90)
    order = np.argsort(y != 2, kind="stable")  # the third class comes first
    model = et.AnytimeClustering(n_clusters=3)
    model.partial_fit(X[order[:40]])
    first, before = model.partition_, model.labels_
    model.partial_fit(X[order[40:]])
    assert len(model.labels_) == 90
    assert adjusted_rand_score(model.labels_, y[order]) == 1
    assert model.labels_[0] == before[0]  # the class that was there keeps its label
    changes = model.partition_.changes(first)
    joined = changes[changes["event"].isin(["born", "grew"])]["keys"].sum()
    assert set(range(40, 90)) <= set(joined)


def test_few_points_at_first():
    model = et.AnytimeClustering(n_clusters=3)
    assert model.partial_fit([[0.0]]).labels_.tolist() == [0]
    assert model.partial_fit([[9.0]]).labels_.tolist() == [0, 1]
    assert model.partial_fit([[20.0], [21.0]]).labels_.tolist() == [0, 1, 2, 2]
    with pytest.raises(ParameterError, match="n_clusters must be an integer from 1 to 2; it is 3"):
        et.AnytimeClustering(n_clusters=3).fit([[0.0], [1.0]])


def test_predict_does_not_change_anything(rng):
    X, _ = blobs(rng)
    model = et.AnytimeClustering(n_clusters=3).fit(X)
    before = pickle.dumps(model.linkage_matrix_), model.labels_.copy()
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert model.predict([[10.0, 0.0, 0.0]]) == model.labels_[0]
    assert pickle.dumps(model.linkage_matrix_) == before[0]
    np.testing.assert_array_equal(model.labels_, before[1])


def test_edits_and_relabel(rng):
    X, y = blobs(rng)
    model = et.AnytimeClustering(n_clusters=3).fit(X)
    kept = model.labels_[1]
    model.hierarchy_.remove(np.flatnonzero(y == 0))
    model.set_params(n_clusters=2).relabel()
    assert len(model.labels_) == 40
    assert model.labels_[0] == kept
    assert model.n_clusters_ == 2


def test_weights(rng):
    X = rng.normal(size=(20, 2))
    weights = rng.integers(1, 4, size=20)
    weighted = et.AnytimeClustering(n_clusters=3, search_width=None).fit(X, sample_weight=weights)
    repeated = et.AnytimeClustering(n_clusters=3, search_width=None).fit(np.repeat(X, weights, axis=0))
    first = np.concatenate([[0], np.cumsum(weights)[:-1]])
    assert adjusted_rand_score(weighted.labels_, repeated.labels_[first]) == 1


def test_names_of_columns(rng):
    X, _ = blobs(rng)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = et.AnytimeClustering(n_clusters=3).fit(frame)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    assert model.n_features_in_ == 3
    np.testing.assert_array_equal(model.predict(frame), model.labels_)
    with pytest.raises(ValueError, match="feature names"):
        model.partial_fit(frame[["b", "a", "c"]])


def test_pipeline_grid_clone_and_pickle(rng):
    X, y = blobs(rng)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    pipeline = make_pipeline(StandardScaler(), et.AnytimeClustering(n_clusters=3)).set_output(transform="pandas")
    assert adjusted_rand_score(pipeline.fit(frame).predict(frame), y) == 1
    assert adjusted_rand_score(pipeline.fit_predict(frame), y) == 1
    search = GridSearchCV(
        et.AnytimeClustering(),
        {"n_clusters": [2, 3], "linkage": ["ward", "single"]},
        scoring=lambda model, X, y: adjusted_rand_score(y, model.predict(X)),
        cv=3,
    )
    assert search.fit(X, y).best_params_["n_clusters"] == 3
    model = et.AnytimeClustering(n_clusters=3, linkage="average", metric="cosine", max_seconds=1.0)
    assert clone(model).get_params() == model.get_params()
    fitted = model.fit(np.abs(X) + 1)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(
        again.partial_fit(np.abs(X) + 1).labels_[:60], fitted.partial_fit(np.abs(X) + 1).labels_[:60]
    )


def test_precomputed_and_functions():
    d = np.abs(np.subtract.outer([0.0, 1.0, 9.0, 10.0], [0.0, 1.0, 9.0, 10.0]))
    model = et.AnytimeClustering(n_clusters=2, linkage="single", metric="precomputed").fit(d)
    assert model.labels_.tolist() == [0, 0, 1, 1]
    assert model.__sklearn_tags__().input_tags.pairwise
    assert model.predict(d).tolist() == [0, 0, 1, 1]
    assert model.predict(np.tile([[8.0, 7.0, 1.0, 2.0]], (20, 1))).tolist() == [1] * 20
    model.partial_fit([[2.0, 1.0, 7.0, 8.0, 0.0]])
    assert model.labels_.tolist() == [0, 0, 1, 1, 0]
    assert model.predict([[9.0, 8.0, 0.0, 1.0, 7.0]]).tolist() == [1]
    words = ["cat", "cart", "house", "houses"]
    model = et.AnytimeClustering(n_clusters=2, linkage="complete", metric=lambda a, b: len(set(a) ^ set(b))).fit(words)
    assert model.labels_.tolist() == [0, 0, 1, 1]
    assert model.predict(["mouse"]).tolist() == [1]


def test_time_limit(rng):
    model = et.AnytimeClustering(n_clusters=3, max_seconds=0.0, search_width=4).fit(rng.normal(size=(300, 4)))
    assert model.report_.stopped_by == "seconds"
    assert not model.report_.stable
    assert model.hierarchy_.refine().stable


def test_a_call_that_fails_changes_nothing(rng):
    model = et.AnytimeClustering(n_clusters=2)
    with pytest.raises(et.errors.WeightError):
        model.partial_fit([[0.0], [1.0]], sample_weight=[0, 1])
    model.partial_fit([[0.0], [1.0]])
    for wrong in ({"n_clusters": "x"}, {"max_seconds": -1}, {"n_clusters": None}):
        before = model.get_params()
        model.set_params(**wrong)
        with pytest.raises(ParameterError):
            model.partial_fit([[5.0]])
        model.set_params(**before)
        assert len(model.hierarchy_) == 2
    with pytest.raises(et.errors.WeightError):
        model.fit([[0.0], [7.0]], sample_weight=[0, 1])
    assert model.predict([[1.0]]).tolist() == [1]


def test_numbers_of_numpy():
    model = et.AnytimeClustering(np.int64(3)).partial_fit([[0.0]])
    assert model.labels_.tolist() == [0]
    assert et.AnytimeClustering(np.int64(2)).fit([[0.0], [1.0], [9.0]]).labels_.tolist() == [0, 0, 1]


def test_labels_are_the_users():
    model = et.AnytimeClustering().fit([[0.0], [1.0], [9.0]])
    model.labels_[:] = 7
    assert model.predict([[9.0]]).tolist() == [1]


def test_predict_after_an_edit_says_what_to_do():
    model = et.AnytimeClustering().fit([[0.0], [1.0], [9.0]])
    model.hierarchy_.insert([[5.0]])
    with pytest.raises(ParameterError, match=r"call relabel\(\) first"):
        model.predict([[5.0]])
    assert model.relabel().predict([[5.0]]).tolist() == [model.labels_[3]]


class TopicModel:
    """The calls that BERTopic makes of what it is given as ``hdbscan_model``."""

    def __init__(self, hdbscan_model):
        self.hdbscan_model = hdbscan_model

    def fit_transform(self, embeddings):
        self.hdbscan_model.fit(embeddings, y=None)
        return self.hdbscan_model.labels_

    def transform(self, embeddings):
        return self.hdbscan_model.predict(embeddings)


def test_as_the_clustering_of_a_topic_model(rng):
    X, y = blobs(rng)
    topics = TopicModel(et.AnytimeClustering(n_clusters=3))
    labels = topics.fit_transform(X)
    assert adjusted_rand_score(labels, y) == 1
    np.testing.assert_array_equal(topics.transform(X), labels)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_clusters": None}, "exactly one of n_clusters and distance_threshold must be given"),
        ({"distance_threshold": 1.0}, "exactly one of n_clusters and distance_threshold must be given"),
        ({"n_clusters": 0}, "n_clusters must be a positive integer; it is 0"),
        ({"linkage": "warp"}, "linkage must be"),
        ({"goal": "perfect"}, "goal must be"),
    ],
)
def test_bad_parameters(options, message):
    with pytest.raises(ParameterError, match=message):
        et.AnytimeClustering(**options).fit([[0.0], [1.0], [2.0]])


@pytest.mark.process
def test_without_scikit_learn():
    code = "import sys; sys.modules['sklearn'] = None; import evertree as et; et.Hierarchy(); et.AnytimeClustering"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "AnytimeClustering needs sklearn: pip install 'evertree[sklearn]'" in result.stderr


def test_a_window_for_streams(rng):
    X, _ = blobs(rng, 90)
    model = et.AnytimeClustering(n_clusters=3, keep_last=20)
    for start in range(0, 90, 30):  # batches that are larger than the window
        model.partial_fit(X[start : start + 30])
        assert model.hierarchy_.keys() == list(range(start + 10, start + 30))
        assert model.labels_.shape == (20,)
    assert model.hierarchy_.state.live.capacity <= 60
    first = et.AnytimeClustering(n_clusters=3, keep_last=20).partial_fit(np.tile(X, (10, 1)))
    assert first.hierarchy_.state.live.capacity <= 60
    np.testing.assert_array_equal(model.predict(X[70:]), model.labels_)
    model.set_params(keep_last=5).partial_fit(X[:1])
    assert model.hierarchy_.keys() == [86, 87, 88, 89, 90]
    model.set_params(keep_last=None).partial_fit(X[:1])
    assert model.hierarchy_.keys() == [87, 88, 89, 90, 91]  # the hierarchy keeps its window
    model.hierarchy_.keep(max_age=3600)
    model.set_params(keep_last=4).partial_fit(X[:1])
    assert model.hierarchy_.window == et.Window(last=4, max_age=3600)


def test_fit_clusters_all_points_whatever_the_window(rng):
    X, _ = blobs(rng)
    model = et.AnytimeClustering(n_clusters=3, keep_last=10).fit(X)
    assert model.labels_.shape == (60,)
    before = model.labels_[-9:]
    model.partial_fit(X[:1])
    assert model.hierarchy_.keys() == list(range(51, 61))
    np.testing.assert_array_equal(model.labels_[:9], before)


@pytest.mark.parametrize("keep_last", [0, -3, 2.5, True])
def test_bad_windows(rng, keep_last):
    model = et.AnytimeClustering(n_clusters=2, keep_last=keep_last)
    for verb in (model.fit, model.partial_fit):
        with pytest.raises(ParameterError, match="keep_last must be a positive integer"):
            verb([[0.0], [1.0], [2.0]])


def test_scores_have_the_sign_of_scikit_learn(rng):
    X, new = rng.normal(size=(50, 2)), np.array([[0.0, 0.0], [30.0, 30.0]])
    model = et.AnytimeClustering(n_clusters=3)
    with pytest.raises(NotFittedError):
        model.score_samples(new)
    model.fit(X)
    for measure in ("jump", "displacement"):
        scores = model.score_samples(new, measure)
        assert scores.tolist() == (-model.hierarchy_.anomaly_scores(new, measure)).tolist()
        assert scores[1] < scores[0] <= 0
    with pytest.raises(ValueError, match="3 features"):
        model.score_samples([[1.0, 2.0, 3.0]])
