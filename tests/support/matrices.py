"""Linkage matrices for tests of what is written for other programs."""

from __future__ import annotations

import numpy as np
from scipy.cluster.hierarchy import linkage

EMPTY = np.empty((0, 4))
PAIR = np.array([[0.0, 1.0, 2.5, 2.0]])
N_DEEP = 100_000
ODD_LABELS = [
    "", " ", "'", "''", "it's", "a b", "a_b", "a:b", "a,b", "(a)", "[a]", "]", "a;b", "naïve", "木", "😀", "\n", "\t",
    "-1.5", "1e5", '"a"', "\\", "a\u00a0b", "\x00", "\ud800", "#", "{}", "a'b'c", "&", "=",
]  # fmt: skip


def random_linkage(rng, n, method="average"):
    return linkage(rng.normal(size=(n, 3)), method) if n > 1 else EMPTY


def caterpillar(n):
    """A path: each merge takes one more leaf."""
    rows = np.arange(n - 1)
    return np.column_stack([np.where(rows == 0, 0, n + rows - 1), rows + 1, 0.1 * (rows + 1), rows + 2]).astype(float)
