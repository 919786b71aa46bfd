"""
Comparing linkages
==================

The linkage says what "close" means for clusters, and so which shapes they have. Here are all five on three data sets:
two moons, groups of different spread, and points without groups.
"""

# %%
# Every tree is the batch tree of `evertree.agglomerate`, cut into as many clusters as the data set has groups. Single
# linkage looks at the nearest pair of points only: it can follow the moons, and elsewhere it spends clusters on stray
# points; so does average linkage where there are no groups. All but single linkage cut the moons across.

import matplotlib.pyplot as plt
from sklearn.datasets import make_blobs, make_moons

import evertree as et

data = {
    "moons": (make_moons(200, noise=0.05, random_state=0)[0], 2),
    "groups": (make_blobs(200, centers=3, cluster_std=[1.0, 1.8, 0.5], random_state=3)[0], 3),
    "no groups": (make_blobs(200, centers=1, random_state=0)[0], 3),
}
linkages = ["single", "complete", "average", "minimax", "ward"]

fig, axes = plt.subplots(len(data), len(linkages), figsize=(10, 6), layout="constrained")
for row, (name, (X, n_clusters)) in zip(axes, data.items(), strict=True):
    row[0].set_ylabel(name)
    for ax, linkage in zip(row, linkages, strict=True):
        labels = et.agglomerate(X, linkage=linkage).cut(n_clusters=n_clusters)
        ax.scatter(*X.T, c=labels, cmap="viridis", s=8)
        ax.set(xticks=[], yticks=[])
for ax, linkage in zip(axes[0], linkages, strict=True):
    ax.set_title(linkage)
plt.show()

# %%
# A hierarchy can change its linkage while it lives. The tree is kept, and refined from where it is.

h = et.agglomerate(data["groups"][0], linkage="ward")
report = h.set_linkage("average")
print(report.moves, "moves and", report.grafts, "grafts to a stable tree:", report.stable)
