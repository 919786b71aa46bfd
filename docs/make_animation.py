"""Draw docs/images/refining.gif: a random tree of points in five groups, refined until it is a batch tree."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import evertree as et

rng = np.random.default_rng(0)
centers = [[0.0, 0.0], [6.0, 0.0], [3.0, 5.0], [-3.0, 5.0], [1.5, -5.0]]
X = np.concatenate([rng.normal(center, 0.8, size=(30, 2)) for center in centers])

h = et.Hierarchy.random(X, seed=1)
path = Path(__file__).parent / "images" / "refining.gif"
h.animate_refinement(path, n_clusters=5, measure=et.quality.cophenetic_correlation)
print(f"{path.name}: {path.stat().st_size / 1e6:.1f} MB")
