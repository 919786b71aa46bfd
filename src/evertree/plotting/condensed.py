"""`plot_condensed_tree`: clusters as icicles, which get thinner as points leave them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evertree.errors import DataError, ParameterError
from evertree.kernels.columns import NULL
from evertree.plotting.axes import given_or_new, matplotlib
from evertree.plotting.dendrogram import LINK_COLOR, PALETTE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: The columns of a condensed tree, as hdbscan names them.
COLUMNS = ("parent", "child", "lambda_val", "child_size")

#: The gap between two icicles that hang side by side, as a share of the number of points.
_GAP = 0.02

#: An icicle has at most so many steps.
_MOST_STEPS = 100

#: Densities are drawn up to this: Matplotlib cannot set limits beyond. Those of equal points are infinite, and stand
#: below all others by this share of the axis.
_DENSEST, _BEYOND = 1e280, 0.05


@dataclass(frozen=True)
class _Icicles:
    """The clusters, from the first to the last, each with the rows of its points and children."""

    parent: list[int]  # NULL for the first
    born: list[float]
    rows: list[NDArray[np.intp]]  # in order of density


def plot_condensed_tree(
    tree: Any,
    clusters: Sequence[int] | NDArray[np.integer] | None = None,
    *,
    label_clusters: bool = False,
    ax: Axes | None = None,
    title: str | None = None,
    ylabel: str | None = "λ = 1 / height",
) -> Axes:
    """Draw a condensed tree: an icicle for each cluster, as wide as it has points.

    The axis of the density λ goes down. An icicle begins where its cluster splits off, gets thinner where points leave,
    and ends where the cluster splits or its last points leave. So the area of an icicle is the stability of its
    cluster.

    Parameters
    ----------
    tree : structured array, data frame or condensed tree
        With columns ``parent``, ``child``, ``lambda_val`` and ``child_size``: `CondensedTree.to_numpy`, or hdbscan's
        ``condensed_tree_.to_numpy()``. What has a method ``to_numpy`` and no columns is asked for them.
    clusters : sequence of int, optional
        The numbers of the selected clusters, in the order of their labels: what is in one has its colour, which is that
        of `plot_dendrogram`, and the rest is grey.
    label_clusters : bool
        Whether to write the labels below the selected clusters.
    ax : matplotlib.axes.Axes, optional
        Where to draw. By default a new figure is made with ``matplotlib.pyplot.subplots``, so that a notebook shows it.
    title : str, optional
        The title of the axes.
    ylabel : str or None
        The name of the axis of densities.

    Returns
    -------
    ax : matplotlib.axes.Axes

    Raises
    ------
    MissingExtraError
        Matplotlib is not installed.
    DataError, ParameterError
        `tree` is no condensed tree, or a number in `clusters` is of none of its clusters.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from evertree.plotting import plot_condensed_tree
    >>> h = et.Hierarchy("single")
    >>> keys = h.insert([[0.0], [1.0], [8.0], [9.5], [30.0]])
    >>> t = h.condensed_tree(min_cluster_size=2)
    >>> ax = plot_condensed_tree(t.to_numpy(), t.clusters, label_clusters=True, ax=Figure().subplots())
    >>> [text.get_text() for text in ax.texts]
    ['0', '1']
    """
    parent, child, density, size = _columns_of(tree)
    n = int(parent.min()) if parent.size else 0
    icicles = _icicles(parent - n, child - n, density)
    label = _labels_of(clusters, n, icicles.parent)
    finite = density[np.isfinite(density)]
    deepest = min(float(finite.max(initial=0.0)), _DENSEST) or 1.0
    if density.max(initial=0.0) > deepest:
        deepest *= 1.0 + _BEYOND
    total = [int(size[rows].sum()) for rows in icicles.rows]
    middle = _middles(icicles.parent, total)

    ax = given_or_new(ax, (8, 4.8))
    born = np.minimum(icicles.born, deepest)
    shapes = [
        _shape(middle[c], born[c], np.minimum(density[rows], deepest), size[rows])
        for c, rows in enumerate(icicles.rows)
    ]
    colors = [LINK_COLOR if k == NULL else PALETTE[k % len(PALETTE)] for k in label]
    collections = matplotlib("collections")
    ax.add_collection(collections.PolyCollection(shapes, facecolors=colors, edgecolors="none"))
    ax.add_collection(collections.LineCollection(_splits(icicles.parent, born, middle), colors="black", linewidths=0.8))
    if label_clusters and clusters is not None:
        end = _ends(icicles.parent, shapes)
        for k, c in enumerate(int(cluster) - n for cluster in clusters):
            ax.text(middle[c], end[c], str(k), ha="center", va="top", color=PALETTE[k % len(PALETTE)])
    _arrange(ax, shapes, deepest)
    if title is not None:
        ax.set_title(title)
    if ylabel is not None:
        ax.set_ylabel(ylabel)
    return ax


def _columns_of(tree: Any) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
    """The columns of a condensed tree as arrays."""
    table = tree.to_numpy() if hasattr(tree, "to_numpy") and not hasattr(tree, "__getitem__") else tree
    try:
        parent, child, density, size = (np.asarray(table[name]) for name in COLUMNS)
    except (TypeError, LookupError, ValueError):
        raise DataError(
            f"tree must be a condensed tree, with columns {', '.join(COLUMNS)}; it is {type(tree).__name__}"
        ) from None
    return parent.astype(np.int64), child.astype(np.int64), density.astype(np.float64), size.astype(np.int64)


def _icicles(parent: NDArray[np.int64], child: NDArray[np.int64], density: NDArray[np.float64]) -> _Icicles:
    """The clusters of a condensed tree whose clusters are numbered from 0, and points below."""
    count = int(parent.max(initial=-1)) + 1
    order = np.lexsort((density, parent))
    rows = np.split(order, np.searchsorted(parent[order], np.arange(1, count))) if count else []
    above, born = [NULL] * count, [0.0] * count
    for row in np.flatnonzero(child >= 0).tolist():
        above[int(child[row])], born[int(child[row])] = int(parent[row]), float(density[row])
    return _Icicles(above, born, rows)


def _labels_of(clusters: Any, n: int, parent: list[int]) -> list[int]:
    """The label of the smallest selected cluster that each cluster is in; NULL if there is none."""
    found = [NULL] * len(parent)
    chosen = [] if clusters is None else clusters
    if not isinstance(chosen, Iterable) or not all(isinstance(cluster, (int, np.integer)) for cluster in chosen):
        raise ParameterError(f"clusters must be a sequence of integers; it is {clusters!r}")
    for label, cluster in enumerate(chosen):
        if not n <= cluster < n + len(parent):
            allowed = f"from {n} to {n + len(parent) - 1}" if parent else "of a tree that has some"
            raise ParameterError(f"clusters must be numbers of clusters, {allowed}; {cluster!r} is among them")
        found[int(cluster) - n] = label
    for c, p in enumerate(parent):
        if found[c] == NULL and p != NULL:
            found[c] = found[p]
    return found


def _middles(parent: list[int], total: list[int]) -> list[float]:
    """Where the middle of each icicle is: those of children side by side, below that of their parent."""
    gap = _GAP * max(total, default=0)
    children: list[list[int]] = [[] for _ in parent]
    for c, p in enumerate(parent):
        if p != NULL:
            children[p].append(c)
    room = [float(size) for size in total]  # for the cluster and all below it
    for c in range(len(parent) - 1, -1, -1):
        if children[c]:
            room[c] = max(room[c], sum(room[k] for k in children[c]) + gap * (len(children[c]) - 1))
    middle = [room[0] / 2 if room else 0.0] * len(parent)
    for c, below in enumerate(children):
        place = middle[c] - (sum(room[k] for k in below) + gap * (len(below) - 1)) / 2
        for k in below:
            middle[k] = place + room[k] / 2
            place += room[k] + gap
    return middle


def _shape(middle: float, born: float, density: NDArray[np.float64], size: NDArray[np.int64]) -> NDArray[np.float64]:
    """The outline of an icicle; `density`, at which points leave, ascends."""
    depth, first = np.unique(density, return_index=True)
    width = size.sum() - np.concatenate([[0], np.cumsum(size)])[first]  # down to each depth
    if depth.size > _MOST_STEPS:
        kept = np.searchsorted(-width, -width[0] * np.linspace(1, 0, _MOST_STEPS, endpoint=False))
        kept = np.unique(np.append(np.minimum(kept, depth.size - 1), depth.size - 1))
        # The rest of an icicle between two steps has the width that it has at the lower one.
        depth, width = depth[kept], width[kept]
    depth = np.column_stack([np.concatenate([[born], depth[:-1]]), depth]).ravel()
    half = np.repeat(width, 2) / 2
    left, right = np.column_stack([middle - half, depth]), np.column_stack([middle + half, depth])
    return np.concatenate([left, right[::-1]])


def _ends(parent: list[int], shapes: list[NDArray[np.float64]]) -> list[float]:
    """How far down each icicle reaches, with those that hang from it."""
    found = [float(shape[:, 1].max()) for shape in shapes]
    for c in range(len(parent) - 1, 0, -1):
        found[parent[c]] = max(found[parent[c]], found[c])
    return found


def _splits(
    parent: list[int], born: NDArray[np.float64], middle: list[float]
) -> list[tuple[tuple[float, float], tuple[float, float]]]:
    """A line from below each icicle to each of those that it splits into."""
    return [((middle[p], born[c]), (middle[c], born[c])) for c, p in enumerate(parent) if p != NULL]


def _arrange(ax: Axes, shapes: list[NDArray[np.float64]], deepest: float) -> None:
    """Set the limits, and show only the axis of densities, downwards."""
    left = min((float(shape[:, 0].min()) for shape in shapes), default=0.0)
    right = max((float(shape[:, 0].max()) for shape in shapes), default=1.0)
    margin = 0.03 * (right - left)
    ax.set_xlim(left - margin, right + margin)
    ax.set_ylim(1.02 * deepest, 0)
    ax.set_xticks([])
    for side in ("top", "right", "bottom"):
        ax.spines[side].set_visible(False)
