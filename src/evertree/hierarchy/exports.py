"""`HierarchyExports`: a hierarchy for other tools and for the eye. Nodes have SciPy's numbers in all of it."""

from __future__ import annotations

import math
import os
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertree import plotting
from evertree.errors import ParameterError
from evertree.hierarchy.reader import HierarchyReader
from evertree.io import html
from evertree.io.atomic_write import atomic_write
from evertree.io.graph import to_digraph
from evertree.io.nested_json import to_nested_json
from evertree.io.newick import write_newick
from evertree.io.node_frame import to_node_frame
from evertree.kernels.columns import GOAL, HOMOGENEOUS
from evertree.locking import of_one_moment
from evertree.partition import Partition
from evertree.plotting.dendrogram import as_labels
from evertree.tree import views
from evertree.tree.refine import Report

#: Clusters at the bottom of what a notebook shows.
_N_GLANCE = 30

#: The largest clusters that have prototypes on a page where they are found by comparing all pairs of points.
_MOST_COMPARED = 4_000

#: Points that are looked at for the prototypes of a page elsewhere. Clusters for which there are no more have none.
_MOST_LOOKED_AT = 5_000_000


class HierarchyExports(HierarchyReader):
    """Other forms of a tree.

    Leaves are numbered 0, 1, … in the order of ``keys()``, and then merges in the order of ``linkage_matrix()``, whose
    heights they have. These numbers last until the next edit or ``refine``.
    """

    def to_newick(self, path: str | os.PathLike[str] | None = None, branch_lengths: bool = True) -> str:
        """The tree as Newick text, the format of phylogenetics.

        The branch above a node is as long as its parent is higher, so each leaf is as far from the root as the root is
        high.

        Parameters
        ----------
        path : str or path, optional
            A file to write it to, as UTF-8.
        branch_lengths : bool
            Whether to write lengths, with all digits.

        Returns
        -------
        text : str
            Labels are ``str(key)``, in quotes where needed.

        Examples
        --------
        >>> h = et.Hierarchy("single")
        >>> keys = h.insert([[0.0], [1.0], [5.0]], keys=["a", "b", "c"])
        >>> h.to_newick()
        '(c:4.0,(a:1.0,b:1.0):3.0);'
        """
        text = write_newick(*self._tree_and_keys(), branch_lengths)
        return _written(text, path)

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """The tree as nested JSON, which ``d3.hierarchy`` reads.

        Parameters
        ----------
        path : str or path, optional
            A file to write it to.

        Returns
        -------
        text : str
            An inner node has ``height``, ``size`` and ``children``; a leaf has ``key`` instead of children. Keys that
            JSON has no type for become text.

        Examples
        --------
        >>> h = et.Hierarchy("single")
        >>> keys = h.insert([[0.0], [1.0]], keys=["a", "b"])
        >>> h.to_json()
        '{"height": 1.0, "size": 2, "children": [{"key": "a", "height": 0.0, "size": 1}, {"key": "b", ...}]}'
        """
        return _written(to_nested_json(*self._tree_and_keys()), path)

    def to_networkx(self) -> Any:
        """The tree as a graph, with edges from parents to children.

        Returns
        -------
        graph : networkx.DiGraph
            Nodes have attributes ``height`` and ``size``, and leaves ``key``.

        Examples
        --------
        >>> h = et.Hierarchy("single")
        >>> keys = h.insert([[0.0], [1.0], [5.0]], keys=["a", "b", "c"])
        >>> graph = h.to_networkx()
        >>> sorted(graph.edges)
        [(3, 0), (3, 1), (4, 2), (4, 3)]
        >>> graph.nodes[2]["key"], graph.nodes[4]["height"]
        ('c', 4.0)
        """
        return to_digraph(*self._tree_and_keys())

    def to_frame(self) -> Any:
        """A table with a row for each node.

        Returns
        -------
        frame : pandas.DataFrame
            Columns ``parent``, ``left``, ``right``, ``height``, ``size`` and ``key``.

        Examples
        --------
        >>> h = et.Hierarchy("single")
        >>> keys = h.insert([[0.0], [1.0]], keys=["a", "b"])
        >>> frame = h.to_frame()
        >>> frame["key"].tolist(), frame["height"].tolist()
        (['a', 'b', None], [0.0, 0.0, 1.0])
        """
        return to_node_frame(*self._tree_and_keys())

    @of_one_moment
    def to_html(
        self,
        path: str | os.PathLike[str] | None = None,
        partition: Partition | Any = None,
        *,
        title: str | None = None,
        columns: Mapping[Any, Any] | None = None,
    ) -> str:
        """The tree as a page to look through: one HTML file, which any browser opens and which needs no network.

        At first the top of the tree is open, as in `plot`. Clusters open and close with a click or a key; keys can be
        found; a slider cuts the tree into any number of clusters. Only what is in view is drawn, so that trees of 10⁵
        points and more can be opened wholly.

        Parameters
        ----------
        path : str or path, optional
            A file to write it to. A page that is there already is replaced when the new one is complete.
        partition : Partition or array of int, optional
            Clusters that give the branches their colours: a partition of the live points, or labels such as `cut`
            gives them. By default the tree is cut into 2 to 10 clusters, those that stay the same over the widest range
            of heights, in proportion.
        title : str, optional
            By default the linkage and the metric.
        columns : mapping or data frame, optional
            More to know about the points: from names to values in the order of ``keys()``. A point shows its own, and a
            cluster the most frequent ones or, of more than 20 different numbers, their mean and range.

        Returns
        -------
        text : str
            The page.

        Raises
        ------
        ParameterError, DimensionError
            For a partition of other points, and for labels or columns that are not one for each.

        Notes
        -----
        Keys are shown as their ``str()``, never as markup, and the page lets no script run but its own. 100,000 points
        take about 4 MB. `prototypes` are shown for the clusters of cuts into up to 50, as long as they can be found
        soon: for linkages that compare pairs of points, where the cluster has at most 4,000 points, and for others,
        where all these clusters together have at most 5,000,000.

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> keys = h.insert([[0.0], [1.0], [5.0]], keys=["ant", "bee", "ape"])
        >>> page = h.to_html("tree.html", h.partition(n_clusters=2), columns={"kind": ["insect", "insect", "mammal"]})
        >>> page[:15]
        '<!doctype html>'
        """
        if title is not None and not isinstance(title, str):
            raise ParameterError(f"title must be a text; it is {type(title).__name__}")
        Z, keys = self._tree_and_keys()
        labels = None if partition is None else as_labels(_labels_of(partition, keys), len(keys))
        prototypes = self._prototypes_of_merges(Z, html.nodes_with_prototypes(Z, labels)) if keys else {}
        data = html.PageData(Z, keys, labels, prototypes, columns)
        facts = [self._contents()] if title is None else [self._name(), self._contents()]
        return _written(html.render_page(data, self._name() if title is None else title, facts), path)

    def plot(self, partition: Partition | Any = None, **options: Any) -> Any:
        """Draw the dendrogram, or the top of a large one.

        Parameters
        ----------
        partition : Partition or array of int, optional
            Clusters that give the branches their colours: a partition of the live points, or labels such as `cut`
            gives them.
        **options
            As for `evertree.plotting.plot_dendrogram`: ``n_shown`` (50 clusters at the bottom; None for all leaves),
            ``orientation`` (``"top"`` or ``"left"``), ``leaf_labels``, ``ax``, ``title`` and others.

        Returns
        -------
        ax : matplotlib.axes.Axes

        Examples
        --------
        >>> from matplotlib.figure import Figure
        >>> h = et.Hierarchy()
        >>> keys = h.insert([[0.0], [1.0], [5.0]], keys=["a", "b", "c"])
        >>> ax = h.plot(h.partition(n_clusters=2), ax=Figure().subplots())
        >>> [text.get_text() for text in ax.get_xticklabels()]
        ['c', 'a', 'b']
        """
        Z, keys = self._tree_and_keys()
        labels = options.pop("labels", None) if partition is None else _labels_of(partition, keys)
        return plotting.plot_dendrogram(Z, keys, labels=labels, **options)

    def plot_refinement(self, report: Report, ax: Any = None) -> Any:
        """Draw how the quality of the tree rose, and moves were made, over the time of a refinement.

        Parameters
        ----------
        report : Report
            What `refine` gave.
        ax : matplotlib.axes.Axes, optional
            By default a new figure is made.

        Returns
        -------
        ax : matplotlib.axes.Axes

        Examples
        --------
        >>> from matplotlib.figure import Figure
        >>> h = et.Hierarchy.random(np.random.default_rng(0).normal(size=(200, 2)))
        >>> ax = h.plot_refinement(h.refine(), ax=Figure().subplots())
        >>> ax.get_xlabel()
        'seconds'
        """
        if not isinstance(report, Report):
            raise ParameterError(f"report must be what refine() gave; it is {type(report).__name__}")
        seconds, quality, moves = zip(*report.history, strict=True)
        return plotting.plot_refinement(seconds, quality, moves, ax=ax)

    def animate_refinement(self, path: str | os.PathLike[str] | None = None, **options: Any) -> Any:
        """Draw how the tree would be refined until its goal, as a moving picture. The tree does not change.

        Parameters
        ----------
        path : str or path, optional
            The file to write, such as ``"refining.gif"``.
        **options
            As for `evertree.plotting.animate_refinement`: ``n_clusters`` for colours, ``measure`` for what the curve
            shows, ``points`` for places in the plane, ``n_frames``, ``fps`` and others.

        Returns
        -------
        animation : matplotlib.animation.FuncAnimation

        Examples
        --------
        >>> h = et.Hierarchy.random(np.random.default_rng(0).normal(size=(20, 2)))
        >>> animation = h.animate_refinement("refining.gif", n_clusters=3, n_frames=5, hold=0, dpi=50)
        """
        return plotting.animate_refinement(self, path, **options)

    @of_one_moment
    def _repr_html_(self) -> str:
        """What a notebook shows: what the tree is, how far it is from its goal, and its top."""
        top = views.find_top(self.state.live, _N_GLANCE)
        leaves = top.nodes[top.size == 1]
        names = (
            [str(key) for key in self.state.keys.keys_of(leaves, self.state.live.tree.birth[leaves])]
            if leaves.size
            else []
        )
        texts = names + [f"({size:,})" for size in top.size[leaves.size :].tolist()]
        facts = {"points": self._contents(), "goal": self.goal}
        if len(self):
            facts["quality"] = self._quality()
        return html.render_preview(self._name(), facts, top, texts)

    @of_one_moment
    def _tree_and_keys(self) -> tuple[NDArray[np.float64], list[Hashable]]:
        """The linkage matrix, and the keys of its leaves."""
        return self.linkage_matrix(), self.keys()

    def _prototypes_of_merges(self, Z: NDArray[np.float64], merges: NDArray[np.intp]) -> dict[int, int]:
        """The leaves that stand for some merges of `Z`, by their numbers there, where that is not slow."""
        live, leaves = self.state.live, self.state.keys.leaves()
        size = Z[merges - leaves.size, 3]
        is_soon = _within(size, _MOST_LOOKED_AT) if live.scheme.has_statistics else size <= _MOST_COMPARED
        merges = np.sort(merges[is_soon])
        if merges.size == 0:
            return {}
        nodes = views.find_merges(live).inner[merges - leaves.size]
        number = np.empty(live.tree.parent.size, np.intp)
        number[leaves] = np.arange(leaves.size)
        return dict(zip(merges.tolist(), number[live.prototypes(nodes)].tolist(), strict=True))

    def _name(self) -> str:
        metric = self.metric if isinstance(self.metric, str) else self.state.live.scheme.metric_name
        return f"{self.linkage.capitalize()} on {metric}"

    def _quality(self) -> str:
        """The share of nodes that have been looked at and need nothing; of the others, none may need anything."""
        live = self.state.live
        n_nodes = 2 * len(self) - 1
        n_waiting = min(live.n_pending + (live.n_due if live.aim.is_stable else 0), n_nodes)
        if not (live.aim.is_stable or live.work.state[GOAL] == HOMOGENEOUS or live.scheme.linkage.strongly_reducible):
            n_waiting = n_nodes  # it was refined to the other goal, and may have left this one
        if n_waiting == 0 or len(self) < 3:
            return "100%: the tree has reached its goal"
        if n_waiting == n_nodes:
            return f"unknown: all {n_nodes:,} nodes are to be looked at, see refine()"
        share = math.floor(1000 * (1 - n_waiting / n_nodes)) / 10
        return f"at least {share:.1f}%: {n_waiting:,} of {n_nodes:,} nodes are to be looked at, see refine()"


def _labels_of(partition: Partition | Any, keys: list[Hashable]) -> Any:
    """The labels of a partition, if it is of the live points; anything else is taken to be labels."""
    if not isinstance(partition, Partition):
        return partition
    if partition.keys != keys:
        raise ParameterError("partition must be of the points that are live now: make it again with partition()")
    return partition.labels


def _within(costs: NDArray[np.float64], budget: float) -> NDArray[np.bool_]:
    """Which of some things to take, if each is taken in turn that still can be paid."""
    is_taken = np.zeros(costs.size, np.bool_)
    for i, cost in enumerate(costs.tolist()):
        is_taken[i] = cost <= budget
        budget -= cost if is_taken[i] else 0
    return is_taken


def _written(text: str, path: str | os.PathLike[str] | None) -> str:
    if path is not None:
        content = (text + "\n").encode()  # a text that cannot be encoded leaves the file as it is
        with atomic_write(path) as file:
            file.write(content)
    return text
