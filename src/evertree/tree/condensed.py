"""Clusters without a number: the condensed tree of a tree, and a selection of its clusters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evertree import kernels
from evertree.kernels.columns import NOISE, NULL
from evertree.tree import views
from evertree.tree.base import LiveTree

#: How clusters are selected: the most stable ones (excess of mass), or those that do not split.
METHODS = ("eom", "leaf")


@dataclass(frozen=True)
class Selection:
    """Which clusters of a condensed tree are selected, and how small they may be."""

    min_cluster_size: int
    method: str = "eom"
    epsilon: float = 0.0
    allow_single_cluster: bool = False


@dataclass(frozen=True)
class Clusters:
    """A condensed tree. Clusters are numbered level by level, that of all points first; points are in some order."""

    parent: NDArray[np.int32]  # (n_clusters,) NULL for the first
    size: NDArray[np.int64]  # (n_clusters,)
    born: NDArray[np.float64]  # (n_clusters,) the height at which it split off, infinite for the first
    died: NDArray[np.float64]  # (n_clusters,) the height at which it split itself, or its last points left
    stability: NDArray[np.float64]  # (n_clusters,)
    left: NDArray[np.int32]  # (n_points,) the smallest cluster that a point was in
    left_at: NDArray[np.float64]  # (n_points,) the height at which it left that


@dataclass(frozen=True)
class Selected:
    """The selected clusters of a condensed tree."""

    chosen: NDArray[np.intp]  # (n_selected,) those with points, in the order of the labels
    stability: NDArray[np.float64]  # (n_selected,)
    labels: NDArray[np.int64]  # (n_points,)


def condense(live: LiveTree, leaves: NDArray[np.int32], min_size: int) -> Clusters:
    """The condensed tree of clusters of at least `min_size` points, whose point i is ``leaves[i]``. O(n m)."""
    nodes, n = live.nodes(), leaves.size
    min_size = min(min_size, n + 1)  # kernels take no integer of more than 64 bits
    height = views.monotone_heights(live, nodes)
    ordered, first, stop = views.spans(live, nodes)
    room = max(2 * (n // min_size), 1)
    columns = kernels.shared.condensed.Condensed(
        top=np.empty(room, np.int32),
        parent=np.empty(room, np.int32),
        born=np.empty(room),
        died=np.empty(room),
        stability=np.empty(room),
        left=np.empty(n, np.int32),
        left_at=np.empty(n),
    )
    count = 0
    if n > 0:
        count = kernels.shared.condensed.condense(live.tree, height, first, stop, min_size, columns)
    place = np.empty(live.capacity, np.intp)
    place[ordered >> 1] = np.arange(n)
    own, top = place[leaves >> 1], columns.top[:count]
    return Clusters(
        parent=columns.parent[:count].copy(),
        size=(stop[top] - first[top]).astype(np.int64),
        born=columns.born[:count].copy(),
        died=columns.died[:count].copy(),
        stability=columns.stability[:count].copy(),
        left=columns.left[own],
        left_at=columns.left_at[own],
    )


def select(clusters: Clusters, wanted: Selection) -> Selected:
    """The clusters that are wanted, and the label of each point: 0, 1, … by first appearance, or NOISE. O(n)."""
    of_clusters = kernels.shared.condensed
    parent, stability = clusters.parent, clusters.stability.copy()
    n_clusters, may_be_one = parent.size, wanted.allow_single_cluster
    is_selected = np.zeros(n_clusters, np.bool_)
    if wanted.method == "leaf":
        is_selected[1:] = True
        is_selected[parent[1:]] = False
    else:
        start = 0 if may_be_one and clusters.left.size >= wanted.min_cluster_size else 1
        below, is_inside = np.zeros(n_clusters), np.zeros(n_clusters, np.bool_)
        of_clusters.select_stable(parent, stability, start, below, is_selected, is_inside)
    if wanted.epsilon > 0.0 and not is_selected[:1].any():
        goal, is_merged = np.empty(n_clusters, np.int32), np.zeros(n_clusters, np.bool_)
        of_clusters.merge_below(parent, clusters.born, wanted.epsilon, int(may_be_one), goal, is_selected, is_merged)
        is_selected = is_merged
    owner = _owners(clusters, is_selected, wanted.epsilon)
    chosen = _by_first_appearance(owner, n_clusters)
    number = np.full(n_clusters + 1, NOISE, np.int64)  # NULL is the last
    number[chosen] = np.arange(chosen.size)
    return Selected(chosen, stability[chosen], number[owner])


def _owners(clusters: Clusters, is_selected: NDArray[np.bool_], epsilon: float) -> NDArray[np.int32]:
    """The smallest selected cluster of each point, NULL for noise.

    The cluster of all points, if it is the only one, has those that are in it as long as it lives; with an `epsilon`,
    those that leave it, or a cluster inside it, up to that height.
    """
    owner = np.empty(is_selected.size, np.int32)
    kernels.shared.condensed.find_owners(clusters.parent, is_selected, owner)
    found = owner[clusters.left]
    if is_selected[:1].any():
        lowest = clusters.died[0] if epsilon == 0.0 else epsilon
        is_only = np.count_nonzero(is_selected) == 1
        found[(found == 0) & ((clusters.left_at > lowest) | (not is_only))] = NULL
    return found


def _by_first_appearance(owner: NDArray[np.int32], n_clusters: int) -> NDArray[np.intp]:
    """The clusters that own points, that of the first point first."""
    first = np.full(n_clusters + 1, owner.size)  # NULL is the last
    first[owner[::-1]] = np.arange(owner.size - 1, -1, -1)
    owning = np.flatnonzero(first[:-1] < owner.size)
    return owning[np.argsort(first[owning])]


def densities(height: NDArray[np.float64]) -> NDArray[np.float64]:
    """λ, one over each height: infinite for equal points."""
    with np.errstate(divide="ignore", over="ignore"):
        return np.divide(1.0, height)


def probabilities(clusters: Clusters, found: Selected) -> NDArray[np.float64]:
    """How long each point stays in its cluster, as a share of the cluster's life on the scale of λ; 0 for noise."""
    result = np.zeros(found.labels.size)
    is_in = np.flatnonzero(found.labels != NOISE)
    latest = densities(clusters.died)[found.chosen[found.labels[is_in]]]
    own = densities(clusters.left_at[is_in])
    with np.errstate(invalid="ignore"):
        result[is_in] = np.where(np.isfinite(own), np.minimum(own, latest) / latest, 1.0)
    return result


def outlier_scores(clusters: Clusters) -> NDArray[np.float64]:
    """GLOSH: how much less dense a point is than the densest part of the smallest cluster it was in, from 0 to 1."""
    lowest = clusters.died.copy()
    kernels.shared.condensed.find_lowest(clusters.parent, lowest)
    own, densest = densities(clusters.left_at), densities(lowest)[clusters.left]
    with np.errstate(invalid="ignore"):
        score = (densest - own) / densest
    # Beside equal points, whose density is infinite, every other point is as far out as can be.
    return np.where(np.isfinite(own), np.where(np.isfinite(densest), score, 1.0), 0.0)


def persistences(clusters: Clusters, found: Selected) -> NDArray[np.float64]:
    """The stability of each selected cluster, divided by its size and by the largest density of all; at most 1."""
    n_points = np.bincount(found.labels[found.labels != NOISE], minlength=found.chosen.size)
    largest = float(densities(clusters.died).max(initial=0.0))
    if not 0.0 < largest < np.inf:
        return np.ones(found.chosen.size)
    with np.errstate(over="ignore"):
        return found.stability / (n_points * largest)
