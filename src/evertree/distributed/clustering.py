"""`cluster` and `load`: the two ways to a `DistributedHierarchy`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from evertree.distributed import files
from evertree.distributed.clients import Connection
from evertree.distributed.hierarchy import DistributedHierarchy
from evertree.distributed.on_dask import OnDask
from evertree.distributed.progress import Progress
from evertree.distributed.refining import Forest
from evertree.distributed.settling import Top
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

    A tree over a sample says which part each point belongs to; each part is built where its data are; then the tree is
    refined across the borders of parts, by shipping pieces of it, until it is monotone, for average linkage
    homogeneous, and searches find no two clusters that would both rather merge with each other.

    Parameters
    ----------
    X : dask.array.Array, dask.dataframe.DataFrame, or an array or data frame in memory
        A row for each point; row i gets the key i. The numbers of rows in its chunks need not be known. It is read
        once; Dask may read some of it again if a worker is lost, so it must be the same each time.
    client : distributed.Client, optional
        By default the current one. Where there is none, a cluster of processes is started on this machine, and ends
        with the result: see `DistributedHierarchy.close`.
    linkage : {"ward", "average"}
    metric : str
        Any that goes with means and variances: for Ward ``"euclidean"``, ``"sqeuclidean"``, ``"mahalanobis"``,
        ``"seuclidean"``; for average ``"sqeuclidean"``, ``"cosine"``, ``"correlation"``.
    metric_params : dict, optional
        As for `evertree.Hierarchy`.
    search_width : int
        How widely to search for where a point belongs, and for clusters that would rather merge.
    part_size : int
        Points of a part, about. A task works on one or two parts, and takes about 500 bytes for each of their points
        and five times the data.
    seed : int
        Decides which points are sampled.
    progress : bool or callable, optional
        True for a bar in the terminal; a function is called with a `Progress` about ten times a second.

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
    forest = Forest({}, NO_TOP, scheme, aim, as_count("part_size", part_size))
    number = as_whole_number("seed", seed)
    connection = Connection(client)
    try:
        t = DistributedHierarchy(connection, forest, number)
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
        A directory that all workers see. It must stay as it is for as long as the tree is used, because a part whose
        worker is lost is read again.
    client : distributed.Client, optional
        As for `cluster`.

    Examples
    --------
    >>> et.distributed.cluster([[0.0], [5.0], [1.0]], client).save("tree")
    >>> t = et.distributed.load("tree", client)
    >>> t.insert([[4.0]])
    range(3, 4)
    """
    metadata = files.read_metadata(path)
    try:
        scheme = _checked_scheme(Scheme(metadata["linkage"], metadata["metric"], metadata["metric_params"] or None))
        top = files.read_top(path, metadata)
    except SIGNS_OF_DAMAGE as error:
        raise CorruptFileError(f"{path} is damaged: {error}") from error
    connection = Connection(client)
    try:
        handles = files.read_parts(OnDask(connection.client), path, metadata, scheme, top)
        aim = Aim("stable", metadata["search_width"])
        forest = Forest(handles, top, scheme, aim, metadata["part_size"])
        return DistributedHierarchy._restored(connection, forest, metadata, os.path.realpath(path))
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


#: The top of a tree without points.
NO_TOP = Top(np.empty(0, np.int64), np.empty((0, 2), np.int32))
