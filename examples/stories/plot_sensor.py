"""
A sensor that drifts, and alarms that do not
============================================

Sara looks after a pump. Every ten minutes it reports a temperature, a vibration and a current. She wants an alarm when
the pump behaves as it never has before. Fixed limits do not work: it is warmer by day than by night, summer comes, and
after two weeks every afternoon is an alarm.

She needs alarms that compare with what has been normal *lately*.
"""

# %%
# The readings
# ------------
# Forty days of readings are simulated. The temperature follows the hour, and rises by 20 degrees as summer comes. The
# current follows the temperature. Three single readings are wrong, as when a cable is loose. On day 30 a bearing
# breaks, and from then on the vibration is higher than it has ever been.

import time

import matplotlib.pyplot as plt
import numpy as np

import evertree as et

AN_HOUR, A_DAY, N_DAYS = 6, 144, 40
LOOSE, BROKEN = [11.3, 17.8, 24.1], 30  # days


def readings(seed=0):
    """The day of each reading, and what was read: temperature, vibration, current."""
    rng = np.random.default_rng(seed)
    day = np.arange(N_DAYS * A_DAY) / A_DAY
    temperature = 40 + 20 * day / N_DAYS + 3 * np.sin(2 * np.pi * day) + rng.normal(0, 0.5, day.size)
    vibration = 2 + rng.normal(0, 0.15, day.size) + np.where(day >= BROKEN, 1.5, 0)
    current = 8 + 0.1 * (temperature - 40) + rng.normal(0, 0.1, day.size)
    X = np.column_stack([temperature, vibration, current])
    for moment in LOOSE:
        X[int(moment * A_DAY)] += [-15, 2, -4]
    return day, X


# %%
# What she types
# --------------
# evertree keeps a tree of readings, in which those that are alike are close together. The *score* of a reading says how
# far up it has to go until it has company: the higher, the more it stands apart. Readings are compared by the squares
# of their differences, added up. As the three columns have different units, each is divided by how much it varies in
# the first three days.
#
# The tree keeps the readings of three days: when new ones come in, the oldest go. Each hour, the six new readings are
# scored, which does not change the tree, and then inserted. One week shows which scores are usual, and twice the
# highest of that week is the limit for alarms.

WINDOW, USUAL = 3 * A_DAY, 10 * A_DAY


def watch(X, follows=True):
    """The score of each reading when it came, the limit, and for each hour with an alarm the reading and the reason."""
    X = X / X[:WINDOW].std(axis=0)
    h = et.Hierarchy(linkage="average", metric="sqeuclidean")
    h.keep(last=WINDOW)
    h.insert(X[:WINDOW])
    scores, limit, alarms = np.zeros(len(X)), np.inf, {}
    for start in range(WINDOW, len(X), AN_HOUR):
        hour = slice(start, start + AN_HOUR)
        scores[hour] = h.anomaly_scores(X[hour])
        if start == USUAL:
            limit = 2 * scores[:USUAL].max()
        if scores[hour].max() > limit:
            worst = h.anomalies(X[hour], n=1)[0]
            alarms[start + worst.row] = worst.reason
        if follows:
            h.insert(X[hour])
    return scores, limit, alarms


day, X = readings()
start = time.perf_counter()
lately = watch(X)
seconds = time.perf_counter() - start

# %%
# What she sees
# -------------
# The first alarms, each with its reason:

_, _, alarms = lately
for row, reason in list(alarms.items())[:6]:
    print(f"day {day[row]:.2f}: temperature {X[row, 0]:.0f}, vibration {X[row, 1]:.1f}: {reason}")

# %%
# Three loose cables, and then the bearing, in the hour in which it breaks. Nothing else, through a whole summer.
#
# Beside it, a tree that knows the first three days and nothing since. It finds the bearing, too, after dozens of alarms
# that only say that it is summer. The scores are the highest of each hour, the dashed line is the limit, and dots are
# alarms.

at_first = watch(X, follows=False)


def draw(day, X, watched):
    """The readings, and below them for each way to watch the highest score of each hour, and the alarms."""
    _, axes = plt.subplots(3, 1, figsize=(9, 6.5), sharex=True, layout="constrained")
    title = {"loc": "left", "fontsize": "medium"}
    axes[0].set_title("What the pump reports; the bearing breaks at the dotted line", **title)
    axes[0].plot(day, X[:, 0], color="0.6", linewidth=0.6)
    axes[0].set(ylim=(10, 70), yticks=[40, 60])
    axes[0].set_ylabel("temperature", color="0.4", loc="top")
    vibration = axes[0].twinx()
    vibration.plot(day, X[:, 1], color="tab:blue", linewidth=0.6)
    vibration.set(ylim=(0, 14), yticks=[0, 2, 4])
    vibration.set_ylabel("vibration", color="tab:blue", loc="bottom")
    for ax, (name, (scores, limit, alarms)) in zip(axes[1:], watched.items(), strict=True):
        rows = list(alarms)
        highest = scores[WINDOW:].reshape(-1, AN_HOUR).max(axis=1)
        ax.semilogy(day[WINDOW::AN_HOUR], highest, color="0.6", linewidth=0.6)
        ax.plot(day[rows], scores[rows], "o", color="tab:red", markersize=4)
        ax.axhline(limit, color="black", linewidth=0.8, linestyle="--")
        n_before = np.count_nonzero(day[rows] < BROKEN)
        ax.set(ylabel="score", ylim=(3, 2e4))
        ax.set_title(f"{name}: {n_before} hours with an alarm before the bearing breaks", **title)
    for ax in axes:
        ax.axvline(BROKEN, color="black", linewidth=0.8, linestyle=":")
    axes[-1].set(xlabel="day", xlim=(0, N_DAYS))


draw(day, X, {"Compared with the last three days": lately, "Compared with the first three days": at_first})
plt.show()

# %%
# What it costs
# -------------
# Scoring and inserting an hour of readings, while the oldest leave:

n_hours = (len(X) - WINDOW) // AN_HOUR
print(f"{1000 * seconds / n_hours:.1f} milliseconds; there are {WINDOW} readings in the tree, of {len(X):,} that came")

# %%
# Memory does not grow: the tree holds three days, for ever.
#
# What to know
# ------------
# - The alarm is raised by the *change*. After some hours the broken bearing is part of what is known, and after three
#   days it is all that is known: the alarms end, and the pump is still broken. An alarm is a message to somebody, not a
#   lamp that stays on.
# - The window is a choice. A short one forgets fast and gets used to a fault soon. A long one takes longer to get used
#   to a new season. It should hold all that is normal at least once: here a day and a night.
# - Columns count by how much they vary, so bring them to one scale first, as above.
# - Something that gets worse very slowly raises no alarm in a window that moves along. For that, keep a tree of the
#   first days beside it, as in the lowest picture, with a limit that summer does not reach.
#
# :doc:`/streams` has more on windows, and :doc:`/anomalies` on scores, how they are made, and how well they find what
# is known to be wrong.
