"""`Change`: what has become of clusters and keys between two partitions, as rows of a table."""

from __future__ import annotations

import json
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertree.partition import ABSENT, Event, Flow, Partition

#: What is written of what can become of a cluster; growing and shrinking is what clusters always do.
WRITTEN = ("born", "died", "split", "merged")


@dataclass(frozen=True)
class Change:
    """What has become of one cut.

    Attributes
    ----------
    changed : array of int
        The positions, among the keys of now, of those that are new or in another cluster.
    new : array of int
        Those of them that are new.
    gone : list
        The keys that were there before and are not now.
    clusters : list of (event, id, size before, size after, ids of others)
    moved : list
        The keys that were there before and are in another cluster now, but for those that went where a cluster split
        or was merged.
    origin, target : array of int
        Their clusters, before and now.
    """

    changed: NDArray[np.intp]
    new: NDArray[np.intp]
    gone: list[Hashable]
    clusters: list[Event]
    moved: list[Hashable]
    origin: NDArray[np.int64]
    target: NDArray[np.int64]

    @classmethod
    def between(cls, before: Partition, after: Partition) -> Change:
        """Compare two partitions, of which the second follows the first."""
        flow = Flow(before, after)
        events = [event for event in flow.events() if event[0] in WRITTEN]
        is_new = flow.then[flow.changed] == ABSENT
        new, was_there = flow.changed[is_new], flow.changed[~is_new]
        origin, target = flow.then[was_there], after.labels[was_there]
        alone = ~_is_named(origin, target, events)
        moved = keys_at(after, was_there[alone])
        return cls(flow.changed, new, keys_at(before, flow.gone), events, moved, origin[alone], target[alone])

    def cluster_rows(self) -> dict[str, Sequence[Any]]:
        """The events of clusters, as columns."""
        return {
            "event": [event[0] for event in self.clusters],
            "cluster": [event[1] for event in self.clusters],
            "size_before": [event[2] for event in self.clusters],
            "size_after": [event[3] for event in self.clusters],
            "others": [json.dumps(event[4]) for event in self.clusters],
        }

    def moved_rows(self) -> dict[str, Sequence[Any]]:
        """The events of keys, as columns."""
        return {
            "event": ["moved"] * len(self.moved),
            "key": self.moved,
            "from_cluster": self.origin.tolist(),
            "to_cluster": self.target.tolist(),
        }


def _is_named(origin: NDArray[np.int64], target: NDArray[np.int64], events: list[Event]) -> NDArray[np.bool_]:
    """Which of the ways from one cluster to another are those of a split or a merger."""
    pairs = [(cluster, other) for event, cluster, _, _, others in events if event == "split" for other in others]
    pairs += [(other, cluster) for event, cluster, _, _, others in events if event == "merged" for other in others]
    if not pairs or not origin.size:
        return np.zeros(origin.size, np.bool_)
    n_ids = 2 + max(int(origin.max()), int(target.max()), *(max(pair) for pair in pairs))
    named = [a * n_ids + b for a, b in pairs]
    return np.isin(origin * n_ids + target, named)


def keys_at(partition: Partition, positions: NDArray[np.intp]) -> list[Hashable]:
    """The keys at some positions."""
    return [partition._keys[i] for i in positions.tolist()]


def next_id(partition: Partition) -> int:
    """The first id that has never been used."""
    return partition._next_id
