"""
A tree that refines itself
==========================

`evertree.Hierarchy.refine` takes a number of moves, and goes on where it was. A look at the tree in between gives a
moving picture.

.. image:: /images/refining.gif

While this page was made, a dozen pictures had to do. For the one above, the script was run with an argument::

    python examples/plot_animation.py 60
"""

# %%
# A random tree of points in five groups. One copy is refined to the end, to know how many moves it takes, what the
# clusters are, and in which order the leaves stand.

import sys

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.animation import PillowWriter
from scipy.cluster.hierarchy import leaves_list

import evertree as et

rng = np.random.default_rng(0)
centers = [[0.0, 0.0], [6.0, 0.0], [3.0, 5.0], [-3.0, 5.0], [1.5, -5.0]]
X = np.concatenate([rng.normal(center, 0.8, size=(30, 2)) for center in centers])
h = et.Hierarchy.random(X, seed=1)

end = h.copy()
report = end.refine()
n_moves = report.moves + report.grafts
clusters = end.partition(n_clusters=5)
leaf_rank = np.argsort(leaves_list(end.linkage_matrix()))
print(report.stopped_by, "after", n_moves, "moves")

# %%
# Points, clusters and the cophenetic correlation, in a picture for every few moves. A cluster has the colour of the one
# at the end that it has most points of (``follow``).

figure, axes = plt.subplot_mosaic(
    [["points", "tree"], ["curve", "tree"]], width_ratios=[1, 1.7], figsize=(8, 4.4), layout="constrained"
)
colors = np.array(["#332288", "#CC6677", "#117733", "#88CCEE", "#882255"])  # the first five of `plot`
dots = axes["points"].scatter(X[:, 0], X[:, 1], s=16, linewidths=0)
axes["points"].set(title="the points, by cluster", xticks=[], yticks=[])
(line,) = axes["curve"].plot([], [], color=colors[0], clip_on=False)
axes["curve"].set(xlabel="moves", ylabel="cophenetic correlation", xlim=(0, n_moves), ylim=(-0.1, 1))
axes["curve"].spines[["top", "right"]].set_visible(False)

end.plot(clusters, n_shown=None, ax=axes["tree"], title="stable")
figure.draw_without_rendering()
figure.set_layout_engine("none")  # so that nothing jumps from picture to picture

n_pictures = int(sys.argv[1]) if len(sys.argv) > 1 else 12
writer = PillowWriter(fps=10)
curve = []
done = 0
with writer.saving(figure, "refining.gif", dpi=100):
    for target in np.linspace(0, n_moves, n_pictures).round().astype(int).tolist():
        report = h.refine(moves=target - done)
        done += report.moves + report.grafts
        curve.append((done, et.quality.cophenetic_correlation(h)))
        now = h.partition(n_clusters=5, follow=clusters)

        dots.set_facecolors(colors[now.labels % 5])
        line.set_data(*zip(*curve, strict=True))
        axes["tree"].clear()
        h.plot(now, n_shown=None, leaf_rank=leaf_rank, ax=axes["tree"], title=f"{done:,} moves")
        axes["tree"].set_ylim(0, 1.2 * end.height(end.root))
        writer.grab_frame()
    for _ in range(n_pictures // 3):  # the last picture stays for two seconds
        writer.grab_frame()
plt.show()
