"""A tree in a directory of Parquet files: two for each part, one for the top tree; and metadata in JSON.

Each part is written and read by a task, so all workers must see the directory. A new directory is written beside the
target, and renamed when it is complete. The metadata have the SHA-256 of every file, and of themselves.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from evertree.distributed.dask_runner import Runner
from evertree.distributed.distributed_tree import DistributedTree
from evertree.distributed.parts import Part
from evertree.distributed.subtrees import STRIDE, Shape, Subtrees, is_postorder
from evertree.errors import CorruptFileError, FileFormatError, NewerFormatError, StoreError
from evertree.input.arrays import as_choice, as_count, as_height, as_points, as_weights, as_whole_number
from evertree.io.archive import SIGNS_OF_DAMAGE
from evertree.io.json_values import to_json
from evertree.tree.base import MOST_POINTS
from evertree.tree.scheme import Scheme

#: Written into every directory. It grows when older versions could not read a new one.
FORMAT_VERSION = 1

_FORMAT = "evertree distributed hierarchy"
_METADATA = "metadata.json"
_TOP = "top.parquet"


def write_tree(runner: Runner, path: str | os.PathLike[str], header: Mapping[str, Any], tree: DistributedTree) -> None:
    """Write a tree to a directory, or over one that was written before."""
    target = _checked_target(path)
    temporary = target.with_name(f".evertree-{uuid.uuid4().hex}")
    temporary.mkdir()
    try:
        folder = str(temporary)
        tasks = [runner.submit("save", write_part, part, folder, number) for number, part in tree.handles.items()]
        digests = _gathered(runner, tasks, target)
        unseen = [name for name in digests if not (temporary / name).is_file()]
        if unseen:
            raise _not_shared(target, unseen[0])
        digests[_TOP] = _write_table(_top_table(tree.top), temporary / _TOP)
        about = {**header, "parts": list(tree.handles), "sha256": digests}
        metadata = {"format": _FORMAT, "version": FORMAT_VERSION, **about}
        sealed = {"metadata": metadata, "sha256": hashlib.sha256(to_json(metadata)).hexdigest()}
        with _on_disk(temporary / _METADATA) as file:
            file.write(json.dumps(sealed, indent=1).encode())
        _put_in_place(temporary, target)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def read_metadata(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The checked metadata of a saved tree."""
    file = Path(path) / _METADATA
    if not Path(path).is_dir():
        raise FileNotFoundError(errno.ENOENT, "There is no such directory to load from", str(path))
    if not file.is_file():
        raise FileFormatError(f"{path} is not a directory written by DistributedHierarchy.save: it has no {_METADATA}")
    try:
        sealed = json.loads(file.read_text(encoding="utf-8"))
        metadata, digest = sealed["metadata"], sealed["sha256"]
        if metadata["format"] != _FORMAT:
            raise FileFormatError(f"{path} is not a directory written by DistributedHierarchy.save")
        if metadata["version"] > FORMAT_VERSION:
            raise NewerFormatError(
                f"{path} has format version {metadata['version']}, and this evertree reads up to {FORMAT_VERSION}: "
                "upgrade evertree to read it"
            )
        if hashlib.sha256(to_json(metadata)).hexdigest() != digest:
            raise CorruptFileError(f"{path} is damaged: {_METADATA} does not have its checksum")
        _check_metadata(metadata)
    except FileFormatError:
        raise
    except SIGNS_OF_DAMAGE as error:
        raise CorruptFileError(f"{path} is damaged: {_METADATA}: {error}") from error
    return metadata


def _check_metadata(metadata: dict[str, Any]) -> None:
    """Raise an error for values that no tree has; `Scheme` checks the linkage and the metric."""
    for name in ("seed", "n_points", "next_key"):
        as_whole_number(name, metadata[name])
    as_count("part_size", metadata["part_size"])
    as_count("search_width", metadata["search_width"], MOST_POINTS)
    as_height("largest", metadata["largest"])
    if metadata["dtype"] is not None:
        as_choice("dtype", metadata["dtype"], ("float32", "float64"))
        as_count("n_columns", metadata["n_columns"])
    numbers = [as_whole_number("parts", number) for number in metadata["parts"]]
    if len(set(numbers)) < len(numbers) or (numbers and metadata["dtype"] is None):
        raise ValueError("a part is there twice, or has no type")
    if not isinstance(metadata["sha256"], dict):
        raise TypeError("there are no checksums")


def read_top(path: str | os.PathLike[str], metadata: dict[str, Any]) -> Shape:
    """The top tree of a saved tree."""
    table = _read_table(Path(path) / _TOP, metadata["sha256"][_TOP])
    ids = _numbers(table["subtree"], np.int64)
    top = Shape(ids, _children(table.slice(0, max(ids.size - 1, 0))))
    if not is_postorder(top.children, ids.size):
        raise CorruptFileError("the top tree is no tree")
    return top


def read_parts(
    runner: Runner, path: str | os.PathLike[str], metadata: dict[str, Any], scheme: Scheme, top: Shape
) -> dict[int, Any]:
    """The handles of the checked parts of a saved tree."""
    folder, shape = os.path.realpath(path), (metadata["n_columns"], metadata["dtype"])
    loaded = {}
    for number in metadata["parts"]:
        digests = [metadata["sha256"].get(name) for name in part_names(number)]
        loaded[number] = runner.submit("load", read_part, folder, number, digests, scheme, shape)
    facts = runner.gather([runner.submit("load-facts", part_facts, handle) for handle in loaded.values()])
    n_points, positions = 0, [np.empty(0, np.int64)]
    for number, (error, n_leaves, n_subtrees, youngest) in zip(loaded, facts, strict=True):
        if error is not None:
            raise error
        if youngest >= metadata["next_key"]:
            raise CorruptFileError(f"{path} is damaged: a point of part {number} is younger than the next one")
        n_points += n_leaves
        positions.append(number * STRIDE + np.arange(n_subtrees))
    if n_points != metadata["n_points"] or not np.array_equal(np.sort(top.ids), np.sort(np.concatenate(positions))):
        raise CorruptFileError(f"{path} is damaged: the parts are not those of the tree")
    return {number: runner.submit("part", checked_part, handle) for number, handle in loaded.items()}


def write_part(part: Part, folder: str, number: int) -> dict[str, str]:
    """Write a part, over the files of a task that was lost; return the SHA-256 of each file."""
    subtrees = part.subtrees
    points = subtrees.mean if subtrees.points is None else subtrees.points
    leaves = pa.table({"key": subtrees.ids, "weight": subtrees.size, "point": _column(points)})
    unions = pa.table({"left": subtrees.children[:, 0], "right": subtrees.children[:, 1]})
    return {
        name: _write_table(table, Path(folder) / name)
        for name, table in zip(part_names(number), (leaves, unions), strict=True)
    }


def read_part(
    folder: str, number: int, digests: list[str], scheme: Scheme, shape: tuple[int, str]
) -> Part | CorruptFileError:
    """Read and check a part whose points have the given number of columns and type.

    An error is returned, because to try again would not help.
    """
    assert scheme.vectors is not None
    try:
        names = part_names(number)
        leaves, unions = (_read_table(Path(folder) / name, digest) for name, digest in zip(names, digests, strict=True))
        points = as_points(_vectors(leaves["point"]), shape[0], np.dtype(shape[1]))
        subtrees = Subtrees(
            _numbers(leaves["key"], np.int64),
            as_weights(_numbers(leaves["weight"], np.float64), len(points)),
            scheme.vectors.coordinates(points),
            _children(unions),
            points if scheme.vectors.changes_points else None,
        )
        if not subtrees.is_consistent() or subtrees.ids.min(initial=0) < 0:
            raise CorruptFileError("it is no forest")
    except (OSError, *SIGNS_OF_DAMAGE) as error:
        return CorruptFileError(f"{folder} is damaged: part {number}: {error}")
    # Nothing is due, because a saved tree has been refined.
    return Part(subtrees, np.zeros(subtrees.n_nodes, np.bool_), np.arange(subtrees.roots().size), 0, 0)


def part_facts(loaded: Part | CorruptFileError) -> tuple[CorruptFileError | None, int, int, int]:
    """The error, the numbers of points and of subtrees, and the youngest point."""
    if isinstance(loaded, CorruptFileError):
        return loaded, 0, 0, -1
    ids = loaded.subtrees.ids
    return None, ids.size, loaded.origin.size, int(ids.max(initial=-1))


def checked_part(loaded: Part | CorruptFileError) -> Part:
    """The part. If a worker is lost it is read again, and the directory may have changed by then."""
    if isinstance(loaded, CorruptFileError):
        raise loaded
    return loaded


def part_names(number: int) -> tuple[str, str]:
    """The files of a part: its points, and the unions above them."""
    return f"part-{number:05d}-points.parquet", f"part-{number:05d}-unions.parquet"


def _gathered(runner: Runner, tasks: list[Any], target: Path) -> dict[str, str]:
    """The SHA-256 of each file that tasks have written."""
    try:
        return {name: digest for written in runner.gather(tasks) for name, digest in written.items()}
    except FileNotFoundError as error:  # a worker does not see the folder
        raise _not_shared(target, error.filename) from error


def _not_shared(target: Path, file: str) -> StoreError:
    return StoreError(f"{target} must be on a disk that all workers and the driver see; {file} is not there")


def _checked_target(path: str | os.PathLike[str]) -> Path:
    """The path, without links, if a tree can be written there: nothing, an empty folder, or a saved tree."""
    target = Path(path).resolve()
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "There is no such folder to save to", str(target.parent))
    if target.exists() and not target.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, "The path to save to is a file, and must be a folder", str(target))
    if target.is_dir() and any(target.iterdir()) and not (target / _METADATA).is_file():
        raise FileExistsError(errno.EEXIST, "The folder to save to holds something else", str(target))
    return target


def _put_in_place(temporary: Path, target: Path) -> None:
    """Rename a complete directory to its place; then remove the one that was there before."""
    old = target.with_name(f".evertree-{uuid.uuid4().hex}")
    if target.exists():
        target.rename(old)
    try:
        temporary.rename(target)
    except BaseException:
        if old.exists():
            old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _top_table(top: Shape) -> Any:
    """The subtrees, and beside them the unions, one less."""
    padding = [None] * min(top.ids.size, 1)
    left, right = ([*column, *padding] for column in top.children.T.tolist()) if top.ids.size else ([], [])
    return pa.table({"subtree": top.ids, "left": pa.array(left, pa.int32()), "right": pa.array(right, pa.int32())})


def _column(vectors: NDArray[Any]) -> Any:
    return pa.FixedSizeListArray.from_arrays(pa.array(np.ascontiguousarray(vectors).ravel()), vectors.shape[1])


def _vectors(column: Any) -> NDArray[Any]:
    flat = column.combine_chunks().flatten().to_numpy(zero_copy_only=False)
    return flat.reshape(len(column), column.type.list_size)


def _numbers(column: Any, dtype: Any) -> NDArray[Any]:
    """The values of a column, which must have this type and no gaps."""
    values = column.to_numpy()
    if values.dtype != dtype:
        raise CorruptFileError(f"a column has type {values.dtype}, and not {np.dtype(dtype)}")
    return values


def _children(unions: Any) -> NDArray[np.int32]:
    return np.column_stack([_numbers(unions[side], np.int32) for side in ("left", "right")])


def _write_table(table: Any, file: Path) -> str:
    with _on_disk(file) as stream:
        pq.write_table(table, stream)
    return _digest(file)


@contextmanager
def _on_disk(file: Path) -> Iterator[BinaryIO]:
    """A new file, which is on disk at the end of the block."""
    with file.open("wb") as stream:
        yield stream
        stream.flush()
        os.fsync(stream.fileno())


def _read_table(file: Path, digest: str) -> Any:
    if not file.is_file():
        raise CorruptFileError(f"{file.name} is missing")
    if _digest(file) != digest:
        raise CorruptFileError(f"{file.name} does not have its checksum")
    try:
        return pq.read_table(file)
    except Exception as error:  # pyarrow raises many kinds
        raise CorruptFileError(f"{file.name} cannot be read: {error}") from error


def _digest(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
