"""Durable hierarchies: one SQLite file, every edit committed before the call returns."""

from evertree.durable.durable_hierarchy import DurableHierarchy
from evertree.durable.opening import open  # noqa: A004

__all__ = ["DurableHierarchy", "open"]
