"""Whether a tree that lies in parts keeps its invariants: each part is looked at where it is."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evertree.distributed.parts import STRIDE, Part, subtrees
from evertree.distributed.pieces import Piece, inflate
from evertree.distributed.refining import Forest
from evertree.distributed.runner import Runner
from evertree.errors import InvariantError
from evertree.tree import Aim, invariants
from evertree.tree.scheme import Scheme


def validate(runner: Runner, forest: Forest, n_points: int) -> None:
    """Refuse a tree that breaks an invariant.

    Each part gives its insertion numbers, to see that none is there twice: eight bytes for each point.
    """
    handles = [
        runner.submit("validate", validate_part, handle, forest.scheme, forest.aim)
        for handle in forest.handles.values()
    ]
    ids, places = [np.empty(0, np.int64)], []
    for number, (wrong, numbers, n_trees) in zip(forest.handles, runner.gather(handles), strict=True):
        _require(wrong is None, f"part {number}: {wrong}")
        ids.append(numbers)
        places.append(number * STRIDE + np.arange(n_trees))
    every = np.concatenate(ids)
    _require(every.size == n_points, f"the parts have {every.size} points, and not {n_points}")
    _require(np.unique(every).size == every.size, "a point is in two parts")
    top, expected = forest.top, np.concatenate([np.empty(0, np.int64), *places])
    _require(np.array_equal(np.sort(top.ids), expected), "the top does not stand above all subtrees, each once")
    is_tree = is_forest(top.children, top.ids.size) and len(top.children) == max(top.ids.size - 1, 0)
    _require(is_tree, "the top is no tree")


def validate_part(part: Part, scheme: Scheme, aim: Aim) -> tuple[str | None, NDArray[np.int64], int]:
    """What is wrong with a part, or None; the numbers of its points, and how many subtrees it has."""
    piece = part.piece
    if not is_part(piece):
        return "it is no forest", piece.ids, 0
    trees = subtrees(piece)
    try:
        for tree in trees:
            live = inflate(tree, scheme, aim)
            invariants.check_shape(live)
            invariants.check_points(live)
            invariants.check_statistics(live)
    except InvariantError as error:
        return str(error), piece.ids, len(trees)
    return None, piece.ids, len(trees)


def is_part(piece: Piece) -> bool:
    """Whether the arrays of a piece fit together."""
    k = piece.n_leaves
    columns = (piece.size, piece.mean, piece.points)
    return all(column is None or len(column) == k for column in columns) and is_forest(piece.children, k)


def is_forest(children: NDArray[np.int32], n_leaves: int) -> bool:
    """Whether unions come in postorder, and each node is the child of at most one, which comes after it. O(n)."""
    n_unions = len(children)
    number, flat = n_leaves + np.arange(n_unions), children.ravel()
    if not np.all((flat >= 0) & (flat < np.repeat(number, 2))) or np.unique(flat).size != flat.size:
        return False
    # In postorder the right child is the leaf or the union just before, and the left one ends where it begins.
    first, stop = np.arange(n_leaves + n_unions), np.arange(1, n_leaves + n_unions + 1)
    for u, (a, b) in zip(number.tolist(), children.tolist(), strict=True):
        if stop[a] != first[b]:
            return False
        first[u], stop[u] = first[a], stop[b]
    return True


def _require(condition: bool, what: str) -> None:
    if not condition:
        raise InvariantError(f"{what}: a bug in evertree, please report it")
