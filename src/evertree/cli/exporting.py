"""A tree as files for other tools, and for the eye."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import typer
from numpy.typing import NDArray

from evertree.cli.output import DASH
from evertree.extras import require
from evertree.hierarchy import Hierarchy

#: How pictures and pages may end, for `output.check_targets`.
PICTURES = (".png", ".svg", ".pdf")
PAGES = (".html", ".htm")

#: Points of a picture on an inch.
_DPI = 150


@dataclass(frozen=True)
class Exports:
    """The files that the user asked for."""

    newick: Path | None = None
    tree_json: Path | None = None
    linkage_matrix: Path | None = None
    html: Path | None = None
    plot: Path | None = None
    save: Path | None = None

    def targets(self) -> dict[str, tuple[Path | None, tuple[str, ...]]]:
        """For `output.check_targets`."""
        if self.plot is not None:
            require("matplotlib", "--plot", "plot")
        return {
            "--newick": (self.newick, ("-",)),
            "--tree-json": (self.tree_json, ("-",)),
            "--linkage-matrix": (self.linkage_matrix, (".npy", ".csv")),
            "--html": (self.html, PAGES),
            "--plot": (self.plot, PICTURES),
            "--save": (self.save, ()),
        }

    @property
    def paths(self) -> dict[str, Path]:
        """The files, by what is in them."""
        return {name: path for name, path in vars(self).items() if path is not None}

    @property
    def on_stdout(self) -> bool:
        """Whether one of them goes to standard output."""
        return DASH in self.paths.values()

    def write(self, h: Hierarchy, labels: NDArray[np.int64] | None = None) -> None:
        """Write them; the labels give a picture and a page their colours."""
        if self.newick is not None:
            _write_text(self.newick, h.to_newick())
        if self.tree_json is not None:
            _write_text(self.tree_json, h.to_json())
        if self.linkage_matrix is not None:
            _write_matrix(self.linkage_matrix, h.linkage_matrix())
        if self.html is not None:
            h.to_html(self.html, labels)
        if self.save is not None:
            h.copy().save(self.save)
        if self.plot is not None:
            draw(self.plot, h, labels)


def draw(path: Path, h: Hierarchy, labels: NDArray[np.int64] | None, **options: Any) -> None:
    """Write a picture of a tree."""
    require("matplotlib", "a picture", "plot").use("agg")  # no display is needed
    pyplot = require("matplotlib.pyplot", "a picture", "plot")
    figure = h.plot(labels, **options).figure
    try:
        figure.savefig(path, dpi=_DPI, bbox_inches="tight")
    finally:
        pyplot.close(figure)


def _write_text(path: Path, text: str) -> None:
    if path == DASH:
        typer.echo(text)
    else:
        path.write_bytes((text + "\n").encode())


def _write_matrix(path: Path, matrix: NDArray[np.float64]) -> None:
    if path.suffix.lower() == ".csv":
        np.savetxt(path, matrix, delimiter=",", fmt="%.17g", header="left,right,height,size", comments="")
        return
    with path.open("wb") as file:
        np.save(file, matrix)
