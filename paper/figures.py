"""The paper's figures 3 to 6, and the numbers behind them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paper.output import COLOURS, MARKERS, new_figure, write_csv
from paper.section5 import LINKAGES, SIZES, Results


@dataclass(frozen=True)
class Figure:
    """A figure of the paper: what it shows of which data, with a panel for each method."""

    number: int
    label: str
    data: str
    measure: str  # an attribute of `Results`
    methods: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name of its files."""
        return f"figure{self.number}"

    @property
    def title(self) -> str:
        """What it shows."""
        what = "Number of iterations" if self.measure == "moves" else "Cophenetic correlation"
        return f"{what}, {'uniform points' if self.data == 'uniform' else 'MNIST digits'}"


FIGURES = (
    Figure(3, "fig.NumIter_Synthetic", "uniform", "moves", ("AHC", "IHC")),
    Figure(4, "fig.NumIter_MNIST", "mnist", "moves", ("AHC", "IHC")),
    Figure(5, "fig.CCC_Synthetic", "uniform", "correlation", ("HAC", "AHC", "IHC")),
    Figure(6, "fig.CCC_MNIST", "mnist", "correlation", ("HAC", "AHC", "IHC")),
)

CSV_COLUMNS = ("method", "linkage", "n", "repetitions", "mean", "variance", "standard_error")


def write(figure: Figure, results: Results, folder: Path) -> None:
    """Write the numbers of a figure as CSV, and draw it."""
    write_csv(folder / f"{figure.name}.csv", CSV_COLUMNS, _numbers(figure, results))
    draw(figure, results).savefig(folder / f"{figure.name}.png", dpi=110)


def _values(figure: Figure, results: Results, method: str, linkage: str) -> NDArray[np.float64]:
    values: NDArray[np.float64] = getattr(results, figure.measure)[figure.data, linkage, method]
    return values


def _numbers(figure: Figure, results: Results) -> Iterator[tuple[Any, ...]]:
    for method in figure.methods:
        for linkage in LINKAGES:
            values = _values(figure, results, method, linkage)
            for n, mean, variance in zip(SIZES, values.mean(axis=1), sample_variance(values), strict=True):
                yield method, linkage, n, results.repetitions, mean, variance, np.sqrt(variance / results.repetitions)


def sample_variance(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The sample variance in each row; 0 for a single repetition, which has none."""
    return values.var(axis=1, ddof=1) if values.shape[1] > 1 else np.zeros(len(values))


def draw(figure: Figure, results: Results) -> Any:
    """A panel for each method with a line for each linkage, and the standard deviation of single linkage as a shade."""
    # The paper's panels have scales of their own for iterations, which differ tenfold between the methods.
    drawing, panels = new_figure(len(figure.methods), figure.title, sharey=figure.measure == "correlation")
    for panel, method in zip(panels, figure.methods, strict=True):
        for linkage in LINKAGES:
            values = _values(figure, results, method, linkage)
            mean = values.mean(axis=1)
            if linkage == "single":
                spread = np.sqrt(sample_variance(values))
                panel.fill_between(SIZES, mean - spread, mean + spread, color=COLOURS[linkage], alpha=0.15, lw=0)
            panel.plot(SIZES, mean, color=COLOURS[linkage], marker=MARKERS[linkage], ms=4, label=linkage)
        panel.set_title(method)
        panel.set_xlabel("number of points")
    panels[0].set_ylabel("iterations" if figure.measure == "moves" else "cophenetic correlation")
    panels[0].legend(frameon=False)
    return drawing
