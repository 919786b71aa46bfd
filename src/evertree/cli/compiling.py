"""Kernels compiled ahead: everything is used once, on a few points."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from evertree import kernels, quality
from evertree.batch import agglomerate
from evertree.hierarchy import Hierarchy
from evertree.linkages import LINKAGES, Linkage
from evertree.tree.scheme import Scheme
from evertree.tree.statistics import FEWEST_TO_REORDER

#: Points, of which there are enough for every step.
_N_POINTS = 24


class Job(NamedTuple):
    """What is compiled in one go."""

    linkage: str
    metric: str
    dtype: str

    def __str__(self) -> str:
        return f"{self.linkage} on {self.metric}, {self.dtype}"


def jobs(linkages: Sequence[str], dtypes: Sequence[str]) -> list[Job]:
    """All that there is to do."""
    return [
        Job(str(linkage), metric, str(dtype))
        for linkage in dict.fromkeys(linkages)
        for metric in _metrics(LINKAGES[linkage])
        for dtype in dict.fromkeys(dtypes)
    ]


def _metrics(linkage: Linkage) -> list[str]:
    """Those for which a linkage has kernels of its own: others only compile what compares two points, in a blink."""
    return ["sqeuclidean", "euclidean"] if linkage.statistics == "squared" else ["euclidean"]


def compile_for(job: Job) -> int:
    """Use everything once, and return how many functions had to be compiled for it."""
    from numba.core import event

    X = np.random.default_rng(0).normal(size=(_N_POINTS, 3)).astype(job.dtype)
    with event.install_recorder("numba:compile") as recorder, _silence():
        for goal in ("stable", "homogeneous"):
            _edit(Hierarchy(job.linkage, job.metric, goal=goal), X)
        _read(agglomerate(X, job.linkage, job.metric))
        Hierarchy.random(X, job.linkage, job.metric).refine()
        if Scheme(job.linkage, job.metric).has_statistics and is_on():  # large trees are put in order now and then
            many = np.random.default_rng(0).normal(size=(2 * FEWEST_TO_REORDER, 1)).astype(job.dtype)
            Hierarchy(job.linkage, job.metric).insert(many)
    return len(recorder.buffer) // 2  # an event is recorded when it starts and when it ends


@contextmanager
def _silence() -> Iterator[None]:
    """Let nobody be told that kernels are compiled, who has asked for it."""
    logger = logging.getLogger("evertree")
    logger.addFilter(_nothing)
    try:
        yield
    finally:
        logger.removeFilter(_nothing)


def _nothing(_: logging.LogRecord) -> bool:
    return False


def _edit(h: Hierarchy, X: Any) -> None:
    h.insert(X[:1])
    h.insert(X[1:])
    h.update([3], X[:1])
    h.remove([2])
    h.refine()
    h.locate(X[:2])


def _read(h: Hierarchy) -> None:
    h.cut(n_clusters=3)
    h.cut(min_cluster_size=2)
    h.linkage_matrix()
    h.prototypes()
    h.cophenetic()
    h.instability()
    h.is_homogeneous()
    h.certify()
    h.validate()
    quality.dendrogram_purity(h, np.zeros(len(h), np.int64))
    quality.tree_value(h)


def is_on() -> bool:
    """Whether there is a compiler."""
    import numba

    return not numba.config.DISABLE_JIT


def place() -> str | None:
    """The folder in which compiled kernels are kept; None if there is none."""
    cache = getattr(kernels.shared.stabilise.stabilise, "_cache", None)
    found: str | None = getattr(cache, "cache_path", None)
    return found


def where(place: str | None) -> str:
    """Where kernels are kept, in words."""
    if not is_on():
        return "the compiler is switched off by NUMBA_DISABLE_JIT"
    if place is None:
        return "they cannot be kept: set NUMBA_CACHE_DIR to a folder that can be written to"
    return f"they are kept in {place}"
