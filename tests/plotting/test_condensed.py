"""The picture of a condensed tree: where icicles are, how wide, in which colours, and what is refused."""

from __future__ import annotations

import re

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from numpy.testing import assert_allclose

import evertree as et
from evertree.errors import DataError, ParameterError
from evertree.plotting import plot_condensed_tree
from evertree.plotting.dendrogram import LINK_COLOR, PALETTE

mpl.use("Agg")


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture
def ax():
    return Figure().subplots()


@pytest.fixture
def six():
    h = et.Hierarchy("single")
    h.insert([[0.0], [1.0], [2.5], [20.0], [21.0], [50.0]])
    return h.condensed_tree(min_cluster_size=2)


def shapes_of(ax):
    icicles, _ = ax.collections
    return [path.vertices for path in icicles.get_paths()], [tuple(c) for c in icicles.get_facecolors()]


def area(shape):
    x, y = shape.T
    return abs(np.dot(x, np.roll(y, 1)) - np.dot(y, np.roll(x, 1))) / 2


def test_the_area_of_an_icicle_is_its_stability(six, ax):
    six.plot(ax=ax)
    shapes, _ = shapes_of(ax)
    assert_allclose([area(shape) for shape in shapes[1:]], six.stability)
    assert [round(1 / shape[:, 1].max(), 6) for shape in shapes] == [17.5, 1.0, 1.0]
    assert_allclose([np.ptp(shape[:, 0]) for shape in shapes], [6, 3, 2])
    assert ax.yaxis_inverted()
    # They are side by side.
    assert shapes[1][:, 0].max() < shapes[2][:, 0].min()


def test_selected_clusters_have_their_colours(six, ax):
    six.plot(ax=ax, label_clusters=True, title="Six", ylabel=None)
    assert shapes_of(ax)[1] == [to_rgba(color) for color in (LINK_COLOR, PALETTE[0], PALETTE[1])]
    assert [text.get_text() for text in ax.texts] == ["0", "1"]
    assert (ax.get_title(), ax.get_ylabel()) == ("Six", "")


def test_without_a_selection_all_is_grey(six, ax):
    six.plot(select_clusters=False, ax=ax, label_clusters=True)
    assert shapes_of(ax)[1] == [to_rgba(LINK_COLOR)] * 3
    assert not ax.texts


def test_what_is_inside_a_selected_cluster_has_its_colour(rng, ax):
    h = et.agglomerate(rng.normal(size=(200, 2)), linkage="single")
    t = h.condensed_tree(min_cluster_size=4, allow_single_cluster=True)
    assert t.clusters.tolist() == [200]
    plot_condensed_tree(t.to_numpy(), t.clusters, ax=ax)
    shapes, colors = shapes_of(ax)
    assert len(shapes) > 5
    assert set(colors) == {to_rgba(PALETTE[0])}


@pytest.mark.parametrize("linkage", ["single", "ward"])
def test_icicles_do_not_overlap(rng, linkage, ax):
    h = et.agglomerate(rng.normal(size=(300, 2)), linkage=linkage)
    h.condensed_tree(min_cluster_size=4).plot(ax=ax)
    boxes = [(*shape.min(axis=0), *shape.max(axis=0)) for shape in shapes_of(ax)[0]]
    for i, (left, top, right, bottom) in enumerate(boxes):
        for other_left, other_top, other_right, other_bottom in boxes[:i]:
            is_beside = right <= other_left + 1e-9 or other_right <= left + 1e-9
            assert is_beside or bottom <= other_top + 1e-9 or other_bottom <= top + 1e-9


@pytest.mark.parametrize("x", [[], [[1.0]], [[1.0], [2.0]], np.zeros((20, 1)), [[0.0], [0.0], [0.0], [1.0], [9.0]]])
@pytest.mark.parametrize("fewest", [1, 2])
def test_few_and_equal_points(x, fewest):
    h = et.Hierarchy("single")
    h.insert(np.array(x).reshape(-1, 1))
    ax = h.condensed_tree(min_cluster_size=fewest, allow_single_cluster=True).plot()
    ax.figure.canvas.draw()
    assert np.isfinite(ax.get_ylim()).all()


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_all_magnitudes(rng, scale):
    h = et.Hierarchy("average", "sqeuclidean")
    h.insert(scale * rng.uniform(0.1, 0.9, size=(40, 2)))
    h.condensed_tree(min_cluster_size=3).plot().figure.canvas.draw()


def test_many_points_make_few_steps(rng, ax):
    h = et.agglomerate(rng.normal(size=(3000, 2)), linkage="single")
    h.condensed_tree(min_cluster_size=1000).plot(ax=ax)
    (shape,), _ = shapes_of(ax)
    assert 200 < len(shape) < 500
    assert_allclose(np.ptp(shape[:, 0]), 3000)


def test_it_takes_a_table(six, ax):
    pytest.importorskip("pandas", reason="a frame is one of pandas")
    plot_condensed_tree(six.to_frame(), [7], ax=ax)
    assert shapes_of(ax)[1][1] == to_rgba(PALETTE[0])


def test_it_takes_the_tree_itself(six, ax):
    plot_condensed_tree(six, six.clusters, ax=ax)
    assert len(shapes_of(ax)[0]) == 3


def test_what_is_refused(six):
    for tree in (None, np.zeros((3, 4)), {"parent": []}):
        with pytest.raises(DataError, match="tree must be a condensed tree, with columns parent, child, lambda_val"):
            plot_condensed_tree(tree)
    with pytest.raises(ParameterError, match="clusters must be numbers of clusters, from 6 to 8; 0 is among them"):
        plot_condensed_tree(six.to_numpy(), [0])
    for clusters in (7, ["a"], [7.5], [[7], [7, 8]]):
        message = re.escape(f"clusters must be a sequence of integers; it is {clusters!r}")
        with pytest.raises(ParameterError, match=message):
            plot_condensed_tree(six.to_numpy(), clusters)
    with pytest.raises(ParameterError, match="ax must be None or Axes"):
        six.plot(ax=3)
    assert not plt.get_fignums()
