from . import distributed, errors, plotting, quality
from .anomalies import Anomaly
from .batch import agglomerate
from .checks import Instability
from .condensed import CondensedTree
from .durable import DurableHierarchy, open  # noqa: A004
from .errors import EvertreeError
from .hierarchy import Hierarchy, load
from .integrations.river import RiverAnomalies, RiverClustering
from .integrations.sklearn import AnytimeClustering
from .kernels.columns import NULL
from .locate import Location
from .partition import Partition
from .sql import Follower, Tick, follow
from .tree.refine import Report
from .windows import Window

__version__: str

__all__ = [
    "NULL",
    "Anomaly",
    "AnytimeClustering",
    "CondensedTree",
    "DurableHierarchy",
    "EvertreeError",
    "Follower",
    "Hierarchy",
    "Instability",
    "Location",
    "Partition",
    "Report",
    "RiverAnomalies",
    "RiverClustering",
    "Tick",
    "Window",
    "agglomerate",
    "distributed",
    "errors",
    "follow",
    "load",
    "open",
    "plotting",
    "quality",
]
