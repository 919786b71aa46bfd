"""
Topics of the news, with numbers that stay
==========================================

Nora writes a morning report: what are the newspapers about, and what is new? Each article reaches her as an
*embedding*, a row of numbers that a language model makes of a text. Texts about the same thing point in the same
direction. Every morning she clusters the articles of the last ten days, and every morning the clusters are numbered
anew. The flood that was topic 3 yesterday is topic 5 today, and nobody can compare two reports.

She needs topics that keep their numbers while articles come and go, and a word when a topic is new, splits or ends.
"""

# %%
# The articles
# ------------
# Her archive cannot be shown here, so a month of news is simulated. A topic is a direction in a space of 64 dimensions,
# and an article is that direction with noise. The flood comes on day 10 and is soon forgotten. From day 14 on, what is
# written about energy parts in two: gas and nuclear power. One article in ten is about something else.

import time

import matplotlib.pyplot as plt
import numpy as np

import evertree as et

N_DAYS, FLOOD, PARTING = 30, 10, 14


def popularity(day):
    """How much is written about each topic."""
    energy = {"energy": 28} if day < PARTING else {"gas": 14, "nuclear power": 14}
    flood = {"flood": 60 * 0.75 ** (day - FLOOD)} if day >= FLOOD else {}
    return {"elections": 10 + day, "health": 15, "football": 12 + 6 * np.sin(day / 3)} | energy | flood


def direction(topic, day, axes):
    """Where the articles about a topic point. Nuclear power turns away from gas, little by little."""
    place = {"elections": 0, "health": 1, "football": 2, "flood": 3, "energy": 4, "gas": 4, "nuclear power": 4}
    turned = min((day - PARTING + 1) / 6, 1) if topic == "nuclear power" else 0
    return (1 - turned) * axes[place[topic]] + turned * axes[5]


def news(seed=3, n_columns=64, a_day=60):
    """The embeddings of each day, and what each article is about; an empty name for something else."""
    rng = np.random.default_rng(seed)
    axes = np.linalg.qr(rng.normal(size=(n_columns, n_columns)))[0]
    days = []
    for day in range(1, N_DAYS + 1):
        weights = popularity(day)
        share = np.array([*weights.values(), sum(weights.values()) / 9])
        about = rng.choice([*weights, ""], p=share / share.sum(), size=a_day)
        vectors = 0.7 * rng.normal(size=(a_day, n_columns)) / np.sqrt(n_columns)
        for topic in weights:
            vectors[about == topic] += direction(topic, day, axes)
        days.append((vectors, about))
    return days


# %%
# What she types
# --------------
# evertree keeps a tree of the articles, in which those that are alike are close together. They are compared by *cosine
# distance*: 0 for the same direction, 1 for directions that have nothing to do with each other. Articles stay for ten
# days. Cut through the tree at a distance of 0.6, and each branch that comes off is a topic, if it has at least 12
# articles. A day is three lines: insert the new articles, refine the tree, and make a *partition* into topics that
# follows the one of the day before, which is what keeps the numbers.


def follow_topics(days):
    """The partition of each day, what has changed since the day before, and the seconds that it took."""
    h = et.Hierarchy(linkage="average", metric="cosine")
    h.keep(max_age=9, time=0)
    partitions, changes, seconds = [et.Partition.of([], [])], [], []
    for day, (vectors, _) in enumerate(days, start=1):
        start = time.perf_counter()
        h.insert(vectors, time=day)
        h.refine()
        partitions.append(h.partition(height=0.6, min_cluster_size=12, follow=partitions[-1]))
        seconds.append(time.perf_counter() - start)
        changes.append(partitions[-1].changes(partitions[-2]))
    return partitions[1:], changes, seconds


days = news()
partitions, changes, seconds = follow_topics(days)

# %%
# What she sees
# -------------
# The tables of changes say what became of each topic. For the report, she leaves out that topics grew and shrank.

for day, table in enumerate(changes, start=1):
    for row in table.itertuples():
        if row.event == "split":
            print(f"day {day}: topic {row.id} has split, {len(row.keys)} articles are now topic {row.others[0]}")
        elif row.event == "born" and not row.others:
            print(f"day {day}: topic {row.id} is new, {row.after} articles")
        elif row.event == "died":
            print(f"day {day}: topic {row.id} has ended")

# %%
# She reads an article or two of each topic, and gives it a name. As numbers stay, she does that once. (Here, the
# simulation knows what an article is about.)


def name_of(topic, partitions, days):
    """What most articles of a topic are about, on the day on which it has most."""
    about = np.concatenate([names for _, names in days])  # the key of an article is its place
    largest = max(partitions, key=lambda partition: partition.sizes().get(topic, 0))
    names, counts = np.unique(about[largest.members(topic)], return_counts=True)
    return names[counts.argmax()]


# %%
# Each band is a topic, as wide as it has articles on that day. When a topic splits, what leaves it flows over into a
# band of its own.


def draw_flow(partitions, changes, names):
    """Topics as bands, and what flows from one to another when it splits."""
    _, ax = plt.subplots(figsize=(9, 5), layout="constrained")
    parents = {row.others[0]: row.id for table in changes for row in table[table.event == "split"].itertuples()}
    topics = sorted(names, key=lambda topic: (parents.get(topic, topic), topic))  # a part comes next to the whole
    days = np.arange(1, len(partitions) + 1)
    half = {topic: np.array([p.sizes().get(topic, 0) for p in partitions]) / 2 for topic in topics}
    widest = np.array([half[topic].max() for topic in topics])
    middle = dict(zip(topics, widest - 2 * np.cumsum(widest) - 30 * np.arange(len(topics)), strict=True))
    color = {topic: f"C{rank}" for rank, topic in enumerate(topics)}
    for topic in topics:
        alive = half[topic] > 0
        low, high = middle[topic] - half[topic], middle[topic] + half[topic]
        ax.fill_between(days, low, high, where=alive, color=color[topic], linewidth=0)
        place = days[alive][-1] + 0.4, middle[topic]
        ax.text(*place, f"{topic}: {names[topic]}", va="center", color=color[topic], weight="bold")
    bend = (1 - np.cos(np.linspace(0, np.pi, 50))) / 2
    for day, table in enumerate(changes, start=1):
        for row in table[table.event == "split"].itertuples():
            part = row.others[0]
            start = middle[row.id] - half[row.id][day - 2] + np.array([0, len(row.keys)])
            end = middle[part] + half[part][day - 1] * np.array([-1, 1])
            low, high = start[:, None] + (end - start)[:, None] * bend
            ax.fill_between(np.linspace(day - 1, day, 50), low, high, color=color[part], linewidth=0)
    ax.set(xlabel="day", xlim=(1, len(partitions)), yticks=[])
    ax.set_title("Topics of the last ten days, by number of articles")
    ax.spines[["left", "top", "right"]].set_visible(False)


topics = {topic for partition in partitions for topic in partition.ids}
draw_flow(partitions, changes, {topic: name_of(topic, partitions, days) for topic in topics})
plt.show()

# %%
# Topic 4, the flood, comes and goes. Topic 0 was energy; when nuclear power parts from it, the larger part keeps the
# number, and the other one gets a new one. In the thirty days, every article has been replaced two times, and no topic
# has changed its number.
#
# What it costs
# -------------
# A day, with articles coming and going, the tree refined to the end, and the topics compared with yesterday's:

print(f"{1000 * np.median(seconds):.0f} milliseconds, with {len(partitions[-1].keys)} articles in the tree")

# %%
# What to know
# ------------
# - What counts as one topic is her choice: the distance of 0.6, and the 12 articles. Other language models need another
#   distance. ``h.plot()`` shows the tree, and ``h.cuts`` tries several distances at once.
# - Close to the limit, a topic that begins to part in two may come together again for a day. The changes say that, too:
#   it has *merged*.
# - A number that is gone is not used again. If a topic is forgotten and comes back a month later, it is a new one.
# - Articles in no topic have the label -1.
# - The partition of yesterday has to be there today. In another process it can be made again from its keys and labels,
#   by ``et.Partition.of``. A followed table keeps the numbers by itself: see :doc:`/databases`.
#
# :doc:`/guide` has more on partitions, and :doc:`/streams` on trees that keep what came last.
