"""Trees in parts: refined across the borders, they are what a tree in one piece would be."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.cluster.hierarchy import linkage as batch

import evertree as et
import helpers
from evertree import kernels
from evertree.distributed import parts as tasks
from evertree.distributed import refining, settling
from evertree.distributed.parts import STRIDE, build, in_one, insert_into, remove_from
from evertree.distributed.pieces import Piece, inflate
from evertree.distributed.refining import Forest
from evertree.distributed.runner import InProcess
from evertree.distributed.settling import Top
from evertree.tree import Aim, invariants
from evertree.tree.scheme import Scheme

AIM = Aim("stable", 4)
DATA = {name: x for name, x in helpers.hard_data().items() if len(x)}
#: With the compiler off, these say enough.
FEW = ("duplicates", "float32 far from the origin", "one point", "two points")
EACH = [pytest.param(name, marks=[] if name in FEW else pytest.mark.slow) for name in DATA]
SCHEMES = [Scheme("ward", "euclidean"), Scheme("average", "sqeuclidean")]
WARD = SCHEMES[0]


@pytest.fixture(autouse=True)
def _small_crowns(monkeypatch):
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


def planted(
    x, part, scheme=WARD, aim=AIM, runner=None, weights=None, part_size=None, ids=None
) -> tuple[Forest, object]:
    """A forest of parts with the given points, not refined across the borders."""
    runner = runner or InProcess()
    ids = np.arange(len(x)) if ids is None else ids
    weights = np.ones(len(x)) if weights is None else weights
    n_parts = int(part.max()) + 1
    handles = {}
    for number in range(n_parts):
        rows = np.flatnonzero(part == number)
        handles[number] = runner.submit("build", build, x[rows], ids[rows], weights[rows], scheme, aim)
    size = part_size or -(-len(x) // n_parts)
    return Forest.joined(runner, handles, np.arange(n_parts), path(n_parts), scheme, aim, size), runner


def assert_valid(forest: Forest, runner, x, weights=None, ids=None) -> None:
    """All by the definitions that one machine has, on the whole tree."""
    whole = forest.whole(runner)
    ids = np.arange(len(x)) if ids is None else ids
    np.testing.assert_array_equal(np.sort(whole.ids), ids)
    order = np.argsort(whole.ids)
    given = whole.mean if whole.points is None else whole.points
    np.testing.assert_array_equal(given[order], x)
    np.testing.assert_array_equal(whole.size[order], np.ones(len(x)) if weights is None else weights)
    live = inflate(whole, forest.scheme, forest.aim)
    invariants.check_shape(live)
    invariants.check_points(live)
    invariants.check_statistics(live)
    scanned = tasks.scan(whole, None, forest.scheme, forest.aim)
    assert scanned == forest.scan(runner)
    assert scanned[0] == 0, "not monotone"
    if forest.scheme.linkage.strongly_reducible:
        assert scanned[1] == 0, "not homogeneous"
    assert sum(seen.crown.piece.n_points for seen in forest._crowns.values()) == len(x)


def same(one: Piece, other: Piece) -> bool:
    return np.array_equal(one.ids, other.ids) and np.array_equal(one.children, other.children)


@pytest.mark.parametrize("scheme", SCHEMES, ids=["ward", "average"])
@pytest.mark.parametrize("name", EACH)
@pytest.mark.parametrize("n_parts", [pytest.param(2, marks=pytest.mark.slow), 7])
def test_points_in_random_parts_become_a_tree_that_one_machine_calls_valid(name, scheme, n_parts):
    x = DATA[name]
    part = np.random.default_rng(n_parts).integers(0, n_parts, len(x))
    forest, runner = planted(x, part, scheme)
    report = forest.refine(runner)
    assert report.stopped_by == "stable"
    assert_valid(forest, runner, x)


@pytest.mark.parametrize("metric", ["cosine", "correlation", "mahalanobis"])
def test_points_are_kept_as_they_were_given(metric):
    x = DATA["random"]
    scheme = Scheme("ward" if metric == "mahalanobis" else "average", metric, helpers.params_of(metric, 3))
    forest, runner = planted(x, np.arange(40) % 3, scheme)
    forest.refine(runner)
    assert_valid(forest, runner, x)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", SCHEMES, ids=["ward", "average"])
@pytest.mark.parametrize("width", [128, None])
@pytest.mark.parametrize("seed", range(3))
def test_with_an_exhaustive_search_it_is_the_batch_tree(scheme, width, seed):
    """Descents that keep everything miss no blocking pair, and a stable tree is a batch tree."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(60, 2)) + 4 * rng.integers(0, 3, size=(60, 1))
    aim = Aim("stable", width)
    forest, runner = planted(x, rng.integers(0, 4, 60), scheme, aim)
    assert forest.refine(runner).stopped_by == "stable"
    live = inflate(forest.whole(runner), scheme, aim)
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
    monkeypatch.setattr(refining, "FEWEST_PAIRS", most_pairs)
    monkeypatch.setattr(refining, "SHARE_OF_PAIRS", 0)
    monkeypatch.setattr(refining, "MOST_ROUNDS", 500)
    for seed in range(n_seeds):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(70, 2)) + 3 * rng.integers(0, 4, size=(70, 1))
        weights = np.exp(rng.normal(size=70))
        part = np.minimum(np.argsort(np.argsort(x[:, 0] + rng.normal(size=70))) // 18, 3)
        forest, runner = planted(x, part, scheme, Aim("stable", None), weights=weights, part_size=25)
        assert forest.refine(runner).stopped_by == "stable"
        live = inflate(forest.whole(runner), scheme, forest.aim)
        assert not live.blocked(live.nodes()).any(), seed


def test_subtrees_stay_where_most_of_them_is():
    x = np.concatenate([DATA["random"] + 1000 * i for i in range(3)])
    part = np.repeat([2, 0, 1], 40)
    part[3], part[77] = 1, 2
    forest, runner = planted(x, part, part_size=45)
    held = {number: runner.gather([handle])[0].piece for number, handle in forest.handles.items()}
    forest.refine(runner)
    for number, start in ((2, 0), (0, 40), (1, 80)):
        (after,) = runner.gather([forest.handles[number]])
        assert np.sort(after.piece.ids).tolist() == list(range(start, start + 40))
    assert held[0].n_leaves == 39
    n_takes = runner.n_tasks["take"]
    forest.refine(runner)
    assert runner.n_tasks["take"] == n_takes


def test_several_parts_in_one_come_with_the_oldest_first():
    x = DATA["random"]
    older, younger, none = (
        build(x[rows], rows, None, WARD, AIM) for rows in (np.r_[0, 2], np.r_[1, 3:9], np.arange(0))
    )
    both = in_one([younger, none, older])
    assert both.origin.tolist() == [2, 0]
    assert [piece.ids.min() for piece in tasks.subtrees(both.piece)] == [0, 1]
    assert in_one([none, none]).origin.size == 0


def test_a_long_path_is_split_in_one_round(monkeypatch):
    monkeypatch.setattr(tasks, "MOST_OPEN", 1)
    x = DATA["powers"]
    forest, runner = planted(x, np.zeros(40, np.int64), part_size=5)
    assert forest.refine(runner).rounds <= 3
    assert_valid(forest, runner, x)
    assert max(seen.crown.piece.n_points for seen in forest._crowns.values()) <= 10


def test_a_blocking_pair_across_a_border_is_found_and_resolved():
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(size=(30, 2)), rng.normal(size=(30, 2)) + 100])
    part = np.repeat([0, 1], 30)
    part[45] = 0
    forest, runner = planted(x, part)
    seen = []
    report = forest.refine(runner, lambda done: seen.append((done.n_pairs, done.n_changed)))
    assert seen[0][0] > 0
    assert report.grafts > 0
    live = inflate(forest.whole(runner), WARD, AIM)
    a, b = live.tree.left[live.root], live.tree.right[live.root]
    assert {frozenset(live.tree.birth[live.leaves(int(u))]) for u in (a, b)} == {
        frozenset(range(30)),
        frozenset(range(30, 60)),
    }
    assert runner.gather([forest.handles[1]])[0].piece.ids.tolist().count(45) == 1


def test_a_light_point_inside_a_heavy_cluster_is_asked_for():
    """A new point would rather merge with one that is much lighter than all that can be seen of its part."""
    x = np.array([[-10, 0], [-10, 1], [-11, 0], [-3, 0], [8, 0], [18, 0], [25, 0], [25, 1], [26, 0], [26, 1], [0, 0]])
    x, weights = x.astype(float), np.array([50, 50, 50, 1, 0.01, 100, 50, 50, 50, 50, 1])
    light, new = 4, np.array([10])
    forest, runner = planted(x[:10], np.repeat([0, 1], [4, 6]), weights=weights[:10], part_size=8)
    forest.refine(runner)
    held = {number: runner.gather([handle])[0].piece.ids for number, handle in forest.handles.items()}
    assert sorted(map(sorted, held.values())) == [[0, 1, 2, 3], [4, 5, 6, 7, 8, 9]]
    (number,) = (number for number, ids in held.items() if light not in ids)
    edit = insert_into, forest.handles[number], np.array([0]), x[new], new, weights[new], WARD, AIM
    forest.edited(runner, {number: runner.submit("insert", *edit)})
    forest.refine(runner)
    assert_valid(forest, runner, x, weights)
    live = inflate(forest.whole(runner), WARD, AIM)
    leaf = 2 * np.argsort(live.tree.birth[: 2 * len(x) : 2])
    assert live.tree.parent[leaf[light]] == live.tree.parent[leaf[new[0]]]


def test_a_round_that_finds_nothing_changes_nothing():
    x = np.concatenate([DATA["random"], DATA["random"] + 1000])
    forest, runner = planted(x, np.repeat([0, 1], 40))
    forest.refine(runner)
    handles, n_takes = dict(forest.handles), runner.n_tasks.get("take", 0)
    report = forest.refine(runner)
    assert (report.rounds, report.n_pairs, report.n_changed, report.n_asked) == (1, 0, 0, 0)
    assert forest.handles == handles
    assert runner.n_tasks.get("take", 0) == n_takes


@pytest.mark.slow
def test_tasks_change_nothing_and_their_order_does_not_matter():
    x = np.random.default_rng(1).normal(size=(150, 3))
    part = np.random.default_rng(2).integers(0, 5, 150)
    one, runner = planted(x, part)
    other, lazy = planted(x, part, runner=Sharing())
    one.refine(runner)
    other.refine(lazy)
    assert same(one.whole(runner), other.whole(lazy))
    assert list(one.handles) == list(other.handles)


@pytest.mark.skipif(
    not hasattr(kernels.shared.cross_partition.find_stretches, "signatures"), reason="the compiler is off"
)
def test_arrays_to_be_read_only_need_no_other_kernels():
    for name in ("find_stretches", "open_paths", "find_partners", "choose_doors", "find_limits"):
        by_type = {str(signature[0]) for signature in getattr(kernels.shared.cross_partition, name).signatures}
        assert not any("readonly" in kind for kind in by_type), name
        assert not any("readonly" in str(s) for s in getattr(kernels.shared.cross_partition, name).signatures), name
    assert not any("readonly" in str(signature) for signature in kernels.statistics.fill.fill_leaves.signatures)


def test_weights_stay_and_count():
    x, weights = DATA["random"], np.random.default_rng(4).uniform(0.2, 5, 40)
    forest, runner = planted(x, np.arange(40) % 4, weights=weights)
    forest.refine(runner)
    assert_valid(forest, runner, x, weights)


@pytest.mark.slow
def test_parts_stay_small():
    x = np.random.default_rng(5).normal(size=(200, 2))
    part = np.repeat([0, 1], [190, 10])
    forest, runner = planted(x, part, part_size=30)
    forest.refine(runner)
    assert_valid(forest, runner, x)
    n_points = [seen.crown.piece.n_points for seen in forest._crowns.values()]
    assert max(n_points) <= settling.MOST_PARTS_IN_ONE * 30
    assert len(n_points) >= 4


@pytest.mark.slow
def test_few_pairs_at_a_time_lead_there_too(monkeypatch):
    monkeypatch.setattr(refining, "FEWEST_PAIRS", 1)
    monkeypatch.setattr(refining, "SHARE_OF_PAIRS", 0)
    monkeypatch.setattr(refining, "MOST_ROUNDS", 200)
    x = DATA["random"]
    forest, runner = planted(x, np.arange(40) % 3)
    seen = []
    report = forest.refine(runner, lambda done: seen.append(done.n_pairs))
    assert report.stopped_by == "stable"
    assert max(seen) > 1
    assert report.rounds > 3
    assert_valid(forest, runner, x)


def test_the_guard_ends_it(monkeypatch):
    monkeypatch.setattr(refining, "MOST_ROUNDS", 1)
    forest, runner = planted(DATA["random"], np.arange(40) % 3)
    report = forest.refine(runner)
    assert (report.rounds, report.stopped_by) == (1, "rounds")
    assert np.array_equal(np.sort(forest.whole(runner).ids), np.arange(40))
    monkeypatch.undo()
    assert forest.refine(runner).stopped_by == "stable"
    assert_valid(forest, runner, DATA["random"])


def test_groups_that_came_out_empty_are_left_out():
    x, runner = DATA["random"], InProcess()
    groups = [
        [np.arange(0, 10), np.arange(0), np.arange(10, 20)],
        [np.arange(0)],
        [np.arange(0), np.arange(20, 40)],
    ]
    handles = {
        number: runner.submit(
            "one", in_one, [runner.submit("build", build, x[rows], rows, None, WARD, AIM) for rows in some]
        )
        for number, some in enumerate(groups)
    }
    forest = Forest.joined(runner, handles, np.array([0, 0, 0, 1, 2, 2]), path(6), WARD, AIM, 20)
    assert list(forest.handles) == [0, 2]
    assert forest.top.ids.tolist() == [0, 1, 2 * STRIDE]
    forest.refine(runner)
    assert_valid(forest, runner, x)


def test_leaves_vanish_from_the_top():
    top = Top(np.arange(5), np.array([[0, 1], [5, 2], [3, 4], [6, 7]], np.int32))
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
    forest, runner = planted(x[:first], np.arange(first) % 3, scheme)
    forest.refine(runner)
    rng = np.random.default_rng(0)
    ids = np.arange(first, len(x))
    for number, rows in zip(forest.handles, np.array_split(ids, len(forest.handles)), strict=True):
        (part,) = runner.gather([forest.handles[number]])
        nodes = rng.integers(0, part.piece.n_nodes, rows.size)
        new = runner.submit(
            "insert", insert_into, forest.handles[number], nodes, x[rows], rows, np.ones(rows.size), scheme, AIM
        )
        forest.edited(runner, {number: new})
    assert forest.n_points(runner) == len(x)
    assert forest.refine(runner).stopped_by == "stable"
    assert_valid(forest, runner, x)
    left = np.arange(len(x))
    while left.size:
        gone = rng.choice(left, min(9, left.size), replace=False)
        left = np.setdiff1d(left, gone)
        handles = {}
        for number, handle in forest.handles.items():
            (has,) = runner.gather([runner.submit("has", tasks.has_ids, handle, gone)])
            if has.any():
                handles[number] = runner.submit("remove", remove_from, handle, gone[has], scheme, AIM)
        forest.edited(runner, handles)
        assert forest.n_points(runner) == left.size
        assert forest.refine(runner).stopped_by == "stable"
        if left.size:
            assert_valid(forest, runner, x[left], ids=left)
    assert not forest.handles
    assert forest.scan(runner) == (0, 0)


def test_a_subtree_whose_oldest_point_goes_keeps_its_place_in_the_top():
    """Subtrees of a part come in the order of their oldest points, which removal changes."""
    x = np.concatenate([DATA["random"], DATA["random"] + 1000])
    rows = np.arange(80)
    runner = InProcess()
    part = in_one([build(x[some], rows[some], None, WARD, AIM) for some in (rows[:40], rows[40:])])
    gone = np.arange(0, 39)
    swapped = remove_from(part, gone, WARD, AIM)
    assert swapped.origin.tolist() == [0, 1]
    later = in_one([build(x[some], rows[some], None, WARD, AIM) for some in (np.r_[0, 60:80], rows[1:40])])
    swapped = remove_from(later, np.array([0]), WARD, AIM)
    assert swapped.origin.tolist() == [1, 0]
    forest = Forest({0: later}, Top(np.array([0, 1]), path(2)), WARD, AIM, 50)
    forest.edited(runner, {0: swapped})
    assert forest.top.ids.tolist() == [1, 0]
    assert tasks.has_ids(swapped, np.array([0, 1, 60])).tolist() == [False, True, True]


def test_due_nodes_are_those_that_changed():
    x = np.concatenate([DATA["random"], DATA["random"] + 1000])
    part = build(x, np.arange(80), None, WARD, AIM)
    assert part.due.all()
    part = part._replace(due=np.zeros_like(part.due))
    more = insert_into(part, np.array([79]), x[79:] + 1e-3, np.array([80]), None, WARD, AIM)
    names = more.piece.names()
    first, stop = more.piece.stretches()
    has_new = np.array([80 in more.piece.ids[a:b] for a, b in zip(first, stop, strict=True)])
    assert more.due[has_new].all()
    assert not more.due[(names[:, 0] < 40) & (names[:, 1] < 40)].any()
    asked = part._replace(due=np.ones_like(part.due))
    same = insert_into(asked, np.array([79]), x[79:] + 1e-3, np.array([80]), None, WARD, AIM, still_due=False)
    np.testing.assert_array_equal(same.due, more.due)
    less = remove_from(asked, np.array([79]), WARD, AIM, still_due=False)
    assert 0 < np.count_nonzero(less.due) < 40


def test_names_find_nodes():
    part = build(DATA["random"], np.arange(40) * 3, None, WARD, AIM)
    names = part.piece.names()
    assert len(np.unique(names, axis=0)) == len(names)
    some = np.array([3, 40, 78])
    assert tasks.find_nodes(part.piece, names[some]).tolist() == some.tolist()
    assert tasks.find_nodes(part.piece, np.array([[1, 1], [0, 999], [10**6, 1]])).size == 0
    assert tasks.find_nodes(part.piece, np.array([[0, 42]])).size == 0  # which no node of a tree of 40 points can have


@pytest.mark.slow
@pytest.mark.parametrize("scheme", SCHEMES, ids=["ward", "average"])
@pytest.mark.parametrize("routed_well", [True, False], ids=["near", "random"])
def test_the_tree_is_as_good_as_that_of_one_machine(scheme, routed_well):
    rng = np.random.default_rng(7)
    centres = 3 * rng.normal(size=(30, 6))
    y = rng.integers(0, 30, 4000)
    x = centres[y] + rng.normal(size=(4000, 6))
    part = np.argmin(((x[:, None] - x[None, :8]) ** 2).sum(-1), axis=1) if routed_well else rng.integers(0, 8, 4000)
    forest, runner = planted(x, part, scheme)
    assert forest.refine(runner).stopped_by == "stable"
    assert forest.scan(runner)[0] == 0
    whole = forest.whole(runner)
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
