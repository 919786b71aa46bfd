"""A hierarchy for other tools and for the eye: the methods, and round trips through them."""

from __future__ import annotations

import json

import numpy as np
import pandas
import pytest
from matplotlib.figure import Figure
from scipy.cluster.hierarchy import cophenet

import evertree as et
import naive
from evertree.errors import DataError, InvalidKeyError, ParameterError
from helpers import nested


@pytest.fixture
def h(rng):
    h = et.Hierarchy()
    h.insert(rng.normal(size=(30, 2)), keys=[f"p{i}" for i in range(30)])
    h.remove(["p3", "p4"])
    h.refine()
    return h


def test_newick_and_back(h, rng, tmp_path):
    text = h.to_newick(tmp_path / "tree.nwk")
    assert (tmp_path / "tree.nwk").read_text() == text + "\n"
    order = rng.permutation(len(h))
    keys = [h.keys()[i] for i in order]
    again = et.Hierarchy.from_newick(text, h.points()[order], keys=keys)
    assert again.n_moves == 0
    again.validate()
    clusters = {frozenset(again.members(u)) for u in again.nodes().tolist()}
    assert clusters == {frozenset(h.members(u)) for u in h.nodes().tolist()}
    np.testing.assert_allclose(again.linkage_matrix()[:, 2], h.linkage_matrix()[:, 2])
    assert again.refine().moves == 0


def test_newick_without_keys_takes_the_labels():
    h = et.Hierarchy.from_newick("((a,b),(c,d));", [[0.0], [1.0], [2.0], [3.0]], "single", seed=3)
    assert h.keys() == ["a", "b", "c", "d"]
    assert naive.clusters(nested(h)) == naive.clusters(((0, 1), (2, 3)))
    assert (h.linkage, h.seed) == ("single", 3)
    frame = pandas.DataFrame({"name": ["b", "a"], "x": [1.0, 0.0]})
    assert et.Hierarchy.from_newick("\ufeff(a,b);", frame, keys="name").keys() == ["b", "a"]
    assert len(et.Hierarchy.from_newick(";", np.empty((0, 1)))) == 0


def test_a_text_that_cannot_be_written_leaves_no_file(tmp_path):
    h = et.Hierarchy()
    h.insert([[0.0]], keys=["\ud800"])
    with pytest.raises(UnicodeEncodeError):
        h.to_newick(tmp_path / "tree.nwk")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "options", "error", "message"),
    [
        ("((a,b),c);", {"keys": ["a", "b", "d"]}, InvalidKeyError, "without a leaf: 'd'; without a key: 'c'"),
        ("((1,2),3);", {"keys": [1, 2, "2"]}, InvalidKeyError, "each once"),
        ("(a,b,c);", {}, DataError, "resolve=True"),
        ("(a,b", {}, DataError, "not a Newick tree"),
        ("(a,b);", {}, DataError, "X must have a row for each of the 2 leaves of the text; it has 3"),
    ],
)
def test_bad_newick(text, options, error, message):
    with pytest.raises(error, match=message):
        et.Hierarchy.from_newick(text, [[0.0], [1.0], [2.0]], **options)
    assert len(et.Hierarchy.from_newick("(a,b,c);", [[0.0], [1.0], [2.0]], resolve=True)) == 3


def test_json(h, tmp_path):
    root = json.loads(h.to_json(tmp_path / "tree.json"))
    assert json.loads((tmp_path / "tree.json").read_text()) == root
    assert root["size"] == len(h)
    assert root["height"] == pytest.approx(h.height(h.root))
    waiting, keys = [root], []
    while waiting:
        node = waiting.pop()
        waiting += node.get("children", [])
        keys += [node["key"]] if "key" in node else []
    assert sorted(keys) == sorted(h.keys())


def test_networkx(h):
    nx = pytest.importorskip("networkx")
    graph = h.to_networkx()
    assert nx.is_arborescence(graph)
    key_of = nx.get_node_attributes(graph, "key")
    assert [key_of[i] for i in range(len(h))] == h.keys()
    root = next(u for u in graph if graph.in_degree(u) == 0)
    meeting = dict(nx.all_pairs_lowest_common_ancestor(graph, pairs=[(0, 5), (1, 9)]))
    upper = np.zeros((len(h), len(h)))
    upper[np.triu_indices(len(h), 1)] = cophenet(h.linkage_matrix())
    for (i, j), u in meeting.items():
        assert graph.nodes[u]["height"] == pytest.approx(upper[i, j])
    assert graph.nodes[root]["size"] == len(h)


def test_frame(h):
    pytest.importorskip("pandas")
    frame = h.to_frame()
    assert len(frame) == 2 * len(h) - 1
    assert frame["key"].tolist()[: len(h)] == h.keys()
    np.testing.assert_array_equal(frame["height"][len(h) :], h.linkage_matrix()[:, 2])


def test_plot(h):
    ax = h.plot(h.partition(n_clusters=3), n_shown=None, ax=Figure().subplots())
    assert {text.get_text() for text in ax.get_xticklabels()} == set(h.keys())
    with_labels = h.plot(labels=h.cut(n_clusters=3), n_shown=None, ax=Figure().subplots())
    np.testing.assert_array_equal(ax.collections[0].get_colors(), with_labels.collections[0].get_colors())
    assert len(np.unique(ax.collections[0].get_colors(), axis=0)) == 4  # three clusters, and grey above them
    old = h.partition(n_clusters=3)
    h.remove(["p0"])
    with pytest.raises(ParameterError, match="partition must be of the points that are live now"):
        h.plot(old)


def test_a_large_tree_is_truncated(rng):
    h = et.Hierarchy()
    h.insert(rng.normal(size=(400, 2)))
    texts = [text.get_text() for text in h.plot(ax=Figure().subplots()).get_xticklabels()]
    assert len(texts) == 50
    assert sum(int(text.strip("()")) if text.startswith("(") else 1 for text in texts) == 400


def test_history_of_a_refinement(rng):
    h = et.Hierarchy.random(rng.normal(size=(200, 2)))
    report = h.refine()
    seconds, quality, made = zip(*report.history, strict=True)
    assert seconds[0] == pytest.approx(0, abs=0.01)
    assert list(seconds) == sorted(seconds)
    assert (quality[0], quality[-1], made[0], made[-1]) == (None, 1.0, 0, report.moves + report.grafts)
    assert seconds[-1] == report.seconds
    assert "history" not in repr(report)


@pytest.mark.parametrize("n", [0, 1, 2])
def test_small_trees(n):
    h = et.Hierarchy()
    h.insert(np.arange(float(n)).reshape(n, 1))
    assert h.to_newick().endswith(";")
    assert json.loads(h.to_json())["size"] == n
    assert len(h.to_frame()) == max(2 * n - 1, 0)
    assert len(h.to_networkx()) == max(2 * n - 1, 0)
    h.plot(ax=Figure().subplots())
