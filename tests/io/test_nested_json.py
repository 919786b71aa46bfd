"""Nested dictionaries and JSON: the tree that SciPy builds, with keys as JSON values."""

from __future__ import annotations

import json
from datetime import date
from enum import IntEnum

import numpy as np
import pytest
from scipy.cluster.hierarchy import to_tree

from evertree.io import to_nested, to_nested_json
from matrices import EMPTY, N_DEEP, ODD_LABELS, PAIR, caterpillar, random_linkage


def test_deep_json(seconds):
    text = to_nested_json(caterpillar(N_DEEP), range(N_DEEP))
    assert text.count("children") == N_DEEP - 1
    assert text.startswith('{"height": 9999.900000000001, "size": 100000, "children": [{"height"')
    assert text.endswith('}, {"key": 99999, "height": 0.0, "size": 1}]}')


def test_deep_nested(seconds):
    node = to_nested(caterpillar(N_DEEP), range(N_DEEP))
    for size in range(N_DEEP, 1, -1):
        assert node["size"] == size
        assert node["children"][1]["key"] == size - 1
        node = node["children"][0]
    assert node == {"key": 0, "height": 0.0, "size": 1}


@pytest.mark.parametrize("n", [2, 3, 25])
def test_nested_follows_scipys_tree(rng, n):
    Z = random_linkage(rng, n)

    def nested(node):
        if node.is_leaf():
            return {"key": f"k{node.id}", "height": 0.0, "size": 1}
        return {"height": node.dist, "size": node.count, "children": [nested(node.left), nested(node.right)]}

    keys = [f"k{i}" for i in range(n)]
    assert to_nested(Z, keys) == nested(to_tree(Z))
    assert json.loads(to_nested_json(Z, keys)) == nested(to_tree(Z))


def test_small_nested_trees():
    assert to_nested(EMPTY, []) == {"height": 0.0, "size": 0, "children": []}
    assert to_nested_json(EMPTY, []) == '{"height": 0.0, "size": 0, "children": []}'
    assert to_nested(EMPTY, ["a"]) == {"key": "a", "height": 0.0, "size": 1}
    assert json.loads(to_nested_json(EMPTY, ["a"])) == to_nested(EMPTY, ["a"])


def test_nested_json_is_as_json_would_write_it(rng):
    Z = random_linkage(rng, 20)
    assert to_nested_json(Z, range(20)) == json.dumps(to_nested(Z, range(20)))


class Colour(IntEnum):
    RED = 1


@pytest.mark.parametrize(
    ("key", "plain"),
    [
        ("a", "a"),
        (7, 7),
        (True, True),
        (None, None),
        (1.5, 1.5),
        (float("inf"), "inf"),
        (np.int64(7), 7),
        (np.float32(0.5), 0.5),
        (np.float64("inf"), "inf"),
        (np.bool(True), True),
        (np.str_("a"), "a"),
        (Colour.RED, 1),
        (("a", 1), "('a', 1)"),
        (frozenset(), "frozenset()"),
        (b"a", "b'a'"),
        (1j, "1j"),
        (date(2024, 2, 29), "2024-02-29"),
    ],
)
def test_keys_in_json(key, plain):
    read = json.loads(to_nested_json(EMPTY, [key]))["key"]
    assert read == plain
    assert type(read) is type(plain)
    assert type(to_nested(EMPTY, [key])["key"]) is type(plain)


@pytest.mark.parametrize("label", ODD_LABELS)
def test_odd_labels_in_json(label):
    assert json.loads(to_nested_json(PAIR, [label, "other"])) == to_nested(PAIR, [label, "other"])
