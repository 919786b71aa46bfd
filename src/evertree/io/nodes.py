"""The nodes of a linkage matrix as columns, numbered as in SciPy: leaves first, then the merges, the root last."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evertree.errors import InvalidKeyError, NotFiniteError
from evertree.kernels.columns import NULL


class Nodes(NamedTuple):
    """A row for each node; NULL stands for the parent of the root and for the children of a leaf."""

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    parent: NDArray[np.int64]
    height: NDArray[np.float64]
    size: NDArray[np.int64]


def number_nodes(Z: NDArray[np.float64], keys: Sequence[Hashable]) -> Nodes:
    """The columns of a linkage matrix in which leaf i is ``keys[i]``; leaves have height 0."""
    n, n_merges = len(keys), len(Z)
    if n_merges != max(n - 1, 0):
        raise InvalidKeyError(f"keys must have {n_merges + 1} keys, one for each leaf of Z; it has {n}")
    if not np.all(np.isfinite(Z)):
        raise NotFiniteError("Z must be finite; it has NaN or infinity")
    left, right, parent = (np.full(n + n_merges, NULL, np.int64) for _ in range(3))
    left[n:], right[n:] = Z[:, 0], Z[:, 1]
    merge = np.arange(n, n + n_merges)
    parent[left[n:]] = merge
    parent[right[n:]] = merge
    height = np.concatenate([np.zeros(n), Z[:, 2]])
    size = np.concatenate([np.ones(n), Z[:, 3]]).astype(np.int64)
    return Nodes(left, right, parent, height, size)
