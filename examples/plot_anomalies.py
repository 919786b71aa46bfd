"""
Points that stand apart
=======================

`evertree.Hierarchy.anomaly_scores` says how far each point stands apart from the others, and
`evertree.Hierarchy.anomalies` says why. What stands apart may be a single point, or a small cluster.
"""

# %%
# Two groups, two stray points, and five points side by side that are far from all others.

import matplotlib.pyplot as plt
import numpy as np

import evertree as et

rng = np.random.default_rng(0)
X = np.vstack(
    [
        rng.normal([0, 0], 1.0, size=(120, 2)),
        rng.normal([5, 2], 0.7, size=(60, 2)),
        [[-7, 2], [2, 10]],
        rng.normal([14, 8], 0.3, size=(5, 2)),
    ]
)
h = et.agglomerate(X, linkage="average")
scores = h.anomaly_scores()

# %%
# All points of a cluster that stands apart have its score, and the same reason. The first three reasons:

first = {}
for anomaly in h.anomalies(n=None):
    first.setdefault(anomaly.node, anomaly)
reasons = list(first.values())[:3]
for anomaly in reasons:
    print(f"point {anomaly.key}, score {anomaly.score:.0f}: {anomaly.reason}")

# %%
# On the left a point is the larger and the darker, the higher its score is. On the right is the top of the tree, with
# the two groups in colour: what stands apart joins the others far above where those join each other.

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
dots = left.scatter(*X.T, c=scores, s=10 + scores, cmap="magma_r", edgecolor="black", linewidth=0.3)
for anomaly in reasons:
    left.annotate(anomaly.key, X[anomaly.row], xytext=(-9, 9), textcoords="offset points")
left.set(xticks=[], yticks=[], aspect="equal")
left.margins(0.1, 0.2)
fig.colorbar(dots, ax=left, label="score")
h.plot(h.cut(n_clusters=2, min_cluster_size=30), n_shown=15, ax=right)
plt.show()

# %%
# New points are scored as if each came alone, and the tree does not change.

print(h.anomaly_scores([[0.5, 0.0], [-9.0, -9.0]]).round())
