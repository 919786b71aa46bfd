"""
Clusters that keep their ids
============================

Labels of a cut are numbered anew each time. A partition that follows an earlier one gives each cluster the id of the
one that it shares most points with, and so the history of a cluster can be drawn.
"""

# %%
# A window of 400 points slides over a stream, in which four groups come and go. When a batch comes in, the oldest goes
# out.

import matplotlib.pyplot as plt
import numpy as np

import evertree as et

rng = np.random.default_rng(0)
centers = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0], [10.0, 10.0]])
time = np.linspace(0, 1, 40)
shares = np.array([np.clip(1 - 2 * time, 0, 1), np.full(40, 0.6), time * (time > 0.2), time * (time > 0.6)]).T
shares /= shares.sum(axis=1, keepdims=True)

h = et.Hierarchy(linkage="ward")
partition, partitions = None, []
for share in shares:
    h.insert(rng.normal(centers[rng.choice(4, size=40, p=share)]))
    if len(h) > 400:
        h.remove(h.keys()[:40])
    h.refine()
    partition = h.partition(height=30, follow=partition)
    partitions.append(partition)

# %%
# The size of each cluster over time. An id that is gone is not used again.

ids = sorted({i for partition in partitions for i in partition.ids})
sizes = np.array([[partition.sizes().get(i, 0) for partition in partitions] for i in ids])
fig, ax = plt.subplots(figsize=(8, 4), layout="constrained")
ax.stackplot(range(1, 41), sizes, labels=[f"cluster {i}" for i in ids])
ax.set(xlabel="batch", ylabel="points", xlim=(1, 40))
ax.legend(loc="upper left")
plt.show()

# %%
# What became of the clusters between two moments, in words. The last column is left out here: it has the keys that
# moved.

print(partitions[-1].changes(partitions[14]).drop(columns="keys").to_string())
