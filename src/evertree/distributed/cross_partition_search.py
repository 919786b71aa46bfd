"""The search for blocking pairs whose two nodes are in different parts. Every function here is pure.

A node descends through the upper tree, which every part has. It may find a partner there; and where a stub of another
part may contain one, it becomes a query to that part, which continues the search below the stub.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evertree import kernels
from evertree.distributed.parts import Part
from evertree.distributed.subtrees import STRIDE, Subtrees, from_live_nodes, live_nodes, to_live
from evertree.kernels.columns import NULL
from evertree.tree import Aim, MeanLiveTree
from evertree.tree.base import contiguous
from evertree.tree.scheme import Scheme

#: Owners below this are the subtrees of the part that searches.
_BEFORE_OWN = NULL - 1

#: Queries that descend through a tree at a time.
_AT_ONCE = 8_192


class QueryNodes(NamedTuple):
    """Nodes that look for a partner in other parts."""

    node: NDArray[np.int64]  # (k,) the id that it would have as a stub; -1 - u for node u of the upper tree
    size: NDArray[np.float64]  # (k,)
    mean: NDArray[Any]  # (k, m)
    variance: NDArray[np.float64]  # (k,)
    height: NDArray[np.float64]  # (k,)
    limit: NDArray[np.float64]  # (k,) the height of its parent, minus a bound on the rounding error

    def at(self, some: Any) -> QueryNodes:
        """Some of them."""
        return QueryNodes(*(column[some] for column in self))


class Queries(NamedTuple):
    """Nodes, and the stubs to search for their partners: each node is there once, and may have several stubs."""

    nodes: QueryNodes
    row: NDArray[np.int32]  # (q,) which of the nodes
    stub: NDArray[np.int64]  # (q,) the id of the stub


class BlockingPairs(NamedTuple):
    """Blocking pairs across parts."""

    node: NDArray[np.int64]  # (p,) as in `QueryNodes`
    partner: NDArray[np.int64]  # (p,) the id that it would have as a stub; NULL if it is in the upper tree
    value: NDArray[np.float64]  # (p,) ζ between the two

    def at(self, some: Any) -> BlockingPairs:
        """Some of them."""
        return BlockingPairs(*(column[some] for column in self))


#: The queries to each part, by its number, and the pairs that were found in the upper tree.
Found = tuple[dict[int, Queries], BlockingPairs]


def search_from_part(
    part: Part,
    number: int,
    upper: Subtrees,
    lightest: float,
    all_due: bool,
    signatures: NDArray[np.int64],
    scheme: Scheme,
    aim: Aim,
) -> Found:
    """Search for partners of nodes of a part.

    Parameters
    ----------
    upper
        The summaries of all parts, joined.
    lightest
        The smallest weight of any point.
    all_due
        Whether all due nodes search, or only those of the given signatures.
    """
    subtrees = part.subtrees
    searches = part.due.copy() if all_due else np.zeros(subtrees.n_nodes, np.bool_)
    searches[subtrees.find(signatures)] = True
    # Nodes that are in the upper tree search from there.
    stubs = upper.ids[upper.ids // STRIDE == number] - number * STRIDE
    is_open = np.zeros(len(subtrees.children), np.bool_)
    is_stub = np.zeros(subtrees.n_nodes, np.bool_)
    is_stub[stubs] = True
    kernels.shared.cross_partition.open_paths(contiguous(subtrees.children), subtrees.n_leaves, is_stub, is_open)
    searches &= ~is_stub
    searches[subtrees.n_leaves :] &= ~is_open
    nodes = np.flatnonzero(searches)
    live = to_live(subtrees, scheme, aim)
    query_nodes = _query_nodes(live, live_nodes(subtrees, nodes), number * STRIDE + nodes)
    # The subtree of a node has been searched already, but not the others of its part.
    owner = upper.ids // STRIDE
    owner[owner == number] = _BEFORE_OWN - subtrees.number_of(stubs)
    own = _BEFORE_OWN - subtrees.number_of(nodes)
    return _search_upper(query_nodes, np.full(nodes.size, NULL), own, owner, upper, lightest, scheme, aim)


def search_from_upper(upper: Subtrees, nodes: NDArray[np.int64], lightest: float, scheme: Scheme, aim: Aim) -> Found:
    """Search for partners of some nodes of the upper tree."""
    live, twins = to_live(upper, scheme, aim), live_nodes(upper, nodes)
    query_nodes = _query_nodes(live, twins, -1 - nodes)
    own = np.full(nodes.size, NULL)
    return _search_upper(query_nodes, twins, own, upper.ids // STRIDE, upper, lightest, scheme, aim)


def queries_to(found: Found, number: int) -> Queries:
    """The queries to the part of this number."""
    return found[0][number]


def counts_and_pairs(found: Found) -> tuple[dict[int, int], BlockingPairs]:
    """The number of queries to each part, and the pairs from the upper tree."""
    return {number: queries.row.size for number, queries in found[0].items()}, found[1]


def answer(part: Part, number: int, queries: Sequence[Queries], scheme: Scheme, aim: Aim) -> BlockingPairs:
    """Search a part, below the stubs of queries, for partners."""
    query = _concatenated(queries)
    live, places = _with_places_for_queries(part.subtrees, scheme, aim)
    starts = live_nodes(part.subtrees, query.stub - number * STRIDE)
    partner, value, _ = _descend(live, places, query.nodes, query.row, np.full(starts.size, NULL), starts)
    found = np.flatnonzero(partner != NULL)
    node = from_live_nodes(part.subtrees, partner[found].astype(np.int64))
    return BlockingPairs(query.nodes.node[query.row[found]], number * STRIDE + node, value[found])


def best_pairs(found: list[BlockingPairs]) -> BlockingPairs:
    """The pair of each node with the smallest ζ, and of equal ones with the first partner."""
    if not found:
        return BlockingPairs(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    pairs = BlockingPairs(*(np.concatenate(columns) for columns in zip(*found, strict=True)))
    order = np.lexsort([pairs.partner, pairs.value, pairs.node])
    _, first = np.unique(pairs.node[order], return_index=True)
    return pairs.at(order[first])


def _concatenated(queries: Sequence[Queries]) -> Queries:
    starts = np.cumsum([0, *(some.nodes.node.size for some in queries)])
    return Queries(
        QueryNodes(*(np.concatenate(columns) for columns in zip(*(some.nodes for some in queries), strict=True))),
        np.concatenate([start + some.row for start, some in zip(starts, queries, strict=False)]),
        np.concatenate([some.stub for some in queries]),
    )


def _query_nodes(live: MeanLiveTree, u: NDArray[np.int64], node: NDArray[np.int64]) -> QueryNodes:
    tree, limit = live.tree, np.empty(u.size)
    kernels.shared.cross_partition.find_limits(tree, live.tag, u, limit)
    return QueryNodes(node, tree.size[u], tree.mean[u], tree.variance[u], tree.height[u], limit)


def _with_places_for_queries(subtrees: Subtrees, scheme: Scheme, aim: Aim) -> tuple[MeanLiveTree, NDArray[np.int32]]:
    """A live tree, and leaves outside it that queries take in turn."""
    live = to_live(subtrees, scheme, aim, _AT_ONCE)
    return live, (2 * (subtrees.n_leaves + np.arange(_AT_ONCE))).astype(np.int32)


def _descend(
    live: MeanLiveTree,
    places: NDArray[np.int32],
    nodes: QueryNodes,
    rows: NDArray[np.integer],
    twins: NDArray[np.int64],
    starts: NDArray[np.int64],
    owner: NDArray[np.int64] | None = None,
    own: int = NULL,
) -> tuple[NDArray[np.int32], NDArray[np.float64], NDArray[np.int32]]:
    """Search from ``starts`` for the partners of some rows of `nodes`: the partner or NULL, ζ, and stubs to query.

    Stubs are leaves with an `owner` other than `own`. A node may have a twin: itself, in this tree.
    """
    tree, n = live.tree, rows.size
    n_stubs = 0 if owner is None else _most_stubs(live)
    partner, value, stubs = np.empty(n, np.int32), np.empty(n), np.full((n, n_stubs), NULL, np.int32)
    for begin in range(0, n, places.size):
        some = slice(begin, min(begin + places.size, n))
        a = places[: some.stop - begin]
        p = a + 1
        _, tree.size[a], tree.mean[a], tree.variance[a], tree.height[a], tree.height[p] = nodes.at(rows[some])
        # A query is its own sibling, because the limit has the rounding error already.
        tree.parent[a], tree.left[p], tree.right[p], tree.parent[p] = p, a, a, NULL
        found = partner[some], value[some]
        kernels.shared.cross_partition.find_partners(tree, live.search, live.tag, a, twins[some], starts[some], *found)
        if owner is not None:
            kernels.shared.cross_partition.choose_stubs(tree, live.search, live.tag, a, owner, own, stubs[some])
    return partner, value, stubs


def _search_upper(
    nodes: QueryNodes,
    twins: NDArray[np.int64],
    own: NDArray[np.int64],
    owner: NDArray[np.int64],
    upper: Subtrees,
    lightest: float,
    scheme: Scheme,
    aim: Aim,
) -> Found:
    """Search the upper tree, and make queries to the parts whose stubs have another `owner` than a node's `own`."""
    order = np.argsort(own, kind="stable")
    twins, own = twins[order], own[order]
    live, places = _with_places_for_queries(upper, scheme, aim)
    live.search.lightest[0] = lightest
    starts = np.full(own.size, live.root, np.int64)
    partner, value = np.empty(own.size, np.int32), np.empty(own.size)
    stubs = np.empty((own.size, _most_stubs(live)), np.int32)
    for label in np.unique(own).tolist():
        some = slice(*np.searchsorted(own, [label, label + 1]))
        found = _descend(live, places, nodes, order[some], twins[some], starts[some], owner, label)
        partner[some], value[some], stubs[some] = found
    hits = np.flatnonzero(partner != NULL)
    pairs = BlockingPairs(nodes.node[order[hits]], np.full(hits.size, NULL), value[hits])
    place, column = np.nonzero(stubs != NULL)
    stub = upper.ids[stubs[place, column] >> 1]
    to = stub // STRIDE
    queries = {}
    for number in np.unique(to).tolist():
        here = np.flatnonzero(to == number)
        which, row = np.unique(order[place[here]], return_inverse=True)
        queries[number] = Queries(nodes.at(which), row.astype(np.int32), stub[here])
    return queries, pairs


def _most_stubs(live: MeanLiveTree) -> int:
    """The most stubs of one node that are searched: those near it, or with exhaustive searches all."""
    return kernels.statistics.search.usual_width(live.search) if live.aim.search_width else live.n_points
