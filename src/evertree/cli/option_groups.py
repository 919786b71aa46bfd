"""Options that belong together: how points are compared, which of them stay, and where the tree is cut."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evertree.cli.output import plural
from evertree.cuts import Cut
from evertree.errors import ParameterError
from evertree.hierarchy import Hierarchy
from evertree.input.metrics import ALIASES
from evertree.kernels.columns import NOISE
from evertree.windows import Window

if TYPE_CHECKING:
    from evertree.cli.point_table import PointTable

#: The labels of cuts, by the name of the cut.
CutLabels = Mapping[str, NDArray[np.int64]]


@dataclass(frozen=True)
class ClusteringOptions:
    """How points are compared, and what the tree is refined to; None where an option is not given."""

    linkage: str | None = None
    metric: str | None = None
    metric_params: dict[str, Any] | None = None
    goal: str | None = None
    search_width: int | None = None
    n_jobs: int | None = None

    @property
    def _needs_variances(self) -> bool:
        """Whether the variances of the columns are to be computed from the points."""
        return ALIASES.get(self.metric or "", self.metric) == "seuclidean" and not (self.metric_params or {}).get("V")

    def check(self) -> None:
        """Refuse options that do not go together, before a file is read."""
        if not self._needs_variances:
            Hierarchy(**self.keywords())

    def keywords(self, points: PointTable | None = None) -> dict[str, Any]:
        """The options that are given, as keyword arguments of `Hierarchy`; points to compute variances from."""
        found: dict[str, Any] = {name: value for name, value in vars(self).items() if value is not None}
        if self.linkage is not None:
            found["linkage"] = str(self.linkage)  # no longer a member of an enum
        if self.search_width == 0:
            found["search_width"] = None
        if points is not None and self._needs_variances:
            X = points.values
            variances = X.astype(np.float64).var(axis=0, ddof=min(1, len(X) - 1))
            found["metric_params"] = {"V": np.where(variances > 0, variances, 1.0)}
        return found


@dataclass(frozen=True)
class WindowOptions:
    """Which points stay: None where a limit stays as it is, 0 where it is lifted."""

    last: int | None = None
    max_age: float | None = None
    time: float | None = None

    def apply(self, h: Hierarchy) -> None:
        """Change the limits of a tree that are given."""
        if self.last is None and self.max_age is None:
            return
        window = h.window or Window()
        last = window.last if self.last is None else self.last or None
        max_age = window.max_age if self.max_age is None else self.max_age or None
        if last is None and max_age is None:
            h.keep_all()
        else:
            h.keep(last=last, max_age=max_age, time=self.time)

    def insert(self, h: Hierarchy, values: Any, keys: list[Hashable] | None = None) -> list[Hashable]:
        """Change the limits and insert points; return their keys. Points that are refused leave the limits alone."""
        trial = h
        if h.metric == "precomputed":  # dissimilarities are to the points that stay
            trial = h.copy()
            self.apply(trial)
        trial.check(values, keys=keys)
        self.apply(h)
        return h.insert(values, keys=keys, time=self.time)

    def upsert(self, h: Hierarchy, values: Any, keys: list[Hashable]) -> list[Hashable]:
        """Change the limits, update points that are live and insert others; return the keys of these."""
        if h.metric == "precomputed":
            trial = h.copy()
            self.apply(trial)
            trial.upsert(values, keys=keys, time=self.time)
        else:
            h.check(values)
        self.apply(h)
        return h.upsert(values, keys=keys, time=self.time)


@dataclass(frozen=True)
class CutOptions:
    """Where a tree is cut."""

    n_clusters: Sequence[int]
    heights: Sequence[float]
    min_cluster_size: int | None
    method: str | None = None
    epsilon: float | None = None
    allow_single_cluster: bool = False
    at_most: bool = False  # whether fewer clusters will do if there are fewer points

    def __bool__(self) -> bool:
        return bool(self.n_clusters or self.heights or self.min_cluster_size or self._has_selection)

    @property
    def _has_selection(self) -> bool:
        """Whether an option is given that needs `min_cluster_size` alone."""
        return bool(self.method or self.epsilon or self.allow_single_cluster)

    def check(self, n_points: int) -> None:
        """Refuse more clusters than there are points, and what does not go together, before points are clustered."""
        for level in self.named(n_points).values():
            self._at(*level).check()
        too_many = [k for k in self.n_clusters if k > n_points]
        if too_many and not self.at_most:
            text = f"n_clusters must be an integer from 1 to {n_points}, the number of points; it is {too_many[0]}"
            raise ParameterError(text, parameter="n_clusters")

    def named(self, n_points: int) -> dict[str, tuple[int | None, float | None]]:
        """The number of clusters or the height of each cut, named as `Hierarchy.cuts` names them."""
        numbers = [min(k, n_points) for k in self.n_clusters] if self.at_most else self.n_clusters
        cuts: dict[str, tuple[int | None, float | None]] = {f"n_clusters={k}": (k, None) for k in numbers}
        cuts |= {f"height={x!r}": (None, x) for x in self.heights}
        if not cuts and (self.min_cluster_size is not None or self._has_selection):
            cuts[f"min_cluster_size={self.min_cluster_size}"] = (None, None)
        return cuts

    def cut(self, h: Hierarchy) -> CutLabels:
        """The labels of each cut."""
        return {name: h.cut(**asdict(self._at(*level))) for name, level in self.named(len(h)).items()}

    def _at(self, n_clusters: int | None, height: float | None) -> Cut:
        epsilon = self.epsilon or 0.0
        return Cut(n_clusters, height, self.min_cluster_size, self.method, epsilon, self.allow_single_cluster)


#: The cut without any option.
DEFAULT_CUT = CutOptions([10], [], None, at_most=True)


def describe_cuts(cuts: CutLabels) -> dict[str, dict[str, int]]:
    """The number of clusters of each cut, and their sizes."""
    found = {}
    for name, labels in cuts.items():
        sizes = np.bincount(labels[labels != NOISE])
        found[name] = {
            "clusters": sizes.size,
            "smallest": int(sizes.min()) if sizes.size else 0,
            "largest": int(sizes.max()) if sizes.size else 0,
            "noise": int(np.count_nonzero(labels == NOISE)),
        }
    return found


def cut_lines(cuts: CutLabels) -> list[str]:
    """A line for each cut."""
    lines = []
    for name, found in describe_cuts(cuts).items():
        noise = f", {plural(found['noise'], 'point')} in none" if found["noise"] else ""
        smallest = "" if found["smallest"] == found["largest"] else f"{found['smallest']:,} to "
        sizes = f" of {smallest}{plural(found['largest'], 'point')}" if found["clusters"] else ""
        lines.append(f"{name}: {plural(found['clusters'], 'cluster')}{sizes}{noise}")
    return lines
