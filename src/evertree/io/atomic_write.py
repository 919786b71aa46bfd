"""`atomic_write`: a file is replaced as a whole, so that a partial file is never visible."""

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
    """The path, if a file can be written there."""
    target = Path(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "There is no such folder to save to", str(target.parent))
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, "The path to save to is a folder", str(target))
    return target


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A temporary file, open for writing, that replaces `path` when the block ends without an error.

    The mode of an existing file is kept, and a link stays a link. A pipe or a device is written to directly.
    """
    target = check_target(path)
    if target.exists() and not target.is_file():
        with target.open("wb") as file:
            yield file
        return
    target = target.resolve()
    temporary = target.with_name(f".evertree-{uuid.uuid4().hex}")  # short, because names have a maximum length
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
