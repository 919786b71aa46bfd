"""Drawing: functions of arrays that return Matplotlib's axes. Matplotlib is imported when they are called."""

from __future__ import annotations

from evertree.plotting.changes import plot_changes
from evertree.plotting.dendrogram import plot_dendrogram
from evertree.plotting.layout import Layout, lay_out
from evertree.plotting.refinement import plot_refinement

__all__ = ["Layout", "lay_out", "plot_changes", "plot_dendrogram", "plot_refinement"]
