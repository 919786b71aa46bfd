"""evertree: hierarchical clustering of data that changes, kept alive."""

import lazy_loader

__version__ = "0.2.0.dev0"

# Names are imported on first use, from the modules listed in __init__.pyi: some need an extra, and startup stays fast.
__getattr__, __dir__, _names = lazy_loader.attach_stub(__name__, __file__)

# For ``from evertree import *``: without names that need an extra, so that it always works, and without open, which
# would shadow the built-in.
__all__ = [
    "NULL",
    "Anomaly",
    "CondensedTree",
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
