"""A tree as a page: one HTML file to look through it with, and a few lines with a picture for notebooks."""

from __future__ import annotations

from evertree.io.html.data import PageData, nodes_with_prototypes
from evertree.io.html.document import render
from evertree.io.html.preview import glance

__all__ = ["PageData", "glance", "nodes_with_prototypes", "render"]
