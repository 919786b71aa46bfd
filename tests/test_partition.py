"""Cuts by minimum size, several at once, and partitions that remember."""

from __future__ import annotations

import copy
import pickle
import sys
from collections import Counter

import numpy as np
import pytest

import evertree as et
from evertree.errors import MissingExtraError, ParameterError
from evertree.partition import ABSENT, EVENTS, Flow, Partition, PointKeys, named_clusters


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
    labels = h.cut(min_cluster_size=min_size, method="leaf")
    is_split = len(set(naive_cut(h, min_size=min_size)) - {-1}) > 1
    assert same_clusters(labels, naive_cut(h, min_size=min_size) if is_split else [-1] * 40)
    assert min(np.bincount(labels[labels >= 0]), default=min_size) >= min_size
    labels = labels if is_split else np.zeros(40, np.int64)
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


@pytest.mark.parametrize("linkage", ["ward", "single", "complete"])
def test_ties_are_cut_in_the_order_of_the_linkage_matrix(rng, linkage):
    h = et.Hierarchy(linkage)
    h.insert(rng.integers(0, 4, size=(40, 2)).astype(float))
    h.remove(range(0, 40, 7))
    members = [[i] for i in range(len(h))]
    clusters = {i: [i] for i in range(len(h))}
    for a, b, *_ in h.linkage_matrix():
        labels = h.cut(n_clusters=len(clusters)).tolist()
        in_order = sorted(clusters.values())
        assert labels == [next(c for c, below in enumerate(in_order) if i in below) for i in range(len(h))]
        members.append(sorted(clusters.pop(int(a)) + clusters.pop(int(b))))
        clusters[len(members) - 1] = members[-1]


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
    assert [second.cluster_of(key) for key in (25, 30, 50)] == [0, 1, 2]
    assert second.cluster_of("x") == second.cluster_of("y") == 3
    h.remove(["x", "y"])
    third = h.partition(n_clusters=3, follow=second)
    assert third.ids == [0, 1, 2]
    h.insert([[400.0, 0.0]], keys=["z"])
    assert h.partition(n_clusters=4, follow=third).cluster_of("z") == 4  # 3 is not used again


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


def naive_follow(keys, clusters, before):
    """Ids by the largest overlap, counted one point after the other, and the id that is next."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching

    n_now, then_ids = max(clusters, default=-1) + 1, before.ids
    worth = np.zeros((n_now, len(then_ids) + n_now))
    id_of = dict(zip(before.keys, before.labels.tolist(), strict=True))
    for key, cluster in zip(keys, clusters, strict=True):
        if cluster != -1 and id_of.get(key, -1) != -1:
            worth[cluster, then_ids.index(id_of[key])] += 1
    for i, j in zip(*np.nonzero(worth), strict=True):
        worth[i, j] += 0.25 / n_now * (1 - i / n_now)
    for i in range(n_now):
        worth[i, len(then_ids) + i] = 0.5 / n_now
    chosen = min_weight_full_bipartite_matching(csr_array(worth), maximize=True)[1] if n_now else []
    ids, next_id = [], before.next_id
    for j in chosen:
        ids.append(then_ids[j] if j < len(then_ids) else next_id)
        next_id += j >= len(then_ids)
    return [-1 if cluster == -1 else ids[cluster] for cluster in clusters], next_id


def naive_changes(before, after):
    """The rows of the table, one key after the other."""
    then = dict(zip(before.keys, before.labels.tolist(), strict=True))
    now = dict(zip(after.keys, after.labels.tolist(), strict=True))
    size_then, size_now = Counter(then.values()), Counter(now.values())
    pairs = Counter((then[key], now[key]) for key in then if key in now)
    moves = [(then.get(key, -1), now.get(key, -1), key) for key in then | now]
    rows = []
    for c in sorted({*size_then, *size_now} - {-1}):
        came = [key for old, new, key in moves if new == c != old]
        left = [key for old, new, key in moves if old == c != new]
        sources = sorted(old for old, new in pairs if new == c and old not in (c, -1))
        targets = sorted(new for old, new in pairs if old == c and new not in (c, -1))
        sizes = size_then[c], size_now[c]
        heirs = [c2 for c2 in sorted(size_now) if c2 != -1 and is_most(pairs, (c, c2), 1)]
        parents = [c2 for c2 in sorted(size_then) if c2 != -1 and is_most(pairs, (c2, c), 0)]
        if c not in size_then:
            rows.append(("born", c, *sizes, sources, came))
        elif c not in size_now:
            rows.append(("died", c, *sizes, targets, left))
        else:
            rows += [("grew", c, *sizes, sources, came)] if sizes[0] < sizes[1] else []
            rows += [("shrank", c, *sizes, targets, left)] if sizes[0] > sizes[1] else []
            if sizes[0] == sizes[1] and came:
                rows.append(("exchanged", c, *sizes, sorted({*sources, *targets}), left + came))
        if len(heirs) > 1:
            others = [x for x in heirs if x != c]
            rows.append(("split", c, *sizes, others, [k for x in others for a, b, k in moves if (a, b) == (c, x)]))
        if len(parents) > 1:
            others = [x for x in parents if x != c]
            rows.append(("merged", c, *sizes, others, [k for x in others for a, b, k in moves if (a, b) == (x, c)]))
    return sorted(rows, key=lambda row: (EVENTS.index(row[0]), row[1]))


def is_most(pairs, pair, side):
    """Whether more than half of the points that a cluster shares with all others, at one time, go with a pair."""
    return 2 * pairs[pair] > sum(count for other, count in pairs.items() if other[side] == pair[side])


def check_flow(before, after):
    """All that is said of two partitions is what the naive reference says, key by key."""
    rows = naive_changes(before, after)
    assert list(after.changes(before).itertuples(index=False, name=None)) == rows
    flow = Flow(before, after)
    assert flow.events() == [row[:5] for row in rows]
    assert flow.keys_of(flow.events()) == [row[5] for row in rows]
    id_before = dict(zip(before.keys, before.labels.tolist(), strict=True))
    then = [id_before.get(key, ABSENT) for key in after.keys]
    assert flow.then.tolist() == then
    assert flow.changed.tolist() == [i for i, key in enumerate(after.keys) if then[i] != after.cluster_of(key)]
    assert flow.gone.tolist() == [i for i, key in enumerate(before.keys) if not after.has_key(key)]


def random_clusters(rng, n):
    """Up to eight clusters of n points, numbered by first appearance, with or without noise."""
    clusters = rng.integers(-1 if rng.random() < 0.5 else 0, rng.integers(1, 9), size=n)
    number = {c: i for i, c in enumerate(dict.fromkeys(clusters[clusters >= 0].tolist()))}
    return [number.get(c, -1) for c in clusters.tolist()]


def check_follow(before, after, clusters):
    assert (after.labels.tolist(), after.next_id) == naive_follow(after.keys, clusters, before)


@pytest.mark.parametrize("size", [0, 1, 2, 5, 30])
def test_any_two_partitions_are_compared_by_key(rng, size):
    for _ in range(60):
        keys = rng.permutation(2 * size)[:size].tolist()
        before = Partition.of(keys, random_clusters(rng, size))
        keys = rng.permutation(2 * size)[: rng.integers(0, size + 1)].tolist()
        clusters = random_clusters(rng, len(keys))
        check_flow(before, Partition.of(keys, clusters))
        after = Partition.of(keys, clusters, before)
        check_follow(before, after, clusters)
        check_flow(before, after)
        check_flow(after, before)


def test_partitions_of_one_hierarchy_are_those_of_their_keys(rng):
    """Through many edits, with keys that come again; by insertion numbers and by keys."""
    h = et.Hierarchy()
    h.insert(rng.normal(size=(20, 2)), keys=[f"k{i}" for i in range(20)])
    earlier = [h.partition(n_clusters=3)]
    for step in range(60):
        free = [f"k{i}" for i in range(40) if f"k{i}" not in h]
        edit = rng.integers(4)
        if edit == 0 and free:
            h.insert(rng.normal(size=(2, 2)), keys=rng.permutation(free)[:2].tolist())
        elif edit == 1:
            h.insert(rng.normal(size=(2, 2)))
        elif edit == 2:
            h.update(h.keys()[:3], rng.normal(size=(3, 2)))
        if step % 2 and len(h) > 15:
            h.remove(rng.permutation(np.array(h.keys(), object))[: rng.integers(1, 8)].tolist())
        before = earlier[rng.integers(len(earlier))]
        options = {"n_clusters": int(rng.integers(1, 6))} if step % 3 else {"min_cluster_size": 3}
        now = h.partition(**options, follow=before)
        clusters = h.cut(**options).tolist()
        check_follow(before, now, clusters)
        check_flow(before, now)
        by_keys = Partition.of(h.keys(), clusters, Partition.of(before.keys, before.labels, None, before.next_id))
        assert (by_keys.labels.tolist(), by_keys.next_id) == (now.labels.tolist(), now.next_id)
        assert "position" not in vars(h.partition(**options, follow=now)._points)
        earlier.append(now)


def test_a_whole_hierarchy_replaced_under_the_same_keys():
    h = et.Hierarchy()
    h.insert([[0.0], [1.0], [8.0]], keys=["a", "b", "c"])
    before = h.partition(n_clusters=2)
    h.remove(["a", "b", "c"])
    h.insert([[0.0], [9.0], [8.0]], keys=["c", "a", "b"])
    now = h.partition(n_clusters=2, follow=before)
    assert (now.keys, now.labels.tolist()) == (["c", "a", "b"], [1, 0, 0])
    assert len(now.changes(before)) == 0


@pytest.mark.parametrize("twin_of", [lambda h: h.copy(), copy.deepcopy, lambda h: pickle.loads(pickle.dumps(h))])
def test_equal_numbers_of_different_points(twin_of):
    """A copy goes on with the same insertion numbers, for points of its own."""
    h = et.Hierarchy()
    h.insert([[0.0], [1.0]], keys=["a", "b"])
    h.partition(n_clusters=1)
    twin = twin_of(h)
    h.insert([[50.0]], keys=["of h"])
    twin.insert([[0.5]], keys=["of twin"])
    before, now = h.partition(n_clusters=2), twin.partition(n_clusters=1)
    np.testing.assert_array_equal(before._points.births, now._points.births)
    assert Flow(before, now).then.tolist() == [0, 0, ABSENT]
    assert Flow(before, now).gone.tolist() == [2]
    check_flow(before, now)
    check_flow(now, before)


def test_a_loaded_hierarchy_goes_on_by_keys(tmp_path):
    h = et.Hierarchy()
    h.insert([[0.0], [1.0], [8.0]], keys=["a", "b", "c"])
    before = h.partition(n_clusters=2)
    h.save(tmp_path / "tree")
    other = et.load(tmp_path / "tree")
    h.remove(["a"])
    other.remove(["b", "c"])
    other.insert([[8.0]], keys=["d"])
    assert other.partition(n_clusters=2, follow=before).labels.tolist() == [0, 2]
    assert h.partition(n_clusters=2, follow=before).labels.tolist() == [0, 1]


@pytest.mark.parametrize("passed_on", [copy.copy, copy.deepcopy, lambda p: pickle.loads(pickle.dumps(p))])
def test_partitions_can_be_passed_on(passed_on):
    h = et.Hierarchy()
    h.insert([[0.0], [1.0], [8.0]], keys=["a", "b", "c"])
    before = h.partition(n_clusters=2)
    assert before.cluster_of("c") == 1
    again = passed_on(before)
    assert (again.keys, again.labels.tolist(), again.cluster_of("c"), again.next_id) == (before.keys, [0, 0, 1], 1, 2)
    h.remove(["a"])
    h.insert([[100.0]], keys=["d"])
    now = h.partition(n_clusters=3, follow=again)
    assert now.labels.tolist() == [0, 1, 2]
    check_flow(again, now)
    check_flow(now, again)
    check_flow(again, before)


def test_a_pickle_is_of_no_hierarchy_but_two_in_one_are_of_the_same():
    h = et.Hierarchy()
    h.insert([[0.0], [1.0]])
    pair = h.partition(n_clusters=1), h.partition(n_clusters=2)
    a, b = pickle.loads(pickle.dumps(pair))
    assert a._points.lineage is b._points.lineage
    assert a._points.lineage is not pair[0]._points.lineage
    assert "position" not in vars(pickle.loads(pickle.dumps(pair[0]))._points)


def test_positions_are_found_when_asked_for():
    h = et.Hierarchy()
    h.insert([[0.0], [1.0], [8.0]], keys=["a", "b", "c"])
    before = h.partition(n_clusters=2)
    h.remove(["a"])
    now = h.partition(n_clusters=2, follow=before)
    now.changes(before)
    assert not any("position" in vars(p._points) for p in (before, now))
    assert before.has_key("a")
    assert "position" in vars(before._points)


@pytest.mark.parametrize("step", [1, 10**6, 2**40])
def test_numbers_that_are_far_apart(rng, step):
    """Insertion numbers and ids of an old hierarchy, for which a table would be too large."""
    lineage = object()
    for _ in range(20):
        numbers = [step * np.sort(rng.permutation(60)[:40]) for _ in range(2)]
        points = [PointKeys(tuple(row.tolist()), row, lineage) for row in numbers]
        ids = np.array(random_clusters(rng, 40))
        before = named_clusters(points[0], np.where(ids == -1, -1, step * ids), None)
        clusters = random_clusters(rng, 40)
        after = named_clusters(points[1], np.array(clusters), before)
        check_follow(before, after, clusters)
        check_flow(before, after)
        check_flow(after, before)


def test_the_next_id():
    before = Partition.of("abc", [0, 0, 2], next_id=7)
    assert before.labels.tolist() == [0, 0, 2]
    now = Partition.of("abcd", [0, 0, 1, 2], before)
    assert now.labels.tolist() == [0, 0, 2, 7]
    assert Partition.of("xy", [0, 1], now).labels.tolist() == [8, 9]
    # The larger of the two counts.
    assert Partition.of("xy", [0, 1], now, next_id=3).labels.tolist() == [8, 9]
    assert Partition.of("xy", [0, 1], now, next_id=20).labels.tolist() == [20, 21]
    assert Partition.of("", [], next_id=5).next_id == 5
    assert Partition.of("ab", [-1, -1], next_id=np.int64(0)).next_id == 0
    assert Partition.of("ab", [0, 3], next_id=4).next_id == 4


@pytest.mark.parametrize("wrong", [-1, 1.5, "7", True, [3]])
def test_a_wrong_next_id(wrong):
    with pytest.raises(ParameterError, match="next_id must be a non-negative integer; it is"):
        Partition.of("ab", [-1, -1], next_id=wrong)
    with pytest.raises(ParameterError, match="next_id must be at least 4, above all ids in clusters; it is 3"):
        Partition.of("ab", [0, 3], next_id=3)


def test_a_restored_partition_goes_on(rng):
    """Written down as keys, ids and the next id, and read again."""
    h = et.Hierarchy()
    h.insert(blobs(rng, [5, 4, 3]))
    first = h.partition(n_clusters=3)
    h.remove(range(9, 12))
    second = h.partition(n_clusters=2, follow=first)
    restored = Partition.of(second.keys, second.labels, next_id=second.next_id)
    h.insert([[500.0, 0.0]])
    assert h.partition(n_clusters=3, follow=restored).labels.tolist() == [0] * 5 + [1] * 4 + [3]
    np.testing.assert_array_equal(
        h.partition(n_clusters=3, follow=restored).labels, h.partition(n_clusters=3, follow=second).labels
    )


def test_reading_a_partition():
    p = Partition.of(list("abc"), np.array([0, 1, 0]))
    assert ("a" in p, 7 in p, -1 in p, 0 in p, 0.5 in p) == (False, False, False, True, False)
    assert (p.has_key("a"), p.has_key("z"), p.has_key(0), p.has_key([])) == (True, False, False, False)
    assert (list(p), p.cluster_of("a"), p.cluster_of("b")) == ([0, 1], 0, 1)
    assert (len(p), p.keys, p.ids, p.sizes(), p.members(0)) == (2, ["a", "b", "c"], [0, 1], {0: 2, 1: 1}, ["a", "c"])
    for wrong in (-1, 7, "a", [0, 1]):
        with pytest.raises(ParameterError, match="id must be that of a cluster"):
            p.members(wrong)
    with pytest.raises(KeyError):
        p.cluster_of("z")
    with pytest.raises(TypeError, match=r"a partition is a collection of cluster ids: use cluster_of\(key\)"):
        p["a"]


def test_numbered_keys_are_found_without_a_table():
    h = et.Hierarchy()
    h.insert(np.arange(6.0).reshape(-1, 1))
    h.remove([0, 3])
    p = h.partition(n_clusters=2)
    assert [p.has_key(key) for key in range(-1, 7)] == [key in (1, 2, 4, 5) for key in range(-1, 7)]
    assert "position" not in vars(p._points)
    assert [p.cluster_of(key) for key in (1, 2, 4, 5)] == p.labels.tolist()
    assert p.has_key(1.0)
    assert not p.has_key("1")


def test_grew_and_shrank_agree_with_the_sizes():
    before = Partition.of("abcdefg", [0, 0, 0, 0, 0, 1, 1])
    after = Partition.of("abcdfgxy", [0, 0, 0, 1, 0, 1, 1, 1])  # 0 lost two and won one, 1 won three and lost one
    assert changed(before, after) == {
        ("grew", 1): (2, 4, [0], ["d", "x", "y"]),
        ("shrank", 0): (5, 4, [1], ["d", "e"]),
    }
    after = Partition.of("abcdefg", [0, 0, 0, 0, 1, 0, 1])
    assert changed(before, after) == {
        ("exchanged", 0): (5, 5, [1], ["e", "f"]),
        ("exchanged", 1): (2, 2, [0], ["f", "e"]),
    }


def test_a_partition_of_another_hierarchy_is_refused(tmp_path):
    h, other = et.Hierarchy(), et.Hierarchy()
    h.insert([[0.0], [1.0], [9.0]])
    other.insert([[5.0], [1.0], [9.0]])
    p = h.partition(n_clusters=2)
    with pytest.raises(ParameterError, match="follow must be a partition of this hierarchy"):
        other.partition(n_clusters=2, follow=p)
    h.save(tmp_path / "tree")
    others = [copy.copy(h), copy.deepcopy(h), pickle.loads(pickle.dumps(h)), et.load(tmp_path / "tree")]
    for same in (h, h.copy(), h.copy().copy(), *others):
        assert same.partition(n_clusters=2, follow=p).labels.tolist() == [0, 0, 1]
    same_points = Partition.of(p.keys, p.labels)
    assert other.partition(n_clusters=2, follow=same_points).labels.tolist() == [0, 0, 1]


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
