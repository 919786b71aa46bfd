"""`Hierarchy`: a hierarchical clustering that is kept alive while its data change."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Mapping
from typing import Any, Self

import numpy as np

from evertree.errors import DimensionError, ParameterError
from evertree.hierarchy.anomalies import HierarchyAnomalies
from evertree.hierarchy.cutting import HierarchyCuts
from evertree.hierarchy.exports import HierarchyExports
from evertree.hierarchy.keeping import HierarchyWindows
from evertree.hierarchy.reader import NO_LEAVES
from evertree.hierarchy.starts import HierarchyStarts
from evertree.hierarchy.workings import checked_progress
from evertree.input.arrays import (
    GOALS,
    as_choice,
    as_keys,
    as_seconds,
    as_threads,
    as_weights,
    as_whole_number,
    as_width,
)
from evertree.input.keys import KeyTable
from evertree.input.points import Progress, receive, receive_again, receive_changed
from evertree.io import snapshot
from evertree.locking import Uninterrupted, of_one_moment, one_edit_at_a_time
from evertree.state import State
from evertree.tree import Aim, LiveTree, new_tree, refine
from evertree.tree.parallel import rounds
from evertree.tree.refine import Report
from evertree.tree.scheme import DISSIMILARITIES, Scheme
from evertree.windows import MovingWindow


class Hierarchy(HierarchyStarts, HierarchyWindows, HierarchyCuts, HierarchyAnomalies, HierarchyExports):
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
        self.state = State(live, KeyTable(), None, as_whole_number("seed", seed))

    @one_edit_at_a_time
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
        moment = self._moment(time)
        incoming, weights, chosen = self._checked(X, keys, sample_weight, progress)
        if weights.size:
            return self._insert(incoming, weights, chosen, moment)
        self.expire(time)
        return []

    @one_edit_at_a_time
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
        gone = as_keys(keys)
        if gone:
            self._remove(gone, self.state.keys.leaves_of(gone))

    @one_edit_at_a_time
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
        changed = as_keys(keys)
        leaves = self.state.keys.leaves_of(changed)
        live = self.state.live
        order, position = self._order_and_positions(leaves)
        weights = live.tree.size[leaves] if sample_weight is None else as_weights(sample_weight, leaves.size)
        n_edits = self.state.n_edits
        incoming = receive_changed(live.scheme, X, live, order, position, checked_progress(progress))
        self._refuse_edits_since(n_edits)
        if leaves.size:
            live.check_range(incoming, weights)
            self._update(changed, leaves, incoming, weights)

    @one_edit_at_a_time
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
        budget = as_seconds(seconds)
        max_moves = None if moves is None else as_whole_number("moves", moves)
        goal = as_choice("until", self.goal if until is None else until, GOALS)
        live = self.state.live
        rounds.warm_up(live)

        def reorder(share: float) -> None:
            with Uninterrupted(), self.state.turns.door:
                if self.state.live is live:  # a progress callback may have changed the linkage
                    self._reorder(live, share, NO_LEAVES)

        return refine.run(live, goal, budget, max_moves, checked_progress(progress), reorder, self.state.turns)

    @one_edit_at_a_time
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
            return self._set_scheme(Scheme(linkage, self.metric, metric_params or self.metric_params), X)
        return self._set_scheme(Scheme(linkage, metric, metric_params), X)

    @one_edit_at_a_time
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
        return self._set_scheme(Scheme(self.linkage, metric, metric_params), X)

    @of_one_moment
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
        window = None if self.state.window is None else self.state.window.copy()
        return Hierarchy._assembled(self.seed, self._settled().copy(), self.state.keys.copy(), window)

    @of_one_moment
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
        snapshot.save(path, self._settled(), self.state.keys, self._options)

    def __repr__(self) -> str:
        return f"Hierarchy(linkage={self.linkage!r}, metric={self.state.live.scheme.metric_name}): {self._contents()}"

    @classmethod
    def _assembled(cls, seed: int, live: LiveTree, keys: KeyTable, window: MovingWindow | None) -> Self:
        h = cls.__new__(cls)
        h.state = State(live, keys, window, seed)
        return h

    def __copy__(self) -> Hierarchy:
        return self.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        twin = self.copy()  # what is pickled later must be of one moment
        return Hierarchy._assembled, (twin.state.seed, twin.state.live, twin.state.keys, twin.state.window)

    @property
    def _options(self) -> dict[str, Any]:
        """What a file keeps beside the tree and its scheme."""
        window = None if self.state.window is None else self.state.window.state()
        return {"goal": self.goal, "search_width": self.search_width, "seed": self.seed, "window": window}

    def _set_scheme(self, scheme: Scheme, X: Any) -> Report:
        old = self.state.live
        if len(self) == 0:
            if X is not None and len(X):
                raise DimensionError(f"X must be None for an empty hierarchy; it has {len(X)} points")
            with self.state.turns.door:
                self.state.live = new_tree(scheme, old.aim, None, old.dtype)
                self.state.n_edits += 1
            return self.refine()
        if X is None and DISSIMILARITIES in (scheme.holds, old.scheme.holds) and scheme.holds != old.scheme.holds:
            what = "the matrix of dissimilarities" if scheme.holds == DISSIMILARITIES else "the points"
            raise ParameterError(
                f"the hierarchy does not have what metric={scheme.metric_name} compares: give X, {what} in the order "
                "of keys()"
            )
        leaves, n_edits = self.state.keys.leaves(), self.state.n_edits
        if X is None and scheme.metric == old.scheme.metric and old.needs_order:
            incoming = receive_again(old, leaves)
        else:

            def check(count: int) -> None:
                if count != leaves.size:
                    raise DimensionError(f"X must have {leaves.size} points, one for each of keys(); it has {count}")

            incoming = receive(scheme, old.points(leaves) if X is None else X, check=check)
            self._refuse_edits_since(n_edits)
        live = new_tree(scheme, old.aim, incoming.n_columns, incoming.stored.dtype)
        live.check_range(incoming, old.tree.size[leaves])
        with Uninterrupted():
            live.adopt(old, leaves, incoming)
            with self.state.turns.door:
                self.state.live = live
                self.state.n_edits += 1
        return self.refine()


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
    live, keys, options = snapshot.load(path, metric)
    return Hierarchy._assembled(options["seed"], live, keys, options["window"])
