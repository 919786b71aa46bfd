"""Trees in parts: refined across parts, they are what a tree on one machine would be."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.cluster.hierarchy import linkage as batch

import evertree as et
import helpers
from evertree import kernels
from evertree.distributed import distributed_tree, rebalance
from evertree.distributed import parts as tasks
from evertree.distributed.distributed_tree import DistributedTree
from evertree.distributed.parts import build_subtree, combine, insert_into, remove_from
from evertree.distributed.subtrees import STRIDE, Shape, Subtrees, to_live
from evertree.tree import Aim, invariants
from evertree.tree.scheme import Scheme
from in_process import InProcess

AIM = Aim("stable", 4)
DATA = {name: x for name, x in helpers.hard_data().items() if len(x)}
#: With the compiler off, these say enough.
FEW = ("duplicates", "float32 far from the origin", "one point", "two points")
EACH = [pytest.param(name, marks=[] if name in FEW else pytest.mark.slow) for name in DATA]
SCHEMES = [Scheme("ward", "euclidean"), Scheme("average", "sqeuclidean")]
WARD = SCHEMES[0]


@pytest.fixture(autouse=True)
def _small_summaries(monkeypatch):
    """Parts of a few points show as little of themselves as those of many do."""
    monkeypatch.setattr(tasks, "SHARE_OPEN", 2)


class Sharing:
    """A runner that shares what tasks return, which none may change, and runs them when they are needed, or never."""

    def submit(self, name, function, *args):
        return [name, function, args, None]

    def gather(self, handles):
        # The last first: nothing may depend on the order.
        values = [self._value(handle) for handle in reversed(handles)]
        return values[::-1]

    def _value(self, handle):
        if handle[3] is None:
            _, function, args, _ = handle
            handle[3] = (frozen(function(*(self._resolved(arg) for arg in args))),)
        return handle[3][0]

    def _resolved(self, arg):
        if isinstance(arg, list) and len(arg) == 4 and callable(arg[1]):
            return self._value(arg)
        if type(arg) is list:
            return [self._resolved(entry) for entry in arg]
        return frozen(arg)


def frozen(value):
    """The value, with all its arrays to be read only."""
    if isinstance(value, np.ndarray):
        value = value.view()
        value.flags.writeable = False
        return value
    if isinstance(value, dict):
        return {key: frozen(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        entries = [frozen(entry) for entry in value]
        return type(value)(*entries) if hasattr(value, "_fields") else type(value)(entries)
    return value


def path(n: int) -> np.ndarray:
    """The children of a tree over n leaves that hang at the top one by one."""
    return np.array([[n + i - 1 if i else 0, i + 1] for i in range(n - 1)], np.int32).reshape(-1, 2)


def in_parts(
    x, part, scheme=WARD, aim=AIM, runner=None, weights=None, part_size=None, ids=None
) -> tuple[DistributedTree, object]:
    """A tree of parts with the given points, not refined across them."""
    runner = runner or InProcess()
    ids = np.arange(len(x)) if ids is None else ids
    weights = np.ones(len(x)) if weights is None else weights
    n_parts = int(part.max()) + 1
    handles = {}
    for number in range(n_parts):
        rows = np.flatnonzero(part == number)
        handles[number] = runner.submit("build", build_subtree, x[rows], ids[rows], weights[rows], scheme, aim)
    size = part_size or -(-len(x) // n_parts)
    return DistributedTree.from_parts(runner, handles, np.arange(n_parts), path(n_parts), scheme, aim, size), runner


def assert_valid(tree: DistributedTree, runner, x, weights=None, ids=None) -> None:
    """All by the definitions that one machine has, on the whole tree."""
    whole = tree.whole(runner)
    ids = np.arange(len(x)) if ids is None else ids
    np.testing.assert_array_equal(np.sort(whole.ids), ids)
    order = np.argsort(whole.ids)
    given = whole.mean if whole.points is None else whole.points
    np.testing.assert_array_equal(given[order], x)
    np.testing.assert_array_equal(whole.size[order], np.ones(len(x)) if weights is None else weights)
    live = to_live(whole, tree.scheme, tree.aim)
    invariants.check_shape(live)
    invariants.check_points(live)
    invariants.check_statistics(live)
    scanned = tasks.scan(whole, None, tree.scheme, tree.aim)
    assert scanned == tree.scan(runner)
    assert scanned[0] == 0, "not monotone"
    if tree.scheme.linkage.strongly_reducible:
        assert scanned[1] == 0, "not homogeneous"
    assert sum(sizes(tree, runner)) == len(x)


def sizes(tree: DistributedTree, runner) -> list[int]:
    """The number of points of each part."""
    return [part.subtrees.n_points for part in runner.gather(list(tree.handles.values()))]


def same(one: Subtrees, other: Subtrees) -> bool:
    return np.array_equal(one.ids, other.ids) and np.array_equal(one.children, other.children)


@pytest.mark.parametrize("scheme", SCHEMES, ids=["ward", "average"])
@pytest.mark.parametrize("name", EACH)
@pytest.mark.parametrize("n_parts", [pytest.param(2, marks=pytest.mark.slow), 7])
def test_points_in_random_parts_become_a_tree_that_one_machine_calls_valid(name, scheme, n_parts):
    x = DATA[name]
    part = np.random.default_rng(n_parts).integers(0, n_parts, len(x))
    tree, runner = in_parts(x, part, scheme)
    report = tree.refine(runner)
    assert report.stopped_by == "stable"
    assert_valid(tree, runner, x)


@pytest.mark.parametrize("metric", ["cosine", "correlation", "mahalanobis"])
def test_points_are_kept_as_they_were_given(metric):
    x = DATA["random"]
    scheme = Scheme("ward" if metric == "mahalanobis" else "average", metric, helpers.params_of(metric, 3))
    tree, runner = in_parts(x, np.arange(40) % 3, scheme)
    tree.refine(runner)
    assert_valid(tree, runner, x)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", SCHEMES, ids=["ward", "average"])
@pytest.mark.parametrize("width", [128, None])
@pytest.mark.parametrize("seed", range(3))
def test_with_an_exhaustive_search_it_is_the_batch_tree(scheme, width, seed):
    """Descents that keep everything miss no blocking pair, and a stable tree is a batch tree."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(60, 2)) + 4 * rng.integers(0, 3, size=(60, 1))
    aim = Aim("stable", width)
    tree, runner = in_parts(x, rng.integers(0, 4, 60), scheme, aim)
    assert tree.refine(runner).stopped_by == "stable"
    live = to_live(tree.whole(runner), scheme, aim)
    height = np.sort(scheme.height(live.tree.height[live.nodes()][live.nodes() % 2 == 1]))
    if scheme is WARD:
        expected = batch(x, "ward")[:, 2]
    else:
        expected = batch(((x[:, None] - x[None]) ** 2).sum(-1)[np.triu_indices(60, 1)], "average")[:, 2]
    np.testing.assert_allclose(height, expected, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", SCHEMES, ids=["ward", "average"])
@pytest.mark.parametrize(("most_pairs", "n_seeds"), [(2, 6), (1000, 20)])
def test_exhaustive_searches_leave_no_blocking_pair(monkeypatch, scheme, most_pairs, n_seeds):
    """Parts that show next to nothing have to ask for everything; weights make small clusters light."""
    monkeypatch.setattr(tasks, "MOST_OPEN", 1)
    monkeypatch.setattr(distributed_tree, "FEWEST_PAIRS", most_pairs)
    monkeypatch.setattr(distributed_tree, "SHARE_OF_PAIRS", 0)
    monkeypatch.setattr(distributed_tree, "MOST_ROUNDS", 500)
    for seed in range(n_seeds):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(70, 2)) + 3 * rng.integers(0, 4, size=(70, 1))
        weights = np.exp(rng.normal(size=70))
        part = np.minimum(np.argsort(np.argsort(x[:, 0] + rng.normal(size=70))) // 18, 3)
        tree, runner = in_parts(x, part, scheme, Aim("stable", None), weights=weights, part_size=25)
        assert tree.refine(runner).stopped_by == "stable"
        live = to_live(tree.whole(runner), scheme, tree.aim)
        assert not live.blocked(live.nodes()).any(), seed


def test_subtrees_stay_where_most_of_them_is():
    x = np.concatenate([DATA["random"] + 1000 * i for i in range(3)])
    part = np.repeat([2, 0, 1], 40)
    part[3], part[77] = 1, 2
    tree, runner = in_parts(x, part, part_size=45)
    held = {number: runner.gather([handle])[0].subtrees for number, handle in tree.handles.items()}
    tree.refine(runner)
    for number, start in ((2, 0), (0, 40), (1, 80)):
        (after,) = runner.gather([tree.handles[number]])
        assert np.sort(after.subtrees.ids).tolist() == list(range(start, start + 40))
    assert held[0].n_leaves == 39
    n_assembled = runner.n_tasks["assemble"]
    tree.refine(runner)
    assert runner.n_tasks["assemble"] == n_assembled


def test_several_parts_in_one_come_with_the_oldest_first():
    x = DATA["random"]
    older, younger, none = (
        build_subtree(x[rows], rows, None, WARD, AIM) for rows in (np.r_[0, 2], np.r_[1, 3:9], np.arange(0))
    )
    both = combine([younger, none, older])
    assert both.origin.tolist() == [2, 0]
    assert [tree.ids.min() for tree in both.subtrees.split()] == [0, 1]
    assert combine([none, none]).origin.size == 0


def test_a_long_path_is_split_in_one_round(monkeypatch):
    monkeypatch.setattr(tasks, "MOST_OPEN", 1)
    x = DATA["powers"]
    tree, runner = in_parts(x, np.zeros(40, np.int64), part_size=5)
    assert tree.refine(runner).rounds <= 3
    assert_valid(tree, runner, x)
    assert max(sizes(tree, runner)) <= 10


def test_a_blocking_pair_across_parts_is_found_and_resolved():
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(size=(30, 2)), rng.normal(size=(30, 2)) + 100])
    part = np.repeat([0, 1], 30)
    part[45] = 0
    tree, runner = in_parts(x, part)
    seen = []
    report = tree.refine(runner, lambda done: seen.append((done.n_pairs, done.n_changed)))
    assert seen[0][0] > 0
    assert report.grafts > 0
    live = to_live(tree.whole(runner), WARD, AIM)
    a, b = live.tree.left[live.root], live.tree.right[live.root]
    assert {frozenset(live.tree.birth[live.leaves(int(u))]) for u in (a, b)} == {
        frozenset(range(30)),
        frozenset(range(30, 60)),
    }
    assert runner.gather([tree.handles[1]])[0].subtrees.ids.tolist().count(45) == 1


def test_a_light_point_inside_a_heavy_cluster_is_found():
    """A new point would rather merge with one that is much lighter than all that can be seen of its part."""
    x = np.array([[-10, 0], [-10, 1], [-11, 0], [-3, 0], [8, 0], [18, 0], [25, 0], [25, 1], [26, 0], [26, 1], [0, 0]])
    x, weights = x.astype(float), np.array([50, 50, 50, 1, 0.01, 100, 50, 50, 50, 50, 1])
    light, new = 4, np.array([10])
    tree, runner = in_parts(x[:10], np.repeat([0, 1], [4, 6]), weights=weights[:10], part_size=8)
    tree.refine(runner)
    held = {number: runner.gather([handle])[0].subtrees.ids for number, handle in tree.handles.items()}
    assert sorted(map(sorted, held.values())) == [[0, 1, 2, 3], [4, 5, 6, 7, 8, 9]]
    (number,) = (number for number, ids in held.items() if light not in ids)
    edit = insert_into, tree.handles[number], np.array([0]), x[new], new, weights[new], WARD, AIM
    tree.replace_parts(runner, {number: runner.submit("insert", *edit)})
    tree.refine(runner)
    assert_valid(tree, runner, x, weights)
    live = to_live(tree.whole(runner), WARD, AIM)
    leaf = 2 * np.argsort(live.tree.birth[: 2 * len(x) : 2])
    assert live.tree.parent[leaf[light]] == live.tree.parent[leaf[new[0]]]


def test_a_round_that_finds_nothing_changes_nothing():
    x = np.concatenate([DATA["random"], DATA["random"] + 1000])
    tree, runner = in_parts(x, np.repeat([0, 1], 40))
    tree.refine(runner)
    handles, n_assembled = dict(tree.handles), runner.n_tasks.get("assemble", 0)
    report = tree.refine(runner)
    assert (report.rounds, report.n_pairs, report.n_changed, report.n_queries) == (1, 0, 0, 0)
    assert tree.handles == handles
    assert runner.n_tasks.get("assemble", 0) == n_assembled


@pytest.mark.slow
def test_tasks_change_nothing_and_their_order_does_not_matter():
    x = np.random.default_rng(1).normal(size=(150, 3))
    part = np.random.default_rng(2).integers(0, 5, 150)
    one, runner = in_parts(x, part)
    other, lazy = in_parts(x, part, runner=Sharing())
    one.refine(runner)
    other.refine(lazy)
    assert same(one.whole(runner), other.whole(lazy))
    assert list(one.handles) == list(other.handles)


@pytest.mark.skipif(
    not hasattr(kernels.shared.cross_partition.find_leaf_ranges, "signatures"), reason="the compiler is off"
)
def test_arrays_to_be_read_only_need_no_other_kernels():
    for name in ("find_leaf_ranges", "open_paths", "find_partners", "choose_stubs", "find_limits"):
        by_type = {str(signature[0]) for signature in getattr(kernels.shared.cross_partition, name).signatures}
        assert not any("readonly" in kind for kind in by_type), name
        assert not any("readonly" in str(s) for s in getattr(kernels.shared.cross_partition, name).signatures), name
    assert not any("readonly" in str(signature) for signature in kernels.statistics.fill.fill_leaves.signatures)


def test_weights_stay_and_count():
    x, weights = DATA["random"], np.random.default_rng(4).uniform(0.2, 5, 40)
    tree, runner = in_parts(x, np.arange(40) % 4, weights=weights)
    tree.refine(runner)
    assert_valid(tree, runner, x, weights)


@pytest.mark.slow
def test_parts_stay_small():
    x = np.random.default_rng(5).normal(size=(200, 2))
    part = np.repeat([0, 1], [190, 10])
    tree, runner = in_parts(x, part, part_size=30)
    tree.refine(runner)
    assert_valid(tree, runner, x)
    n_points = sizes(tree, runner)
    assert max(n_points) <= rebalance.LARGEST_PART * 30
    assert len(n_points) >= 4


@pytest.mark.slow
def test_few_pairs_at_a_time_lead_there_too(monkeypatch):
    monkeypatch.setattr(distributed_tree, "FEWEST_PAIRS", 1)
    monkeypatch.setattr(distributed_tree, "SHARE_OF_PAIRS", 0)
    monkeypatch.setattr(distributed_tree, "MOST_ROUNDS", 200)
    x = DATA["random"]
    tree, runner = in_parts(x, np.arange(40) % 3)
    seen = []
    report = tree.refine(runner, lambda done: seen.append(done.n_pairs))
    assert report.stopped_by == "stable"
    assert max(seen) > 1
    assert report.rounds > 3
    assert_valid(tree, runner, x)


def test_the_guard_ends_it(monkeypatch):
    monkeypatch.setattr(distributed_tree, "MOST_ROUNDS", 1)
    tree, runner = in_parts(DATA["random"], np.arange(40) % 3)
    report = tree.refine(runner)
    assert (report.rounds, report.stopped_by) == (1, "rounds")
    assert np.array_equal(np.sort(tree.whole(runner).ids), np.arange(40))
    monkeypatch.undo()
    assert tree.refine(runner).stopped_by == "stable"
    assert_valid(tree, runner, DATA["random"])


def test_groups_that_came_out_empty_are_left_out():
    x, runner = DATA["random"], InProcess()
    groups = [
        [np.arange(0, 10), np.arange(0), np.arange(10, 20)],
        [np.arange(0)],
        [np.arange(0), np.arange(20, 40)],
    ]
    handles = {
        number: runner.submit(
            "one", combine, [runner.submit("build", build_subtree, x[rows], rows, None, WARD, AIM) for rows in some]
        )
        for number, some in enumerate(groups)
    }
    tree = DistributedTree.from_parts(runner, handles, np.array([0, 0, 0, 1, 2, 2]), path(6), WARD, AIM, 20)
    assert list(tree.handles) == [0, 2]
    assert tree.top.ids.tolist() == [0, 1, 2 * STRIDE]
    tree.refine(runner)
    assert_valid(tree, runner, x)


def test_leaves_vanish_from_the_top():
    top = Shape(np.arange(5), np.array([[0, 1], [5, 2], [3, 4], [6, 7]], np.int32))
    left = top.without(np.array([False, True, False, False, False]))
    assert left.ids.tolist() == [0, 2, 3, 4]
    assert left.children.tolist() == [[0, 1], [2, 3], [4, 5]]
    only = top.without(np.array([True, True, True, False, True]))
    assert (only.ids.tolist(), only.children.tolist()) == ([3], [])
    assert top.without(np.ones(5, np.bool_)).ids.size == 0


@pytest.mark.parametrize("scheme", SCHEMES, ids=["ward", "average"])
@pytest.mark.parametrize(
    "name",
    ["duplicates", *(pytest.param(name, marks=pytest.mark.slow) for name in ("random", "integer grid", "float32"))],
)
def test_points_come_and_go(name, scheme):
    x = DATA[name]
    first = len(x) // 2
    tree, runner = in_parts(x[:first], np.arange(first) % 3, scheme)
    tree.refine(runner)
    rng = np.random.default_rng(0)
    ids = np.arange(first, len(x))
    for number, rows in zip(tree.handles, np.array_split(ids, len(tree.handles)), strict=True):
        (part,) = runner.gather([tree.handles[number]])
        nodes = rng.integers(0, part.subtrees.n_nodes, rows.size)
        new = runner.submit(
            "insert", insert_into, tree.handles[number], nodes, x[rows], rows, np.ones(rows.size), scheme, AIM
        )
        tree.replace_parts(runner, {number: new})
    assert sum(sizes(tree, runner)) == len(x)
    assert tree.refine(runner).stopped_by == "stable"
    assert_valid(tree, runner, x)
    left = np.arange(len(x))
    while left.size:
        gone = rng.choice(left, min(9, left.size), replace=False)
        left = np.setdiff1d(left, gone)
        handles = {}
        for number, handle in tree.handles.items():
            (has,) = runner.gather([runner.submit("has", tasks.has_ids, handle, gone)])
            if has.any():
                handles[number] = runner.submit("remove", remove_from, handle, gone[has], scheme, AIM)
        tree.replace_parts(runner, handles)
        assert sum(sizes(tree, runner)) == left.size
        assert tree.refine(runner).stopped_by == "stable"
        if left.size:
            assert_valid(tree, runner, x[left], ids=left)
    assert not tree.handles
    assert tree.scan(runner) == (0, 0)


def test_a_subtree_whose_oldest_point_goes_keeps_its_place_in_the_top():
    """Subtrees of a part come in the order of their oldest points, which removal changes."""
    x = np.concatenate([DATA["random"], DATA["random"] + 1000])
    rows = np.arange(80)
    runner = InProcess()
    part = combine([build_subtree(x[some], rows[some], None, WARD, AIM) for some in (rows[:40], rows[40:])])
    gone = np.arange(0, 39)
    swapped = remove_from(part, gone, WARD, AIM)
    assert swapped.origin.tolist() == [0, 1]
    later = combine([build_subtree(x[some], rows[some], None, WARD, AIM) for some in (np.r_[0, 60:80], rows[1:40])])
    swapped = remove_from(later, np.array([0]), WARD, AIM)
    assert swapped.origin.tolist() == [1, 0]
    tree = DistributedTree({0: later}, Shape(np.array([0, 1]), path(2)), WARD, AIM, 50)
    tree.replace_parts(runner, {0: swapped})
    assert tree.top.ids.tolist() == [1, 0]
    assert tasks.has_ids(swapped, np.array([0, 1, 60])).tolist() == [False, True, True]


def test_due_nodes_are_those_that_changed():
    x = np.concatenate([DATA["random"], DATA["random"] + 1000])
    part = build_subtree(x, np.arange(80), None, WARD, AIM)
    assert part.due.all()
    part = part._replace(due=np.zeros_like(part.due))
    more = insert_into(part, np.array([79]), x[79:] + 1e-3, np.array([80]), None, WARD, AIM)
    signatures = more.subtrees.signatures()
    first, stop = more.subtrees.leaf_ranges()
    has_new = np.array([80 in more.subtrees.ids[a:b] for a, b in zip(first, stop, strict=True)])
    assert more.due[has_new].all()
    assert not more.due[(signatures[:, 0] < 40) & (signatures[:, 1] < 40)].any()
    searched = part._replace(due=np.ones_like(part.due))
    same = insert_into(searched, np.array([79]), x[79:] + 1e-3, np.array([80]), None, WARD, AIM, still_due=False)
    np.testing.assert_array_equal(same.due, more.due)
    less = remove_from(searched, np.array([79]), WARD, AIM, still_due=False)
    assert 0 < np.count_nonzero(less.due) < 40


def test_signatures_find_nodes():
    part = build_subtree(DATA["random"], np.arange(40) * 3, None, WARD, AIM)
    signatures = part.subtrees.signatures()
    assert len(np.unique(signatures, axis=0)) == len(signatures)
    some = np.array([3, 40, 78])
    assert part.subtrees.find(signatures[some]).tolist() == some.tolist()
    assert part.subtrees.find(np.array([[1, 1], [0, 999], [10**6, 1]])).size == 0
    assert part.subtrees.find(np.array([[0, 42]])).size == 0  # which no node of a tree of 40 points can have


@pytest.mark.slow
@pytest.mark.parametrize("scheme", SCHEMES, ids=["ward", "average"])
@pytest.mark.parametrize("routed_well", [True, False], ids=["near", "random"])
def test_the_tree_is_as_good_as_that_of_one_machine(scheme, routed_well):
    rng = np.random.default_rng(7)
    centres = 3 * rng.normal(size=(30, 6))
    y = rng.integers(0, 30, 4000)
    x = centres[y] + rng.normal(size=(4000, 6))
    part = np.argmin(((x[:, None] - x[None, :8]) ** 2).sum(-1), axis=1) if routed_well else rng.integers(0, 8, 4000)
    tree, runner = in_parts(x, part, scheme)
    assert tree.refine(runner).stopped_by == "stable"
    assert tree.scan(runner)[0] == 0
    whole = tree.whole(runner)
    Z = np.zeros((3999, 4))
    Z[:, :2] = np.concatenate([whole.ids, 4000 + np.arange(3999)])[whole.children]
    ours = et.Hierarchy.from_linkage(Z, x, scheme.linkage.name, scheme.metric)
    single = et.Hierarchy(scheme.linkage.name, scheme.metric)
    single.insert(x)
    single.refine()
    assert et.quality.dendrogram_purity(ours, y) > 0.95 * et.quality.dendrogram_purity(single, y)
    assert et.quality.tree_value(ours) > 0.99 * et.quality.tree_value(single)
    assert et.quality.total_linkage(ours) < 1.02 * et.quality.total_linkage(single)
    nodes = rng.choice(ours.state.live.nodes(), 500, replace=False)
    assert ours.state.live.blocked(nodes).mean() < 0.05
