"""`replacing`: a file that is written anew is whole at every moment."""

from __future__ import annotations

import errno
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


def check_target(path: str | os.PathLike[str]) -> Path:
    """The path, if a file can be there."""
    target = Path(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "There is no such folder to save to", str(target.parent))
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, "The path to save to is a folder", str(target))
    return target


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file beside `path`, open for writing, which takes its place when the block has ended without an error.

    Who may read it stays, and a link stays a link. What is no file, such as a pipe, is written to as it is.
    """
    target = check_target(path)
    if target.exists() and not target.is_file():
        with target.open("wb") as file:
            yield file
        return
    target = target.resolve()
    temporary = target.with_name(f".evertree-{uuid.uuid4().hex}")  # short: the name itself may be as long as any can
    try:
        with temporary.open("xb") as file:
            if target.exists():
                shutil.copymode(target, temporary)
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
