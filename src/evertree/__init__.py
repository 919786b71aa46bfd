"""evertree: hierarchical clustering of data that changes, kept alive."""

import lazy_loader

__version__ = "0.2.0.dev0"

# Each name is imported when it is used, from where __init__.pyi says: some need an extra, and a start takes no time.
__getattr__, __dir__, _names = lazy_loader.attach_stub(__name__, __file__)

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
