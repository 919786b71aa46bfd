"""evertree: hierarchical clustering of data that changes, kept alive."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from evertree import errors, quality
from evertree.batch import agglomerate
from evertree.columns import NULL
from evertree.errors import EvertreeError
from evertree.hierarchy import Anomaly, Hierarchy, Instability, Location, load
from evertree.partition import Partition
from evertree.refinement import Report
from evertree.store import DurableHierarchy
from evertree.store import open as open  # noqa: A004
from evertree.window import Window

if TYPE_CHECKING:
    from evertree import distributed as distributed
    from evertree.estimators import AnytimeClustering as AnytimeClustering
    from evertree.sql import Follower as Follower
    from evertree.sql import Tick as Tick
    from evertree.sql import follow as follow
    from evertree.streaming import RiverAnomalies as RiverAnomalies
    from evertree.streaming import RiverClustering as RiverClustering

__version__ = "0.1.0"

# What needs an extra is imported when it is used.
_LAZY = {
    "AnytimeClustering": "evertree.estimators",
    "Follower": "evertree.sql",
    "RiverAnomalies": "evertree.streaming",
    "RiverClustering": "evertree.streaming",
    "Tick": "evertree.sql",
    "distributed": "evertree.distributed",
    "follow": "evertree.sql",
}

# For ``from evertree import *``: without these names, so that it works without any extra, and without open, which would
# take the place of the built-in one.
__all__ = [
    "NULL",
    "Anomaly",
    "DurableHierarchy",
    "EvertreeError",
    "Hierarchy",
    "Instability",
    "Location",
    "Partition",
    "Report",
    "Window",
    "agglomerate",
    "errors",
    "load",
    "quality",
]


def __dir__() -> list[str]:
    return sorted([*globals(), *_LAZY])


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        module = importlib.import_module(_LAZY[name])
        return module if module.__name__ == f"{__name__}.{name}" else getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
