"""A tree as a pandas data frame."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertree.extras import require
from evertree.io.nodes import number_nodes
from evertree.kernels.columns import NULL


def to_node_frame(Z: NDArray[np.float64], keys: Sequence[Hashable]) -> Any:
    """A row for each node, with its parent and its children.

    Parameters
    ----------
    Z : array of shape (n - 1, 4)
        SciPy's linkage matrix.
    keys : list of n keys
        ``keys[i]`` is leaf i.

    Returns
    -------
    pandas.DataFrame
        The index ``node`` is SciPy's number. The columns are ``parent``, ``left`` and ``right`` (Int64, ``<NA>``
        where there is none), ``height``, ``size`` and ``key`` (None for inner nodes).

    Raises
    ------
    MissingExtraError
        pandas is not installed.

    Examples
    --------
    >>> from evertree.io import to_node_frame
    >>> Z = np.array([[0.0, 1.0, 1.0, 2.0], [2.0, 3.0, 5.0, 3.0]])
    >>> to_node_frame(Z, ["a", "b", "c"])  # doctest: +NORMALIZE_WHITESPACE
          parent  left  right  height  size   key
    node
    0          3  <NA>   <NA>     0.0     1     a
    1          3  <NA>   <NA>     0.0     1     b
    2          4  <NA>   <NA>     0.0     1     c
    3          4     0      1     1.0     2  None
    4       <NA>     2      3     5.0     3  None
    """
    pandas = require("pandas", "to_frame", "pandas")
    nodes = number_nodes(Z, keys)
    # One by one: NumPy would turn keys that are tuples into rows.
    key = np.full(nodes.height.size, None, object)
    for i, name in enumerate(keys):
        key[i] = name
    columns = {
        "parent": pandas.arrays.IntegerArray(nodes.parent, nodes.parent == NULL),
        "left": pandas.arrays.IntegerArray(nodes.left, nodes.left == NULL),
        "right": pandas.arrays.IntegerArray(nodes.right, nodes.right == NULL),
        "height": nodes.height,
        "size": nodes.size,
        "key": pandas.Series(key, dtype=object),
    }
    return pandas.DataFrame(columns, index=pandas.RangeIndex(key.size, name="node"))
