"""Edits that follow from their number: the same in a process that is killed and in one that knows what is right."""

from __future__ import annotations

import numpy as np

from evertree import Hierarchy


def make_edit(h: Hierarchy, number: int, n_columns: int = 3) -> None:
    """The edit of a number: of the points that are there, and of random ones."""
    rng = np.random.default_rng([7, number])
    keys = h.keys()
    kind = rng.integers(10) if len(keys) > 8 else 0
    if kind < 4:
        count = int(rng.integers(1, 12))
        points = rng.normal(size=(count, n_columns)).round(2)  # some of them tied
        named = [f"{number}.{k}" for k in range(count)] if rng.integers(2) else None
        weights, time = rng.integers(1, 4, count).astype(float), None if h.window is None else number
        h.insert(points, keys=named, sample_weight=weights, time=time)
    elif kind < 7:
        h.remove([keys[i] for i in rng.choice(len(keys), min(len(keys) // 3, 5), replace=False)])
    elif kind < 9:
        some = [keys[i] for i in rng.choice(len(keys), min(len(keys), 4), replace=False)]
        h.update(some, rng.normal(size=(len(some), n_columns)).round(2))
    else:
        h.refine(moves=int(rng.integers(1, 6))) if rng.integers(2) else h.refine()


def same(a: Hierarchy, b: Hierarchy) -> bool:
    """Whether two hierarchies have the same keys, points and tree."""
    return (
        a.keys() == b.keys()
        and np.array_equal(a.linkage_matrix(), b.linkage_matrix())
        and np.array_equal(a.points(), b.points())
        and (a.linkage, a.metric, a.goal, a.window) == (b.linkage, b.metric, b.goal, b.window)
    )
