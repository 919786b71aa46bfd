"""Durable hierarchies: one SQLite file, every edit committed before the call returns."""

from evertree.store.durable import DurableHierarchy
from evertree.store.opening import open  # noqa: A004

__all__ = ["DurableHierarchy", "open"]
