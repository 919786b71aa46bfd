"""
Where would a point go?
=======================

`evertree.Hierarchy.locate` says where points would be inserted and at which height, and does not change the tree. A
point that would join above a limit is rejected: it belongs to none of the clusters below.
"""

# %%
# Three groups, and a grid of points to ask about.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

import evertree as et

X, _ = make_blobs(150, centers=[[-4, 0], [4, 0], [0, 6]], cluster_std=0.8, random_state=0)
h = et.agglomerate(X, linkage="average")
partition = h.partition(n_clusters=3)

x, y = np.meshgrid(np.linspace(-8, 8, 60), np.linspace(-4, 10, 60))
places = h.locate(np.column_stack([x.ravel(), y.ravel()]), reject_above=3.0)

# %%
# The colour is the height at which a point would join, and black dots are the live points. A point in the white would
# be rejected.

height = np.array([np.nan if place.rejected else place.height for place in places]).reshape(x.shape)
fig, ax = plt.subplots(figsize=(7, 5), layout="constrained")
filled = ax.contourf(x, y, height, levels=np.linspace(0, 3, 13), cmap="viridis_r")
ax.scatter(*X.T, color="black", s=8)
ax.set_aspect("equal")
fig.colorbar(filled, label="height at which it would join")
plt.show()

# %%
# Each location has a reason in words, the nearest live point, and the nodes above.

for place in h.locate([[-4.0, 0.5], [0.0, 2.0]], reject_above=3.0):
    print(f"nearest {place.nearest}, in cluster {partition.cluster_of(place.nearest)}: {place.reason}")
