"""`HierarchyCuts`: flat clusters: as labels, as a table of several levels, as partitions with a memory."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertree.errors import ParameterError
from evertree.extras import require
from evertree.hierarchy.reader import HierarchyReader
from evertree.input.arrays import as_count, as_height
from evertree.locking import of_one_moment
from evertree.partition import Partition, PointKeys
from evertree.tree import views


class HierarchyCuts(HierarchyReader):
    """Ways to cut a hierarchy into flat clusters."""

    @of_one_moment
    def cut(
        self, n_clusters: int | None = None, height: float | None = None, min_cluster_size: int | None = None
    ) -> NDArray[np.int64]:
        """Cut the tree into `n_clusters` clusters, or at a height, or into clusters of a minimum size.

        Parameters
        ----------
        n_clusters : int
            From 1 to the number of points.
        height : float
            In SciPy's units, as in `linkage_matrix`.
        min_cluster_size : int
            Points that a cluster must have; those in smaller pieces are in no cluster. With `n_clusters`, only merges
            of two clusters as large as that are undone, the highest first, so that there are so many large ones. Given
            alone, all such merges are undone: the leaf clusters of hdbscan.

        Returns
        -------
        labels : ndarray of int
            The cluster of each of ``keys()``: 0, 1, … by first appearance, and -1 for none.

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> keys = h.insert([[0.0], [5.0], [1.0]])
        >>> h.cut(n_clusters=2)
        array([0, 1, 0])
        >>> h.cut(height=0.5)
        array([0, 1, 2])

        An outlier does not take up a cluster:

        >>> keys = h.insert([[6.0], [100.0]])
        >>> h.cut(n_clusters=2)
        array([0, 0, 0, 0, 1])
        >>> h.cut(n_clusters=2, min_cluster_size=2)
        array([ 0,  1,  0,  1, -1])
        """
        self._require_points("cut")
        if n_clusters is not None and height is not None:
            raise ParameterError("cut takes n_clusters or height, not both")
        if n_clusters is None and height is None and min_cluster_size is None:
            raise ParameterError("cut takes n_clusters, height or min_cluster_size; it got none of them")
        if n_clusters is not None:
            n_clusters = as_count("n_clusters", n_clusters, len(self))
        if height is not None:
            height = as_height("height", height)
        min_size = 1 if min_cluster_size is None else as_count("min_cluster_size", min_cluster_size)
        return views.cut(self.state.live, self.state.keys.leaves(), n_clusters, height, min_size)

    @of_one_moment
    def cuts(
        self,
        n_clusters: Iterable[int] = (),
        height: Iterable[float] = (),
        min_cluster_size: int | None = None,
    ) -> Any:
        """Several cuts in one table.

        Parameters
        ----------
        n_clusters : collection of int
        height : collection of float
        min_cluster_size : int, optional
            For all of them, as for `cut`.

        Returns
        -------
        table : pandas.DataFrame
            A row for each of ``keys()``, which are its index, and a column for each cut, named ``"n_clusters=5"``,
            ``"height=2.5"`` or, where only that is given, ``"min_cluster_size=10"``.

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> keys = h.insert([[0.0], [5.0], [1.0]], keys=["a", "b", "c"])
        >>> table = h.cuts(n_clusters=[1, 2], height=[0.5])
        >>> table.loc["b"].to_dict()
        {'n_clusters=1': 0, 'n_clusters=2': 1, 'height=0.5': 1}
        """
        pandas = require("pandas", "cuts", "pandas")
        for name, levels in (("n_clusters", n_clusters), ("height", height)):
            if isinstance(levels, str) or not isinstance(levels, Iterable):
                raise ParameterError(f"{name} must be a collection of levels, such as [2, 5, 10]; it is {levels!r}")
        columns = {f"n_clusters={k}": self.cut(k, None, min_cluster_size) for k in n_clusters}
        columns |= {f"height={x!r}": self.cut(None, x, min_cluster_size) for x in height}
        if not columns and min_cluster_size is not None:
            columns = {f"min_cluster_size={min_cluster_size}": self.cut(None, None, min_cluster_size)}
        if not columns:
            raise ParameterError(
                "cuts takes collections n_clusters or height, or min_cluster_size; it got none of them"
            )
        return pandas.DataFrame(columns, index=pandas.Index(self.keys(), name="key", tupleize_cols=False))

    @of_one_moment
    def partition(
        self,
        n_clusters: int | None = None,
        height: float | None = None,
        min_cluster_size: int | None = None,
        follow: Partition | None = None,
    ) -> Partition:
        """Flat clusters with ids that last.

        Parameters
        ----------
        n_clusters, height, min_cluster_size
            As for `cut`.
        follow : Partition, optional
            An earlier partition of this hierarchy: a cluster keeps the id of the one that it shares most points with,
            so that the overlap of all of them is as large as possible, and a new one gets an id that none had before.

        Returns
        -------
        partition : Partition
            Later edits do not change it. See `Partition.changes` for what became of each cluster.

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> keys = h.insert([[0.0], [1.0], [8.0], [9.0]])
        >>> before = h.partition(n_clusters=2)
        >>> h.remove([0, 1])
        >>> h.partition(n_clusters=1, follow=before).labels
        array([1, 1])
        """
        if follow is not None and not isinstance(follow, Partition):
            raise ParameterError(f"follow must be None or a Partition; it is {type(follow).__name__}")
        clusters = self.cut(n_clusters, height, min_cluster_size)
        births = self.state.live.tree.birth[self.state.keys.leaves()]
        return Partition._named(PointKeys(tuple(self.keys()), births, self._lineage), clusters, follow)

    @cached_property
    def _lineage(self) -> object:
        """What the partitions of this hierarchy have in common, and those of no other, not even of a copy."""
        return object()
