"""A tree in a directory of Parquet files: two for each part, one for the top tree; and metadata in JSON.

Each part is written and read by a task, so all workers must see the directory. What is saved over an earlier tree takes
its place in one step: see `evertree.distributed.generations`. The metadata have the SHA-256 of every file, and of
themselves.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from evertree.distributed import generations
from evertree.distributed.dask_runner import Runner
from evertree.distributed.distributed_tree import DistributedTree
from evertree.distributed.generations import MANIFEST, is_generation, part_names, top_name
from evertree.distributed.parts import Part
from evertree.distributed.subtrees import STRIDE, Shape, Subtrees, is_postorder
from evertree.errors import CorruptFileError, FileFormatError, NewerFormatError, StoreError
from evertree.input.arrays import as_choice, as_count, as_height, as_points, as_weights, as_whole_number
from evertree.io.archive import SIGNS_OF_DAMAGE
from evertree.io.json_values import to_json
from evertree.tree.base import MOST_POINTS
from evertree.tree.scheme import Scheme

#: Written into every directory. It grows when older versions could not read a new one.
FORMAT_VERSION = 2

_FORMAT = "evertree distributed hierarchy"


def write_tree(runner: Runner, path: str | os.PathLike[str], header: Mapping[str, Any], tree: DistributedTree) -> None:
    """Write a tree to a directory, or over one that was written before."""
    folder, generation = generations.checked_folder(path), generations.new_generation()
    with generations.writing(folder, generation):
        tasks = [
            runner.submit("save", write_part, part, str(folder), part_names(number, generation))
            for number, part in tree.handles.items()
        ]
        digests = _gathered(runner, tasks, folder)
        top = top_name(generation)
        digests[top] = _write_table(_top_table(tree.top), folder / top)
        about = {**header, "generation": generation, "parts": list(tree.handles), "sha256": digests}
        metadata = {"format": _FORMAT, "version": FORMAT_VERSION, **about}
        sealed = {"metadata": metadata, "sha256": hashlib.sha256(to_json(metadata)).hexdigest()}
        unseen = [name for name in digests if not (folder / name).is_file()]
        if unseen:
            raise _not_shared(folder, unseen[0])
        generations.put_in_place(folder, generation, json.dumps(sealed, indent=1).encode())


def read_metadata(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The checked metadata of a saved tree."""
    file = Path(path) / MANIFEST
    if not Path(path).is_dir():
        raise FileNotFoundError(errno.ENOENT, "There is no such directory to load from", str(path))
    if not file.is_file():
        raise FileFormatError(f"{path} is not a directory written by DistributedHierarchy.save: it has no {MANIFEST}")
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
            raise CorruptFileError(f"{path} is damaged: {MANIFEST} does not have its checksum")
        metadata.setdefault("generation", "")  # version 1 had none
        _check_metadata(metadata)
    except FileFormatError:
        raise
    except SIGNS_OF_DAMAGE as error:
        raise CorruptFileError(f"{path} is damaged: {MANIFEST}: {error}") from error
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
    if not is_generation(metadata["generation"]):
        raise ValueError("its files have no names")
    if not isinstance(metadata["sha256"], dict):
        raise TypeError("there are no checksums")


def read_top(path: str | os.PathLike[str], metadata: dict[str, Any]) -> Shape:
    """The top tree of a saved tree."""
    name = top_name(metadata["generation"])
    table = _read_table(Path(path) / name, metadata["sha256"][name])
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
        digests = {name: metadata["sha256"].get(name) for name in part_names(number, metadata["generation"])}
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


def write_part(part: Part, folder: str, names: tuple[str, str]) -> dict[str, str]:
    """Write a part, over the files of a task that was lost; return the SHA-256 of each file."""
    subtrees = part.subtrees
    points = subtrees.mean if subtrees.points is None else subtrees.points
    leaves = pa.table({"key": subtrees.ids, "weight": subtrees.size, "point": _column(points)})
    unions = pa.table({"left": subtrees.children[:, 0], "right": subtrees.children[:, 1]})
    return {name: _write_table(table, Path(folder) / name) for name, table in zip(names, (leaves, unions), strict=True)}


def read_part(
    folder: str, number: int, digests: Mapping[str, str], scheme: Scheme, shape: tuple[int, str]
) -> Part | CorruptFileError:
    """Read and check a part from its two files; its points have the given number of columns and type.

    An error is returned, because to try again would not help.
    """
    assert scheme.vectors is not None
    try:
        leaves, unions = (_read_table(Path(folder) / name, digest) for name, digest in digests.items())
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


def _gathered(runner: Runner, tasks: list[Any], folder: Path) -> dict[str, str]:
    """The SHA-256 of each file that tasks have written."""
    try:
        return {name: digest for written in runner.gather(tasks) for name, digest in written.items()}
    except FileNotFoundError as error:  # a worker does not see the folder
        raise _not_shared(folder, error.filename) from error


def _not_shared(folder: Path, file: str) -> StoreError:
    return StoreError(f"{folder} must be on a disk that all workers and the driver see; {file} is not there")


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
    with generations.on_disk(file) as stream:
        pq.write_table(table, stream)
    return _digest(file)


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
