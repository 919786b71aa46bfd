"""The demonstration: handwritten digits stream into a live tree, some leave, some are corrected."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track
from rich.table import Table

from evertree.batch import agglomerate
from evertree.errors import ParameterError
from evertree.extras import require
from evertree.hierarchy import Hierarchy
from evertree.quality import cophenetic_correlation, dendrogram_purity

_BATCH = 32
_N_REMOVED = 200
_N_UPDATED = 200
_N_ORDERS = 10
_N_SHOWN = 50  # clusters in a dendrogram


@dataclass(frozen=True)
class Row:
    """A line of the table."""

    name: str
    hierarchy: Hierarchy
    labels: NDArray[np.int64]
    seconds: float
    n_edited: int

    @property
    def per_second(self) -> float:
        """Points edited a second."""
        return self.n_edited / self.seconds


def run(console: Console, output: Path, seed: int) -> None:
    """Build three trees of the digits, print them side by side and draw two of them."""
    if output.suffix not in (".png", ".pdf", ".svg"):
        raise ParameterError(f"--output must end with .png, .pdf or .svg; it is {output}")
    if not output.absolute().parent.is_dir():
        raise ParameterError(f"--output must be in a folder that exists; {output.parent} does not")
    X, y = _load_digits(seed)
    console.print(
        f"{len(X)} handwritten digits of 8 × 8 pixels, Ward linkage: {_N_REMOVED} are removed again, "
        f"{_N_UPDATED} arrive as noise and are corrected later (each counts as a point)"
    )
    with console.status("Compiling kernels (once; they are kept on disk)"):
        _compile(X)
    rng = np.random.default_rng(seed)
    plan = Plan.draw(X, rng)
    live = _stream(console, plan, y)
    X_now, y_now = live.hierarchy.points(), live.labels
    batch = _batch(X_now, y_now)
    console.print(_table([live, _homogeneous(X_now, y_now), batch]))
    live.hierarchy.certify()
    with console.status("The same edits in other orders"):
        others = [_share(h, _batch(h.points(), y).hierarchy) for h in _other_orders(plan, len(y), rng)]
    console.print(_comparison(live, batch, others))
    console.print(
        "Blocked: nodes of a blocking pair, two clusters that are closer to each other than to those that the tree "
        "merges them with. A batch tree has none; a homogeneous tree is only locally good."
    )
    _draw([live, batch], output)
    console.print(f"Dendrograms of the live and the batch tree: {output}")


def _load_digits(seed: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    require("matplotlib", "the demo", "demo")
    X, y = require("sklearn.datasets", "the demo", "demo").load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(X))
    return X[order], y[order]


def _compile(X: NDArray[np.float64]) -> None:
    """Call once what is timed later."""
    for goal in ("stable", "homogeneous"):
        h = Hierarchy(goal=goal)
        h.insert(X[:8])
        h.update([6], X[8:9])
        h.remove([7])
        h.refine()
    agglomerate(X[:8], "ward")


@dataclass(frozen=True)
class Plan:
    """What happens to the digits, in whatever order they arrive: some of them as noise, which is corrected later."""

    X: NDArray[np.float64]
    arriving: NDArray[np.float64]
    removed: list[int]
    updated: list[int]

    @classmethod
    def draw(cls, X: NDArray[np.float64], rng: np.random.Generator) -> Plan:
        """Draw the points that are removed, and those that arrive as noise."""
        chosen = rng.choice(len(X), _N_REMOVED + _N_UPDATED, replace=False).tolist()
        removed, updated = chosen[:_N_REMOVED], chosen[_N_REMOVED:]
        arriving = X.copy()
        arriving[updated] = rng.uniform(0, 16, size=arriving[updated].shape)
        return cls(X, arriving, removed, updated)

    def edits(self, h: Hierarchy, order: NDArray[np.intp]) -> list[Callable[[], Any]]:
        """All edits of a tree. The key of a point is its row."""
        batches = [order[start : start + _BATCH] for start in range(0, len(order), _BATCH)]
        return [
            *(partial(h.insert, self.arriving[rows], keys=rows.tolist()) for rows in batches),
            *(partial(h.remove, [key]) for key in self.removed),
            *(partial(h.update, [key], self.X[key : key + 1]) for key in self.updated),
        ]


def _stream(console: Console, plan: Plan, y: NDArray[np.int64]) -> Row:
    """Insert the digits in small batches, remove some, and correct those that are noise."""
    h = Hierarchy("ward")
    seconds = 0.0
    for edit in track(plan.edits(h, np.arange(len(y))), "Inserting, removing, updating", console=console):
        began = time.perf_counter()
        edit()
        seconds += time.perf_counter() - began
    n_edited = len(y) + len(plan.removed) + len(plan.updated)
    return Row("live", h, y[np.array(h.keys())], seconds, n_edited)


def _other_orders(plan: Plan, count: int, rng: np.random.Generator) -> Iterator[Hierarchy]:
    """The tree after the same edits, for other orders of arrival."""
    for _ in range(_N_ORDERS - 1):  # the table has one more
        h = Hierarchy("ward")
        for edit in plan.edits(h, rng.permutation(count)):
            edit()
        yield h


def _homogeneous(X: NDArray[Any], y: NDArray[np.int64]) -> Row:
    """The paper's procedure on the same points."""
    began = time.perf_counter()
    h = Hierarchy("ward", goal="homogeneous")
    h.insert(X)
    return Row("homogeneous", h, y, time.perf_counter() - began, len(X))


def _batch(X: NDArray[Any], y: NDArray[np.int64]) -> Row:
    began = time.perf_counter()
    h = agglomerate(X, "ward")
    return Row("batch HAC", h, y, time.perf_counter() - began, len(X))


def _table(rows: list[Row]) -> Table:
    table = Table("tree", "points / s", "moves", "grafts", "blocked", "purity", "cophenetic r")
    for row in rows:
        h = row.hierarchy
        table.add_row(
            row.name,
            f"{row.per_second:,.0f}",
            f"{h.n_moves:,}",
            f"{h.n_grafts:,}",
            f"{h.instability(sample=None).fraction:.1%}",
            f"{dendrogram_purity(row.hierarchy, row.labels):.3f}",
            f"{cophenetic_correlation(row.hierarchy):.3f}",
        )
    for column in table.columns[1:]:
        column.justify = "right"
    return table


def _share(h: Hierarchy, batch: Hierarchy) -> float:
    """How many of the clusters of a tree are in another one of the same points."""
    of_leaf = np.random.default_rng(0).integers(2**63, size=len(h))  # of a cluster, the sum of its leaves

    def clusters(tree: Hierarchy) -> set[int]:
        found = of_leaf.tolist()
        for a, b in tree.linkage_matrix()[:, :2].astype(int).tolist():
            found.append(found[a] + found[b])
        return set(found[len(h) :])

    return len(clusters(h) & clusters(batch)) / (len(h) - 1)


def _comparison(live: Row, batch: Row, others: list[float]) -> str:
    """In how far the live tree is the batch tree, in this order of the points and in others."""
    here = _share(live.hierarchy, batch.hierarchy)
    return (
        f"After {live.n_edited:,} edits, without a rebuild, the live tree is a batch tree: each of its merges was the "
        f"smallest one when it was made, as h.certify() has checked. {here:.1%} of its clusters are those of the batch "
        f"tree above, and {min(others):.1%} to {max(others):.1%} after the same edits in {len(others)} other orders. "
        "Where it is not all of them, merges tie: pixels are whole numbers, and either of two equal merges is right."
    )


def _draw(rows: list[Row], output: Path) -> None:
    """The upper parts of some trees, each leaf coloured and named by the digit that most of it is."""
    from matplotlib.figure import Figure
    from scipy.cluster.hierarchy import dendrogram

    figure = Figure(figsize=(12, 3.2 * len(rows)), layout="constrained")
    colours = [f"C{digit}" for digit in range(10)]
    for axes, row in zip(figure.subplots(len(rows), 1), rows, strict=True):
        digits = _majority_below(row)
        dendrogram(
            row.hierarchy.linkage_matrix(),
            p=_N_SHOWN,
            truncate_mode="lastp",
            leaf_label_func=lambda node, digits=digits: str(digits[node]),
            leaf_rotation=0,
            link_color_func=lambda node: "0.6",  # noqa: ARG005
            ax=axes,
        )
        for label in axes.get_xticklabels():
            label.set(color=colours[int(label.get_text())], fontweight="bold", fontsize=11)
        purity = dendrogram_purity(row.hierarchy, row.labels)
        axes.set_title(f"{row.name}: purity {purity:.2f}", loc="left")
        axes.set_ylabel("Ward height")
        axes.spines[["top", "right", "bottom"]].set_visible(False)
    figure.savefig(output, dpi=110)


def _majority_below(row: Row) -> NDArray[np.int64]:
    """The most frequent digit in each cluster of SciPy's matrix."""
    Z = row.hierarchy.linkage_matrix()
    n = len(row.labels)
    counts = np.zeros((2 * n - 1, 10), np.int64)
    counts[np.arange(n), row.labels] = 1
    for i, (a, b) in enumerate(Z[:, :2].astype(np.int64)):
        counts[n + i] = counts[a] + counts[b]
    return counts.argmax(axis=1)
