"""The data structure: columns with room to grow, edits by node, invariants, starting trees, conversions."""

from __future__ import annotations

from typing import Any

import numpy as np

from evertree.tree.aim import Aim
from evertree.tree.base import LiveTree
from evertree.tree.incoming import Incoming
from evertree.tree.pairwise import PairLiveTree
from evertree.tree.scheme import Scheme
from evertree.tree.statistics import MeanLiveTree

__all__ = ["Aim", "Incoming", "LiveTree", "MeanLiveTree", "PairLiveTree", "new_tree"]


def new_tree(scheme: Scheme, aim: Aim, n_columns: int | None, dtype: np.dtype[Any]) -> LiveTree:
    """An empty tree for a scheme, over points with `n_columns` columns; None if they are not vectors."""
    if scheme.has_statistics:
        return MeanLiveTree(scheme, aim, n_columns or 0, dtype)
    return PairLiveTree(scheme, aim, n_columns, dtype)
