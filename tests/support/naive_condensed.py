"""Condensed trees by definition, on sets of points: what the kernels of `condensed` are compared with.

A tree is given by its merges: pairs of a frozenset of points, the cluster that a merge makes, and a height, children
first. After Campello, Moulavi, Zimek and Sander, *Hierarchical density estimates for data clustering, visualization,
and outlier detection* (2015), and hdbscan's choices where that is silent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

Cluster = frozenset[int]

#: Stabilities that differ by less, relative to that of the larger cluster, are equal.
TIE = 1e-9


@dataclass
class Node:
    """A cluster of the condensed tree."""

    points: Cluster  # when it is born
    born: float  # the height at which it is
    left_at: dict[int, float] = field(default_factory=dict)  # the height at which each of its points leaves it
    children: list[Node] = field(default_factory=list)  # that with the older point first

    @property
    def died(self) -> float:
        return min(self.left_at.values())

    @property
    def stability(self) -> float:
        """Σ over its points of λ when they leave less λ when it was born; nothing if it is born at infinity."""
        if density(self.born) == math.inf:
            return 0.0
        return math.fsum(density(height) - density(self.born) for height in self.left_at.values())

    def all(self) -> list[Node]:
        """This cluster and those below, level by level."""
        found, level = [], [self]
        while level:
            found += level
            level = [child for node in level for child in node.children]
        return found


def density(height: float) -> float:
    """λ."""
    return math.inf if height == 0 else 1 / height


def merges_of(Z: np.ndarray) -> list[tuple[Cluster, float]]:
    """The merges of a linkage matrix."""
    found = [(frozenset([i]), 0.0) for i in range(len(Z) + 1)]
    for a, b, height, _ in Z.tolist():
        found.append((found[int(a)][0] | found[int(b)][0], height))
    return found[len(Z) + 1 :]


def condense(merges: list[tuple[Cluster, float]], n: int, fewest: int) -> Node:
    """The condensed tree.

    A point leaves a cluster where the piece that it is in, when the tree is cut lower and lower, has fewer than
    `fewest` points, or where the cluster falls into two pieces that have more.
    """
    pieces = {frozenset([i]): 0.0 for i in range(n)} | dict(merges)
    root = Node(frozenset(range(n)), math.inf)
    waiting = [root]
    while waiting:
        node = waiting.pop()
        piece = node.points
        while piece:
            height = pieces[piece]
            parts = [p for p in pieces if p < piece and not any(p < q < piece for q in pieces)]
            large = sorted((p for p in parts if len(p) >= fewest), key=min)
            if len(large) != 1:
                node.left_at |= dict.fromkeys(piece, height)
                node.children = [Node(part, height) for part in large]
                piece = frozenset()
            else:
                node.left_at |= dict.fromkeys(piece - large[0], height)
                piece = large[0]
        waiting += node.children
    return root


def excess_of_mass(root: Node, may_be_one: bool) -> list[Node]:
    """The disjoint clusters with the largest sum of stabilities; a tie goes to the larger one."""

    def best(node: Node) -> tuple[float, list[Node]]:
        parts = [best(child) for child in node.children]
        below = sum(value for value, _ in parts)
        if (node is root and not may_be_one) or below > node.stability * (1 + TIE):
            return below, [chosen for _, found in parts for chosen in found]
        return node.stability, [node]

    return best(root)[1]


def leaves(root: Node) -> list[Node]:
    return [node for node in root.all() if not node.children and node is not root]


def merge_below(root: Node, selected: list[Node], epsilon: float, may_be_one: bool) -> list[Node]:
    """Clusters born below a height give way to the lowest above them that was not."""
    parent = {id(child): node for node in root.all() for child in node.children}

    def above(node: Node) -> Node:
        p = parent[id(node)]
        if p is root:
            return root if may_be_one else node
        return p if p.born > epsilon else above(p)

    if root in selected or epsilon == 0:
        return selected
    return [above(node) if node.born < epsilon else node for node in selected]


@dataclass
class Answer:
    """What a selection says of each point, as hdbscan says it."""

    selected: list[Node]
    labels: list[int]
    probabilities: list[float]


def answer(root: Node, fewest: int, method: str, epsilon: float, may_be_one: bool) -> Answer:
    n = len(root.points)
    found = leaves(root) if method == "leaf" else excess_of_mass(root, may_be_one and n >= fewest)
    selected = list({id(node): node for node in merge_below(root, found, epsilon, may_be_one)}.values())
    owner: dict[int, Node] = {}
    leaves_at = {i: node.left_at[i] for node in root.all() for i in node.points}  # of the smallest
    for node in [node for node in root.all() if any(node is s for s in selected)]:
        for i in node.points:
            if node is not root or (len(selected) == 1 and leaves_at[i] <= (epsilon or root.died)):
                owner[i] = node
    numbers: dict[int, int] = {}
    for i in range(n):
        if i in owner:
            numbers.setdefault(id(owner[i]), len(numbers))
    labels = [numbers[id(owner[i])] if i in owner else -1 for i in range(n)]
    probabilities = [0.0] * n
    for i, node in owner.items():
        own, last = density(leaves_at[i]), density(node.died)
        probabilities[i] = 1.0 if own == math.inf else min(own, last) / last
    shown = {id(node): node for node in owner.values()}
    return Answer(sorted(shown.values(), key=lambda node: numbers[id(node)]), labels, probabilities)


def outlier_scores(root: Node) -> list[float]:
    """GLOSH."""
    found = [0.0] * len(root.points)
    for node in root.all():
        densest = max(density(below.died) for below in node.all())
        for i, height in node.left_at.items():  # the last word has the smallest cluster
            own = density(height)
            found[i] = 0.0 if own == math.inf else 1.0 if densest == math.inf else (densest - own) / densest
    return found
