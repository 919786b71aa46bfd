"""The axes to draw on: given ones, or those of a new figure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evertree.errors import ParameterError
from evertree.extras import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def matplotlib(module: str) -> Any:
    """A module of Matplotlib, or an error that says how to install it."""
    return require(f"matplotlib.{module}", "plot", "plot")


def given_or_new(ax: Any, figsize: tuple[float, float]) -> Axes:
    """`ax`, or the axes of a new pyplot figure if it is None."""
    if ax is None:
        # Notebooks show only figures of pyplot; constrained, so that long labels are not cut off.
        return matplotlib("pyplot").subplots(figsize=figsize, layout="constrained")[1]
    if not isinstance(ax, matplotlib("axes").Axes):
        raise ParameterError(f"ax must be None or Axes of Matplotlib; it is {type(ax).__name__}")
    return ax
