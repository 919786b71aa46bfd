"""`Hierarchy.condensed_tree`, and cuts and partitions without a number."""

from __future__ import annotations

import re
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import evertree as et
from evertree.errors import EmptyHierarchyError, MissingExtraError, ParameterError

SIX = [[0.0], [1.0], [2.5], [20.0], [21.0], [50.0]]


@pytest.fixture
def six():
    h = et.Hierarchy("single")
    h.insert(SIX)
    return h


def noisy_groups(rng, n=60):
    centers = np.repeat([[0.0, 0.0], [6.0, 0.0], [3.0, 7.0]], n, axis=0)
    return np.concatenate([centers + rng.normal(0, 0.5, size=centers.shape), rng.uniform(-20, 25, size=(20, 2))])


def test_it_is_as_computed_by_hand(six):
    """The tree splits at 17.5, after the last point left at 29; the left cluster loses a point at 1.5."""
    t = six.condensed_tree(min_cluster_size=2)
    assert t.labels.tolist() == [0, 0, 0, 1, 1, -1]
    assert t.clusters.tolist() == [7, 8]
    left, right = (1 / 1.5 - 1 / 17.5) + 2 * (1 - 1 / 17.5), 2 * (1 - 1 / 17.5)
    assert_allclose(t.stability, [left, right])
    assert_allclose(t.persistence, [left / 3, right / 2])
    assert_allclose(t.probabilities, [1, 1, 1 / 1.5, 1, 1, 0])
    assert_allclose(t.outlier_scores, [0, 0, 1 - 1 / 1.5, 0, 0, 1 - 1 / 29])
    rows = t.to_numpy()
    assert rows.dtype.names == ("parent", "child", "lambda_val", "child_size")
    assert rows["parent"].tolist() == [6, 6, 6, 7, 7, 7, 8, 8]
    assert rows["child"].tolist() == [5, 7, 8, 2, 0, 1, 3, 4]
    assert rows["child_size"].tolist() == [1, 3, 2, 1, 1, 1, 1, 1]
    assert_allclose(1 / rows["lambda_val"], [29, 17.5, 17.5, 1.5, 1, 1, 1, 1])


def test_the_frame_has_the_same_rows(six):
    pandas = pytest.importorskip("pandas", reason="a frame is one of pandas")
    t = six.condensed_tree(min_cluster_size=2)
    pandas.testing.assert_frame_equal(t.to_frame(), pandas.DataFrame(t.to_numpy()))


def test_a_frame_needs_pandas(six, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match=r"to_frame needs pandas: pip install 'evertree\[pandas\]'"):
        six.condensed_tree(min_cluster_size=2).to_frame()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"method": "eom"},
        {"method": "leaf"},
        {"epsilon": 2.0},
        {"method": "leaf", "epsilon": 2.0},
        {"allow_single_cluster": True},
    ],
)
@pytest.mark.parametrize("linkage", ["single", "ward"])
def test_cuts_and_partitions_have_the_same_labels(rng, linkage, options):
    pytest.importorskip("pandas", reason="cuts makes a data frame")
    h = et.Hierarchy(linkage)
    h.insert(noisy_groups(rng))
    h.remove(range(10))
    t = h.condensed_tree(min_cluster_size=8, **options)
    labels = h.cut(min_cluster_size=8, **options)
    assert_array_equal(t.labels, labels)
    assert_array_equal(h.partition(min_cluster_size=8, **options).labels, labels)
    assert_array_equal(h.cuts(min_cluster_size=8, **options)["min_cluster_size=8"], labels)
    assert_array_equal(h.cut(min_cluster_size=8, **options, keys=[60, 12, 199]), labels[[50, 2, 189]])
    assert list(dict.fromkeys(labels[labels >= 0].tolist())) == list(range(t.clusters.size))
    assert t.stability.shape == t.persistence.shape == t.clusters.shape


def test_eom_is_the_default_and_finds_the_groups(rng):
    h = et.agglomerate(noisy_groups(rng), linkage="single")
    labels = h.cut(min_cluster_size=15)
    assert_array_equal(labels, h.cut(min_cluster_size=15, method="eom"))
    assert [np.bincount(labels[60 * k : 60 * k + 60] + 1).argmax() - 1 for k in range(3)] == [0, 1, 2]
    assert labels.max() == 2
    assert (labels[180:] == -1).sum() > 15


def test_leaves_below_a_height_are_merged():
    h = et.Hierarchy("single")
    h.insert([[0.0], [1.0], [4.0], [5.0], [50.0], [51.0], [100.0]])
    assert h.cut(min_cluster_size=2, method="leaf").tolist() == [0, 0, 1, 1, 2, 2, -1]
    assert h.cut(min_cluster_size=2, method="leaf", epsilon=4.0).tolist() == [0, 0, 0, 0, 1, 1, -1]
    assert h.cut(min_cluster_size=2, method="leaf", epsilon=3.0).tolist() == [0, 0, 1, 1, 2, 2, -1]
    one = {"min_cluster_size": 2, "allow_single_cluster": True}
    assert h.cut(method="leaf", epsilon=60.0, **one).tolist() == [0] * 7
    assert h.cut(method="leaf", epsilon=46.0, **one).tolist() == [0] * 6 + [-1]
    assert h.cut(min_cluster_size=2, method="leaf", epsilon=60.0).tolist() == [0, 0, 0, 0, 1, 1, -1]


def test_a_single_cluster(rng):
    x = rng.normal(size=(40, 2))
    h = et.agglomerate(x, linkage="single")
    assert h.cut(min_cluster_size=25).tolist() == [-1] * 40
    labels = h.cut(min_cluster_size=25, allow_single_cluster=True)
    assert 25 <= (labels == 0).sum() < 40
    # With a height, all that is joined there.
    height = float(h.linkage_matrix()[-4, 2])
    labels = h.cut(min_cluster_size=25, allow_single_cluster=True, epsilon=height)
    assert_array_equal(labels == -1, h.cut(height=height, min_cluster_size=25) == -1)
    # But no cluster is too small.
    assert h.cut(min_cluster_size=41, allow_single_cluster=True).tolist() == [-1] * 40


def test_sizes_count_points_whatever_their_weights():
    h = et.Hierarchy("average", "sqeuclidean")
    h.insert(SIX, sample_weight=[9, 9, 9, 9, 9, 9])
    assert h.cut(min_cluster_size=4).tolist() == [-1] * 6
    assert h.cut(min_cluster_size=2).tolist() == [0, 0, 0, 1, 1, -1]


def test_few_points():
    h = et.Hierarchy("single")
    empty = h.condensed_tree(min_cluster_size=2)
    assert repr(empty) == "CondensedTree(min_cluster_size=2): 0 points, 0 clusters, of which 0 are selected; " + (
        "0 points are noise"
    )
    for found in (empty.labels, empty.probabilities, empty.outlier_scores, empty.persistence, empty.to_numpy()):
        assert found.size == 0
    with pytest.raises(EmptyHierarchyError, match="cut needs at least one point"):
        h.cut(min_cluster_size=2)
    h.insert([[3.0]])
    one = h.condensed_tree(min_cluster_size=2, allow_single_cluster=True)
    assert (one.labels.tolist(), one.outlier_scores.tolist()) == ([-1], [0.0])
    assert one.to_numpy().tolist() == [(1, 0, np.inf, 1)]
    assert h.cut(min_cluster_size=1, allow_single_cluster=True).tolist() == [0]
    h.insert([[4.0]])
    assert h.cut(min_cluster_size=2).tolist() == [-1, -1]
    assert h.cut(min_cluster_size=2, allow_single_cluster=True).tolist() == [0, 0]
    assert h.cut(min_cluster_size=1).tolist() == h.cut(min_cluster_size=1, method="leaf").tolist() == [0, 1]


@pytest.mark.parametrize("size", [7, 2**31, 2**63, 10**30])
def test_a_size_that_no_cluster_has(six, size):
    t = six.condensed_tree(min_cluster_size=size, allow_single_cluster=True)
    assert (t.labels.tolist(), t.clusters.size, t.min_cluster_size) == ([-1] * 6, 0, size)
    assert six.cut(min_cluster_size=size).tolist() == six.cut(min_cluster_size=size, height=3.0).tolist() == [-1] * 6


def test_it_says_what_it_is(six):
    t = six.condensed_tree(min_cluster_size=2, method="leaf", epsilon=0.5, allow_single_cluster=True)
    assert repr(t).startswith(
        "CondensedTree(min_cluster_size=2, method='leaf', epsilon=0.5, allow_single_cluster=True): 6 points, 3 clusters"
    )
    assert (t.min_cluster_size, t.method, t.epsilon, t.allow_single_cluster) == (2, "leaf", 0.5, True)


def test_edits_do_not_change_it(six):
    t = six.condensed_tree(min_cluster_size=2)
    rows, scores = t.to_numpy(), t.outlier_scores
    six.remove([0, 1, 2])
    assert_array_equal(t.to_numpy(), rows)
    assert_array_equal(t.outlier_scores, scores)
    assert len(t.labels) == 6


def test_ids_last_and_noise_takes_none(rng):
    h = et.Hierarchy("single")
    x = noisy_groups(rng)
    h.insert(x)
    options = {"min_cluster_size": 15}
    monday = h.partition(**options)
    assert monday.ids == [0, 1, 2]
    h.remove(range(60))
    tuesday = h.partition(**options, follow=monday)
    assert tuesday.ids == [1, 2]
    h.insert(rng.normal([-9.0, 9.0], 0.3, size=(40, 2)))
    wednesday = h.partition(**options, follow=tuesday)
    assert wednesday.ids == [1, 2, 3]
    assert np.count_nonzero(wednesday.labels == -1) > 10
    h.insert(x[:60])
    assert h.partition(**options, follow=wednesday).ids == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_cluster_size": 0}, "min_cluster_size must be a positive integer; it is 0"),
        ({"min_cluster_size": 2.5}, "min_cluster_size must be a positive integer; it is 2.5"),
        ({"min_cluster_size": 2, "method": "dbscan"}, "method must be 'eom' or 'leaf'; it is 'dbscan'"),
        ({"min_cluster_size": 2, "epsilon": -1.0}, "epsilon must be a non-negative number; it is -1.0"),
        ({"min_cluster_size": 2, "epsilon": np.ones(2)}, r"epsilon must be a non-negative number; it is array\("),
        ({"min_cluster_size": 2, "epsilon": float("nan")}, "epsilon must be a non-negative number; it is nan"),
        (
            {"min_cluster_size": 2, "allow_single_cluster": "yes"},
            "allow_single_cluster must be True or False; it is 'yes'",
        ),
    ],
)
def test_bad_options(six, options, message):
    for ask in (six.cut, six.partition, six.condensed_tree):
        with pytest.raises(ParameterError, match=message):
            ask(**options)


@pytest.mark.parametrize("level", [{"n_clusters": 2}, {"height": 1.0}, {"n_clusters": 2, "min_cluster_size": 2}, {}])
@pytest.mark.parametrize(
    "option", [{"method": "eom"}, {"epsilon": 0.5}, {"epsilon": np.ones(2)}, {"allow_single_cluster": True}]
)
def test_what_selects_without_a_number_needs_a_size_alone(six, level, option):
    ((name, value),) = option.items()
    message = f"{name} must be given with a least size alone; it is {value!r}: leave out n_clusters= and height="
    message = re.escape(message)
    for ask in (six.cut, six.partition):
        with pytest.raises(ParameterError, match=message) as caught:
            ask(**level, **option)
        assert caught.value.parameter == name


def test_several_cuts_take_it_with_a_size_alone(six):
    pytest.importorskip("pandas", reason="cuts makes a data frame")
    with pytest.raises(ParameterError, match="method must be given with a least size alone; it is 'leaf'"):
        six.cuts(n_clusters=[2, 3], min_cluster_size=2, method="leaf")
    assert six.cuts(min_cluster_size=2, method="leaf").columns.tolist() == ["min_cluster_size=2"]


def test_durable_trees_have_it(tmp_path):
    with et.open(tmp_path / "tree.db", linkage="single") as h:
        h.insert(SIX)
        assert h.cut(min_cluster_size=2).tolist() == [0, 0, 0, 1, 1, -1]
    with et.open(tmp_path / "tree.db", read_only=True) as h:
        assert h.condensed_tree(min_cluster_size=2).clusters.tolist() == [7, 8]
