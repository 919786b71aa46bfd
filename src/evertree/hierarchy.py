"""`Hierarchy`: a hierarchical clustering that is kept alive while its data change.

Signatures and docstrings only: each method calls the module that does the work.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Self, overload

import numpy as np
from numpy.typing import NDArray

from evertree import anomalies, checks, condensed, constructors, cuts, edits, exports, locate
from evertree import nodes as of_nodes
from evertree.anomalies import Anomaly
from evertree.checks import Instability
from evertree.condensed import CondensedTree
from evertree.errors import ParameterError
from evertree.input.arrays import GOALS, as_choice, as_column_names, as_height, as_threads, as_whole_number, as_width
from evertree.input.keys import KeyTable
from evertree.input.points import Progress
from evertree.io import snapshot
from evertree.locate import Location
from evertree.locking import answered_by, editing, reading
from evertree.partition import Partition
from evertree.state import State
from evertree.tree import Aim, LiveTree, new_tree, views
from evertree.tree.aim import WORKING_MEMORY
from evertree.tree.refine import Report
from evertree.tree.scheme import DISSIMILARITIES, Scheme
from evertree.windows import MovingWindow, Window

#: An array, or another collection, of nodes.
NodeArray = NDArray[np.integer] | Sequence[int]


class Hierarchy:
    """A hierarchical clustering (a dendrogram) of points that come, go and change.

    The tree is valid at every moment. An edit costs microseconds, where a batch method would start from scratch, and
    `refine` brings the tree to the quality of a batch tree of the current points; where that is cheap, and with
    ``search_width=None`` always, the tree is exactly that one after each edit.

    Parameters
    ----------
    linkage : {"ward", "average", "complete", "single", "minimax"}
        How the dissimilarity of points is lifted to clusters. Ward needs Euclidean geometry: a metric that is
        ``"euclidean"``, ``"sqeuclidean"``, ``"mahalanobis"``, ``"seuclidean"``, or ``"minkowski"`` with p = 2.
    metric : str or callable
        The dissimilarity of points: the name of any SciPy metric that compares two vectors; ``"precomputed"``, to
        insert dissimilarities instead of points; or a function of two points, which may then be any objects.
    metric_params : dict, optional
        ``{"p": number, "w": weights}`` for ``"minkowski"``, ``{"VI": matrix}``, the inverse of a covariance matrix, for
        ``"mahalanobis"``, ``{"V": variances}`` for ``"seuclidean"``, ``{"base": number}`` for ``"jensenshannon"``.
    goal : {"stable", "homogeneous"}
        What `refine` aims at, and how points are inserted. A *stable* tree is one that batch agglomerative clustering
        could have made: it is monotone and has no blocking pair. New points are inserted by search, and after every
        edit the tree is monotone and, except for Ward, homogeneous. *Homogeneous* follows the paper's procedure
        exactly: after every edit no cluster is closer to its parent's sibling than to its own sibling.
    search_width : "auto", int or None
        How widely to search for where a point belongs, and for blocking pairs. None searches everywhere: a first or a
        large batch is clustered, as with `agglomerate`, and each edit leaves exactly the batch tree, at a cost that
        grows with the number of points. An integer is the number of nodes kept on each level of a descent: edits take
        microseconds in trees of any size, and `refine` makes a tree as good as a batch tree. ``"auto"`` is None where
        that is cheap: for linkages computed from means up to 2,000 points, and for those that compare pairs as far as
        `working_memory` reaches; and 4 beyond.
    n_jobs : int or None
        How many threads work on large trees; -1 for all processors, and None for one. For linkages computed from means,
        they insert or cluster batches and refine, but for small trees and refinements with a budget of moves; for
        others, they compare the points of batches that are clustered. The tree is the same for every number of threads.
    working_memory : float
        How many MiB a matrix of all pairs may take. Within it, linkages that compare pairs of points do not insert a
        first or a large batch point by point: they cluster it with the points that are there, as batch libraries do,
        which is many times faster. The same holds for `set_linkage` and `set_metric`. The default is enough for 23,000
        points, 13,000 for minimax linkage; single linkage needs no matrix.
    seed : int
        The seed of random choices: `Hierarchy.random`, and the nodes that `instability` samples.
    column_names : collection of str, optional
        The names of the columns of arrays. By default they are those of the first data frame, if there is one.

    Notes
    -----
    float32 points stay float32; everything else becomes float64. The first points set the type; later ones are
    converted, with a warning if that rounds them.

    The columns of a data frame go by name: in another order they are put in order, and missing or unknown ones are an
    error. Those of an array go by position.

    Ward, and average on ``"sqeuclidean"``, ``"cosine"`` or ``"correlation"``, are computed from means and variances: an
    edit takes microseconds whatever the number of points, and memory is twice the data (three times where the points
    differ from the coordinates, as for cosine) plus about 340 bytes per point, mostly for searches. All other linkages
    compare pairs of points. A first or a large batch compares all pairs once. Another insertion compares a point with
    all others or, for single and complete linkage on a true metric in few columns, with few of them; the moves that
    follow, and deletions, compare clusters where bounds do not decide; grafts and searches for large clusters compare
    many pairs. Vectors take linear memory between edits; dissimilarities, whether given or computed by a function
    (called once per pair), take n² / 2 numbers.

    Differences below about 1e-150 count as zero, because their squares underflow.

    Threads may share a hierarchy. Edits and refinements wait for each other, and each call that reads it sees a
    consistent tree: before or after an edit, or between two moves of a refinement, which lets readers in many times a
    second. Two calls may see different trees; use a `copy` where they have to agree.

    The same points in the same order give the same tree, bit for bit on the same kind of processor. Ties go to the node
    with the older point.

    Examples
    --------
    >>> h = et.Hierarchy()
    >>> h.insert([[0.0, 0.0], [0.0, 1.0], [9.0, 9.0]])
    [0, 1, 2]
    >>> h.insert([[9.0, 8.0]], keys=["new"])
    ['new']
    >>> h.cut(n_clusters=2)
    array([0, 0, 1, 1])
    >>> h.remove([2])
    >>> h.update(["new"], [[0.0, 2.0]])
    >>> h
    Hierarchy(linkage='ward', metric='euclidean'): 3 points, 2 columns of float64
    """

    def __init__(
        self,
        linkage: str = "ward",
        metric: str | Callable[..., Any] = "euclidean",
        *,
        metric_params: Mapping[str, Any] | None = None,
        goal: str = "stable",
        search_width: int | str | None = "auto",
        n_jobs: int | None = None,
        working_memory: float = WORKING_MEMORY,
        seed: int = 0,
        column_names: Iterable[str] | None = None,
    ) -> None:
        memory = as_height("working_memory", working_memory)
        aim = Aim(as_choice("goal", goal, GOALS), as_width(search_width), as_threads(n_jobs), memory)
        live = new_tree(Scheme(linkage, metric, metric_params), aim, None, np.dtype(np.float64))
        names = as_column_names(column_names)
        if names is not None and live.scheme.holds == DISSIMILARITIES:
            raise ParameterError("column_names must be None with metric='precomputed': there are no columns")
        #: What the hierarchy holds: the low-level interface, for code that builds, saves or checks whole trees.
        self.state = State(live, KeyTable(), None, as_whole_number("seed", seed), names)

    @classmethod
    def random(
        cls,
        X: Any,
        linkage: str = "ward",
        metric: str | Callable[..., Any] = "euclidean",
        *,
        keys: Any = None,
        sample_weight: Any = None,
        **options: Any,
    ) -> Self:
        """A hierarchy drawn uniformly from all binary hierarchies over the points. It is not refined.

        The first edit makes all outstanding moves; call `refine` first to control the time.

        Parameters
        ----------
        X, keys, sample_weight
            As for `insert`.
        linkage, metric, **options
            As for `Hierarchy`; ``seed`` determines the draw.

        Examples
        --------
        >>> X = np.random.default_rng(0).normal(size=(100, 2))
        >>> h = et.Hierarchy.random(X, seed=1)
        >>> h.is_monotone()
        False
        >>> h.refine().stable
        True
        """
        h = cls(linkage, metric, **options)
        constructors.random(h.state, X, keys, sample_weight)
        return h

    @classmethod
    def from_linkage(
        cls,
        Z: Any,
        X: Any,
        linkage: str = "ward",
        metric: str | Callable[..., Any] = "euclidean",
        *,
        keys: Any = None,
        sample_weight: Any = None,
        **options: Any,
    ) -> Self:
        """The tree of a SciPy linkage matrix, made by any method, over its points. It is not refined.

        The first edit makes all outstanding moves; call `refine` first to control the time.

        Parameters
        ----------
        Z : array of shape (n - 1, 4)
            Its heights are not used: they are computed from the linkage and the points.
        X, keys, sample_weight
            As for `insert`: row i of `X` is leaf i of `Z`.
        linkage, metric, **options
            As for `Hierarchy`. They need not be those that `Z` was made with.

        Examples
        --------
        >>> from scipy.cluster.hierarchy import linkage
        >>> X = np.random.default_rng(0).normal(size=(100, 2))
        >>> h = et.Hierarchy.from_linkage(linkage(X, "single"), X)
        >>> h.refine().stable
        True
        """
        h = cls(linkage, metric, **options)
        constructors.from_linkage(h.state, Z, X, keys, sample_weight)
        return h

    @classmethod
    def from_newick(
        cls,
        text: str,
        X: Any,
        linkage: str = "ward",
        metric: str | Callable[..., Any] = "euclidean",
        *,
        keys: Any = None,
        resolve: bool = False,
        **options: Any,
    ) -> Self:
        """The tree of a Newick text over its points. It is not refined.

        Parameters
        ----------
        text : str
        X : as for `insert`
            Without `keys`, row i is the i-th leaf of the text.
        linkage, metric, **options
            As for `Hierarchy`. Lengths in the text are not used: heights are computed from the linkage and the points.
        keys : collection, optional
            The key of each row of `X`; the labels of the leaves are their ``str()``, in any order. By default the
            labels are the keys.
        resolve : bool
            Whether to merge three or more children of a node one after the other. By default such a node is refused.

        Examples
        --------
        >>> h = et.Hierarchy.from_newick("((a,b),c);", [[0.0], [1.0], [5.0]])
        >>> h.keys(), h.members(h.sibling(h.leaf("a")))
        (['a', 'b', 'c'], ['b'])
        >>> h = et.Hierarchy.from_newick("((1,2),0);", [[5.0], [1.0], [0.0]], keys=[0, 1, 2])
        >>> h.members(h.sibling(h.leaf(1)))
        [2]
        """
        h = cls(linkage, metric, **options)
        constructors.from_newick(h.state, text, X, keys, resolve)
        return h

    @editing
    def insert(
        self,
        X: Any,
        *,
        keys: Any = None,
        sample_weight: Any = None,
        progress: Progress | bool | None = None,
        time: float | None = None,
    ) -> list[Hashable]:
        """Add points one by one: all of them or, on an error, none.

        If there is a window, the points that fall outside it are removed in the same call: see `keep`.

        Parameters
        ----------
        X : array of shape (k, n_columns), or a collection of k objects
            Always a collection of points: wrap a single one as ``[x]``. Objects are allowed if the metric is a
            function. With ``metric="precomputed"``, dissimilarities of shape (k, n + k): to the n live points, in the
            order of ``keys()``, then among the new ones. For an empty hierarchy this is a square matrix; a condensed
            one is accepted too.
        keys : collection of k hashable values, or str, optional
            By default the next integers. If `X` is a data frame (pandas, polars, Arrow), the name of the column or of
            the index that holds the keys; the column is then not part of the points.
        sample_weight : array of shape (k,), optional
            Positive; a point of weight 2 counts as two points.
        progress : bool or callable, optional
            If the metric is a function: True shows a progress bar; a function is called with the number of pairs
            evaluated so far and the total.
        time : float, optional
            If the window has an age limit: when the points arrived, as for `keep`. By default now.

        Returns
        -------
        keys : list
            The keys of the new points, including those that are already outside the window.

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> h.insert([[0.0], [5.0]])
        [0, 1]
        >>> h.insert([[1.0]], keys=["one"], sample_weight=[2.5])
        ['one']

        Dissimilarities instead of points:

        >>> h = et.Hierarchy("average", metric="precomputed")
        >>> h.insert([[0.0, 2.0], [2.0, 0.0]])
        [0, 1]
        >>> h.insert([[1.0, 3.0, 0.0]])  # to the two that are there, and to itself
        [2]

        Any objects, with a function that compares them:

        >>> h = et.Hierarchy("complete", metric=lambda s, t: len(set(s) ^ set(t)))
        >>> h.insert(["cat", "act", "dog"])
        [0, 1, 2]
        >>> h.cut(n_clusters=2)
        array([0, 0, 1])
        """
        return edits.insert(self.state, X, keys, sample_weight, progress, time)

    @editing
    def remove(self, keys: Any) -> None:
        """Delete points by key: all of them or, on an error, none.

        Parameters
        ----------
        keys : a key, or a collection of keys
            A tuple that is a live key is one key, here and wherever keys are named.

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> keys = h.insert([[0.0], [5.0], [1.0]])
        >>> h.remove([0, 2])
        >>> h.keys()
        [1]
        """
        edits.remove(self.state, keys)

    @editing
    def update(self, keys: Any, X: Any, *, sample_weight: Any = None, progress: Progress | bool | None = None) -> None:
        """Give live points new values: all of them or, on an error, none.

        The points are removed and inserted again; they keep their keys and their positions in ``keys()``.

        Parameters
        ----------
        keys : a key, or a collection of keys
        X : array of shape (k, n_columns), or a collection of k objects
            One point per key. With ``metric="precomputed"``, dissimilarities to all n live points, in the order of
            ``keys()``: of shape (k, n), or (n,) for one key.
        sample_weight : array of shape (k,), optional
            By default the weights do not change.
        progress : bool or callable, optional
            As for `insert`.

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> keys = h.insert([[0.0], [5.0], [1.0]])
        >>> h.update([0], [[6.0]])
        >>> h.cut(n_clusters=2)
        array([0, 0, 1])
        """
        edits.update(self.state, keys, X, sample_weight, progress)

    @editing
    def upsert(
        self,
        X: Any,
        *,
        keys: Any,
        sample_weight: Any = None,
        progress: Progress | bool | None = None,
        time: float | None = None,
    ) -> list[Hashable]:
        """Update the points that are live, and insert the others: all of them or, on an error, none.

        Parameters
        ----------
        X : array of shape (k, n_columns), or a collection of k objects
            With ``metric="precomputed"``, dissimilarities to the n live points, in the order of ``keys()``, then to the
            new ones.
        keys : collection of k hashable values, or str
            As for `insert`.
        sample_weight : array of shape (k,), optional
            By default live points keep their weights, and new ones have weight 1.
        progress, time : optional
            As for `insert`.

        Returns
        -------
        keys : list
            The keys of the new points.

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> keys = h.insert([[0.0], [5.0]], keys=["a", "b"])
        >>> h.upsert([[6.0], [1.0]], keys=["b", "c"])
        ['c']
        >>> h.points(["a", "b", "c"]).tolist()
        [[0.0], [6.0], [1.0]]
        """
        return edits.upsert(self.state, X, keys, sample_weight, progress, time)

    @reading
    def check(self, X: Any, *, keys: Any = None, sample_weight: Any = None) -> None:
        """Raise the error that `insert` would raise for these points, without changing anything.

        Parameters
        ----------
        X, keys, sample_weight
            As for `insert`.

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> h.check([[0.0, 1.0]])
        >>> h.check([[0.0, np.nan]])
        Traceback (most recent call last):
        evertree.errors.NotFiniteError: X must be finite; ...
        """
        edits.check_insert(self.state, X, keys, sample_weight)

    @editing
    def keep(
        self, *, last: int | None = None, max_age: float | None = None, time: float | None = None
    ) -> list[Hashable]:
        """Keep only the most recent points from now on: older ones are removed now and in every later insertion.

        `keep_all` lifts this window again.

        Parameters
        ----------
        last : int, optional
            How many points to keep: those inserted last. An update does not make a point younger.
        max_age : float, optional
            Points older than this are removed at every insertion and by `expire`. In seconds, or in the unit of the
            times that you pass.
        time : float, optional
            The current time by the clock of your data, as a number (for a date, its ``timestamp()``); by default the
            computer's clock, in seconds. Points already in the hierarchy count as having arrived now, unless there was
            an age limit before.

        Returns
        -------
        gone : list
            The keys of the points removed now, oldest first.

        Notes
        -----
        If you pass a time once, pass one with each insertion, so that clocks are not mixed. Times must not go back. If
        the computer's clock is set back, time stands still until it has caught up.

        Arrival times take almost no memory, because they are rounded to a thousandth of the current age limit: a point
        may be removed that much too late, but never too early. A window is saved, copied and, in a durable hierarchy,
        committed with the tree.

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> h.insert([[0.0], [5.0], [1.0]])
        [0, 1, 2]
        >>> h.keep(last=2)
        [0]
        >>> h.insert([[6.0]])
        [3]
        >>> h.keys()
        [2, 3]

        With the times of the data, in days:

        >>> h = et.Hierarchy()
        >>> h.keep(max_age=7, time=0)
        []
        >>> for day in range(10):
        ...     keys = h.insert([[day % 3], [day % 5]], time=day)
        >>> h.keys()[0], len(h)
        (4, 16)
        """
        gone: list[Hashable] = edits.commit(self.state, edits.check_keep(self.state, last, max_age, time))
        return gone

    @editing
    def keep_all(self) -> None:
        """Lift the window that `keep` has set: points stay until they are removed.

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> h.keep(last=1000)
        []
        >>> h.keep_all()
        >>> h.window is None
        True
        """
        edits.keep_all(self.state)

    @editing
    def expire(self, time: float | None = None) -> list[Hashable]:
        """Remove the points that are too old by now, without inserting any.

        Parameters
        ----------
        time : float, optional
            The current time, as for `keep`.

        Returns
        -------
        gone : list
            The keys of the removed points, oldest first.

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> h.keep(max_age=60, time=0)
        []
        >>> keys = h.insert([[0.0], [5.0]], time=10)
        >>> h.expire(time=70), h.expire(time=71)
        ([], [0, 1])
        """
        return edits.expire(self.state, time)

    @editing
    def refine(
        self,
        seconds: float | None = None,
        *,
        moves: int | None = None,
        until: str | None = None,
        progress: Callable[[Report], object] | bool | None = None,
    ) -> Report:
        """Improve the tree until it reaches its goal or a budget is spent. Call it again to continue.

        Moves swap neighbouring clusters and lead to a homogeneous tree. Grafts attach a cluster beside its partner in a
        blocking pair and lead to a stable tree, which is a batch tree. Ctrl-C leaves a valid tree.

        Parameters
        ----------
        seconds : float, optional
            The time limit.
        moves : int, optional
            The maximum number of moves. A graft counts as one.
        until : {"stable", "homogeneous"}, optional
            By default the hierarchy's goal.
        progress : bool or callable, optional
            True shows a progress bar, in a terminal or a notebook (with tqdm: ``pip install 'evertree[progress]'``). A
            function is called with a `Report` about ten times a second, and once at the end. It may read the hierarchy,
            and edit it, unless much of a large tree is being refined: that is an error.

        Returns
        -------
        report : Report

        Examples
        --------
        >>> h = et.Hierarchy.random(np.random.default_rng(0).normal(size=(100, 2)))
        >>> h.refine(moves=100).moves
        100
        >>> report = h.refine(seconds=10)
        >>> report.stopped_by, report.quality
        ('stable', 1.0)
        """
        return edits.refine(self.state, seconds, moves, until, progress)

    @editing
    def set_linkage(
        self,
        linkage: str,
        metric: str | Callable[..., Any] | None = None,
        metric_params: Mapping[str, Any] | None = None,
        X: Any = None,
    ) -> Report:
        """Change the linkage. The tree is kept and then refined.

        Parameters
        ----------
        linkage : str
        metric, metric_params, X : optional
            Change the metric in the same step, as `set_metric` does.

        Examples
        --------
        >>> h = et.Hierarchy(linkage="ward")
        >>> keys = h.insert(np.random.default_rng(0).normal(size=(100, 2)))
        >>> h.set_linkage("average").stable
        True
        >>> h.set_linkage("complete", metric="cosine").stable
        True
        """
        if metric is None:
            metric, metric_params = self.metric, metric_params or self.metric_params
        return edits.set_scheme(self.state, Scheme(linkage, metric, metric_params), X)

    @editing
    def set_metric(
        self, metric: str | Callable[..., Any], metric_params: Mapping[str, Any] | None = None, X: Any = None
    ) -> Report:
        """Change the metric, its parameters or the dissimilarities. The tree is kept and then refined.

        Parameters
        ----------
        metric, metric_params
            As for `Hierarchy`.
        X : optional
            What the metric compares, in the order of ``keys()``; by default the points of the hierarchy. Required to
            change to ``metric="precomputed"``, where it is the matrix of dissimilarities, and to change from it.

        Examples
        --------
        >>> h = et.Hierarchy(linkage="average", metric="sqeuclidean")
        >>> keys = h.insert(np.random.default_rng(0).normal(size=(100, 2)))
        >>> h.set_metric("cosine").stable
        True
        >>> h.set_metric("minkowski", {"p": 3}).stable
        True
        >>> d = np.abs(h.points() @ h.points().T)
        >>> h.set_metric("precomputed", X=d - np.diag(np.diag(d))).stable
        True
        """
        return edits.set_scheme(self.state, Scheme(self.linkage, metric, metric_params), X)

    def __len__(self) -> int:
        return len(self.state.keys)

    @reading
    def __contains__(self, key: object) -> bool:
        return key in self.state.keys

    @reading
    def keys(self) -> list[Hashable]:
        """The live keys, oldest first: the order of every array that a hierarchy returns.

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> h.insert([[0.0], [1.0], [5.0]], keys=["a", "b", "c"])
        ['a', 'b', 'c']
        >>> h.remove(["b"])
        >>> h.keys()
        ['a', 'c']
        """
        return self.state.keys.keys()

    @reading
    def points(self, keys: Any = None) -> Any:
        """A copy of the live points as they were given, one row per key.

        Objects are returned as a list, and dissimilarities as a square matrix.

        Parameters
        ----------
        keys : a key, or a collection of keys, optional
            Return only these points, in this order.

        Examples
        --------
        >>> h = et.Hierarchy(linkage="average", metric="cosine")
        >>> keys = h.insert([[3.0, 4.0], [0.0, 2.0]])
        >>> h.points()
        array([[3., 4.],
               [0., 2.]])
        >>> h.points([1])
        array([[0., 2.]])
        """
        return self.state.live.points(self.state.leaves(keys))

    @reading
    def weights(self, keys: Any = None) -> NDArray[np.float64]:
        """The weights of the live points; 1 for those inserted without one.

        Parameters
        ----------
        keys : a key, or a collection of keys, optional
            As for `points`.

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> keys = h.insert([[0.0], [5.0]], sample_weight=[1, 2.5])
        >>> h.weights()
        array([1. , 2.5])
        """
        return self.state.live.tree.size[self.state.leaves(keys)]

    @reading
    def positions(self, keys: Any) -> NDArray[np.intp]:
        """The positions of some keys in ``keys()``.

        Parameters
        ----------
        keys : a key, or a collection of keys

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> keys = h.insert([[0.0], [1.0], [5.0]], keys=["a", "b", "c"])
        >>> h.positions(["c", "a"])
        array([2, 0])
        """
        return of_nodes.positions(self.state, keys)

    @property
    def n_columns(self) -> int | None:
        """The number of columns of the points; None if they are not vectors, or before the first point.

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> keys = h.insert([[0.0, 1.0], [5.0, 2.0]])
        >>> h.n_columns
        2
        """
        return self.state.live.n_columns

    @property
    def column_names(self) -> tuple[str, ...] | None:
        """The names of the columns: those given at the start, or those of the first data frame; None without any.

        Examples
        --------
        >>> import pandas as pd
        >>> h = et.Hierarchy()
        >>> keys = h.insert(pd.DataFrame({"price": [1.0, 2.0], "weight": [5.0, 4.0]}))
        >>> h.column_names
        ('price', 'weight')
        >>> keys = h.insert(pd.DataFrame({"weight": [6.0], "price": [3.0]}))
        >>> h.points()[-1]
        array([3., 6.])
        """
        return self.state.column_names

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the points or of the dissimilarities: float32 or float64, set by the first points.

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> keys = h.insert(np.zeros((3, 2), np.float32))
        >>> h.dtype
        dtype('float32')
        """
        return self.state.live.dtype

    @property
    def linkage(self) -> str:
        """The linkage. See `set_linkage`.

        Examples
        --------
        >>> et.Hierarchy().linkage
        'ward'
        """
        return self.state.live.scheme.linkage.name

    @property
    def metric(self) -> str | Callable[..., Any]:
        """The metric: a name or a function. See `set_metric`.

        Examples
        --------
        >>> et.Hierarchy().metric
        'euclidean'
        """
        return self.state.live.scheme.metric

    @property
    def metric_params(self) -> dict[str, Any] | None:
        """The parameters of the metric; None if it has none.

        Examples
        --------
        >>> h = et.Hierarchy("ward", "mahalanobis", metric_params={"VI": np.diag([1.0, 4.0])})
        >>> h.metric_params
        {'VI': array([[1., 0.],
               [0., 4.]])}
        """
        return self.state.live.scheme.metric_params

    @property
    def goal(self) -> str:
        """What `refine` aims at: ``"stable"`` or ``"homogeneous"``.

        Examples
        --------
        >>> et.Hierarchy().goal
        'stable'
        """
        return self.state.live.aim.goal

    @property
    def search_width(self) -> int | str | None:
        """How many nodes a search keeps on each level of a descent; None if it is exhaustive; ``"auto"`` for either.

        Examples
        --------
        >>> et.Hierarchy().search_width
        'auto'
        """
        return self.state.live.aim.search_width

    @property
    def working_memory(self) -> float:
        """How many MiB a matrix of all pairs may take.

        Examples
        --------
        >>> et.Hierarchy("average").working_memory
        2048.0
        """
        return self.state.live.aim.working_memory

    @property
    def n_jobs(self) -> int | None:
        """The number of threads for large trees; None means one.

        It may be set at any time. It is not saved: `evertree.load` gives None.

        Examples
        --------
        >>> h = et.Hierarchy(n_jobs=2)
        >>> h.n_jobs
        2
        >>> h.n_jobs = None
        """
        return self.state.live.aim.n_threads

    @n_jobs.setter
    def n_jobs(self, n_jobs: int | None) -> None:
        edits.set_threads(self.state, as_threads(n_jobs))

    @property
    def seed(self) -> int:
        """The seed of random choices.

        Examples
        --------
        >>> et.Hierarchy(seed=3).seed
        3
        """
        return self.state.seed

    @property
    def window(self) -> Window | None:
        """Which points are kept; None if all are. See `keep`.

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> h.keep(last=1000, max_age=3600)
        []
        >>> h.window
        Window(last=1000, max_age=3600.0)
        """
        return None if self.state.window is None else self.state.window.limits

    @property
    def n_moves(self) -> int:
        """The number of moves made so far by edits and refinements.

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> keys = h.insert([[0.0], [5.0], [1.0]])
        >>> h.n_moves
        0
        """
        return self.state.live.n_moves

    @property
    def n_grafts(self) -> int:
        """The number of grafts made so far by refinements.

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> keys = h.insert([[0.0], [5.0], [1.0]])
        >>> h.n_grafts
        0
        """
        return self.state.live.n_grafts

    @property
    def n_dissimilarities(self) -> int:
        """The number of dissimilarities evaluated since the hierarchy was created or loaded.

        0 if means and variances are enough or dissimilarities were given; the number of calls if the metric is a
        function.

        Examples
        --------
        >>> h = et.Hierarchy("complete")
        >>> keys = h.insert([[0.0], [5.0], [1.0]])
        >>> h.n_dissimilarities
        3
        """
        return self.state.live.n_evaluated

    @property
    def n_bytes(self) -> int:
        """The memory used by the points, the tree and its worklist, in bytes.

        Keys chosen by the user are not counted, nor is room to grow, which the system does not provide until it is
        used.

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> keys = h.insert(np.random.default_rng(0).normal(size=(1000, 16)))
        >>> h.n_bytes // 1000  # 256 of them are the points and the means of clusters, 225 for searches
        613
        """
        return self.state.live.n_bytes + self.state.keys.n_bytes

    @property
    @reading
    def root(self) -> int:
        """The node that holds all points.

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> keys = h.insert([[0.0], [1.0], [5.0]])
        >>> sorted(h.members(h.root))
        [0, 1, 2]
        """
        self.state.require_points("root")
        return self.state.live.root

    @reading
    def leaf(self, key: Hashable) -> int:
        """The leaf of a live point.

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> keys = h.insert([[0.0], [1.0], [5.0]])
        >>> h.members(h.sibling(h.leaf(0)))
        [1]
        """
        return of_nodes.leaf(self.state, key)

    @reading
    def nodes(self) -> NDArray[np.int32]:
        """All nodes, children before parents: the root comes last.

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> keys = h.insert([[0.0], [1.0], [5.0]])
        >>> [h.members(node) for node in h.nodes()]
        [[0], [1], [0, 1], [2], [0, 1, 2]]
        """
        return self.state.live.nodes()

    @reading
    def ancestors(self, key: Hashable) -> list[int]:
        """The nodes above the leaf of a key, from its parent to the root: the clusters that contain it.

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> keys = h.insert([[0.0], [5.0], [1.0]])
        >>> [h.members(node) for node in h.ancestors(0)]
        [[0, 2], [0, 1, 2]]
        """
        return of_nodes.above(self.state, of_nodes.leaf(self.state, key))

    @overload
    def parent(self, /, node: int) -> int: ...
    @overload
    def parent(self, /, node: NodeArray) -> NDArray[np.int32]: ...
    @answered_by(of_nodes.parent)
    def parent(self, node: Any) -> Any:
        """The parent of a node, or an array of those of several nodes; -1 (``et.NULL``) for the root.

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> keys = h.insert([[0.0], [1.0]])
        >>> h.parent(h.leaf(0)) == h.root, h.parent(h.root)
        (True, -1)
        """

    @overload
    def children(self, /, node: int) -> tuple[int, ...]: ...
    @overload
    def children(self, /, node: NodeArray) -> NDArray[np.int32]: ...
    @answered_by(of_nodes.children)
    def children(self, node: Any) -> Any:
        """The two children of a node, none for a leaf; for k nodes an array of shape (k, 2), with -1 for leaves.

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> keys = h.insert([[0.0], [1.0]])
        >>> h.children(h.root) == (h.leaf(0), h.leaf(1)), h.children(h.leaf(0))
        (True, ())
        """

    @overload
    def sibling(self, /, node: int) -> int: ...
    @overload
    def sibling(self, /, node: NodeArray) -> NDArray[np.int32]: ...
    @answered_by(of_nodes.sibling)
    def sibling(self, node: Any) -> Any:
        """The other child of a node's parent, or an array for several nodes; -1 (``et.NULL``) for the root.

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> keys = h.insert([[0.0], [1.0]])
        >>> h.sibling(h.leaf(0)) == h.leaf(1), h.sibling(h.root)
        (True, -1)
        """

    @overload
    def members(self, /, node: int) -> list[Hashable]: ...
    @overload
    def members(self, /, node: NodeArray) -> list[list[Hashable]]: ...
    @answered_by(of_nodes.members)
    def members(self, node: Any) -> Any:
        """The keys of the points below a node, oldest first; for several nodes a list of such lists.

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> keys = h.insert([[0.0], [5.0], [1.0]])
        >>> h.members(h.parent(h.leaf(0)))
        [0, 2]
        >>> h.members(h.nodes())
        [[0], [2], [0, 2], [1], [0, 1, 2]]
        """

    @overload
    def height(self, /, node: int) -> float: ...
    @overload
    def height(self, /, node: NodeArray) -> NDArray[np.float64]: ...
    @answered_by(of_nodes.height)
    def height(self, node: Any) -> Any:
        """The linkage between the children of a node, in SciPy's units (Ward: √(2ζ)); 0 for a leaf.

        For several nodes an array.

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> keys = h.insert([[0.0], [3.0]])
        >>> h.height(h.root)
        3.0
        >>> h.height(h.nodes())
        array([0., 0., 3.])
        """

    @overload
    def size(self, /, node: int) -> int: ...
    @overload
    def size(self, /, node: NodeArray) -> NDArray[np.int64]: ...
    @answered_by(of_nodes.size)
    def size(self, node: Any) -> Any:
        """The number of points below a node, 1 for a leaf; for several nodes an array.

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> keys = h.insert([[0.0], [5.0], [1.0]])
        >>> h.size(h.root), h.size(h.nodes())
        (3, array([1, 1, 2, 1, 3]))
        """

    @reading
    def prototypes(self, nodes: Any = None) -> dict[int, Hashable]:
        """A representative point of each cluster: for minimax linkage, the one whose farthest point is nearest.

        For Ward, and wherever else means are kept, it is the point nearest to the mean; for other linkages it is the
        medoid, the point with the smallest total dissimilarity to the others. Ties go to the oldest point.

        Parameters
        ----------
        nodes : a node, or a collection of nodes, optional
            By default all.

        Returns
        -------
        prototypes : dict
            Maps each node to the key of a point below it.

        Notes
        -----
        The medoids of a tree take O(n²) evaluations in total; other prototypes visit each leaf below each node.

        Examples
        --------
        >>> h = et.Hierarchy("minimax")
        >>> keys = h.insert([[0.0], [2.0], [3.0]])
        >>> h.prototypes()[h.root], h.height(h.root)
        (1, 2.0)
        """
        return of_nodes.prototypes(self.state, nodes)

    @reading
    def linkage_matrix(self) -> NDArray[np.float64]:
        """The tree as SciPy's linkage matrix Z: leaf i is ``keys()[i]``, and the heights are finite and monotone.

        Heights of a tree that is not refined can have inversions; these are raised to a running maximum. With fewer
        than two points the shape is (0, 4).

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> keys = h.insert([[0.0], [5.0], [1.0]])
        >>> h.linkage_matrix().round(3)
        array([[0.   , 2.   , 1.   , 2.   ],
               [1.   , 3.   , 5.196, 3.   ]])
        """
        return views.linkage_matrix(self.state.live, self.state.keys.leaves())

    @reading
    def cophenetic(self, *, as_dissimilarity: bool = False, monotone: bool = True) -> NDArray[np.float64]:
        """The height at which each pair of points is merged, in condensed form: SciPy's ``cophenet``. O(n²).

        Parameters
        ----------
        as_dissimilarity : bool
            Whether to give values in the units of the metric, to be compared with the dissimilarities themselves: the
            matrix U of the paper's section 5.2. It differs for Ward, whose own heights grow with the sizes of clusters:
            the heights are then those of average linkage.
        monotone : bool
            Whether to make heights monotone, as everywhere else, so that the result is an ultrametric. The paper uses
            them unchanged, which matters for Ward: average heights of a Ward tree need not be monotone.

        Returns
        -------
        u : ndarray of shape (n (n - 1) / 2,)
            In the order of `scipy.spatial.distance.pdist`, aligned with ``keys()``.

        Examples
        --------
        >>> h = et.Hierarchy(linkage="average")
        >>> keys = h.insert([[0.0], [5.0], [1.0]])
        >>> h.cophenetic()
        array([4.5, 1. , 4.5])
        """
        return views.cophenetic(self.state.live, self.state.keys.leaves(), as_dissimilarity, monotone)

    @reading
    def cut(
        self,
        *,
        n_clusters: int | None = None,
        height: float | None = None,
        min_cluster_size: int | None = None,
        method: str | None = None,
        epsilon: float = 0.0,
        allow_single_cluster: bool = False,
        keys: Any = None,
    ) -> NDArray[np.int64]:
        """Cut the tree into `n_clusters` clusters, or at a height, or into clusters that the tree itself gives.

        Parameters
        ----------
        n_clusters : int
            From 1 to the number of points.
        height : float
            In SciPy's units, as in `linkage_matrix`.
        min_cluster_size : int
            The minimum number of points in a cluster; points in smaller groups belong to no cluster. With `n_clusters`,
            only merges of two clusters of at least this size are undone, the highest first, until there are that many
            large clusters. Given alone, clusters are found without a number, as hdbscan finds them: those of
            `condensed_tree`.
        method : {"eom", "leaf"}, optional
            With `min_cluster_size` alone: which clusters are selected. ``"eom"``, the default, takes the most stable
            ones (excess of mass), large and small; ``"leaf"`` the smallest, by undoing every merge of two clusters of
            at least `min_cluster_size` points.
        epsilon : float
            With `min_cluster_size` alone: clusters that split below this height stay one. This is hdbscan's
            ``cluster_selection_epsilon``.
        allow_single_cluster : bool
            With `min_cluster_size` alone: whether all points may be one cluster, and not only noise where nothing
            splits. With ``"leaf"`` they may only where they split, and all below `epsilon`, as in hdbscan.
        keys : collection of keys, optional
            The points that are asked for, by default all. The labels of a few, in few clusters, take microseconds.

        Returns
        -------
        labels : ndarray of int
            The cluster of each of ``keys()``, numbered 0, 1, … by first appearance; -1 for none. With `keys`, the same
            numbers, of these points.

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> keys = h.insert([[0.0], [5.0], [1.0]])
        >>> h.cut(n_clusters=2)
        array([0, 1, 0])
        >>> h.cut(n_clusters=2, keys=[1])
        array([1])
        >>> h.cut(height=0.5)
        array([0, 1, 2])

        An outlier does not take up a cluster:

        >>> keys = h.insert([[6.0], [100.0]])
        >>> h.cut(n_clusters=2)
        array([0, 0, 0, 0, 1])
        >>> h.cut(n_clusters=2, min_cluster_size=2)
        array([ 0,  1,  0,  1, -1])

        The tree gives the number of clusters:

        >>> h.cut(min_cluster_size=2)
        array([ 0,  1,  0,  1, -1])
        """
        at = cuts.Cut(n_clusters, height, min_cluster_size, method, epsilon, allow_single_cluster)
        return cuts.cut(self.state, at, keys)

    @reading
    def condensed_tree(
        self,
        *,
        min_cluster_size: int,
        method: str = "eom",
        epsilon: float = 0.0,
        allow_single_cluster: bool = False,
    ) -> CondensedTree:
        """The clusters of at least `min_cluster_size` points, how stable they are, and a selection of them.

        The labels are those of `cut` with the same options. Beside them there are probabilities, outlier scores, the
        tree of clusters as a table, and its picture. Heights are those of `linkage_matrix`, and sizes count points,
        whatever their weights. With single linkage, this is HDBSCAN with ``min_samples=1``.

        Parameters
        ----------
        min_cluster_size : int
            The fewest points of a cluster.
        method : {"eom", "leaf"}
            Which clusters are selected: the most stable ones, or those that do not split.
        epsilon : float
            Clusters that split below this height stay one: hdbscan's ``cluster_selection_epsilon``.
        allow_single_cluster : bool
            Whether all points may be one cluster, and not only noise where nothing splits. Those in it then stay
            together as long as the tree does not split, or, with an `epsilon`, are joined at that height. With
            ``"leaf"`` they may only where they split, and all below `epsilon`, as in hdbscan.

        Returns
        -------
        tree : CondensedTree
            Later edits do not change it.

        Examples
        --------
        >>> h = et.Hierarchy("single")
        >>> keys = h.insert([[0.0], [1.0], [2.5], [20.0], [21.0], [50.0]])
        >>> t = h.condensed_tree(min_cluster_size=2)
        >>> t.labels, t.probabilities.round(2)
        (array([ 0,  0,  0,  1,  1, -1]), array([1.  , 1.  , 0.67, 1.  , 1.  , 0.  ]))
        """
        selection = condensed.as_selection(min_cluster_size, method, epsilon, allow_single_cluster)
        return cuts.condensed_tree(self.state, selection)

    @reading
    def cuts(
        self,
        *,
        n_clusters: Iterable[int] = (),
        height: Iterable[float] = (),
        min_cluster_size: int | None = None,
        method: str | None = None,
        epsilon: float = 0.0,
        allow_single_cluster: bool = False,
    ) -> Any:
        """Several cuts of the tree in one table.

        Parameters
        ----------
        n_clusters : collection of int
        height : collection of float
        min_cluster_size : int, optional
            For all cuts, as for `cut`.
        method, epsilon, allow_single_cluster
            As for `cut`, where `min_cluster_size` is given alone.

        Returns
        -------
        table : pandas.DataFrame
            A row for each key, with ``keys()`` as the index, and a column for each cut, named ``"n_clusters=5"``,
            ``"height=2.5"`` or, if nothing else is given, ``"min_cluster_size=10"``.

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> keys = h.insert([[0.0], [5.0], [1.0]], keys=["a", "b", "c"])
        >>> table = h.cuts(n_clusters=[1, 2], height=[0.5])
        >>> table.loc["b"].to_dict()
        {'n_clusters=1': 0, 'n_clusters=2': 1, 'height=0.5': 1}
        """
        common = cuts.Cut(None, None, min_cluster_size, method, epsilon, allow_single_cluster)
        return cuts.cuts(self.state, n_clusters, height, common)

    @reading
    def partition(
        self,
        *,
        n_clusters: int | None = None,
        height: float | None = None,
        min_cluster_size: int | None = None,
        method: str | None = None,
        epsilon: float = 0.0,
        allow_single_cluster: bool = False,
        follow: Partition | None = None,
    ) -> Partition:
        """Flat clusters with persistent ids.

        Parameters
        ----------
        n_clusters, height, min_cluster_size, method, epsilon, allow_single_cluster
            As for `cut`. Noise, -1, is no cluster, and takes the id of none.
        follow : Partition, optional
            An earlier partition of this hierarchy, or of one that it was copied or loaded from: a cluster keeps the id
            of the one with which it shares most points, so that the total overlap is as large as possible, and a new
            cluster gets an id that was never used before.

        Returns
        -------
        partition : Partition
            Later edits do not change it. See `Partition.changes` for what happened to each cluster.

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> keys = h.insert([[0.0], [1.0], [8.0], [9.0]])
        >>> before = h.partition(n_clusters=2)
        >>> h.remove([0, 1])
        >>> h.partition(n_clusters=1, follow=before).labels
        array([1, 1])
        """
        at = cuts.Cut(n_clusters, height, min_cluster_size, method, epsilon, allow_single_cluster)
        return cuts.partition(self.state, at, follow)

    @reading
    def locate(self, X: Any, reject_above: float | None = None) -> list[Location]:
        """Where points would be inserted. The tree does not change.

        Where the linkage follows from means, this takes some microseconds for each point, and more where the nearest
        point is hard to find, in many columns; otherwise points are compared with all others.

        Parameters
        ----------
        X : array of shape (k, n_columns), or a collection of k objects
            As for `insert`. With ``metric="precomputed"``, dissimilarities to the n live points, of shape (k, n).
        reject_above : float, optional
            A point that would join above this height is rejected: it belongs to no cluster below it. By default the
            height of the root: a rejected point is then farther from all others than they are from each other. (If that
            height is 0, nothing is rejected.)

        Returns
        -------
        locations : list of Location
            One for each point, as if it were the only one.

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> keys = h.insert([[0.0], [1.0], [8.0], [9.0]])
        >>> near, far = h.locate([[8.4], [100.0]])
        >>> near.rejected, near.nearest, [h.members(node) for node in near.path]
        (False, 2, [[2, 3], [0, 1, 2, 3]])
        >>> far.reason
        'would join at 121, above the root, which is at 11.3'
        """
        return locate.locate(self.state, X, reject_above)

    @reading
    def anomaly_scores(self, X: Any = None, measure: str = "jump", *, keys: Any = None) -> NDArray[np.float64]:
        """Anomaly scores of points: the higher, the more anomalous. The tree does not change.

        On the way from a point to the root, the cluster that contains it, at first the point alone, joins another one
        at each node. The score is the largest value over these steps:

        - ``"jump"``: how much higher the node is than the cluster, in SciPy's units, times how often the size doubles
          from the cluster to the node. It measures how far away an outlier is, not only that it is one.
        - ``"displacement"``: how many times larger the other cluster is. This is collusive displacement, the measure of
          robust random cut forests. A single outlier among n points can score up to n - 1; two outliers close together
          can still score half of that.

        Equal points count as one point with their total weight.

        Parameters
        ----------
        X : array of shape (k, n_columns), or a collection of k objects, optional
            Points as for `locate`, each scored as if it were the only one, with weight 1. By default the live points.
        measure : {"jump", "displacement"}
        keys : a key, or a collection of keys, optional
            Score only these live points, in this order.

        Returns
        -------
        scores : ndarray of shape (k,)
            For live points in the order of ``keys()``. `score_samples` has the opposite sign, as in scikit-learn.

        Notes
        -----
        Scoring all live points takes O(n). If the linkage is computed from means, a new point descends the tree to the
        nearer child each time: about a microsecond. Other linkages search for where it would be inserted, as `locate`
        does.

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> keys = h.insert([[0.0], [1.0], [2.0], [3.0], [50.0]])
        >>> h.anomaly_scores().round(1)
        array([ 18.8,  18.8,  18.8,  18.8, 142.4])
        >>> h.anomaly_scores(measure="displacement")
        array([1., 1., 1., 1., 4.])
        >>> h.anomaly_scores([[2.4], [90.0]]).round(1)
        array([15.4, 40. ])
        """
        return anomalies.scores(self.state, X, measure, keys)

    @reading
    def score_samples(self, X: Any = None, measure: str = "jump", *, keys: Any = None) -> NDArray[np.float64]:
        """The opposite of `anomaly_scores`, as in scikit-learn: the lower, the more abnormal.

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> keys = h.insert([[0.0], [1.0], [2.0], [3.0], [50.0]])
        >>> h.score_samples([[2.4], [90.0]]).round(1)
        array([-15.4, -40. ])
        """
        return -anomalies.scores(self.state, X, measure, keys)

    @reading
    def anomalies(self, X: Any = None, n: int | None = 10, measure: str = "jump") -> list[Anomaly]:
        """The most anomalous points, highest score first, each with a reason.

        Parameters
        ----------
        X : optional
            As for `anomaly_scores`.
        n : int or None
            The maximum number of points; None for all.
        measure : {"jump", "displacement"}

        Returns
        -------
        anomalies : list of Anomaly

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> keys = h.insert([[0.0], [1.0], [2.0], [3.0], [50.0]])
        >>> h.anomalies(n=1)[0].reason
        'joins 4 points, 4 times as many, at a height of 61.3'
        >>> h.anomalies([[2.4], [51.0]])[0].reason
        'with 1 live point joins 4 points, 2 times as many, at a height of 61.3'
        """
        return anomalies.anomalies(self.state, X, n, measure)

    @reading
    def is_homogeneous(self) -> bool:
        """Whether no grandchild is closer to its parent's sibling than to its own sibling. Scans the whole tree.

        This is the paper's Definition 4, checked at every node. See `violations`.

        Examples
        --------
        >>> h = et.Hierarchy.random(np.random.default_rng(0).normal(size=(50, 2)))
        >>> h.is_homogeneous()
        False
        >>> report = h.refine(until="homogeneous")
        >>> h.is_homogeneous()
        True
        """
        return checks.violations(self.state).size == 0

    @reading
    def violations(self) -> NDArray[np.int32]:
        """The nodes with a child that is closer to the node's sibling than to its own sibling. Scans the whole tree.

        Values count as equal if they differ by less than 1e-9 of the larger (1e-5 for float32), or by no more than
        rounding explains.

        Examples
        --------
        >>> h = et.Hierarchy.from_linkage([[0, 2, 1, 2], [1, 3, 1, 3]], [[0.0], [1.0], [9.0]])
        >>> [h.members(node) for node in h.violations()]
        [[0, 2]]
        """
        return checks.violations(self.state)

    @reading
    def is_monotone(self) -> bool:
        """Whether no node is lower than its child. Scans the whole tree.

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> keys = h.insert([[0.0], [5.0], [1.0]])
        >>> h.is_monotone()
        True
        """
        return checks.is_monotone(self.state)

    @reading
    def is_stable(self) -> bool:
        """Whether the tree is monotone and has no blocking pair: then it is a batch tree.

        O(1) after an edit or `refine` of an exact tree, whose bounds prove it. Otherwise the search is exhaustive: at
        most O(n² m) for linkages with statistics, where bounds skip much of the work if there are few columns, and
        O(n² depth) for those that compare pairs. `certify` relies on no bounds.

        Examples
        --------
        >>> X = np.random.default_rng(0).normal(size=(200, 2))
        >>> h = et.Hierarchy(goal="homogeneous")
        >>> keys = h.insert(X)
        >>> h.is_stable()
        False
        >>> report = h.refine(until="stable")
        >>> h.is_stable()
        True
        """
        return checks.is_stable(self.state)

    @reading
    def instability(self, sample: int | None = 1000, confidence: float = 0.95) -> Instability:
        """The share of nodes that are in a blocking pair: how far the tree is from batch, without a batch run.

        Parameters
        ----------
        sample : int or None
            How many nodes to draw; None for all. The search is exhaustive for each: up to O(n m) or, for linkages that
            compare pairs, O(n m) for each of its points.
        confidence : float
            The confidence level of the interval.

        Returns
        -------
        instability : Instability
            ``fraction``, and the ends ``low`` and ``high`` of its confidence interval (Wilson).

        Notes
        -----
        The hierarchy's seed determines which nodes are drawn. The estimate is for monotone trees, as they are after
        every edit; for a tree from `Hierarchy.random` or `Hierarchy.from_linkage` it is rough until the first edit.

        Examples
        --------
        >>> h = et.Hierarchy(goal="homogeneous")
        >>> keys = h.insert(np.random.default_rng(0).normal(size=(1000, 2)))
        >>> before = h.instability(sample=500)
        >>> before.low < before.fraction < before.high
        True
        >>> report = h.refine(until="stable")
        >>> h.instability(sample=500).fraction < before.low
        True
        """
        return checks.instability(self.state, sample, confidence)

    @reading
    def certify(self) -> None:
        """Replay the merges in order of height, and raise unless each was a minimum when it was made.

        If it passes, batch clustering could have made the tree, with some way of breaking ties. O(n² m) time; for
        linkages that compare pairs also O(n²) memory.

        Raises
        ------
        UnstableError
            If it is not a batch tree; the message names two clusters that should have merged.

        Examples
        --------
        >>> X = np.random.default_rng(0).normal(size=(200, 2))
        >>> h = et.Hierarchy(search_width=None)
        >>> keys = h.insert(X)
        >>> report = h.refine()
        >>> h.certify()  # says nothing: all is well
        >>> et.Hierarchy.random(X).certify()
        Traceback (most recent call last):
        evertree.errors.UnstableError: the tree is not a batch tree: ...
        """
        checks.certify(self.state)

    @reading
    def validate(self) -> None:
        """Check every invariant of the tree, with statistics recomputed from the points; for tests.

        O(n m log n) with statistics, O(n² depth) for linkages that compare pairs.

        Raises
        ------
        InvariantError
            If an invariant does not hold: a bug in evertree.

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> keys = h.insert([[0.0], [5.0], [1.0]])
        >>> h.validate()
        """
        checks.validate(self.state)

    @reading
    def to_newick(self, path: str | os.PathLike[str] | None = None, branch_lengths: bool = True) -> str:
        """The tree as Newick text, the format of phylogenetics.

        The length of the branch above a node is its parent's height minus its own, so the distance from each leaf to
        the root is the height of the root.

        Parameters
        ----------
        path : str or path, optional
            A file to write the text to, in UTF-8.
        branch_lengths : bool
            Whether to write branch lengths, with all digits.

        Returns
        -------
        text : str
            Labels are ``str(key)``, quoted where needed.

        Examples
        --------
        >>> h = et.Hierarchy("single")
        >>> keys = h.insert([[0.0], [1.0], [5.0]], keys=["a", "b", "c"])
        >>> h.to_newick()
        '(c:4.0,(a:1.0,b:1.0):3.0);'
        """
        return exports.to_newick(self.state, path, branch_lengths)

    @reading
    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """The tree as nested JSON, which ``d3.hierarchy`` reads.

        Parameters
        ----------
        path : str or path, optional
            A file to write it to.

        Returns
        -------
        text : str
            An inner node has ``height``, ``size`` and ``children``; a leaf has ``key`` instead of children. Keys
            without a JSON type become strings.

        Examples
        --------
        >>> h = et.Hierarchy("single")
        >>> keys = h.insert([[0.0], [1.0]], keys=["a", "b"])
        >>> h.to_json()
        '{"height": 1.0, "size": 2, "children": [{"key": "a", "height": 0.0, "size": 1}, {"key": "b", ...}]}'
        """
        return exports.to_json(self.state, path)

    @reading
    def to_networkx(self) -> Any:
        """The tree as a graph, with edges from parents to children.

        Returns
        -------
        graph : networkx.DiGraph
            Nodes have attributes ``height`` and ``size``, and leaves ``key``.

        Examples
        --------
        >>> h = et.Hierarchy("single")
        >>> keys = h.insert([[0.0], [1.0], [5.0]], keys=["a", "b", "c"])
        >>> graph = h.to_networkx()
        >>> sorted(graph.edges)
        [(3, 0), (3, 1), (4, 2), (4, 3)]
        >>> graph.nodes[2]["key"], graph.nodes[4]["height"]
        ('c', 4.0)
        """
        return exports.to_networkx(self.state)

    @reading
    def to_frame(self) -> Any:
        """A table with a row for each node.

        Returns
        -------
        frame : pandas.DataFrame
            Columns ``parent``, ``left``, ``right``, ``height``, ``size`` and ``key``.

        Examples
        --------
        >>> h = et.Hierarchy("single")
        >>> keys = h.insert([[0.0], [1.0]], keys=["a", "b"])
        >>> frame = h.to_frame()
        >>> frame["key"].tolist(), frame["height"].tolist()
        (['a', 'b', None], [0.0, 0.0, 1.0])
        """
        return exports.to_frame(self.state)

    @reading
    def to_html(
        self,
        path: str | os.PathLike[str] | None = None,
        partition: Partition | Any = None,
        *,
        title: str | None = None,
        columns: Mapping[Any, Any] | None = None,
    ) -> str:
        """The tree as an interactive page: one HTML file that opens in any browser and needs no network.

        At first the top of the tree is expanded, as in `plot`. A click or a key press expands or collapses a cluster;
        keys can be searched; a slider cuts the tree into any number of clusters. Only what is in view is drawn, so that
        trees of 10⁵ points and more can be fully expanded.

        Parameters
        ----------
        path : str or path, optional
            A file to write the page to. An existing page is replaced once the new one is complete.
        partition : Partition or array of int, optional
            Clusters to colour the branches by: a partition of the live points, or labels as returned by `cut`. By
            default the tree is cut into the 2 to 10 clusters that stay the same over the widest relative range of
            heights.
        title : str, optional
            By default the linkage and the metric.
        columns : mapping or data frame, optional
            More information about the points: names mapped to values in the order of ``keys()``. A point shows its own
            values; a cluster shows the most frequent ones or, for more than 20 different numbers, their mean and range.

        Returns
        -------
        text : str
            The page.

        Raises
        ------
        ParameterError, DimensionError
            If the partition is of other points, or if labels or columns do not have one value per point.

        Notes
        -----
        Keys are shown as their ``str()``, never as markup, and the page runs no script but its own. 100,000 points take
        about 4 MB. `prototypes` are shown for the clusters of cuts into up to 50 clusters if they are quick to find:
        for linkages that compare pairs of points, if the cluster has at most 4,000 points; for others, if all these
        clusters together have at most 5,000,000.

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> keys = h.insert([[0.0], [1.0], [5.0]], keys=["ant", "bee", "ape"])
        >>> page = h.to_html("tree.html", h.partition(n_clusters=2), columns={"kind": ["insect", "insect", "mammal"]})
        >>> page[:15]
        '<!doctype html>'
        """
        return exports.to_html(self.state, path, partition, title, columns)

    def plot(self, partition: Partition | Any = None, **options: Any) -> Any:
        """Draw the dendrogram, or the top of a large one.

        Parameters
        ----------
        partition : Partition or array of int, optional
            Clusters to colour the branches by: a partition of the live points, or labels as returned by `cut`.
        **options
            As for `evertree.plotting.plot_dendrogram`: ``n_shown`` (50 clusters at the bottom; None for all leaves),
            ``orientation`` (``"top"`` or ``"left"``), ``leaf_labels``, ``ax``, ``title`` and others.

        Returns
        -------
        ax : matplotlib.axes.Axes

        Examples
        --------
        >>> from matplotlib.figure import Figure
        >>> h = et.Hierarchy()
        >>> keys = h.insert([[0.0], [1.0], [5.0]], keys=["a", "b", "c"])
        >>> ax = h.plot(h.partition(n_clusters=2), ax=Figure().subplots())
        >>> [text.get_text() for text in ax.get_xticklabels()]
        ['c', 'a', 'b']
        """
        return exports.plot(self.state, partition, **options)

    @reading
    def copy(self) -> Hierarchy:
        """An independent copy of this hierarchy.

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> keys = h.insert([[0.0], [5.0]])
        >>> twin = h.copy()
        >>> h.remove([0])
        >>> len(h), len(twin)
        (1, 2)
        """
        return from_state(self.state.copy())

    @reading
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the hierarchy to a file that `evertree.load` reads: versioned, checked, without pickle.

        An interrupted refinement can be resumed after loading.

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> keys = h.insert([[0.0], [5.0]], keys=["a", "b"])
        >>> h.save("tree.evertree")
        >>> et.load("tree.evertree").keys()
        ['a', 'b']
        """
        snapshot.save(path, self.state.copy() if self.state.live.has_threads else self.state)

    @reading
    def _repr_html_(self) -> str:
        """The notebook display: what the tree is, how far it is from its goal, and its top."""
        return exports.preview(self.state)

    def __repr__(self) -> str:
        return f"Hierarchy({exports.describe(self.state)}"

    def __copy__(self) -> Hierarchy:
        return self.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        state = self.copy().state  # what is pickled later must be consistent
        return _unpickled, (state.live, state.keys, state.window, state.seed, state.column_names)


def from_state(state: State) -> Hierarchy:
    """The hierarchy with this state."""
    h = Hierarchy.__new__(Hierarchy)
    h.state = state
    return h


def _unpickled(
    live: LiveTree,
    keys: KeyTable,
    window: MovingWindow | None,
    seed: int,
    column_names: tuple[str, ...] | None = None,
) -> Hierarchy:
    return from_state(State(live, keys, window, seed, column_names, family=None))


def load(path: str | os.PathLike[str], metric: Callable[..., Any] | None = None) -> Hierarchy:
    """Read a hierarchy that `Hierarchy.save` wrote.

    Parameters
    ----------
    path : str or path
    metric : callable, optional
        The function used as the metric, which a file cannot hold. Without it the tree can be read and refined, and
        points can be removed but not inserted.

    Raises
    ------
    NewerFormatError
        If a newer evertree wrote the file.
    CorruptFileError
        If the file is damaged.
    FileFormatError
        If it is something else.

    Examples
    --------
    >>> h = et.Hierarchy()
    >>> keys = h.insert([[0.0], [5.0]])
    >>> h.save("tree.evertree")
    >>> et.load("tree.evertree")
    Hierarchy(linkage='ward', metric='euclidean'): 2 points, 1 column of float64
    """
    return from_state(snapshot.load(path, metric))
