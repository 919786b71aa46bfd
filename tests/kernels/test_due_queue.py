"""The queue of nodes that are due for a search, beside a plain list."""

from __future__ import annotations

import numpy as np
import pytest

import evertree as et
from evertree import kernels
from evertree.kernels.columns import N_LEVELS, NULL, UNLIMITED
from evertree.tree import statistics
from evertree.tree.invariants import check_search

queue = kernels.shared.due_queue


def random_tree(n: int = 30, seed: int = 0) -> et.Hierarchy:
    """A tree in which nothing is due, but no merge is in order either."""
    rng = np.random.default_rng(seed)
    h = et.Hierarchy.random(rng.normal(size=(n, 2)) * 10.0 ** rng.integers(-3, 4, (n, 1)), search_width=2)
    live = h.state.live
    live.work.due[:] = 0
    live.queue_flagged()
    return h


def listed(live, count: int | None = None) -> list[int]:
    """The nodes of the queue, the lowest levels first."""
    nodes = np.empty(live.n_due if count is None else count, np.int32)
    return nodes[: queue.list_lowest(live.tree, live.work, nodes)].tolist()


def order(live) -> tuple[list[int], list[int]]:
    """The whole queue as it is: nodes, and their levels."""
    nodes, levels = np.empty(live.n_due, np.int32), np.empty(live.n_due, np.int16)
    queue.list_queue(live.work, nodes, levels)
    return nodes.tolist(), levels.tolist()


@pytest.mark.parametrize("seed", range(5))
def test_like_a_plain_list(seed):
    rng = np.random.default_rng(seed)
    h = random_tree(seed=seed)
    live = h.state.live
    tree, work = live.tree, live.work
    model: dict[int, int] = {}  # levels at which nodes wait

    def level(u: int) -> int:
        return int(queue.level_of(tree, u))

    nodes = [u for u in live.nodes().tolist() if u != live.root]
    inner = [u for u in nodes if u % 2]
    for _ in range(300):
        u = int(rng.choice(nodes))
        match rng.integers(4):
            case 0 | 1:
                queue.note_due(tree, work, u)
                model[u] = level(u)
            case 2 if u in model:
                queue.clear_due(work, u)
                del model[u]
            case _:
                tree.height[rng.choice(inner)] = float(rng.choice([0.0, 1e-300, rng.exponential() * 10, 1e300]))
        check_search(live)
        assert set(model) == set(np.flatnonzero(work.due).tolist())
        count = int(rng.integers(8))
        some = listed(live, count)
        for v, at in zip(*order(live), strict=True):
            assert at >= model[v] or at == level(v)
            model[v] = at
        assert len(some) == min(count, len(model))
        assert [model[v] for v in some] == sorted(model.values())[: len(some)]
        assert all(model[v] >= level(v) for v in some)  # none whose parent has risen


@pytest.mark.parametrize("value", [0.0, 5e-324, 1e-310, 1e-150, 0.7, 1.0, 1.2, 1.3, 1e150, 1.7e308])
def test_levels_rise_with_heights(value):
    h = random_tree()
    tree = h.state.live.tree
    u = int(tree.left[h.root])
    heights = [0.0, value, value * 1.3, value * 2.0]
    levels = []
    with np.errstate(over="ignore"):
        for height in heights:
            tree.height[h.root] = height
            levels.append(int(queue.level_of(tree, u)))
    assert levels == sorted(levels)
    assert 0 <= levels[0] <= levels[-1] < N_LEVELS - 1
    assert value < 1e-300 or levels[1] < levels[2] < levels[3] or value > 1e300


def test_nodes_that_left_the_tree_are_not_searched():
    h = random_tree()
    live = h.state.live
    live.note_all_due()
    h.remove([3, 4])
    live = h.state.live
    gone = [u for u in np.flatnonzero(live.work.due).tolist() if live.tree.parent[u] < NULL]
    assert gone
    assert not set(listed(live, live.capacity * 2)) & set(gone)
    assert live.root not in listed(live, live.capacity * 2)
    h.validate()


def test_a_file_keeps_the_order(tmp_path):
    """So that a tree that is loaded is refined as this one would be."""
    h = random_tree()
    h.refine(moves=40)
    live = h.state.live
    assert live.n_due > 5
    for u in (7, 3, 11, 3):
        queue.note_due(live.tree, live.work, u)
    h.save(tmp_path / "tree.evertree")
    twin = et.load(tmp_path / "tree.evertree")
    assert order(twin.state.live) == order(live)
    twin.refine()
    h.refine()
    np.testing.assert_array_equal(twin.linkage_matrix(), h.linkage_matrix())


def test_loading_does_not_look_ahead(tmp_path):
    """A node whose parent has risen stays where it waits until its turn comes."""
    h = et.Hierarchy.random(np.random.default_rng(1).normal(size=(30, 2)), search_width=None)
    live = h.state.live
    live.homogenise()
    first = order(live)[0][0]
    assert live.n_pending == 0
    queue.clear_due(live.work, first)
    levels = live.tree.height[live.tree.parent[first]], live.tree.parent[first]
    live.tree.height[levels[1]] = 1e-300
    queue.note_due(live.tree, live.work, first)
    live.tree.height[levels[1]] = levels[0]
    h.save(tmp_path / "tree.evertree")
    assert order(live)[0][0] == first
    assert order(et.load(tmp_path / "tree.evertree").state.live) == order(live)


def test_a_check_that_pauses_changes_nothing():
    """When it pauses depends on the clock."""
    x = np.random.default_rng(0).normal(size=(40, 3))
    live = et.Hierarchy.random(x, "complete", metric="cityblock", search_width=4).state.live
    state, checks = live.tree.pairs.state, live.n_checks
    for _ in range(100):
        v = int(live.work.stack[live.n_pending - 1])
        live.tree.height[live.tree.parent[v]] *= 64.0  # its level is another one now
        before, n_pending = order(live), live.n_pending
        state["pause_at"][0] = state["looked_at"][0]
        kernels.shared.homogenise.homogenise(live.tree, live.work, live.tag, 1, UNLIMITED)
        if live.n_checks == checks:
            break
        checks = live.n_checks
    assert live.n_checks == checks
    assert live.n_pending == n_pending
    assert order(live) == before


def test_a_copy_keeps_the_order():
    h = random_tree()
    h.refine(moves=40)
    assert order(h.copy().state.live) == order(h.state.live)


def test_it_follows_new_numbers(monkeypatch):
    h = random_tree()
    h.refine(moves=40)
    live = h.state.live
    births = [live.tree.birth[u] for u in order(live)[0]]
    monkeypatch.setattr(statistics, "FEWEST_BYTES_TO_REORDER", 1)
    place = live.reorder(-1.0)
    assert place is not None
    assert np.any(place != np.arange(place.size))
    check_search(live)
    assert [live.tree.birth[u] for u in order(live)[0]] == births


def test_low_merges_are_refined_first():
    """So a node is searched about once; in memory order it is several times."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 4))
    h = et.Hierarchy(search_width=4)
    h.insert(x)
    report = h.refine()
    assert report.stable
    assert report.grafts < 400
