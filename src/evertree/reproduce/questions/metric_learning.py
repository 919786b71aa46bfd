"""Metric learning in the loop: a metric that improves while the tree follows it."""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertree.batch import agglomerate
from evertree.hierarchy import Hierarchy
from evertree.quality import dendrogram_purity
from evertree.reproduce import mnist
from evertree.reproduce.drawing import new_canvas
from evertree.reproduce.markdown import image, table
from evertree.reproduce.records import Records
from evertree.reproduce.study import Case, Row, Settings, Study

N = 2_000
LABELLED = (5, 20)  # images of each digit that the metric is learned from
COMPONENTS = 32
STEPS = 12
ITERATIONS = 2  # of the learner, in each step
REPETITIONS = 3

#: What was done, in words.
EXPLANATION = f"""\
{N:,} images of MNIST in their first {COMPONENTS} principal components. scikit-learn's NeighborhoodComponentsAnalysis
learns a metric from a few labels, {ITERATIONS} iterations a step; after each step `set_metric` lets the tree of all
other images follow it, and another tree is built anew. Ward linkage, {REPETITIONS} repetitions; labelled images are
not in the trees."""


def _split(settings: Settings, labelled: int, repetition: int) -> tuple[NDArray[Any], ...]:
    """Principal components of images and their digits: to learn from, and to cluster."""
    X, y = mnist.load(settings.mnist).sample(N, settings.rng("metric learning", labelled, repetition))
    centred = X - X.mean(axis=0)
    _, _, directions = np.linalg.svd(centred, full_matrices=False)
    X = centred @ directions[:COMPONENTS].T
    chosen = np.concatenate([np.flatnonzero(y == digit)[:labelled] for digit in range(mnist.N_DIGITS)])
    is_labelled = np.isin(np.arange(len(X)), chosen)
    return X[is_labelled], y[is_labelled], X[~is_labelled], y[~is_labelled]


def run(settings: Settings, case: Case) -> list[Row]:
    """Learn step by step; after each step the tree follows, and another is built anew."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neighbors import NeighborhoodComponentsAnalysis

    labelled, repetition = int(case[0]), int(case[1])
    X_labelled, y_labelled, X, y = _split(settings, labelled, repetition)
    learner = NeighborhoodComponentsAnalysis(init="identity", max_iter=ITERATIONS, warm_start=True, random_state=0)
    matrix = np.eye(COMPONENTS)
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
        case_columns=("labelled", "repetition"),
        columns=("step", "purity", "seconds", "moves", "purity_rebuilt", "seconds_rebuilt"),
        cases=[(labelled, repetition) for labelled in LABELLED for repetition in range(REPETITIONS)],
        run=run,
        is_timed=True,
    )


def answer(records: Records, folder: Path) -> str:
    """Purity over the steps, and the time of a step."""
    rows: list[tuple[object, ...]] = []
    words = []
    for labelled in LABELLED:
        n_labels = labelled * mnist.N_DIGITS
        found = np.array([records[labelled, r] for r in range(REPETITIONS)], np.float64)
        _, purity, _, _, rebuilt, _ = found.mean(axis=0).T
        _, _, seconds, moves, _, seconds_rebuilt = found[:, 1:].mean(axis=(0, 1))
        words.append(f"{purity[0]:.2f} to {purity[-1]:.2f} with {n_labels} labels (rebuilt: {rebuilt[-1]:.2f})")
        times = (f"{1e3 * seconds:.0f}", f"{1e3 * seconds_rebuilt:.0f}")
        rows.append((n_labels, f"{purity[0]:.3f}", f"{purity[-1]:.3f}", f"{rebuilt[-1]:.3f}", f"{moves:,.0f}", *times))
    _draw(records, folder / "metric_learning.png")
    headings = ("labels", "purity before", "after", "rebuilt", "moves and grafts a step", "ms a step", "ms to rebuild")
    return "\n\n".join(
        [
            f"While the metric is learned and the tree follows, purity goes from {' and from '.join(words)}.",
            EXPLANATION,
            table(headings, rows),
            image("metric_learning.png", "Purity over the steps of the learner"),
        ]
    )


def _draw(records: Records, path: Path) -> None:
    canvas, panels = new_canvas(len(LABELLED), "Purity while the metric is learned", sharey=True)
    for panel, labelled in zip(panels, LABELLED, strict=True):
        found = np.array([records[labelled, r] for r in range(REPETITIONS)], np.float64)
        for column, colour, name in ((1, "#0072b2", "the tree follows"), (4, "#222222", "rebuilt")):
            panel.plot(found[..., 0].T, found[..., column].T, color=colour, lw=0.6, alpha=0.5)
            panel.plot(found[0, :, 0], found[..., column].mean(axis=0), color=colour, marker="o", ms=4, label=name)
        panel.set(title=f"{labelled * mnist.N_DIGITS} labels", xlabel="steps of the learner")
    panels[0].set_ylabel("dendrogram purity")
    panels[0].legend(frameon=False)
    canvas.savefig(path, dpi=110)
