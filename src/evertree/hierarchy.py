"""`Hierarchy`: a hierarchical clustering that is kept alive while its data change.

Signatures and docstrings: each method hands over to the module that does the work.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from evertree import anomalies, checks, constructors, cuts, edits, exports, locate, nodes
from evertree.anomalies import Anomaly
from evertree.checks import Instability
from evertree.input.arrays import GOALS, as_choice, as_threads, as_whole_number, as_width
from evertree.input.keys import KeyTable
from evertree.input.points import Progress
from evertree.io import snapshot
from evertree.locate import Location
from evertree.locking import editing, reading
from evertree.nodes import prototypes as prototypes_of
from evertree.partition import Partition
from evertree.state import State
from evertree.tree import Aim, LiveTree, new_tree, views
from evertree.tree.refine import Report
from evertree.tree.scheme import Scheme
from evertree.windows import MovingWindow, Window


class Hierarchy:
    """A hierarchical clustering (a dendrogram) of points that come, go and change.

    The tree is valid at every moment. An edit costs microseconds, where a batch method would start again, and `refine`
    takes the tree to one that is as good as what a batch method would have made of the points that are there now; with
    ``search_width=None``, to that very tree.

    Parameters
    ----------
    linkage : {"ward", "average", "complete", "single", "minimax"}
        How the dissimilarity of points is lifted to clusters. Ward needs Euclidean geometry: a metric that is
        ``"euclidean"``, ``"sqeuclidean"``, ``"mahalanobis"``, ``"seuclidean"``, or ``"minkowski"`` with p = 2.
    metric : str or callable
        The dissimilarity of points: the name of any SciPy metric that compares two vectors; ``"precomputed"``, where
        dissimilarities are inserted instead of points; or a function of two points, which may then be any objects.
    metric_params : dict, optional
        ``{"p": number, "w": weights}`` for ``"minkowski"``, ``{"VI": matrix}``, the inverse of a covariance matrix, for
        ``"mahalanobis"``, ``{"V": variances}`` for ``"seuclidean"``, ``{"base": number}`` for ``"jensenshannon"``.
    goal : {"stable", "homogeneous"}
        What `refine` aims at, and how points are inserted. A *stable* tree is one that batch agglomerative clustering
        could have made: no two clusters would both rather merge with each other. New points are inserted by search,
        and after every edit the tree is monotone, and homogeneous but for Ward. *Homogeneous* is the paper's procedure
        to the letter: after every edit no cluster is closer to its parent's sibling than to its own sibling.
    search_width : int or None
        How widely to search for where a point belongs, and for clusters that would rather merge: the nodes kept on each
        level of a descent. With None, `refine` searches exhaustively: then a refined tree is a batch tree exactly, at
        quadratic cost where bounds do not help. Linkages that compare pairs search by way of neighbours whatever the
        number.
    n_jobs : int or None
        How many threads insert large batches and refine; -1 for all processors, and None for the procedure for one. The
        tree is the same for every number; for linkages that follow from means it is another one than with None, and
        small trees, and budgets of moves, are left to one thread.
    seed : int
        For the choices that are made at random: `Hierarchy.random`, and which nodes `instability` looks at.

    Notes
    -----
    float32 points stay float32; everything else becomes float64. The first points decide, and later ones are converted.

    Ward, and average on ``"sqeuclidean"``, ``"cosine"`` or ``"correlation"``, follow from means and variances: an edit
    takes microseconds whatever the number of points, and memory is twice the data (three times where the points differ
    from the coordinates, as for cosine) and about 340 bytes a point, most of them for searches. All others compare
    pairs of points: an insertion compares a point with all others or, for single and complete linkage on a true metric
    in few columns, with few of them, and the moves that follow, and deletions, compare clusters where bounds do not
    decide. Changing the linkage or the metric compares all pairs, and so do grafts and the searches for large clusters,
    several times. Vectors still take linear memory; dissimilarities, given or from a function, which is called once for
    each pair, take n² / 2 numbers.

    Differences below about 1e-150 have squares that vanish, and count as none.

    Threads may share a hierarchy. Edits and refinements wait for each other, and each call that reads it sees the tree
    of one moment: before an edit or after it, and between two moves of a refinement, which lets readers in many times a
    second. Two calls may see two moments; ask a `copy` where they have to agree.

    The same points in the same order give the same tree, on one kind of processor to the last bit. A tie goes to the
    node with the older point.

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
        search_width: int | None = 4,
        n_jobs: int | None = None,
        seed: int = 0,
    ) -> None:
        aim = Aim(as_choice("goal", goal, GOALS), as_width(search_width), as_threads(n_jobs))
        live = new_tree(Scheme(linkage, metric, metric_params), aim, None, np.dtype(np.float64))
        #: What the hierarchy holds: the low level, for code that makes, saves or checks whole trees.
        self.state = State(live, KeyTable(), None, as_whole_number("seed", seed))

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

        The first edit makes all moves that are wanted; call `refine` before, to control the time.

        Parameters
        ----------
        X, keys, sample_weight
            As for `insert`.
        linkage, metric, **options
            As for `Hierarchy`; ``seed`` decides what is drawn.

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
        """The tree of a SciPy linkage matrix, of any method, over its points. It is not refined.

        The first edit makes all moves that are wanted; call `refine` before, to control the time.

        Parameters
        ----------
        Z : array of shape (n - 1, 4)
            Its heights are not used: they follow from the linkage and the points.
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
            As for `Hierarchy`. Lengths in the text are not used: heights follow from the linkage and the points.
        keys : collection, optional
            The key of each row of `X`; the texts of these are the labels of the leaves, in any order. By default the
            labels are the keys.
        resolve : bool
            What to do with a node of three or more children: refuse it, or merge them one after the other.

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
        keys: Any = None,
        sample_weight: Any = None,
        progress: Progress | None = None,
        time: float | None = None,
    ) -> list[Hashable]:
        """Add points, one after the other. All of them, or on an error none.

        Where there is a window, the points that are then outside go in the same call: see `keep`.

        Parameters
        ----------
        X : array of shape (k, n_columns), or a collection of k objects
            Always a collection of points: wrap a single one as ``[x]``. Objects where the metric is a function. With
            ``metric="precomputed"``, dissimilarities in the shape (k, n + k): to the n live points, in the order of
            ``keys()``, and then among the new ones. Into an empty hierarchy that is a square matrix, and a condensed
            one will do.
        keys : collection of k hashable values, or str, optional
            By default the next whole numbers. Where `X` is a data frame (pandas, polars, Arrow), the name of the
            column, which is then no part of the points, or of the index that has them.
        sample_weight : array of shape (k,), optional
            Positive; a point of weight 2 counts as two points.
        progress : callable, optional
            Where the metric is a function: called with the number of pairs evaluated so far and of all pairs.
        time : float, optional
            Where the window has an age limit: when the points came, as for `keep`. By default now.

        Returns
        -------
        keys : list
            The keys of the new points, also of those that are outside the window already.

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
        """Delete points by key. All of them, or on an error none.

        Parameters
        ----------
        keys : a key, or a collection of keys

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
    def update(self, keys: Any, X: Any, sample_weight: Any = None, progress: Progress | None = None) -> None:
        """Give live points new values. All of them, or on an error none.

        The points are taken out and inserted anew; they keep their keys and their places in ``keys()``.

        Parameters
        ----------
        keys : a key, or a collection of keys
        X : array of shape (k, n_columns), or a collection of k objects
            A point for each key. With ``metric="precomputed"``, dissimilarities to all n live points, in the order of
            ``keys()``: in the shape (k, n), or (n,) for one key.
        sample_weight : array of shape (k,), optional
            By default the weights stay as they are.
        progress : callable, optional
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

    @reading
    def check(self, X: Any, keys: Any = None, sample_weight: Any = None) -> None:
        """Refuse the points that `insert` would refuse. Nothing is changed.

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
    def keep(self, last: int | None = None, max_age: float | None = None, time: float | None = None) -> list[Hashable]:
        """From now on keep only the points that came last: at once, and after every insertion in the same call.

        Called with neither limit, it lifts the window, and points stay until they are removed.

        Parameters
        ----------
        last : int, optional
            How many points stay: those that were inserted last. An update makes a point no younger.
        max_age : float, optional
            Points that came longer ago than that go, at every insertion and at `expire`. In seconds, or in the unit
            of the times that you give.
        time : float, optional
            Now, by the clock of your data, as a number (of a date, its ``timestamp()``); by default the computer's, in
            seconds. Points that are there already count as having come now, unless there was an age limit before.

        Returns
        -------
        gone : list
            The keys of the points that went at once, oldest first.

        Notes
        -----
        Whoever gives a time has to give one for each insertion, so that no clocks are mixed. Times must not go back.
        The computer's clock may be set back: then time stands still until it has caught up.

        Arrival times take next to no memory, because they are kept to a thousandth of the age limit of that moment: a
        point may go so much later than it should, and never goes earlier. A window is saved, copied and, in a durable
        hierarchy, committed with the tree.

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
    def expire(self, time: float | None = None) -> list[Hashable]:
        """Remove the points that are too old by now, where no new ones come to do that.

        Parameters
        ----------
        time : float, optional
            Now, as for `keep`.

        Returns
        -------
        gone : list
            The keys of the points that went, oldest first.

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
        moves: int | None = None,
        until: str | None = None,
        progress: Callable[[Report], object] | None = None,
    ) -> Report:
        """Improve the tree until it reaches its goal or a budget is spent. Call it again to go on.

        Moves swap neighbouring clusters, and lead to a homogeneous tree; grafts attach a cluster where it would rather
        merge, and lead to a stable one, which is a batch tree. Ctrl-C leaves a valid tree.

        Parameters
        ----------
        seconds : float, optional
            How long it may take.
        moves : int, optional
            How many moves it may make. A graft counts as one.
        until : {"stable", "homogeneous"}, optional
            By default the hierarchy's goal.
        progress : callable, optional
            Called with a `Report` about ten times a second, and once at the end.

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
        """Change the linkage. The tree is kept, and refined from where it is.

        Parameters
        ----------
        linkage : str
        metric, metric_params, X : optional
            To change the metric in the same step, as `set_metric` does.

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
        """Change the metric, its parameters, or the dissimilarities. The tree is kept, and refined from where it is.

        Parameters
        ----------
        metric, metric_params
            As for `Hierarchy`.
        X : optional
            What the metric compares, in the order of ``keys()``. It is needed for ``metric="precomputed"``, where it is
            the matrix of dissimilarities, and to leave that; by default it is the points that the hierarchy has.

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
        """The live keys, oldest first: the order of every array that a hierarchy gives.

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
        """The live points as they were given, a row for each key. A copy.

        Objects come as a list, and dissimilarities as the square matrix of all of them.

        Parameters
        ----------
        keys : a key, or a collection of keys, optional
            Of some points alone, in this order.

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
        """The weights of the live points, 1 for those that were given none.

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
        """Where some keys stand in ``keys()``.

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
        return nodes.positions(self.state, keys)

    @property
    def n_columns(self) -> int | None:
        """How many columns the points have; None where they are no vectors, or none has come yet.

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> keys = h.insert([[0.0, 1.0], [5.0, 2.0]])
        >>> h.n_columns
        2
        """
        return self.state.live.n_columns

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the points, or of the dissimilarities: float32 or float64. The first points decide.

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
        """The metric: a name, or the function that was given. See `set_metric`.

        Examples
        --------
        >>> et.Hierarchy().metric
        'euclidean'
        """
        return self.state.live.scheme.metric

    @property
    def metric_params(self) -> dict[str, Any] | None:
        """The parameters of the metric, None where it has none.

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
    def search_width(self) -> int | None:
        """How many nodes a search keeps on each level of a descent; None if it is exhaustive.

        Examples
        --------
        >>> et.Hierarchy().search_width
        4
        """
        return self.state.live.aim.search_width

    @property
    def n_jobs(self) -> int | None:
        """How many threads work on large edits and refinements; None for the procedure for one thread alone.

        It may be set at any time. It is not in files: `evertree.load` gives None.

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
        """Which points stay; None if all do. See `keep`.

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
        """Moves that edits and refinements have made so far.

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
        """Grafts that refinements have made so far.

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
        """Dissimilarities evaluated since the hierarchy was made or loaded.

        None where means and variances do, or where they were given; calls where the metric is a function.

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
        """Memory in use by the points, the tree and its worklist.

        Keys that the user chose are not counted, and neither is room to grow, which the system does not provide before
        it is used.

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> keys = h.insert(np.random.default_rng(0).normal(size=(1000, 16)))
        >>> h.n_bytes // 1000  # 256 of them are the points and the means of clusters, 209 for searches
        597
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
        return nodes.leaf(self.state, key)

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
        """The nodes above the leaf of a key, from its parent to the root: the clusters that it is in.

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> keys = h.insert([[0.0], [5.0], [1.0]])
        >>> [h.members(node) for node in h.ancestors(0)]
        [[0, 2], [0, 1, 2]]
        """
        return nodes.above(self.state, nodes.leaf(self.state, key))

    @reading
    def parent(self, node: int) -> int:
        """The parent of a node; -1 (``et.NULL``) for the root.

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> keys = h.insert([[0.0], [1.0]])
        >>> h.parent(h.leaf(0)) == h.root, h.parent(h.root)
        (True, -1)
        """
        return nodes.parent(self.state, node)

    @reading
    def children(self, node: int) -> tuple[int, ...]:
        """The two children of a node; none for a leaf.

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> keys = h.insert([[0.0], [1.0]])
        >>> h.children(h.root) == (h.leaf(0), h.leaf(1)), h.children(h.leaf(0))
        (True, ())
        """
        return nodes.children(self.state, node)

    @reading
    def sibling(self, node: int) -> int:
        """The other child of a node's parent; -1 (``et.NULL``) for the root.

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> keys = h.insert([[0.0], [1.0]])
        >>> h.sibling(h.leaf(0)) == h.leaf(1), h.sibling(h.root)
        (True, -1)
        """
        return nodes.sibling(self.state, node)

    @reading
    def members(self, node: int) -> list[Hashable]:
        """The keys of the points below a node, oldest first.

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> keys = h.insert([[0.0], [5.0], [1.0]])
        >>> h.members(h.parent(h.leaf(0)))
        [0, 2]
        """
        return nodes.members(self.state, node)

    @reading
    def height(self, node: int) -> float:
        """The linkage between the children of a node, in SciPy's units (Ward: √(2ζ)); 0 for a leaf.

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> keys = h.insert([[0.0], [3.0]])
        >>> h.height(h.root)
        3.0
        """
        return nodes.height(self.state, node)

    @reading
    def prototypes(self, nodes: Any = None) -> dict[int, Hashable]:
        """The point that stands for each cluster: for minimax linkage the one from which all others are nearest.

        For Ward, and where else means are kept, it is the point nearest to the mean; for other linkages the medoid, the
        point of least total dissimilarity to the others. A tie goes to the oldest.

        Parameters
        ----------
        nodes : a node, or a collection of nodes, optional
            By default all.

        Returns
        -------
        prototypes : dict
            From each node to the key of a point below it.

        Notes
        -----
        The medoids of a tree take O(n²) evaluations in all; the others a look at each leaf below each node.

        Examples
        --------
        >>> h = et.Hierarchy("minimax")
        >>> keys = h.insert([[0.0], [2.0], [3.0]])
        >>> h.prototypes()[h.root], h.height(h.root)
        (1, 2.0)
        """
        return prototypes_of(self.state, nodes)

    @reading
    def linkage_matrix(self) -> NDArray[np.float64]:
        """The tree as SciPy's matrix Z: leaf i is ``keys()[i]``, and the heights are finite and monotone.

        Heights of a tree that is not refined can have inversions; they are raised to a running maximum. Without two
        points the shape is (0, 4).

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
    def cophenetic(self, monotone: bool = True) -> NDArray[np.float64]:
        """The induced ultrametric: the height at which each pair of points meets, condensed. O(n²).

        This is the matrix U of the paper's section 5.2. As in the paper, the heights of a Ward tree are here those of
        average linkage on the metric, because Ward's own values have other units than distances; so they are not those
        of ``scipy.cluster.hierarchy.cophenet(h.linkage_matrix())``.

        Parameters
        ----------
        monotone : bool
            Whether heights are made monotone, as they are everywhere else, so that the result is an ultrametric. The
            paper takes them as they are, which matters for Ward: average heights of a Ward tree need not be monotone.

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
        return views.cophenetic(self.state.live, self.state.keys.leaves(), monotone)

    @reading
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
        return cuts.cut(self.state, n_clusters, height, min_cluster_size)

    @reading
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
        return cuts.cuts(self.state, n_clusters, height, min_cluster_size)

    @reading
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
        return cuts.partition(self.state, n_clusters, height, min_cluster_size, follow)

    @reading
    def locate(self, X: Any, reject_above: float | None = None) -> list[Location]:
        """Where points would be inserted. The tree does not change. O(n m), and a copy of the tree.

        Parameters
        ----------
        X : array of shape (k, n_columns), or a collection of k objects
            As for `insert`. With ``metric="precomputed"``, dissimilarities to the n live points, in the shape (k, n).
        reject_above : float, optional
            A point that would join above this height is rejected: it belongs to no cluster below it. By default the
            height of the root: such a point is farther from all others than they are from each other. (Where that is 0,
            nothing is rejected.)

        Returns
        -------
        locations : list of Location
            Each as if the point were the only one.

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
    def score_samples(self, X: Any = None, measure: str = "jump", *, keys: Any = None) -> NDArray[np.float64]:
        """How far points stand apart from the others: the higher, the more anomalous. The tree does not change.

        On the way from a point to the root, a cluster with the point in it, the point alone at first, joins others at
        node after node. The score is the largest that one of these steps gives:

        - ``"jump"``: how much higher the node is than the cluster, in SciPy's units, times how often the size doubles
          from the one to the other. It knows how far an outlier is, not only that it is one.
        - ``"displacement"``: how many times larger the others are than the cluster. This is collusive displacement, the
          measure of robust random cut forests. A single outlier among n points can have up to n - 1; two outliers side
          by side can still have half of that.

        Points that are equal count as one that weighs as much.

        Parameters
        ----------
        X : array of shape (k, n_columns), or a collection of k objects, optional
            Points as `locate` takes them, each scored as if it came alone, with weight 1. By default the live points.
        measure : {"jump", "displacement"}
        keys : a key, or a collection of keys, optional
            Score some of the live points alone, in this order.

        Returns
        -------
        scores : ndarray of shape (k,)
            For live points in the order of ``keys()``. (The outlier detectors of scikit-learn have the opposite sign,
            and so has ``AnytimeClustering.score_samples``.)

        Notes
        -----
        All live points take O(n). Where the linkage follows from means, a new point goes down the tree to the nearer
        child each time: about a microsecond. Other linkages look for where it would be inserted, as `locate` does.

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> keys = h.insert([[0.0], [1.0], [2.0], [3.0], [50.0]])
        >>> h.score_samples().round(1)
        array([ 18.8,  18.8,  18.8,  18.8, 142.4])
        >>> h.score_samples(measure="displacement")
        array([1., 1., 1., 1., 4.])
        >>> h.score_samples([[2.4], [90.0]]).round(1)
        array([15.4, 40. ])
        """
        return anomalies.score_samples(self.state, X, measure, keys)

    @reading
    def anomalies(self, X: Any = None, n: int | None = 10, measure: str = "jump") -> list[Anomaly]:
        """The points that stand apart most, the first of them first, each with the reason.

        Parameters
        ----------
        X : optional
            As for `score_samples`.
        n : int or None
            How many, at most; None for all.
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

        Values that differ by less than 1e-9 of the larger (1e-5 for float32), or by less than rounding explains, are
        equal.

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
        """Whether the tree is monotone and no two clusters would both rather merge with each other: a batch tree.

        The search is exhaustive, whatever the hierarchy's ``search_width`` is: O(n² m) at most for linkages with
        statistics, where bounds leave out much of it in few columns, and O(n² depth) for those that compare pairs.

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
            How many nodes to draw; None for all. Each is searched exhaustively, which takes up to O(n m), or, for
            linkages that compare pairs, O(n m) for each of its points.
        confidence : float
            Of the interval.

        Returns
        -------
        instability : Instability
            ``fraction``, and the ends ``low`` and ``high`` of its confidence interval (Wilson).

        Notes
        -----
        The hierarchy's seed decides which nodes are drawn. The figure is for monotone trees, as they are after every
        edit; of a tree from `Hierarchy.random` or `Hierarchy.from_linkage` it is a rough one before the first.

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

        Then batch clustering could have made the tree, ties broken in some way. O(n² m); for linkages that compare
        pairs O(n²) in memory too.

        Raises
        ------
        UnstableError
            If it is not a batch tree; the text names two clusters that should have merged.

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
        """Check every invariant of the tree, its statistics recomputed from the points; for tests.

        O(n m log n) with statistics, O(n² depth) for linkages that compare pairs.

        Raises
        ------
        InvariantError
            If one does not hold: a bug in evertree.

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

        The branch above a node is as long as its parent is higher, so each leaf is as far from the root as the root is
        high.

        Parameters
        ----------
        path : str or path, optional
            A file to write it to, as UTF-8.
        branch_lengths : bool
            Whether to write lengths, with all digits.

        Returns
        -------
        text : str
            Labels are ``str(key)``, in quotes where needed.

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
            An inner node has ``height``, ``size`` and ``children``; a leaf has ``key`` instead of children. Keys that
            JSON has no type for become text.

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
        """The tree as a page to look through: one HTML file, which any browser opens and which needs no network.

        At first the top of the tree is open, as in `plot`. Clusters open and close with a click or a key; keys can be
        found; a slider cuts the tree into any number of clusters. Only what is in view is drawn, so that trees of 10⁵
        points and more can be opened wholly.

        Parameters
        ----------
        path : str or path, optional
            A file to write it to. A page that is there already is replaced when the new one is complete.
        partition : Partition or array of int, optional
            Clusters that give the branches their colours: a partition of the live points, or labels such as `cut`
            gives them. By default the tree is cut into 2 to 10 clusters, those that stay the same over the widest range
            of heights, in proportion.
        title : str, optional
            By default the linkage and the metric.
        columns : mapping or data frame, optional
            More to know about the points: from names to values in the order of ``keys()``. A point shows its own, and a
            cluster the most frequent ones or, of more than 20 different numbers, their mean and range.

        Returns
        -------
        text : str
            The page.

        Raises
        ------
        ParameterError, DimensionError
            For a partition of other points, and for labels or columns that are not one for each.

        Notes
        -----
        Keys are shown as their ``str()``, never as markup, and the page lets no script run but its own. 100,000 points
        take about 4 MB. `prototypes` are shown for the clusters of cuts into up to 50, as long as they can be found
        soon: for linkages that compare pairs of points, where the cluster has at most 4,000 points, and for others,
        where all these clusters together have at most 5,000,000.

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
            Clusters that give the branches their colours: a partition of the live points, or labels such as `cut`
            gives them.
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
        """A hierarchy that shares nothing with this one.

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

        A refinement that was stopped can be resumed after loading.

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
        """What a notebook shows: what the tree is, how far it is from its goal, and its top."""
        return exports.preview(self.state)

    def __repr__(self) -> str:
        return f"Hierarchy({exports.describe(self.state)}"

    def __copy__(self) -> Hierarchy:
        return self.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        state = self.copy().state  # what is pickled later must be of one moment
        return _unpickled, (state.live, state.keys, state.window, state.seed)


def from_state(state: State) -> Hierarchy:
    """The hierarchy that holds a state."""
    h = Hierarchy.__new__(Hierarchy)
    h.state = state
    return h


def _unpickled(live: LiveTree, keys: KeyTable, window: MovingWindow | None, seed: int) -> Hierarchy:
    return from_state(State(live, keys, window, seed))


def load(path: str | os.PathLike[str], metric: Callable[..., Any] | None = None) -> Hierarchy:
    """Read a hierarchy that `Hierarchy.save` wrote.

    Parameters
    ----------
    path : str or path
    metric : callable, optional
        The function that was the metric, which a file cannot hold. Without it the tree can be read and refined, and
        points removed, but none inserted.

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
