"""`Partition`: flat clusters with ids that last, and what became of each of them."""

from __future__ import annotations

import numbers
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertree.columns import NOISE
from evertree.errors import ParameterError, UnknownKeyError
from evertree.extras import require

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

    _keys: tuple[Hashable, ...] = field(repr=False)
    labels: NDArray[np.int64]
    _next_id: int = field(repr=False)
    _position: dict[Hashable, int] = field(repr=False)

    @classmethod
    def of(cls, keys: Iterable[Hashable], clusters: Any, follow: Partition | None = None) -> Partition:
        """Name clusters 0, 1, … of some keys: as they are, or after those of an earlier partition.

        Examples
        --------
        >>> before = et.Partition.of(["a", "b", "c"], [0, 0, 1])
        >>> et.Partition.of(["c", "b", "x"], [0, 1, 2], follow=before).labels
        array([1, 0, 2])
        """
        names, labels = tuple(keys), np.array(clusters, np.int64)
        position = {key: i for i, key in enumerate(names)}
        if labels.shape != (len(position),) or len(position) < len(names) or labels.min(initial=NOISE) < NOISE:
            raise ParameterError("clusters must be whole numbers from -1 on, one for each key, and keys must differ")
        next_id = int(labels.max(initial=NOISE)) + 1
        if follow is not None:
            labels, next_id = _follow(names, labels, follow)
        labels.setflags(write=False)
        return cls(names, labels, next_id, position)

    @property
    def keys(self) -> list[Hashable]:
        """The keys of that moment, oldest first.

        Examples
        --------
        >>> et.Partition.of(["a", "b"], [0, 0]).keys
        ['a', 'b']
        """
        return list(self._keys)

    def __len__(self) -> int:
        return len(self.ids)

    #: Keys or ids? Use `keys` or `ids`. (Without this, Python would ask for the points 0, 1, ….)
    __iter__ = None

    def __contains__(self, key: object) -> bool:
        return key in self._position

    def __getitem__(self, key: Hashable) -> int:
        if key not in self._position:
            raise UnknownKeyError(f"no point of this partition has the key {key!r}")
        return int(self.labels[self._position[key]])

    def __repr__(self) -> str:
        n_noise = int(np.count_nonzero(self.labels == NOISE))
        noise = f", {n_noise:,} points in none" if n_noise else ""
        return f"Partition: {len(self):,} clusters of {len(self._keys):,} points{noise}"

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
        found = np.flatnonzero(self.labels == id) if isinstance(id, numbers.Integral) else np.empty(0, np.intp)
        if id == NOISE or found.size == 0:
            raise ParameterError(f"id must be that of a cluster of this partition, one of ids; it is {id!r}")
        return [self._keys[i] for i in found.tolist()]

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
        if not isinstance(before, Partition):
            raise ParameterError(f"before must be a Partition; it is {type(before).__name__}")
        pandas = require("pandas", "changes", "pandas")
        rows = _Flow(before, self).events()
        rows.sort(key=lambda row: (EVENTS.index(row[0]), row[1]))
        return pandas.DataFrame(rows, columns=["event", "id", "before", "after", "others", "keys"])


def _follow(
    keys: tuple[Hashable, ...], clusters: NDArray[np.int64], before: Partition
) -> tuple[NDArray[np.int64], int]:
    """Ids for clusters: those of before that they share most points with, each once, and new ones.

    The assignment with the largest overlap in all (SciPy's, for sparse matrices). So that a cluster may also get no id
    of before, each has a column of its own, which is worth less than any point. A tie goes to the cluster with the
    older point, which is numbered first: its points are worth a little more. All that together is less than one point.
    """
    from scipy.sparse import coo_array, csr_array, diags_array, hstack
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching

    n_now, then_ids = int(clusters.max(initial=NOISE)) + 1, np.array(before.ids, np.int64)
    pairs = [(i, before._position[key]) for i, key in enumerate(keys) if key in before._position]
    now, then = np.array(pairs, np.intp).reshape(-1, 2).T
    is_shared = (clusters[now] != NOISE) & (before.labels[then] != NOISE)
    row, column = clusters[now][is_shared], np.searchsorted(then_ids, before.labels[then][is_shared])
    ids = np.full(n_now, NOISE, np.int64)
    if row.size:
        overlap = coo_array((np.ones(row.size), (row, column)), shape=(n_now, then_ids.size)).tocsr()
        overlap.data += 0.25 / n_now * (1 - np.repeat(np.arange(n_now), np.diff(overlap.indptr)) / n_now)
        own = diags_array(np.full(n_now, 0.5 / n_now))
        _, chosen = min_weight_full_bipartite_matching(csr_array(hstack([overlap, own])), maximize=True)
        is_kept = chosen < then_ids.size
        ids[is_kept] = then_ids[chosen[is_kept]]
    is_new = ids == NOISE
    ids[is_new] = before._next_id + np.arange(np.count_nonzero(is_new))
    return np.append(ids, NOISE)[clusters], before._next_id + int(np.count_nonzero(is_new))


class _Flow:
    """Where points went from one partition to another."""

    def __init__(self, before: Partition, after: Partition) -> None:
        self.sizes = before.sizes(), after.sizes()
        self.moved: dict[tuple[int, int], list[Hashable]] = {}  # keys by old and new cluster, where these differ
        self.came: dict[int, list[Hashable]] = {}
        self.left: dict[int, list[Hashable]] = {}
        self.sources: dict[int, dict[int, int]] = {}  # counts of points that both have, by new and old cluster
        self.targets: dict[int, dict[int, int]] = {}  # the same, by old and new cluster
        for key in dict.fromkeys([*before._keys, *after._keys]):
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
        total = sum(shares.values())
        for other, count in shares.items():
            if NOISE not in (cluster, other) and 2 * count > total:
                found.setdefault(other, []).append(cluster)
    return found


def _id_of(partition: Partition, key: Hashable) -> int:
    i = partition._position.get(key)
    return NOISE if i is None else int(partition.labels[i])
