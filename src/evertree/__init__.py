"""evertree: hierarchical clustering of data that changes, kept alive."""

from __future__ import annotations

TYPE_CHECKING = False  # as type checkers read it: importing typing would take longer than all else here
if TYPE_CHECKING:
    from typing import Any

    from evertree import distributed as distributed
    from evertree import errors, quality
    from evertree.batch import agglomerate
    from evertree.columns import NULL
    from evertree.errors import EvertreeError
    from evertree.estimators import AnytimeClustering as AnytimeClustering
    from evertree.hierarchy import Anomaly, Hierarchy, Instability, Location, load
    from evertree.partition import Partition
    from evertree.refinement import Report
    from evertree.sql import Follower as Follower
    from evertree.sql import Tick as Tick
    from evertree.sql import follow as follow
    from evertree.store import DurableHierarchy
    from evertree.store import open as open  # noqa: A004
    from evertree.streaming import RiverAnomalies as RiverAnomalies
    from evertree.streaming import RiverClustering as RiverClustering
    from evertree.window import Window

__version__ = "0.1.0"

# Each name is imported when it is used: some need an extra, and the command line starts at once, and can be stopped.
_LAZY = {
    "NULL": "evertree.columns",
    "Anomaly": "evertree.hierarchy",
    "AnytimeClustering": "evertree.estimators",
    "DurableHierarchy": "evertree.store",
    "EvertreeError": "evertree.errors",
    "Follower": "evertree.sql",
    "Hierarchy": "evertree.hierarchy",
    "Instability": "evertree.hierarchy",
    "Location": "evertree.hierarchy",
    "Partition": "evertree.partition",
    "Report": "evertree.refinement",
    "RiverAnomalies": "evertree.streaming",
    "RiverClustering": "evertree.streaming",
    "Tick": "evertree.sql",
    "Window": "evertree.window",
    "agglomerate": "evertree.batch",
    "distributed": "evertree.distributed",
    "errors": "evertree.errors",
    "follow": "evertree.sql",
    "load": "evertree.hierarchy",
    "open": "evertree.store",
    "quality": "evertree.quality",
}

# For ``from evertree import *``: without what needs an extra, so that it works without any, and without open, which
# would take the place of the built-in one.
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
        import importlib

        module = importlib.import_module(_LAZY[name])
        found = module if module.__name__ == f"{__name__}.{name}" else getattr(module, name)
        if name in __all__:
            globals()[name] = found
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
