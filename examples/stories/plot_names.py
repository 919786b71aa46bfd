"""
One customer, four spellings
============================

Clara looks after the customers of a shop, in a table of a database. People register by telephone, at the counter and on
their phones, so Katharina Schneider is also Katharina Schnieder and Katarina Schneider, gets three letters for
Christmas and no discount. Once a year somebody goes through the list by hand.

She needs a column that says who is the same person, and that is right tomorrow, too, when new rows have come in.
"""

# %%
# The table
# ---------
# Two hundred people, made up here. Some of them register again, each time with another typing error: a letter is left
# out, doubled or changed, or two letters change places. Three hundred rows are in the table when the story begins, and
# fifty come later.

import sqlite3
import tempfile
from functools import cache
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import evertree as et

FIRST = """
    Katharina Maria Anna Elisabeth Johanna Susanne Barbara Veronika Theresa Magdalena Franziska Cornelia Michael Thomas
    Andreas Jonas Stefan Christian Alexander Wolfgang Sebastian Benjamin Matthias Florian
"""
LAST = """
    Schneider Zimmermann Hoffmann Lehmann Kaufmann Baumgartner Steinbach Rosenberg Lindner Krawczyk Petrovic Fernandez
    Johansson Papadopoulos Yilmaz Nowakowski Moretti Dubois Kowalski Andersen Brennan Takahashi
"""


def misspelt(word, rng):
    """A word with one typing error, not in its first letter."""
    i = rng.integers(1, len(word) - 1)
    return [
        word[:i] + word[i + 1 :],
        word[:i] + word[i] + word[i:],
        word[:i] + "aeinrst"[rng.integers(7)] + word[i + 1 :],
        word[:i] + word[i + 1] + word[i] + word[i + 2 :],
    ][rng.integers(4)]


def registrations(n_people=200, n_again=150, seed=0):
    """Rows of first name, last name, and the number of the person, which Clara does not know."""
    rng = np.random.default_rng(seed)
    names = rng.permutation([(first, last) for first in FIRST.split() for last in LAST.split()])[:n_people].tolist()
    rows = [(first, last, person) for person, (first, last) in enumerate(names)]
    for person in rng.integers(n_people, size=n_again):
        words = list(rows[person][:2])
        wrong = rng.integers(2)
        words[wrong] = misspelt(words[wrong], rng)
        rows.append((*words, int(person)))
    return [rows[i] for i in rng.permutation(len(rows))]


# %%
# What she types
# --------------
# Two customers are as different as the number of typing errors that it takes to make one of the other: letters that are
# left out, added or changed, and neighbours that change places.


@cache
def typing_errors(one, other):
    """The least number of typing errors between two words, letter by letter."""
    above, row = None, list(range(len(other) + 1))
    for i, a in enumerate(one, start=1):
        above, last, row = row, above, [i]
        for j, b in enumerate(other, start=1):
            errors = min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and b == one[i - 2]:
                errors = min(errors, last[j - 2] + 1)
            row.append(errors)
    return row[-1]


def differing(a, b):
    """How different two customers are, each a first and a last name."""
    return sum(typing_errors(one, other) for one, other in zip(a, b, strict=True))


# %%
# `evertree.follow` reads the table, makes a tree in which rows that are alike are close together, cuts it into groups,
# and writes them into a table beside the first: for each row the number of its group. With *complete linkage*, two
# branches join at the height of the two rows in them that differ most. So a cut at a height of 2 means that no two rows
# of a group are more than two typing errors apart.

ADD = "INSERT INTO customers (first, last) VALUES (?, ?)"


def follow(file):
    """A follower of the table of customers."""
    options = {"linkage": "complete", "metric": differing, "n_clusters": None, "height": 2}
    return et.follow(file, table="customers", key="id", columns=["first", "last"], **options)


rows = registrations()
folder = tempfile.TemporaryDirectory()
file = Path(folder.name) / "shop.db"
db = sqlite3.connect(file)
with db:
    db.execute("CREATE TABLE customers (id INTEGER PRIMARY KEY, first TEXT, last TEXT)")
    db.executemany(ADD, [row[:2] for row in rows[:300]])

follower = follow(file)
first = follower.last

# %%
# What she sees
# -------------
# The numbers are joined with her own table, as any others. Who is registered most often?

OFTEN = """
    SELECT height_2 AS customer, group_concat(first || ' ' || last, ', ')
    FROM customers JOIN evertree_customers_assignment USING (id)
    GROUP BY customer HAVING count(*) >= 4 ORDER BY count(*) DESC
"""
for customer, names in db.execute(OFTEN):
    print(f"{customer}: {names}")

# %%
# Fifty rows come in, ten a day. A poll finds what is new and puts each row into its group, or into a group of its own.
# (She polls by hand here; ``follower.run()`` does it for ever.)


def assignments(db):
    """The group of each row."""
    return dict(db.execute("SELECT id, height_2 FROM evertree_customers_assignment"))


at_first = assignments(db)
for day in range(5):
    with db:
        db.executemany(ADD, [row[:2] for row in rows[300 + 10 * day : 310 + 10 * day]])
    tick = follower.poll()
    groups = list(assignments(db).values())
    known = sum(groups.count(group) > 1 for group in groups[-10:])
    print(f"day {day + 1}: {tick.inserted} rows came, {known} of them from somebody who is in the table already")

# %%
# Numbers stay: no row of the first three hundred has got another, and a follower that is started again goes on with the
# same ones, because they are in the database.

now = assignments(db)
print("the same numbers after five days:", all(now[row] == number for row, number in at_first.items()))
follower.close()
follower = follow(file)
print("and after a restart:", assignments(db) == now)

# %%
# As the people are made up, it is known who is who, and the groups can be checked pair by pair.


def checked(persons, groups):
    """Of the pairs of rows of one person, the share in one group; of pairs in one group, the share of one person."""
    persons, groups = np.asarray(persons), np.asarray(groups)
    i, j = np.triu_indices(len(persons), 1)
    same_person, same_group = persons[i] == persons[j], groups[i] == groups[j]
    return same_group[same_person].mean(), same_person[same_group].mean()


found, right = checked([person for _, _, person in rows], list(now.values()))
print(f"{found:.0%} of the pairs of rows of one person are found, {right:.0%} of the pairs that are found are right")

# %%
# Some of the larger groups, in a tree of their own. Where two branches join, the axis below says how many typing errors
# are between their rows at most. The dashed line is where the tree is cut.


def draw_groups(db, n_groups=7):
    """The tree of the rows of the largest groups."""
    largest = f"SELECT height_2 FROM evertree_customers_assignment GROUP BY 1 ORDER BY count(*) DESC LIMIT {n_groups}"
    query = f"""
        SELECT id, first, last, height_2 FROM customers JOIN evertree_customers_assignment USING (id)
        WHERE height_2 IN ({largest})
    """
    keys, first, last, groups = zip(*db.execute(query), strict=True)
    h = et.Hierarchy(linkage="complete", metric=differing)
    h.insert(list(zip(first, last, strict=True)), keys=keys)
    h.refine()
    names = {key: f"{a} {b}{' (new)' if key > 300 else ''}" for key, a, b in zip(keys, first, last, strict=True)}
    _, ax = plt.subplots(figsize=(8, 0.2 * len(keys)), layout="constrained")
    h.plot(
        np.unique(groups, return_inverse=True)[1], orientation="left", leaf_labels=names, ax=ax, ylabel="typing errors"
    )
    ax.axvline(2.5, color="black", linewidth=0.8, linestyle="--")
    ax.set_xticks([0, 2, 5, 10, 15])


draw_groups(db)
plt.show()

# %%
# What it costs
# -------------
# Every row is compared with every other one, once. So the first look takes most of the time, and a day takes little.

print(f"300 rows: {first.seconds:.1f} s for {300 * 299 // 2:,} comparisons, loading evertree included")
print(f"10 more rows: {tick.seconds:.2f} s")

follower.close()
db.close()
folder.cleanup()

# %%
# What to know
# ------------
# - A function of two objects is called n² / 2 times, and as many numbers are kept. That is good for some thousand rows.
#   For more, let numbers speak: count the pairs of letters of each name in a vector, keep it in a column, and follow
#   that with ``vector=``, ``linkage="average"`` and ``metric="cosine"``, which need no comparison of all pairs. Groups
#   are then cut at another height, which has to be found anew.
# - Two typing errors also lead from Johanna to Johannes. If both have the same last name, they are one customer here.
#   Add what tells them apart: a date of birth is one more column, and one more term in ``differing``.
# - Rows that are corrected or deleted are followed, too: a row whose name is corrected moves to its new group.
# - What became of groups is written to a third table, ``evertree_customers_events``.
#
# :doc:`/databases` has the rest: PostgreSQL and DuckDB, how changes are found, restarts, alarms.
