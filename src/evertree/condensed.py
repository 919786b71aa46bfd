"""`CondensedTree`: clusters without a number, how sure they are, and the tree that they come from."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertree import plotting
from evertree.errors import ParameterError
from evertree.extras import require
from evertree.input.arrays import as_choice, as_count, as_height
from evertree.kernels.columns import NOISE
from evertree.tree import condensed
from evertree.tree.condensed import Clusters, Selection

#: The columns of a condensed tree in a table, as hdbscan has them.
_ROW = np.dtype([("parent", np.intp), ("child", np.intp), ("lambda_val", np.float64), ("child_size", np.intp)])


class CondensedTree:
    """The clusters of a hierarchy that have at least so many points, and those that are selected among them.

    `Hierarchy.condensed_tree` makes one. It is HDBSCAN's, of a tree of any linkage. Seen from the root, a merge of two
    clusters of at least `min_cluster_size` points is a split into two; at any other merge, a few points leave, and the
    cluster goes on. So there are few clusters, and each has a life on the scale of the density λ, which is one over the
    height: from the split that makes it to the one that ends it, or until its last points leave. Its *stability* is the
    sum of the times that its points spend in it.

    Later edits of the hierarchy do not change it. Arrays of points are in the order that ``keys()`` had.

    Attributes
    ----------
    labels : ndarray of int
        The selected cluster of each point, numbered 0, 1, … by first appearance; -1 for noise.
    clusters : ndarray of int
        The number that each of these has in `to_frame`.
    stability : ndarray of float
        The stability of each. It is infinite where at least `min_cluster_size` points are equal.
    min_cluster_size, method, epsilon, allow_single_cluster
        As given to `Hierarchy.condensed_tree`.

    Examples
    --------
    >>> h = et.Hierarchy("single")
    >>> keys = h.insert([[0.0], [1.0], [2.5], [20.0], [21.0], [50.0]])
    >>> t = h.condensed_tree(min_cluster_size=2)
    >>> t
    CondensedTree(min_cluster_size=2): 6 points, 3 clusters, of which 2 are selected; 1 point is noise
    >>> t.labels, t.clusters
    (array([ 0,  0,  0,  1,  1, -1]), array([7, 8]))
    >>> t.stability.round(2)
    array([2.5 , 1.89])
    """

    def __init__(self, clusters: Clusters, selection: Selection) -> None:
        self._clusters, self._selected = clusters, condensed.select(clusters, selection)
        self.labels: NDArray[np.int64] = self._selected.labels
        self.clusters: NDArray[np.intp] = self._selected.chosen + self.labels.size
        self.stability: NDArray[np.float64] = self._selected.stability
        self.min_cluster_size = selection.min_cluster_size
        self.method = selection.method
        self.epsilon = selection.epsilon
        self.allow_single_cluster = selection.allow_single_cluster

    @cached_property
    def probabilities(self) -> NDArray[np.float64]:
        """How firmly each point is in its cluster, from 0 to 1: hdbscan's ``probabilities_``.

        The density λ at which the point leaves, as a share of that at which the last one does; 0 for noise.

        Examples
        --------
        >>> h = et.Hierarchy("single")
        >>> keys = h.insert([[0.0], [1.0], [2.5], [20.0], [21.0], [50.0]])
        >>> h.condensed_tree(min_cluster_size=2).probabilities.round(2)
        array([1.  , 1.  , 0.67, 1.  , 1.  , 0.  ])
        """
        return condensed.probabilities(self._clusters, self._selected)

    @cached_property
    def outlier_scores(self) -> NDArray[np.float64]:
        """How far each point lies out of the densest part of its surroundings, from 0 to 1: hdbscan's GLOSH.

        The surroundings are the smallest cluster that the point was in, whether it is selected or not. The score does
        not depend on the selection.

        Examples
        --------
        >>> h = et.Hierarchy("single")
        >>> keys = h.insert([[0.0], [1.0], [2.5], [20.0], [21.0], [50.0]])
        >>> h.condensed_tree(min_cluster_size=2).outlier_scores.round(2)
        array([0.  , 0.  , 0.33, 0.  , 0.  , 0.97])
        """
        return condensed.outlier_scores(self._clusters)

    @cached_property
    def persistence(self) -> NDArray[np.float64]:
        """The stability of each selected cluster, as a share of the largest that one of its size could have.

        This is hdbscan's ``cluster_persistence_``. If points are equal, their density is infinite, and it is 1 for all.

        Examples
        --------
        >>> h = et.Hierarchy("single")
        >>> keys = h.insert([[0.0], [1.0], [2.5], [20.0], [21.0], [50.0]])
        >>> h.condensed_tree(min_cluster_size=2).persistence.round(2)
        array([0.83, 0.94])
        """
        return condensed.persistences(self._clusters, self._selected)

    def to_numpy(self) -> NDArray[Any]:
        """The tree as a structured array, as hdbscan's functions take it: a row for each point and cluster that leaves.

        Returns
        -------
        rows : ndarray
            With fields ``parent``, ``child``, ``lambda_val`` and ``child_size``, as in `to_frame`.

        Examples
        --------
        >>> h = et.Hierarchy("single")
        >>> keys = h.insert([[0.0], [1.0], [20.0]])
        >>> h.condensed_tree(min_cluster_size=2).to_numpy()["lambda_val"].round(3)
        array([0.053, 1.   , 1.   ])
        """
        tree, n = self._clusters, self.labels.size
        rows = np.empty(n + max(tree.parent.size - 1, 0), _ROW)
        rows["parent"] = n + np.concatenate([tree.left, tree.parent[1:]])
        rows["child"] = np.concatenate([np.arange(n), np.arange(n + 1, n + tree.parent.size)])
        rows["lambda_val"] = condensed.densities(np.concatenate([tree.left_at, tree.born[1:]]))
        rows["child_size"] = np.concatenate([np.ones(n, np.intp), tree.size[1:]])
        return rows[np.lexsort((rows["child"], rows["lambda_val"], rows["parent"]))]

    def to_frame(self) -> Any:
        """The tree as a table: hdbscan's ``condensed_tree_.to_pandas()``.

        Returns
        -------
        frame : pandas.DataFrame
            A row for each point or cluster `child` that leaves a cluster `parent`, at the density `lambda_val`, with
            `child_size` points. Point i is ``keys()[i]``; of n points, the cluster of all points is n, and the others
            follow level by level. The density is infinite where points are equal.

        Examples
        --------
        >>> h = et.Hierarchy("single")
        >>> keys = h.insert([[0.0], [1.0], [20.0], [21.0], [50.0]])
        >>> h.condensed_tree(min_cluster_size=2).to_frame().round(3)
           parent  child  lambda_val  child_size
        0       5      4       0.034           1
        1       5      6       0.053           2
        2       5      7       0.053           2
        3       6      0       1.000           1
        4       6      1       1.000           1
        5       7      2       1.000           1
        6       7      3       1.000           1
        """
        return require("pandas", "to_frame", "pandas").DataFrame(self.to_numpy())

    def plot(self, select_clusters: bool = True, **options: Any) -> Any:
        """Draw the clusters as icicles, as wide as they have points: hdbscan's ``condensed_tree_.plot()``.

        Parameters
        ----------
        select_clusters : bool
            Whether the selected clusters have colours: those that they have in ``h.plot(t.labels)``.
        **options
            As for `evertree.plotting.plot_condensed_tree`: ``label_clusters``, ``ax``, ``title`` and ``ylabel``.

        Returns
        -------
        ax : matplotlib.axes.Axes

        Examples
        --------
        >>> from matplotlib.figure import Figure
        >>> h = et.Hierarchy("single")
        >>> keys = h.insert([[0.0], [1.0], [20.0], [21.0], [50.0]])
        >>> ax = h.condensed_tree(min_cluster_size=2).plot(ax=Figure().subplots())
        >>> ax.get_ylabel()
        'λ = 1 / height'
        """
        return plotting.plot_condensed_tree(self.to_numpy(), self.clusters if select_clusters else None, **options)

    def __repr__(self) -> str:
        n, n_noise = self.labels.size, int(np.count_nonzero(self.labels == NOISE))
        noise = "1 point is noise" if n_noise == 1 else f"{n_noise:,} points are noise"
        chosen = f"{self.clusters.size:,} {'is' if self.clusters.size == 1 else 'are'} selected"
        clusters = f"{self._clusters.parent.size:,} cluster{'' if self._clusters.parent.size == 1 else 's'}"
        options = f"min_cluster_size={self.min_cluster_size}"
        options += f", method={self.method!r}" if self.method != "eom" else ""
        options += f", epsilon={self.epsilon!r}" if self.epsilon else ""
        options += ", allow_single_cluster=True" if self.allow_single_cluster else ""
        points = f"{n:,} point{'' if n == 1 else 's'}"
        return f"CondensedTree({options}): {points}, {clusters}, of which {chosen}; {noise}"


def as_selection(min_cluster_size: Any, method: Any, epsilon: Any, allow_single_cluster: Any) -> Selection:
    """The options of a selection, checked."""
    size = as_count("min_cluster_size", min_cluster_size)
    as_choice("method", method, condensed.METHODS)
    threshold = as_height("epsilon", epsilon)
    if not isinstance(allow_single_cluster, (bool, np.bool_)):
        raise ParameterError(f"allow_single_cluster must be True or False; it is {allow_single_cluster!r}")
    return Selection(size, method, threshold, bool(allow_single_cluster))
