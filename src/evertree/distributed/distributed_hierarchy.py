"""`DistributedHierarchy`: a tree over more points than one machine holds, with the methods of a `Hierarchy`."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from evertree import kernels
from evertree.distributed import build, cut_tree, keyed_arrays, parquet_files
from evertree.distributed.clients import Connection
from evertree.distributed.dask_runner import DaskRunner
from evertree.distributed.distributed_tree import DistributedTree, RoundCounts
from evertree.distributed.parts import remove_from
from evertree.distributed.reading import in_order, read
from evertree.distributed.reporting import DistributedReport, Progress, ProgressReporter, showing
from evertree.distributed.subtrees import to_live
from evertree.errors import EmptyHierarchyError, ParameterError
from evertree.hierarchy import Hierarchy, from_state
from evertree.input.arrays import as_column_names, as_count, as_height, as_whole_number
from evertree.input.keys import KeyTable
from evertree.kernels.columns import TO_FIND
from evertree.locking import one_at_a_time
from evertree.state import State
from evertree.tree.statistics import checked_largest


class DistributedHierarchy:
    """A hierarchical clustering of points that are spread over the workers of a Dask cluster.

    Made by `evertree.distributed.cluster` and `evertree.distributed.load`. The tree is in parts, each of them the
    result of a task; what is above them is small, and on the driver. Close it, or use ``with``, to stop the local
    cluster that was started for it; a client that was given stays open.

    Notes
    -----
    Keys are numbers: 0, 1, 2, … in the order of insertion. Edits are all or nothing. The same points give the same tree
    for any number of workers, any chunks, and any order in which tasks end; the seed, the size of parts and the history
    of edits matter.

    Examples
    --------
    >>> import dask.array as da
    >>> X = da.random.default_rng(0).normal(size=(100, 4), chunks=(30, 4))
    >>> with et.distributed.cluster(X, client, part_size=40) as t:
    ...     labels = t.cut(n_clusters=5)
    >>> labels
    dask.array<concatenate, shape=(100,), dtype=int64, chunksize=(40,), chunktype=numpy.ndarray>
    >>> int(labels.max().compute())
    4
    """

    def __init__(self, connection: Connection, tree: DistributedTree, seed: int) -> None:
        self._connection = connection
        self._tree = tree
        self._seed = seed
        self._n_points = 0
        self._next_key = 0
        self._shape: tuple[int, np.dtype[Any]] | None = None
        self._column_names: tuple[str, ...] | None = None
        self._largest = 0.0  # coordinate of any point so far
        self._report = DistributedReport(0, 0, 0, 0, 0, 0.0, None)
        self._blocks: tuple[DistributedTree, keyed_arrays.KeyBlocks] | None = None  # and the tree they belong to
        self._origin: str | None = None  # the directory that parts are read from again if workers are lost
        self._lock = threading.RLock()

    def __len__(self) -> int:
        return self._n_points

    def __repr__(self) -> str:
        scheme = self._tree.scheme
        n_columns, dtype = self._shape or (0, None)
        columns = f", {n_columns} column{'' if n_columns == 1 else 's'} of {dtype}" if n_columns else ""
        parts = len(self._tree.handles)
        state = "" if self._connection.is_open else ", closed"
        return (
            f"DistributedHierarchy(linkage={scheme.linkage.name!r}, metric={scheme.metric_name}): "
            f"{len(self):,} points{columns}, in {parts} part{'' if parts == 1 else 's'}{state}"
        )

    @property
    def linkage(self) -> str:
        """The linkage."""
        return self._tree.scheme.linkage.name

    @property
    def metric(self) -> str:
        """The metric."""
        return str(self._tree.scheme.metric)

    @property
    def metric_params(self) -> dict[str, Any] | None:
        """The parameters of the metric."""
        return self._tree.scheme.metric_params

    @property
    def column_names(self) -> tuple[str, ...] | None:
        """The names of the columns of the first data frame; later ones are put in its order. None without any."""
        return self._column_names

    @property
    def client(self) -> Any:
        """The Dask client that sends the tasks; its ``dashboard_link`` shows them."""
        return self._connection.client

    @property
    def n_parts(self) -> int:
        """The number of parts of the tree."""
        return len(self._tree.handles)

    @property
    def report(self) -> DistributedReport:
        """What the last edit did, and how long it took.

        Examples
        --------
        >>> t = et.distributed.cluster([[0.0], [1.0], [5.0]], client)
        >>> t.report.stopped_by, t.report.parts
        ('stable', 1)
        """
        return self._report

    def keys(self) -> Any:
        """The live keys in ascending order, as a Dask array. Arrays of labels have the same order.

        Examples
        --------
        >>> t = et.distributed.cluster([[0.0], [1.0], [5.0]], client)
        >>> t.remove([1])
        >>> t.keys().compute()
        array([0, 2])
        """
        tree = self._tree
        parts = list(tree.handles.values())
        return keyed_arrays.to_dask("keys", parts, self._key_blocks(tree), keyed_arrays.keys_of_part)

    def cut(self, n_clusters: int | None = None, height: float | None = None) -> Any:
        """Cut the tree into `n_clusters` clusters, or at a height.

        Parameters
        ----------
        n_clusters : int
            From 1 to the number of points.
        height : float
            In SciPy's units, as in `linkage_matrix`.

        Returns
        -------
        labels : dask.array.Array of int
            The cluster of each of ``keys()``: 0, 1, … by first appearance. It is lazy, and stays that of the tree that
            was cut when the tree changes.

        Examples
        --------
        >>> t = et.distributed.cluster([[0.0], [5.0], [1.0]], client)
        >>> t.cut(n_clusters=2).compute()
        array([0, 1, 0])
        >>> t.cut(height=0.5).compute()
        array([0, 1, 2])
        """
        if (n_clusters is None) == (height is None):
            raise ParameterError("cut takes n_clusters or height, and one of them only")
        if not len(self):
            raise EmptyHierarchyError("cut needs at least one point; the hierarchy is empty")
        if n_clusters is not None:
            n_clusters = as_count("n_clusters", n_clusters, len(self))
        if height is not None:
            height = as_height("height", height)
        tree = self._tree
        parts, blocks = list(tree.handles.values()), self._key_blocks(tree)
        found = cut_tree.cut_tree(self._runner(), tree, n_clusters, height)
        same = [tree.scheme] * len(parts), [tree.aim] * len(parts)
        by_part = *same, found.n_splits, found.labels
        return keyed_arrays.to_dask("labels", parts, blocks, cut_tree.label_part, *by_part)

    def linkage_matrix(self, k: int) -> NDArray[np.float64]:
        """The highest `k` merges, as SciPy's matrix over the clusters below them.

        Parameters
        ----------
        k : int
            At most the number of points minus one: then it is the whole tree, which must fit into memory.

        Returns
        -------
        Z : array of shape (k, 4)
            Leaf i is cluster i of ``cut(n_clusters=k + 1)``. The fourth column counts points.

        Examples
        --------
        >>> t = et.distributed.cluster([[0.0], [5.0], [1.0], [7.0]], client)
        >>> t.linkage_matrix(1)[:, :2], t.linkage_matrix(1)[:, 3]
        (array([[0., 1.]]), array([4.]))
        >>> t.linkage_matrix(3)[:, :2]
        array([[0., 2.],
               [1., 3.],
               [4., 5.]])
        """
        most = max(len(self) - 1, 0)
        if as_whole_number("k", k) > most:
            raise ParameterError(f"k must be at most {most}, one less than there are points; it is {k}")
        if k == 0:
            return np.empty((0, 4))
        return cut_tree.upper_merges(cut_tree.cut_tree(self._runner(), self._tree, k + 1, None))

    @one_at_a_time
    def insert(self, X: Any, progress: bool | Callable[[Progress], object] | None = None) -> range:
        """Add points: all of them, or on an error none.

        Each point goes to the part in which it belongs, and the tree is refined from there. A batch larger than the
        tree is inserted in several steps, each of which at most doubles it.

        Parameters
        ----------
        X : dask.array.Array, dask.dataframe.DataFrame, or an array or data frame in memory
            A row for each point.
        progress : bool or callable, optional
            As for `cluster`.

        Returns
        -------
        keys : range
            The keys of the new points.

        Examples
        --------
        >>> t = et.distributed.cluster([[0.0], [5.0]], client)
        >>> t.insert([[1.0]])
        range(2, 3)
        >>> t.cut(n_clusters=2).compute()
        array([0, 1, 0])
        """
        with self._edit(progress) as edit:
            runner, tree = edit.runner, self._tree
            X, names = in_order(X, self.column_names)
            chunks = read(runner, X, tree.scheme, tree.part_size, self._shape, self._next_key)
            keys = range(self._next_key, self._next_key + chunks.n_rows)
            if not keys:
                return keys
            largest = max(self._largest, chunks.largest)
            checked_largest(float(len(self) + len(keys)), largest, chunks.n_columns)
            if not tree.handles:
                edit.tree = build.build_tree(runner, chunks, tree, self._seed)
                edit.refine()
            else:
                for batch in chunks.batches(runner, len(self), tree.part_size):
                    edit.tree.replace_parts(runner, build.insert_chunks(runner, edit.tree, batch))
                    edit.refine()
            shape = chunks.n_columns, chunks.dtype
            edit.commit(
                len(self) + len(keys),
                _next_key=keys.stop,
                _shape=shape,
                _largest=largest,
                _column_names=names or self.column_names,
            )
            return keys

    @one_at_a_time
    def remove(self, keys: Any, progress: bool | Callable[[Progress], object] | None = None) -> None:
        """Remove points by key: all of them, or on an error none.

        Parameters
        ----------
        keys : a key, or a collection of keys, which may be a Dask array
        progress : bool or callable, optional
            As for `cluster`.

        Examples
        --------
        >>> t = et.distributed.cluster([[0.0], [5.0], [1.0]], client)
        >>> t.remove([0, 2])
        >>> len(t)
        1
        """
        gone = keyed_arrays.as_int_keys(keys, self.client)
        if not gone.size:
            return
        with self._edit(progress) as edit:
            runner, tree = edit.runner, edit.tree
            handles = {}
            for number, some in keyed_arrays.find_keys(runner, tree, gone).items():
                how = tree.scheme, tree.aim, tree.is_due(number)
                handles[number] = runner.submit("remove", remove_from, tree.handles[number], some, *how)
            runner.wait(handles.values())
            tree.replace_parts(runner, handles)
            edit.refine()
            edit.commit(len(self) - gone.size)

    def is_monotone(self) -> bool:
        """Whether no node is lower than its child. Scans the whole tree.

        Examples
        --------
        >>> et.distributed.cluster([[0.0], [5.0], [1.0]], client).is_monotone()
        True
        """
        return self._tree.scan(self._runner())[0] == 0

    def is_homogeneous(self) -> bool:
        """Whether no grandchild is closer to its parent's sibling than to its own sibling. Scans the whole tree.

        With average linkage it is, after every edit. A stable Ward tree need not be.

        Examples
        --------
        >>> t = et.distributed.cluster([[0.0], [5.0], [1.0]], client, linkage="average", metric="sqeuclidean")
        >>> t.is_homogeneous()
        True
        """
        return self._tree.scan(self._runner())[1] == 0

    def validate(self) -> None:
        """Check every invariant of the tree, with statistics recomputed from the points; for tests.

        Raises
        ------
        InvariantError
            If one does not hold: a bug in evertree.

        Examples
        --------
        >>> et.distributed.cluster([[0.0], [5.0], [1.0]], client).validate()
        """
        self._tree.validate(self._runner(), len(self))

    def to_hierarchy(self) -> Hierarchy:
        """A `Hierarchy` with the same tree and the same keys, which must fit into memory.

        Examples
        --------
        >>> t = et.distributed.cluster([[0.0], [5.0], [1.0]], client)
        >>> h = t.to_hierarchy()
        >>> h.update([1], [[2.0]])
        >>> h
        Hierarchy(linkage='ward', metric='euclidean'): 3 points, 1 column of float64
        """
        tree = self._tree
        if not len(self):
            options: dict[str, Any] = {"search_width": tree.aim.search_width, "seed": self._seed}
            options |= {"metric_params": self.metric_params, "column_names": self.column_names}
            return Hierarchy(self.linkage, self.metric, **options)
        whole = tree.whole(self._runner())
        live = to_live(whole, tree.scheme, tree.aim)
        live.may_sketch = True
        kernels.shared.neighbours.forget_all(live.tree, live.search, TO_FIND)
        order = np.argsort(whole.ids)
        leaves = (2 * order).astype(np.int32)
        keys = KeyTable.assembled(whole.ids[order].tolist(), leaves, True, self._next_key, self._next_key)
        state = State(live, keys, None, self._seed, self.column_names)
        return from_state(state)

    @one_at_a_time
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the tree to a directory of Parquet files, which all workers must see. `load` reads it.

        If a tree was saved there before, the new one takes its place in one step, when all of it is written: whatever
        happens, there is a tree to load.

        Examples
        --------
        >>> t = et.distributed.cluster([[0.0], [5.0], [1.0]], client)
        >>> t.save("tree")
        >>> et.distributed.load("tree", client).cut(n_clusters=2).compute()
        array([0, 1, 0])
        """
        runner = self._runner()
        parquet_files.write_tree(runner, path, self._header(), self._tree)
        if self._origin == os.path.realpath(path):
            # The files that parts were read from are gone: read them from the new ones.
            metadata = parquet_files.read_metadata(path)
            top = parquet_files.read_top(path, metadata)
            self._tree.reload(parquet_files.read_parts(runner, path, metadata, self._tree.scheme, top))

    def close(self) -> None:
        """Release the tree on the workers, and stop the local cluster that was started for it.

        A client that was given stays open. Earlier arrays of labels and keys can still be computed on it.

        Examples
        --------
        >>> t = et.distributed.cluster([[0.0], [5.0], [1.0]], client)
        >>> t.close()
        >>> t
        DistributedHierarchy(linkage='ward', metric='euclidean'): 3 points, 1 column of float64, in 1 part, closed
        """
        self._tree.release()
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _runner(self, reporter: ProgressReporter | None = None) -> DaskRunner:
        return DaskRunner(self._connection.client, reporter)

    def _key_blocks(self, tree: DistributedTree) -> keyed_arrays.KeyBlocks:
        """Which keys are in which part: counted when it is first needed after an edit."""
        found = self._blocks  # another thread may edit meanwhile
        if found is None or found[0] is not tree:
            blocks = keyed_arrays.count_blocks(self._runner(), list(tree.handles.values()), tree.part_size)
            self._blocks = found = tree, blocks
        return found[1]

    @contextmanager
    def _edit(self, progress: Any) -> Iterator[_TreeEdit]:
        with showing(progress) as callback:
            edit = _TreeEdit(self, self._runner(ProgressReporter(callback)))
            try:
                yield edit
            except BaseException:
                if self._tree is not edit.tree:  # Ctrl-C may come after the commit
                    edit.runner.release()
                raise

    def _header(self) -> Mapping[str, Any]:
        """The metadata of a saved tree."""
        tree = self._tree
        n_columns, dtype = self._shape or (None, None)
        params = self.metric_params or {}
        return {
            "linkage": self.linkage,
            "metric": self.metric,
            "metric_params": {
                name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in params.items()
            },
            "search_width": tree.aim.search_width,
            "part_size": tree.part_size,
            "seed": self._seed,
            "n_points": len(self),
            "n_columns": n_columns,
            "dtype": None if dtype is None else dtype.name,
            "column_names": self.column_names,
            "largest": self._largest,
            "next_key": self._next_key,
        }

    @classmethod
    def _restored(
        cls, connection: Connection, tree: DistributedTree, header: Mapping[str, Any], origin: str
    ) -> DistributedHierarchy:
        """The inverse of `_header`."""
        t = cls(connection, tree, header["seed"])
        t._n_points, t._next_key, t._largest = header["n_points"], header["next_key"], header["largest"]
        t._shape = None if header["dtype"] is None else (header["n_columns"], np.dtype(header["dtype"]))
        t._report = DistributedReport(0, 0, 0, len(tree.handles), 0, 0.0, None)
        t._column_names = as_column_names(header.get("column_names"))  # older versions wrote none
        t._origin = origin
        return t


class _TreeEdit:
    """An edit, made on a copy of the tree that takes the place of the tree when all is done."""

    def __init__(self, t: DistributedHierarchy, runner: DaskRunner) -> None:
        self._t, self.runner, self.tree = t, runner, t._tree.copy()
        self._counts: list[RoundCounts] = []
        self._start, self._sent_before = time.perf_counter(), runner.bytes_sent()

    def refine(self) -> None:
        """Refine the tree across its parts."""
        self._counts.append(self.tree.refine(self.runner))

    def commit(self, n_points: int, **state: Any) -> None:
        """Put the edited tree, its number of points, and further attributes in place."""
        report = DistributedReport(
            rounds=sum(counts.rounds for counts in self._counts),
            moves=sum(counts.moves for counts in self._counts),
            grafts=sum(counts.grafts for counts in self._counts),
            parts=len(self.tree.handles),
            bytes_moved=self._bytes_moved(),
            seconds=time.perf_counter() - self._start,
            stopped_by=self._counts[-1].stopped_by,
        )
        # In one step: Ctrl-C comes before or after it.
        state |= {"_tree": self.tree, "_n_points": n_points, "_blocks": None, "_report": report}
        self._t.__dict__.update(state)

    def _bytes_moved(self) -> int:
        """The bytes that live workers have sent since the edit began."""
        before = self._sent_before
        return sum(sent - before.get(worker, 0) for worker, sent in self.runner.bytes_sent().items())
