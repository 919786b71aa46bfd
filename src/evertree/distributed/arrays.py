"""One number for each point, as a Dask array in the order of keys, from parts that have them in the tree's order."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import dask.array as da
import numpy as np
from dask import delayed
from numpy.typing import NDArray

from evertree.distributed.labels import Labels
from evertree.distributed.parts import Part
from evertree.distributed.runner import Runner


class Layout(NamedTuple):
    """How the points of each part are spread over blocks of so many keys."""

    width: int
    counts: list[dict[int, int]]  # for each part, how many points it has in each block, where it has any

    def lengths(self) -> dict[int, int]:
        """How many points there are in each block, by ascending number; those without any are left out."""
        lengths: dict[int, int] = {}
        for counts in self.counts:
            for block, count in counts.items():
                lengths[block] = lengths.get(block, 0) + count
        return dict(sorted(lengths.items()))


def find_layout(runner: Runner, parts: Sequence[Any], width: int) -> Layout:
    """Count the points of parts in blocks of so many keys."""
    return Layout(width, runner.gather([runner.submit("keys", count_keys, part, width) for part in parts]))


def to_array(name: str, parts: Sequence[Any], layout: Layout, function: Callable[..., Labels], *more: Any) -> Any:
    """A Dask array of what a function of a part, and of an entry of each of `more`, says of its points.

    It is computed when it is asked for. A task for each part, one for what each has in each block, one for each block.
    """
    token = uuid.uuid4().hex[:8]
    by_block: dict[int, list[Any]] = {block: [] for block in layout.lengths()}
    for i, (part, counts, *arguments) in enumerate(zip(parts, layout.counts, *more, strict=True)):
        found = delayed(function, pure=False)(part, *arguments, dask_key_name=f"{name}-{token}-{i}")
        for block in sorted(counts):
            key = f"pick-{token}-{i}-{block}"
            bounds = block * layout.width, (block + 1) * layout.width
            by_block[block].append(delayed(between, pure=False)(found, *bounds, dask_key_name=key))
    blocks = [
        da.from_delayed(
            delayed(put_together, pure=False)(by_block[block], dask_key_name=f"{name}-block-{token}-{block}"),
            (length,),
            np.int64,
        )
        for block, length in layout.lengths().items()
    ]
    return da.concatenate(blocks) if blocks else da.zeros(0, dtype=np.int64)


def count_keys(part: Part, width: int) -> dict[int, int]:
    """How many points a part has in each block of so many keys, where it has any."""
    blocks, counts = np.unique(part.piece.ids // width, return_counts=True)
    return dict(zip(blocks.tolist(), counts.tolist(), strict=True))


def keys_of(part: Part) -> Labels:
    """The keys of a part."""
    keys = np.sort(part.piece.ids)
    return Labels(keys, keys)


def between(found: Labels, begin: int, end: int) -> Labels:
    """What was found of keys from `begin` to before `end`."""
    some = slice(*np.searchsorted(found.ids, [begin, end]).tolist())
    return Labels(found.ids[some].copy(), found.labels[some].copy())


def put_together(some: Sequence[Labels]) -> NDArray[np.int64]:
    """What several parts say of the same block, in the order of keys."""
    ids = np.concatenate([one.ids for one in some])
    return np.concatenate([one.labels for one in some])[np.argsort(ids)]
