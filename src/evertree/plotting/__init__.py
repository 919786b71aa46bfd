"""Drawing with Matplotlib, which is imported when a function is called."""

from __future__ import annotations

from evertree.plotting.changes import plot_changes
from evertree.plotting.condensed import plot_condensed_tree
from evertree.plotting.dendrogram import plot_dendrogram
from evertree.plotting.layout import Layout, lay_out

__all__ = ["Layout", "lay_out", "plot_changes", "plot_condensed_tree", "plot_dendrogram"]
