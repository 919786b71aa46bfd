"""A tree in a directory of Parquet: two files for each part, one for the top, and what else there is to know in JSON.

Each part is written and read by a task, so the directory must be one that all workers see. It is written beside its
place, and put there when it is whole. Every file has its SHA-256 in the metadata, and these have their own.
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
from operator import attrgetter
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from evertree.distributed.checking import is_forest, is_part
from evertree.distributed.parts import STRIDE, Part
from evertree.distributed.pieces import Piece
from evertree.distributed.refining import Forest
from evertree.distributed.runner import Runner
from evertree.distributed.settling import Top
from evertree.errors import CorruptFileError, EvertreeError, FileFormatError, NewerFormatError, StoreError
from evertree.input.arrays import as_choice, as_count, as_height, as_points, as_weights, as_whole_number
from evertree.io.archive import SIGNS_OF_DAMAGE
from evertree.io.json_values import to_json
from evertree.tree.base import MOST_POINTS
from evertree.tree.scheme import Scheme

#: Written into every directory. It grows when a reader of an older version could not understand it.
FORMAT_VERSION = 1

_FORMAT = "evertree distributed hierarchy"
_METADATA = "metadata.json"
_TOP = "top.parquet"


class Loaded(NamedTuple):
    """A part that was read, or why it could not be."""

    part: Part | None
    error: EvertreeError | None

    @property
    def facts(self) -> tuple[EvertreeError | None, int, int, int]:
        """What is wrong, how many points and subtrees there are, and the youngest point."""
        if self.part is None:
            return self.error, 0, 0, -1
        ids = self.part.piece.ids
        return None, ids.size, self.part.origin.size, int(ids.max(initial=-1))


def write(runner: Runner, path: str | os.PathLike[str], header: Mapping[str, Any], forest: Forest) -> None:
    """Write a tree to a directory, in the place of one that was written before."""
    target = _checked_target(path)
    temporary = target.with_name(f".evertree-{uuid.uuid4().hex}")
    temporary.mkdir()
    try:
        folder = str(temporary)
        tasks = [runner.submit("save", write_part, part, folder, number) for number, part in forest.handles.items()]
        digests = _gathered(runner, tasks, target)
        unseen = [name for name in digests if not (temporary / name).is_file()]
        if unseen:
            raise _not_shared(target, unseen[0])
        digests[_TOP] = _write_table(_top_table(forest.top), temporary / _TOP)
        about = {**header, "parts": list(forest.handles), "sha256": digests}
        metadata = {"format": _FORMAT, "version": FORMAT_VERSION, **about}
        sealed = {"metadata": metadata, "sha256": hashlib.sha256(to_json(metadata)).hexdigest()}
        with _on_disk(temporary / _METADATA) as file:
            file.write(json.dumps(sealed, indent=1).encode())
        _put_in_place(temporary, target)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def read_metadata(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What `write` wrote beside the arrays, checked."""
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
    """Refuse what no tree has; what a linkage and a metric are is checked by `Scheme`."""
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


def read_top(path: str | os.PathLike[str], metadata: dict[str, Any]) -> Top:
    """The tree above the parts of a saved tree."""
    table = _read_table(Path(path) / _TOP, metadata["sha256"][_TOP])
    ids = _numbers(table["subtree"], np.int64)
    top = Top(ids, _children(table.slice(0, max(ids.size - 1, 0))))
    if not is_forest(top.children, ids.size):
        raise CorruptFileError("the top is no tree")
    return top


def read_parts(
    runner: Runner, path: str | os.PathLike[str], metadata: dict[str, Any], scheme: Scheme, top: Top
) -> dict[int, Any]:
    """The handles of the parts of a saved tree below a top, all of which have been checked."""
    folder, shape = os.path.realpath(path), (metadata["n_columns"], metadata["dtype"])
    loaded = {}
    for number in metadata["parts"]:
        digests = [metadata["sha256"].get(name) for name in part_names(number)]
        loaded[number] = runner.submit("load", read_part, folder, number, digests, scheme, shape)
    facts = runner.gather([runner.submit("load-facts", attrgetter("facts"), handle) for handle in loaded.values()])
    n_points, places = 0, [np.empty(0, np.int64)]
    for number, (error, n_leaves, n_trees, youngest) in zip(loaded, facts, strict=True):
        if error is not None:
            raise error
        if youngest >= metadata["next_key"]:
            raise CorruptFileError(f"{path} is damaged: a point of part {number} is younger than the next one")
        n_points += n_leaves
        places.append(number * STRIDE + np.arange(n_trees))
    if n_points != metadata["n_points"] or not np.array_equal(np.sort(top.ids), np.sort(np.concatenate(places))):
        raise CorruptFileError(f"{path} is damaged: the parts are not those of the tree")
    return {number: runner.submit("part", part_of, handle) for number, handle in loaded.items()}


def write_part(part: Part, folder: str, number: int) -> dict[str, str]:
    """Write a part; return the SHA-256 of each of its files. What was written by a task that was lost is replaced."""
    piece = part.piece
    points = piece.mean if piece.points is None else piece.points
    leaves = pa.table({"key": piece.ids, "weight": piece.size, "point": _column(points)})
    unions = pa.table({"left": piece.children[:, 0], "right": piece.children[:, 1]})
    return {
        name: _write_table(table, Path(folder) / name)
        for name, table in zip(part_names(number), (leaves, unions), strict=True)
    }


def read_part(folder: str, number: int, digests: list[str], scheme: Scheme, shape: tuple[int, str]) -> Loaded:
    """Read a part of so many columns of a type, and check it.

    What is wrong is given back, as it would be no better the next time.
    """
    assert scheme.vectors is not None
    try:
        names = part_names(number)
        leaves, unions = (_read_table(Path(folder) / name, digest) for name, digest in zip(names, digests, strict=True))
        points = as_points(_vectors(leaves["point"]), shape[0], np.dtype(shape[1]))
        piece = Piece(
            _numbers(leaves["key"], np.int64),
            as_weights(_numbers(leaves["weight"], np.float64), len(points)),
            scheme.vectors.coordinates(points),
            _children(unions),
            points if scheme.vectors.changes_points else None,
        )
        if not is_part(piece) or piece.ids.min(initial=0) < 0:
            raise CorruptFileError("it is no forest")
    except (OSError, *SIGNS_OF_DAMAGE) as error:
        return Loaded(None, CorruptFileError(f"{folder} is damaged: part {number}: {error}"))
    # Nothing is due: what is saved has been refined.
    return Loaded(Part(piece, np.zeros(piece.n_nodes, np.bool_), np.arange(piece.roots().size), 0, 0), None)


def part_of(loaded: Loaded) -> Part:
    """The part. When a worker is lost it is read again, and the directory may be another by then."""
    if loaded.part is None:
        assert loaded.error is not None
        raise loaded.error
    return loaded.part


def part_names(number: int) -> tuple[str, str]:
    """The files of a part: its points, and the unions above these."""
    return f"part-{number:05d}-points.parquet", f"part-{number:05d}-unions.parquet"


def _gathered(runner: Runner, tasks: list[Any], target: Path) -> dict[str, str]:
    """The SHA-256 of each file that tasks have written."""
    try:
        return {name: digest for written in runner.gather(tasks) for name, digest in written.items()}
    except FileNotFoundError as error:  # a worker does not have the folder
        raise _not_shared(target, error.filename) from error


def _not_shared(target: Path, file: str) -> StoreError:
    return StoreError(f"{target} must be on a disk that all workers and the driver see; {file} is not there")


def _checked_target(path: str | os.PathLike[str]) -> Path:
    """The path, if a tree can be written there: to nothing, to an empty folder, or over a tree. A link stays a link."""
    target = Path(path).resolve()
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "There is no such folder to save to", str(target.parent))
    if target.exists() and not target.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, "The path to save to is a file, and must be a folder", str(target))
    if target.is_dir() and any(target.iterdir()) and not (target / _METADATA).is_file():
        raise FileExistsError(errno.EEXIST, "The folder to save to holds something else", str(target))
    return target


def _put_in_place(temporary: Path, target: Path) -> None:
    """Rename a directory that is whole; one that was there before goes when this is there."""
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


def _top_table(top: Top) -> Any:
    """The subtrees, and beside these the unions, of which there is one less."""
    padding = [None] * min(top.ids.size, 1)
    left, right = ([*column, *padding] for column in top.children.T.tolist()) if top.ids.size else ([], [])
    return pa.table({"subtree": top.ids, "left": pa.array(left, pa.int32()), "right": pa.array(right, pa.int32())})


def _column(vectors: NDArray[Any]) -> Any:
    return pa.FixedSizeListArray.from_arrays(pa.array(np.ascontiguousarray(vectors).ravel()), vectors.shape[1])


def _vectors(column: Any) -> NDArray[Any]:
    flat = column.combine_chunks().flatten().to_numpy(zero_copy_only=False)
    return flat.reshape(len(column), column.type.list_size)


def _numbers(column: Any, dtype: Any) -> NDArray[Any]:
    """A column that has numbers of a type, and no gaps."""
    values = column.to_numpy()
    if values.dtype != dtype:
        raise CorruptFileError(f"a column holds {values.dtype}, and not {np.dtype(dtype)}")
    return values


def _children(unions: Any) -> NDArray[np.int32]:
    return np.column_stack([_numbers(unions[side], np.int32) for side in ("left", "right")])


def _write_table(table: Any, file: Path) -> str:
    with _on_disk(file) as stream:
        pq.write_table(table, stream)
    return _digest(file)


@contextmanager
def _on_disk(file: Path) -> Iterator[BinaryIO]:
    """A new file, which is on disk when the block has ended."""
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
    except Exception as error:  # pyarrow has many kinds
        raise CorruptFileError(f"{file.name} cannot be read: {error}") from error


def _digest(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
