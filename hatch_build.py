"""What the build of a wheel or an sdist adds to pyproject.toml.

*The README as a package index shows it.* Without a folder around it, relative links would lead nowhere. They become
links to the source of this version. The address is that of ``[project.urls]`` in pyproject.toml, and stands nowhere
else.

*The library of machine code*, if ``EVERTREE_WHEEL=platform``: the wheel is then for one kind of machine and any version
of Python, and does not need Numba. Build the library first, with ``python -m native.build --levels all``; ``make dist``
does both. All other wheels, and the sdist, are for any machine, and depend on Numba.
"""

from __future__ import annotations

import importlib.util
import os
import re
import sysconfig
from pathlib import Path
from platform import machine
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

#: Where the library is, and where it goes.
LIBRARY = "src/evertree/kernels/lib"

IS_FOR_PLATFORM = os.environ.get("EVERTREE_WHEEL") == "platform"

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
    """Adds the README, and what the package depends on, to what a wheel and an sdist say about themselves."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the fields ``readme`` and ``dependencies``."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        text = with_addresses(text, metadata["urls"]["Source"], metadata["version"])
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
        compiler = [] if IS_FOR_PLATFORM else metadata["optional-dependencies"]["jit"]
        metadata["dependencies"] = [*self.config["dependencies"], *compiler]


class CustomBuildHook(BuildHookInterface[Any]):
    """Adds the library to a wheel for one kind of machine."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Say which files the wheel has, and which machines it is for."""
        if self.target_name != "wheel" or version == "editable" or not IS_FOR_PLATFORM:
            return
        for file in fitting_libraries(Path(self.root)):
            build_data["force_include"][str(file)] = f"evertree/kernels/lib/{file.name}"
        build_data["pure_python"] = False
        platform = sysconfig.get_platform().replace("universal2", machine())  # the library is for one processor
        build_data["tag"] = f"py3-none-{re.sub(r'[-.]', '_', platform)}"


def fitting_libraries(root: Path) -> list[Path]:
    """The files of the library; an error if there are none, or if they were made of other sources than these."""
    path = root / "src" / "evertree" / "kernels" / "fingerprint.py"
    spec = importlib.util.spec_from_file_location("fingerprint", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    fingerprint = module.fingerprint_of(root / "src" / "evertree").encode()
    files = sorted(file for file in (root / LIBRARY).glob("*") if file.suffix in (".so", ".dll"))
    stale = [file.name for file in files if file.stem != "cpu_level" and fingerprint not in file.read_bytes()]
    if stale or len(files) < 2:
        raise FileNotFoundError(f"{LIBRARY} must fit the sources: run python -m native.build --levels all first")
    return files
