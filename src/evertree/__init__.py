"""evertree: hierarchical clustering of data that changes, kept alive."""

from __future__ import annotations

from evertree import errors, quality
from evertree.batch import agglomerate
from evertree.columns import NULL
from evertree.errors import EvertreeError
from evertree.hierarchy import Hierarchy, load
from evertree.partition import Partition
from evertree.refinement import Report

__version__ = "0.1.0.dev0"

__all__ = ["NULL", "EvertreeError", "Hierarchy", "Partition", "Report", "agglomerate", "errors", "load", "quality"]
