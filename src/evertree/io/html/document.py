"""`render_page`: the HTML file. It loads nothing from a server and runs no script but its own."""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from string import Template

from evertree.io.html.data import PageData

#: In the order in which they depend on each other.
_SCRIPTS = ("elements.js", "tree.js", "colours.js", "outline.js", "drawing.js", "page.js")


def render_page(data: PageData, title: str, facts: Iterable[str]) -> str:
    """The whole page as text."""
    script = "\n".join(_part(name) for name in _SCRIPTS)
    style = _part("page.css")
    return Template(_part("page.html")).substitute(
        title=escaped(title),
        facts=escaped(" · ".join(facts)),
        policy=(
            f"default-src 'none'; script-src {_source(script)}; style-src {_source(style)}; "
            "base-uri 'none'; form-action 'none'"
        ),
        style=style,
        script=script,
        data=data.to_json(),
    )


def escaped(text: str) -> str:
    """A text escaped for HTML. Characters that UTF-8 cannot encode become references."""
    return html.escape(text).encode("utf-8", "xmlcharrefreplace").decode()


@cache
def _part(name: str) -> str:
    return files("evertree.io.html").joinpath(name).read_text(encoding="utf-8")


def _source(text: str) -> str:
    """The hash by which the security policy allows this script or style, and no other."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
