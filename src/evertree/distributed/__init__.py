"""Trees over more points than one machine holds, on Dask.

What works on parts of a tree needs no Dask, and can be imported without it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from evertree.extras import require

if TYPE_CHECKING:
    from evertree.distributed.clustering import cluster as cluster
    from evertree.distributed.clustering import load as load
    from evertree.distributed.hierarchy import DistributedHierarchy as DistributedHierarchy
    from evertree.distributed.progress import Progress as Progress
    from evertree.distributed.report import DistributedReport as DistributedReport

_LAZY = {
    "DistributedHierarchy": "hierarchy",
    "DistributedReport": "report",
    "Progress": "progress",
    "cluster": "clustering",
    "load": "clustering",
}

__all__ = ["DistributedHierarchy", "DistributedReport", "Progress", "cluster", "load"]


def __dir__() -> list[str]:
    return sorted([*globals(), *_LAZY])


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    for module in ("distributed", "dask.array", "dask.dataframe", "pyarrow"):
        require(module, f"evertree.distributed.{name}", "distributed")
    return getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)
