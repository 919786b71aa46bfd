from .clustering import cluster, load
from .distributed_hierarchy import DistributedHierarchy
from .reporting import DistributedReport, Progress

__all__ = ["DistributedHierarchy", "DistributedReport", "Progress", "cluster", "load"]
