"""`DistributedHierarchy`: a tree over more points than one machine holds, which reads like a `Hierarchy`."""

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
from evertree.distributed import arrays, checking, files, growing, labels
from evertree.distributed.clients import Connection
from evertree.distributed.keys import as_numbers, find_keys
from evertree.distributed.on_dask import OnDask
from evertree.distributed.parts import remove_from
from evertree.distributed.pieces import inflate
from evertree.distributed.progress import Progress, Teller, showing
from evertree.distributed.reading import read
from evertree.distributed.refining import Forest
from evertree.distributed.report import DistributedReport
from evertree.errors import EmptyHierarchyError, ParameterError
from evertree.hierarchy import Hierarchy
from evertree.input.arrays import as_count, as_height, as_whole_number
from evertree.input.keys import KeyTable
from evertree.kernels.columns import TO_FIND
from evertree.locking import one_at_a_time
from evertree.tree.statistics import checked_largest


class DistributedHierarchy:
    """A hierarchical clustering of points that are spread over the workers of a Dask cluster.

    Made by `evertree.distributed.cluster` and `evertree.distributed.load`. The tree lies in parts, each of which is the
    result of a task; what is above them is small and with the driver. Close it, or use ``with``, to end the local
    cluster that was started for it; a client that was given stays open.

    Notes
    -----
    Keys are numbers: that of the row for the first points, and for later ones the next. Edits happen wholly or not at
    all. The same points give the same tree whatever the number of workers, the chunks, and the order in which tasks
    end; the seed, the size of parts and the history of edits matter.

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

    def __init__(self, connection: Connection, forest: Forest, seed: int) -> None:
        self._connection = connection
        self._forest = forest
        self._seed = seed
        self._n_points = 0
        self._next_key = 0
        self._shape: tuple[int, np.dtype[Any]] | None = None
        self._largest = 0.0  # coordinate of all points so far
        self._report = DistributedReport(0, 0, 0, 0, 0, 0.0, None)
        self._layout: tuple[Forest, arrays.Layout] | None = None  # of the forest that it was found for
        self._origin: str | None = None  # the directory that parts are read from again if workers are lost
        self._lock = threading.RLock()

    def __len__(self) -> int:
        return self._n_points

    def __repr__(self) -> str:
        scheme = self._forest.scheme
        n_columns, dtype = self._shape or (0, None)
        columns = f", {n_columns} column{'' if n_columns == 1 else 's'} of {dtype}" if n_columns else ""
        parts = len(self._forest.handles)
        state = "" if self._connection.is_open else ", closed"
        return (
            f"DistributedHierarchy(linkage={scheme.linkage.name!r}, metric={scheme.metric_name}): "
            f"{len(self):,} points{columns}, in {parts} part{'' if parts == 1 else 's'}{state}"
        )

    @property
    def linkage(self) -> str:
        """The linkage."""
        return self._forest.scheme.linkage.name

    @property
    def metric(self) -> str:
        """The metric."""
        return str(self._forest.scheme.metric)

    @property
    def metric_params(self) -> dict[str, Any] | None:
        """The parameters of the metric."""
        return self._forest.scheme.metric_params

    @property
    def client(self) -> Any:
        """The Dask client that tasks are sent by; its ``dashboard_link`` shows them."""
        return self._connection.client

    @property
    def n_parts(self) -> int:
        """How many parts the tree lies in."""
        return len(self._forest.handles)

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
        """The live keys, ascending, as a Dask array: the order of every array that is aligned with the points.

        Examples
        --------
        >>> t = et.distributed.cluster([[0.0], [1.0], [5.0]], client)
        >>> t.remove([1])
        >>> t.keys().compute()
        array([0, 2])
        """
        forest = self._forest
        return arrays.to_array("keys", list(forest.handles.values()), self._blocks(forest), arrays.keys_of)

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
            The cluster of each of ``keys()``: 0, 1, … by first appearance. It is computed when you ask for it, and
            says what the tree was when it was cut, whatever becomes of the tree.

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
        forest = self._forest
        parts, blocks = list(forest.handles.values()), self._blocks(forest)
        found = labels.cut(self._runner(), forest, n_clusters, height)
        same = [forest.scheme] * len(parts), [forest.aim] * len(parts)
        return arrays.to_array("labels", parts, blocks, labels.label_part, *same, found.n_splits, found.numbers)

    def linkage_matrix(self, k: int) -> NDArray[np.float64]:
        """The top `k` merges, as SciPy's matrix over the clusters that they leave.

        Parameters
        ----------
        k : int
            Up to one less than the number of points: then it is the whole tree, which must fit in memory.

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
        return labels.linkage_matrix(labels.cut(self._runner(), self._forest, k + 1, None))

    @one_at_a_time
    def insert(self, X: Any, progress: bool | Callable[[Progress], object] | None = None) -> range:
        """Add points. All of them, or on an error none.

        Each goes to the part that owns its place, and the tree is refined from there. A batch larger than the tree is
        inserted in several steps, each of which at most doubles it.

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
            runner, forest = edit.runner, self._forest
            chunks = read(runner, X, forest.scheme, forest.part_size, self._shape, self._next_key)
            keys = range(self._next_key, self._next_key + chunks.n_rows)
            if not keys:
                return keys
            largest = max(self._largest, chunks.largest)
            checked_largest(float(len(self) + len(keys)), largest, chunks.n_columns)
            if not forest.handles:
                edit.forest = growing.grow(runner, chunks, forest, self._seed)
                edit.refine()
            else:
                for batch in chunks.batches(runner, len(self), forest.part_size):
                    edit.forest.edited(runner, growing.extend(runner, edit.forest, batch))
                    edit.refine()
            shape = chunks.n_columns, chunks.dtype
            edit.commit(len(self) + len(keys), _next_key=keys.stop, _shape=shape, _largest=largest)
            return keys

    @one_at_a_time
    def remove(self, keys: Any, progress: bool | Callable[[Progress], object] | None = None) -> None:
        """Delete points by key. All of them, or on an error none.

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
        gone = as_numbers(keys, self.client)
        if not gone.size:
            return
        with self._edit(progress) as edit:
            runner, forest = edit.runner, edit.forest
            handles = {}
            for number, some in find_keys(runner, forest, gone).items():
                how = forest.scheme, forest.aim, forest.is_due(number)
                handles[number] = runner.submit("remove", remove_from, forest.handles[number], some, *how)
            runner.wait(handles.values())
            forest.edited(runner, handles)
            edit.refine()
            edit.commit(len(self) - gone.size)

    def is_monotone(self) -> bool:
        """Whether no node is lower than its child. Scans the whole tree.

        Examples
        --------
        >>> et.distributed.cluster([[0.0], [5.0], [1.0]], client).is_monotone()
        True
        """
        return self._forest.scan(self._runner())[0] == 0

    def is_homogeneous(self) -> bool:
        """Whether no grandchild is closer to its parent's sibling than to its own sibling. Scans the whole tree.

        Of average linkage that is so after every edit. A stable Ward tree need not be.

        Examples
        --------
        >>> t = et.distributed.cluster([[0.0], [5.0], [1.0]], client, linkage="average", metric="sqeuclidean")
        >>> t.is_homogeneous()
        True
        """
        return self._forest.scan(self._runner())[1] == 0

    def validate(self) -> None:
        """Check every invariant of the tree, its statistics recomputed from the points; for tests.

        Raises
        ------
        InvariantError
            If one does not hold: a bug in evertree.

        Examples
        --------
        >>> et.distributed.cluster([[0.0], [5.0], [1.0]], client).validate()
        """
        checking.validate(self._runner(), self._forest, len(self))

    def to_hierarchy(self) -> Hierarchy:
        """A `Hierarchy` with the same tree and the same keys, where that fits in memory.

        Examples
        --------
        >>> t = et.distributed.cluster([[0.0], [5.0], [1.0]], client)
        >>> h = t.to_hierarchy()
        >>> h.update([1], [[2.0]])
        >>> h
        Hierarchy(linkage='ward', metric='euclidean'): 3 points, 1 column of float64
        """
        forest = self._forest
        width = forest.aim.search_width
        options: dict[str, Any] = {"metric_params": self.metric_params, "search_width": width, "seed": self._seed}
        h = Hierarchy(self.linkage, self.metric, **options)
        if not len(self):
            return h
        piece = forest.whole(self._runner())
        live = inflate(piece, forest.scheme, forest.aim)
        kernels.shared.neighbours.forget_all(live.tree, live.search, TO_FIND)
        order = np.argsort(piece.ids)
        leaves = (2 * order).astype(np.int32)
        h.state.live = live
        h.state.keys = KeyTable.assembled(piece.ids[order].tolist(), leaves, True, self._next_key, self._next_key)
        return h

    @one_at_a_time
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the tree to a directory of Parquet, which all workers must see. `load` reads it.

        It is written beside its place and put there when it is whole, also over a tree that was saved there before.

        Examples
        --------
        >>> t = et.distributed.cluster([[0.0], [5.0], [1.0]], client)
        >>> t.save("tree")
        >>> et.distributed.load("tree", client).cut(n_clusters=2).compute()
        array([0, 1, 0])
        """
        runner = self._runner()
        files.write(runner, path, self._header(), self._forest)
        if self._origin == os.path.realpath(path):
            # What parts were read from is gone: from now on they are read from what took its place.
            metadata = files.read_metadata(path)
            top = files.read_top(path, metadata)
            self._forest.reread(files.read_parts(runner, path, metadata, self._forest.scheme, top))

    def close(self) -> None:
        """Let the workers forget the tree, and end the local cluster that was started for it.

        A client that was given stays open. Labels and keys that were asked for before can still be computed on it.

        Examples
        --------
        >>> t = et.distributed.cluster([[0.0], [5.0], [1.0]], client)
        >>> t.close()
        >>> t
        DistributedHierarchy(linkage='ward', metric='euclidean'): 3 points, 1 column of float64, in 1 part, closed
        """
        self._forest.let_go()
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _runner(self, teller: Teller | None = None) -> OnDask:
        return OnDask(self._connection.client, teller)

    def _blocks(self, forest: Forest) -> arrays.Layout:
        """How keys are spread over parts; found when it is first needed after an edit."""
        found = self._layout  # another thread may edit meanwhile
        if found is None or found[0] is not forest:
            layout = arrays.find_layout(self._runner(), list(forest.handles.values()), forest.part_size)
            self._layout = found = forest, layout
        return found[1]

    @contextmanager
    def _edit(self, progress: Any) -> Iterator[_Edit]:
        with showing(progress) as callback:
            edit = _Edit(self, self._runner(Teller(callback)))
            try:
                yield edit
            except BaseException:
                if self._forest is not edit.forest:  # Ctrl-C may come when all is done
                    edit.runner.let_go()
                raise

    def _header(self) -> Mapping[str, Any]:
        """What a file has to say beside the tree."""
        forest = self._forest
        n_columns, dtype = self._shape or (None, None)
        params = self.metric_params or {}
        return {
            "linkage": self.linkage,
            "metric": self.metric,
            "metric_params": {
                name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in params.items()
            },
            "search_width": forest.aim.search_width,
            "part_size": forest.part_size,
            "seed": self._seed,
            "n_points": len(self),
            "n_columns": n_columns,
            "dtype": None if dtype is None else dtype.name,
            "largest": self._largest,
            "next_key": self._next_key,
        }

    @classmethod
    def _restored(
        cls, connection: Connection, forest: Forest, header: Mapping[str, Any], origin: str
    ) -> DistributedHierarchy:
        """What `_header` was taken of."""
        t = cls(connection, forest, header["seed"])
        t._n_points, t._next_key, t._largest = header["n_points"], header["next_key"], header["largest"]
        t._shape = None if header["dtype"] is None else (header["n_columns"], np.dtype(header["dtype"]))
        t._report = DistributedReport(0, 0, 0, len(forest.handles), 0, 0.0, None)
        t._origin = origin
        return t


class _Edit:
    """An edit of a tree on a copy of its forest, which takes its place when all is done."""

    def __init__(self, t: DistributedHierarchy, runner: OnDask) -> None:
        self._t, self.runner, self.forest = t, runner, t._forest.copy()
        self._rounds = self._moves = self._grafts = 0
        self._stopped_by: str | None = None
        self._start, self._sent_before = time.perf_counter(), runner.bytes_sent()

    def refine(self) -> None:
        """Refine the forest across the borders of its parts."""
        done = self.forest.refine(self.runner)
        self._rounds, self._moves, self._grafts = (
            self._rounds + done.rounds,
            self._moves + done.moves,
            self._grafts + done.grafts,
        )
        self._stopped_by = done.stopped_by

    def commit(self, n_points: int, **state: Any) -> None:
        """The edit is done: the tree has so many points now, and what else there is to know of it."""
        report = DistributedReport(
            rounds=self._rounds,
            moves=self._moves,
            grafts=self._grafts,
            parts=len(self.forest.handles),
            bytes_moved=self._bytes_moved(),
            seconds=time.perf_counter() - self._start,
            stopped_by=self._stopped_by,
        )
        # In one step, so that Ctrl-C comes before or after all of it.
        state |= {"_forest": self.forest, "_n_points": n_points, "_layout": None, "_report": report}
        self._t.__dict__.update(state)

    def _bytes_moved(self) -> int:
        """What workers have sent since the beginning, as far as those know that are still there."""
        before = self._sent_before
        return sum(sent - before.get(worker, 0) for worker, sent in self.runner.bytes_sent().items())
