"""`render_preview`: what a notebook shows of a tree, in the colours of the notebook."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence

import numpy as np

from evertree.io.html.document import escaped
from evertree.plotting import lay_out
from evertree.plotting.dendrogram import shortened
from evertree.tree.views import Top

#: In pixels: the width of a bottom cluster, the height of the tree, the size of a letter, and the margin.
_COLUMN = 20
_HEIGHT = 150
_LETTER = 7
_MARGIN = 8

#: Half the width of a triangle.
_HALF = 0.35 * _COLUMN


def render_preview(title: str, facts: Mapping[str, str], top: Top, texts: Sequence[str]) -> str:
    """A table of facts and, below it, the top of the tree with a text for each of its bottom clusters."""
    rows = "".join(
        f'<tr><th style="text-align:left">{escaped(name)}</th><td style="text-align:left">{escaped(value)}</td></tr>'
        for name, value in facts.items()
    )
    picture = _svg(top, texts) if top.nodes.size > 1 else ""
    return f"<div><strong>{escaped(title)}</strong><table>{rows}</table>{picture}</div>"


def _svg(top: Top, texts: Sequence[str]) -> str:
    layout = lay_out(top.Z)
    n_bottom = top.nodes.size
    shown = [shortened(text) for text in texts]
    width, height = _COLUMN * n_bottom + 2 * _MARGIN, _HEIGHT + _LETTER * max(map(_n_columns, shown)) + 2 * _MARGIN
    ceiling = float(max(top.Z[:, 2].max(initial=0), top.height.max(initial=0))) or 1.0

    place = np.empty(2 * n_bottom - 1)
    place[layout.bottom_node] = layout.bottom_x
    place[layout.node] = (layout.left_x + layout.right_x) / 2
    level = np.concatenate([top.height, top.Z[:, 2]])

    x = _MARGIN + place * _COLUMN / 10  # in a layout, neighbours are 10 apart
    y = _MARGIN + (_HEIGHT - _MARGIN) * (1 - level / ceiling)
    links = "".join(
        f"M{x[left]:.1f} {y[left]:.1f}V{y[u]:.1f}H{x[right]:.1f}V{y[right]:.1f}"
        for u, (left, right) in enumerate(top.Z[:, :2].astype(np.intp).tolist(), n_bottom)
    )
    triangles = "".join(
        f"M{x[u]:.1f} {y[u]:.1f}L{x[u] - _HALF:.1f} {_HEIGHT}H{x[u] + _HALF:.1f}Z"
        for u in layout.bottom_node.tolist()
        if top.size[u] > 1
    )
    labels = "\n".join(  # a notebook that is not trusted shows nothing else of a picture
        f'<text transform="translate({x[u] - 4:.1f} {_HEIGHT + _MARGIN}) rotate(90)">{escaped(shown[u])}</text>'
        for u in layout.bottom_node.tolist()
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="The top of the dendrogram" '
        f'viewBox="0 0 {width} {height}" width="{width}" style="max-width:100%" fill="none" stroke="currentColor">'
        f'<path d="{links}"/><path d="{triangles}" fill="currentColor" fill-opacity="0.25" stroke-linejoin="round"/>'
        f'<g fill="currentColor" stroke="none" font-size="11" font-family="monospace">{labels}</g></svg>'
    )


def _n_columns(text: str) -> int:
    """The width of a text in monospace columns: East Asian wide letters take two."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)
