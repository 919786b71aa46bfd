"""What the results are written in: files, tables as CSV and Markdown, and figures in one style."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

COLOURS = {
    "single": "#0072b2",
    "complete": "#d55e00",
    "average": "#009e73",
    "minimax": "#cc79a7",
    "ward": "#222222",
}
MARKERS = {"single": "o", "complete": "s", "average": "D", "minimax": "v", "ward": "^"}


def write_text(path: Path, text: str) -> None:
    """Write a file, all of it or nothing."""
    partial = path.with_name(f"{path.name}.partial")
    partial.write_text(text, encoding="utf-8", newline="")
    partial.replace(path)


def write_csv(path: Path, columns: Iterable[str], rows: Iterable[Iterable[Any]]) -> None:
    """Write a table."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    write_text(path, text.getvalue())


def markdown_table(columns: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    """A table with a heading for each column."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(str(cell) for cell in line)} |" for line in lines)


def markdown_image(name: str, caption: str) -> str:
    """A picture beside the report."""
    return f"![{caption}]({name})"


def new_figure(n_panels: int, title: str, sharey: bool = False) -> tuple[Any, list[Any]]:
    """A figure with some panels side by side."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.6 * n_panels, 3.9), layout="constrained")
    panels = figure.subplots(1, n_panels, sharey=sharey, squeeze=False)[0]
    for panel in panels:
        panel.grid(color="0.92")
        panel.spines[["top", "right"]].set_visible(False)
    figure.suptitle(title)
    return figure, list(panels)
