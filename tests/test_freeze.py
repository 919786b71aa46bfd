"""No call keeps other threads from running: kernels release the interpreter's lock."""

from __future__ import annotations

import time

import numpy as np
import pytest

import evertree as et
from pulse import Pulse

#: Seconds; the aim is 0.1, and a machine that is shared may take a few times as long.
LIMIT = 0.5


def verbs(h, x, other):
    """Each verb with large arguments, by name."""
    n = len(x)
    return {
        "insert": lambda: h.insert(x[: n // 2]),
        "remove": lambda: h.remove(h.keys()[: n // 8]),
        "update": lambda: h.update(h.keys()[: n // 8], x[n // 2 : n // 2 + n // 8]),
        "set_linkage": lambda: h.set_linkage(*other),
        "cut": lambda: h.cut(n_clusters=min(10, len(h))),
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("linkage", "metric", "n", "other"),
    [
        ("ward", "euclidean", 40_000, ("average", "sqeuclidean")),
        ("average", "cosine", 40_000, ("average", "sqeuclidean")),
        ("average", "euclidean", 8_000, ("complete",)),
        ("minimax", "euclidean", 6_000, ("single",)),
        ("complete", "cityblock", 9_000, ("average",)),
    ],
)
def test_other_threads_run_while_a_tree_is_edited(rng, linkage, metric, n, other):
    x = rng.normal(size=(n, 8)) + 5 * rng.integers(4, size=(n, 1))
    for verb in verbs(et.Hierarchy(linkage, metric), x[:80], other).values():
        verb()  # compiles, which no other thread can watch
    h = et.Hierarchy(linkage, metric)
    longest = {}
    began = time.perf_counter()
    for name, verb in verbs(h, x, other).items():
        with Pulse() as pulse:
            verb()
        longest[name] = pulse.longest
    assert time.perf_counter() - began > LIMIT, "so little work says nothing"
    assert max(longest.values()) < LIMIT, longest


@pytest.mark.slow
def test_other_threads_run_while_dissimilarities_are_edited(rng):
    x = rng.normal(size=(2_500, 3))
    d = np.sqrt(((x[:, None] - x[None]) ** 2).sum(axis=2))
    h = et.Hierarchy("average", "precomputed")
    et.Hierarchy("average", "precomputed").insert(d[:50, :50])
    with Pulse() as pulse:
        h.insert(d)
        h.remove(h.keys()[:300])
        h.cut(n_clusters=10)
    assert pulse.longest < LIMIT
