"""`HierarchyStarts`: ways to start that are not an empty tree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from evertree.errors import DimensionError, InvalidKeyError, listed
from evertree.hierarchy.workings import HierarchyWorkings
from evertree.input.arrays import as_keys
from evertree.input.frames import is_frame, take_keys
from evertree.io.newick import read_newick
from evertree.tree import initial


class HierarchyStarts(HierarchyWorkings):
    """Trees to start from: a random one, and those of others. None is refined."""

    @classmethod
    def random(
        cls,
        X: Any,
        linkage: str = "ward",
        metric: str | Callable[..., Any] = "euclidean",
        *,
        keys: Any = None,
        sample_weight: Any = None,
        **options: Any,
    ) -> Self:
        """A hierarchy drawn uniformly from all binary hierarchies over the points. It is not refined.

        The first edit makes all moves that are wanted; call `refine` before, to control the time.

        Parameters
        ----------
        X, keys, sample_weight
            As for `insert`.
        linkage, metric, **options
            As for `Hierarchy`; ``seed`` decides what is drawn.

        Examples
        --------
        >>> X = np.random.default_rng(0).normal(size=(100, 2))
        >>> h = et.Hierarchy.random(X, seed=1)
        >>> h.is_monotone()
        False
        >>> h.refine().stable
        True
        """
        h = cls(linkage, metric, **options)  # type: ignore[call-arg]
        leaves, _ = h._begin(X, keys, sample_weight)
        initial.shape_at_random(h.state.live, leaves, h.seed)
        h.state.live.rebuild()
        return h

    @classmethod
    def from_linkage(
        cls,
        Z: Any,
        X: Any,
        linkage: str = "ward",
        metric: str | Callable[..., Any] = "euclidean",
        *,
        keys: Any = None,
        sample_weight: Any = None,
        **options: Any,
    ) -> Self:
        """The tree of a SciPy linkage matrix, of any method, over its points. It is not refined.

        The first edit makes all moves that are wanted; call `refine` before, to control the time.

        Parameters
        ----------
        Z : array of shape (n - 1, 4)
            Its heights are not used: they follow from the linkage and the points.
        X, keys, sample_weight
            As for `insert`: row i of `X` is leaf i of `Z`.
        linkage, metric, **options
            As for `Hierarchy`. They need not be those that `Z` was made with.

        Examples
        --------
        >>> from scipy.cluster.hierarchy import linkage
        >>> X = np.random.default_rng(0).normal(size=(100, 2))
        >>> h = et.Hierarchy.from_linkage(linkage(X, "single"), X)
        >>> h.refine().stable
        True
        """
        h = cls(linkage, metric, **options)  # type: ignore[call-arg]
        return h._grown(X, keys, sample_weight, lambda *_: Z)

    @classmethod
    def from_newick(
        cls,
        text: str,
        X: Any,
        linkage: str = "ward",
        metric: str | Callable[..., Any] = "euclidean",
        *,
        keys: Any = None,
        resolve: bool = False,
        **options: Any,
    ) -> Self:
        """The tree of a Newick text over its points. It is not refined.

        Parameters
        ----------
        text : str
        X : as for `insert`
            Without `keys`, row i is the i-th leaf of the text.
        linkage, metric, **options
            As for `Hierarchy`. Lengths in the text are not used: heights follow from the linkage and the points.
        keys : collection, optional
            The key of each row of `X`; the texts of these are the labels of the leaves, in any order. By default the
            labels are the keys.
        resolve : bool
            What to do with a node of three or more children: refuse it, or merge them one after the other.

        Examples
        --------
        >>> h = et.Hierarchy.from_newick("((a,b),c);", [[0.0], [1.0], [5.0]])
        >>> h.keys(), h.members(h.sibling(h.leaf("a")))
        (['a', 'b', 'c'], ['b'])
        >>> h = et.Hierarchy.from_newick("((1,2),0);", [[5.0], [1.0], [0.0]], keys=[0, 1, 2])
        >>> h.members(h.sibling(h.leaf(1)))
        [2]
        """
        tree = read_newick(text, resolve)
        if isinstance(keys, str) and is_frame(X):
            keys, X = take_keys(X, keys)
        if metric != "precomputed" and len(X) != len(tree.labels):
            raise DimensionError(
                f"X must have a row for each of the {len(tree.labels)} leaves of the text; it has {len(X)}"
            )
        if keys is None:
            return cls.from_linkage(tree.Z, X, linkage, metric, keys=tree.labels, **options)
        chosen = as_keys(keys)
        row_of = {str(key): i for i, key in enumerate(chosen)}
        if len(row_of) < len(chosen) or set(row_of) != set(tree.labels):
            raise InvalidKeyError(
                "the texts of keys must be the labels of the leaves, each once; without a leaf: "
                f"{listed(sorted(set(row_of) - set(tree.labels)))}; without a key: "
                f"{listed(sorted(set(tree.labels) - set(row_of)))}"
            )
        row = np.array([*(row_of[label] for label in tree.labels), *range(len(chosen), 2 * len(chosen))])
        Z = tree.Z.copy()
        Z[:, :2] = row[Z[:, :2].astype(np.int64)]
        return cls.from_linkage(Z, X, linkage, metric, keys=chosen, **options)
