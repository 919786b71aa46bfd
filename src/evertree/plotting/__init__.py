"""Drawing with Matplotlib, which is imported when a function is called."""

from __future__ import annotations

from evertree.plotting.animation import animate_refinement
from evertree.plotting.changes import plot_changes
from evertree.plotting.dendrogram import plot_dendrogram
from evertree.plotting.layout import Layout, lay_out
from evertree.plotting.refinement import plot_refinement

__all__ = ["Layout", "animate_refinement", "lay_out", "plot_changes", "plot_dendrogram", "plot_refinement"]
