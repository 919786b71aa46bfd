"""Numba kernels. Importing this package imports none of them: a module is imported when its name is first used."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evertree.kernels import (
        borders,
        chain,
        cut,
        dissimilarities,
        fill,
        grow,
        heights,
        homogenise,
        insert,
        linkage_values,
        locate,
        merge,
        neighbours,
        ordered,
        pair_path,
        pair_point,
        pairs,
        prototypes,
        purity,
        remove,
        reorder,
        replay,
        rounds,
        scan,
        score,
        shared,
        stabilise,
        topology,
        traverse,
        treelets,
        ultrametric,
        worklist,
    )

__all__ = [
    "borders",
    "chain",
    "cut",
    "dissimilarities",
    "fill",
    "grow",
    "heights",
    "homogenise",
    "insert",
    "linkage_values",
    "locate",
    "merge",
    "neighbours",
    "ordered",
    "pair_path",
    "pair_point",
    "pairs",
    "prototypes",
    "purity",
    "remove",
    "reorder",
    "replay",
    "rounds",
    "scan",
    "score",
    "shared",
    "stabilise",
    "topology",
    "traverse",
    "treelets",
    "ultrametric",
    "worklist",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
