"""A hash of all the code that kernels are compiled from. It needs nothing but Python: the build of a wheel uses it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path


def digest_of(sources: Iterable[Path]) -> str:
    """A hash of some files."""
    digest = hashlib.sha256()
    for source in sorted(sources):
        digest.update(source.name.encode())
        digest.update(source.read_bytes())
    return digest.hexdigest()


def fingerprint_of(package: Path) -> str:
    """The hash of the kernels and linkages in the folder of a package."""
    return digest_of([*package.glob("kernels/**/*.py"), *package.glob("linkages/*.py")])
