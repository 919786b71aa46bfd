"""`HierarchyReader`: the questions that a hierarchy answers. None of them changes it."""

from __future__ import annotations

import numbers
import threading
from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertree.errors import EmptyHierarchyError, ParameterError, UnknownNodeError
from evertree.input.arrays import as_keys, as_threads
from evertree.kernels.columns import NULL
from evertree.locking import of_one_moment
from evertree.state import State
from evertree.tree import views
from evertree.windows import Window

#: No leaves at all.
NO_LEAVES = np.empty(0, np.int32)


class HierarchyReader:
    """What can be read from a hierarchy. Nodes are numbers, valid until the next edit or ``refine``."""

    state: State

    @property
    def _lock(self) -> threading.RLock:
        return self.state.lock

    def __len__(self) -> int:
        return len(self.state.keys)

    @of_one_moment
    def __contains__(self, key: object) -> bool:
        return key in self.state.keys

    @of_one_moment
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

    @of_one_moment
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
        return self.state.live.points(self._leaves(keys))

    @of_one_moment
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
        return self.state.live.tree.size[self._leaves(keys)]

    @of_one_moment
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
        birth = self.state.live.tree.birth
        return np.searchsorted(birth[self.state.keys.leaves()], birth[self._leaves(keys)])  # births ascend

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

    def _leaves(self, keys: Any) -> NDArray[np.int32]:
        """The leaves of some keys; of all by default."""
        return self.state.keys.leaves() if keys is None else self.state.keys.leaves_of(as_keys(keys))

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
        self._set_threads(as_threads(n_jobs))

    def _set_threads(self, n_threads: int | None) -> None:
        self.state.live.aim = replace(self.state.live.aim, n_threads=n_threads)

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
    def root(self) -> int:
        """The node that holds all points.

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> keys = h.insert([[0.0], [1.0], [5.0]])
        >>> sorted(h.members(h.root))
        [0, 1, 2]
        """
        self._require_points("root")
        return self.state.live.root

    @of_one_moment
    def leaf(self, key: Hashable) -> int:
        """The leaf of a live point.

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> keys = h.insert([[0.0], [1.0], [5.0]])
        >>> h.members(h.sibling(h.leaf(0)))
        [1]
        """
        return int(self.state.keys.leaves_of([key])[0])

    @of_one_moment
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

    @of_one_moment
    def ancestors(self, key: Hashable) -> list[int]:
        """The nodes above the leaf of a key, from its parent to the root: the clusters that it is in.

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> keys = h.insert([[0.0], [5.0], [1.0]])
        >>> [h.members(node) for node in h.ancestors(0)]
        [[0, 2], [0, 1, 2]]
        """
        return self._above(self.leaf(key))

    @of_one_moment
    def parent(self, node: int) -> int:
        """The parent of a node; -1 (``et.NULL``) for the root.

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> keys = h.insert([[0.0], [1.0]])
        >>> h.parent(h.leaf(0)) == h.root, h.parent(h.root)
        (True, -1)
        """
        return int(self.state.live.tree.parent[self._known_node(node)])

    @of_one_moment
    def children(self, node: int) -> tuple[int, ...]:
        """The two children of a node; none for a leaf.

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> keys = h.insert([[0.0], [1.0]])
        >>> h.children(h.root) == (h.leaf(0), h.leaf(1)), h.children(h.leaf(0))
        (True, ())
        """
        u = self._known_node(node)
        left, right = int(self.state.live.tree.left[u]), int(self.state.live.tree.right[u])
        return () if left == NULL else (left, right)

    @of_one_moment
    def sibling(self, node: int) -> int:
        """The other child of a node's parent; -1 (``et.NULL``) for the root.

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> keys = h.insert([[0.0], [1.0]])
        >>> h.sibling(h.leaf(0)) == h.leaf(1), h.sibling(h.root)
        (True, -1)
        """
        u = self._known_node(node)
        p = int(self.state.live.tree.parent[u])
        if p == NULL:
            return NULL
        left, right = int(self.state.live.tree.left[p]), int(self.state.live.tree.right[p])
        return right if left == u else left

    @of_one_moment
    def members(self, node: int) -> list[Hashable]:
        """The keys of the points below a node, oldest first.

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> keys = h.insert([[0.0], [5.0], [1.0]])
        >>> h.members(h.parent(h.leaf(0)))
        [0, 2]
        """
        leaves = self.state.live.leaves(self._known_node(node))
        births = self.state.live.tree.birth[leaves]
        order = np.argsort(births)
        return self.state.keys.keys_of(leaves[order], births[order])

    @of_one_moment
    def height(self, node: int) -> float:
        """The linkage between the children of a node, in SciPy's units (Ward: √(2ζ)); 0 for a leaf.

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> keys = h.insert([[0.0], [3.0]])
        >>> h.height(h.root)
        3.0
        """
        value = self.state.live.linkage_values(np.array([self._known_node(node)], np.int32))
        return float(self.state.live.scheme.height(value[0]))

    @of_one_moment
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
        if isinstance(nodes, numbers.Integral):
            nodes = [nodes]
        chosen = self.nodes() if nodes is None else np.array([self._known_node(u) for u in nodes], np.int32)
        leaves = self.state.live.prototypes(chosen)
        return dict(
            zip(chosen.tolist(), self.state.keys.keys_of(leaves, self.state.live.tree.birth[leaves]), strict=True)
        )

    @of_one_moment
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

    @of_one_moment
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

    def _contents(self) -> str:
        """How many points there are, and of what, in words."""
        if len(self) == 0:
            return "empty"
        if self.state.live.n_columns is None:
            return _counted(len(self), "point")
        columns = _counted(self.state.live.n_columns, "column")
        return f"{_counted(len(self), 'point')}, {columns} of {self.state.live.dtype.name}"

    def _above(self, node: int) -> list[int]:
        """The nodes above one, up to the root."""
        parent = self.state.live.tree.parent
        found = []
        u = int(parent[node])
        while u != NULL:
            found.append(u)
            u = int(parent[u])
        return found

    def _known_node(self, node: Any) -> int:
        if isinstance(node, numbers.Integral) and not isinstance(node, bool):
            u = int(node)
            if self.state.live.is_in_use(u):
                return u
        raise UnknownNodeError(
            f"node must be a node of the tree as it is now; it is {node!r}. Node numbers are valid until the next "
            "edit or refine: see nodes(), or leaf(key) for the leaf of a key"
        )

    def _refuse_edits_since(self, n_edits: int) -> None:
        if self.state.n_edits != n_edits:
            raise ParameterError(
                "the hierarchy was changed by its own metric or progress callback while points were compared: they may "
                "read it, but not edit it"
            )

    def _refuse_while_read(self) -> None:
        if self.state.turns.is_mine:
            raise ParameterError("a metric must not edit the hierarchy that it is called for; it may read it")

    def _require_points(self, what: str) -> None:
        if len(self) == 0:
            raise EmptyHierarchyError(
                f"{what} needs at least one point, and the hierarchy is empty: insert points first"
            )


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("" if number == 1 else "s")
