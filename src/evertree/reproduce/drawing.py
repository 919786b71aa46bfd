"""What the figures of the reproduction have in common."""

from __future__ import annotations

from typing import Any

from evertree.reproduce.section5 import LINKAGES

COLOURS = dict(zip(LINKAGES, ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#222222"), strict=True))
MARKERS = dict(zip(LINKAGES, "osDv^", strict=True))


def new_canvas(n_panels: int, title: str, sharey: bool = False) -> tuple[Any, list[Any]]:
    """A figure with some panels side by side."""
    from matplotlib.figure import Figure

    canvas = Figure(figsize=(4.6 * n_panels, 3.9), layout="constrained")
    panels = canvas.subplots(1, n_panels, sharey=sharey, squeeze=False)[0]
    for panel in panels:
        panel.grid(color="0.92")
        panel.spines[["top", "right"]].set_visible(False)
    canvas.suptitle(title)
    return canvas, list(panels)
