"""Stable trees: they are batch trees, from every start, and every way there ends. See docs/stable.md."""

from __future__ import annotations

import pickle
import signal

import numpy as np
import pytest
from scipy.cluster.hierarchy import linkage as scipy_linkage

import naive
import naive_stable
from evertree import Hierarchy, agglomerate, load
from evertree.errors import ParameterError, UnstableError
from evertree.kernels.columns import STABLE_FROM_BELOW, UNLIMITED
from evertree.tree import statistics
from helpers import ONE_OF_EACH, SCHEMES, definition, hard_data, hierarchy_of, nested, params_of, weights

pytestmark = pytest.mark.usefixtures("searched")


def assert_stable(h: Hierarchy) -> None:
    """Stable by search, by replay, and valid."""
    h.validate()
    assert h.is_monotone()
    assert h.is_stable()
    h.certify()
    if h.linkage != "ward":
        assert h.is_homogeneous()


def assert_batch_heights(h: Hierarchy) -> None:
    """Without ties there is one batch tree, and SciPy knows its heights. Minimax linkage has ties on any data."""
    if h.linkage == "minimax":
        return
    expected = scipy_linkage(h.points(), h.linkage, "euclidean" if h.linkage == "ward" else h.metric)[:, 2]
    np.testing.assert_allclose(h.linkage_matrix()[:, 2], expected, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(("linkage", "metric"), ONE_OF_EACH)
def test_exact_refinement_ends_at_the_batch_tree(rng, linkage, metric):
    """From random trees, hundreds of small data sets: the claim."""
    for seed in range(200):
        x = rng.normal(size=(rng.integers(2, 25), rng.integers(1, 4)))
        h = Hierarchy.random(x, linkage, metric, search_width=None, seed=seed)
        report = h.refine()
        assert report.stable
        assert report.stopped_by == "stable"
        h.certify()
        assert h.is_stable()
        assert_batch_heights(h)


@pytest.mark.slow
@pytest.mark.parametrize(("linkage", "metric"), ONE_OF_EACH)
def test_exact_refinement_of_larger_sets(rng, linkage, metric):
    x = (5 * rng.normal(size=(8, 3)))[rng.integers(8, size=300)] + rng.normal(size=(300, 3))
    for h in (Hierarchy.random(x, linkage, metric, search_width=None), Hierarchy(linkage, metric, search_width=None)):
        if len(h) == 0:
            h.insert(x)
        h.refine()
        assert_stable(h)
        assert_batch_heights(h)


@pytest.mark.slow
@pytest.mark.parametrize(("linkage", "metric"), SCHEMES)
def test_exact_refinement_after_any_edits(rng, linkage, metric):
    for trial in range(6):
        h = Hierarchy(linkage, metric, metric_params=params_of(metric, 3), search_width=None)
        weight = rng.lognormal(size=30) if trial % 2 else None
        h.insert(rng.normal(size=(30, 3)) + 0.1, sample_weight=weight)
        h.refine(moves=int(rng.integers(20)))
        h.remove(rng.choice(30, 12, replace=False).tolist())
        h.update(h.keys()[:5], rng.normal(size=(5, 3)) + 0.1)
        h.insert(rng.normal(size=(9, 3)) + 0.1)
        h.refine()
        assert_stable(h)
        zeta = definition(h)
        assert naive_stable.is_stable(nested(h), zeta, 1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("name", hard_data())
@pytest.mark.parametrize(("linkage", "metric"), ONE_OF_EACH)
def test_ends_on_hard_data(linkage, metric, name):
    """Duplicates, ties, rounding, all magnitudes: it ends, exactly and with the default search."""
    x = hard_data()[name]
    for width in (None, 4):
        h = Hierarchy(linkage, metric, search_width=width)
        h.insert(x)
        assert h.refine().stopped_by == "stable"
        h.validate()
        assert h.is_monotone()
        if width is None:
            assert h.is_stable()


@pytest.mark.parametrize("name", ["integer grid", "duplicates", "line", "all identical", "random", "powers"])
@pytest.mark.parametrize(("linkage", "metric"), ONE_OF_EACH)
def test_ties_end_at_a_tree_that_is_certified(linkage, metric, name):
    x = hard_data()[name]
    for seed in range(3):
        h = Hierarchy.random(x, linkage, metric, search_width=None, seed=seed)
        h.refine()
        assert_stable(h)


@pytest.mark.slow
@pytest.mark.parametrize(("linkage", "metric"), ONE_OF_EACH)
def test_every_tree_of_five_points(rng, linkage, metric):
    """From each of the 105 trees, on random, tied and weighted points; also in the order to which the guard turns."""
    cases = [
        (rng.normal(size=(5, 2)), None),
        (rng.integers(0, 4, size=(5, 2)).astype(float), None),
        (np.array([[18.0], [6.0], [11.0], [4.0], [0.0]]), None),  # where the lighter end alone does not end
        (rng.normal(size=(5, 2)), rng.lognormal(size=5)),
    ]
    for x, weight in cases:
        for number, tree in enumerate(naive.all_trees(list(range(5)))):
            h = hierarchy_of(tree, x, linkage, metric, sample_weight=weight, goal="stable", search_width=None)
            if number % 2:
                h.state.live.work.state["goal"][0] = STABLE_FROM_BELOW
                while h.state.live.n_pending or h.state.live.n_due:
                    h.state.live.stabilise()
            else:
                assert h.refine().stable
            assert naive.canonical(nested(h)) in naive_stable.batch_trees(definition(h), 5)


@pytest.mark.parametrize(("linkage", "metric"), ONE_OF_EACH)
def test_blocked_nodes_by_definition(rng, linkage, metric):
    """The search finds blocking pairs exactly where the definition has them, on monotone trees."""
    n_found = 0
    for _ in range(15):
        x = rng.normal(size=(12, 2))
        weight = rng.lognormal(size=12)
        h = hierarchy_of(naive.random_tree(rng, 12), x, linkage, metric, sample_weight=weight, goal="homogeneous")
        h.refine()
        tree, zeta = nested(h), definition(h)
        pairs = naive_stable.blocking_pairs(tree, zeta)
        expected = {naive.members(t) for a, q, _ in pairs for t in (a, q)}
        nodes = h.nodes()
        found = {frozenset(h.members(u)) for u in nodes[h.state.live.blocked(nodes)].tolist()}
        assert found == expected
        assert h.is_stable() == (not pairs)
        assert h.instability(sample=None).fraction == len(expected) / (len(nodes) - 1)
        n_found += len(expected)
    assert n_found or linkage == "single"


@pytest.mark.parametrize(("linkage", "metric"), ONE_OF_EACH)
def test_sorted_heights_decrease_with_every_graft(rng, linkage, metric):
    n_grafts = 0
    for seed in range(10):
        h = Hierarchy.random(rng.normal(size=(25, 2)), linkage, metric, search_width=None, seed=seed)
        h.refine(until="homogeneous")
        while True:
            before = np.sort(h.linkage_matrix()[:, 2]) if h.is_monotone() else None
            report = h.refine(moves=1)
            if report.stopped_by == "stable":
                break
            if report.grafts and before is not None:
                n_grafts += 1
                after = np.sort(h.state.live.scheme.height(h.state.live.linkage_values(h.nodes()[h.nodes() % 2 == 1])))
                changed = np.flatnonzero(np.abs(after - before) > 1e-9 * before)
                assert after[changed[0]] < before[changed[0]]
    assert n_grafts or linkage == "single"


@pytest.mark.parametrize(("linkage", "metric"), SCHEMES)
def test_after_every_edit(rng, linkage, metric):
    """The tree is valid and monotone, and homogeneous for the strongly reducible linkages, before any `refine`."""
    h = Hierarchy(linkage, metric, metric_params=params_of(metric, 3))
    for step in range(12):
        if step % 3 == 2:
            h.remove(rng.choice(h.keys(), 4, replace=False).tolist())
        elif step % 3 == 1:
            h.update(h.keys()[:3], rng.normal(size=(3, 3)))
        else:
            h.insert(rng.normal(size=(8, 3)))
        h.validate()
        assert h.is_monotone()
        if linkage != "ward":
            assert h.is_homogeneous()


@pytest.mark.slow
@pytest.mark.parametrize(("linkage", "metric"), ONE_OF_EACH)
def test_the_default_search_comes_close_to_batch(rng, linkage, metric):
    x = (3 * rng.normal(size=(10, 4)))[rng.integers(10, size=800)] + rng.normal(size=(800, 4))
    h = Hierarchy(linkage, metric)
    h.insert(x)
    inserted = h.instability(sample=None).fraction
    report = h.refine()
    assert report.stable
    h.validate()
    refined = h.instability(sample=None).fraction
    assert refined <= 0.02
    assert refined < inserted or inserted == 0
    paper = Hierarchy(linkage, metric, goal="homogeneous")
    paper.insert(x)
    assert inserted < paper.instability(sample=None).fraction or linkage == "single"


@pytest.mark.slow
def test_the_goals(rng):
    """`until` may be the other goal; the next edit keeps the promise of the hierarchy's own."""
    x = rng.normal(size=(300, 5))
    h = Hierarchy(goal="homogeneous")
    h.insert(x)
    report = h.refine(until="stable")
    assert report.stable
    assert report.grafts > 0
    assert not report.homogeneous
    assert h.goal == "homogeneous"
    h.insert(x[:1] + 0.1)
    assert h.is_homogeneous()

    n_violated = 0
    for _ in range(20):
        h = Hierarchy()
        h.insert(rng.normal(size=(60, 2)))
        assert h.refine().stable
        n_violated += not h.is_homogeneous()
        report = h.refine(until="homogeneous")
        assert report.homogeneous
        assert report.grafts == 0
        assert h.is_homogeneous()
        h.insert([[0.1, 0.1]])
        assert h.refine().stable
    assert n_violated


@pytest.mark.slow
@pytest.mark.parametrize(("linkage", "metric"), ONE_OF_EACH)
def test_grafts_count_as_moves(rng, linkage, metric):
    """In any slices, refinement goes the same way."""
    x = rng.normal(size=(60, 3))
    whole, sliced = (Hierarchy.random(x, linkage, metric) for _ in range(2))
    full = whole.refine()
    moves = grafts = 0
    while True:
        report = sliced.refine(moves=7)
        assert report.moves + report.grafts <= 7
        moves, grafts = moves + report.moves, grafts + report.grafts
        if report.stopped_by == "stable":
            break
        assert report.moves + report.grafts == 7
        assert not report.stable
    assert (moves, grafts) == (full.moves, full.grafts)
    np.testing.assert_array_equal(whole.linkage_matrix(), sliced.linkage_matrix())


@pytest.mark.parametrize(("linkage", "metric"), ONE_OF_EACH)
def test_resumes_after_copy_pickle_and_load(rng, tmp_path, linkage, metric):
    x = rng.normal(size=(80, 3))
    h = Hierarchy(linkage, metric, search_width=3)
    h.insert(x)
    h.refine(moves=5)
    h.save(tmp_path / "tree")
    twins = [h.copy(), pickle.loads(pickle.dumps(h)), load(tmp_path / "tree")]
    h.refine()
    for twin in twins:
        assert twin.search_width == 3
        assert twin.goal == "stable"
        twin.validate()
        twin.refine()
        np.testing.assert_array_equal(twin.linkage_matrix(), h.linkage_matrix())


@pytest.mark.slow
def test_reports_a_live_quality(rng):
    x = rng.normal(size=(3000, 8))
    h = Hierarchy.random(x)
    seen = []
    report = h.refine(progress=lambda r: seen.append((r.quality, r.due, r.stopped_by)))
    assert seen[-1] == (1.0, 0, "stable")
    assert all(quality is None or 0 <= quality <= 1 for quality, _, _ in seen)
    assert report.searches >= len(h.nodes()) - 1
    assert h.refine(seconds=0).stopped_by == "stable"


@pytest.mark.parametrize("until", ["stable", "homogeneous"])
def test_quality_is_unknown_until_a_node_is_looked_at(rng, until):
    h = Hierarchy.random(rng.normal(size=(40, 3)))
    report = h.refine(seconds=0, until=until)
    assert report.quality is None
    assert report.history[-1][1] is None
    assert h.refine(until=until).quality == 1.0
    assert h.refine(seconds=0, until=until).quality == 1.0  # nothing is left to be looked at


@pytest.mark.slow
@pytest.mark.parametrize("keys", [None, [f"k{i}" for i in range(600)]])
def test_nodes_are_numbered_anew_and_nobody_sees_it(rng, monkeypatch, keys):
    x = rng.normal(size=(600, 3))
    plain = Hierarchy("average", "cosine")
    plain.insert(x, keys=keys)
    monkeypatch.setattr(statistics, "FEWEST_BYTES_TO_REORDER", 1_000)
    monkeypatch.setattr("evertree.tree.statistics.PART", 64)
    h = Hierarchy("average", "cosine")
    h.insert(x, keys=keys)
    h.validate()
    np.testing.assert_array_equal(h.linkage_matrix(), plain.linkage_matrix())
    np.testing.assert_array_equal(h.points(), x)
    live_keys = h.keys()
    assert [h.members(h.leaf(key)) for key in live_keys] == [[key] for key in live_keys]
    h.refine()
    h.validate()
    h.remove(h.keys()[100:300])
    h.insert(x[100:300] + 0.01)
    h.refine()
    h.validate()
    np.testing.assert_array_equal(h.points()[:100], x[:100])
    near = h.state.live.tree.parent[h.state.live.leaves()]
    assert np.median(np.abs(np.diff(near))) < 20  # neighbours in the tree are neighbours in memory


@pytest.mark.parametrize("named", [False, True])
def test_nodes_of_a_small_tree_are_numbered_anew(rng, monkeypatch, named):
    x, keys = rng.normal(size=(48, 3)), [f"k{i}" for i in range(48)] if named else None
    plain = Hierarchy("average", "cosine")
    plain.insert(x, keys=keys)
    monkeypatch.setattr(statistics, "FEWEST_BYTES_TO_REORDER", 1_000)
    monkeypatch.setattr("evertree.tree.statistics.PART", 8)
    h = Hierarchy("average", "cosine")
    h.insert(x, keys=keys)
    assert h.state.live.work.state["ordered_at"][0] > 0
    h.validate()
    np.testing.assert_array_equal(h.linkage_matrix(), plain.linkage_matrix())
    np.testing.assert_array_equal(h.points(), x)
    live_keys = h.keys()
    assert live_keys == plain.keys()
    assert [h.members(h.leaf(key)) for key in live_keys] == [[key] for key in live_keys]


@pytest.mark.slow
def test_lists_of_neighbours_follow_edits(rng):
    """They hold near points only, whatever came and went."""
    x = rng.normal(size=(400, 3))
    h = Hierarchy()
    h.insert(x)
    h.refine()
    h.remove(h.keys()[:100])
    h.insert(rng.normal(size=(100, 3)))
    h.refine()
    live, points = h.state.live, h.points()
    leaves = h.state.keys.leaves()
    place = {int(leaf): i for i, leaf in enumerate(leaves)}
    hits = 0
    for i, leaf in enumerate(leaves.tolist()):
        listed = [place[j] for j in live.search.near[leaf >> 1].tolist() if j in place]
        nearest = np.argsort(((points - points[i]) ** 2).sum(axis=1))[1:6]
        hits += len(set(nearest.tolist()) & set(listed))
    assert hits / (5 * len(h)) > 0.9


@pytest.mark.slow
def test_certify_names_what_is_wrong(rng):
    h = Hierarchy.from_linkage([[0, 2, 1, 2], [1, 3, 1, 2], [4, 5, 1, 4]], [[0.0], [1.0], [9.0], [10.0]], "complete")
    with pytest.raises(UnstableError, match=r"cluster of [01] and the cluster of [01] "):
        h.certify()
    h = Hierarchy.from_linkage([[0, 2, 1, 2], [1, 3, 1, 3]], [[0.0], [1.0], [9.0]])
    with pytest.raises(UnstableError, match="higher than its parent"):
        h.certify()
    assert not h.is_stable()
    for linkage, metric in ONE_OF_EACH:
        if linkage == "single":
            continue  # its homogeneous trees are stable
        h = Hierarchy.random(rng.normal(size=(60, 2)), linkage, metric)
        h.refine(until="homogeneous")
        assert not h.is_stable()
        with pytest.raises(UnstableError, match="closer to each other"):
            h.certify()


@pytest.mark.parametrize(("linkage", "metric"), ONE_OF_EACH)
def test_batch_trees_are_certified_and_stay(rng, linkage, metric):
    h = agglomerate(rng.normal(size=(60, 2)), linkage, metric, search_width=None)
    before = h.linkage_matrix()
    h.certify()
    assert h.is_stable()
    report = h.refine()
    assert (report.moves, report.grafts) == (0, 0)
    np.testing.assert_array_equal(h.linkage_matrix(), before)


@pytest.mark.slow
def test_instability_of_a_sample(rng):
    h = Hierarchy(goal="homogeneous")
    h.insert(rng.normal(size=(1500, 4)))
    everything = h.instability(sample=None)
    assert everything.low == everything.fraction == everything.high
    some = h.instability(sample=400)
    assert some.n_nodes == 400
    assert some.low < some.fraction < some.high
    assert some.low < everything.fraction < some.high
    wider = h.instability(sample=400, confidence=0.999)
    assert wider.high - wider.low > some.high - some.low
    assert h.instability(sample=10**6) == everything


@pytest.mark.parametrize(("linkage", "metric"), ONE_OF_EACH)
def test_equal_distances(linkage, metric):
    """Means of equal values may round to a little less: search and certificate agree."""
    if metric == "sqeuclidean" or linkage == "ward":
        x = np.vstack([np.eye(9), 5 * np.eye(9)[:1]])
        h = Hierarchy(linkage, metric, search_width=None)
    else:
        x = 0.1 * (1 - np.eye(10))
        x[-1, :-1] = x[:-1, -1] = 7.0
        h = Hierarchy(linkage, "precomputed", search_width=None)
    h.insert(x)
    h.refine()
    assert_stable(h)


@pytest.mark.slow
@pytest.mark.parametrize(("linkage", "metric"), [("ward", "euclidean"), ("complete", "euclidean")])
def test_points_that_come_between_two_searches(rng, linkage, metric):
    """With the paper's goal they are inserted without a search, and then have to get lists of neighbours."""
    h = Hierarchy(linkage, metric, goal="homogeneous")
    for _ in range(4):
        h.insert(rng.normal(size=(150, 3)))
        h.remove(h.keys()[:30])
        assert h.refine(until="stable").stable
        h.validate()
        assert h.instability(sample=None).fraction < 0.02


@pytest.mark.slow
def test_the_guard(rng):
    """When too many grafts were made, values must differ by more and more to be worth one: it ends, and says so."""
    x = rng.normal(size=(200, 3))
    h = Hierarchy.random(x, search_width=None)
    h.state.live.work.state["grafts_before"][0] = -(10**7)
    report = h.refine()
    assert report.stopped_by == "guard"
    assert not report.stable
    h.validate()
    assert h.is_monotone()
    assert h.refine().stable
    h.certify()
    h = Hierarchy.random(x, search_width=None)
    h.state.live.work.state["grafts_before"][0] = (
        -30 * 200 - 1000
    )  # one quota is used up: the order changes, nothing else
    assert h.refine().stable
    h.certify()


@pytest.mark.slow
def test_ctrl_c_while_nodes_are_numbered_anew(rng, monkeypatch):
    """It is delivered when keys and leaves agree again."""
    monkeypatch.setattr(statistics, "FEWEST_BYTES_TO_REORDER", 1_000)
    h = Hierarchy()
    h.insert(rng.normal(size=(300, 3)), keys=[f"k{i}" for i in range(300)])
    h.state.live.work.state["ordered_at"][0] = 0
    permute = type(h.state.live)._permute

    def interrupted(*args):
        signal.raise_signal(signal.SIGINT)
        permute(*args)

    monkeypatch.setattr(type(h.state.live), "_permute", interrupted)
    with pytest.raises(KeyboardInterrupt):
        h.refine()
    monkeypatch.setattr(type(h.state.live), "_permute", permute)
    h.validate()
    assert h.refine().stable


def test_few_points():
    for n in range(3):
        h = Hierarchy(search_width=None)
        h.insert(np.arange(float(n)).reshape(-1, 1))
        assert h.refine().stable
        h.certify()
        assert h.is_stable()
        assert h.instability().fraction == 0
        h.remove(h.keys())
        assert h.refine().stable


def test_bad_options(rng):
    for width in (0, -1, 2.5, "all", True):
        with pytest.raises(ParameterError, match="search_width must be 'auto', a positive integer, or None"):
            Hierarchy(search_width=width)
    with pytest.raises(ParameterError, match="goal must be"):
        Hierarchy(goal="best")
    h = Hierarchy()
    with pytest.raises(ParameterError, match="until must be"):
        h.refine(until="best")
    for sample in (0, -1, 1.5):
        with pytest.raises(ParameterError, match="sample must be"):
            h.instability(sample=sample)
    with pytest.raises(ParameterError, match="confidence must be"):
        h.instability(confidence=1)


@pytest.mark.slow
@pytest.mark.parametrize("fewest", [1 << 40, 1_000])
def test_a_refined_tree_is_the_same_for_the_same_input(rng, monkeypatch, fewest):
    """Also if nodes are numbered anew on the way, which must not depend on the clock."""
    monkeypatch.setattr(statistics, "FEWEST_BYTES_TO_REORDER", fewest)
    x = rng.normal(size=(500, 4))
    trees = []
    for seconds in (0.005, 0.005, 0.0005):
        monkeypatch.setattr("evertree.tree.refine._SLICE", seconds)
        h = Hierarchy.random(x)
        h.refine()
        trees.append((h.linkage_matrix().tolist(), h.n_moves, h.n_grafts))
    assert trees[0] == trees[1] == trees[2]


@pytest.mark.slow
@pytest.mark.parametrize("linkage", ["complete", "average"])
def test_where_comparisons_pause_does_not_matter(linkage):
    """It depends on the clock."""
    for seed in range(3):
        x = np.random.default_rng(seed).normal(size=(200, 3))
        start = Hierarchy.random(x, linkage, metric="cityblock", search_width=4, seed=seed)
        found = set()
        for n_steps in (1, 5, UNLIMITED):
            live = start.copy().state.live
            live.prepare_search()
            while not live.is_at_rest:
                live.stabilise(n_steps)
            found.add((live.n_searches, live.n_grafts, live.n_moves))
        assert len(found) == 1


def test_a_light_point_of_an_earlier_batch_is_found():
    """A bound has to allow for it. When 2 leaves, 0 would rather merge with 1, which is light and does not search."""
    h = Hierarchy(search_width=None)
    h.insert([[0.0], [8.0]], sample_weight=[0.1, 0.01])
    h.insert([[-2.3], [-5.0], [18.0]], sample_weight=[10, 10, 100])
    h.refine()
    assert h.sibling(h.leaf(0)) == h.leaf(2)
    assert h.sibling(h.leaf(1)) == h.leaf(4)
    h.remove([2])
    h.refine()
    h.certify()
    assert h.sibling(h.leaf(0)) == h.leaf(1)


@pytest.mark.slow
def test_slices_towards_the_other_goal_go_on(rng):
    """They do not look at all nodes again each time."""
    h = Hierarchy()
    h.insert(rng.normal(size=(400, 2)))
    h.refine()
    checks = 0
    while True:
        report = h.refine(moves=1, until="homogeneous")
        checks += report.checks
        if report.stopped_by == "homogeneous":
            break
    assert h.is_homogeneous()
    assert checks < 1500


def test_weights_are_repeated_points(rng):
    """A point of weight 2 is two points, for Ward and average."""
    x, counts = rng.normal(size=(25, 2)), rng.integers(1, 4, size=25)
    for linkage, metric in (("ward", "euclidean"), ("average", "sqeuclidean"), ("average", "euclidean")):
        h, repeated = (Hierarchy(linkage, metric, search_width=None) for _ in range(2))
        h.insert(x, sample_weight=counts)
        repeated.insert(np.repeat(x, counts, axis=0))
        h.refine()
        repeated.refine()
        np.testing.assert_array_equal(weights(h), counts)
        np.testing.assert_allclose(h.linkage_matrix()[:, 2], repeated.linkage_matrix()[-24:, 2], rtol=1e-9)
