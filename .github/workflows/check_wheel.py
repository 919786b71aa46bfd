"""Uses a wheel for one platform, without Numba; see ``wheels.yml``. An argument names the library to expect."""

from __future__ import annotations

import importlib.util
import sys

import numpy as np

import evertree as et
from evertree.kernels import library
from evertree.linkages import LINKAGES

assert importlib.util.find_spec("numba") is None, "this must run where Numba is not installed"
opened = library.opened()
assert opened is not None, library.why_not()
level = opened.path.stem
assert sys.argv[1:] in ([], [level]), f"the library is {level}"
assert {"ward", "single", "complete", "average", "minimax"} <= set(LINKAGES)

rng = np.random.default_rng(0)
group = np.repeat([0, 1, 2], 20)
points = rng.normal(size=(60, 4)) + 50 * np.eye(4)[group]

for linkage in LINKAGES:
    for metric in ["euclidean"] if linkage == "ward" else ["euclidean", "sqeuclidean", "cityblock", "cosine"]:
        for dtype in ("float32", "float64"):
            X = points.astype(dtype)
            h = et.Hierarchy(linkage, metric)
            h.insert(X[:50])
            for key in range(50, 60):
                h.insert(X[key : key + 1], keys=[key])
            h.refine()
            h.certify()
            assert h.dtype == dtype
            assert np.array_equal(h.cut(n_clusters=3), group)

            h.remove([0, 25])
            h.update([1, 50], X[[50, 1]])  # each to the other's group
            h.refine()
            h.validate()
            label = dict(zip(h.keys(), h.cut(n_clusters=3), strict=True))
            assert len(h) == 58
            assert (label[1], label[50]) == (label[59], label[2])
            assert h.locate(X[2:3])[0].nearest == 2
            assert np.all(np.isfinite(h.anomaly_scores()))
            assert et.agglomerate(X, linkage, metric).is_stable()

assert "numba" not in sys.modules
print(f"evertree {et.__version__}, {level}, Python {sys.version.split()[0]}, NumPy {np.__version__}: all well")
