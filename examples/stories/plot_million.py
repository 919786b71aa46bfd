"""
A million vectors on a laptop
=============================

Mei has a million products, each described by sixteen numbers, and a laptop. She wants the whole hierarchy: departments,
shelves in a department, variants of a product. Ordinary clustering compares all pairs, and half a million million
distances are four terabytes. Methods that do fit either give no hierarchy, or give it all at once, after who knows how
long.

She wants a tree soon, a better one a little later, and to stop when it is good enough.
"""

# %%
# The vectors
# -----------
# A mixture of 200 kinds of products, simulated, that overlap a little. While this page was made, 20,000 vectors had to
# do, so that it is made in seconds. The same script with an argument takes more of them::
#
#     python examples/stories/plot_million.py 1000000 million.png

import sys
import time

import matplotlib.pyplot as plt
import numpy as np

import evertree as et


def vectors(n, seed=0):
    """A vector for each of n products, in single precision, and the kind of each."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(200, 16))
    kind = rng.integers(len(centers), size=n)
    X = centers[kind] + 0.55 * rng.normal(size=(n, 16))
    return X.astype(np.float32), kind


# %%
# What she types
# --------------
# ``n_jobs=-1`` is for all processors. ``insert`` takes all vectors at once, and returns with a valid tree. ``refine``
# then makes it better, for as many seconds as she gives it, as often as she likes. After each slice of time she looks
# how good the tree is.


def over_time(X, kind, slice_of_insertion=0.25):
    """The tree, the seconds after insertion and after each slice of refinement, and how pure the tree was then."""
    h = et.Hierarchy(linkage="ward", n_jobs=-1)
    start = time.perf_counter()
    h.insert(X)
    seconds = [time.perf_counter() - start]
    purity = [et.quality.dendrogram_purity(h, kind)]
    stopped_by = "seconds"
    while stopped_by == "seconds":
        report = h.refine(seconds=slice_of_insertion * seconds[0])
        stopped_by = report.stopped_by
        seconds.append(seconds[-1] + report.seconds)
        purity.append(et.quality.dendrogram_purity(h, kind))
    return h, np.array(seconds), np.array(purity)


n = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
over_time(*vectors(10_000))  # loads the compiled code, so that it is not counted
X, kind = vectors(n)
h, seconds, purity = over_time(X, kind)

# %%
# What she sees
# -------------
# How well does the tree keep the 200 kinds apart, of which it knows nothing? *Dendrogram purity* is 1 if each kind is a
# branch of its own: take two products of one kind and the smallest cluster that has both; purity is how much of it is
# of that kind, on average over all such pairs. (With a million vectors too, it is computed exactly.)


def draw(seconds, purity, n):
    """How good the tree was over time."""
    _, ax = plt.subplots(figsize=(8, 4), layout="constrained")
    ax.plot(seconds, purity, color="tab:blue")
    ax.plot(seconds[0], purity[0], "o", color="tab:blue")
    ax.annotate("all are in the tree", (seconds[0], purity[0]), (8, -12), textcoords="offset points")
    ax.plot(seconds[-1], purity[-1], "s", color="tab:blue")
    ax.annotate("nothing left to do", (seconds[-1], purity[-1]), (0, -16), textcoords="offset points", ha="right")
    ax.set(xlabel="seconds", ylabel="dendrogram purity", xlim=(0, None), ylim=(0, 1.02), title=f"{n:,} vectors")
    ax.spines[["top", "right"]].set_visible(False)


draw(seconds, purity, n)
if len(sys.argv) > 2:
    plt.savefig(sys.argv[2], dpi=110)
plt.show()
print(f"{purity[0]:.3f} after {seconds[0]:.1f} s, {purity[-1]:.3f} after {seconds[-1]:.1f} s")

# %%
# At first the curve is flat: the neighbours of each vector are looked for, and the tree stays as it is. Then clusters
# find each other, the curve rises steeply, and from its bend on there is little to gain.
#
# What it costs
# -------------
# Beside the seconds above: memory, and what new vectors cost. The first ones that come find the arrays full, and wait
# until these have been made longer, by half; those that follow do not.

print(f"{h.n_bytes / 1e6:,.0f} MB of memory, for vectors of {X.nbytes / 1e6:,.0f} MB")
for seed in (1, 2):
    start = time.perf_counter()
    h.insert(vectors(100, seed)[0])
    print(f"{1e6 * (time.perf_counter() - start) / 100:,.0f} microseconds for each of a hundred more vectors")

# %%
# And a million? This is what the script draws for a million vectors, on two cores with little else to do:
#
# .. image:: /images/million.png
#    :alt: Dendrogram purity over time for a million vectors
#
# A tree with a purity of 0.741 was there after 6.7 seconds, and of 0.960 after 77.2, when nothing was left to do. It
# had 405 MB of memory for vectors of 64 MB. Making the arrays longer took two seconds, once, and after that a vector
# more took 21 microseconds.
#
# What to know
# ------------
# - The tree is the same for every number of threads, to the last bit. But how far it gets in some seconds depends on
#   the machine: where a result must be repeated exactly, call ``refine()`` without a limit.
# - A call of ``refine(seconds=...)`` ends in time, also with a million vectors, and the tree is valid after each of
#   them. So it fits between other work: a second now, a minute at night.
# - New vectors need no new start: they are inserted, and a short ``refine`` mends what they have disturbed.
# - The measure needs to know the kinds, and who has those needs no clustering. Without them, ``report.quality``
#   estimates the share of the tree with which nothing is wrong, and ``h.instability()`` measures it.
#
# :doc:`/parallel` also says how threads share the work, and :doc:`/distributed` what to do if the vectors do not fit
# into one machine.
