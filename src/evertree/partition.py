"""`Partition`: flat clusters with persistent ids, and what happened to each of them."""

from __future__ import annotations

import numbers
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertree.errors import ParameterError, UnknownKeyError
from evertree.extras import require
from evertree.input.arrays import as_whole_number
from evertree.kernels.columns import NOISE, NULL

#: What can happen to a cluster, in the order of the table.
EVENTS = ("born", "died", "split", "merged", "grew", "shrank", "exchanged")

#: Instead of an id: the key is not in the partition at all. (NOISE: it is there, but in no cluster.)
ABSENT = -2

#: Numbers are looked up in a table, which is faster than a search or a sort, if it has at most this many entries per
#: number.
_TABLE_PER_NUMBER = 4

#: What happened to a cluster: the event, its id, its sizes before and after, and the ids of the other clusters.
Event = tuple[str, int, int, int, list[int]]


@dataclass(frozen=True, eq=False)
class PointKeys:
    """The keys of the points of a partition, and the means to find them in another one.

    Attributes
    ----------
    chosen : tuple or None
        The keys; None for those that are the insertion numbers.
    births : ndarray of int, optional
        If the points are from a hierarchy, their insertion numbers in it, ascending.
    lineage : object, optional
        The token of that hierarchy. Equal numbers mean the same point only if the token is the same object: copies of a
        hierarchy later give the same numbers to different points. It is not the same object after pickling.
    family : object, optional
        The token that a hierarchy shares with its copies. A partition of another family is of other points.
    """

    chosen: tuple[Hashable, ...] | None
    births: NDArray[np.int64] | None = None
    lineage: object = None
    family: object = None

    def __len__(self) -> int:
        if self.chosen is not None:
            return len(self.chosen)
        assert self.births is not None
        return self.births.size

    @cached_property
    def keys(self) -> tuple[Hashable, ...]:
        """All keys. Numbers of Python take longer to make than the rest of a partition, so they are made on demand."""
        if self.chosen is not None:
            return self.chosen
        assert self.births is not None
        return tuple(self.births.tolist())

    @cached_property
    def position(self) -> dict[object, int]:
        """The position of each key. Building the dict takes longer than the rest of a partition, so it is lazy."""
        return dict(zip(self.keys, range(len(self.keys)), strict=True))

    def place_of(self, key: object) -> int:
        """The position of a key, NULL if it is not there. O(log n) for numbered keys, O(1) for others."""
        if self.chosen is None and self.births is not None and type(key) is int:
            place = int(np.searchsorted(self.births, key))
            return place if place < len(self) and self.births[place] == key else NULL
        try:
            return self.position.get(key, NULL)
        except TypeError:  # it cannot be hashed
            return NULL

    def places_in(self, other: PointKeys) -> NDArray[np.intp]:
        """The position of each key in `other`, NULL if it is not there. O(n), in NumPy for the same hierarchy."""
        if self.births is None or other.births is None or self.lineage is not other.lineage:
            found = map(other.position.get, self.keys, repeat(NULL))
            return np.fromiter(found, np.intp, len(self))
        if np.array_equal(self.births, other.births):
            return np.arange(len(self))
        places = _places(self.births, other.births)
        # A key that was removed and inserted again is the same key, with another number.
        new, missing = np.flatnonzero(places == NULL), other.not_among(places)
        if new.size and missing.size:
            position = {other.keys[i]: i for i in missing.tolist()}
            places[new] = [position.get(self.keys[i], NULL) for i in new.tolist()]
        return places

    def is_foreign_to(self, other: PointKeys) -> bool:
        """Whether these are known to be points of different hierarchies, neither a copy of the other."""
        return None not in (self.family, other.family) and self.family is not other.family

    def not_among(self, places: NDArray[np.intp]) -> NDArray[np.intp]:
        """The positions that are not among the given ones, some of which may be NULL."""
        is_missing = np.ones(len(self) + 1, np.bool_)
        is_missing[places] = False  # NULL is the last one
        return np.flatnonzero(is_missing[:-1])

    def __reduce__(self) -> tuple[Any, ...]:
        return PointKeys, (self.keys,)  # tokens mean nothing elsewhere


@dataclass(frozen=True, eq=False)
class Partition:
    """Flat clusters of the points that were live at some time; see `Hierarchy.partition`.

    Attributes
    ----------
    keys : list
        The keys at that time, oldest first.
    labels : ndarray of int
        The id of the cluster of each key, -1 for none. Ids are integers; in all partitions that follow each other, they
        are never used again for another cluster.

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

    _points: PointKeys = field(repr=False)
    labels: NDArray[np.int64]
    _next_id: int = field(repr=False)

    @classmethod
    def of(
        cls, keys: Iterable[Hashable], clusters: Any, follow: Partition | None = None, next_id: int | None = None
    ) -> Partition:
        """A partition of some keys into clusters 0, 1, …, with these ids or those of an earlier partition.

        Parameters
        ----------
        keys : collection of hashable values
        clusters : array of int
            The cluster of each key, -1 for none. Without `follow`, these are the ids.
        follow : Partition, optional
            An earlier partition, as for `Hierarchy.partition`.
        next_id : int, optional
            Ids below it are not given to new clusters, neither here nor in partitions that follow. By default, new ids
            are above the largest one and above those that `follow` had to avoid.

        Examples
        --------
        >>> before = et.Partition.of(["a", "b", "c"], [0, 0, 1])
        >>> et.Partition.of(["c", "b", "x"], [0, 1, 2], follow=before).labels
        array([1, 0, 2])

        A stored partition with its ids, of which 3 to 6 were used for clusters that are gone:

        >>> stored = et.Partition.of(["a", "b", "c"], [0, 0, 2], next_id=7)
        >>> et.Partition.of(["a", "b", "c", "x"], [0, 0, 1, 2], follow=stored).labels
        array([0, 0, 2, 7])
        """
        names, labels = tuple(keys), np.array(clusters, np.int64)
        if labels.shape != (len(names),) or len(set(names)) < len(names) or labels.min(initial=NOISE) < NOISE:
            raise ParameterError("clusters must be whole numbers from -1 on, one for each key, and keys must differ")
        least = int(labels.max(initial=NOISE)) + 1 if follow is None else 0
        first = as_whole_number("next_id", 0 if next_id is None else next_id)
        if next_id is not None and first < least:
            raise ParameterError(f"next_id must be at least {least}, above all ids in clusters; it is {next_id!r}")
        return named_clusters(PointKeys(names), labels, follow, first)

    @property
    def keys(self) -> list[Hashable]:
        """The keys at that time, oldest first.

        Examples
        --------
        >>> et.Partition.of(["a", "b"], [0, 0]).keys
        ['a', 'b']
        """
        return list(self._keys)

    def keys_at(self, positions: NDArray[np.intp]) -> list[Hashable]:
        """The keys at some positions, without copying all keys.

        Parameters
        ----------
        positions : ndarray of int
            As in `labels`.

        Examples
        --------
        >>> p = et.Partition.of(["a", "b", "c"], [0, 0, 1])
        >>> p.keys_at(np.flatnonzero(p.labels == 0))
        ['a', 'b']
        """
        keys = self._keys
        return [keys[i] for i in positions.tolist()]

    @property
    def next_id(self) -> int:
        """The first id that neither this partition nor one that it follows has used.

        Examples
        --------
        >>> et.Partition.of(["a", "b", "c"], [0, 0, 1]).next_id
        2
        """
        return self._next_id

    @property
    def _keys(self) -> tuple[Hashable, ...]:
        return self._points.keys

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[int]:
        return iter(self.ids)

    def __contains__(self, id: object) -> bool:  # noqa: A002
        return isinstance(id, numbers.Integral) and int(id) >= 0 and bool(np.any(self.labels == int(id)))

    def __getitem__(self, _: object) -> None:
        raise TypeError("a partition is a collection of cluster ids: use cluster_of(key), or members(id)")

    def cluster_of(self, key: Hashable) -> int:
        """The id of the cluster of a point; -1 if it is in none.

        Examples
        --------
        >>> p = et.Partition.of(["a", "b", "c"], [0, 0, 1])
        >>> p.cluster_of("c")
        1
        """
        place = self._points.place_of(key)
        if place == NULL:
            raise UnknownKeyError(f"no point of this partition has the key {key!r}")
        return int(self.labels[place])

    def has_key(self, key: object) -> bool:
        """Whether a point with this key is in the partition.

        Examples
        --------
        >>> p = et.Partition.of(["a", "b", "c"], [0, 0, 1])
        >>> p.has_key("c"), 1 in p, list(p)
        (True, True, [0, 1])
        """
        return self._points.place_of(key) != NULL

    def __repr__(self) -> str:
        n_noise = int(np.count_nonzero(self.labels == NOISE))
        noise = f", {n_noise:,} points in none" if n_noise else ""
        return f"Partition: {len(self):,} clusters of {len(self._points):,} points{noise}"

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
        found: list[int] = _counted_ids(self.labels)[0].tolist()
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
        return self.keys_at(found)

    def sizes(self) -> dict[int, int]:
        """The number of points of each cluster, by id.

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> keys = h.insert([[0.0], [1.0], [8.0]])
        >>> h.partition(n_clusters=2).sizes()
        {0: 2, 1: 1}
        """
        ids, counts = _counted_ids(self.labels)
        return dict(zip(ids.tolist(), counts.tolist(), strict=True))

    def changes(self, before: Partition) -> Any:
        """What happened to the clusters of an earlier partition that this one follows.

        Parameters
        ----------
        before : Partition

        Returns
        -------
        changes : pandas.DataFrame
            A row for each event, with these columns:

            - ``event``: ``born``: an id that is new; ``died``: an id that is gone; ``split``: at least two clusters
              have most of their points from this one; ``merged``: at least two earlier clusters have most of their
              points in this one; ``grew``: it has more points than before; ``shrank``: it has fewer; ``exchanged``: it
              has as many, but not the same. "Most" is more than half of those that were live both times.
            - ``id``: the cluster
            - ``before``, ``after``: its size then and now
            - ``others``: the ids where points came from (born, merged, grew), went to (died, split, shrank), or both
              (exchanged)
            - ``keys``: the keys of these points

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
        flow = Flow(before, self)
        events = flow.events()
        rows = [(*event, keys) for event, keys in zip(events, flow.keys_of(events), strict=True)]
        return pandas.DataFrame(rows, columns=["event", "id", "before", "after", "others", "keys"])


def named_clusters(
    points: PointKeys, clusters: NDArray[np.int64], follow: Partition | None, next_id: int = 0
) -> Partition:
    """A partition of checked clusters; it keeps their array if they are the ids."""
    if follow is not None and points.is_foreign_to(follow._points):
        raise ParameterError(
            "follow must be a partition of this hierarchy; it is one of another, whose keys stand for other points",
            remedy="follow Partition.of(p.keys, p.labels, next_id=p.next_id) if they are the same points",
        )
    if follow is None:
        labels, next_id = clusters, max(next_id, int(clusters.max(initial=NOISE)) + 1)
    else:
        labels, next_id = _follow(points, clusters, follow, max(next_id, follow._next_id))
    labels.setflags(write=False)
    return Partition(points, labels, next_id)


class Flow:
    """Where points went from one partition to another.

    The cost is O(n) in NumPy; Python only handles what changed: keys that came, went or moved, and clusters.

    Parameters
    ----------
    before, after : Partition
        They are matched by key, in any order.

    Attributes
    ----------
    then : ndarray of int
        For each key of `after` its id before: NOISE if it was in no cluster, ABSENT if it was not there.
    changed : ndarray of int
        The ascending positions in `after` of keys that were not there before or had another id.
    gone : ndarray of int
        The ascending positions in `before` of keys that are no longer there.

    Examples
    --------
    >>> from evertree.partition import Flow
    >>> before = et.Partition.of(["a", "b", "c"], [0, 0, -1])
    >>> after = et.Partition.of(["b", "c", "d"], [0, 1, 1])
    >>> flow = Flow(before, after)
    >>> flow.then, flow.changed, flow.gone
    (array([ 0, -1, -2]), array([1, 2]), array([0]))
    >>> flow.events()
    [('born', 1, 0, 2, []), ('shrank', 0, 2, 1, [])]
    """

    def __init__(self, before: Partition, after: Partition) -> None:
        self._before, self._after = before, after
        self._places = after._points.places_in(before._points)
        self.then: NDArray[np.int64] = np.append(before.labels, ABSENT)[self._places]
        self.changed = np.flatnonzero(self.then != after.labels)
        self.gone = before._points.not_among(self._places)

    def events(self) -> list[Event]:
        """What happened to the clusters: the events of `Partition.changes`, without the keys.

        Examples
        --------
        >>> from evertree.partition import Flow
        >>> before = et.Partition.of(["a", "b", "c"], [0, 0, 1])
        >>> Flow(before, et.Partition.of(["a", "b", "c"], [0, 0, 0])).events()
        [('died', 1, 1, 0, [0]), ('merged', 0, 2, 3, [1]), ('grew', 0, 2, 3, [1])]
        """
        then, now = self._before.sizes(), self._after.sizes()
        sources, targets = self._counts(now)
        both = [c for c in then if c in now]
        exchanged = {c: sources[c] | targets[c] for c in both}
        found: list[Event] = []
        for event, clusters, related in (
            ("born", [c for c in now if c not in then], sources),
            ("died", [c for c in then if c not in now], targets),
            ("grew", [c for c in both if now[c] > then[c]], sources),
            ("shrank", [c for c in both if now[c] < then[c]], targets),
            ("exchanged", [c for c in both if now[c] == then[c] and sources[c].keys() - {c}], exchanged),
        ):
            for c in clusters:
                others = sorted(related[c].keys() - {c, NOISE, ABSENT})
                found.append((event, c, then.get(c, 0), now.get(c, 0), others))
        for event, families in (("split", _majorities(sources)), ("merged", _majorities(targets))):
            for c, family in families.items():
                if len(family) > 1:
                    others = [other for other in family if other != c]
                    found.append((event, c, then.get(c, 0), now.get(c, 0), others))
        return sorted(found, key=lambda row: (EVENTS.index(row[0]), row[1]))

    def keys_of(self, events: Sequence[Event]) -> list[list[Hashable]]:
        """The keys that moved in each of `events`: in the order of `before`, then the new ones.

        Examples
        --------
        >>> from evertree.partition import Flow
        >>> flow = Flow(et.Partition.of(["a", "b"], [0, 0]), et.Partition.of(["a", "b", "c"], [0, 1, 1]))
        >>> dict(zip([event[:2] for event in flow.events()], flow.keys_of(flow.events())))
        {('born', 1): ['b', 'c'], ('split', 0): ['b'], ('shrank', 0): ['b']}
        """
        came: dict[int, list[Hashable]] = {}
        left: dict[int, list[Hashable]] = {}
        moved: dict[tuple[int, int], list[Hashable]] = {}
        places, old_ids, new_ids = (column.tolist() for column in self._moves())
        then_keys, now_keys = self._before._keys, self._after._keys
        for place, old, new in zip(places, old_ids, new_ids, strict=True):
            key = then_keys[place] if place < len(then_keys) else now_keys[place - len(then_keys)]
            left.setdefault(old, []).append(key)
            came.setdefault(new, []).append(key)
            moved.setdefault((old, new), []).append(key)
        found = []
        for event, c, _, _, others in events:
            if event in ("split", "merged"):
                pairs = [(c, other) if event == "split" else (other, c) for other in others]
                found.append([key for pair in pairs for key in moved.get(pair, ())])
            elif event == "exchanged":
                found.append(left.get(c, []) + came.get(c, []))
            else:
                found.append((came if event in ("born", "grew") else left).get(c, []))
        return found

    def _moves(self) -> tuple[NDArray[np.intp], NDArray[np.int64], NDArray[np.int64]]:
        """All keys that changed or are gone: their position, old id and new id, ABSENT if there is none.

        In the order of positions: those of `before`, then, for new keys, those of `after`.
        """
        n_before, places = len(self._before._points), self._places[self.changed]
        place = np.concatenate([np.where(places == NULL, n_before + self.changed, places), self.gone])
        old = np.concatenate([self.then[self.changed], self._before.labels[self.gone]])
        new = np.concatenate([self._after.labels[self.changed], np.full(self.gone.size, ABSENT)])
        order = np.argsort(place)
        return place[order], old[order], new[order]

    def _counts(self, sizes: dict[int, int]) -> tuple[dict[int, dict[int, int]], dict[int, dict[int, int]]]:
        """The number of points by new and old id, and by old and new id; `sizes` are those of `after`.

        Only points that moved are counted: the others in a cluster have stayed.
        """
        _, old, new = self._moves()
        ids = np.unique([old, new])
        pairs, counts = _counted(np.searchsorted(ids, new) * ids.size + np.searchsorted(ids, old))
        sources: dict[int, dict[int, int]] = defaultdict(dict)
        targets: dict[int, dict[int, int]] = defaultdict(dict)
        now_ids, then_ids = (ids[rank].tolist() for rank in np.divmod(pairs, max(ids.size, 1)))
        for now, then, count in zip(now_ids, then_ids, counts.tolist(), strict=True):
            sources[now][then] = targets[then][now] = count
        for c, size in sizes.items():
            n_stayed = size - sum(sources[c].values())
            if n_stayed:
                sources[c][c] = targets[c][c] = n_stayed
        return sources, targets


def _majorities(counts: dict[int, dict[int, int]]) -> dict[int, list[int]]:
    """For each cluster at one time, the clusters at the other time of which it has more than half of the points.

    Only points that were there both times count.
    """
    found: dict[int, list[int]] = {}
    for cluster in sorted(counts):
        shares = counts[cluster]
        total = sum(shares.values()) - shares.get(ABSENT, 0)
        for other, count in shares.items():
            if min(cluster, other) >= 0 and 2 * count > total:
                found.setdefault(other, []).append(cluster)
    return found


def _follow(
    points: PointKeys, clusters: NDArray[np.int64], before: Partition, next_id: int
) -> tuple[NDArray[np.int64], int]:
    """Ids for clusters: earlier ids by largest overlap, each used once, and new ones from `next_id` on.

    The assignment maximises the total overlap (SciPy's solver for sparse matrices). So that a cluster may also get no
    earlier id, each has a column of its own, which is worth less than any point. Ties go to the cluster with the older
    point, which is numbered first: its points are worth a little more. All these extras together are less than one
    point.
    """
    from scipy.sparse import coo_array, csr_array, diags_array, hstack
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching

    n_now, then_ids = int(clusters.max(initial=NOISE)) + 1, _counted_ids(before.labels)[0]
    then = np.append(_places(before.labels, then_ids), NOISE)[points.places_in(before._points)]
    is_shared = (clusters != NOISE) & (then != NOISE)
    ids = np.full(n_now, NOISE, np.int64)
    if is_shared.any():
        pairs, counts = _counted(clusters[is_shared] * then_ids.size + then[is_shared])
        row, column = np.divmod(pairs, then_ids.size)
        worth = counts + 0.25 / n_now * (1 - row / n_now)
        overlap = coo_array((worth, (row, column)), shape=(n_now, then_ids.size))
        own = diags_array(np.full(n_now, 0.5 / n_now))
        _, chosen = min_weight_full_bipartite_matching(csr_array(hstack([overlap, own])), maximize=True)
        is_kept = chosen < then_ids.size
        ids[is_kept] = then_ids[chosen[is_kept]]
    is_new = ids == NOISE
    n_new = int(np.count_nonzero(is_new))
    ids[is_new] = next_id + np.arange(n_new)
    return np.append(ids, NOISE)[clusters], next_id + n_new


def _counted_ids(labels: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The ids of the clusters, ascending, and the number of points in each."""
    return _counted(labels if labels.min(initial=0) > NOISE else labels[labels != NOISE])


def _counted(numbers: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The distinct non-negative numbers, ascending, and their counts. O(n) if they are small."""
    if numbers.max(initial=0) > _TABLE_PER_NUMBER * numbers.size:
        return np.unique(numbers, return_counts=True)
    counts = np.bincount(numbers)
    found = np.flatnonzero(counts)
    return found, counts[found]


def _places(numbers: NDArray[np.int64], ascending: NDArray[np.int64]) -> NDArray[np.intp]:
    """The position of each number in an ascending array of non-negative ones, NULL if absent, as -1 always is.

    O(n) if they are small.
    """
    n_places = int(ascending.max(initial=NULL)) + 2
    if n_places > _TABLE_PER_NUMBER * (numbers.size + ascending.size):
        place = np.searchsorted(ascending, numbers)
        return np.where(np.append(ascending, ABSENT)[place] == numbers, place, NULL)
    table = np.full(n_places, NULL, np.intp)
    table[ascending] = np.arange(ascending.size)
    return table[np.minimum(numbers, n_places - 1)]  # the last is for -1 and for all larger numbers
