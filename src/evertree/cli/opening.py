"""The files that hold trees: durable ones, and those that ``Hierarchy.save`` wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import evertree
from evertree.durable import DurableHierarchy
from evertree.durable.sqlite_file import MAGIC
from evertree.errors import EmptyHierarchyError, FileFormatError
from evertree.hierarchy import Hierarchy

_SAVED = b"PK"


def is_durable(path: Path) -> bool:
    """Whether a file is a durable tree, and not a saved one, by how it begins."""
    with path.open("rb") as file:
        beginning = file.read(len(MAGIC))
    if beginning == MAGIC:
        return True
    if beginning.startswith(_SAVED):
        return False
    raise FileFormatError(f"{path} holds no tree: neither a durable one nor one that was saved")


def open_to_read(path: Path) -> Hierarchy:
    """A tree as it is now. Nobody who writes to it is disturbed."""
    return evertree.open(path, read_only=True) if is_durable(path) else evertree.load(path)


def open_to_write(path: Path, **options: Any) -> DurableHierarchy:
    """A durable tree that is there already, with these options; use ``with``."""
    if not is_durable(path):
        raise FileFormatError(
            f"{path} is a saved tree, which is only read; a durable one can be made of it in Python: "
            f"evertree.open('tree.db', start=evertree.load({str(path)!r}))"
        )
    return evertree.open(path, **options)


def require_points(h: Hierarchy, path: Path) -> None:
    """Refuse an empty tree."""
    if len(h) == 0:
        raise EmptyHierarchyError(f"{path} is a tree without points: see evertree insert")
