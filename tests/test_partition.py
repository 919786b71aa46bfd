"""Cuts by minimum size, several at once, and partitions that remember."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import evertree as et
from evertree.errors import MissingExtraError, ParameterError
from evertree.partition import Partition


def blobs(rng, sizes, spread=0.05):
    return np.concatenate([[10.0 * k, 0.0] + spread * rng.normal(size=(size, 2)) for k, size in enumerate(sizes)])


def naive_cut(h, n_clusters=None, height=None, min_size=1):
    """The definition: undo merges one after the other; what is then in a piece that is too small is noise."""
    count = {u: len(h.members(u)) for u in h.nodes().tolist()}
    inner = [u for u in h.nodes().tolist() if h.children(u)]
    large = [u for u in inner if min(count[c] for c in h.children(u)) >= min_size]
    large.sort(key=lambda u: (h.height(u), count[u]))
    if height is not None:
        chosen = [u for u in inner if h.height(u) > height]
    else:
        chosen = large if n_clusters is None else large[len(large) - n_clusters + 1 :]
    below = {u: frozenset(h.members(u)) for u in count}
    undone = {u for u in inner if any(below[v] <= below[u] for v in chosen)}
    tops = [u for u in count if u not in undone and (u == h.root or h.parent(u) in undone)]
    labels = dict.fromkeys(h.keys(), -1)
    for u in tops:
        if count[u] >= min_size:
            labels.update(dict.fromkeys(h.members(u), u))
    return list(labels.values())


def same_clusters(labels, expected):
    pairs = set(zip(np.asarray(labels).tolist(), expected, strict=True))
    return len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs}) and all(
        (a == -1) == (b == -1) for a, b in pairs
    )


@pytest.mark.parametrize("min_size", [1, 2, 3, 5, 20])
@pytest.mark.parametrize("linkage", ["ward", "single"])
def test_cut_is_the_definition(rng, linkage, min_size):
    h = et.Hierarchy(linkage)
    h.insert(rng.normal(size=(40, 2)))
    labels = h.cut(min_cluster_size=min_size)
    assert same_clusters(labels, naive_cut(h, min_size=min_size))
    assert min(np.bincount(labels[labels >= 0]), default=min_size) >= min_size
    seen = list(dict.fromkeys(labels[labels >= 0].tolist()))
    assert seen == list(range(len(seen)))
    for height in (0.2, 0.5, 1.0, 100.0):
        assert same_clusters(h.cut(height=height, min_cluster_size=min_size), naive_cut(h, None, height, min_size))
    for n_clusters in range(1, len(seen) + 1):
        found = h.cut(n_clusters=n_clusters, min_cluster_size=min_size)
        assert same_clusters(found, naive_cut(h, n_clusters, None, min_size))
        assert found.max() == n_clusters - 1
    if len(seen) < 40:
        with pytest.raises(
            ParameterError, match=f"n_clusters must be at most {len(seen)}, as many as have {min_size} "
        ):
            h.cut(n_clusters=len(seen) + 1, min_cluster_size=min_size)


def test_too_few_points_are_all_noise():
    h = et.Hierarchy()
    h.insert([[0.0], [1.0]])
    assert h.cut(min_cluster_size=3).tolist() == [-1, -1]
    with pytest.raises(ParameterError, match="n_clusters must be at most 0, as many as have 3 points or more; it is 1"):
        h.cut(n_clusters=1, min_cluster_size=3)


def test_a_height_with_a_minimum_size_does_not_depend_on_others():
    h = et.Hierarchy("single")
    h.insert([[0.0], [1.0], [100.0]])
    assert h.cut(height=2.0, min_cluster_size=2).tolist() == [0, 0, -1]
    h.insert([[50.0], [51.0]])
    assert h.cut(height=2.0, min_cluster_size=2).tolist() == [0, 0, -1, 1, 1]


def test_several_cuts_in_one_table(rng):
    h = et.Hierarchy()
    h.insert(blobs(rng, [5, 4, 3]), keys=[f"k{i}" for i in range(12)])
    table = h.cuts(n_clusters=[1, 3], height=[2.0])
    assert table.columns.tolist() == ["n_clusters=1", "n_clusters=3", "height=2.0"]
    assert table.index.tolist() == h.keys()
    assert table.index.name == "key"
    np.testing.assert_array_equal(table["n_clusters=3"], h.cut(n_clusters=3))
    np.testing.assert_array_equal(table["height=2.0"], h.cut(height=2.0))
    assert h.cuts(min_cluster_size=4).columns.tolist() == ["min_cluster_size=4"]
    assert len(h.cuts(height=[1.0000001, 1.0000002]).columns) == 2
    with pytest.raises(ParameterError, match="cuts takes collections"):
        h.cuts()
    with pytest.raises(ParameterError, match="n_clusters must be a collection of levels, such as"):
        h.cuts(n_clusters=2)
    with pytest.raises(ParameterError, match="height must be a non-negative number; it is 'a'"):
        h.cuts(height=["a"])


def test_keys_that_are_tuples_stay_keys():
    h = et.Hierarchy()
    h.insert([[0.0], [1.0]], keys=[("a", 1), ("b", 2)])
    assert h.cuts(n_clusters=[2]).index.tolist() == [("a", 1), ("b", 2)]


def test_ids_stay_while_points_come_and_go(rng):
    h = et.Hierarchy()
    h.insert(blobs(rng, [30, 20, 10]))
    first = h.partition(n_clusters=3)
    assert first.labels.tolist() == [0] * 30 + [1] * 20 + [2] * 10
    # Most of the first cluster leaves, so that the others come first; a new one arrives.
    h.remove(range(25))
    h.insert([[200.0, 0.0], [200.1, 0.0]], keys=["x", "y"])
    h.refine()
    second = h.partition(n_clusters=4, follow=first)
    assert [second[key] for key in (25, 30, 50)] == [0, 1, 2]
    assert second["x"] == second["y"] == 3
    h.remove(["x", "y"])
    third = h.partition(n_clusters=3, follow=second)
    assert third.ids == [0, 1, 2]
    h.insert([[400.0, 0.0]], keys=["z"])
    assert h.partition(n_clusters=4, follow=third)["z"] == 4  # 3 is not used again


def overlap(a, b):
    return sum(x == y for x, y in zip(a, b, strict=True))


def test_the_assignment_has_the_largest_overlap(rng):
    """Against all ways to give ids."""
    from itertools import permutations

    for _ in range(50):
        before = Partition.of(list(range(30)), rng.integers(0, 4, size=30))
        clusters = rng.integers(0, 4, size=30)
        if len(set(clusters.tolist())) < 4 or len(before) < 4:
            continue
        now = Partition.of(list(range(30)), clusters, before)
        best = max(overlap(np.array(order)[clusters], before.labels) for order in permutations(range(4)))
        assert overlap(now.labels, before.labels) == best
        assert same_clusters(now.labels, clusters.tolist())


def test_clusters_that_all_share_points_are_followed(rng):
    """No block of the matrix is small, and a dense one would take 3 GB."""
    n = 20_000
    before = Partition.of(range(3 * n), np.arange(3 * n) % n)
    now = Partition.of(range(3 * n), np.append(np.arange(3 * n - 1) % n, 1), before)
    assert np.count_nonzero(now.labels != before.labels) == 1


def test_a_tie_goes_to_the_older_point():
    before = Partition.of(range(6), np.zeros(6, int))
    assert Partition.of(range(6), [0, 1, 2, 0, 1, 2], before).labels.tolist() == [0, 1, 2, 0, 1, 2]
    assert Partition.of(range(6), [0, 1, 1, 0, 1, 0], before).labels.tolist() == [0, 1, 1, 0, 1, 0]


def test_one_cluster_into_many(rng):
    before = Partition.of(range(20_000), np.zeros(20_000, int))
    after = Partition.of(range(20_000), np.arange(20_000), before)
    table = after.changes(before)
    assert table["event"].value_counts().to_dict() == {"born": 19_999, "split": 1, "shrank": 1}


def test_many_clusters_are_followed_fast(rng):
    before = Partition.of(list(range(60_000)), np.repeat(np.arange(20_000), 3))
    labels = rng.permutation(20_000)[before.labels]
    now = Partition.of(before.keys, labels, before)
    np.testing.assert_array_equal(now.labels, before.labels)


def changed(before, after):
    """Events as a dict from (event, id) to the rest of the row."""
    table = after.changes(before)
    assert table.columns.tolist() == ["event", "id", "before", "after", "others", "keys"]
    return {(row.event, row.id): (row.before, row.after, row.others, row.keys) for row in table.itertuples()}


def test_split_and_merge():
    before = Partition.of(list("abcdefgh"), np.array([0, 0, 0, 0, 1, 1, 2, 2]))
    after = Partition.of(list("abcdefgh"), np.array([0, 0, 0, 1, 2, 2, 2, 2]), before)
    assert after.labels.tolist() == [0, 0, 0, 3, 1, 1, 1, 1]
    assert changed(before, after) == {
        ("born", 3): (0, 1, [0], ["d"]),
        ("died", 2): (2, 0, [1], ["g", "h"]),
        ("split", 0): (4, 3, [3], ["d"]),
        ("merged", 1): (2, 4, [2], ["g", "h"]),
        ("grew", 1): (2, 4, [2], ["g", "h"]),
        ("shrank", 0): (4, 3, [3], ["d"]),
    }


def test_points_that_come_and_go():
    before = Partition.of(list("abcd"), np.array([0, 0, 1, 1]))
    after = Partition.of(list("bcde"), np.array([0, 1, 1, 1]), before)
    assert changed(before, after) == {("grew", 1): (2, 3, [], ["e"]), ("shrank", 0): (2, 1, [], ["a"])}
    same = Partition.of(list("abcd"), np.array([1, 1, 0, 0]), before)
    assert changed(before, same) == {}


def test_noise_is_no_cluster():
    before = Partition.of(list("abcd"), np.array([0, 0, -1, -1]))
    after = Partition.of(list("abcd"), np.array([0, -1, 1, 1]), before)
    assert after.labels.tolist() == [0, -1, 1, 1]
    assert changed(before, after) == {("born", 1): (0, 2, [], ["c", "d"]), ("shrank", 0): (2, 1, [], ["b"])}
    assert repr(before) == "Partition: 1 clusters of 4 points, 2 points in none"


def test_empty_overlaps():
    before = Partition.of(["a"], np.array([0]))
    after = Partition.of(["b"], np.array([0]), before)
    assert after.labels.tolist() == [1]
    assert set(changed(before, after)) == {("born", 1), ("died", 0)}
    noise = Partition.of(["a"], np.array([-1]), before)
    assert set(changed(before, noise)) == {("died", 0)}


def test_reading_a_partition():
    p = Partition.of(list("abc"), np.array([0, 1, 0]))
    assert ("a" in p, "z" in p, 0 in p) == (True, False, False)
    assert (len(p), p.keys, p.ids, p.sizes(), p.members(0)) == (2, ["a", "b", "c"], [0, 1], {0: 2, 1: 1}, ["a", "c"])
    for wrong in (-1, 7, "a", [0, 1]):
        with pytest.raises(ParameterError, match="id must be that of a cluster"):
            p.members(wrong)
    with pytest.raises(KeyError):
        p["z"]
    with pytest.raises(TypeError, match="not iterable"):
        list(p)


def test_a_partition_does_not_change():
    clusters = np.array([0, 1, 0])
    p = Partition.of(list("abc"), clusters)
    clusters[:] = 5
    p.keys.append("d")
    assert (p.labels.tolist(), p.keys) == ([0, 1, 0], ["a", "b", "c"])
    with pytest.raises(ValueError, match="read-only"):
        p.labels[0] = 3


@pytest.mark.parametrize(("keys", "clusters"), [("a", [0, 1]), ("ab", [0, -2]), ("aa", [0, 1]), ("ab", [[0, 1]])])
def test_bad_partitions(keys, clusters):
    with pytest.raises(ParameterError, match="clusters must be whole numbers from -1 on, one for each key"):
        Partition.of(list(keys), clusters)


def test_follow_must_be_a_partition():
    h = et.Hierarchy()
    h.insert([[0.0]])
    with pytest.raises(ParameterError, match="follow must be None or a Partition; it is list"):
        h.partition(n_clusters=1, follow=[0])
    with pytest.raises(ParameterError, match="before must be a Partition; it is NoneType"):
        h.partition(n_clusters=1).changes(None)


def test_without_pandas(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    p = Partition.of(list("abc"), np.array([0, 1, 0]))
    with pytest.raises(MissingExtraError, match=r"changes needs pandas: pip install 'evertree\[pandas\]'"):
        p.changes(p)
