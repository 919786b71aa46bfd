"""A tree as a page: one HTML file to look through it with, and a few lines with a picture for notebooks."""

from __future__ import annotations

from evertree.page.data import PageData, nodes_with_prototypes
from evertree.page.document import render
from evertree.page.glance import glance

__all__ = ["PageData", "glance", "nodes_with_prototypes", "render"]
