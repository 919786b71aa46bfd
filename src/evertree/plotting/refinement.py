"""`plot_refinement`: how the quality of a tree rose while it was refined."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evertree.errors import ParameterError
from evertree.plotting.axes import given_or_new
from evertree.plotting.dendrogram import LINK_COLOR, PALETTE
from evertree.plotting.layout import as_numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: The last time over the first above which the axis of time is logarithmic.
_TWO_DECADES = 100.0

#: Up to this many values, each is marked.
_MAX_MARKS = 40


def plot_refinement(seconds: Any, quality: Any, moves: Any = None, *, ax: Axes | None = None) -> Axes:
    """Draw the quality of a tree over the time that its refinement took.

    Each value holds until the next. Time is on a logarithmic scale if it spans more than two decades; what was known
    at 0 seconds then comes in from the left.

    Parameters
    ----------
    seconds : array-like of shape (k,)
        Times since the refinement began, in order.
    quality : array-like of shape (k,)
        The share of nodes with which nothing is wrong, from 0 to 1, at these times.
    moves : array-like of shape (k,), optional
        How many moves had been made, drawn with an axis of its own on the right.
    ax : matplotlib.axes.Axes, optional
        Where to draw. By default a new figure is made with ``matplotlib.pyplot.subplots``, so that a notebook shows it.

    Returns
    -------
    ax : matplotlib.axes.Axes
        The axes of quality.

    Raises
    ------
    MissingExtraError
        Without Matplotlib.
    DimensionError, NotNumericError, NotFiniteError, ParameterError
        For values that are not finite numbers, as many of one kind as of the other, in order and in range.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from evertree.plotting import plot_refinement
    >>> ax = plot_refinement([0.0, 0.1, 0.2], [0.6, 0.9, 1.0], ax=Figure().subplots())
    >>> ax.get_xlabel(), ax.get_xscale()
    ('seconds', 'linear')
    """
    times = as_numbers("seconds", seconds)
    values = as_numbers("quality", quality, len(times), "of seconds")
    made = None if moves is None else as_numbers("moves", moves, len(times), "of seconds")
    if (times < 0).any() or (np.diff(times) < 0).any():
        raise ParameterError("seconds must be non-negative and in order")
    if (values < 0).any() or (values > 1).any():
        raise ParameterError("quality must be from 0 to 1")

    ax = given_or_new(ax, (7, 4.2))
    times = _scale_time(ax, times)
    # What is missing for 1 fills the height, whether it is all or a thousandth.
    missing = max(1 - float(values.min(initial=1)), 1e-3)
    ax.set_ylim(max(1 - 1.08 * missing, 0), 1 + 0.04 * missing)
    ax.set_xlabel("seconds")
    ax.set_ylabel("quality: share of nodes with nothing wrong")
    ax.spines[["top", "right"]].set_visible(False)
    ax.axhline(1, color=LINK_COLOR, linewidth=0.8, linestyle=":")
    marker = "o" if times.size <= _MAX_MARKS else None
    ax.step(times, values, where="post", color=PALETTE[0], marker=marker, markersize=3.5, linewidth=1.6, zorder=3)
    if made is not None:
        twin = ax.twinx()
        twin.step(times, made, where="post", color=PALETTE[1], linewidth=1.2)
        twin.set_ylim(0, 1.04 * max(float(made.max(initial=0)), 1))
        twin.set_ylabel("moves", color=PALETTE[1])
        twin.tick_params(axis="y", colors=PALETTE[1])
        twin.spines[["top", "left", "bottom"]].set_visible(False)
        twin.spines["right"].set_color(PALETTE[1])
        # Quality is what the picture is about, so it is on top.
        ax.set_zorder(twin.get_zorder() + 1)
        ax.patch.set_visible(False)
    return ax


def _scale_time(ax: Axes, times: NDArray[np.float64]) -> NDArray[np.float64]:
    """Set the limits and the scale of time, and move what comes before them to the edge."""
    positive = times[times > 0]
    if positive.size and positive[-1] > _TWO_DECADES * positive[0]:
        begin, end = float(positive[0]) / 1.5, float(positive[-1]) * 1.2
        ax.set_xscale("log")
    else:
        begin, end = 0.0, 1.04 * float(times.max(initial=0)) or 1.0
    ax.set_xlim(begin, end)
    return np.maximum(times, begin)
