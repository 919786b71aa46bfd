"""Checks of the tree of a hierarchy: homogeneous, monotone, stable. Nothing here changes it."""

from __future__ import annotations

import math
import numbers
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evertree import kernels
from evertree.errors import InvariantError, ParameterError, UnstableError, listed
from evertree.input.arrays import as_whole_number
from evertree.nodes import members
from evertree.state import State
from evertree.tree import certificate, invariants


class Instability(NamedTuple):
    """The share of nodes in a blocking pair, as returned by `Hierarchy.instability`.

    Attributes
    ----------
    fraction : float
        The share among the sampled nodes.
    low, high : float
        The ends of the confidence interval for the share among all nodes; equal to the fraction if all were sampled.
    n_nodes : int
        The number of sampled nodes.

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
        """The share with its Wilson interval; without a confidence, the exact share of all nodes.

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
        # At 0 and 1 the interval ends there too, except for rounding.
        low = 0.0 if n_blocked == 0 else center - reach
        high = 1.0 if n_blocked == n_nodes else center + reach
        return cls(share, low, high, n_nodes)


def violations(state: State) -> NDArray[np.int32]:
    """The nodes with a child that is closer to the node's sibling than to its own sibling."""
    found = np.empty(len(state.keys), np.int32)
    if len(state.keys) < 3:
        return found[:0]
    return found[: kernels.shared.violations.find_violations(state.live.for_scanning(), state.live.tag, found)]


def is_monotone(state: State) -> bool:
    """Whether no node is lower than its child."""
    if len(state.keys) < 3:
        return True
    found = np.empty(len(state.keys), np.int32)
    return int(kernels.shared.violations.find_inversions(state.live.tree, state.live.tag, found)) == 0


def is_stable(state: State) -> bool:
    """Whether the tree is monotone and has no blocking pair: by its slack, or by exhaustive search."""
    if state.live.is_exact:
        return True
    return is_monotone(state) and not state.live.blocked(state.live.nodes()).any()


def instability(state: State, sample: int | None, confidence: float) -> Instability:
    """The share of nodes that are in a blocking pair: see `Hierarchy.instability`."""
    size = None if sample is None else as_whole_number("sample", sample)
    if size == 0:
        raise ParameterError("sample must be a positive integer, or None for all nodes; it is 0")
    if not (isinstance(confidence, numbers.Real) and 0 < confidence < 1):
        raise ParameterError(f"confidence must be a number between 0 and 1; it is {confidence!r}")
    nodes = state.live.nodes()[:-1]  # the root has no partner
    is_sample = size is not None and size < nodes.size
    if is_sample:
        nodes = np.random.default_rng(state.seed).choice(nodes, size, replace=False)
    n_blocked = int(state.live.blocked(nodes).sum()) if nodes.size else 0
    return Instability.of(n_blocked, nodes.size, float(confidence) if is_sample else None)


def certify(state: State) -> None:
    """Raise unless each merge was a minimum when it was made: see `Hierarchy.certify`."""
    if len(state.keys) < 3:
        return
    found = np.empty(len(state.keys), np.int32)
    if kernels.shared.violations.find_inversions(state.live.tree, state.live.tag, found):
        raise UnstableError(
            f"the tree is not a batch tree: {_named(state, found[0])} is higher than its parent. refine() mends that"
        )
    flaw = certificate.find_flaw(state.live)
    if flaw is not None:
        raise UnstableError(
            f"the tree is not a batch tree: {_named(state, flaw[0])} and {_named(state, flaw[1])} are closer to each "
            "other than what they merge with. refine() looks for such pairs, with search_width=None for all"
        )


def validate(state: State, most: int | None = None) -> None:
    """Check every invariant of the tree; with more than `most` points, those that take linear time."""
    try:
        invariants.check_all_but_statistics(state.live, state.keys.leaves())
        if most is None or len(state.keys) <= most:
            invariants.check_statistics(state.live)
        else:
            invariants.check_unions(state.live)
    except InvariantError as error:
        raise InvariantError(f"{error}: a bug in evertree, please report it") from None


def _named(state: State, node: int) -> str:
    """A node as text, by its keys."""
    return f"the cluster of {listed(members(state, int(node)))}"
