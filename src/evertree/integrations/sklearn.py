"""`AnytimeClustering`: a live hierarchy with scikit-learn's interface."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from evertree.errors import ParameterError
from evertree.extras import require
from evertree.hierarchy import Hierarchy
from evertree.input.arrays import as_count, as_seconds
from evertree.integrations import check_cut, cut_of
from evertree.partition import Partition
from evertree.tree.aim import WORKING_MEMORY
from evertree.windows import Window

require("sklearn", "AnytimeClustering", "sklearn")

from sklearn.base import BaseEstimator, ClusterMixin  # noqa: E402
from sklearn.utils.validation import check_array, check_is_fitted, validate_data  # noqa: E402


class AnytimeClustering(ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """Incremental hierarchical clustering: fit, add points with `partial_fit`, refine with more time.

    Parameters
    ----------
    n_clusters : int or None
        How many clusters to cut the tree into; None if `distance_threshold` is given.
    distance_threshold : float or None
        The height at which to cut it instead, in SciPy's units: clusters are merged below it, and not at it, as in
        scikit-learn. Then `n_clusters` must be None.
    linkage, metric, metric_params, goal, search_width, n_jobs, working_memory
        As for `Hierarchy`.
    max_seconds : float or None
        How long `fit` and `partial_fit` may refine after inserting the points; None to continue until the goal is
        reached. The tree is valid at any time, and ``hierarchy_.refine()`` continues.
    keep_last : int or None
        For streams: `partial_fit` keeps only this many of the newest points, and ``labels_`` are theirs. `fit`
        clusters all points that it is given; the next `partial_fit` drops the oldest. None keeps all, unless
        ``hierarchy_`` has a window of its own (see `Hierarchy.keep`).
    verbose : bool
        Whether to show progress bars (with tqdm: ``pip install 'evertree[progress]'``).

    Attributes
    ----------
    hierarchy_ : Hierarchy
        The live tree, with keys 0, 1, … for the rows in order of arrival. Edit it, and call `relabel`.
    labels_ : ndarray of int
        The cluster of each live point, in the order of ``hierarchy_.keys()``: of all points so far, or of the last
        `keep_last`. After `fit` they are 0, 1, … by first appearance; after `partial_fit` clusters keep their labels,
        and new ones get new labels.
    partition_ : Partition
        The same, by key; ``partition_.changes(earlier)`` tells what happened to each cluster.
    n_clusters_ : int
    linkage_matrix_ : ndarray of shape (n - 1, 4)
        SciPy's.
    children_ : ndarray of shape (n - 1, 2)
        The clusters that each row merges, numbered as in ``linkage_matrix_``: scikit-learn's convention.
    distances_ : ndarray of shape (n - 1,)
        Their heights.
    n_leaves_ : int
    report_ : Report
        What the last refinement did.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        If X was a data frame with column names.

    Notes
    -----
    A weight w counts as w points for Ward and average linkage. Weights must be positive: a point of weight zero has no
    place in a tree. So scikit-learn's check of equivalent weights (``check_sample_weight_equivalence_on_dense_data``),
    which uses weights of zero, does not apply.

    Examples
    --------
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [9.0, 9.0]])
    >>> model = et.AnytimeClustering(n_clusters=2).fit(X)
    >>> model.labels_
    array([0, 0, 1])
    >>> model.partial_fit([[9.0, 8.0]]).labels_
    array([0, 0, 1, 1])
    >>> model.predict([[8.0, 8.0]])
    array([1])
    """

    def __init__(
        self,
        n_clusters: int | None = 2,
        *,
        distance_threshold: float | None = None,
        linkage: str = "ward",
        metric: str | Callable[..., Any] = "euclidean",
        metric_params: Mapping[str, Any] | None = None,
        goal: str = "stable",
        search_width: int | str | None = "auto",
        n_jobs: int | None = None,
        working_memory: float = WORKING_MEMORY,
        max_seconds: float | None = None,
        keep_last: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.n_clusters = n_clusters
        self.distance_threshold = distance_threshold
        self.linkage = linkage
        self.metric = metric
        self.metric_params = metric_params
        self.goal = goal
        self.search_width = search_width
        self.n_jobs = n_jobs
        self.working_memory = working_memory
        self.max_seconds = max_seconds
        self.keep_last = keep_last
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:  # noqa: ARG002
        """Cluster points from scratch.

        Parameters
        ----------
        X : array of shape (n, n_columns), data frame, square matrix of dissimilarities, or collection of objects
            As for `Hierarchy.insert`.
        y : ignored
        sample_weight : array of shape (n,), optional

        Examples
        --------
        >>> et.AnytimeClustering(n_clusters=2).fit([[0.0], [1.0], [9.0]]).labels_
        array([0, 0, 1])
        """
        X = self._checked(X, reset=True)
        h = self._new_hierarchy()
        h.insert(X, sample_weight=sample_weight, progress=bool(self.verbose))
        if self.n_clusters is not None:
            as_count("n_clusters", self.n_clusters, len(h))
        return self._finish(h, None)

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:  # noqa: ARG002
        """Add points to the tree. While there are fewer than `n_clusters` points, each is a cluster.

        With ``metric="precomputed"``, X has the shape (k, n + k): to the n points so far, then among the new ones.

        Examples
        --------
        >>> model = et.AnytimeClustering(n_clusters=2)
        >>> for batch in ([[0.0]], [[1.0], [9.0]]):
        ...     model = model.partial_fit(batch)
        >>> model.labels_
        array([0, 0, 1])

        An endless stream, with only the last points kept:

        >>> model = et.AnytimeClustering(n_clusters=2, keep_last=3)
        >>> for x in range(100):
        ...     model = model.partial_fit([[x % 2]])
        >>> model.hierarchy_.keys()
        [97, 98, 99]
        """
        is_first = not hasattr(self, "hierarchy_")
        X = self._checked(X, reset=is_first)
        self._check_parameters()
        h = self._new_hierarchy() if is_first else self.hierarchy_
        if is_first:
            self._move_window(h)  # first, so that a large batch needs no more memory than the window
        h.insert(X, sample_weight=sample_weight, progress=bool(self.verbose))
        self._move_window(h)
        return self._finish(h, None if is_first else self.partition_)

    def relabel(self) -> Self:
        """Cut the tree again, after points were removed, updated or inserted in ``hierarchy_``.

        Examples
        --------
        >>> model = et.AnytimeClustering(n_clusters=2).fit([[0.0], [1.0], [9.0]])
        >>> model.hierarchy_.remove([0])
        >>> model.relabel().labels_
        array([0, 1])
        """
        check_is_fitted(self, "hierarchy_")
        self._check_parameters()
        return self._finish(self.hierarchy_, self.partition_)

    def predict(self, X: Any) -> NDArray[np.int64]:
        """The cluster of the nearest live point, for each row of X. The tree does not change, and is not copied.

        With ``metric="precomputed"``, X has the shape (k, n): the dissimilarities to the n live points.

        ``hierarchy_.locate(X)`` tells more: where each would be inserted, at which height, and whether it is far from
        all.

        Examples
        --------
        >>> model = et.AnytimeClustering(n_clusters=2).fit([[0.0], [1.0], [9.0]])
        >>> model.predict([[2.0], [7.0]])
        array([0, 1])
        """
        check_is_fitted(self, "hierarchy_")
        nearest = [place.nearest for place in self.hierarchy_.locate(self._checked(X, reset=False))]
        if not all(map(self.partition_.has_key, nearest)):
            raise ParameterError(
                "hierarchy_ has points without a label, inserted since the last cut: call relabel() first"
            )
        return np.array([self.partition_.cluster_of(key) for key in nearest], np.int64)

    def score_samples(self, X: Any, measure: str = "jump") -> NDArray[np.float64]:
        """The opposite of the anomaly score, as in scikit-learn: lower is more abnormal. The tree does not change.

        This is the negative of ``hierarchy_.anomaly_scores(X)``. ``hierarchy_.anomalies(X)`` gives reasons.

        Parameters
        ----------
        X : array of shape (k, n_columns)
            As for `predict`.
        measure : {"jump", "displacement"}
            As for `Hierarchy.anomaly_scores`.

        Returns
        -------
        scores : ndarray of shape (k,)
            At most 0.

        Examples
        --------
        >>> model = et.AnytimeClustering(n_clusters=2).fit([[0.0], [1.0], [2.0], [9.0]])
        >>> scores = model.score_samples([[1.5], [40.0]])
        >>> bool(scores[1] < scores[0])
        True
        """
        check_is_fitted(self, "hierarchy_")
        return -self.hierarchy_.anomaly_scores(self._checked(X, reset=False), measure)

    @property
    def linkage_matrix_(self) -> NDArray[np.float64]:
        """SciPy's linkage matrix of the tree as it is now.

        Examples
        --------
        >>> et.AnytimeClustering(n_clusters=2).fit([[0.0], [1.0], [9.0]]).linkage_matrix_.shape
        (2, 4)
        """
        check_is_fitted(self, "hierarchy_")
        return self.hierarchy_.linkage_matrix()

    @property
    def children_(self) -> NDArray[np.int64]:
        """The two clusters of each merge.

        Examples
        --------
        >>> et.AnytimeClustering(n_clusters=2).fit([[0.0], [1.0], [9.0]]).children_.tolist()
        [[0, 1], [2, 3]]
        """
        return self.linkage_matrix_[:, :2].astype(np.int64)

    @property
    def distances_(self) -> NDArray[np.float64]:
        """The height of each merge.

        Examples
        --------
        >>> et.AnytimeClustering(linkage="single").fit([[0.0], [1.0], [9.0]]).distances_
        array([1., 8.])
        """
        return self.linkage_matrix_[:, 2]

    @property
    def n_leaves_(self) -> int:
        """The number of live points.

        Examples
        --------
        >>> et.AnytimeClustering().fit([[0.0], [1.0], [9.0]]).n_leaves_
        3
        """
        check_is_fitted(self, "hierarchy_")
        return len(self.hierarchy_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._is_precomputed
        return tags

    @property
    def _is_precomputed(self) -> bool:
        return isinstance(self.metric, str) and self.metric == "precomputed"

    def _check_parameters(self) -> None:
        """Check parameters that are otherwise used only after inserting points."""
        check_cut(self.n_clusters, self.distance_threshold)
        as_seconds(self.max_seconds)
        if self.keep_last is not None:
            as_count("keep_last", self.keep_last)

    def _move_window(self, h: Hierarchy) -> None:
        """Set the window of `keep_last` unless the hierarchy has it. An age limit stays."""
        now = h.window or Window()
        if self.keep_last is not None and now.last != self.keep_last:
            h.keep(last=self.keep_last, max_age=now.max_age)

    def _new_hierarchy(self) -> Hierarchy:
        self._check_parameters()
        return Hierarchy(
            self.linkage,
            self.metric,
            metric_params=self.metric_params,
            goal=self.goal,
            search_width=self.search_width,
            n_jobs=self.n_jobs,
            working_memory=self.working_memory,
            column_names=getattr(self, "feature_names_in_", None),
        )

    def _checked(self, X: Any, reset: bool) -> Any:
        """`X` after scikit-learn's checks.

        Objects compared by a function are not checked. Dissimilarities have a column for each live point, so their
        number of columns may change.
        """
        if callable(self.metric):
            return X
        if self._is_precomputed and not reset:
            return check_array(X, dtype=[np.float64, np.float32])
        return validate_data(self, X, reset=reset, dtype=[np.float64, np.float32])

    def _finish(self, h: Hierarchy, earlier: Partition | None) -> Self:
        """Refine, and cut into clusters that keep their labels."""
        report = h.refine(seconds=self.max_seconds, progress=bool(self.verbose))
        partition = h.partition(**cut_of(len(h), self.n_clusters, self.distance_threshold), follow=earlier)
        self.hierarchy_, self.report_, self.partition_ = h, report, partition
        self.labels_ = partition.labels.copy()
        self.n_clusters_ = len(partition)
        return self
