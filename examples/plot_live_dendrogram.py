"""
A stream with a live dendrogram
===============================

Points arrive in batches, and the tree can be drawn after each of them. Nothing is built anew.
"""

# %%
# Five groups, of which the last two appear only late in the stream.

import matplotlib.pyplot as plt
from sklearn.datasets import make_blobs

import evertree as et

X, group = make_blobs(600, n_features=4, centers=5, cluster_std=1.2, random_state=4)
early, late = X[group < 3], X[group >= 3]
stream = [early[:60], early[60:], late]

h = et.Hierarchy(linkage="ward")
fig, axes = plt.subplots(1, 3, figsize=(11, 3.6), sharey=True, layout="constrained")
partition = None
for ax, batch in zip(axes, stream, strict=True):
    h.insert(batch)
    h.refine()
    partition = h.partition(height=30, follow=partition)
    title = f"{len(h)} points, {len(partition)} clusters"
    h.plot(partition, n_shown=30, max_leaf_labels=0, ax=ax, title=title, ylabel=None)
    ax.axhline(30, color="black", linewidth=0.8, linestyle="dotted")
axes[0].set_ylabel("height")
plt.show()

# %%
# The dotted line is where the tree is cut. A cluster keeps its colour from picture to picture, because each partition
# follows the one before.
#
# Points leave as they came. Without the first group the tree has a cluster less, and the others keep their ids.

first = partition.members(0)
h.remove(first)
h.refine()
after = h.partition(height=30, follow=partition)
print(partition.sizes())
print(after.sizes())
