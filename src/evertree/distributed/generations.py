"""A directory of files that are replaced all at once.

Each save has a generation, which is in the names of its files, so that it writes over none of another. A manifest names
the generation that counts; to replace it is one step. What other generations have left is removed after that: also by
saves that were cut off. Version 1 had one generation, without a name.
"""

from __future__ import annotations

import errno
import json
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

#: The file that says which generation counts.
MANIFEST = "metadata.json"

_GENERATION = r"[0-9a-f]{8}"
_OURS = re.compile(
    rf"part-\d+-({_GENERATION}-)?(points|unions)\.parquet|top(-{_GENERATION})?\.parquet|metadata-{_GENERATION}\.json"
)


def new_generation() -> str:
    """A name that no other save has."""
    return secrets.token_hex(4)


def is_generation(name: object) -> bool:
    """Whether this is the name of a generation; that of version 1 is empty."""
    return isinstance(name, str) and re.fullmatch(rf"({_GENERATION})?", name) is not None


def part_names(number: int, generation: str) -> tuple[str, str]:
    """The files of a part: its points, and the unions above them."""
    start = f"part-{number:05d}-{generation}-" if generation else f"part-{number:05d}-"
    return f"{start}points.parquet", f"{start}unions.parquet"


def top_name(generation: str) -> str:
    """The file of the top tree."""
    return f"top-{generation}.parquet" if generation else "top.parquet"


def checked_folder(path: str | os.PathLike[str]) -> Path:
    """The path, without links, if a tree can be written there.

    There must be nothing, an empty folder, a saved tree, or what is left of a save that was cut off.
    """
    folder = Path(path).resolve()
    if not folder.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "There is no such folder to save to", str(folder.parent))
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, "The path to save to is a file, and must be a folder", str(folder))
    is_saved = (folder / MANIFEST).is_file()
    if folder.is_dir() and not is_saved and len(_ours(folder)) < len(list(folder.iterdir())):
        raise FileExistsError(errno.EEXIST, "The folder to save to holds something else", str(folder))
    return folder


@contextmanager
def writing(folder: Path, generation: str) -> Iterator[None]:
    """The block in which the files of a generation are written. If it raises, they are removed.

    Unless they count by then: Ctrl-C may come when the manifest is in place.
    """
    is_new = not folder.exists()
    folder.mkdir(exist_ok=True)
    try:
        yield
    except BaseException:
        if not _counts(folder, generation):
            _remove([file for file in _ours(folder) if generation in file.name])
            if is_new:
                with suppress(OSError):
                    folder.rmdir()
        raise


def put_in_place(folder: Path, generation: str, manifest: bytes) -> None:
    """Make a generation the one that counts, whose files are all written; then remove those of the others."""
    temporary = folder / f"metadata-{generation}.json"
    with on_disk(temporary) as file:
        file.write(manifest)
    _sync(folder)
    temporary.replace(folder / MANIFEST)
    _sync(folder)
    _remove([file for file in _ours(folder) if generation not in file.name])


@contextmanager
def on_disk(path: Path) -> Iterator[BinaryIO]:
    """A new file, which is on disk at the end of the block."""
    with path.open("wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def _ours(folder: Path) -> list[Path]:
    """The files of all generations, without the manifest."""
    return [file for file in folder.iterdir() if _OURS.fullmatch(file.name)]


def _counts(folder: Path, generation: str) -> bool:
    """Whether the manifest names a generation; if in doubt, it does."""
    try:
        return bool(json.loads((folder / MANIFEST).read_bytes())["metadata"].get("generation") == generation)
    except FileNotFoundError:
        return False
    except Exception:  # it cannot be read now, or is damaged
        return True


def _remove(files: list[Path]) -> None:
    """Remove files, but for those that another program keeps open, as it may on Windows: the next save will do it."""
    for file in files:
        with suppress(OSError):
            file.unlink()


def _sync(folder: Path) -> None:
    """See to it that the names of files are on disk, where the system can."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            with suppress(OSError):  # some network file systems cannot
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
