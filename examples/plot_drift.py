"""
A stream that drifts
====================

Clusters of a stream come, move, split and go. A window keeps the points that came last, a partition that follows
another keeps the ids of clusters, and its changes tell what became of each.
"""

import matplotlib.pyplot as plt
import numpy as np

import evertree as et
from evertree.plotting import plot_changes

rng = np.random.default_rng(0)


# %%
# There are two clusters. A third comes at step 20, a fourth parts from the first at step 45, and the second ends at
# step 70.
def batch(step, count=60):
    """The points of a step."""
    centers = [(0, 0), (10, 0)] if step < 70 else [(0, 0)]
    if step >= 20:
        centers.append((0, 12))
    if step >= 45:
        centers.append((-min(step - 45, 12), -2))
    return np.array(centers)[rng.integers(len(centers), size=count)] + rng.normal(size=(count, 2))


# %%
# The window has room for eight batches. After each, the tree is refined, and cut at a height at which groups are apart.
# Pieces of fewer than 10 points are no clusters.
h = et.Hierarchy()
h.keep(last=480)
h.insert(batch(0, 480))
cut = {"height": 60.0, "min_cluster_size": 10}
before = h.partition(**cut)
steps, changes, snapshots = range(1, 100), [], {}
for step in steps:
    h.insert(batch(step))
    h.refine()
    now = h.partition(**cut, follow=before)
    changes.append(now.changes(before))
    before = now
    if step in (19, 44, 69, 99):
        snapshots[step] = h.points(), now.labels

# %%
# What happens is told when it happens, give or take a few steps: as many as it takes until a new cluster is large
# enough to be one, and far enough from others, or the last points of an old one have left the window.
known = {"a new one": 20, "one parts": 45, "one ends": 70}
ax = plot_changes(list(steps), changes, known=known)
ax.set_xlabel("step")

# %%
# A cluster that lasts keeps its id, and so its colour, although all of its points have been replaced several times.
figure, axes = plt.subplots(1, 4, figsize=(10, 2.8), sharex=True, sharey=True, layout="constrained")
for ax, (step, (points, labels)) in zip(axes, snapshots.items(), strict=True):
    ax.scatter(*points.T, c=labels, s=4, cmap="tab10", vmin=0, vmax=9)
    ax.set_title(f"step {step}")

plt.show()
