"""Keys that users give, and the parts that have them."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import NDArray

from evertree.distributed.parts import has_ids
from evertree.distributed.refining import Forest
from evertree.distributed.runner import Runner, share
from evertree.errors import DuplicateKeyError, UnknownKeyError, listed
from evertree.input.arrays import as_keys


def as_numbers(keys: Any, client: Any) -> NDArray[np.int64]:
    """One key, or a collection of keys, as an array of numbers that differ from each other."""
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


def find_keys(runner: Runner, forest: Forest, keys: NDArray[np.int64]) -> dict[int, NDArray[np.int64]]:
    """Those of some keys that each part has, for the parts that have any. All must be there."""
    shared = share(runner, "keys", keys)
    found = runner.gather([runner.submit("find", has_ids, handle, shared) for handle in forest.handles.values()])
    is_there = np.any([np.zeros(keys.size, np.bool_), *found], axis=0)
    if not is_there.all():
        raise UnknownKeyError(
            f"no live point has the key {listed(keys[~is_there].tolist())}: see keys() for the live keys"
        )
    return {number: keys[has] for number, has in zip(forest.handles, found, strict=True) if has.any()}
