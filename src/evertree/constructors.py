"""Initial trees that are not empty: random ones, and trees from other tools. None is refined."""

from __future__ import annotations

from typing import Any

import numpy as np

from evertree import edits
from evertree.errors import DimensionError, InvalidKeyError, listed
from evertree.input.arrays import as_keys
from evertree.input.frames import is_frame, take_keys
from evertree.io.newick import read_newick
from evertree.state import State
from evertree.tree import initial


def random(state: State, X: Any, keys: Any, sample_weight: Any) -> None:
    """Give a new state a tree that is drawn uniformly from all binary hierarchies over the points."""
    leaves = edits.begin(state, X, keys, sample_weight)
    initial.shape_at_random(state.live, leaves, state.seed)
    state.live.rebuild()


def from_linkage(state: State, Z: Any, X: Any, keys: Any = None, sample_weight: Any = None) -> None:
    """Give a new state the tree of a SciPy linkage matrix."""
    leaves = edits.begin(state, X, keys, sample_weight)
    initial.shape_from_linkage(state.live, leaves, initial.checked_linkage_matrix(Z, leaves.size))
    state.live.rebuild()


def from_newick(state: State, text: str, X: Any, keys: Any, resolve: bool) -> None:
    """Give a new state the tree of a Newick text."""
    tree = read_newick(text, resolve)
    if isinstance(keys, str) and is_frame(X):
        keys, X = take_keys(X, keys)
    if state.live.scheme.metric != "precomputed" and len(X) != len(tree.labels):
        raise DimensionError(
            f"X must have a row for each of the {len(tree.labels)} leaves of the text; it has {len(X)}"
        )
    if keys is None:
        from_linkage(state, tree.Z, X, tree.labels)
        return
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
    from_linkage(state, Z, X, chosen)
