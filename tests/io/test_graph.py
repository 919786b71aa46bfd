"""The tree as a graph of networkx."""

from __future__ import annotations

import sys

import networkx
import pytest

from evertree.errors import MissingExtraError
from evertree.io import to_digraph
from matrices import EMPTY, N_DEEP, PAIR, caterpillar, random_linkage


@pytest.mark.parametrize("n", [1, 2, 30])
def test_graph(rng, n):
    Z, keys = random_linkage(rng, n), [("key", i) for i in range(n)]
    graph = to_digraph(Z, keys)
    assert networkx.is_arborescence(graph)
    assert list(graph.nodes) == list(range(2 * n - 1))
    assert [u for u, degree in graph.in_degree if degree == 0] == [2 * n - 2]
    for i, (left, right, height, size) in enumerate(Z.tolist(), start=n):
        assert list(graph.successors(i)) == [left, right]
        assert graph.nodes[i] == {"height": height, "size": size}
    for i in range(n):
        assert graph.nodes[i] == {"height": 0.0, "size": 1, "key": keys[i]}
    for u, data in graph.nodes(data=True):
        assert (type(u), type(data["height"]), type(data["size"])) == (int, float, int)
        assert all(type(child) is int for child in graph.successors(u))


def test_graph_of_nothing():
    assert len(to_digraph(EMPTY, [])) == 0


def test_deep_graph(seconds):
    assert networkx.dag_longest_path_length(to_digraph(caterpillar(N_DEEP), range(N_DEEP))) == N_DEEP - 1


def test_missing_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(MissingExtraError) as caught:
        to_digraph(PAIR, ["a", "b"])
    assert str(caught.value) == "to_networkx needs networkx: pip install 'evertree[networkx]'"
