"""The table of keys: numbered keys in arrays, chosen ones in a dict, and the same behaviour of both."""

from __future__ import annotations

import datetime
import uuid
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evertree.errors import InvalidKeyError, UnknownKeyError
from evertree.input.keys import KeyTable
from evertree.io.json_values import decode_all, encode_all

KINDS = {
    "choose a name": lambda i: f"key {i}",
    "choose an integer": lambda i: 10 * i,
    "choose a float": lambda i: float(i),
    "choose a decimal": Decimal,
    "choose a complex": complex,
    "choose a tuple": lambda i: (i, "x"),
}


@given(st.lists(st.tuples(st.sampled_from(["add", "discard", *KINDS]), st.integers(0, 6))))
def test_table_is_an_ordered_dictionary(steps):
    table, expected, next_leaf = KeyTable(), {}, 0
    for action, count in steps:
        if action == "discard":
            gone = list(expected)[:: max(count, 1)]
            table.discard(gone)
            for key in gone:
                del expected[key]
        else:
            leaves = np.arange(next_leaf, next_leaf + count, dtype=np.int32)
            chosen = [KINDS[action](leaf) for leaf in leaves.tolist()] if action in KINDS else None
            if any(key in expected for key in chosen or []):
                continue
            added = table.add(chosen, leaves)
            assert not set(added) & set(expected)
            expected.update(zip(added, leaves.tolist(), strict=True))
            next_leaf += count
        assert table.keys() == list(expected)
        assert table.leaves().tolist() == list(expected.values())
        assert len(table) == len(expected)
        assert table.leaves_of(list(expected)).tolist() == list(expected.values())
        assert all(key in table for key in expected)
        with pytest.raises(UnknownKeyError):
            table.leaves_of([*expected, "nothing"])
        assert table.copy().keys() == table.keys()


def test_numbered_keys_take_twelve_bytes():
    table = KeyTable()
    table.add(None, np.arange(1000, dtype=np.int32))
    assert table.is_numbered
    assert table.n_bytes == 12 * 1000


def test_removed_numbers_give_their_room_back():
    table = KeyTable()
    for start in range(0, 10_000, 100):
        table.add(None, np.arange(start, start + 100, dtype=np.int32))
        table.discard(table.keys()[:-10])
    assert len(table) == 10
    assert table.n_bytes < 12 * 300


def test_keys_survive_json():
    keys = [1, -2, 2**70, "a", "ä\n", 1.5, float("inf"), True, None, b"\x00\xff", (1, ("b", None))]
    keys += [uuid.UUID(int=7), datetime.date(2020, 1, 2), datetime.datetime(2020, 1, 2, 3, 4, 5)]
    decoded = decode_all(encode_all(keys))
    assert decoded == keys
    assert [type(key) for key in decoded] == [type(key) for key in keys]


def test_keys_that_cannot_be_saved_are_named():
    with pytest.raises(InvalidKeyError, match="can be saved; this one is of type complex: 1j"):
        encode_all([1, 1j])


@pytest.mark.parametrize("named", [False, True])
def test_the_oldest_keys(rng, named):
    """Against a list, while keys come at one end and go anywhere."""
    table, expected, leaf = KeyTable(), [], 0
    for _ in range(300):
        count, n_passing = int(rng.integers(0, 6)), int(rng.integers(0, 3))
        names = [f"key {table.next_birth + k}" for k in range(n_passing + count)] if named else None
        leaves = np.arange(leaf, leaf + 2 * count, 2, dtype=np.int32)
        added = table.add(names, leaves, n_passing)
        assert len(added) == n_passing + count
        expected += list(zip(added[n_passing:], leaves.tolist(), strict=True))
        leaf += 2 * count
        gone = [expected[i] for i in rng.permutation(len(expected))[: rng.integers(0, 4)]]
        wanted = int(rng.integers(0, len(expected) + 3))
        gone += [pair for pair in expected[: max(len(expected) - 20, 0)] if pair not in gone]
        table.discard([key for key, _ in gone])
        expected = [pair for pair in expected if pair not in gone]
        keys, leaves = table.oldest(wanted)
        assert list(zip(keys, leaves.tolist(), strict=True)) == expected[:wanted]
        assert table.keys() == [key for key, _ in expected]


@pytest.mark.parametrize("named", [False, True])
def test_keys_follow_their_leaves_to_new_numbers(rng, named):
    table, births = KeyTable(), np.arange(20)
    keys = table.add([f"key {i}" for i in births] if named else None, (2 * births).astype(np.int32))
    table.discard(keys[3:7])
    place = np.empty(40, np.int32)
    place[::2] = 2 * rng.permutation(20)
    expected = place[table.leaves()]
    table.relocate(place)
    live = keys[:3] + keys[7:]
    assert table.keys() == live
    assert 0 in expected
    np.testing.assert_array_equal(table.leaves(), expected)
    np.testing.assert_array_equal(table.leaves_of(live), expected)
    assert table.keys_of(expected, np.delete(births, range(3, 7))) == live
