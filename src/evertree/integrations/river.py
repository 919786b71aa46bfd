"""`RiverClustering` and `RiverAnomalies`: a live tree of the newest points of a stream, with river's interface."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any

import numpy as np

from evertree.anomalies import MEASURES
from evertree.errors import DimensionError, NotFiniteError, NotNumericError, ParameterError, listed
from evertree.extras import require
from evertree.hierarchy import Hierarchy
from evertree.input.arrays import as_choice, as_count, as_height, as_whole_number
from evertree.integrations import check_cut, cut_of
from evertree.locking import Uninterrupted
from evertree.partition import Partition

require("river", "clustering of a stream", "river")

from river import base  # noqa: E402

#: Metrics that ignore columns in which both points are 0, so that spare columns change no distance.
_BLIND_TO_ZEROS = {
    *("euclidean", "sqeuclidean", "cosine", "cityblock", "chebyshev", "minkowski"),
    *("braycurtis", "canberra", "dice", "jaccard", "jensenshannon"),
}


class _StreamTree(base.Estimator):  # type: ignore[misc]
    """What both models share: a live tree of the newest points, features in columns, and scores."""

    def __init__(
        self,
        linkage: str = "ward",
        metric: str | Callable[..., Any] = "euclidean",
        metric_params: Mapping[str, Any] | None = None,
        window: int | None = 1000,
        refresh: float = 0.05,
        max_moves: int | None = None,
        measure: str = "jump",
    ) -> None:
        if isinstance(metric, str) and metric == "precomputed":
            raise ParameterError("metric must compare features, by name or as a function; it is 'precomputed'")
        if window is not None:
            as_count("window", window)
        if as_height("refresh", refresh) >= 1:
            raise ParameterError(f"refresh must be a share of the points, below 1; it is {refresh!r}")
        if max_moves is not None:
            as_whole_number("max_moves", max_moves)
        as_choice("measure", measure, MEASURES)
        self.linkage = linkage
        self.metric = metric
        self.metric_params = metric_params
        self.window = window
        self.refresh = refresh
        self.max_moves = max_moves
        self.measure = measure
        self.hierarchy = Hierarchy(linkage, metric, metric_params=metric_params)
        if window is not None:
            self.hierarchy.keep(last=window)
        self._column_of: dict[Hashable, int] = {}
        self._n_columns = 0  # of the hierarchy; there may be spare ones
        self._n_since_refresh = 0

    def learn_one(self, x: dict[Hashable, Any]) -> None:
        """Insert a point, drop the oldest one if there are more than `window`, and refine the tree from time to time.

        Parameters
        ----------
        x : dict
            Features by name. The dict itself is not kept.

        Raises
        ------
        NotNumericError, NotFiniteError
            A feature is not a number, or missing: river has transformers for this. The model is then unchanged.

        Examples
        --------
        >>> model = et.RiverClustering(window=2)
        >>> for value in (1.0, 2.0, 7.0):
        ...     model.learn_one({"size": value})
        >>> model.hierarchy.points()
        array([[2.],
               [7.]])
        """
        features = self._features(x)
        column_of, n_columns = self._columns_for(features)
        h = self.hierarchy
        if n_columns > self._n_columns and len(h):
            h = self._widened(n_columns)
        with Uninterrupted():
            h.insert([self._point(features, column_of, n_columns)])
            self.hierarchy, self._column_of, self._n_columns = h, column_of, n_columns
            self._n_since_refresh += 1
        if self._n_since_refresh > self.refresh * len(h):
            self._refresh()
            self._n_since_refresh = 0

    def score_one(self, x: dict[Hashable, Any]) -> float:
        """The anomaly score of a point: how isolated it would be in the tree. The tree does not change.

        It is scored by `Hierarchy.anomaly_scores`, with the `measure` of the model.

        Parameters
        ----------
        x : dict
            Features by name. Those that no point has had so far are ignored.

        Returns
        -------
        score : float
            The higher, the more anomalous; 0 before the first point.

        Examples
        --------
        >>> model = et.RiverAnomalies()
        >>> for value in (1.0, 1.5, 2.0, 2.5):
        ...     model.learn_one({"size": value})
        >>> model.score_one({"size": 1.7}) < model.score_one({"size": 9.0})
        True
        """
        points = [self._known_point(x)]
        return float(self.hierarchy.anomaly_scores(points, self.measure)[0]) if len(self.hierarchy) else 0.0

    def _known_point(self, x: dict[Hashable, Any]) -> Any:
        """A point with only the features that the tree has."""
        return self._point(self._features(x), self._column_of, self._n_columns)

    def _refresh(self) -> None:
        self.hierarchy.refine(moves=self.max_moves)

    def _features(self, x: Any) -> dict[Hashable, Any]:
        """The features of a point, checked for the metric."""
        if not isinstance(x, Mapping):
            raise NotNumericError(
                f"x must be a dict of features by name; it is {type(x).__name__}. river.stream makes dicts from arrays "
                "and tables"
            )
        return dict(x) if callable(self.metric) else _as_numbers(x)

    def _point(self, features: dict[Hashable, Any], column_of: Mapping[Hashable, int], n_columns: int) -> Any:
        """A point of the hierarchy: features in their columns, or a dict if the metric is a function."""
        if callable(self.metric):
            return features
        row = np.zeros(n_columns)
        for name, value in features.items():
            if name in column_of:
                row[column_of[name]] = value
        return row

    def _columns_for(self, features: dict[Hashable, Any]) -> tuple[dict[Hashable, int], int]:
        """The columns of all features, including these, and how many columns the hierarchy must have.

        The number doubles if the metric ignores spare columns, so that features appearing one by one cost little.
        """
        if callable(self.metric):
            return self._column_of, self._n_columns
        # By name, so that the order within a dict does not matter.
        new = sorted(features.keys() - self._column_of.keys(), key=repr)
        column_of = {**self._column_of, **{name: k for k, name in enumerate(new, len(self._column_of))}}
        if not column_of:
            raise DimensionError("x must have at least one feature, because it is the first point; it has none")
        if len(column_of) <= self._n_columns:
            return column_of, self._n_columns
        return column_of, max(len(column_of), 2 * self._n_columns if self.metric in _BLIND_TO_ZEROS else 0)

    def _widened(self, n_columns: int) -> Hierarchy:
        """The same tree with more columns, which are 0 for all points."""
        h = self.hierarchy
        X = np.pad(h.points(), ((0, 0), (0, n_columns - self._n_columns)))
        wide = Hierarchy.from_linkage(
            h.linkage_matrix(), X, self.linkage, self.metric, keys=h.keys(), metric_params=self.metric_params
        )
        if self.window is not None:
            wide.keep(last=self.window)
        wide.state.family = h.state.family  # they are the same points, and clusters keep their numbers
        return wide


class RiverClustering(_StreamTree, base.Clusterer):  # type: ignore[misc]
    """Hierarchical clustering of a stream, with river's interface: learn one point, predict the cluster of one.

    A live tree holds the newest points. Clusters keep their numbers while the stream goes on, and a new cluster gets a
    new number.

    Parameters
    ----------
    n_clusters : int or None
        How many clusters to cut the tree into; None if `distance_threshold` is given. While there are fewer points,
        each is a cluster.
    distance_threshold : float or None
        The height at which to cut it instead, in SciPy's units. Then `n_clusters` must be None.
    linkage, metric, metric_params
        As for `Hierarchy`. A metric that is a function gets two dicts.
    window : int or None
        How many of the newest points to keep; None for all, and then memory grows with the stream.
    refresh : float
        After how many new points, as a fraction of those in the tree, to refine and cut it again; 0 means after each.
        In between, a new point belongs to the cluster of its nearest relatives in the tree.
    max_moves : int or None
        The maximum number of moves of a refinement; None to continue until the tree is stable.
    measure : {"jump", "displacement"}
        What `score_one` measures; see `Hierarchy.anomaly_scores`.

    Attributes
    ----------
    hierarchy : Hierarchy
        The live tree, for reading: cuts, plots, copies. Keys count the points from the start of the stream. A new
        feature may replace it with a hierarchy with more columns, so do not keep a reference.

    Notes
    -----
    A missing feature counts as 0, as in river's linear models. A new feature adds a column, which is 0 for all earlier
    points; columns are never dropped. Features must be numbers, and distances depend on their units: put
    ``preprocessing.StandardScaler`` before this model, and ``preprocessing.OneHotEncoder`` if features are categorical.

    `predict_one` compares a point with all points of the window.

    Examples
    --------
    >>> from river import stream
    >>> X = [[1, 2], [1, 4], [1, 0], [-4, 2], [-4, 4], [-4, 0]]
    >>> model = et.RiverClustering(n_clusters=2)
    >>> for x, _ in stream.iter_array(X):
    ...     model.learn_one(x)
    >>> model.predict_one({0: 1, 1: 1}), model.predict_one({0: -3, 1: 2})
    (0, 1)
    >>> model.hierarchy
    Hierarchy(linkage='ward', metric='euclidean'): 6 points, 2 columns of float64
    """

    def __init__(
        self,
        n_clusters: int | None = 2,
        distance_threshold: float | None = None,
        linkage: str = "ward",
        metric: str | Callable[..., Any] = "euclidean",
        metric_params: Mapping[str, Any] | None = None,
        window: int | None = 1000,
        refresh: float = 0.05,
        max_moves: int | None = None,
        measure: str = "jump",
    ) -> None:
        super().__init__(linkage, metric, metric_params, window, refresh, max_moves, measure)
        check_cut(n_clusters, distance_threshold)
        self.n_clusters = n_clusters
        self.distance_threshold = distance_threshold
        self._partition: Partition | None = None
        self._centers: dict[int, dict[Hashable, float]] = {}

    def predict_one(self, x: dict[Hashable, Any]) -> int:
        """The cluster of the nearest live point. The tree does not change.

        Parameters
        ----------
        x : dict
            Features by name. Those that no point has had so far are ignored.

        Returns
        -------
        cluster : int
            0 before the first point.

        Examples
        --------
        >>> model = et.RiverClustering(n_clusters=2)
        >>> for value in (1.0, 2.0, 8.0):
        ...     model.learn_one({"size": value})
        >>> model.predict_one({"size": 0.0}), model.predict_one({"size": 9.0})
        (0, 1)
        """
        partition = self._clusters()
        if partition is None:
            return 0
        nearest = self.hierarchy.locate([self._known_point(x)])[0].nearest
        if partition.has_key(nearest):
            return partition.cluster_of(nearest)
        return next(partition.cluster_of(key) for key in self._companions(nearest) if partition.has_key(key))

    @property
    def centers(self) -> dict[int, dict[Hashable, float]]:
        """The means of the features of each cluster, as of the last cut.

        River's clustering metrics need them. There are none if the metric is a function.

        Examples
        --------
        >>> model = et.RiverClustering(n_clusters=2)
        >>> for value in (1.0, 2.0, 8.0):
        ...     model.learn_one({"size": value})
        >>> model.centers
        {0: {'size': 1.5}, 1: {'size': 8.0}}
        """
        self._clusters()
        return self._centers

    def _companions(self, key: Hashable) -> Iterator[Hashable]:
        """The members of the clusters that contain a point, from the smallest cluster up."""
        for node in self.hierarchy.ancestors(key):
            yield from self.hierarchy.members(node)

    def _clusters(self) -> Partition | None:
        """The clusters as of the last refresh; None without points. The first call makes them.

        If Ctrl-C interrupted refreshes until all points of the last cut left the window, the tree is cut again.
        """
        h = self.hierarchy
        if len(h) and (self._partition is None or self._n_since_refresh >= len(h)):
            self._cut()
        return self._partition

    def _refresh(self) -> None:
        super()._refresh()
        if self._partition is not None:  # published numbers must persist
            self._cut()

    def _cut(self) -> None:
        """Cut the tree into clusters that keep their numbers."""
        h = self.hierarchy
        cut = cut_of(len(h), self.n_clusters, self.distance_threshold)
        partition = h.partition(**cut, follow=self._partition)
        self._centers = {} if callable(self.metric) else self._means(partition)
        self._partition = partition

    def _means(self, partition: Partition) -> dict[int, dict[Hashable, float]]:
        X = self.hierarchy.points()[:, : len(self._column_of)]
        mean = {cluster: X[partition.labels == cluster].mean(axis=0).tolist() for cluster in partition.ids}
        return {cluster: dict(zip(self._column_of, mean[cluster], strict=True)) for cluster in mean}


class RiverAnomalies(_StreamTree, base.AnomalyDetector):  # type: ignore[misc]
    """Anomaly detection in a stream, with river's interface: anomalous points are isolated in the tree.

    A live tree holds the newest points. `RiverClustering` scores points too; river has one kind of model for clustering
    and another for anomaly detection, so there are two classes.

    Parameters
    ----------
    linkage, metric, metric_params
        As for `Hierarchy`. A metric that is a function gets two dicts.
    window : int or None
        How many of the newest points to keep; None for all, and then memory grows with the stream.
    refresh : float
        After how many new points, as a fraction of those in the tree, to refine it; 0 means after each.
    max_moves : int or None
        The maximum number of moves of a refinement; None to continue until the tree is stable.
    measure : {"jump", "displacement"}
        What `score_one` measures; see `Hierarchy.anomaly_scores`.

    Attributes
    ----------
    hierarchy : Hierarchy
        The live tree, for reading. Keys count the points from the start of the stream.

    Notes
    -----
    As for `RiverClustering`: missing features count as 0, and distances depend on units.

    Examples
    --------
    >>> from river import preprocessing
    >>> model = preprocessing.StandardScaler() | et.RiverAnomalies(window=100)
    >>> for k in range(50):
    ...     model.learn_one({"size": k % 7})
    >>> model.score_one({"size": 3}) < model.score_one({"size": 30})
    True
    """


def _as_numbers(x: Mapping[Hashable, Any]) -> dict[Hashable, float]:
    """The features of a point as floats; they must be finite numbers."""
    words = [name for name, value in x.items() if not isinstance(value, (numbers.Real, np.bool_)) and value is not None]
    if words:
        raise NotNumericError(
            f"features must be numbers; these are not: {listed(words)}. Put river.preprocessing.OneHotEncoder before "
            "the model, or leave them out with river.compose.Discard"
        )
    found = {name: _as_float(value) for name, value in x.items()}
    missing = [name for name, value in found.items() if not math.isfinite(value)]
    if missing:
        raise NotFiniteError(
            f"features must be finite; these are missing, NaN or infinite: {listed(missing)}. Put "
            "river.preprocessing.StatImputer before the model; a feature that is left out counts as 0"
        )
    return found


def _as_float(value: Any) -> float:
    """A number as a float, infinite if it is too large; NaN for None."""
    try:
        return math.nan if value is None else float(value)
    except OverflowError:
        return math.inf
