"""`plot_changes`: births, splits, deaths and mergers of clusters over time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evertree.errors import DimensionError, NotFiniteError, NotNumericError, ParameterError
from evertree.plotting.axes import given_or_new, matplotlib
from evertree.plotting.dendrogram import LINK_COLOR, PALETTE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: The colours of the events: those above the line add clusters, those below it remove some.
_ABOVE = {"born": PALETTE[2], "split": PALETTE[3]}
_BELOW = {"died": PALETTE[1], "merged": PALETTE[0]}

#: How much taller the axes are if they show the names of known events.
_ROOM_FOR_NAMES = 0.25


def plot_changes(
    times: Any,
    changes: Sequence[Any],
    *,
    known: Mapping[str, Any] | Iterable[Any] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Plot how many clusters were born, split, died and merged in each step.

    Each step is a bar from the time of the previous step to its own. Births and splits, which add clusters, are above
    the line; deaths and mergers are below it.

    Parameters
    ----------
    times : array-like of k numbers or dates
        When each partition was made, in order.
    changes : sequence of k tables
        The result of `Partition.changes` for each partition and the previous one.
    known : mapping of str to times, or collection of times, optional
        Known events, drawn as vertical lines with their names.
    ax : matplotlib.axes.Axes, optional
        Where to draw. By default a new figure is made with ``matplotlib.pyplot.subplots``, so that a notebook shows it.

    Returns
    -------
    ax : matplotlib.axes.Axes

    Raises
    ------
    MissingExtraError
        Matplotlib is not installed.
    DimensionError, NotNumericError, NotFiniteError, ParameterError
        `times` are not numbers or dates, in order, one for each table; or a table has no events.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from evertree.plotting import plot_changes
    >>> h = et.Hierarchy()
    >>> h.keep(last=4)
    []
    >>> keys = h.insert([[0.0], [1.0], [8.0], [9.0]])
    >>> before, changes = h.partition(height=3.0), []
    >>> for batch in ([[0.5], [8.5]], [[30.0], [31.0]]):
    ...     keys = h.insert(batch)
    ...     now = h.partition(height=3.0, follow=before)
    ...     changes.append(now.changes(before))
    ...     before = now
    >>> ax = plot_changes([1, 2], changes, known={"something new": 1.5}, ax=Figure().subplots())
    >>> ax.get_legend_handles_labels()[1]
    ['born', 'split', 'died', 'merged']
    """
    events = [_events_of(table) for table in changes]
    when, is_dated = _as_times("times", times)
    if when.size != len(events):
        raise DimensionError(f"times must have {len(events)} values, one for each table in changes; it has {when.size}")
    if (np.diff(when) < 0).any():
        raise ParameterError("times must be in order")
    named = _named_times(known)

    ax = given_or_new(ax, (9, 3.6))
    steps = np.diff(when)
    typical = float(np.median(steps[steps > 0])) if (steps > 0).any() else 1.0
    widths = np.concatenate([[typical] * min(when.size, 1), steps])
    for side, colors in ((1, _ABOVE), (-1, _BELOW)):
        base = np.zeros(when.size)
        for name, color in colors.items():
            counts = side * np.array([list(found).count(name) for found in events], np.float64)
            ax.bar(when, counts, -widths, base, align="edge", color=color, label=name, linewidth=0)
            base += counts
    ax.axhline(0, color=LINK_COLOR, linewidth=0.8)
    low, high = ax.get_ylim()
    ax.set_ylim(low, high + (_ROOM_FOR_NAMES * (high - low) if any(name for name, _ in named) else 0))
    for name, line in named:
        ax.axvline(line, color="black", linewidth=0.9, linestyle="--")
        text = ax.text(line, 0.98, name, transform=ax.get_xaxis_transform(), rotation=90, ha="right", va="top")
        text.set(fontsize="small", parse_math=False)  # dollar signs in names are not mathematics
    if is_dated:
        ax.xaxis_date()
    ax.margins(x=0.01)
    ax.set_ylabel("events in a step")
    ax.yaxis.set_major_locator(matplotlib("ticker").MaxNLocator(integer=True))
    ax.yaxis.set_major_formatter(lambda value, _: f"{abs(value):g}")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False, fontsize="small")
    return ax


def _events_of(table: Any) -> list[str]:
    """The events in a table of changes."""
    try:
        return [str(name) for name in table["event"]]
    except (TypeError, LookupError, ValueError):
        raise ParameterError(
            f"changes must be results of Partition.changes; there is a {type(table).__name__} without events"
        ) from None


def _named_times(known: Mapping[str, Any] | Iterable[Any] | None) -> list[tuple[str, float]]:
    """The names and times of known events; the name is empty if only times were given."""
    if known is None:
        return []
    if not isinstance(known, Iterable):
        raise ParameterError(f"known must be a collection of times, or names with times; it is {known!r}")
    pairs = list(known.items()) if isinstance(known, Mapping) else [("", time) for time in known]
    times, _ = _as_times("known", [time for _, time in pairs])
    return [(str(name), float(time)) for (name, _), time in zip(pairs, times, strict=True)]


def _as_times(name: str, values: Any) -> tuple[NDArray[np.float64], bool]:
    """Times as numbers, dates as Matplotlib counts them, and whether they are dates."""
    array = np.asarray(values)
    if array.ndim != 1:
        raise DimensionError(f"{name} must have one dimension; the shape is {array.shape}")
    is_dated = array.dtype.kind == "M" or (array.dtype.kind == "O" and all(hasattr(x, "isoformat") for x in array))
    try:
        found = np.asarray(matplotlib("dates").date2num(array) if is_dated and array.size else array, np.float64)
    except (TypeError, ValueError) as error:
        raise NotNumericError(f"{name} must be numbers or dates: {error}") from None
    if not np.isfinite(found).all():
        raise NotFiniteError(f"{name} must be finite; there is NaN or infinity")
    return found, is_dated and array.size > 0
