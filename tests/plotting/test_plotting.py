"""Pictures: where nodes are placed, which colours and labels they get, and what is refused."""

from __future__ import annotations

import itertools
import sys
import tracemalloc

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from scipy.cluster import hierarchy as sch

import evertree as et
from evertree.errors import (
    DataError,
    DimensionError,
    InvalidKeyError,
    MissingExtraError,
    NotFiniteError,
    NotNumericError,
    ParameterError,
)
from evertree.plotting import lay_out, plot_changes, plot_dendrogram
from evertree.plotting.dendrogram import LINK_COLOR, NOISE_COLOR, PALETTE

mpl.use("Agg")

# Two pairs, {0, 2} and {1, 3}.
FOUR = np.array([[0, 2, 1.0, 2], [1, 3, 2.0, 2], [4, 5, 6.0, 4]])
MANY = 100_000


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture
def ax():
    return Figure().subplots()


def path(n):
    """Every point joins the cluster of all before it."""
    rows = np.arange(n - 1)
    return np.column_stack([np.where(rows == 0, 0, n + rows - 1), rows + 1, rows + 1, rows + 2]).astype(float)


def balanced(n):
    """Nodes are merged in the order of their numbers."""
    rows = np.arange(n - 1)
    size = [1] * n
    for i in range(n - 1):
        size.append(size[2 * i] + size[2 * i + 1])
    return np.column_stack([2 * rows, 2 * rows + 1, rows + 1, size[n:]]).astype(float)


def random_tree(rng, n, method="ward"):
    return sch.linkage(rng.normal(size=(n, 2)), method)


def lines_of(ax):
    (lines,) = ax.collections
    assert isinstance(lines, LineCollection)
    return np.array(lines.get_segments()).reshape(-1, 4, 2), [tuple(c) for c in lines.get_edgecolors()]


def texts_of(axis):
    return [text.get_text() for text in axis.get_ticklabels()]


def links(layout):
    """As SciPy gives them: four places and four heights of each link."""
    places = np.column_stack([layout.left_x, layout.left_x, layout.right_x, layout.right_x])
    heights = np.column_stack([layout.left_height, layout.height, layout.height, layout.right_height])
    return places, heights


@pytest.mark.parametrize("method", ["ward", "single", "average"])
@pytest.mark.parametrize("n", [2, 3, 10, 40])
def test_layout_agrees_with_scipy(rng, n, method):
    for n_shown in (2, 5, n, None):
        Z = random_tree(rng, n, method)
        truncation = {} if n_shown is None else {"truncate_mode": "lastp", "p": n_shown}
        expected = sch.dendrogram(Z, no_plot=True, **truncation)
        layout = lay_out(Z, n_shown)
        places, heights = links(layout)
        # SciPy draws clusters that are not taken apart as if they were leaves. A node above can be in the same place.
        heights[np.isin(places, layout.bottom_x) & ~np.isin(heights, layout.height)] = 0
        ours = np.hstack([places, heights])
        theirs = np.hstack([expected["icoord"], expected["dcoord"]])
        np.testing.assert_allclose(ours[np.lexsort(ours.T)], theirs[np.lexsort(theirs.T)])
        np.testing.assert_array_equal(layout.bottom_node, expected["leaves"])


@pytest.mark.parametrize("n_shown", [None, 1, 2, 7, 30, 100])
def test_layout_is_a_tree_without_crossings(rng, n_shown):
    n = 30
    Z = random_tree(rng, n, "single")
    layout = lay_out(Z, n_shown)
    n_bottom = n if n_shown is None else min(n, n_shown)
    np.testing.assert_array_equal(layout.node, np.arange(2 * n - n_bottom, 2 * n - 1))
    np.testing.assert_array_equal(layout.height, Z[n - n_bottom :, 2])
    np.testing.assert_array_equal(layout.bottom_x, 5 + 10 * np.arange(n_bottom))
    assert layout.bottom_size.sum() == n

    x = dict(zip(layout.bottom_node.tolist(), layout.bottom_x, strict=True))
    height = dict(zip(layout.bottom_node.tolist(), layout.bottom_height, strict=True))
    span = {u: {place} for u, place in x.items()}
    for i, u in enumerate(layout.node.tolist()):
        left, right = sorted(Z[u - n, :2].astype(int).tolist())
        assert (layout.left_x[i], layout.right_x[i]) == (x[left], x[right])
        assert (layout.left_height[i], layout.right_height[i]) == (height[left], height[right])
        x[u], height[u], span[u] = (x[left] + x[right]) / 2, layout.height[i], span[left] | span[right]
        assert max(span[left]) < min(span[right])
        assert max(span[u]) - min(span[u]) == 10 * (len(span[u]) - 1)


def test_order_does_not_depend_on_the_columns():
    swapped = FOUR[:, [1, 0, 2, 3]]
    np.testing.assert_array_equal(lay_out(swapped).bottom_node, lay_out(FOUR).bottom_node)


def test_layout_of_one_leaf():
    layout = lay_out(np.empty((0, 4)))
    assert layout.node.size == 0
    assert (layout.bottom_node.tolist(), layout.bottom_size.tolist(), layout.bottom_x.tolist()) == ([0], [1], [5.0])


@pytest.mark.slow
@pytest.mark.parametrize("make", [path, balanced])
def test_large_trees(make):
    Z = make(MANY)
    tracemalloc.start()
    layout = lay_out(Z)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1000 * MANY  # bytes for each leaf, so nothing is quadratic
    assert sorted(layout.bottom_node.tolist()) == list(range(MANY))
    assert (layout.left_x < layout.right_x).all()
    ax = plot_dendrogram(Z, range(MANY), n_shown=None, labels=np.arange(MANY) % 2)
    assert lines_of(ax)[0].shape == (MANY - 1, 4, 2)
    assert texts_of(ax.xaxis) == []
    assert len(lines_of(plot_dendrogram(Z, range(MANY)))[0]) >= 49


@pytest.mark.parametrize("n_shown", [0, -1, 2.5, True, "all"])
def test_n_shown_must_be_positive(n_shown):
    with pytest.raises(ParameterError, match="n_shown must be a positive integer"):
        lay_out(FOUR, n_shown)
    with pytest.raises(ParameterError, match="n_shown"):
        plot_dendrogram(FOUR, "abcd", n_shown=n_shown)
    assert plt.get_fignums() == []


@pytest.mark.parametrize(
    ("Z", "error"),
    [
        (np.zeros((3, 3)), DimensionError),
        (np.zeros(4), DimensionError),
        ([[0, 1, np.nan, 2]], NotFiniteError),
        ([[0, 2, 1.0, 2]], DataError),
        ([[-1, 0, 1.0, 2]], DataError),
    ],
)
def test_no_linkage_matrix(Z, error):
    with pytest.raises(error, match="Z must"):
        lay_out(Z)


def test_links_and_triangles(ax):
    plot_dendrogram(FOUR, "abcd", n_shown=3, ax=ax)
    segments, colors = lines_of(ax)
    # {0, 2} was merged first, so it is the one that is not taken apart; it is left of {1, 3}.
    np.testing.assert_allclose(
        segments,
        [
            [[15, 0], [15, 2], [25, 2], [25, 0]],
            [[5, 1], [5, 6], [20, 6], [20, 2]],
            [[5, 1], [1.5, 0], [8.5, 0], [5, 1]],
        ],
    )
    assert set(colors) == {to_rgba(LINK_COLOR)}
    assert ax.collections[0].get_facecolors()[:, 3].tolist() == [0, 0, 0.3]
    assert texts_of(ax.xaxis) == ["(2)", "b", "d"]
    assert ax.get_xticks().tolist() == [5, 15, 25]
    assert ax.get_ylim() == (0, pytest.approx(6.3))
    assert ax.get_xlim() == (0, 30)
    assert [side for side, spine in ax.spines.items() if spine.get_visible()] == ["left"]
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_title()) == ("", "height", "")


def test_root_on_the_left(ax):
    plot_dendrogram(FOUR, "abcd", orientation="left", title="four", ylabel="distance", ax=ax)
    top = lines_of(plot_dendrogram(FOUR, "abcd"))[0]
    np.testing.assert_array_equal(lines_of(ax)[0], top[:, :, ::-1])
    assert ax.get_xlim() == (pytest.approx(6.3), 0)
    assert ax.get_ylim() == (40, 0)  # the first leaf is at the top
    assert texts_of(ax.yaxis) == ["a", "c", "b", "d"]
    assert ax.yaxis.get_ticks_position() == "right"
    assert [side for side, spine in ax.spines.items() if spine.get_visible()] == ["bottom"]
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_title()) == ("distance", "", "four")


def test_without_a_name_for_heights(ax):
    assert plot_dendrogram(FOUR, "abcd", ylabel=None, ax=ax).get_ylabel() == ""


def test_colors_of_clusters(ax):
    grey, one, noise = to_rgba(LINK_COLOR), to_rgba(PALETTE[1]), to_rgba(NOISE_COLOR)
    plot_dendrogram(FOUR, "abcd", labels=[1, -1, 1, -1], ax=ax)
    assert lines_of(ax)[1] == [one, noise, grey]
    # {0, 2} is a triangle of two clusters, and {1, 3} one of one.
    bottom = plot_dendrogram(FOUR, "abcd", labels=[0, 1, 2, 1], n_shown=2)
    assert lines_of(bottom)[1] == [grey, grey, one]
    # A point in no cluster does not belong to the cluster beside it.
    assert lines_of(plot_dendrogram(FOUR, "abcd", labels=[1, 1, -1, 1]))[1] == [grey, one, grey]


def test_colors_repeat():
    labels = np.array([0, 9, 0, 9], np.uint8)
    assert lines_of(plot_dendrogram(FOUR, "abcd", labels=labels))[1] == [
        to_rgba(PALETTE[0]),
        to_rgba(PALETTE[0]),
        to_rgba(LINK_COLOR),  # the same colour is not the same cluster
    ]
    assert len(set(PALETTE)) == 9


def test_links_have_the_color_of_all_points_below_them(rng):
    n = 60
    Z = random_tree(rng, n)
    labels = sch.fcluster(Z, 7, "maxclust")
    _, colors = lines_of(plot_dendrogram(Z, range(n), labels=labels, n_shown=None))
    below = [{label} for label in labels.tolist()]
    for row, color in zip(Z, colors, strict=True):
        below.append(below[int(row[0])] | below[int(row[1])])
        (first, *others) = below[-1]
        assert color == to_rgba(LINK_COLOR if others else PALETTE[first % 9])


def test_color():
    assert set(lines_of(plot_dendrogram(FOUR, "abcd", color="red"))[1]) == {to_rgba("red")}
    colors = lines_of(plot_dendrogram(FOUR, "abcd", color="red", labels=[0, 1, 0, 1]))[1]
    assert colors == [to_rgba(PALETTE[0]), to_rgba(PALETTE[1]), to_rgba("red")]


def test_labels_of_leaves(ax):
    keys = [("a", 1), "x" * 20, "a very long key of a point", "two\nlines, $no math^"]
    plot_dendrogram(FOUR, keys, ax=ax)
    assert texts_of(ax.xaxis) == ["('a', 1)", "a very long key of…", "x" * 20, "two lines, $no math^"]
    ax.figure.canvas.draw()


def test_dollar_signs_are_no_mathematics(ax):
    plot_dendrogram(FOUR, [r"$\none$", "$", "5$", "$x^2$"], ax=ax)
    ax.figure.canvas.draw()
    assert texts_of(ax.xaxis) == [r"$\none$", "5$", "$", "$x^2$"]


def test_sizes_have_separators():
    assert texts_of(plot_dendrogram(path(1240), range(1240), n_shown=3).xaxis) == ["1239", "1238", "(1,238)"]


def test_chosen_labels():
    texts = {"a": "a text that is longer than twenty", "b": "B"}
    expected = ["a text that is longer than twenty", "c", "B", "d"]
    assert texts_of(plot_dendrogram(FOUR, "abcd", leaf_labels=texts).xaxis) == expected
    assert texts_of(plot_dendrogram(FOUR, range(4), leaf_labels=lambda i: i * 10).xaxis) == ["0", "20", "10", "30"]


@pytest.mark.parametrize("orientation", ["top", "left"])
def test_too_many_labels(orientation):
    ax = plot_dendrogram(FOUR, "abcd", max_leaf_labels=3, orientation=orientation)
    assert texts_of(ax.xaxis if orientation == "top" else ax.yaxis) == []
    ax = plot_dendrogram(FOUR, "abcd", max_leaf_labels=4, orientation=orientation)
    assert len(texts_of(ax.xaxis if orientation == "top" else ax.yaxis)) == 4


@pytest.mark.parametrize("n", [2, 12, 50])
@pytest.mark.parametrize("orientation", ["top", "left"])
@pytest.mark.parametrize("length", [1, 4, 30])
def test_labels_do_not_overlap(n, orientation, length):
    keys = [f"{i:0{length}}" for i in range(n)]
    ax = plot_dendrogram(balanced(n), keys, orientation=orientation)
    ax.figure.canvas.draw()
    axis = ax.xaxis if orientation == "top" else ax.yaxis
    boxes = [text.get_window_extent() for text in axis.get_ticklabels()]
    assert len(boxes) == n
    for a, b in itertools.pairwise(boxes):
        assert a.x1 <= b.x0 if orientation == "top" else a.y0 >= b.y1
    figure = ax.figure.bbox
    assert all(figure.x0 <= box.x0 and box.x1 <= figure.x1 and figure.y0 <= box.y0 for box in boxes)


@pytest.mark.parametrize("orientation", ["top", "left"])
@pytest.mark.parametrize("n", [0, 1, 2])
def test_small_trees(n, orientation):
    Z = np.array([[0, 1, 2.0, 2]])[: max(n - 1, 0)]
    ax = plot_dendrogram(Z, list("ab")[:n], labels=[0] * n, orientation=orientation)
    ax.figure.canvas.draw()
    assert len(lines_of(ax)[0]) == max(n - 1, 0)
    assert texts_of(ax.xaxis if orientation == "top" else ax.yaxis) == list("ab")[:n]
    assert (ax.get_ylim()[1] if orientation == "top" else ax.get_xlim()[0]) == (2.1 if n == 2 else 1)


def test_one_cluster_shown(ax):
    plot_dendrogram(FOUR, "abcd", n_shown=1, ax=ax)
    np.testing.assert_allclose(lines_of(ax)[0], [[[5, 6], [1.5, 0], [8.5, 0], [5, 6]]])
    assert texts_of(ax.xaxis) == ["(4)"]
    assert ax.get_ylim() == (0, pytest.approx(6.3))


def test_more_shown_than_there_are():
    few, all_of_them = (lines_of(plot_dendrogram(FOUR, "abcd", n_shown=k))[0] for k in (1000, None))
    np.testing.assert_array_equal(few, all_of_them)


@pytest.mark.parametrize("height", [0.0, 1e-300, 1e300])
def test_extreme_heights(height):
    Z = FOUR.copy()
    Z[:, 2] = height
    ax = plot_dendrogram(Z, "abcd", n_shown=3)
    ax.figure.canvas.draw()
    assert ax.get_ylim()[0] == 0


def test_draws_where_it_is_told():
    axes = Figure().subplots(2)
    assert plot_dendrogram(FOUR, "abcd", ax=axes[1]) is axes[1]
    assert not axes[0].collections
    assert plt.get_fignums() == []
    plot_dendrogram(FOUR, "abcd")
    assert len(plt.get_fignums()) == 1


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"orientation": "right"}, ParameterError, "orientation must be 'top' or 'left'; it is 'right'"),
        ({"labels": [0, 1]}, DimensionError, r"labels must have shape \(4,\)"),
        ({"labels": [0.5, 1, 2, 3]}, ParameterError, "labels must be integers"),
        ({"max_leaf_labels": -1}, ParameterError, "max_leaf_labels must be a non-negative integer"),
        ({"leaf_labels": ["a"]}, ParameterError, "leaf_labels must be a mapping or a function of a key; it is list"),
        ({"color": "no color"}, ParameterError, "color must be a color of Matplotlib; it is 'no color'"),
        ({"ax": "axes"}, ParameterError, "ax must be None or Axes of Matplotlib; it is str"),
        ({"keys": "abc"}, InvalidKeyError, "keys must have 4 keys, one for each leaf of Z; it has 3"),
        ({"keys": ""}, InvalidKeyError, "it has 0"),
        ({"leaf_labels": {}.__getitem__}, KeyError, "a"),
    ],
)
def test_bad_options(options, error, match):
    with pytest.raises(error, match=match):
        plot_dendrogram(FOUR, **{"keys": "abcd"} | options)
    assert plt.get_fignums() == []


def test_without_matplotlib(monkeypatch):
    for module in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.setitem(sys.modules, module, None)
    for draw in (lambda: plot_dendrogram(FOUR, "abcd"), lambda: plot_changes([], [])):
        with pytest.raises(MissingExtraError, match=r"plot needs matplotlib.*: pip install 'evertree\[plot\]'"):
            draw()
    lay_out(FOUR)


def tables(*steps):
    """What `Partition.changes` gives, as far as it is drawn."""
    return [{"event": list(events)} for events in steps]


STEPS = tables(["born", "born", "grew"], [], ["died", "split", "merged", "merged", "shrank"])


def bars(ax):
    """The bars that can be seen, by event: begin, end, bottom and top of each."""
    found = {}
    for container in ax.containers:
        boxes = [bar.get_bbox().get_points().T for bar in container if bar.get_height() != 0]
        found[container.get_label()] = [[*sorted(x), *sorted(y)] for x, y in boxes]
    return found


def test_changes_over_time(ax):
    assert plot_changes([1.0, 2.0, 4.0], STEPS, ax=ax) is ax
    assert bars(ax) == {
        "born": [[-0.5, 1, 0, 2]],
        "split": [[2, 4, 0, 1]],
        "died": [[2, 4, -1, 0]],
        "merged": [[2, 4, -3, -1]],
    }
    assert len({container[0].get_facecolor() for container in ax.containers}) == 4
    ax.figure.canvas.draw()
    assert "−" not in "".join(label.get_text() for label in ax.get_yticklabels())


def test_changes_that_partitions_give(rng, ax):
    h = et.Hierarchy()
    h.keep(last=40)
    h.insert(rng.normal(size=(40, 2)))
    p, times, changes = h.partition(n_clusters=3), [], []
    for step in range(6):
        h.insert(rng.normal(size=(10, 2)) + 20 * step)
        q = h.partition(n_clusters=3, follow=p)
        changes.append(q.changes(p))
        times.append(np.datetime64("2026-01-01") + step)
        p = q
    plot_changes(times, changes, known={"a $5 note": np.datetime64("2026-01-03"), "$x$": times[-1]}, ax=ax)
    drawn = bars(ax)
    for event in ("born", "split", "died", "merged"):
        total = sum(int((table["event"] == event).sum()) for table in changes)
        assert sum(abs(bar[3] - bar[2]) for bar in drawn[event]) == total
    assert [text.get_text() for text in ax.texts] == ["a $5 note", "$x$"]
    ax.figure.canvas.draw()
    assert any("01" in label.get_text() for label in ax.get_xticklabels())


@pytest.mark.parametrize("known", [None, [], [1.5, 2.5], np.array([1.5, 2.5]), {"one": 1.5}, iter([2.0])])
def test_what_is_known(known, ax):
    count = 0 if known is None else 1 if not hasattr(known, "__len__") else len(known)
    plot_changes([1, 2, 3], STEPS, known=known, ax=ax)
    assert len(ax.lines) == 1 + count  # the line at 0 is one
    ax.figure.canvas.draw()


@pytest.mark.parametrize("steps", [[], STEPS[:1], tables([], [])])
def test_few_changes(steps, ax):
    plot_changes(range(len(steps)), steps, ax=ax)
    ax.figure.canvas.draw()
    assert plot_changes([5.0] * len(steps), steps, ax=ax) is ax
    ax.figure.canvas.draw()


@pytest.mark.parametrize(
    ("values", "error", "match"),
    [
        (([1, 2], STEPS), DimensionError, "times must have 3 values, one for each table in changes; it has 2"),
        (([[1, 2, 3]], STEPS), DimensionError, "one dimension"),
        (([1, 3, 2], STEPS), ParameterError, "in order"),
        (([1, 2, np.inf], STEPS), NotFiniteError, "times must be finite"),
        ((["a", "b", "c"], STEPS), NotNumericError, "numbers or dates"),
        (([1], [{"no": []}]), ParameterError, "there is a dict without events"),
        (([1], [3]), ParameterError, "results of Partition.changes"),
    ],
)
def test_bad_changes(values, error, match):
    with pytest.raises(error, match=match):
        plot_changes(*values)
    with pytest.raises(NotNumericError, match="known"):
        plot_changes([1, 2, 3], STEPS, known=["then"])
    with pytest.raises(ParameterError, match="known must be a collection of times"):
        plot_changes([1, 2, 3], STEPS, known=1.5)


def test_ranks_decide_which_branch_is_on_the_left(rng, ax):
    Z = random_tree(rng, 30)
    usual = lay_out(Z)
    place = np.empty(30)
    place[usual.bottom_node] = np.arange(30)
    np.testing.assert_array_equal(lay_out(Z, leaf_rank=place).bottom_node, usual.bottom_node)
    np.testing.assert_array_equal(lay_out(Z, leaf_rank=-place).bottom_node, usual.bottom_node[::-1])
    np.testing.assert_array_equal(lay_out(Z, 7, -place).bottom_size, lay_out(Z, 7).bottom_size[::-1])
    np.testing.assert_array_equal(lay_out(Z, leaf_rank=np.zeros(30)).bottom_node, usual.bottom_node)
    plot_dendrogram(FOUR, "abcd", leaf_rank=[4, 3, 2, 1], ax=ax)
    assert texts_of(ax.xaxis) == ["d", "b", "c", "a"]


@pytest.mark.parametrize(
    ("leaf_rank", "error", "match"),
    [
        ([1, 2, 3], DimensionError, r"leaf_rank must have shape \(4,\), one for each leaf"),
        ([1, 2, 3, np.inf], NotFiniteError, "leaf_rank must be finite"),
        (["a", "b", "c", "d"], NotNumericError, "leaf_rank must be numbers"),
    ],
)
def test_bad_ranks(leaf_rank, error, match):
    with pytest.raises(error, match=match):
        plot_dendrogram(FOUR, "abcd", leaf_rank=leaf_rank)
    assert plt.get_fignums() == []
