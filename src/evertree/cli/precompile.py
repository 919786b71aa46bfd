"""Compile kernels ahead of use, by using everything once on a few points."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from evertree import kernels, quality
from evertree.batch import agglomerate
from evertree.hierarchy import Hierarchy
from evertree.linkages import LINKAGES
from evertree.tree.scheme import Scheme
from evertree.tree.statistics import FEWEST_TO_REORDER

#: Enough points for every step.
_N_POINTS = 24


class WarmupCase(NamedTuple):
    """Kernels that are compiled together."""

    linkage: str
    metric: str
    dtype: str

    def __str__(self) -> str:
        return f"{self.linkage} on {self.metric}, {self.dtype}"


def warmup_cases(linkages: Sequence[str], dtypes: Sequence[str]) -> list[WarmupCase]:
    """All that there is to compile.

    Metrics other than these share their kernels, but for the comparison of two points, which compiles in no time.
    """
    return [
        WarmupCase(str(linkage), metric, str(dtype))
        for linkage in dict.fromkeys(linkages)
        for metric in (["sqeuclidean"] if LINKAGES[linkage].statistics == "squared" else []) + ["euclidean"]
        for dtype in dict.fromkeys(dtypes)
    ]


def compile_case(case: WarmupCase) -> int:
    """Use everything once, and return how many functions had to be compiled for it."""
    from numba.core import event

    X = np.random.default_rng(0).normal(size=(_N_POINTS, 3)).astype(case.dtype)
    with event.install_recorder("numba:compile") as recorder, _no_log():
        for goal in ("stable", "homogeneous"):
            _edit(Hierarchy(case.linkage, case.metric, goal=goal), X)
        _read(agglomerate(X, case.linkage, case.metric))
        Hierarchy.random(X, case.linkage, case.metric).refine()
        if Scheme(case.linkage, case.metric).has_statistics and _has_compiler():  # large trees are reordered at times
            many = np.random.default_rng(0).normal(size=(2 * FEWEST_TO_REORDER, 1)).astype(case.dtype)
            Hierarchy(case.linkage, case.metric).insert(many)
    return len(recorder.buffer) // 2  # an event is recorded when it starts and when it ends


@contextmanager
def _no_log() -> Iterator[None]:
    """Do not log that kernels are compiled, because that was asked for."""
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


def _has_compiler() -> bool:
    import numba

    return not numba.config.DISABLE_JIT


def cache_folder() -> str | None:
    """The folder in which compiled kernels are kept; None if there is none."""
    cache = getattr(kernels.shared.stabilise.stabilise, "_cache", None)
    found: str | None = getattr(cache, "cache_path", None)
    return found


def cache_text(folder: str | None) -> str:
    """Where compiled kernels are kept, in words."""
    if not _has_compiler():
        return "the compiler is switched off by NUMBA_DISABLE_JIT"
    if folder is None:
        return "they cannot be kept: set NUMBA_CACHE_DIR to a folder that can be written to"
    return f"they are kept in {folder}"
