"""A tree as HTML: a page to explore it, in one file, and a preview for notebooks."""

from __future__ import annotations

from evertree.io.html.data import PageData, nodes_with_prototypes
from evertree.io.html.document import render_page
from evertree.io.html.preview import render_preview

__all__ = ["PageData", "nodes_with_prototypes", "render_page", "render_preview"]
