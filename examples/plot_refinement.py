"""
Quality over time
=================

`evertree.Hierarchy.refine` can be stopped at any moment, and goes on where it was. Its report has the history of the
quality: the estimated share of nodes with which nothing is wrong.
"""

# %%
# The worst possible start: a tree drawn at random.

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

import evertree as et

X, digit = load_digits(return_X_y=True)
h = et.Hierarchy.random(X, linkage="ward", seed=0)
print(f"purity of a random tree: {et.quality.dendrogram_purity(h, digit):.2f}")

# %%
# First a budget of 2,000 moves, then to the end. The tree is valid after both.

report = h.refine(moves=2000)
print(report.stopped_by, f"{et.quality.dendrogram_purity(h, digit):.2f}")

report = h.refine()
print(report.stopped_by, f"{et.quality.dendrogram_purity(h, digit):.2f}")

# %%
# The history of the second refinement.

seconds, quality, moves = zip(*report.history, strict=True)
fig, ax = plt.subplots(layout="constrained")
ax.step(seconds, quality, where="post", color="C0")
ax.set_xlabel("seconds")
ax.set_ylabel("quality: share of nodes with nothing wrong", color="C0")
made = ax.twinx()
made.step(seconds, moves, where="post", color="C1")
made.set_ylabel("moves and grafts", color="C1")
plt.show()

# %%
# `evertree.Hierarchy.instability` measures what the quality estimates: it draws nodes, and searches the whole tree for
# clusters that form a blocking pair with them.

blocked = h.instability(sample=500)
print(
    f"{blocked.fraction:.1%} of {blocked.n_nodes} nodes; of all nodes at most {blocked.high:.1%}, with 95 % confidence"
)
