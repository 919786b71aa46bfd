"""`HierarchyExports`: a hierarchy for other tools and for the eye. Nodes have SciPy's numbers in all of it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from evertree import exchange, plotting
from evertree.errors import ParameterError
from evertree.partition import Partition
from evertree.reader import HierarchyReader
from evertree.refinement import Report


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
        text = exchange.write_newick(self.linkage_matrix(), self.keys(), branch_lengths)
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
        return _written(exchange.to_nested_json(self.linkage_matrix(), self.keys()), path)

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
        return exchange.to_digraph(self.linkage_matrix(), self.keys())

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
        return exchange.to_node_frame(self.linkage_matrix(), self.keys())

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
        labels = options.pop("labels", None) if partition is None else partition
        if isinstance(partition, Partition):
            if partition.keys != self.keys():
                raise ParameterError(
                    "partition must be of the points that are live now: make it again with partition()"
                )
            labels = partition.labels
        return plotting.plot_dendrogram(self.linkage_matrix(), self.keys(), labels=labels, **options)

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


def _written(text: str, path: str | os.PathLike[str] | None) -> str:
    if path is not None:
        Path(path).write_bytes((text + "\n").encode())  # a text that cannot be encoded leaves no empty file
    return text
