"""`animate_refinement`: a tree refining itself, as a moving picture."""

from __future__ import annotations

import numbers
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evertree.errors import (
    DimensionError,
    EmptyHierarchyError,
    MissingExtraError,
    NotFiniteError,
    NotNumericError,
    ParameterError,
    either,
)
from evertree.input.arrays import as_count, as_height
from evertree.io.atomic_write import atomic_write, check_target
from evertree.plotting.axes import matplotlib
from evertree.plotting.dendrogram import LINK_COLOR, NOISE_COLOR, PALETTE, plot_dendrogram
from evertree.plotting.layout import lay_out

if TYPE_CHECKING:
    from matplotlib.animation import FuncAnimation
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Matplotlib's writer for each kind of file.
_WRITERS = {".gif": "pillow", ".webp": "pillow", ".mp4": "ffmpeg", ".mov": "ffmpeg", ".webm": "ffmpeg"}

#: Nodes that the default measure draws.
_SAMPLE = 500

_FIGSIZE = (8.0, 4.4)

#: Limits beyond which options can only be mistakes, and would take all memory.
_MOST_FPS = 100
_LONGEST_HOLD = 60.0
_MOST_DPI = 1000.0


@dataclass(frozen=True, eq=False)
class _Frame:
    """The tree at one moment: SciPy's matrix, the cluster of each leaf, and what it took to get there."""

    Z: NDArray[np.float64]
    labels: NDArray[np.int64] | None
    quality: float
    n_moves: int
    seconds: float


def animate_refinement(
    h: Any,
    path: str | os.PathLike[str] | None = None,
    *,
    n_clusters: int | None = None,
    points: Any = None,
    measure: Callable[[Any], float] | None = None,
    ylabel: str | None = None,
    n_shown: int | None = None,
    n_frames: int = 60,
    fps: int = 10,
    hold: float = 2.0,
    dpi: float = 100.0,
) -> FuncAnimation:
    """Draw how a tree is refined until its goal: the dendrogram, and beside it how the tree gets better.

    The hierarchy does not change: copies of it are refined, one to count the moves and one to draw.

    Parameters
    ----------
    h : Hierarchy
        Start from the tree that the story begins with, such as ``Hierarchy.random(X)``.
    path : str or path, optional
        The file to write: ``.gif`` or ``.webp`` or, where ffmpeg is installed, ``.mp4``, ``.mov`` or ``.webm``. A
        file that is there already is replaced when the new one is complete.
    n_clusters : int, optional
        Colour the clusters of this cut. A cluster has the colour of the one at the end that it has most points of.
    points : array-like of shape (n, 2), optional
        With `n_clusters`: draw these places, in the order of ``h.keys()``, with the colours of their clusters. By
        default the points themselves, if they have two columns.
    measure : callable, optional
        From a hierarchy to a number, such as ``et.quality.cophenetic_correlation``. By default the share of nodes with
        which nothing is wrong: those in no blocking pair, or, where the goal is a homogeneous tree, those without a
        violation. See the notes.
    ylabel : str, optional
        The name of the measure. By default that of the function.
    n_shown : int, optional
        As for `plot_dendrogram`: how many clusters to show at the bottom. By default every leaf.
    n_frames : int, default 60
        How many pictures at most.
    fps : int, default 10
        Pictures in a second, at most 100.
    hold : float, default 2.0
        For how many seconds the last picture stays, at most 60.
    dpi : float, default 100.0
        Dots per inch; the figure has 8 by 4.4 inches.

    Returns
    -------
    animation : matplotlib.animation.FuncAnimation
        Keep it until it has been shown or saved. In a notebook, ``HTML(animation.to_jshtml())`` shows it.

    Raises
    ------
    EmptyHierarchyError
        Without points.
    ParameterError, DimensionError, NotFiniteError, NotNumericError
        For an option that makes no sense, or a measure that gives no number.
    MissingExtraError
        Without Matplotlib, or where the kind of file needs ffmpeg and that is not installed.

    Notes
    -----
    Moves are spread evenly over the frames, and the seconds are those of the refinement alone. All frames are kept, at
    32 bytes for each point.

    The default measure rises to 1, but not steadily: moves at the bottom of a random tree make clusters that fit
    together, which the tree still has far apart. It looks at 500 nodes.

    Examples
    --------
    >>> from evertree.plotting import animate_refinement
    >>> h = et.Hierarchy.random(np.random.default_rng(0).normal(size=(20, 2)))
    >>> animation = animate_refinement(h, "refining.gif", n_clusters=3, n_frames=5, hold=0, dpi=50)
    >>> h.is_stable()
    False
    """
    animations = matplotlib("animation")
    writer = None if path is None else _writer(Path(path), animations)
    as_count("n_frames", n_frames)
    as_count("fps", fps, _MOST_FPS)
    if as_height("hold", hold) > _LONGEST_HOLD:
        raise ParameterError(f"hold must be at most {_LONGEST_HOLD:g} seconds; it is {hold!r}")
    if not 0 < as_height("dpi", dpi) <= _MOST_DPI:
        raise ParameterError(f"dpi must be positive, and at most {_MOST_DPI:g}; it is {dpi!r}")
    if len(h) == 0:
        raise EmptyHierarchyError(
            "animate_refinement needs at least one point, and the hierarchy is empty: insert points first"
        )
    if measure is not None and not callable(measure):
        raise ParameterError(f"measure must be a function of a hierarchy; it is {measure!r}")
    if n_clusters is not None:
        as_count("n_clusters", n_clusters, len(h))
    places = _places(h, points, n_clusters)
    if n_shown is not None:
        as_count("n_shown", n_shown)

    frames = list(_frames(h, n_frames, n_clusters, measure or _share_right))
    picture = _Picture(frames, h.keys(), places, n_shown, h.goal, ylabel or _name(h, measure))
    order = [*range(len(frames)), *[len(frames) - 1] * round(hold * fps)]
    animation = animations.FuncAnimation(
        picture.figure, picture.draw, order, init_func=lambda: None, interval=1000 / fps
    )
    if path is not None:
        _save(animation, Path(path), writer=writer, fps=fps, dpi=dpi)
    return animation


def _writer(file: Path, animations: Any) -> str:
    """The name of Matplotlib's writer for a file that can be written."""
    if file.suffix.lower() not in _WRITERS:
        raise ParameterError(f"path must end with {either(_WRITERS)}; it is {str(file)!r}")
    check_target(file)
    writer = _WRITERS[file.suffix.lower()]
    if not animations.writers.is_available(writer):
        raise MissingExtraError(f"a file {file.suffix} needs {writer}, which is not installed: write a .gif instead")
    return writer


def _save(animation: FuncAnimation, path: Path, **options: Any) -> None:
    """Write a file. Matplotlib would begin with the end of the one that is there."""
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / f"animation{path.suffix}"
        animation.save(made, **options)
        with atomic_write(path) as file:
            file.write(made.read_bytes())


def _places(h: Any, points: Any, n_clusters: int | None) -> NDArray[np.float64] | None:
    """Where to draw the points of a hierarchy in the plane; None if nowhere."""
    if n_clusters is None and points is not None:
        raise ParameterError("points are drawn with the colours of clusters: give n_clusters, too")
    if n_clusters is None:
        return None
    if points is None:
        own = h.points()
        is_plane = isinstance(own, np.ndarray) and own.shape == (len(h), 2) and h.metric != "precomputed"
        return own if is_plane else None
    try:
        places = np.asarray(points, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise NotNumericError(f"points must be numbers: {error}") from None
    if places.shape != (len(h), 2):
        raise DimensionError(f"points must have shape ({len(h)}, 2), a place for each key; they have {places.shape}")
    if not np.isfinite(places).all():
        raise NotFiniteError("points must be finite; there is NaN or infinity")
    return places


def _share_right(h: Any) -> float:
    """The share of nodes with which nothing is wrong."""
    if h.goal == "stable":
        return 1.0 - h.instability(sample=_SAMPLE).fraction
    return 1.0 - h.violations().size / (2 * len(h) - 1)


def _name(h: Any, measure: Callable[[Any], float] | None) -> str:
    if measure is None:
        return "share of nodes in no blocking pair" if h.goal == "stable" else "share of nodes without a violation"
    return str(getattr(measure, "__name__", "quality")).strip("<>_").replace("_", " ")


def _frames(h: Any, n_frames: int, n_clusters: int | None, measure: Callable[[Any], float]) -> Iterator[_Frame]:
    """A tree as it is, and then as it gets better, at most so many times in all; the last one has its goal."""
    end = h.copy()
    report = end.refine()
    n_all = report.moves + report.grafts
    last = None if n_clusters is None else end.partition(n_clusters=n_clusters)
    now, n_moves, seconds = h.copy(), 0, 0.0
    for target in np.unique(np.linspace(n_all, 0, min(n_frames, n_all + 1)).round().astype(int)).tolist():
        if target:
            report = now.refine(moves=None if target == n_all else max(target - n_moves, 0))
            n_moves += report.moves + report.grafts
            seconds += report.seconds
        labels = None if last is None else now.partition(n_clusters=n_clusters, follow=last).labels
        quality = measure(now)
        if not isinstance(quality, numbers.Real):
            raise ParameterError(f"measure must give a number; it gave {quality!r}")
        yield _Frame(now.linkage_matrix(), labels, float(quality), n_moves, seconds)


class _Picture:
    """A figure with the dendrogram on the right and what is measured on the left, below the points if there are any.

    What the axes show stays where it is from frame to frame.
    """

    def __init__(
        self,
        frames: list[_Frame],
        keys: list[Any],
        places: NDArray[np.float64] | None,
        n_shown: int | None,
        goal: str,
        ylabel: str,
    ) -> None:
        self._frames, self._keys, self._n_shown, self._goal = frames, keys, n_shown, goal
        self._ceiling = 1.05 * max(float(frame.Z[:, 2].max(initial=0)) for frame in frames) or 1.0
        # The leaves stand in the order of the last tree, as far as each tree lets them.
        self._rank = np.argsort(lay_out(frames[-1].Z).bottom_node)
        self.figure: Figure = matplotlib("figure").Figure(figsize=_FIGSIZE, layout="constrained")
        grid = self.figure.add_gridspec(1 if places is None else 2, 2, width_ratios=[1, 1.7])
        self._tree: Axes = self.figure.add_subplot(grid[:, 1])
        self._line, self._head = _empty_curve(self.figure.add_subplot(grid[-1, 0]), frames, goal, ylabel)
        self._dots = None if places is None else _dots(self.figure.add_subplot(grid[0, 0]), places)
        self.draw(len(frames) - 1)
        self.figure.draw_without_rendering()
        self.figure.set_layout_engine("none")  # which would make room anew for each frame

    def draw(self, number: int) -> list[Any]:
        """Draw a frame."""
        frame = self._frames[number]
        end = f": {self._goal}" if number == len(self._frames) - 1 else ""
        self._tree.clear()
        plot_dendrogram(
            frame.Z,
            self._keys,
            labels=frame.labels,
            n_shown=self._n_shown,
            leaf_rank=self._rank,
            ax=self._tree,
        )
        self._tree.set_title(f"{frame.n_moves:,} moves, {1000 * frame.seconds:,.0f} ms{end}", loc="left")
        self._tree.set_ylim(0, self._ceiling)
        shown = self._frames[: number + 1]
        self._line.set_data([f.n_moves for f in shown], [f.quality for f in shown])
        self._head.set_data([frame.n_moves], [frame.quality])
        if self._dots is not None and frame.labels is not None:
            self._dots.set_facecolors([PALETTE[label % len(PALETTE)] for label in frame.labels.tolist()])
        return []


def _empty_curve(ax: Axes, frames: list[_Frame], goal: str, ylabel: str) -> tuple[Any, Any]:
    """A line without points and its head, on axes that have room for all of it, and a mark of where it ends."""
    quality = np.array([frame.quality for frame in frames])
    known = quality[np.isfinite(quality)]
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
    margin = 0.08 * (high - low) or 0.05
    ax.set_xlim(0, max(frames[-1].n_moves, 1))
    ax.set_ylim(low - margin, high + margin)
    if np.isfinite(quality[-1]):
        ax.axhline(quality[-1], color=LINK_COLOR, linewidth=0.8, linestyle=":")
        ax.text(0, quality[-1] - margin / 4, f" {goal} tree", va="top", color=LINK_COLOR, fontsize="small")
    ax.set_xlabel("moves")
    ax.set_ylabel(ylabel)
    ax.spines[["top", "right"]].set_visible(False)
    (line,) = ax.plot([], [], color=PALETTE[0], linewidth=1.8, clip_on=False)
    (head,) = ax.plot([], [], "o", color=PALETTE[0], markersize=5, clip_on=False)
    return line, head


def _dots(ax: Axes, places: NDArray[np.float64]) -> Any:
    ax.set_aspect("equal", adjustable="datalim")
    ax.set_xticks([])
    ax.set_yticks([])
    ax.spines[:].set_color(NOISE_COLOR)
    ax.set_title("the points, by cluster", loc="left")
    return ax.scatter(places[:, 0], places[:, 1], s=16, c=LINK_COLOR, linewidths=0)
