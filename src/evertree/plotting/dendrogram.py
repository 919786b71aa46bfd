"""`plot_dendrogram`: a linkage matrix as a picture."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evertree.errors import DimensionError, InvalidKeyError, ParameterError
from evertree.input.arrays import as_choice, as_whole_number
from evertree.kernels.columns import NOISE, NULL
from evertree.plotting.axes import given_or_new, matplotlib
from evertree.plotting.layout import SPACING, Layout, as_linkage_matrix, lay_out

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Where the root is.
ORIENTATIONS = ("top", "left")

#: Colours of clusters 0, 1, …, repeated: Paul Tol's "muted" scheme, which colour-blind people can tell apart, with dark
#: and light colours alternating.
PALETTE = ("#332288", "#CC6677", "#117733", "#88CCEE", "#882255", "#DDCC77", "#AA4499", "#44AA99", "#999933")

#: Colours of links above the clusters, and of links among noise.
LINK_COLOR = "#777777"
NOISE_COLOR = "#CCCCCC"

#: The longest label made from a key.
_MAX_CHARACTERS = 20

#: The opacity of the triangles of collapsed clusters, and how much of their width they fill.
_TRIANGLE_ALPHA = 0.3
_TRIANGLE_SHARE = 0.7

#: Heights up to this are drawn as 0: Matplotlib cannot set limits so close together.
_LOWEST_RANGE = 1e-280

#: Figure sizes in inches and font sizes in points. Labels too small for horizontal letters are vertical.
_INCHES_PER_LABEL = 0.17
_MAX_INCHES = 14.0
_SMALLEST_LETTERS = 4.0
_SMALLEST_LEVEL_LETTERS = 8.0


def plot_dendrogram(
    Z: Any,
    keys: Sequence[Hashable],
    *,
    labels: Any = None,
    n_shown: int | None = 50,
    orientation: str = "top",
    leaf_rank: Any = None,
    leaf_labels: Mapping[Any, str] | Callable[[Any], str] | None = None,
    max_leaf_labels: int = 60,
    ax: Axes | None = None,
    color: Any = None,
    title: str | None = None,
    ylabel: str | None = "height",
) -> Axes:
    """Draw a dendrogram, or the top of a large one.

    A collapsed cluster is a triangle, as high as the cluster, with the number of its points below.

    Parameters
    ----------
    Z : array-like of shape (n - 1, 4)
        A linkage matrix, finite and monotone.
    keys : sequence of n keys
        Leaf i is ``keys[i]``.
    labels : array-like of n int, optional
        The cluster of each leaf, -1 for noise. A link has the colour of the cluster that contains all points below it;
        the colours repeat after nine clusters. Links above the clusters are grey, those among noise light grey. A
        cluster of one point has no links, so no colour.
    n_shown : int or None, default 50
        How many clusters or leaves to show at the bottom: those that the last ``n_shown - 1`` merges join. None shows
        every leaf.
    orientation : {"top", "left"}, default "top"
        Where the root is. With "left", the leaves are listed from top to bottom with their labels on the right, where
        there is more room for long ones.
    leaf_rank : array-like of n numbers, optional
        Of two branches, the one whose leaves have the higher mean rank is on the right. By default the higher branch
        is, as in SciPy.
    leaf_labels : mapping or callable, optional
        Maps a key to its label, shown in full; keys that are not in a mapping are shown themselves. By default
        ``str(key)``, up to 20 characters.
    max_leaf_labels : int, default 60
        If there are more at the bottom, none is labelled.
    ax : matplotlib.axes.Axes, optional
        Where to draw. By default a new figure is made with ``matplotlib.pyplot.subplots``, so that a notebook shows it
        and ``matplotlib.pyplot.close`` frees it.
    color : color, optional
        The colour, instead of grey, of links without a cluster colour: without `labels`, of all links.
    title : str, optional
        The title of the axes.
    ylabel : str or None, default "height"
        The name of the axis of heights, for either orientation.

    Returns
    -------
    ax : matplotlib.axes.Axes

    Raises
    ------
    MissingExtraError
        Matplotlib is not installed.
    ParameterError, DimensionError, InvalidKeyError
        An option is invalid, or there is not one key or label for each leaf.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from evertree.plotting import plot_dendrogram
    >>> Z = [[0, 2, 1.0, 2], [1, 3, 2.0, 2], [4, 5, 6.0, 4]]
    >>> ax = plot_dendrogram(Z, ["ant", "bee", "ape", "wasp"], labels=[0, 1, 0, 1], ax=Figure().subplots())
    >>> [text.get_text() for text in ax.get_xticklabels()]
    ['ant', 'ape', 'bee', 'wasp']
    """
    matrix = as_linkage_matrix(Z)
    as_choice("orientation", orientation, ORIENTATIONS)
    as_whole_number("max_leaf_labels", max_leaf_labels)
    # The linkage matrices of no leaf and of one leaf are the same.
    if len(matrix) + 1 != len(keys) and (len(matrix) or len(keys)):
        raise InvalidKeyError(f"keys must have {len(matrix) + 1} keys, one for each leaf of Z; it has {len(keys)}")
    clusters = None if labels is None else as_labels(labels, len(keys))
    text_of = _texts(leaf_labels)
    if color is not None and not matplotlib("colors").is_color_like(color):
        raise ParameterError(f"color must be a color of Matplotlib; it is {color!r}")
    layout = lay_out(matrix, n_shown, leaf_rank)
    n_bottom = layout.bottom_node.size if len(keys) else 0
    texts = []
    if 0 < n_bottom <= max_leaf_labels:
        bottom = zip(layout.bottom_node.tolist(), layout.bottom_size.tolist(), strict=True)
        texts = [text_of(keys[u]) if u < len(keys) else f"({size:,})" for u, size in bottom]

    # All checks come first, so that an error leaves no empty figure behind.
    ax = given_or_new(ax, _figsize(len(texts), orientation))
    colors = _node_colors(matrix, clusters, LINK_COLOR if color is None else color)
    ax.add_collection(_lines(layout, colors, orientation), autolim=False)
    _arrange(ax, layout, n_bottom, orientation)
    if texts:
        _label_bottom(ax, layout.bottom_x, texts, orientation)
    if title is not None:
        ax.set_title(title)
    if ylabel is not None:
        (ax.set_ylabel if orientation == "top" else ax.set_xlabel)(ylabel)
    return ax


def as_labels(labels: Any, n: int) -> NDArray[np.intp]:
    """The clusters of n leaves as a checked array."""
    clusters = np.asarray(labels)
    if clusters.shape != (n,):
        raise DimensionError(f"labels must have shape ({n},), one for each leaf; they have {clusters.shape}")
    if clusters.size and clusters.dtype.kind not in "iu":
        raise ParameterError(f"labels must be integers, -1 for no cluster; they are of type {clusters.dtype}")
    return clusters.astype(np.intp)


def _texts(leaf_labels: Any) -> Callable[[Any], str]:
    """The function from a key to its label, on one line because labels are side by side."""
    if leaf_labels is None:
        return shortened
    if isinstance(leaf_labels, Mapping):
        return lambda key: _one_line(leaf_labels[key]) if key in leaf_labels else shortened(key)
    if callable(leaf_labels):
        return lambda key: _one_line(leaf_labels(key))
    raise ParameterError(f"leaf_labels must be a mapping or a function of a key; it is {type(leaf_labels).__name__}")


def _one_line(text: Any) -> str:
    return " ".join(str(text).split())


def shortened(key: Any) -> str:
    """A key as a label: one line, and not too long."""
    text = _one_line(key)
    return text if len(text) <= _MAX_CHARACTERS else text[: _MAX_CHARACTERS - 1].rstrip() + "…"


def _figsize(n_labels: int, orientation: str) -> tuple[float, float]:
    along = _INCHES_PER_LABEL * n_labels + 1
    return (min(max(along, 7), _MAX_INCHES), 4.8) if orientation == "top" else (7, min(max(along, 3.2), _MAX_INCHES))


def _node_colors(Z: NDArray[np.float64], clusters: NDArray[np.intp] | None, above: Any) -> NDArray[np.float64]:
    """The colour of each node: that of the cluster with all its leaves, or `above` if there is none."""
    to_rgba_array = matplotlib("colors").to_rgba_array
    n = len(Z) + 1
    if clusters is None or clusters.size == 0:
        return np.broadcast_to(to_rgba_array([above]), (2 * n - 1, 4))
    names, ranks = np.unique(clusters, return_inverse=True)
    cycle = [NOISE_COLOR if name == NOISE else PALETTE[name % len(PALETTE)] for name in names.tolist()]
    return to_rgba_array([*cycle, above])[common_cluster(Z, ranks)]  # NULL is -1, so it gets the last colour


def common_cluster(Z: NDArray[np.float64], clusters: NDArray[np.intp]) -> NDArray[np.intp]:
    """For each node, the cluster with all its leaves; NULL if they are in several."""
    n = len(Z) + 1
    found = [*clusters.tolist(), *[NULL] * (n - 1)]
    for u, (left, right) in enumerate(Z[:, :2].astype(np.intp).tolist(), n):
        found[u] = found[left] if found[left] == found[right] else NULL
    return np.array(found)


def _lines(layout: Layout, colors: NDArray[np.float64], orientation: str) -> Any:
    """All links, then the triangles of collapsed clusters."""
    n_links = layout.node.size
    closed = np.flatnonzero(layout.bottom_size > 1)
    x, top = layout.bottom_x[closed], layout.bottom_height[closed]
    half, zero = np.full(closed.size, SPACING * _TRIANGLE_SHARE / 2), np.zeros(closed.size)
    links = [
        [layout.left_x, layout.left_x, layout.right_x, layout.right_x],
        [layout.left_height, layout.height, layout.height, layout.right_height],
    ]
    triangles = [[x, x - half, x + half, x], [top, zero, zero, top]]
    lines = np.concatenate([np.array(links).T, np.array(triangles).T])  # (lines, points, places and heights)

    edge = colors[np.concatenate([layout.node, layout.bottom_node[closed]])]
    face = edge.copy()
    face[:n_links, 3] = 0
    face[n_links:, 3] *= _TRIANGLE_ALPHA
    return matplotlib("collections").LineCollection(
        lines if orientation == "top" else lines[:, :, ::-1],
        colors=edge,
        facecolors=face,
        linewidths=1.2 if n_links < 200 else 0.6,
        joinstyle="round",
        capstyle="round",
    )


def _arrange(ax: Axes, layout: Layout, n_bottom: int, orientation: str) -> None:
    """Set the limits, and show only the axis of heights."""
    highest = max(float(layout.height.max(initial=0)), float(layout.bottom_height.max(initial=0)))
    ceiling = 1.05 * highest if highest > _LOWEST_RANGE else 1.0
    width = SPACING * max(n_bottom, 1)
    if orientation == "top":
        ax.set_xlim(0, width)
        ax.set_ylim(0, ceiling)
        ax.set_xticks([])
    else:
        ax.set_xlim(ceiling, 0)
        ax.set_ylim(width, 0)
        ax.set_yticks([])
        ax.yaxis.tick_right()
    for side in ("top", "right", "bottom", "left"):
        ax.spines[side].set_visible(side == ("left" if orientation == "top" else "bottom"))
    ax.tick_params(axis="x" if orientation == "top" else "y", length=0)


def _label_bottom(ax: Axes, places: NDArray[np.float64], texts: list[str], orientation: str) -> None:
    """Write the labels, small enough not to overlap, and vertical if they are too wide."""
    axis, side = (ax.xaxis, 2) if orientation == "top" else (ax.yaxis, 3)
    # Dollar signs in keys are not mathematics.
    axis.set_ticks(places, labels=texts, parse_math=False)
    room = ax.get_position().bounds[side] * ax.figure.bbox.bounds[side] * 72 / ax.figure.dpi / len(texts)
    # The width of a letter is about 0.6 times its height.
    level_size = room / (0.6 * (max(map(len, texts)) + 0.5))
    is_level = orientation == "top" and level_size >= _SMALLEST_LEVEL_LETTERS
    size = level_size if is_level else max(0.85 * room, _SMALLEST_LETTERS)
    for text in axis.get_ticklabels():
        text.set_fontsize(min(text.get_fontsize(), size))
        if orientation == "top" and not is_level:
            text.set_rotation(90)
