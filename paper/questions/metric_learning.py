"""Metric learning in the loop: a metric that improves while the tree follows it."""

from __future__ import annotations

import time
import warnings
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evertree.batch import agglomerate
from evertree.hierarchy import Hierarchy
from evertree.quality import dendrogram_purity
from paper import mnist
from paper.output import markdown_image, markdown_table, new_figure
from paper.study import Case, Records, Row, Settings, Study

N = 2_000
LABELLED = (5, 20)  # points of each class that the metric is learned from
STEPS = 12  # of the learner, one iteration each
REPETITIONS = 3

#: Columns of the first kind of data: those that tell the classes apart, and those that do not.
USEFUL, NUISANCE = 8, 8
#: Principal components of MNIST.
COMPONENTS = 32
DATA = ("nuisance columns", "mnist")

#: The root mean square of the points' distances from their mean. The learner's weights are exp(−distance²): for much
#: larger distances they are 0 or 1, and nothing can be learned.
LENGTH = 3.0

#: What was done, in words.
EXPLANATION = f"""\
scikit-learn's NeighborhoodComponentsAnalysis learns a metric from a few labels, one iteration a step; after each
step `set_metric` lets the tree of all other points follow it, and another tree is built anew. Ward linkage,
{N:,} points of {mnist.N_DIGITS} classes, {REPETITIONS} repetitions; labelled points are not in the trees.
*Nuisance columns*: classes are Gaussians in {USEFUL} columns, beside {NUISANCE} columns of larger noise.
*MNIST*: the first {COMPONENTS} principal components."""


def _points(settings: Settings, data: str, repetition: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    rng = settings.rng("metric learning", data, repetition)
    if data == "mnist":
        X, y = mnist.load(settings.mnist).sample(N, rng)
        X = X - X.mean(axis=0)
        X = X @ np.linalg.svd(X, full_matrices=False)[2][:COMPONENTS].T
    else:
        y = rng.permutation(np.repeat(np.arange(mnist.N_DIGITS), N // mnist.N_DIGITS))
        centre = rng.normal(size=(mnist.N_DIGITS, USEFUL))
        useful = centre[y] + 0.4 * rng.normal(size=(len(y), USEFUL))
        X = np.hstack([useful, 1.5 * rng.normal(size=(len(y), NUISANCE))])
        X = X - X.mean(axis=0)
    return LENGTH * X / np.sqrt((X**2).sum(axis=1).mean()), y


def run(settings: Settings, case: Case) -> list[Row]:
    """Learn step by step; after each step the tree follows, and another is built anew."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neighbors import NeighborhoodComponentsAnalysis

    data, labelled, repetition = str(case[0]), int(case[1]), int(case[2])
    X, y = _points(settings, data, repetition)
    chosen = np.concatenate([np.flatnonzero(y == k)[:labelled] for k in range(mnist.N_DIGITS)])
    X_labelled, y_labelled = X[chosen], y[chosen]
    X, y = np.delete(X, chosen, axis=0), np.delete(y, chosen)
    learner = NeighborhoodComponentsAnalysis(init="identity", max_iter=1, warm_start=True, random_state=0)
    matrix = np.eye(X.shape[1])
    h = Hierarchy("ward", "mahalanobis", metric_params={"VI": matrix})
    h.insert(X)
    h.refine()
    rows: list[Row] = []
    for step in range(STEPS + 1):
        if step:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # it is to stop early
                learner.fit(X_labelled, y_labelled)
            matrix = learner.components_.T @ learner.components_
        before = h.n_moves + h.n_grafts
        began = time.perf_counter()
        h.set_metric("mahalanobis", metric_params={"VI": matrix})
        followed = time.perf_counter()
        rebuilt = agglomerate(X, "ward", "mahalanobis", metric_params={"VI": matrix})
        ended = time.perf_counter()
        rows.append(
            (
                step,
                dendrogram_purity(h, y),
                followed - began,
                h.n_moves + h.n_grafts - before,
                dendrogram_purity(rebuilt, y),
                ended - followed,
            )
        )
    return rows


def study() -> Study:
    """Few labels and more."""
    return Study(
        name="metric_learning",
        title="Metric learning in the loop",
        case_columns=("data", "labelled", "repetition"),
        columns=("step", "purity", "seconds", "moves", "purity_rebuilt", "seconds_rebuilt"),
        cases=[(data, labelled, r) for data in DATA for labelled in LABELLED for r in range(REPETITIONS)],
        run=run,
        is_timed=True,
    )


def _found(records: Records, data: str, labelled: int) -> NDArray[np.float64]:
    """All rows, in the shape (repetitions, steps, columns)."""
    return np.array([records[data, labelled, r] for r in range(REPETITIONS)], np.float64)


def answer(records: Records, folder: Path) -> str:
    """Purity over the steps, and the time of a step."""
    rows: list[tuple[object, ...]] = []
    words = []
    for data in DATA:
        for labelled in LABELLED:
            n_labels = labelled * mnist.N_DIGITS
            found = _found(records, data, labelled)
            _, purity, _, _, rebuilt, _ = found.mean(axis=0).T
            _, _, seconds, moves, _, seconds_rebuilt = found[:, 1:].mean(axis=(0, 1))
            words.append(f"{purity[0]:.2f} to {purity[-1]:.2f} ({data}, {n_labels} labels; rebuilt: {rebuilt[-1]:.2f})")
            numbers = (f"{purity[0]:.3f}", f"{purity[-1]:.3f}", f"{rebuilt[-1]:.3f}", f"{moves:,.0f}")
            rows.append((data, n_labels, *numbers, f"{1e3 * seconds:.0f}", f"{1e3 * seconds_rebuilt:.0f}"))
    _draw(records, folder / "metric_learning.png")
    purities = ("purity before", "after", "rebuilt")
    headings = ("data", "labels", *purities, "moves and grafts a step", "ms a step", "ms to rebuild")
    return "\n\n".join(
        [
            f"While the metric is learned and the tree follows, purity goes from {', from '.join(words)}.",
            EXPLANATION,
            markdown_table(headings, rows),
            markdown_image("metric_learning.png", "Purity over the steps of the learner"),
        ]
    )


def _draw(records: Records, path: Path) -> None:
    cases = [(data, labelled) for data in DATA for labelled in LABELLED]
    figure, panels = new_figure(len(cases), "Purity while the metric is learned", sharey=True)
    for panel, (data, labelled) in zip(panels, cases, strict=True):
        found = _found(records, data, labelled)
        for column, colour, name in ((1, "#0072b2", "the tree follows"), (4, "#222222", "rebuilt")):
            panel.plot(found[..., 0].T, found[..., column].T, color=colour, lw=0.6, alpha=0.5)
            panel.plot(found[0, :, 0], found[..., column].mean(axis=0), color=colour, marker="o", ms=4, label=name)
        panel.set(title=f"{data}, {labelled * mnist.N_DIGITS} labels", xlabel="steps of the learner")
    panels[0].set_ylabel("dendrogram purity")
    panels[0].legend(frameon=False)
    figure.savefig(path, dpi=110)
