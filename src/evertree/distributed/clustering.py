"""`cluster` and `load`: the two functions that make a `DistributedHierarchy`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from evertree.distributed import parquet_files
from evertree.distributed.clients import Connection
from evertree.distributed.dask_runner import DaskRunner
from evertree.distributed.distributed_hierarchy import DistributedHierarchy
from evertree.distributed.distributed_tree import DistributedTree
from evertree.distributed.reporting import Progress
from evertree.distributed.subtrees import Shape
from evertree.errors import CorruptFileError, LinkageError
from evertree.input.arrays import as_count, as_whole_number
from evertree.io.archive import SIGNS_OF_DAMAGE
from evertree.tree import Aim
from evertree.tree.scheme import Scheme


def cluster(
    X: Any,
    client: Any = None,
    *,
    linkage: str = "ward",
    metric: str = "euclidean",
    metric_params: Mapping[str, Any] | None = None,
    search_width: int = 4,
    part_size: int = 100_000,
    seed: int = 0,
    progress: bool | Callable[[Progress], object] | None = None,
) -> DistributedHierarchy:
    """Cluster more points than one machine holds.

    A tree over a sample decides which part each point belongs to; each part is built where its data are; then the tree
    is refined across parts until it is monotone, for average linkage homogeneous, and searches find no blocking pair:
    two clusters that are both closer to each other than to what they are merged with.

    Parameters
    ----------
    X : dask.array.Array, dask.dataframe.DataFrame, or an array or data frame in memory
        A row for each point; row i gets the key i. The lengths of its chunks need not be known. It is read once; Dask
        may read some of it again if a worker is lost, so it must be the same each time.
    client : distributed.Client, optional
        By default the current one. If there is none, a cluster of processes is started on this machine, and stopped
        with the result: see `DistributedHierarchy.close`.
    linkage : {"ward", "average"}
    metric : str
        One that goes with means and variances: for Ward ``"euclidean"``, ``"sqeuclidean"``, ``"mahalanobis"``,
        ``"seuclidean"``; for average ``"sqeuclidean"``, ``"cosine"``, ``"correlation"``.
    metric_params : dict, optional
        As for `evertree.Hierarchy`.
    search_width : int
        The width of searches for the place of a point, and for blocking pairs: as for `evertree.Hierarchy`.
    part_size : int
        The number of points in a part, roughly. A task works on one or two parts, and takes about 500 bytes for each
        of their points and five times the data.
    seed : int
        Of the sample.
    progress : bool or callable, optional
        True for a bar in the terminal. A function is called with a `Progress` about ten times a second.

    Returns
    -------
    t : DistributedHierarchy

    Examples
    --------
    >>> import dask.array as da
    >>> X = da.random.default_rng(0).normal(size=(100, 3), chunks=(30, 3))
    >>> t = et.distributed.cluster(X, client, part_size=40)
    >>> t.report.stopped_by, t.is_monotone()
    ('stable', True)
    >>> t.cut(n_clusters=3).compute()[:3]
    array([0, 1, 1])
    """
    scheme = _checked_scheme(Scheme(linkage, metric, metric_params))
    aim = Aim("stable", as_count("search_width", search_width))
    tree = DistributedTree({}, EMPTY_TOP, scheme, aim, as_count("part_size", part_size))
    number = as_whole_number("seed", seed)
    connection = Connection(client)
    try:
        t = DistributedHierarchy(connection, tree, number)
        t.insert(X, progress)
    except BaseException:
        connection.close()
        raise
    return t


def load(path: str | os.PathLike[str], client: Any = None) -> DistributedHierarchy:
    """Read a tree from the directory that `DistributedHierarchy.save` wrote.

    Parameters
    ----------
    path : path
        A directory that all workers see. It must not change while the tree is in use, because a part is read again if
        its worker is lost.
    client : distributed.Client, optional
        As for `cluster`.

    Examples
    --------
    >>> et.distributed.cluster([[0.0], [5.0], [1.0]], client).save("tree")
    >>> t = et.distributed.load("tree", client)
    >>> t.insert([[4.0]])
    range(3, 4)
    """
    metadata = parquet_files.read_metadata(path)
    try:
        scheme = _checked_scheme(Scheme(metadata["linkage"], metadata["metric"], metadata["metric_params"] or None))
        top = parquet_files.read_top(path, metadata)
    except SIGNS_OF_DAMAGE as error:
        raise CorruptFileError(f"{path} is damaged: {error}") from error
    connection = Connection(client)
    try:
        handles = parquet_files.read_parts(DaskRunner(connection.client), path, metadata, scheme, top)
        aim = Aim("stable", metadata["search_width"])
        tree = DistributedTree(handles, top, scheme, aim, metadata["part_size"])
        return DistributedHierarchy._restored(connection, tree, metadata, os.path.realpath(path))
    except BaseException:
        connection.close()
        raise


def _checked_scheme(scheme: Scheme) -> Scheme:
    if not scheme.has_statistics:
        raise LinkageError(
            f"linkage={scheme.linkage.name!r} with metric={scheme.metric_name} cannot be distributed, because it does "
            "not follow from means and variances: use linkage='ward', or linkage='average' with metric='sqeuclidean', "
            "'cosine' or 'correlation'; or evertree.Hierarchy on one machine"
        )
    return scheme


#: The top tree of a tree without points.
EMPTY_TOP = Shape(np.empty(0, np.int64), np.empty((0, 2), np.int32))
