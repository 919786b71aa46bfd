"""What tests share: ways from a hierarchy to `naive` and back, and data that breaks things."""

from __future__ import annotations

import datetime
import gc
import signal
import sys
from collections.abc import Callable

import numpy as np
from scipy.spatial.distance import cdist, squareform

import evertree
import naive


class Hierarchy(evertree.Hierarchy):
    """A hierarchy with the paper's goal, for tests of the paper's procedure."""

    def __init__(self, *args, goal: str = "homogeneous", **options):
        super().__init__(*args, goal=goal, **options)


#: Every linkage on every metric that it has statistics on.
WITH_STATISTICS = [
    ("ward", "euclidean"),
    ("ward", "sqeuclidean"),
    ("ward", "mahalanobis"),
    ("average", "sqeuclidean"),
    ("average", "cosine"),
]

#: The others, each on a few metrics.
WITH_PAIRS = [
    ("single", "euclidean"),
    ("single", "cosine"),
    ("complete", "euclidean"),
    ("complete", "cityblock"),
    ("average", "euclidean"),
    ("average", "canberra"),
    ("minimax", "euclidean"),
    ("minimax", "mahalanobis"),
]

SCHEMES = WITH_STATISTICS + WITH_PAIRS

#: Each way to compute a linkage once.
ONE_OF_EACH = [
    ("ward", "euclidean"),
    ("average", "sqeuclidean"),
    *((linkage, "euclidean") for linkage in ("single", "complete", "average", "minimax")),
]

#: Keys that HTML, JSON or JavaScript could take for their own.
HOSTILE_KEYS = [
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "<img src=x onerror=alert(1)>",
    "<b>bold</b> & \"quoted\" 'single'",
    "${alert(1)} $data {{x}}",
    "🌲 \u202e\u2028 é",
    "\ud800",
    ("tuple", 1),
    datetime.date(2026, 5, 4),
    None,
    b"bytes",
    "",
]


def params_of(metric: str, n_columns: int) -> dict | None:
    """What a metric needs; for Mahalanobis a symmetric matrix with eigenvalues from 1/2 to 2."""
    if metric == "seuclidean":
        return {"V": np.linspace(0.5, 2, n_columns)}
    if metric != "mahalanobis":
        return None
    q, _ = np.linalg.qr(np.random.default_rng(5).normal(size=(n_columns, n_columns)))
    return {"VI": (q * np.linspace(0.5, 2, n_columns)) @ q.T}


def new(linkage: str, metric: str, n_columns: int = 2) -> Hierarchy:
    return Hierarchy(linkage, metric, metric_params=params_of(metric, n_columns))


def definition(h: Hierarchy) -> naive.Zeta:
    """The linkage of `h` by definition, between sets of positions in ``h.keys()``."""
    if h.linkage == "ward":
        x = h.points().astype(np.float64)
        if h.metric == "mahalanobis":
            x = x @ np.linalg.cholesky(h.metric_params["VI"])
        return naive.ward(x, weights(h))
    return getattr(naive, h.linkage)(dissimilarities(h), weights(h))


def dissimilarities(h: Hierarchy) -> np.ndarray:
    """All dissimilarities of `h`, from the points: a square matrix."""
    points = h.points()
    if h.metric == "precomputed":
        return points.astype(np.float64)
    if callable(h.metric):
        return np.array(
            [[float(h.metric(p, q)) if i != j else 0.0 for j, q in enumerate(points)] for i, p in enumerate(points)]
        )
    x = points.astype(np.float64)
    if h.metric in ("cosine", "sqeuclidean"):
        return getattr(naive, h.metric)(x)
    params = h.metric_params or {}
    return cdist(x, x, h.metric, **params) if h.metric != "mahalanobis" else mahalanobis(x, params["VI"])


def mahalanobis(x: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """Symmetric to the last bit, and zero between equal points."""
    difference = x[:, None, :] - x[None, :, :]
    return np.sqrt(np.einsum("ijk,kl,ijl->ij", difference, matrix, difference))


def weights(h: Hierarchy) -> np.ndarray:
    return h.state.live.tree.size[h.state.keys.leaves()]


def nested(h: Hierarchy) -> naive.Tree:
    """The tree of `h` for `naive`: points are positions in ``h.keys()``."""
    position = {key: i for i, key in enumerate(h.keys())}
    built: dict[int, naive.Tree] = {}
    for u in h.nodes().tolist():
        children = h.children(u)
        built[u] = (built[children[0]], built[children[1]]) if children else position[h.members(u)[0]]
    return built[h.root]


def hierarchy_of(
    tree: naive.Tree, x: np.ndarray, linkage: str = "ward", metric: str = "euclidean", **options
) -> Hierarchy:
    """A hierarchy with the given shape over the rows of `x`, not refined."""
    n = len(x)
    number: dict[naive.Tree, int] = {}
    rows = []
    for t in reversed(naive.subtrees(tree)):
        if isinstance(t, tuple):
            number[t] = n + len(rows)
            rows.append([number[t[0]], number[t[1]], 0, 0])
        else:
            number[t] = t
    params = params_of(metric, x.shape[1])
    return Hierarchy.from_linkage(
        np.array(rows, float).reshape(-1, 4), x, linkage, metric, metric_params=params, **options
    )


def fingerprint(h: Hierarchy) -> list:
    """Everything that `h` is, to the last bit; what was never used may hold anything."""
    live = h.state.live
    used = live.n_used
    columns = [
        np.ascontiguousarray(column[:used]).tobytes()
        for name, column in live.tree._asdict().items()
        if name not in ("state", "pairs", "sketch")
    ]
    columns += [live.work.mark[:used].tobytes(), live.work.stack[: live.n_pending].tobytes()]
    columns += [live.tree.state.tobytes(), live.work.state.tobytes()]
    if hasattr(live, "x_in_use"):
        columns.append(np.ascontiguousarray(live.x_in_use).tobytes())
    points = h.points() if isinstance(h.points(), list) else h.points().tobytes()
    options = [h.linkage, h.metric, h.goal, h.state.keys.next_birth, h.state.keys.next_number]
    return [columns, points, h.keys(), *options]


def assert_valid_and_homogeneous(h: Hierarchy) -> None:
    h.validate()
    assert h.is_homogeneous()
    assert h.is_monotone()


def hard_data() -> dict[str, np.ndarray]:
    """Data sets on which ties, duplicates, rounding and overflow show."""
    rng = np.random.default_rng(0)
    base = rng.normal(size=(40, 3))
    signs = rng.choice([-1.0, 1.0], size=(40, 3))
    return {
        "random": base,
        "duplicates": np.repeat(base[:8], 5, axis=0),
        "all identical": np.full((30, 2), 0.1),
        "integer grid": np.stack(np.meshgrid(np.arange(6.0), np.arange(6.0)), -1).reshape(-1, 2),
        "line": np.arange(40.0).reshape(-1, 1),
        "constant columns": np.column_stack([base, np.full(40, 7.0), np.zeros(40)]),
        "huge": 1e150 * np.clip(base, -1, 1),
        "tiny": 1e-150 * base,
        "all magnitudes": signs * 10.0 ** rng.uniform(-150, 150, size=(40, 3)),
        "far from the origin": base * 1e-3 + 1.7e9,
        "last bits": 1.0 + np.finfo(float).eps * rng.integers(0, 4, size=(40, 2)),
        "powers": 2.0 ** np.arange(40.0).reshape(-1, 1),
        "float32": base.astype(np.float32),
        "float32 huge": (1e37 * np.clip(base, -1, 1)).astype(np.float32),
        "float32 tiny": (1e-35 * base).astype(np.float32),
        "large constant column": np.column_stack([base, np.full(40, 1.7e18)]),
        "float32 large constant column": np.column_stack([base, np.full(40, 1e7)]).astype(np.float32),
        "float32 far from the origin": (base + 1e4).astype(np.float32),
        "one point": base[:1],
        "two points": base[:2],
        "no points": base[:0],
    }


def square(condensed: np.ndarray) -> np.ndarray:
    return squareform(condensed) if condensed.size else np.zeros((1, 1))


def press_ctrl_c(action: Callable[[], object], n_calls: int) -> None:
    """Do something that Ctrl-C ends when it has called so many functions, if it does not end before.

    Garbage is collected before: in a callback of the collector, nobody would hear of Ctrl-C.
    """
    calls = iter(range(n_calls))
    gc.collect()
    gc.disable()

    def press(frame, event, _):
        if event == "call" and next(calls, None) is None:
            sys.setprofile(None)
            signal.raise_signal(signal.SIGINT)

    sys.setprofile(press)
    try:
        action()
    except KeyboardInterrupt:
        pass
    finally:
        sys.setprofile(None)
        gc.enable()


def crash(h: evertree.DurableHierarchy) -> None:
    """Give up the file of a durable hierarchy as a killed process does, without a last snapshot."""
    h._release()
