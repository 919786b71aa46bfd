"""Several threads: the same tree for every number of them, as good as one thread's, and as safe."""

from __future__ import annotations

import os
import pickle
import signal
import threading
import time

import numpy as np
import pytest

import evertree as et
from evertree import kernels
from evertree.errors import ParameterError
from evertree.kernels.columns import BY_DESCENT, DUE, INSIDE, NULL, QUEUED
from evertree.tree import refine, statistics
from evertree.tree.parallel import insert, rounds, treelets
from helpers import WITH_STATISTICS, fingerprint, hard_data, params_of

pytestmark = pytest.mark.usefixtures("searched")


@pytest.fixture(autouse=True)
def small_is_large(monkeypatch):
    """Threads work on trees of some hundred points."""
    monkeypatch.setattr(rounds, "FEWEST_POINTS", 30)
    monkeypatch.setattr(rounds, "FEWEST_NUMBERS", 0)
    monkeypatch.setattr(refine, "FEW", 0)
    monkeypatch.setattr(insert, "_SHARE", 1 / 8)
    monkeypatch.setattr(insert, "_FINE_SHARE", 1 / 20)
    monkeypatch.setattr(insert, "PART", 16)
    monkeypatch.setattr(treelets, "FEWEST_IN_PIECE", 2)
    monkeypatch.setattr(rounds, "_SMALLEST", 12)
    monkeypatch.setattr(rounds, "_MOST_ACROSS", 1.0)
    monkeypatch.setattr(rounds, "_FEWEST_PER_ROUND", 7)
    monkeypatch.setattr(rounds, "_MOST_PER_ROUND", 7)


def blobs(n: int, n_columns: int = 3, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(6, n_columns))[rng.integers(6, size=n)] * 4 + rng.normal(size=(n, n_columns))


def data() -> dict[str, np.ndarray]:
    """Random points, and those of `hard_data` again and again, so that there are enough."""
    hard = {name: np.concatenate([x, x[::-1], x[::2] * 0.5, x]) for name, x in hard_data().items() if len(x) > 2}
    return {"blobs": blobs(300), **hard}


def tree_of(h: et.Hierarchy) -> list:
    """The tree of `h`, to the last bit and to the numbers of its nodes, and what searches know."""
    live, nodes = h.state.live, h.state.live.nodes()
    columns = [
        getattr(live.tree, name)[nodes].tolist() for name in ("left", "right", "size", "mean", "height", "radius")
    ]
    return [nodes.tolist(), columns, live.search.near[: len(h)].tolist(), live.work.state.tolist(), h.keys()]


def is_homogeneous_if_it_must_be(h: et.Hierarchy) -> bool:
    return h.linkage == "ward" or h.is_homogeneous()


@pytest.mark.slow
@pytest.mark.parametrize("name", data())
@pytest.mark.parametrize(("linkage", "metric"), WITH_STATISTICS)
def test_the_tree_is_the_same_for_every_number_of_threads(linkage, metric, name):
    x = data()[name]
    if metric == "cosine":
        x = x[np.abs(x).max(axis=1) > 0]
    if metric == "mahalanobis":
        x = x / 4  # so that whitened values stay below the limit
    trees = []
    for n_jobs in (None, 1, 2, 3):
        h = et.Hierarchy(linkage, metric, metric_params=params_of(metric, x.shape[1]), n_jobs=n_jobs)
        h.insert(x[: len(x) // 2])
        h.insert(x[len(x) // 2 :])
        h.validate()
        assert h.is_monotone()
        assert is_homogeneous_if_it_must_be(h)
        report = h.refine()
        assert report.stopped_by in ("stable", "guard")
        h.validate()
        assert h.is_monotone()
        assert is_homogeneous_if_it_must_be(h)
        trees.append(tree_of(h))
    assert trees[0] == trees[1] == trees[2] == trees[3]


@pytest.mark.slow
@pytest.mark.parametrize(("linkage", "metric"), WITH_STATISTICS)
def test_an_exhaustive_refinement_by_threads_ends_at_a_batch_tree(linkage, metric):
    x = blobs(150)
    h = et.Hierarchy(linkage, metric, metric_params=params_of(metric, 3), search_width=None, n_jobs=2)
    h.insert(x)
    assert h.refine().stable
    h.certify()
    batch = et.agglomerate(x, linkage, metric, metric_params=params_of(metric, 3))
    np.testing.assert_allclose(h.linkage_matrix()[:, 2], batch.linkage_matrix()[:, 2])


@pytest.mark.slow
@pytest.mark.parametrize("goal", ["homogeneous", "stable"])
@pytest.mark.parametrize("linkage", ["ward", "average"])
def test_a_random_tree_is_refined_in_treelets(linkage, goal, monkeypatch):
    n_treelets = []
    put_back = treelets.Treelet.put_back
    monkeypatch.setattr(
        treelets.Treelet, "put_back", lambda self, *args: (n_treelets.append(self.n_points), put_back(self, *args))
    )
    trees = []
    for n_jobs in (1, 2):
        h = et.Hierarchy.random(blobs(400), linkage, "sqeuclidean", goal=goal, n_jobs=n_jobs)
        report = h.refine()
        assert report.stopped_by == goal
        assert report.moves > 400
        h.validate()
        assert h.is_monotone()
        if goal == "homogeneous":
            assert h.is_homogeneous()
        trees.append(tree_of(h))
    assert trees[0] == trees[1]
    assert len(n_treelets) > 10


@pytest.mark.slow
def test_treelets_have_the_width_of_the_tree(monkeypatch):
    """A small treelet of a large tree is not searched exhaustively."""
    monkeypatch.undo()
    monkeypatch.setattr(statistics, "MOST_EXACT", 100)
    h = et.Hierarchy(n_jobs=2)
    h.insert(blobs(400))
    live = h.state.live
    assert live.width == 4
    nodes = live.nodes()
    inner = nodes[nodes % 2 == 1][:1]
    bottoms = np.concatenate([live.tree.left[inner], live.tree.right[inner]])
    place = np.full(live.tree.parent.size, NULL, np.int32)
    treelet = treelets.Treelet(live, bottoms, inner, place)
    assert treelet.search.state["reach"][0] == live.search.state["reach"][0] == BY_DESCENT


def test_the_quality_is_that_of_one_thread():
    x = blobs(1000, 8)
    alone, together = et.Hierarchy(), et.Hierarchy(n_jobs=2)
    for h in (alone, together):
        h.insert(x)
        h.refine()
    for measure in (et.quality.tree_value, et.quality.total_linkage):
        assert measure(together) == pytest.approx(measure(alone), rel=0.02)


@pytest.mark.parametrize("linkage", ["ward", "average"])
def test_threads_with_the_compiler_off_too(linkage):
    trees = []
    for n_jobs in (1, 2):
        h = et.Hierarchy(linkage, "sqeuclidean", n_jobs=n_jobs)
        h.insert(blobs(90))
        assert h.refine().stable
        h.validate()
        trees.append(tree_of(h))
    assert trees[0] == trees[1]


def test_pieces_are_disjoint_subtrees_and_what_is_above_them():
    h = et.Hierarchy.random(blobs(200), seed=3)
    live = h.state.live
    for most in (1, 5, 30, 200):
        pieces = treelets.cut(live, most, 1)
        seen = []
        for k, root in enumerate(pieces.roots):
            leaves, inner = pieces.piece(k)
            assert sorted([*leaves, *inner]) == sorted(live.nodes(int(root)))
            assert leaves.size <= most
            seen += [*leaves, *inner]
        bottoms, above = pieces.above()
        assert set(pieces.roots) <= set(bottoms)
        assert set(bottoms) <= set(seen)
        assert sorted([*seen, *above]) == sorted(live.nodes())
        numbers = pieces.numbers_of(live.nodes())
        for u, number in zip(live.nodes(), numbers, strict=True):
            assert (u in above) == (number == -1)
            assert number == -1 or u in live.nodes(int(pieces.roots[number]))


def test_small_subtrees_are_in_no_piece():
    live = et.Hierarchy.random(blobs(200), seed=3).state.live
    pieces = treelets.cut(live, 20, 5)
    assert pieces.n_leaves.size > 0
    assert pieces.n_leaves.min() >= 5
    bottoms, above = pieces.above()
    inside = [u for k in range(pieces.stops.size) for part in pieces.piece(k) for u in part]
    assert sorted({*inside, *bottoms, *above}) == sorted(live.nodes())


@pytest.mark.parametrize("linkage", ["ward", "average"])
def test_a_treelet_that_is_put_back_as_it_was_changes_nothing(linkage):
    h = et.Hierarchy(linkage, "sqeuclidean")
    h.insert(blobs(200))
    h.refine()
    live = h.state.live
    before = [
        getattr(live.tree, name).copy() for name in ("parent", "left", "right", "size", "mean", "height", "birth")
    ]
    pieces = treelets.cut(live, 40)
    place = np.empty(live.tree.parent.size, np.int32)
    out = [treelets.Treelet(live, *pieces.piece(k), place) for k in range(pieces.stops.size)]
    out.append(treelets.Treelet(live, *pieces.above(), np.empty_like(place)))
    for treelet in out:
        treelet.put_back(live)
    live.recount()
    after = [getattr(live.tree, name) for name in ("parent", "left", "right", "size", "mean", "height", "birth")]
    for a, b in zip(before, after, strict=True):
        np.testing.assert_array_equal(a, b)
    assert live.n_pending == live.n_due == 0


@pytest.mark.slow
@pytest.mark.parametrize("linkage", ["ward", "average"])
@pytest.mark.parametrize("most", [6, 20, 50])
def test_treelets_one_after_the_other_make_any_tree_homogeneous(linkage, most):
    """Cuts alternate; nothing but treelets is refined, and at the end a full scan finds nothing."""
    h = et.Hierarchy.random(blobs(200), linkage, "sqeuclidean", goal="homogeneous", seed=1)
    live = h.state.live
    place = np.empty(live.tree.parent.size, np.int32)
    n_rounds = 0
    while live.n_pending:
        n_rounds += 1
        assert n_rounds < 200
        cut = treelets.cut(live, most, 2)
        pieces = {
            1: [cut.piece(k) for k in range(cut.stops.size)],
            2: [treelets.cut(live, most // 3, 2).above()],  # the roots of most pieces are in it
            0: [treelets.cut(live, most, most // 2).above()],  # and here those that hang far up
        }[n_rounds % 3]
        for bottoms, inner in pieces:
            treelet = treelets.Treelet(live, bottoms, inner, place)
            treelet.refine(False, lambda: False)
            treelet.put_back(live)
        live.recount()
        h.validate()
    assert n_rounds > 2
    assert h.is_homogeneous()


def searched_piece(linkage: str, most: int = 60) -> tuple[et.Hierarchy, treelets.Cut]:
    """A tree that is not stable, all of its nodes searched within their pieces; and the pieces."""
    h = et.Hierarchy(linkage, "sqeuclidean", search_width=2)
    h.insert(blobs(150, 4))
    live = h.state.live
    live.work.due[live.nodes()] = INSIDE
    live.recount()
    return h, treelets.cut(live, most, 2)


@pytest.mark.parametrize("linkage", ["ward", "average"])
def test_nodes_in_a_blocking_pair_with_a_node_outside_their_piece_are_due(linkage):
    """In small trees such a search is exhaustive."""
    h, cut = searched_piece(linkage)
    live, tree = h.state.live, h.state.live.tree
    number = np.full(tree.parent.size, NULL, np.int32)
    for k in range(cut.stops.size):
        number[np.concatenate(cut.piece(k))] = k
    _, search = live.scratch()
    n_due = 0
    for k in range(cut.stops.size):
        nodes = np.concatenate(cut.piece(k))
        kernels.shared.rounds.search_outside(tree, live.work, search, live.tag, nodes, number, int(cut.roots[k]))
        for u in nodes.tolist():
            p, has_partner = tree.parent[u], False
            for q in live.nodes().tolist():
                if number[q] == k or q == live.root or tree.parent[q] == p or set(h.members(q)) & set(h.members(u)):
                    continue
                z = naive_linkage(tree, linkage, u, q)
                highest = max(tree.height[u], tree.height[q])
                has_partner |= highest <= z < min(tree.height[p], tree.height[tree.parent[q]]) * (1 - 1e-9)
            assert live.work.due[u] == (DUE if has_partner else 0)
            n_due += has_partner
    assert n_due > 0


def naive_linkage(tree, linkage: str, u: int, q: int) -> float:
    """ζ from sizes, means and variances, as in the paper."""
    sq = np.sum((tree.mean[u] - tree.mean[q]) ** 2)
    if linkage == "ward":
        return tree.size[u] * tree.size[q] / (tree.size[u] + tree.size[q]) * sq
    return sq + tree.variance[u] + tree.variance[q]


def test_the_neighbours_in_the_same_piece_are_not_followed():
    """They have been: a search of other pieces asks the others only."""
    h, cut = searched_piece("ward", 200)
    live = h.state.live
    number = np.zeros(live.tree.parent.size, np.int32)  # all in one piece
    _, search = live.scratch()
    nodes = live.nodes()[:-1]
    kernels.shared.rounds.search_outside(live.tree, live.work, search, live.tag, nodes, number, live.root)
    assert not live.work.due[nodes].any()
    assert cut.stops.size == 1


def test_nodes_that_were_not_searched_beyond_their_piece_stay_due(monkeypatch):
    """Ctrl-C, or a deadline, may end a refinement there."""
    found = []

    def stop(self, pieces, *_):
        if pieces:
            found.append(np.count_nonzero(self._live.work.due == INSIDE))
            raise KeyboardInterrupt

    h = et.Hierarchy.random(blobs(400), "ward")
    with monkeypatch.context() as patched:
        patched.setattr(rounds.Rounds, "_search_outside", stop)
        with pytest.raises(KeyboardInterrupt):
            h.refine()
    h.validate()
    assert not np.any(h.state.live.work.due == INSIDE)
    assert h.state.live.n_due >= found[0] > 0
    assert h.refine().stable


def test_a_single_edit_of_a_large_tree_needs_no_threads(monkeypatch):
    monkeypatch.setattr(refine, "FEW", 300)
    h = et.Hierarchy("ward", search_width=4, n_jobs=2)
    h.insert(blobs(200, 4))
    h.refine()
    monkeypatch.setattr(refine, "Rounds", None)
    h.insert(blobs(1, 4, seed=1))
    assert h.refine().stable
    h.validate()


@pytest.mark.parametrize("few", [20, 60, 150])
def test_the_tree_does_not_depend_on_the_clock(monkeypatch, few):
    """Where steps end does; from rounds it goes to steps once, and never back."""
    monkeypatch.setattr(refine, "FEW", few)
    trees = []
    for seconds in (0.0, 1e9):
        monkeypatch.setattr(refine, "_SLICE", seconds)
        h = et.Hierarchy("ward", search_width=2)
        h.insert(blobs(150, 4))
        h.insert(blobs(few // 10, 4, seed=1))
        h.refine()
        trees.append(tree_of(h)[:2])
    assert trees[0] == trees[1]


def test_a_round_that_is_interrupted_loses_nothing(monkeypatch):
    h = et.Hierarchy.random(blobs(300, 4), "ward", search_width=4)
    graft_found = kernels.shared.rounds.graft_found

    def interrupted(*columns):
        graft_found(*columns)
        if columns[1].state["due"][0]:
            raise KeyboardInterrupt

    monkeypatch.setattr(kernels.shared.rounds, "graft_found", interrupted)
    with pytest.raises(KeyboardInterrupt):
        h.refine()
    h.validate()
    monkeypatch.setattr(kernels.shared.rounds, "graft_found", graft_found)
    assert h.refine().stable


def test_pieces_that_share_neighbours_are_not_refined_on_their_own(monkeypatch):
    """Points of one Gaussian in many columns have neighbours everywhere."""
    monkeypatch.setattr(rounds, "_MOST_ACROSS", 1 / 8)
    monkeypatch.setattr(rounds, "_SMALLEST", 100)
    monkeypatch.setattr(rounds, "_LARGEST_SHARE", 1 / 3)
    n_treelets = []
    refine_treelet = treelets.Treelet.refine
    monkeypatch.setattr(
        treelets.Treelet, "refine", lambda self, *args: (n_treelets.append(1), refine_treelet(self, *args))
    )
    rng = np.random.default_rng(0)
    for x, has_treelets in ((rng.normal(size=(300, 10)), False), (blobs(300) * 20, True)):
        n_treelets.clear()
        h = et.Hierarchy("ward", search_width=4)
        h.insert(x)
        assert h.refine().stable
        h.validate()
        assert bool(n_treelets) == has_treelets


def test_what_is_left_by_rounds_is_listed_for_steps(monkeypatch):
    h = et.Hierarchy.random(blobs(300, 4), "ward", search_width=4)
    monkeypatch.setattr(refine, "FEW", 100)
    listed = []
    before = type(h.state.live).list_recent

    def list_recent(live):
        before(live)
        h.validate()
        listed.append(int(live.search.recent[0]))

    monkeypatch.setattr(type(h.state.live), "list_recent", list_recent)
    assert h.refine().stable
    h.validate()
    assert listed
    assert min(listed) >= 0


def test_a_blocking_pair_in_two_pieces_is_found():
    """The two halves of a tree each hold one of two points that are near to each other."""
    rng = np.random.default_rng(0)
    left, right = rng.normal(size=(40, 2)), rng.normal(size=(40, 2)) + 50
    x = np.concatenate([left, [[25.0, 0.0]], right, [[25.001, 0.0]]])
    n = len(x)
    rows, last = [], {}
    for name, members in (("left", range(41)), ("right", range(41, n))):
        top = members[0]
        for i in members[1:]:
            rows.append([top, i, 0, 0])
            top = n + len(rows) - 1
        last[name] = top
    rows.append([last["left"], last["right"], 0, 0])
    h = et.Hierarchy.from_linkage(np.array(rows, float), x, n_jobs=2)
    h.refine()
    assert h.sibling(h.leaf(40)) == h.leaf(n - 1)


@pytest.mark.slow
def test_weights_and_removals_and_updates():
    x, weights = blobs(300), np.random.default_rng(1).uniform(0.2, 5, 300)
    trees = []
    for n_jobs in (1, 2):
        h = et.Hierarchy(n_jobs=n_jobs)
        h.insert(x, sample_weight=weights)
        h.remove(range(50, 120))
        h.update(range(50), x[:50] + 1)
        h.insert(x[50:120], keys=range(1000, 1070))
        h.refine()
        h.validate()
        trees.append(tree_of(h))
    assert trees[0] == trees[1]


@pytest.mark.slow
def test_a_refinement_that_runs_out_of_time_goes_on_later():
    h = et.Hierarchy.random(blobs(2000, 8), n_jobs=2)
    n_calls = 0
    while not (report := h.refine(seconds=0.1)).stable:
        assert report.stopped_by == "seconds"
        n_calls += 1
        assert n_calls < 1000
        if n_calls < 5:
            h.validate()
    assert n_calls > 0
    h.validate()
    assert h.is_monotone()


@pytest.mark.slow
def test_a_tree_is_searched_in_pieces_once_however_short_the_calls_are(monkeypatch):
    """All that is due in pieces stays due in the whole tree: one who does it again at each call never gets on."""
    refine_pieces, n_pending = rounds.Rounds._refine_pieces, []

    def note(self, *args):
        n_pending.append(self._live.n_pending)
        refine_pieces(self, *args)

    monkeypatch.setattr(rounds.Rounds, "_refine_pieces", note)
    h = et.Hierarchy(n_jobs=2)
    for part in (blobs(1000), blobs(900, seed=1)):
        h.insert(part)
        n_pending.clear()
        n_calls = 0
        while not h.refine(seconds=0.01).stable:
            n_calls += 1
            assert n_calls < 2000
        assert n_calls > 1
        assert n_pending.count(0) == 1


@pytest.mark.slow
def test_progress_may_read_and_copy_but_not_edit(monkeypatch):
    monkeypatch.setattr(refine, "_PROGRESS_EVERY", 0.0)
    h = et.Hierarchy.random(blobs(600), n_jobs=2)
    n_calls = {"in pieces": 0, "in rounds": 0}

    def look(report):
        if report.stopped_by is not None:
            return
        where = "in pieces" if report.pending else "in rounds"
        n_calls[where] += 1
        if n_calls[where] > 10:
            return
        twin = h.copy()
        twin.validate()
        assert len(h.cut(n_clusters=3)) == 600
        for edit in (lambda: h.insert([[0.0] * 3]), lambda: h.remove([0]), h.refine, lambda: h.keep(last=5)):
            with pytest.raises(ParameterError, match="progress callback"):
                edit()
        if sum(n_calls.values()) == 1:
            assert twin.refine(until="homogeneous").homogeneous  # no check was forgotten
            assert twin.is_homogeneous()

    assert h.refine(progress=look).stable
    assert all(n_calls.values())
    h.validate()
    assert len(h) == 600


@pytest.mark.slow
def test_an_error_of_progress_leaves_a_valid_tree(monkeypatch):
    monkeypatch.setattr(refine, "_PROGRESS_EVERY", 0.0)
    h = et.Hierarchy.random(blobs(600), n_jobs=2)

    refine_treelet, n_stopped = treelets.Treelet.refine, []

    def slow(self, to_stable, should_stop):
        for _ in range(1000):
            if should_stop():
                n_stopped.append(1)
                break
            time.sleep(0.01)
        refine_treelet(self, to_stable, should_stop)

    def fail(_):
        raise RuntimeError("mine")

    monkeypatch.setattr(treelets.Treelet, "refine", slow)
    with pytest.raises(RuntimeError, match="mine"):
        h.refine(progress=fail)
    assert n_stopped  # treelets that are out do not go on to their end
    monkeypatch.undo()
    h.validate()
    assert h.refine().stable
    h.insert(blobs(5))  # which is not refused any more


def ctrl_c_in(seconds: float) -> threading.Timer:
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    return timer


@pytest.mark.slow
def test_ctrl_c_during_a_refinement_leaves_a_valid_tree(monkeypatch):
    h = et.Hierarchy.random(blobs(600), n_jobs=2)
    refine_treelet = treelets.Treelet.refine

    def slow(self, to_stable, should_stop):
        while not should_stop():
            time.sleep(0.01)
        refine_treelet(self, to_stable, should_stop)

    monkeypatch.setattr(treelets.Treelet, "refine", slow)
    timer = ctrl_c_in(0.3)
    with pytest.raises(KeyboardInterrupt):
        h.refine()
    timer.join()
    monkeypatch.undo()
    h.validate()
    assert h.refine().stable
    h.validate()


@pytest.mark.slow
def test_ctrl_c_during_an_insertion_undoes_it(monkeypatch):
    monkeypatch.setattr("evertree.edits.UNDOABLE", 100)
    h = et.Hierarchy(n_jobs=2)
    h.insert(blobs(50))
    before = fingerprint(h)
    insert, calls = treelets.Treelet.insert, []

    def press(self, leaves):
        calls.append(leaves.size)
        insert(self, leaves)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.2)

    monkeypatch.setattr(treelets.Treelet, "insert", press)
    with pytest.raises(KeyboardInterrupt):
        h.insert(blobs(400, seed=1))
    assert len(calls) <= 4  # the other pieces are not waited for
    assert fingerprint(h) == before
    monkeypatch.undo()
    h.insert(blobs(400, seed=1))
    h.validate()


def out_of_memory_at(number, monkeypatch):
    """Let the treelet of an insertion with this number find no memory."""
    init, made = treelets.Treelet.__init__, []

    def fail(self, *args):
        made.append(1)
        if len(made) == number:
            raise MemoryError
        init(self, *args)

    monkeypatch.setattr(treelets.Treelet, "__init__", fail)
    return made


def test_an_insertion_for_which_there_is_no_memory_changes_nothing(monkeypatch):
    h = et.Hierarchy(n_jobs=2)
    h.insert(blobs(60))
    before = h.linkage_matrix(), h.keys()
    out_of_memory_at(1, monkeypatch)
    with pytest.raises(MemoryError):
        h.insert(blobs(30, seed=1))
    monkeypatch.undo()
    h.validate()
    np.testing.assert_array_equal(h.linkage_matrix(), before[0])
    assert h.keys() == before[1]
    h.insert(blobs(30, seed=1))
    h.refine()
    h.validate()
    assert len(h) == 90


def test_a_piece_for_which_there_is_no_memory_takes_no_points_in(monkeypatch):
    h = et.Hierarchy(n_jobs=2)
    h.insert(blobs(60))
    made = out_of_memory_at(3, monkeypatch)
    h.insert(blobs(30, seed=1))
    assert len(made) >= 3
    h.validate()
    assert len(h) == len(h.linkage_matrix()) + 1 == 90
    assert h.is_monotone()
    h.refine()
    h.validate()


def test_nodes_that_were_given_back_are_not_due():
    """Their flags would make the count of nodes that are due wrong, and a refinement would never end, or too soon."""
    x = blobs(120)
    h = et.Hierarchy(n_jobs=2)
    h.insert(x)
    h.remove(range(10, 30))
    live = h.state.live
    live.recount()
    assert live.n_due == np.count_nonzero(live.work.due[: live.n_used]) > 0
    assert h.refine(seconds=60).stable
    assert live.n_due == np.count_nonzero(live.work.due[: live.n_used]) == 0


@pytest.mark.parametrize("linkage", ["ward", "average"])
def test_a_partner_that_is_not_to_be_had_is_not_searched_for_again(linkage):
    """Else a round would find it again and again."""
    h = et.Hierarchy(linkage, "sqeuclidean", n_jobs=2)
    h.insert(blobs(60))
    h.refine()
    live = h.state.live
    leaf = h.leaf(0)
    nodes, partners = np.array([leaf], np.int32), np.array([h.parent(h.parent(leaf))], np.int32)
    kernels.shared.due_queue.note_due(live.tree, live.work, leaf)
    kernels.shared.rounds.graft_found(live.tree, live.work, live.search, live.tag, nodes, partners)
    assert live.n_due == 0
    assert live.n_pending == 0


@pytest.mark.parametrize("linkage", ["ward", "average"])
def test_a_graft_that_is_no_longer_wanted_is_not_made(linkage):
    """Of two that found the same partner, the first may have it."""
    h = et.Hierarchy(linkage, "sqeuclidean", n_jobs=2)
    h.insert([[0.0], [1.0], [10.0], [11.0], [30.0]])
    h.refine()
    live, before = h.state.live, h.linkage_matrix()
    nodes, partners = (np.array([h.leaf(key) for key in keys], np.int32) for keys in ((1, 3), (2, 0)))
    live.note_all_due()
    kernels.shared.rounds.graft_found(live.tree, live.work, live.search, live.tag, nodes, partners)
    assert live.n_grafts == live.n_moves == 0
    np.testing.assert_array_equal(h.linkage_matrix(), before)


def test_the_check_at_the_root_of_a_treelet_reads_what_is_below_it():
    """Whether Ward makes a move depends on the height of the child that it joins with another node."""
    h = et.Hierarchy(n_jobs=2)
    h.insert(blobs(100))
    h.refine()
    live = h.state.live
    pieces = treelets.cut(live, 40)
    number = int(np.argmax(pieces.n_leaves))
    treelet = treelets.Treelet(live, *pieces.piece(number), np.empty(live.tree.parent.size, np.int32))
    child = next(u for u in (treelet.tree.left[treelet.root], treelet.tree.right[treelet.root]) if u % 2)
    treelet.tree.height[child] *= 0.5
    treelet.put_back(live)
    assert live.work.mark[pieces.roots[number]] & QUEUED


@pytest.mark.parametrize("linkage", ["ward", "average"])
def test_a_tree_for_which_homogeneous_is_enough_can_become_stable(linkage):
    x = blobs(120)
    trees = []
    for n_jobs in (1, 2):
        h = et.Hierarchy(linkage, "sqeuclidean", goal="homogeneous", n_jobs=n_jobs)
        h.insert(x)
        assert h.refine(until="stable").stable
        h.validate()
        assert h.is_monotone()
        trees.append(tree_of(h))
    assert trees[0] == trees[1]


def test_a_guard_that_acted_in_a_treelet_is_known():
    h = et.Hierarchy(n_jobs=2)
    h.insert(blobs(60))
    live = h.state.live
    pieces = treelets.cut(live, 30)
    treelet = treelets.Treelet(live, *pieces.piece(0), np.empty(live.tree.parent.size, np.int32))
    treelet.work.state["guarded"][0] = 1
    treelet.put_back(live)
    for _ in range(2):
        treelet.count(live)
    assert live.n_guarded == 1


def test_n_jobs_is_an_option_and_can_be_changed(tmp_path):
    assert et.Hierarchy().n_jobs is None
    h = et.Hierarchy(n_jobs=2)
    h.insert(blobs(20))
    assert h.n_jobs == h.copy().n_jobs == pickle.loads(pickle.dumps(h)).n_jobs == 2
    h.save(tmp_path / "tree.evertree")
    assert et.load(tmp_path / "tree.evertree").n_jobs is None
    h.n_jobs = -1
    assert h.n_jobs >= 1
    h.n_jobs = -1000
    assert h.n_jobs == 1
    for wrong in (0, 1.5, "2", True):
        with pytest.raises(ParameterError, match="n_jobs must be"):
            et.Hierarchy(n_jobs=wrong)
        with pytest.raises(ParameterError, match="n_jobs must be"):
            h.n_jobs = wrong


def test_a_durable_tree_is_edited_by_one_thread(tmp_path):
    h = et.Hierarchy(n_jobs=2)
    h.insert(blobs(100))
    with et.open(tmp_path / "tree.db", start=h) as durable:
        assert durable.n_jobs is None
        with pytest.raises(ParameterError, match="start="):
            durable.n_jobs = 2
        durable.n_jobs = None
        durable.insert(blobs(100, seed=1))
        tree = durable.linkage_matrix()
    with et.open(tmp_path / "tree.db") as again:
        np.testing.assert_array_equal(again.linkage_matrix(), tree)


@pytest.mark.slow
def test_the_estimator_has_threads_too():
    x = blobs(200)
    labels = [et.AnytimeClustering(n_clusters=6, n_jobs=n_jobs).fit(x).labels_ for n_jobs in (1, 2)]
    np.testing.assert_array_equal(*labels)


def test_to_warm_up_changes_nothing(monkeypatch):
    monkeypatch.setattr(rounds, "FEWEST_POINTS", 30)
    h = et.Hierarchy.random(blobs(60), n_jobs=2)
    h.refine(moves=20)
    h.state.live.is_warm = False
    before = fingerprint(h), h.state.live.work.due.tolist()
    rounds.warm_up(h.state.live)
    assert h.state.live.is_warm
    assert (fingerprint(h), h.state.live.work.due.tolist()) == before
