"""``evertree cluster``: a file of points as a tree, cuts, exports and pictures."""

from __future__ import annotations

import time
from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import typer
from numpy.typing import NDArray

import evertree
from evertree.cli import labels, options, writing
from evertree.cli.examples import examples
from evertree.cli.exits import INTERRUPTED, complain
from evertree.cli.exporting import Exports
from evertree.cli.output import DASH, Voice, bar, check_targets, refine, report_json, report_text
from evertree.cli.tables import Points, Source, read_points
from evertree.errors import ParameterError
from evertree.hierarchy import Hierarchy
from evertree.input.metrics import ALIASES
from evertree.tree.refine import Report

#: Points that are inserted between two movements of the bar.
_PART = 4096


@dataclass(frozen=True)
class Scheme:
    """How points are compared, and what the tree is refined to: None where the user did not say."""

    linkage: str | None = None
    metric: str | None = None
    metric_params: dict[str, Any] | None = None
    goal: str | None = None
    search_width: int | None = None
    n_jobs: int | None = None

    @property
    def is_scaled(self) -> bool:
        """Whether the scales of the columns are to come from the points."""
        return ALIASES.get(self.metric or "", self.metric) == "seuclidean" and not (self.metric_params or {}).get("V")

    def check(self) -> None:
        """Refuse what has no meaning, before a file is read."""
        if not self.is_scaled:
            Hierarchy(**self.given())

    def given(self, X: NDArray[Any] | None = None) -> dict[str, Any]:
        """The options that the user gave, as `Hierarchy` takes them; scales of columns come from the points."""
        found: dict[str, Any] = {name: value for name, value in vars(self).items() if value is not None}
        found |= {name: str(found[name]) for name in ("linkage", "goal") if name in found}  # no longer of an enum
        if self.search_width == 0:
            found["search_width"] = None
        if X is not None and self.is_scaled:
            variances = X.astype(np.float64).var(axis=0, ddof=min(1, len(X) - 1))
            found["metric_params"] = {"V": np.where(variances > 0, variances, 1.0)}
        return found


def grow(points: Points, scheme: Scheme) -> Hierarchy:
    """A tree in memory, point by point."""
    h = Hierarchy(**scheme.given(points.values))
    fill(h, points)
    return h


def fill(h: Hierarchy, points: Points, time: float | None = None) -> list[Hashable]:
    """Insert points into an empty tree in memory; return their keys."""
    n = len(points.values)
    if h.metric == "precomputed":
        return h.insert(points.values, points.keys, time=time)
    keys: list[Hashable] = []
    with bar("Inserting", n) as show:
        while len(keys) < n:
            # Several threads insert as many points at once as there are in the tree.
            part = slice(len(keys), len(keys) + (_PART if h.n_jobs is None else max(_PART, len(keys))))
            keys += h.insert(points.values[part], None if points.keys is None else points.keys[part], time=time)
            show(len(keys), f"{len(keys):,} of {n:,} points")
    return keys


@examples(
    ("Three clusters of the rows of a table, as CSV", "evertree cluster points.csv --key id --n-clusters 3"),
    (
        "Columns that have different units, on one scale",
        "evertree cluster points.csv --metric seuclidean -k 2 -k 5 -o labels.csv",
    ),
    (
        "A picture, and the tree for SciPy",
        "evertree cluster points.npy -k 3 --plot tree.png --linkage-matrix Z.npy",
    ),
    ("Only what three seconds allow", "evertree cluster points.parquet --seconds 3 --min-cluster-size 5"),
    ("In a pipe", "cat points.csv | evertree cluster - --columns x,y --newick -"),
    ("A tree that lives on, for insert, remove and refine", "evertree cluster points.csv --key id --store new.db"),
)
def cluster(
    file: options.File,
    key: options.Key = None,
    columns: options.Columns = None,
    delimiter: options.Delimiter = None,
    header: options.Header = True,
    array: options.Array = None,
    linkage: options.Linkage = None,
    metric: options.Metric = None,
    metric_params: options.MetricParams = None,
    goal: options.Goal = None,
    search_width: options.SearchWidth = None,
    jobs: options.Jobs = None,
    seconds: options.Seconds = None,
    batch: options.Batch = False,
    n_clusters: options.NClusters = None,
    height: options.Heights = None,
    min_cluster_size: options.MinClusterSize = None,
    output: options.Labels = None,
    newick: options.Newick = None,
    tree_json: options.TreeJson = None,
    linkage_matrix: options.LinkageMatrix = None,
    html: options.Html = None,
    plot: options.Plot = None,
    save: options.Save = None,
    store: options.Store = None,
    as_json: options.Json = False,
) -> None:
    """Cluster the points of a file.

    The tree is refined until it is the one that batch clustering would make, or until the time is over; Ctrl-C ends
    the refinement and keeps what was reached. Without a cut and an export, it is cut into 10 clusters.
    """
    source = Source(file, key, columns, delimiter, header, array)
    scheme = Scheme(linkage, metric, options.params_of(metric_params), goal, search_width, jobs)
    cuts = labels.Wanted(n_clusters or [], height or [], min_cluster_size)
    exports = Exports(newick, tree_json, linkage_matrix, html, plot, save)
    if not cuts and not exports.paths and store is None:
        cuts = labels.DEFAULT
    target = DASH if output is None and cuts and not as_json else output
    job = Job(source, scheme, seconds, batch, cuts, target, exports, store)
    job.check(as_json)
    _run(job, Voice(as_json, job.has_data_for_stdout))


@dataclass(frozen=True)
class Job:
    """What the user asked for."""

    source: Source
    scheme: Scheme
    seconds: float | None
    batch: bool
    cuts: labels.Wanted
    target: Path | None
    exports: Exports
    store: Path | None

    @property
    def has_data_for_stdout(self) -> bool:
        """Whether labels or a tree go to standard output."""
        return self.target == DASH or self.exports.on_stdout

    def check(self, as_json: bool) -> None:
        """Refuse what cannot be written, before any work is done."""
        if self.target is not None and not self.cuts:
            raise typer.BadParameter("needs --n-clusters, --height or --min-cluster-size", param_hint="--output")
        if as_json and self.has_data_for_stdout:
            raise typer.BadParameter("nothing else can go to standard output: name a file", param_hint="--json")
        self.scheme.check()
        targets = {"--output": (self.target, writing.ENDINGS), **self.exports.targets(), "--store": (self.store, ())}
        check_targets(targets, self.source.path)
        if self.store is not None and self.store.exists():
            raise ParameterError(f"--store makes a new tree, and {self.store} is there already: see evertree insert")

    def clustered(self, points: Points) -> tuple[Hierarchy, Report | None]:
        """The tree, and the report of its refinement, None if Ctrl-C ended that."""
        if self.batch:
            h = evertree.agglomerate(points.values, keys=points.keys, **self.scheme.given(points.values))
        else:
            h = grow(points, self.scheme)
        return h, refine(h, self.seconds)

    def write(self, h: Hierarchy, key_name: str, cuts: labels.Cuts) -> dict[str, str]:
        """Write all files, and return what is where."""
        if self.target is not None:
            writing.write(self.target, key_name, h.keys(), cuts)
        self.exports.write(h, next(iter(cuts.values()), None))
        if self.store is not None:
            evertree.open(self.store, start=h).close()
        written = {"labels": self.target, **self.exports.paths, "store": self.store}
        return {what: str(path) for what, path in written.items() if path not in (None, DASH)}


def _run(job: Job, voice: Voice) -> None:
    began = time.perf_counter()
    points = read_points(job.source)
    voice.say(points.summary())
    h, report = job.clustered(points)
    if report is None:
        complain("interrupted: what follows is of the tree as far as it was refined")
    else:
        voice.say(f"{h.linkage} on {h.metric}: {report_text(report)}")
    cuts = job.cuts.of(h)
    for line in labels.summary(cuts):
        voice.say(line)
    files = job.write(h, points.key_name, cuts)
    for what, path in files.items():
        voice.say(f"{what.replace('_', ' ')}: {path}")
    voice.answer(
        {
            "points": len(h),
            "columns": points.columns,
            "left_out": points.left_out,
            "linkage": h.linkage,
            "metric": h.metric,
            "goal": h.goal,
            "refinement": None if report is None else report_json(report),
            "cuts": labels.described(cuts),
            "files": files,
            "seconds": time.perf_counter() - began,
        }
    )
    if report is None:
        raise typer.Exit(INTERRUPTED)
