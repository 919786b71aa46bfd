"""`HierarchyVerdicts`: how good a tree is, by its own account. None of it changes the tree."""

from __future__ import annotations

import math
import numbers
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evertree import kernels
from evertree.errors import InvariantError, ParameterError, UnstableError, listed
from evertree.hierarchy.reader import HierarchyReader
from evertree.input.arrays import as_whole_number
from evertree.locking import of_one_moment
from evertree.tree import certificate, invariants


class Instability(NamedTuple):
    """The share of nodes in a blocking pair, as `Hierarchy.instability` gives it.

    Attributes
    ----------
    fraction : float
        Of the nodes looked at.
    low, high : float
        The ends of the confidence interval for the share of all nodes; equal to the fraction if all were looked at.
    n_nodes : int
        How many were looked at.

    Examples
    --------
    >>> h = et.agglomerate(np.random.default_rng(0).normal(size=(100, 2)))
    >>> h.instability(sample=None)
    Instability(fraction=0.0, low=0.0, high=0.0, n_nodes=198)
    """

    fraction: float
    low: float
    high: float
    n_nodes: int

    @classmethod
    def of(cls, n_blocked: int, n_nodes: int, confidence: float | None) -> Instability:
        """The share, and Wilson's interval for it; with no confidence it is of all nodes, and exact.

        Examples
        --------
        >>> et.Instability.of(5, 100, confidence=None)
        Instability(fraction=0.05, low=0.05, high=0.05, n_nodes=100)
        """
        share = n_blocked / max(n_nodes, 1)
        if confidence is None:
            return cls(share, share, share, n_nodes)
        z = NormalDist().inv_cdf((1 + confidence) / 2)
        center = (share + z * z / (2 * n_nodes)) / (1 + z * z / n_nodes)
        reach = z / (1 + z * z / n_nodes) * math.sqrt(share * (1 - share) / n_nodes + (z / (2 * n_nodes)) ** 2)
        # At the ends of the scale the interval ends there too, but for rounding.
        low = 0.0 if n_blocked == 0 else center - reach
        high = 1.0 if n_blocked == n_nodes else center + reach
        return cls(share, low, high, n_nodes)


class HierarchyVerdicts(HierarchyReader):
    """What is true of the tree: homogeneous, monotone, stable. Each is found out by looking at all of it."""

    @of_one_moment
    def is_homogeneous(self) -> bool:
        """Whether no grandchild is closer to its parent's sibling than to its own sibling. Scans the whole tree.

        This is the paper's Definition 4, checked at every node. See `violations`.

        Examples
        --------
        >>> h = et.Hierarchy.random(np.random.default_rng(0).normal(size=(50, 2)))
        >>> h.is_homogeneous()
        False
        >>> report = h.refine(until="homogeneous")
        >>> h.is_homogeneous()
        True
        """
        return self.violations().size == 0

    @of_one_moment
    def violations(self) -> NDArray[np.int32]:
        """The nodes with a child that is closer to the node's sibling than to its own sibling. Scans the whole tree.

        Values that differ by less than 1e-9 of the larger (1e-5 for float32), or by less than rounding explains, are
        equal.

        Examples
        --------
        >>> h = et.Hierarchy.from_linkage([[0, 2, 1, 2], [1, 3, 1, 3]], [[0.0], [1.0], [9.0]])
        >>> [h.members(node) for node in h.violations()]
        [[0, 2]]
        """
        found = np.empty(len(self), np.int32)
        if len(self) < 3:
            return found[:0]
        return found[
            : kernels.shared.violations.find_violations(self.state.live.for_scanning(), self.state.live.tag, found)
        ]

    @of_one_moment
    def is_monotone(self) -> bool:
        """Whether no node is lower than its child. Scans the whole tree.

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> keys = h.insert([[0.0], [5.0], [1.0]])
        >>> h.is_monotone()
        True
        """
        if len(self) < 3:
            return True
        found = np.empty(len(self), np.int32)
        return int(kernels.shared.violations.find_inversions(self.state.live.tree, self.state.live.tag, found)) == 0

    @of_one_moment
    def is_stable(self) -> bool:
        """Whether the tree is monotone and no two clusters would both rather merge with each other: a batch tree.

        The search is exhaustive, whatever the hierarchy's ``search_width`` is: O(n² m) at most for linkages with
        statistics, where bounds leave out much of it in few columns, and O(n² depth) for those that compare pairs.

        Examples
        --------
        >>> X = np.random.default_rng(0).normal(size=(200, 2))
        >>> h = et.Hierarchy(goal="homogeneous")
        >>> keys = h.insert(X)
        >>> h.is_stable()
        False
        >>> report = h.refine(until="stable")
        >>> h.is_stable()
        True
        """
        return self.is_monotone() and not self.state.live.blocked(self.nodes()).any()

    @of_one_moment
    def instability(self, sample: int | None = 1000, confidence: float = 0.95) -> Instability:
        """The share of nodes that are in a blocking pair: how far the tree is from batch, without a batch run.

        Parameters
        ----------
        sample : int or None
            How many nodes to draw; None for all. Each is searched exhaustively, which takes up to O(n m), or, for
            linkages that compare pairs, O(n m) for each of its points.
        confidence : float
            Of the interval.

        Returns
        -------
        instability : Instability
            ``fraction``, and the ends ``low`` and ``high`` of its confidence interval (Wilson).

        Notes
        -----
        The hierarchy's seed decides which nodes are drawn. The figure is for monotone trees, as they are after every
        edit; of a tree from `Hierarchy.random` or `Hierarchy.from_linkage` it is a rough one before the first.

        Examples
        --------
        >>> h = et.Hierarchy(goal="homogeneous")
        >>> keys = h.insert(np.random.default_rng(0).normal(size=(1000, 2)))
        >>> before = h.instability(sample=500)
        >>> before.low < before.fraction < before.high
        True
        >>> report = h.refine(until="stable")
        >>> h.instability(sample=500).fraction < before.low
        True
        """
        size = None if sample is None else as_whole_number("sample", sample)
        if size == 0:
            raise ParameterError("sample must be a positive integer, or None for all nodes; it is 0")
        if not (isinstance(confidence, numbers.Real) and 0 < confidence < 1):
            raise ParameterError(f"confidence must be a number between 0 and 1; it is {confidence!r}")
        nodes = self.nodes()[:-1]  # the root has no partner
        is_sample = size is not None and size < nodes.size
        if is_sample:
            nodes = np.random.default_rng(self.seed).choice(nodes, size, replace=False)
        n_blocked = int(self.state.live.blocked(nodes).sum()) if nodes.size else 0
        return Instability.of(n_blocked, nodes.size, float(confidence) if is_sample else None)

    @of_one_moment
    def certify(self) -> None:
        """Replay the merges in order of height, and raise unless each was a minimum when it was made.

        Then batch clustering could have made the tree, ties broken in some way. O(n² m); for linkages that compare
        pairs O(n²) in memory too.

        Raises
        ------
        UnstableError
            If it is not a batch tree; the text names two clusters that should have merged.

        Examples
        --------
        >>> X = np.random.default_rng(0).normal(size=(200, 2))
        >>> h = et.Hierarchy(search_width=None)
        >>> keys = h.insert(X)
        >>> report = h.refine()
        >>> h.certify()  # says nothing: all is well
        >>> et.Hierarchy.random(X).certify()
        Traceback (most recent call last):
        evertree.errors.UnstableError: the tree is not a batch tree: ...
        """
        if len(self) < 3:
            return
        found = np.empty(len(self), np.int32)
        if kernels.shared.violations.find_inversions(self.state.live.tree, self.state.live.tag, found):
            raise UnstableError(
                f"the tree is not a batch tree: {self._named(found[0])} is higher than its parent. refine() mends that"
            )
        flaw = certificate.find_flaw(self.state.live)
        if flaw is not None:
            raise UnstableError(
                f"the tree is not a batch tree: {self._named(flaw[0])} and {self._named(flaw[1])} are closer to each "
                "other than what they merge with. refine() looks for such pairs, with search_width=None for all"
            )

    @of_one_moment
    def validate(self) -> None:
        """Check every invariant of the tree, its statistics recomputed from the points; for tests.

        O(n m log n) with statistics, O(n² depth) for linkages that compare pairs.

        Raises
        ------
        InvariantError
            If one does not hold: a bug in evertree.

        Examples
        --------
        >>> h = et.Hierarchy()
        >>> keys = h.insert([[0.0], [5.0], [1.0]])
        >>> h.validate()
        """
        try:
            invariants.check_all_but_statistics(self.state.live, self.state.keys.leaves())
            invariants.check_statistics(self.state.live)
        except InvariantError as error:
            raise InvariantError(f"{error}: a bug in evertree, please report it") from None

    def _named(self, node: int) -> str:
        """A node in a text, by its keys."""
        return f"the cluster of {listed(self.members(int(node)))}"
