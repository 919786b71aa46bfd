"""A tree as a networkx graph."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertree.extras import require
from evertree.io.nodes import number_nodes


def to_digraph(Z: NDArray[np.float64], keys: Sequence[Hashable]) -> Any:
    """A graph with an edge from each parent to each of its children, the left one first.

    Parameters
    ----------
    Z : array of shape (n - 1, 4)
        SciPy's linkage matrix.
    keys : list of n keys
        ``keys[i]`` is leaf i.

    Returns
    -------
    networkx.DiGraph
        Nodes are SciPy's numbers, with the attributes ``height``, ``size`` and, for leaves, ``key``.

    Raises
    ------
    MissingExtraError
        networkx is not installed.

    Examples
    --------
    >>> from evertree.io import to_digraph
    >>> Z = np.array([[0.0, 1.0, 1.0, 2.0], [2.0, 3.0, 5.0, 3.0]])
    >>> graph = to_digraph(Z, ["a", "b", "c"])
    >>> list(graph.edges)
    [(3, 0), (3, 1), (4, 2), (4, 3)]
    >>> graph.nodes[0], graph.nodes[4]
    ({'height': 0.0, 'size': 1, 'key': 'a'}, {'height': 5.0, 'size': 3})
    """
    networkx = require("networkx", "to_networkx", "networkx")
    nodes = number_nodes(Z, keys)
    n = len(keys)
    graph = networkx.DiGraph()
    for u, (height, size) in enumerate(zip(nodes.height.tolist(), nodes.size.tolist(), strict=True)):
        graph.add_node(u, height=height, size=size)
    for i, key in enumerate(keys):
        graph.nodes[i]["key"] = key
    for u, (left, right) in enumerate(zip(nodes.left[n:].tolist(), nodes.right[n:].tolist(), strict=True), start=n):
        graph.add_edge(u, left)
        graph.add_edge(u, right)
    return graph
