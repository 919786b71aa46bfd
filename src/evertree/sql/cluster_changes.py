"""`ClusterChanges`: what has happened to clusters and keys between two polls, as rows of the table of events."""

from __future__ import annotations

import json
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from evertree.partition import ABSENT, Event, Flow, Partition

#: The events that are written. Clusters grow and shrink all the time, so that is not.
WRITTEN_EVENTS = ("born", "died", "split", "merged")


@dataclass(frozen=True)
class ClusterChanges:
    """What has changed in the clusters of one cut.

    Attributes
    ----------
    changed : array of int
        Positions, in the partition of now, of the keys that are new or in another cluster.
    new : array of int
        Those that are new.
    removed : list
        The keys that are gone.
    events : list of (event, id, size before, size after, ids of others)
        What has happened to clusters.
    moved : list
        The keys that are in another cluster now, except those that were in a split or a merger.
    moved_from, moved_to : array of int
        Their clusters, before and now.
    """

    changed: NDArray[np.intp]
    new: NDArray[np.intp]
    removed: list[Hashable]
    events: list[Event]
    moved: list[Hashable]
    moved_from: NDArray[np.int64]
    moved_to: NDArray[np.int64]

    @classmethod
    def between(cls, before: Partition, after: Partition) -> Self:
        """Compare two partitions, the second of which follows the first."""
        flow = Flow(before, after)
        events = [event for event in flow.events() if event[0] in WRITTEN_EVENTS]
        is_new = flow.then[flow.changed] == ABSENT
        new, old = flow.changed[is_new], flow.changed[~is_new]
        old = old[~_is_explained(flow.then[old], after.labels[old], events)]
        return cls(
            changed=flow.changed,
            new=new,
            removed=before.keys_at(flow.gone),
            events=events,
            moved=after.keys_at(old),
            moved_from=flow.then[old],
            moved_to=after.labels[old],
        )

    def cluster_rows(self) -> dict[str, Sequence[Any]]:
        """The events of clusters, as columns."""
        return {
            "event": [event[0] for event in self.events],
            "cluster": [event[1] for event in self.events],
            "size_before": [event[2] for event in self.events],
            "size_after": [event[3] for event in self.events],
            "others": [json.dumps(event[4]) for event in self.events],
        }

    def moved_rows(self) -> dict[str, Sequence[Any]]:
        """The events of keys, as columns."""
        return {
            "event": ["moved"] * len(self.moved),
            "key": self.moved,
            "from_cluster": self.moved_from.tolist(),
            "to_cluster": self.moved_to.tolist(),
        }


def _is_explained(origin: NDArray[np.int64], target: NDArray[np.int64], events: list[Event]) -> NDArray[np.bool_]:
    """Which moves from a cluster to another belong to a split or a merger."""
    pairs = [(cluster, other) for event, cluster, _, _, others in events if event == "split" for other in others]
    pairs += [(other, cluster) for event, cluster, _, _, others in events if event == "merged" for other in others]
    if not pairs or not origin.size:
        return np.zeros(origin.size, np.bool_)
    n_ids = 2 + max(int(origin.max()), int(target.max()), *(max(pair) for pair in pairs))
    return np.isin(origin * n_ids + target, [a * n_ids + b for a, b in pairs])
