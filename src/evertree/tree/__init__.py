"""The data structure: columns with room to grow, edits by node, invariants, starting trees, conversions."""

from __future__ import annotations

from evertree.tree.live import LiveTree

__all__ = ["LiveTree"]
