"""
A SciPy tree, kept alive
========================

A tree that SciPy made is a place to start. It is taken over as it is, and from then on it follows the data.
"""

# %%
# A batch tree of half of the digits. Its heights are SciPy's.

import matplotlib.pyplot as plt
import numpy as np
from scipy.cluster.hierarchy import cophenet, dendrogram, linkage
from sklearn.datasets import load_digits

import evertree as et

X, digit = load_digits(return_X_y=True)
half = len(X) // 2
Z = linkage(X[:half], "ward")
h = et.Hierarchy.from_linkage(Z, X[:half], linkage="ward")
print("same heights:", np.allclose(h.linkage_matrix()[:, 2], Z[:, 2]))
report = h.refine()
print("stable:", report.stable, "after", report.moves, "moves and", report.grafts, "grafts")

# %%
# The other half comes in, and the oldest hundred points go.

h.insert(X[half:])
h.remove(range(100))
report = h.refine()
print(len(h), "points,", report.grafts, "grafts")

# %%
# The way back is a linkage matrix, for everything that SciPy does with one. Beside it is the batch tree of the same
# points.

batch = linkage(X[100:], "ward")
live = h.linkage_matrix()
fig, axes = plt.subplots(1, 2, figsize=(10, 3.8), sharey=True, layout="constrained")
for ax, matrix, title in zip(axes, (live, batch), ("live tree", "batch tree"), strict=True):
    dendrogram(matrix, truncate_mode="lastp", p=30, no_labels=True, ax=ax, color_threshold=0)
    ax.set_title(title)
axes[0].set_ylabel("height")
plt.show()

print(f"correlation of cophenetic distances: {np.corrcoef(cophenet(live), cophenet(batch))[0, 1]:.3f}")
