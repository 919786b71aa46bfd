"""Moving pictures of a refinement: their frames, what stays in its place, and what is refused."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from matplotlib import animation as mpl_animation
from matplotlib.colors import to_hex
from PIL import Image, ImageSequence

import evertree as et
from evertree.errors import (
    DimensionError,
    EmptyHierarchyError,
    MissingExtraError,
    NotFiniteError,
    NotNumericError,
    ParameterError,
)
from evertree.plotting import animate_refinement, lay_out
from evertree.plotting.dendrogram import PALETTE

QUICK = {"n_frames": 6, "hold": 0.0, "dpi": 40}


@pytest.fixture
def grouped(rng):
    """A random tree over three groups in the plane."""
    X = np.concatenate([rng.normal(center, 0.5, size=(8, 2)) for center in ([0, 0], [9, 0], [0, 9])])
    return et.Hierarchy.random(X, seed=1)


def durations(path):
    with Image.open(path) as picture:
        return [frame.info["duration"] for frame in ImageSequence.Iterator(picture)]


def shown(animation, number):
    """The axes as they are in a frame: the tree, the curve and, if there are any, the points."""
    animation._func(number)
    animation._draw_was_started = True  # or Matplotlib warns that nobody has looked at it
    return animation._fig.axes


def links(ax):
    return np.array(ax.collections[0].get_segments()).reshape(-1, 4, 2)


def test_a_gif_has_the_frames_and_holds_the_last(grouped, tmp_path):
    before, n_moves = grouped.linkage_matrix(), grouped.n_moves
    path = tmp_path / "refining.gif"
    animate_refinement(grouped, path, n_clusters=3, n_frames=6, fps=20, hold=0.5, dpi=40)
    *moving, last = durations(path)
    assert moving == [50] * 5
    assert last == 50 + 500
    with Image.open(path) as picture:
        assert picture.size == (320, 176)
    np.testing.assert_array_equal(grouped.linkage_matrix(), before)  # copies were refined
    assert grouped.n_moves == n_moves


def test_another_kind_of_file(grouped, tmp_path):
    path = tmp_path / "refining.WEBP"
    grouped.animate_refinement(str(path), n_frames=2, hold=0.0, dpi=20)
    with Image.open(path) as picture:
        assert (picture.format, picture.n_frames) == ("WEBP", 2)


def test_a_file_is_replaced_only_when_the_new_one_is_whole(grouped, tmp_path, monkeypatch):
    path = tmp_path / "refining.gif"
    path.write_bytes(b"before")

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(mpl_animation.PillowWriter, "finish", stop)
    with pytest.raises(KeyboardInterrupt):
        grouped.animate_refinement(path, n_frames=1, hold=0.0, dpi=20)
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]


def test_from_the_tree_that_is_to_the_refined_one(grouped):
    animation = animate_refinement(grouped, n_clusters=3, **QUICK)
    start = links(shown(animation, 0)[0])
    end = links(shown(animation, 5)[0])
    np.testing.assert_allclose(start[:, 1, 1], grouped.linkage_matrix()[:, 2])
    assert shown(animation, 0)[0].get_title(loc="left") == "0 moves, 0 ms"

    refined = grouped.copy()
    report = refined.refine()
    np.testing.assert_allclose(end[:, 1, 1], refined.linkage_matrix()[:, 2])
    tree, curve, dots = shown(animation, 5)
    assert tree.get_title(loc="left").startswith(f"{report.moves + report.grafts} moves, ")
    assert tree.get_title(loc="left").endswith(": stable")
    expected = [PALETTE[label] for label in refined.cut(n_clusters=3)]
    assert [to_hex(color, keep_alpha=False).upper() for color in dots.collections[0].get_facecolors()] == expected
    assert curve.lines[1].get_xdata()[-1] == report.moves + report.grafts
    assert curve.lines[1].get_ydata()[-1] == 1.0
    first = grouped.partition(n_clusters=3, follow=refined.partition(n_clusters=3)).labels
    assert (first != grouped.cut(n_clusters=3)).any()
    colors = shown(animation, 0)[2].collections[0].get_facecolors()
    assert [to_hex(color).upper() for color in colors] == [PALETTE[label] for label in first]


def test_nothing_jumps(grouped):
    animation = animate_refinement(grouped, n_clusters=3, **QUICK)
    limits = [[(*ax.get_xlim(), *ax.get_ylim(), *ax.get_position().bounds) for ax in shown(animation, 0)]]
    n_points = []
    for number in range(1, 6):
        axes = shown(animation, number)
        limits.append([(*ax.get_xlim(), *ax.get_ylim(), *ax.get_position().bounds) for ax in axes])
        n_points.append(len(axes[1].lines[1].get_xdata()))
    assert all(frame == limits[0] for frame in limits)
    assert n_points == [2, 3, 4, 5, 6]
    # Leaves stand as near to their last place as the tree allows: a refined tree is drawn in SciPy's order.
    assert links(shown(animation, 5)[0])[:, 0, 0].tolist() == lay_out(refined(grouped)).left_x.tolist()


def refined(h):
    twin = h.copy()
    twin.refine()
    return twin.linkage_matrix()


@pytest.mark.parametrize(
    ("goal", "measure", "ylabel", "name", "last"),
    [
        ("stable", None, None, "share of nodes in no blocking pair", 1.0),
        ("homogeneous", None, None, "share of nodes without a violation", 1.0),
        ("stable", et.quality.total_linkage, None, "total linkage", None),
        ("stable", lambda h: 7, "seven", "seven", 7.0),
        ("stable", lambda h: np.nan, None, "lambda", None),
    ],
)
def test_what_is_measured(rng, goal, measure, ylabel, name, last):
    h = et.Hierarchy.random(rng.normal(size=(12, 3)), goal=goal)
    animation = animate_refinement(h, measure=measure, ylabel=ylabel, **QUICK)
    _, curve = shown(animation, 5)  # three columns: no points in the plane
    assert curve.get_ylabel() == name
    if last is not None:
        assert curve.lines[1].get_ydata()[-1] == last
    animation._fig.canvas.draw()


@pytest.mark.parametrize("n", [1, 2])
def test_hardly_any_points(n, tmp_path):
    h = et.Hierarchy.random(np.arange(2.0 * n).reshape(n, 2))
    path = tmp_path / "refining.gif"
    animate_refinement(h, path, n_clusters=1, **QUICK)
    assert len(durations(path)) == 1


def test_one_frame_is_the_last(grouped):
    animation = animate_refinement(grouped, n_frames=1)
    assert shown(animation, 0)[0].get_title(loc="left").endswith(": stable")


def test_no_more_frames_than_moves(grouped):
    animation = animate_refinement(grouped, n_frames=10**12, hold=0.0)
    report = grouped.refine()
    assert len(list(animation.new_frame_seq())) == report.moves + report.grafts + 1
    shown(animation, 0)


def test_a_part_of_a_tree_and_other_places(grouped, rng):
    places = rng.normal(size=(24, 2))
    animation = animate_refinement(grouped, n_clusters=3, n_shown=5, points=places, **QUICK)
    tree, _, dots = shown(animation, 0)
    assert tree.get_xlim() == (0, 50)
    np.testing.assert_array_equal(dots.collections[0].get_offsets(), places)


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"path": "refining.txt"}, ParameterError, r"path must end with '.gif', .* it is 'refining.txt'"),
        ({"path": "refining"}, ParameterError, "path must end with"),
        ({"path": "page.html"}, ParameterError, "path must end with"),
        ({"path": "nowhere/refining.gif"}, FileNotFoundError, "no such folder to save to: 'nowhere'"),
        ({"n_frames": 0}, ParameterError, "n_frames"),
        ({"fps": 0}, ParameterError, "fps"),
        ({"fps": 1000}, ParameterError, "fps must be an integer from 1 to 100; it is 1000"),
        ({"hold": -1}, ParameterError, "hold"),
        ({"hold": np.inf}, ParameterError, "hold must be at most 60 seconds; it is inf"),
        ({"dpi": 0}, ParameterError, "dpi"),
        ({"dpi": np.inf}, ParameterError, "dpi must be positive, and at most 1000; it is inf"),
        ({"n_shown": 0}, ParameterError, "n_shown"),
        ({"n_clusters": 25}, ParameterError, "n_clusters must be an integer from 1 to 24"),
        ({"measure": 3}, ParameterError, "measure must be a function of a hierarchy; it is 3"),
        ({"measure": lambda h: None}, ParameterError, "measure must give a number; it gave None"),
        ({"n_clusters": 2, "points": [[0, 0]]}, DimensionError, r"points must have shape \(24, 2\)"),
        ({"n_clusters": 2, "points": np.full((24, 2), np.nan)}, NotFiniteError, "points must be finite"),
        ({"n_clusters": 2, "points": [["a", "b"]] * 24}, NotNumericError, "points must be numbers"),
        ({"points": [[0, 0]] * 24}, ParameterError, "points .* n_clusters"),
    ],
)
def test_refused(grouped, options, error, match, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=match):
        animate_refinement(grouped, **options)
    assert list(tmp_path.iterdir()) == []


def test_without_points():
    with pytest.raises(EmptyHierarchyError, match="insert points first"):
        et.Hierarchy().animate_refinement()


def test_without_ffmpeg(grouped, tmp_path, monkeypatch):
    monkeypatch.setattr(mpl_animation.FFMpegWriter, "isAvailable", classmethod(lambda cls: False))
    with pytest.raises(MissingExtraError, match=r"\.mp4 needs ffmpeg, .*\.gif"):
        grouped.animate_refinement(tmp_path / "refining.mp4")


def test_without_matplotlib(grouped, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.animation", None)
    with pytest.raises(MissingExtraError, match=r"evertree\[plot\]"):
        grouped.animate_refinement()
