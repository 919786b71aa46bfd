"""`Hierarchy`: what users hold. One class, whose methods stand in a module for each thing that they do."""

from evertree.hierarchy.anomalies import Anomaly
from evertree.hierarchy.hierarchy import Hierarchy, load
from evertree.hierarchy.locating import Location
from evertree.hierarchy.verdicts import Instability

__all__ = ["Anomaly", "Hierarchy", "Instability", "Location", "load"]
