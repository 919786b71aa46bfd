"""
A SciPy tree, adopted
=====================

Elif has a tree of handwritten digits that SciPy made, a figure in a paper that shows it, and scripts that read it. Now the
collection changes: every day some scans come in, some are withdrawn, and now and then a bad one is scanned again. SciPy can
only make the whole tree anew, and the larger the collection, the longer that takes: four times as long for twice as many.

She wants to keep the tree that she has, and let it follow the collection.
"""

# %%
# The tree
# --------
# The digits that come with scikit-learn: small images of 64 grey values. To have more of them, each is scanned three times,
# which here means that noise is added. SciPy makes a tree of 2,000 scans.

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
# ``from_linkage`` takes the tree as it is, with the images that it was made of. Nothing has moved yet, and the heights, at
# which clusters join, are SciPy's.

h = et.Hierarchy.from_linkage(Z, images[:2000], linkage="ward")
print("same heights:", np.allclose(h.linkage_matrix()[:, 2], Z[:, 2]))

# %%
# Each day 30 scans come in, the 20 oldest are withdrawn, and 5 are scanned again, brighter or darker than before.
# ``refine`` then makes it as good a tree as it can.


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
# After each day, how good is the tree that followed, and how good is one that SciPy makes anew of the same images? *Dendrogram
# purity* says how well the tree keeps the ten digits apart. It is 1 if each of them is a branch of its own: take two
# images of one digit and the smallest cluster that has both; purity is how much of it shows that digit, on average.


def timed(function, *arguments):
    """What a function returns, and how many seconds it took."""
    start = time.perf_counter()
    return function(*arguments), time.perf_counter() - start


def compare(h, images, digits, n_days=10, seed=0):
    """For each day the purity of the tree that follows and of one that is made anew, and the seconds of both."""
    rng = np.random.default_rng(seed)
    purity, seconds = [], []
    for _ in range(n_days):
        _, followed = timed(follow_a_day, h, images, rng)
        Z, anew = timed(linkage, h.points(), "ward")
        batch = et.Hierarchy.from_linkage(Z, h.points(), linkage="ward")
        purity.append([et.quality.dendrogram_purity(tree, digits[h.keys()]) for tree in (h, batch)])
        seconds.append([followed, anew])
    return np.array(purity), np.array(seconds), Z


purity, seconds, Z = compare(h, images, digits)
print(f"purity on the last day: {purity[-1, 0]:.3f} followed, {purity[-1, 1]:.3f} made anew")

# %%
# They are as good as each other. On some days one is better, on some the other: a few late merges decide.
#
# The way back is a linkage matrix, which ``dendrogram``, ``fcluster`` and her scripts take as they took the old one. The two
# matrices are not the same, but nearly: here is the correlation of the heights at which they join each pair of images.

print(f"{np.corrcoef(cophenet(h.linkage_matrix()), cophenet(Z))[0, 1]:.3f}")

# %%
# What it costs
# -------------
# How long do both take for a day, if the collection is smaller or larger?


def cost(n, images, rng):
    """Seconds to follow a day with n images, and to make the tree anew."""
    Z, anew = timed(linkage, images[:n], "ward")
    h = et.Hierarchy.from_linkage(Z, images[:n], linkage="ward")
    h.refine()  # SciPy's tree is almost as we would leave it: the first call looks at all of it
    _, followed = timed(follow_a_day, h, images, rng)
    return followed, anew


def draw(purity, sizes, costs):
    """How good the trees are day by day, and what a day costs by the number of images."""
    fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for column, (label, style) in enumerate({"followed": "o-", "made anew by SciPy": "s--"}.items()):
        color = ("#332288", "#CC6677")[column]
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
# Up to some hundred images, making the tree anew is the quicker way. From there on, following takes the lead, and it
# grows: SciPy compares all pairs. And SciPy keeps a number for each pair, which for 100,000 images is 40 gigabytes;
# evertree needs some hundred bytes an image and twice the data.
#
# What to know
# ------------
# - The tree that followed is not SciPy's tree to the last merge. It is one that is as good. With ``search_width=None`` it is one
#   that batch clustering could have made, exactly, at a higher cost.
# - Any tree can be adopted, also one of another method. Then ``refine`` first has to turn it into a Ward tree, which takes
#   longer, and can be stopped and continued at any time.
# - Heights follow from the images and the linkage, not from the matrix.
# - Leaf i of ``h.linkage_matrix()`` is ``h.keys()[i]``. That is no longer row i, once images have been withdrawn.
#
# :doc:`/stable` says what "as good" means, with proofs, and :doc:`/guide` has other trees to begin with.
