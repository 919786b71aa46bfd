"""The oldest versions that ``pyproject.toml`` allows, as constraints for pip: of the dependencies and of all extras.

``make test-lowest`` installs them and runs the tests. A requirement without a lower bound is an error.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

PROJECT = Path(__file__).parents[2]


def required(pyproject: Path = PROJECT / "pyproject.toml") -> list[Requirement]:
    """What users install: the dependencies and those of each extra, but for the package itself."""
    contents = tomllib.loads(pyproject.read_text(encoding="utf-8"))
    project, build = contents["project"], contents["tool"]["hatch"]["metadata"]["hooks"]["custom"]
    texts = [*build["dependencies"], *(text for extra in project["optional-dependencies"].values() for text in extra)]
    requirements = [Requirement(text) for text in texts]
    return [one for one in requirements if canonicalize_name(one.name) != canonicalize_name(project["name"])]


def lowest(requirements: Iterable[Requirement]) -> dict[str, Version]:
    """The lowest version of each package, the highest of several bounds; ValueError if one has no lower bound."""
    found: dict[str, Version] = {}
    for requirement in requirements:
        bounds = [Version(part.version) for part in requirement.specifier if part.operator in (">=", "==", "~=")]
        if not bounds:
            raise ValueError(f"{requirement} has no lower bound")
        name = canonicalize_name(requirement.name)
        found[name] = max([*bounds, *([found[name]] if name in found else [])])
    return found


def main() -> None:
    """Print a line for each package; pip allows no extras in constraints."""
    try:
        versions = lowest(required())
    except ValueError as error:
        sys.exit(f"{error} ✗")
    for name in sorted(versions):
        print(f"{name}=={versions[name]}")


if __name__ == "__main__":
    main()
