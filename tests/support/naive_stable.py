"""Stable trees, by definition: blocking pairs, grafts, and all that batch clustering may give.

Trees, clusters and linkages are those of `naive`. A node of a tree is one of its subtrees: all of them differ.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence

from naive import (
    TOLERANCE,
    Cluster,
    Tree,
    Zeta,
    canonical,
    less,
    members,
    nni,
    replaced,
    subtrees,
    wanted_moves,
)

Pair = tuple[Tree, Tree, float]
Move = tuple[tuple[Tree, Tree, Tree], Tree]

#: The same few trees come again and again.
cluster = functools.cache(members)


def between(zeta: Zeta, s: Tree, t: Tree) -> float:
    return zeta(cluster(s), cluster(t))


def height(tree: Tree, zeta: Zeta) -> float:
    """ζ between the two children; 0 for a leaf."""
    return between(zeta, *tree) if isinstance(tree, tuple) else 0.0


def total_weight(tree: Tree, weight: Sequence[float]) -> float:
    return math.fsum(weight[i] for i in cluster(tree))


@functools.cache
def parents(tree: Tree) -> dict[Tree, tuple[Tree, Tree]]:
    """The parent of every node but the root."""
    return {child: t for t in subtrees(tree) if isinstance(t, tuple) for child in t}


@functools.cache
def pairs_apart(tree: Tree) -> list[tuple[Tree, Tree]]:
    """All pairs of disjoint nodes that are not siblings, each once."""
    parent = parents(tree)
    return [
        (A, Q)
        for A, Q in itertools.combinations(parent, 2)
        if parent[A] != parent[Q] and cluster(A).isdisjoint(cluster(Q))
    ]


def is_monotone(tree: Tree, zeta: Zeta, tolerance: float = TOLERANCE) -> bool:
    """`naive.is_monotone`, faster."""
    return not any(
        less(height(parent, zeta), height(child, zeta), tolerance) for child, parent in parents(tree).items()
    )


# Blocking pairs


def blocking_pairs(tree: Tree, zeta: Zeta, tolerance: float = TOLERANCE) -> list[Pair]:
    """All (A, Q, ζ(A,Q)) of pairs that both exist by ζ(A,Q) and would rather merge with each other."""
    parent, found = parents(tree), []
    for A, Q in pairs_apart(tree):
        value = between(zeta, A, Q)
        from_here = max(height(A, zeta), height(Q, zeta))
        until = min(height(parent[A], zeta), height(parent[Q], zeta))
        if not less(value, from_here, tolerance) and less(value, until, tolerance):
            found.append((A, Q, value))
    return found


def is_stable(tree: Tree, zeta: Zeta, tolerance: float = TOLERANCE) -> bool:
    return is_monotone(tree, zeta, tolerance) and not blocking_pairs(tree, zeta, tolerance)


# Moves and grafts


def graft(tree: Tree, cut: Tree, target: Tree) -> Tree:
    """The tree with `cut` beside `target`; the sibling that it leaves moves up."""
    left, right = parent = parents(tree)[cut]
    without = replaced(tree, parent, right if left == cut else left)
    return replaced(without, target, (target, cut))


def cut_and_target(A: Tree, Q: Tree, weight: Sequence[float], tolerance: float = TOLERANCE) -> tuple[Tree, Tree]:
    """The lighter of two is cut off; where they weigh the same, the younger: its smallest number is larger."""
    of_a, of_q = total_weight(A, weight), total_weight(Q, weight)
    if less(of_a, of_q, tolerance):
        return A, Q
    if less(of_q, of_a, tolerance):
        return Q, A
    return (A, Q) if min(cluster(A)) > min(cluster(Q)) else (Q, A)


def wanted_grafts(
    tree: Tree, zeta: Zeta, weight: Sequence[float], tolerance: float = TOLERANCE
) -> list[tuple[Tree, Tree]]:
    """(cut, target) for every blocking pair."""
    return [cut_and_target(A, Q, weight, tolerance) for A, Q, _ in blocking_pairs(tree, zeta, tolerance)]


def wanted_stable_moves(tree: Tree, zeta: Zeta, strongly_reducible: bool, tolerance: float = TOLERANCE) -> list[Move]:
    """The paper's moves; for Ward only those that do not work against grafts."""
    wanted = wanted_moves(tree, zeta, tolerance)
    if strongly_reducible:
        return wanted
    return [move for move in wanted if joins_existing(move, zeta, tolerance) or mends_higher(move, zeta, tolerance)]


def joins_existing(move: Move, zeta: Zeta, tolerance: float = TOLERANCE) -> bool:
    """Whether both near and c exist by ζ(near,c)."""
    (a, b, c), far = move
    near = b if far == a else a
    return not less(between(zeta, near, c), max(height(near, zeta), height(c, zeta)), tolerance)


def mends(move: Move, zeta: Zeta, tolerance: float = TOLERANCE) -> bool:
    """Whether the parent of v=(a,b) and c is lower than v."""
    (a, b, c), _ = move
    return less(between(zeta, (a, b), c), height((a, b), zeta), tolerance)


def mends_higher(move: Move, zeta: Zeta, tolerance: float = TOLERANCE) -> bool:
    """Whether that is so, and v is not lower than c."""
    (a, b, c), _ = move
    return mends(move, zeta, tolerance) and not less(height((a, b), zeta), height(c, zeta), tolerance)


def stable_steps(tree: Tree, zeta: Zeta, weight: Sequence[float], strongly_reducible: bool) -> set[Tree]:
    """All that the next tree can be: after a move where one is wanted, otherwise after a graft."""
    moves = wanted_stable_moves(tree, zeta, strongly_reducible)
    if moves:
        return {canonical(nni(tree, *move)) for move in moves}
    return {canonical(graft(tree, *ends)) for ends in wanted_grafts(tree, zeta, weight)}


def smallest_first(tree: Tree, zeta: Zeta, weight: Sequence[float], strongly_reducible: bool) -> tuple[Tree, int]:
    """The exact procedure: where it ends, and after how many grafts."""
    trees = smallest_first_trees(tree, zeta, weight, strongly_reducible)
    return trees[-1], len(trees) - 1


def smallest_first_trees(tree: Tree, zeta: Zeta, weight: Sequence[float], strongly_reducible: bool) -> list[Tree]:
    """Moves while there are any, from the bottom up; then the blocking pair with the smallest ζ; and again.

    The trees where no move is left: the first one, and one after each graft.
    """
    trees = [moved(tree, zeta, strongly_reducible)]
    while pairs := blocking_pairs(trees[-1], zeta):
        A, Q, _ = min(pairs, key=lambda pair: pair[2])
        grafted = graft(trees[-1], *cut_and_target(A, Q, weight))
        trees.append(moved(grafted, zeta, strongly_reducible))
        if len(trees) > len(cluster(tree)):
            raise RuntimeError("as many grafts as points: each should have made one more merge of batch clustering")
    return trees


def moved(tree: Tree, zeta: Zeta, strongly_reducible: bool) -> Tree:
    """After all wanted moves, from the bottom up."""
    while moves := wanted_stable_moves(tree, zeta, strongly_reducible):
        tree = nni(tree, *settled(moves, zeta)[0])
    return tree


def settled(moves: list[Move], zeta: Zeta, tolerance: float = TOLERANCE) -> list[Move]:
    """Those moves that need not wait, because v=(a,b) and c are monotone below; the deepest is one of them."""
    return [
        move for move in moves if is_monotone(move[0][:2], zeta, tolerance) and is_monotone(move[0][2], zeta, tolerance)
    ]


# Batch clustering (`tab.HAC`)


def batch_merges(tree: Tree, zeta: Zeta, n: int, tolerance: float = TOLERANCE) -> set[Cluster]:
    """Replay the merges from the lowest, as long as each is a minimum over all alive pairs: what they make."""
    alive = {frozenset([i]) for i in range(n)}
    waiting = set(parents(tree).values())
    made = set()
    while waiting:
        possible = [t for t in waiting if all(cluster(child) in alive for child in t)]
        lowest = min(possible, key=lambda t: height(t, zeta))
        smallest = min(zeta(A, B) for A, B in itertools.combinations(alive, 2))
        if less(smallest, height(lowest, zeta), tolerance):
            break
        alive = alive - {cluster(child) for child in lowest} | {cluster(lowest)}
        waiting.remove(lowest)
        made.add(cluster(lowest))
    return made


def certify(tree: Tree, zeta: Zeta, n: int, tolerance: float = TOLERANCE) -> bool:
    """Whether each merge of the tree over n points was a minimum when it was made."""
    return len(batch_merges(tree, zeta, n, tolerance)) == n - 1


def batch_trees(zeta: Zeta, n: int, tolerance: float = TOLERANCE) -> set[Tree]:
    """What some run gives, over all ways to break ties; each in its canonical form."""

    @functools.cache
    def from_here(forest: frozenset[Tree]) -> frozenset[Tree]:
        if len(forest) == 1:
            return forest
        value = {(s, t): between(zeta, s, t) for s, t in itertools.combinations(forest, 2)}
        ties = [pair for pair in value if not less(min(value.values()), value[pair], tolerance)]
        return frozenset().union(*(from_here(forest - set(pair) | {canonical(pair)}) for pair in ties))

    return set(from_here(frozenset(range(n))))


# Potentials: what decreases


def running_height(tree: Tree, zeta: Zeta) -> float:
    """The largest height of a node and all below it; on a monotone tree it is the height."""
    return max(height(t, zeta) for t in subtrees(tree))


def sorted_running_heights(tree: Tree, zeta: Zeta) -> list[float]:
    return sorted(running_height(t, zeta) for t in subtrees(tree))
