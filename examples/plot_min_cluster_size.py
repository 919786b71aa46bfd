"""
Noise and the smallest cluster
==============================

A few points far from all others take up the clusters of an ordinary cut. With ``min_cluster_size``, only merges of two
clusters that are large enough are undone, and points that come off in smaller groups are in no cluster.
"""

# %%
# Three groups in a background of noise.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

import evertree as et

groups, _ = make_blobs(300, centers=[[-4, -3], [4, -2], [0, 4]], cluster_std=0.8, random_state=1)
noise = np.random.default_rng(1).uniform(-15, 15, size=(40, 2))
X = np.vstack([groups, noise])
h = et.agglomerate(X, linkage="single")

cuts = {
    "n_clusters=3": h.cut(n_clusters=3),
    "n_clusters=3, min_cluster_size=30": h.cut(n_clusters=3, min_cluster_size=30),
}

# %%
# On the left one cluster holds all three groups, and the other two are stray points. On the right each group is a
# cluster. Points in no cluster have the label -1, and are grey.

fig, axes = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
for ax, (title, labels) in zip(axes, cuts.items(), strict=True):
    ax.scatter(*X[labels < 0].T, color="lightgrey", s=10)
    ax.scatter(*X[labels >= 0].T, c=labels[labels >= 0], cmap="Set1", vmin=0, vmax=8, s=10)
    ax.set(title=title, xticks=[], yticks=[], aspect="equal")
plt.show()

# %%
# The same cut as colours of a dendrogram.

h.plot(cuts["n_clusters=3, min_cluster_size=30"], n_shown=None, max_leaf_labels=0)
plt.show()
