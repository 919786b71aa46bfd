"""The README as a package index shows it: without a folder around it, relative links would lead nowhere.

They become links to the source of this version. The address is that of ``[project.urls]`` in pyproject.toml, and stands
nowhere else.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

#: ``](place`` and ``![words](place``, where the place is neither an address nor a heading of this page.
LINK = re.compile(r"(?P<picture>!?)\[(?P<words>[^\]]*)\]\((?!\w+:|#)(?P<place>[^)\s]+)")


def with_addresses(text: str, source: str, version: str) -> str:
    """The text with links into the repository: to pages, and to pictures as they are."""
    release = "main" if "dev" in version else f"v{version}"

    def absolute(link: re.Match[str]) -> str:
        kind = "raw" if link["picture"] else "blob"
        return f"{link['picture']}[{link['words']}]({source}/{kind}/{release}/{link['place']}"

    return LINK.sub(absolute, text)


class CustomMetadataHook(MetadataHookInterface):
    """Adds the README to what a wheel and an sdist say about themselves."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the field ``readme``."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        text = with_addresses(text, metadata["urls"]["Source"], metadata["version"])
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
