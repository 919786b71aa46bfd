"""The paper's definitions, slow and plain. Every kernel is compared with these.

A tree is a point's number, or a pair of trees. A cluster is a frozenset of numbers. A linkage is a function of two
clusters; `ward` makes one from the points, and the others from a square matrix of dissimilarities.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np

Tree = int | tuple["Tree", "Tree"]
Cluster = frozenset[int]
Zeta = Callable[[Cluster, Cluster], float]

#: Linkage values that differ by less, relative to the larger, are equal.
TOLERANCE = 1e-9


# Trees (section 2.2)


def members(tree: Tree) -> Cluster:
    """The leaves below: the cluster of a vertex."""
    found, stack = [], [tree]
    while stack:
        t = stack.pop()
        if isinstance(t, tuple):
            stack.extend(t)
        else:
            found.append(t)
    return frozenset(found)


def subtrees(tree: Tree) -> list[Tree]:
    """All vertices, the root first."""
    found, stack = [], [tree]
    while stack:
        t = stack.pop()
        found.append(t)
        if isinstance(t, tuple):
            stack.extend(t)
    return found


def inner(tree: Tree) -> list[tuple[Tree, Tree]]:
    return [t for t in subtrees(tree) if isinstance(t, tuple)]


def clusters(tree: Tree) -> set[Cluster]:
    """C(τ): what a hierarchy is, whatever the order of children."""
    return {members(t) for t in subtrees(tree)}


def all_trees(points: list[int]) -> Iterator[Tree]:
    """All (2n − 3)!! hierarchies (`eq.numBinTree`)."""
    if len(points) == 1:
        yield points[0]
        return
    first, *rest = points
    for size in range(len(rest)):
        for beside in itertools.combinations(rest, size):
            left = [first, *beside]
            right = [p for p in rest if p not in beside]
            yield from itertools.product(all_trees(left), all_trees(right))


def random_tree(rng: np.random.Generator, n: int) -> Tree:
    """Any tree; not uniform."""
    forest: list[Tree] = list(range(n))
    while len(forest) > 1:
        i, j = rng.choice(len(forest), 2, replace=False)
        joined = (forest[i], forest[j])
        forest = [t for k, t in enumerate(forest) if k not in (i, j)] + [joined]
    return forest[0]


def families(tree: Tree) -> list[tuple[Tree, Tree, Tree]]:
    """(a, b, c) for every node with children a and b and sibling c."""
    found = []
    for left, right in inner(tree):
        if isinstance(left, tuple):
            found.append((*left, right))
        if isinstance(right, tuple):
            found.append((*right, left))
    return found


def replaced(tree: Tree, old: Tree, new: Tree) -> Tree:
    """The tree with one of its subtrees replaced."""
    if tree == old:
        return new
    if not isinstance(tree, tuple):
        return tree
    return (replaced(tree[0], old, new), replaced(tree[1], old, new))


def canonical(tree: Tree) -> Tree:
    """The same hierarchy with the child that holds the smallest number on the left."""
    if not isinstance(tree, tuple):
        return tree
    a, b = canonical(tree[0]), canonical(tree[1])
    return (a, b) if min(members(a)) < min(members(b)) else (b, a)


def nni(tree: Tree, family: tuple[Tree, Tree, Tree], far: Tree) -> Tree:
    """NNI(τ, far) (`def:NNIMove`): swap `far`, one of a and b, with c."""
    a, b, c = family
    near = b if far == a else a
    for grandparent in ((family[:2], c), (c, family[:2])):
        if grandparent in subtrees(tree):
            return replaced(tree, grandparent, ((near, c), far))
    raise ValueError("no such family")


# Linkages (`eq.Linkage`)


def ward(x: np.ndarray, w: np.ndarray | None = None) -> Zeta:
    """`eq.WardLinkage`, in exact arithmetic: means of duplicates must not differ by rounding here."""
    rows = [[Fraction(value) for value in row] for row in x.tolist()]
    weight = [Fraction(value) for value in (np.ones(len(x)) if w is None else w).tolist()]

    def mean(A: Cluster) -> tuple[Fraction, list[Fraction]]:
        size = sum(weight[i] for i in A)
        return size, [sum(weight[i] * rows[i][k] for i in A) / size for k in range(x.shape[1])]

    @functools.cache
    def zeta(A: Cluster, B: Cluster) -> float:
        (size_a, mean_a), (size_b, mean_b) = mean(A), mean(B)
        sq_dist = sum((p - q) ** 2 for p, q in zip(mean_a, mean_b, strict=True))
        return float(size_a * size_b / (size_a + size_b) * sq_dist)

    return zeta


def average(d: np.ndarray, w: np.ndarray | None = None) -> Zeta:
    """`eq.AverageLinkage` on a square matrix of dissimilarities."""
    w = np.ones(len(d)) if w is None else w

    @functools.cache
    def zeta(A: Cluster, B: Cluster) -> float:
        a, b = sorted(A), sorted(B)
        return float(w[a] @ d[np.ix_(a, b)] @ w[b] / (w[a].sum() * w[b].sum()))

    return zeta


def single(d: np.ndarray, w: np.ndarray | None = None) -> Zeta:
    """`eq.SingleLinkage`."""
    return functools.cache(lambda A, B: float(min(d[i, j] for i in A for j in B)))


def complete(d: np.ndarray, w: np.ndarray | None = None) -> Zeta:
    """`eq.CompleteLinkage`."""
    return functools.cache(lambda A, B: float(max(d[i, j] for i in A for j in B)))


def minimax(d: np.ndarray, w: np.ndarray | None = None) -> Zeta:
    """`eq.MinimaxLinkage`."""
    return functools.cache(lambda A, B: float(min(max(d[i, j] for j in A | B) for i in A | B)))


def prototype(d: np.ndarray, A: Cluster, tolerance: float = TOLERANCE) -> int:
    """The point of A from which all others are nearest, the smallest number of several."""
    radius = {i: max(d[i, j] for j in A) for i in A}
    return min(i for i in A if not less(min(radius.values()), radius[i], tolerance))


def medoid(d: np.ndarray, w: np.ndarray, A: Cluster, tolerance: float = TOLERANCE) -> int:
    """The point of A with the least weighted sum of dissimilarities to the others, the smallest number of several."""
    total = {i: sum(w[j] * d[i, j] for j in A) for i in A}
    return min(i for i in A if not less(min(total.values()), total[i], tolerance))


def lance_williams(name: str, a: float, b: float, c: float) -> tuple[float, float, float, float]:
    """`tab.Recurrence` for clusters A, B, C of the given sizes: α_A, α_B, β, γ."""
    return {
        "single": (0.5, 0.5, 0.0, -0.5),
        "complete": (0.5, 0.5, 0.0, 0.5),
        "average": (a / (a + b), b / (a + b), 0.0, 0.0),
        "ward": ((a + c) / (a + b + c), (b + c) / (a + b + c), -c / (a + b + c), 0.0),
    }[name]


def sqeuclidean(x: np.ndarray) -> np.ndarray:
    """`eq.SquaredEuclidean`."""
    return ((x[:, None, :] - x[None, :, :]) ** 2).sum(axis=2)


def cosine(x: np.ndarray) -> np.ndarray:
    """`eq.Cosine`; what rounding leaves between equal directions is taken for zero."""
    unit = x / np.sqrt((x**2).sum(axis=1))[:, None]
    d = 1 - unit @ unit.T
    return np.where(d < 1e-14, 0.0, d)


def sum_of_squared_errors(x: np.ndarray, w: np.ndarray | None = None) -> float:
    w = np.ones(len(x)) if w is None else w
    centre = np.average(x, axis=0, weights=w)
    return float(w @ ((x - centre) ** 2).sum(axis=1))


def of(zeta: Zeta, s: Tree, t: Tree) -> float:
    return zeta(members(s), members(t))


def less(x: float, y: float, tolerance: float = TOLERANCE) -> bool:
    """Whether x is below y by more than the tolerance."""
    return x < y - tolerance * abs(y)


# Homogeneity (section 3) and the anytime procedure (section 4)


def wanted_moves(tree: Tree, zeta: Zeta, tolerance: float = TOLERANCE) -> list[tuple[tuple[Tree, Tree, Tree], Tree]]:
    """All the moves that `tab.OHC` may make next: families that violate homogeneity, with G*; both where it is tied."""
    found = []
    for a, b, c in families(tree):
        ab, ac, bc = of(zeta, a, b), of(zeta, a, c), of(zeta, b, c)
        if less(min(ac, bc), ab, tolerance):
            found += [((a, b, c), far) for far, near in ((a, bc), (b, ac)) if not less(min(ac, bc), near, tolerance)]
    return found


def is_homogeneous(tree: Tree, zeta: Zeta, tolerance: float = TOLERANCE) -> bool:
    """`def.LocalStructuralOptimality` at every grandchild."""
    return not wanted_moves(tree, zeta, tolerance)


def is_monotone(tree: Tree, zeta: Zeta) -> bool:
    """`def.treeMonotonicity`."""
    return not any(less(zeta(members(a) | members(b), members(c)), of(zeta, a, b)) for a, b, c in families(tree))


def find_place(tree: Tree, i: int, zeta: Zeta) -> Tree:
    """The K of `tab.Insert`; a tie goes to the child with the smaller number."""
    k = tree
    while isinstance(k, tuple):
        left, right = sorted(k, key=lambda t: min(members(t)))
        to_left, to_right = of(zeta, left, i), of(zeta, right, i)
        if not less(min(to_left, to_right), of(zeta, left, right)):
            break
        k = right if less(to_right, to_left) else left
    return k


def batch(zeta: Zeta, n: int) -> Tree:
    """`tab.HAC`."""
    forest: list[Tree] = list(range(n))
    while len(forest) > 1:
        i, j = min(itertools.combinations(range(len(forest)), 2), key=lambda p: of(zeta, forest[p[0]], forest[p[1]]))
        joined = (forest[i], forest[j])
        forest = [t for k, t in enumerate(forest) if k not in (i, j)] + [joined]
    return forest[0]


# Objectives


def total_linkage(tree: Tree, zeta: Zeta) -> float:
    """H (`eq.totallinkagecost`)."""
    return sum(of(zeta, a, b) for a, b in inner(tree))


def linkage_by_level(tree: Tree, zeta: Zeta, n: int) -> list[float]:
    """L(τ) of `thm.Convergence`: the sum of linkages at each level, from the top."""
    sums = [0.0] * max(n - 1, 1)
    level, nodes = 0, [tree]
    while nodes:
        pairs = [t for t in nodes if isinstance(t, tuple)]
        if pairs:
            sums[level] = math.fsum(of(zeta, a, b) for a, b in pairs)
        nodes = [child for pair in pairs for child in pair]
        level += 1
    return sums


def sorted_heights(tree: Tree, zeta: Zeta) -> list[float]:
    """S(τ) of `lem.AverageConvergence`, each value once."""
    return sorted(of(zeta, a, b) for a, b in inner(tree))


# Measures


def tree_value(tree: Tree, d: np.ndarray, w: np.ndarray) -> float:
    total = 0.0
    for a, b in inner(tree):
        size = w[sorted(members(a) | members(b))].sum()
        total += size * sum(w[i] * w[j] * d[i, j] for i in members(a) for j in members(b))
    return total


def dendrogram_purity(tree: Tree, labels: np.ndarray) -> float:
    shares = []
    for a, b in inner(tree):
        below = labels[sorted(members(a) | members(b))]
        for i in members(a):
            shares += [np.mean(below == labels[i]) for j in members(b) if labels[i] == labels[j]]
    return float(np.mean(shares)) if shares else 1.0


def cophenetic(tree: Tree, zeta: Zeta, monotone: bool = True) -> np.ndarray:
    """U of section 5.2, a square matrix; with a running maximum of heights it is an ultrametric."""
    n = len(members(tree))
    u = np.zeros((n, n))
    height: dict[Tree, float] = {}
    for t in reversed(subtrees(tree)):
        if not isinstance(t, tuple):
            height[t] = 0.0
            continue
        a, b = t
        height[t] = max(of(zeta, a, b), height[a], height[b]) if monotone else of(zeta, a, b)
        for i, j in itertools.product(members(a), members(b)):
            u[i, j] = u[j, i] = height[t]
    return u
