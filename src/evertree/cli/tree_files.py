"""The files that hold trees: durable ones, and those written by ``Hierarchy.save``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import evertree
from evertree.durable import DurableHierarchy
from evertree.durable.sqlite_file import MAGIC
from evertree.errors import EmptyHierarchyError, FileFormatError
from evertree.hierarchy import Hierarchy


def is_durable(path: Path) -> bool:
    """Whether a file is a durable tree, rather than a saved one, judging by its first bytes."""
    with path.open("rb") as file:
        start = file.read(len(MAGIC))
    if start == MAGIC:
        return True
    if start.startswith(b"PK"):
        return False
    raise FileFormatError(
        f"{path} holds no tree, neither a durable nor a saved one: evertree cluster makes one of points"
    )


def open_to_read(path: Path, allow_empty: bool = False) -> Hierarchy:
    """A tree as it is now, also while another process writes to it."""
    h = evertree.open(path, read_only=True) if is_durable(path) else evertree.load(path)
    if len(h) == 0 and not allow_empty:
        raise EmptyHierarchyError(f"{path} is a tree without points: see evertree insert")
    return h


def open_to_write(path: Path, **options: Any) -> DurableHierarchy:
    """A durable tree that exists already and has these options; use ``with``."""
    if not is_durable(path):
        raise FileFormatError(
            f"{path} is a saved tree, which can only be read; make a durable one from it in Python: "
            f"evertree.open('tree.db', start=evertree.load({str(path)!r}))"
        )
    return evertree.open(path, **options)
