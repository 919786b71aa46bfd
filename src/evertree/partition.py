"""`Partition`: flat clusters with ids that last, and what became of each of them."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertree.errors import ParameterError, UnknownKeyError
from evertree.extras import require
from evertree.tree.views import NOISE

#: What can become of a cluster, in the order of the table.
EVENTS = ("born", "died", "split", "merged", "grew", "shrank")


@dataclass(frozen=True, eq=False)
class Partition:
    """Flat clusters of the points that were live at some moment; see `Hierarchy.partition`.

    Attributes
    ----------
    keys : list
        The keys of that moment, oldest first.
    labels : ndarray of int
        The id of the cluster of each key, -1 for none. Ids are whole numbers that are never used again for another
        cluster, in all partitions that follow each other.

    Examples
    --------
    >>> h = et.Hierarchy()
    >>> keys = h.insert([[0.0], [1.0], [8.0], [9.0]], keys=["a", "b", "c", "d"])
    >>> before = h.partition(n_clusters=2)
    >>> before.labels
    array([0, 0, 1, 1])
    >>> h.remove(["a"])
    >>> keys = h.insert([[50.0], [9.5]], keys=["e", "f"])
    >>> now = h.partition(n_clusters=3, follow=before)
    >>> now.labels  # b keeps the id of its cluster, and e is in a new one
    array([0, 1, 1, 2, 1])
    >>> now.changes(before)[["event", "id", "keys"]]
        event  id keys
    0    born   2  [e]
    1    grew   1  [f]
    2  shrank   0  [a]
    """

    keys: list[Hashable]
    labels: NDArray[np.int64]
    _next_id: int = field(repr=False)
    _position: dict[Hashable, int] = field(repr=False)

    @classmethod
    def of(cls, keys: list[Hashable], clusters: NDArray[np.int64], follow: Partition | None = None) -> Partition:
        """Name clusters 0, 1, … of some keys: as they are, or after those of an earlier partition.

        Examples
        --------
        >>> before = et.Partition.of(["a", "b", "c"], np.array([0, 0, 1]))
        >>> et.Partition.of(["c", "b", "x"], np.array([0, 1, 2]), follow=before).labels
        array([1, 0, 2])
        """
        labels, next_id = clusters, int(clusters.max(initial=NOISE)) + 1
        if follow is not None:
            labels, next_id = _follow(keys, clusters, follow)
        return cls(keys, labels, next_id, {key: i for i, key in enumerate(keys)})

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[int]:
        return iter(self.ids)

    def __getitem__(self, key: Hashable) -> int:
        if key not in self._position:
            raise UnknownKeyError(f"no point of this partition has the key {key!r}")
        return int(self.labels[self._position[key]])

    def __repr__(self) -> str:
        n_noise = int(np.count_nonzero(self.labels == NOISE))
        noise = f", {n_noise:,} points in none" if n_noise else ""
        return f"Partition: {len(self):,} clusters of {len(self.keys):,} points{noise}"

    @property
    def ids(self) -> list[int]:
        """The ids of the clusters, in order.

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> keys = h.insert([[0.0], [1.0], [8.0]])
        >>> h.partition(n_clusters=2).ids
        [0, 1]
        """
        found: list[int] = np.unique(self.labels[self.labels != NOISE]).tolist()
        return found

    def members(self, id: int) -> list[Hashable]:  # noqa: A002
        """The keys of a cluster.

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> keys = h.insert([[0.0], [1.0], [8.0]], keys=["a", "b", "c"])
        >>> h.partition(n_clusters=2).members(0)
        ['a', 'b']
        """
        found = np.flatnonzero(self.labels == id)
        if id == NOISE or found.size == 0:
            raise ParameterError(f"id must be that of a cluster of this partition, one of ids; it is {id!r}")
        return [self.keys[i] for i in found.tolist()]

    def sizes(self) -> dict[int, int]:
        """The number of points of each cluster, by id.

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> keys = h.insert([[0.0], [1.0], [8.0]])
        >>> h.partition(n_clusters=2).sizes()
        {0: 2, 1: 1}
        """
        ids, counts = np.unique(self.labels[self.labels != NOISE], return_counts=True)
        return dict(zip(ids.tolist(), counts.tolist(), strict=True))

    def changes(self, before: Partition) -> Any:
        """What became of the clusters of an earlier partition that this one follows.

        Parameters
        ----------
        before : Partition

        Returns
        -------
        changes : pandas.DataFrame
            A row for each event, with these columns:

            - ``event``: ``born``: an id that is new; ``died``: an id that is gone; ``split``: at least two clusters
              have most of their points from this one; ``merged``: at least two clusters of before have most of their
              points in this one; ``grew``: points joined; ``shrank``: points left. "Most" is more than half of those
              that were live both times.
            - ``id``: the cluster
            - ``before``, ``after``: its size then and now
            - ``others``: the ids where its points came from (born, merged, grew) or went to (died, split, shrank)
            - ``keys``: the keys that moved

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> keys = h.insert([[0.0], [1.0], [8.0], [9.0]])
        >>> before = h.partition(n_clusters=1)
        >>> h.partition(n_clusters=2, follow=before).changes(before)
            event  id  before  after others    keys
        0    born   1       0      2    [0]  [2, 3]
        1   split   0       4      2    [1]  [2, 3]
        2  shrank   0       4      2    [1]  [2, 3]
        """
        pandas = require("pandas", "changes", "pandas")
        rows = _Flow(before, self).events()
        rows.sort(key=lambda row: (EVENTS.index(row[0]), row[1]))
        return pandas.DataFrame(rows, columns=["event", "id", "before", "after", "others", "keys"])


def _common(keys: list[Hashable], before: Partition) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Positions of the keys that both have: now, and before."""
    pairs = [(i, before._position[key]) for i, key in enumerate(keys) if key in before._position]
    now, then = np.array(pairs, np.intp).reshape(-1, 2).T
    return now, then


def _follow(keys: list[Hashable], clusters: NDArray[np.int64], before: Partition) -> tuple[NDArray[np.int64], int]:
    """Ids for clusters: those of before that they share most points with, each once, and new ones.

    The assignment with the largest overlap in all (SciPy's). Clusters that share no points, not even by way of others,
    are assigned apart from each other, so that it stays fast for many clusters.
    """
    from scipy.optimize import linear_sum_assignment
    from scipy.sparse import coo_array

    n_now, then_ids = int(clusters.max(initial=NOISE)) + 1, np.array(before.ids, np.int64)
    now, then = _common(keys, before)
    is_shared = (clusters[now] != NOISE) & (before.labels[then] != NOISE)
    row, column = clusters[now][is_shared], np.searchsorted(then_ids, before.labels[then][is_shared])
    overlap = coo_array((np.ones(row.size), (row, column)), shape=(n_now, then_ids.size)).tocsr()
    ids = np.full(n_now, NOISE, np.int64)
    for ours, theirs in _components(overlap):
        block = overlap[ours][:, theirs].toarray()
        a, b = linear_sum_assignment(block, maximize=True)
        shares = block[a, b] > 0
        ids[ours[a[shares]]] = then_ids[theirs[b[shares]]]
    is_new = ids == NOISE
    ids[is_new] = before._next_id + np.arange(np.count_nonzero(is_new))
    return np.append(ids, NOISE)[clusters], before._next_id + int(np.count_nonzero(is_new))


def _components(overlap: Any) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """The rows and columns of each block into which a sparse matrix falls apart."""
    from scipy.sparse import block_array
    from scipy.sparse.csgraph import connected_components

    if overlap.nnz == 0:
        return
    n_blocks, block = connected_components(block_array([[None, overlap], [overlap.T, None]]))
    parts = []
    for of in (block[: overlap.shape[0]], block[overlap.shape[0] :]):
        order = np.argsort(of, kind="stable")
        parts.append(np.split(order, np.searchsorted(of[order], np.arange(1, n_blocks))))
    yield from zip(*parts, strict=True)


class _Flow:
    """Where points went from one partition to another."""

    def __init__(self, before: Partition, after: Partition) -> None:
        self.sizes = before.sizes(), after.sizes()
        self.moved: dict[tuple[int, int], list[Hashable]] = {}  # keys by old and new cluster, where these differ
        self.came: dict[int, list[Hashable]] = {}
        self.left: dict[int, list[Hashable]] = {}
        self.sources: dict[int, dict[int, int]] = {}  # counts of points that both have, by new and old cluster
        self.targets: dict[int, dict[int, int]] = {}  # the same, by old and new cluster
        for key in dict.fromkeys([*before.keys, *after.keys]):
            old, new = _id_of(before, key), _id_of(after, key)
            if key in before._position and key in after._position:
                self.sources.setdefault(new, {}).setdefault(old, 0)
                self.sources[new][old] += 1
                self.targets.setdefault(old, {}).setdefault(new, 0)
                self.targets[old][new] += 1
            if old != new:
                self.left.setdefault(old, []).append(key)
                self.came.setdefault(new, []).append(key)
                self.moved.setdefault((old, new), []).append(key)

    def events(self) -> list[tuple[str, int, int, int, list[int], list[Hashable]]]:
        """All rows of the table."""
        then, now = self.sizes
        both = [c for c in then if c in now]
        rows = []
        for event, clusters, moved, related in (
            ("born", [c for c in now if c not in then], self.came, self.sources),
            ("died", [c for c in then if c not in now], self.left, self.targets),
            ("grew", [c for c in both if c in self.came], self.came, self.sources),
            ("shrank", [c for c in both if c in self.left], self.left, self.targets),
        ):
            for c in clusters:
                others = sorted(set(related.get(c, ())) - {c, NOISE})
                rows.append((event, c, then.get(c, 0), now.get(c, 0), others, moved.get(c, [])))
        heirs, parents = _majorities(self.sources), _majorities(self.targets)
        for event, families in (("split", heirs), ("merged", parents)):
            for c, family in families.items():
                others = [other for other in family if other != c]
                pairs = [(c, other) if event == "split" else (other, c) for other in others]
                keys = [key for pair in pairs for key in self.moved.get(pair, ())]
                if len(family) > 1:
                    rows.append((event, c, then.get(c, 0), now.get(c, 0), others, keys))
        return rows


def _majorities(counts: dict[int, dict[int, int]]) -> dict[int, list[int]]:
    """For each cluster at one time, those at the other time more than half of whose points it has."""
    found: dict[int, list[int]] = {}
    for cluster in sorted(counts):
        shares = counts[cluster]
        for other, count in shares.items():
            if NOISE not in (cluster, other) and 2 * count > sum(shares.values()):
                found.setdefault(other, []).append(cluster)
    return found


def _id_of(partition: Partition, key: Hashable) -> int:
    i = partition._position.get(key)
    return NOISE if i is None else int(partition.labels[i])
