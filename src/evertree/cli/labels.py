"""Cuts: which of them, and how many clusters they have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evertree.cli.output import counted
from evertree.hierarchy import Hierarchy
from evertree.kernels.columns import NOISE

Cuts = Mapping[str, NDArray[np.int64]]


@dataclass(frozen=True)
class Wanted:
    """The cuts that the user asked for."""

    n_clusters: Sequence[int]
    heights: Sequence[float]
    min_cluster_size: int | None
    at_most: bool = False  # whether fewer clusters will do where there are fewer points

    def __bool__(self) -> bool:
        return bool(self.n_clusters or self.heights or self.min_cluster_size)

    def of(self, h: Hierarchy) -> Cuts:
        """The labels of each cut, named as `Hierarchy.cuts` names them."""
        size = self.min_cluster_size
        numbers = [min(k, len(h)) for k in self.n_clusters] if self.at_most else self.n_clusters
        found = {f"n_clusters={k}": h.cut(k, None, size) for k in numbers}
        found |= {f"height={x!r}": h.cut(None, x, size) for x in self.heights}
        if not found and size is not None:
            found = {f"min_cluster_size={size}": h.cut(None, None, size)}
        return found


#: The cut where the user asks for nothing.
DEFAULT = Wanted([10], [], None, at_most=True)


def summary(cuts: Cuts) -> list[str]:
    """A line for each cut."""
    lines = []
    for name, found in described(cuts).items():
        noise = f", {counted(found['noise'], 'point')} in none" if found["noise"] else ""
        smallest = "" if found["smallest"] == found["largest"] else f"{found['smallest']:,} to "
        sizes = f" of {smallest}{counted(found['largest'], 'point')}" if found["clusters"] else ""
        lines.append(f"{name}: {counted(found['clusters'], 'cluster')}{sizes}{noise}")
    return lines


def described(cuts: Cuts) -> dict[str, dict[str, int]]:
    """The number of clusters of each cut, and their sizes."""
    found = {}
    for name, labels in cuts.items():
        sizes = np.bincount(labels[labels != NOISE]) if labels.size else np.empty(0, np.int64)
        found[name] = {
            "clusters": int(sizes.size),
            "smallest": int(sizes.min(initial=labels.size)) if sizes.size else 0,
            "largest": int(sizes.max(initial=0)),
            "noise": int(np.count_nonzero(labels == NOISE)),
        }
    return found
