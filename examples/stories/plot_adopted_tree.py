"""
A SciPy tree, adopted
=====================

Elif has a tree of handwritten digits that SciPy made, a figure in a paper that shows it, and scripts that read it. Now
the collection changes: every day some scans come in, some are withdrawn, and now and then a bad one is scanned again.
SciPy can only make the whole tree anew, and the larger the collection, the longer that takes: four times as long for
twice as many.

She wants to keep the tree that she has, and let it follow the collection.
"""

# %%
# The tree
# --------
# The digits that come with scikit-learn: small images of 64 grey values. To have more of them, each is scanned three
# times, which here means that noise is added. SciPy makes a tree of 2,000 scans by *Ward's method*: again and again,
# the two clusters are joined that together spread least. The height of a cluster in the tree says how much it spreads.

import time

import matplotlib.pyplot as plt
import numpy as np
from scipy.cluster.hierarchy import cophenet, linkage
from sklearn.datasets import load_digits

import evertree as et


def scans(seed=0):
    """All scans in any order, and the digit that each shows."""
    images, digits = load_digits(return_X_y=True)
    rng = np.random.default_rng(seed)
    rows = rng.permutation(3 * len(images)) % len(images)
    return np.clip(images[rows] + rng.normal(0, 2, size=(len(rows), 64)), 0, 16), digits[rows]


images, digits = scans()
Z = linkage(images[:2000], "ward")

# %%
# What she types
# --------------
# `evertree.Hierarchy.from_linkage` takes SciPy's matrix, and the images that it was made of. The tree is taken over as
# it is, and so its heights are SciPy's.

h = et.Hierarchy.from_linkage(Z, images[:2000], linkage="ward")
print("same heights:", np.allclose(h.linkage_matrix()[:, 2], Z[:, 2]))

# %%
# Each day 30 scans come in, the 20 oldest are withdrawn, and 5 are scanned again, brighter or darker than before.
# ``refine`` then mends what that has disturbed in the tree.


def follow_a_day(h, images, rng):
    """Let the tree follow a day's changes; the key of an image is its row."""
    new = range(h.keys()[-1] + 1, h.keys()[-1] + 31)
    h.insert(images[new], keys=new)
    h.remove(h.keys()[:20])
    again = rng.choice(h.keys(), size=5, replace=False).tolist()
    h.update(again, images[again] * rng.uniform(0.8, 1.2, size=(5, 1)))
    h.refine()


# %%
# What she sees
# -------------
# After each day, how good is the tree that followed, and how good is one that SciPy makes anew of the same images?
# *Dendrogram purity* says how well the tree keeps the ten digits apart. It is 1 if each of them is a branch of its own:
# take two images of one digit and the smallest cluster that has both; purity is how much of it shows that digit, on
# average.


def compare(h, images, digits, n_days=10, seed=0):
    """For each day the purity of the tree that follows and of one that is made anew; and the last of those."""
    rng = np.random.default_rng(seed)
    purity = []
    for _ in range(n_days):
        follow_a_day(h, images, rng)
        Z = linkage(h.points(), "ward")
        anew = et.Hierarchy.from_linkage(Z, h.points(), linkage="ward")
        purity.append([et.quality.dendrogram_purity(tree, digits[h.keys()]) for tree in (h, anew)])
    return np.array(purity), Z


purity, Z = compare(h, images, digits)
print(f"purity on the last day: {purity[-1, 0]:.3f} followed, {purity[-1, 1]:.3f} made anew")

# %%
# They are as good as each other. On some days one is better, on some the other: a few late merges decide.
#
# The way back is a matrix, which SciPy's ``dendrogram`` and ``fcluster`` and her scripts take as they took the old one.
# The two trees are not the same, but alike: here is the correlation of the heights at which they join each pair of
# images.

print(f"{np.corrcoef(cophenet(h.linkage_matrix()), cophenet(Z))[0, 1]:.2f}")

# %%
# What it costs
# -------------
# How long do both take for a day, if the collection is smaller or larger?


def cost(n, images, rng):
    """Seconds to follow a day with n images, and to make the tree anew."""
    start = time.perf_counter()
    Z = linkage(images[:n], "ward")
    anew = time.perf_counter() - start
    h = et.Hierarchy.from_linkage(Z, images[:n], linkage="ward")
    h.refine()  # the first call looks at the whole tree
    start = time.perf_counter()
    follow_a_day(h, images, rng)
    return time.perf_counter() - start, anew


def draw(purity, sizes, costs):
    """How good the trees are day by day, and what a day costs by the number of images."""
    _, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for column, (label, style) in enumerate({"followed": "o-", "made anew by SciPy": "s--"}.items()):
        color = ("tab:blue", "tab:red")[column]
        left.plot(np.arange(len(purity)) + 1, purity[:, column], style, color=color, label=label)
        right.loglog(sizes, costs[:, column], style, color=color, label=label)
    left.set(title="how good the tree is", xlabel="day", ylabel="dendrogram purity", ylim=(0, 1))
    right.set(title="what a day costs", xlabel="images", ylabel="seconds", xticks=sizes)
    right.set_xticklabels(f"{n:,}" for n in sizes)
    right.minorticks_off()
    left.legend(loc="lower left")


sizes = [500, 1000, 2000, 4000]
costs = np.array([cost(n, images, np.random.default_rng(0)) for n in sizes])
draw(purity, sizes, costs)
plt.show()

# %%
# With some hundred images there is little between them. The more images there are, the more following gains: SciPy
# compares all pairs. And it keeps a number for each pair, 40 gigabytes for 100,000 images. evertree keeps the images
# two or three times, and some hundred bytes for each.
#
# What to know
# ------------
# - Up to 2,000 images the tree that followed is exactly the one that Ward's method makes of them. Beyond, it is as
#   good, but not the same to the last merge; with ``search_width=None`` it is, at a higher cost.
# - Any tree can be adopted, also one of another method. Then ``refine`` first has to turn it into a Ward tree, which
#   takes longer, and can be stopped and continued at any time.
# - Heights follow from the images and the linkage, not from the matrix.
# - Leaf i of ``h.linkage_matrix()`` is ``h.keys()[i]``. That is no longer row i, once images have been withdrawn.
#
# :doc:`/stable` says what "as good" means, with proofs, and :doc:`/guide` has other trees to begin with.
