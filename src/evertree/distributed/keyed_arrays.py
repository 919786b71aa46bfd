"""Keys, and Dask arrays with a number for each key: parts have points in the order of the tree, users by key."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import dask.array as da
import numpy as np
from dask import delayed
from numpy.typing import NDArray

from evertree.distributed.dask_runner import Runner, share
from evertree.distributed.distributed_tree import DistributedTree
from evertree.distributed.parts import Part, has_ids
from evertree.errors import DuplicateKeyError, UnknownKeyError, listed
from evertree.input.arrays import as_keys

#: Ascending keys, and a value for each.
Keyed = tuple[NDArray[np.int64], NDArray[np.int64]]


class KeyBlocks(NamedTuple):
    """Blocks of `width` consecutive keys, which become the chunks of Dask arrays."""

    width: int
    counts: list[dict[int, int]]  # for each part, the number of its points in each block where it has any

    def lengths(self) -> dict[int, int]:
        """The number of points in each block, in ascending order, without empty blocks."""
        lengths: dict[int, int] = {}
        for counts in self.counts:
            for block, count in counts.items():
                lengths[block] = lengths.get(block, 0) + count
        return dict(sorted(lengths.items()))


def count_blocks(runner: Runner, parts: Sequence[Any], width: int) -> KeyBlocks:
    """Count the points of parts in blocks of `width` keys."""
    return KeyBlocks(width, runner.gather([runner.submit("keys", count_keys, part, width) for part in parts]))


def to_dask(name: str, parts: Sequence[Any], blocks: KeyBlocks, function: Callable[..., Keyed], *more: Any) -> Any:
    """A lazy Dask array, by key, of what a function of a part, and of an entry of each of `more`, returns.

    There is a task for each part, for each block of a part, and for each block.
    """
    token = uuid.uuid4().hex[:8]
    by_block: dict[int, list[Any]] = {block: [] for block in blocks.lengths()}
    for i, (part, counts, *arguments) in enumerate(zip(parts, blocks.counts, *more, strict=True)):
        values = delayed(function, pure=False)(part, *arguments, dask_key_name=f"{name}-{token}-{i}")
        for block in sorted(counts):
            key = f"pick-{token}-{i}-{block}"
            bounds = block * blocks.width, (block + 1) * blocks.width
            by_block[block].append(delayed(between, pure=False)(values, *bounds, dask_key_name=key))
    arrays = [
        da.from_delayed(
            delayed(merge_by_key, pure=False)(by_block[block], dask_key_name=f"{name}-block-{token}-{block}"),
            (length,),
            np.int64,
        )
        for block, length in blocks.lengths().items()
    ]
    return da.concatenate(arrays) if arrays else da.zeros(0, dtype=np.int64)


def count_keys(part: Part, width: int) -> dict[int, int]:
    """The number of points of a part in each block of `width` keys, where it has any."""
    blocks, counts = np.unique(part.subtrees.ids // width, return_counts=True)
    return dict(zip(blocks.tolist(), counts.tolist(), strict=True))


def keys_of_part(part: Part) -> Keyed:
    """The keys of a part, as their own values."""
    keys = np.sort(part.subtrees.ids)
    return keys, keys


def between(keyed: Keyed, begin: int, end: int) -> Keyed:
    """The keys from `begin` to before `end`, and their values."""
    keys, values = keyed
    some = slice(*np.searchsorted(keys, [begin, end]).tolist())
    return keys[some].copy(), values[some].copy()


def merge_by_key(some: Sequence[Keyed]) -> NDArray[np.int64]:
    """The values of several parts in the order of keys."""
    keys, values = (np.concatenate(columns) for columns in zip(*some, strict=True))
    return values[np.argsort(keys)]


def as_int_keys(keys: Any, client: Any) -> NDArray[np.int64]:
    """One key, or a collection of distinct keys, as an array of integers."""
    if isinstance(keys, da.Array):
        keys = client.compute(keys).result()
    if isinstance(keys, range):
        keys = np.arange(keys.start, keys.stop, keys.step)
    if isinstance(keys, np.ndarray) and keys.ndim == 1 and keys.dtype.kind in "iu":
        numbers = keys.astype(np.int64)
        unique, counts = np.unique(numbers, return_counts=True)
        if unique.size < numbers.size:
            raise DuplicateKeyError(f"keys must differ; given more than once: {listed(unique[counts > 1].tolist())}")
        return numbers
    given = as_keys(keys)
    strange = [key for key in given if type(key) is not int or not 0 <= key < 2**62]
    if strange:
        raise UnknownKeyError(f"no live point has the key {listed(strange)}: keys are numbers, see keys()")
    return np.array(given, np.int64)


def find_keys(runner: Runner, tree: DistributedTree, keys: NDArray[np.int64]) -> dict[int, NDArray[np.int64]]:
    """The keys that each part has, for the parts that have any of these. Each must be in some part."""
    shared = share(runner, "keys", keys)
    found = runner.gather([runner.submit("find", has_ids, handle, shared) for handle in tree.handles.values()])
    is_live = np.any([np.zeros(keys.size, np.bool_), *found], axis=0)
    if not is_live.all():
        raise UnknownKeyError(
            f"no live point has the key {listed(keys[~is_live].tolist())}: see keys() for the live keys"
        )
    return {number: keys[has] for number, has in zip(tree.handles, found, strict=True) if has.any()}
