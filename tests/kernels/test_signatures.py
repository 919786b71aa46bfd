"""What kernels take, from their annotations, and the descriptions of columns in memory."""

from __future__ import annotations

import ctypes
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import pytest

from evertree import Hierarchy
from evertree.kernels.columns import AnyTree, MeanTree, PairTree, Search, Tree, Worklist, new_search
from evertree.kernels.signatures import (
    AnyLinkage,
    Configuration,
    Described,
    FloatMatrix,
    Ints,
    LinkageWithCenters,
    Signature,
    described,
)
from evertree.linkages import LINKAGES


def configurations(function):
    return {str(found) for found in Signature(function).configurations(list(LINKAGES.values()))}


def test_a_kernel_is_compiled_for_all_that_it_may_take():
    def of_any_tree(tree: AnyTree, search: Search, linkage: AnyLinkage) -> None: ...
    def of_all_trees(tree: Tree, nodes: Ints) -> int: ...
    def of_lists(tree: Tree, search: Search) -> None: ...
    def of_centers(linkage: LinkageWithCenters) -> tuple[int, int]: ...

    means = {f"meantree_{linkage}_float{bits}" for linkage in ("ward", "average") for bits in (32, 64)}
    pairs = {f"pairtree_{linkage}_float64" for linkage in ("single", "complete", "average", "minimax")}
    assert configurations(of_any_tree) == means | pairs
    assert configurations(of_all_trees) == {""}
    assert configurations(of_lists) == {"float32", "float64"}
    assert configurations(of_centers) == {"minimax"}
    assert (Signature(of_all_trees).results, Signature(of_centers).results) == ((int,), (int, int))


def test_a_kernel_must_say_what_it_takes():
    def silent(tree: Tree, nodes) -> None: ...

    with pytest.raises(TypeError, match="silent must say what these are: nodes"):
        Signature(silent)


@pytest.mark.parametrize("tree", [MeanTree, PairTree])
def test_all_trees_begin_alike(tree):
    """So a kernel that needs no other columns takes any of them."""
    assert list(tree.kinds().items())[: len(Tree._fields)] == list(Tree.kinds().items())


def test_a_description_is_where_the_columns_are(rng):
    h = Hierarchy()
    h.insert(rng.normal(size=(5, 2)))
    tree = h.state.live.tree
    words = (ctypes.c_int64 * tree.words.size).from_address(tree.address)
    parent = tree.parent.__array_interface__
    assert words[:3] == [parent["data"][0], tree.parent.size, tree.parent.strides[0]]
    assert words[-6:-1] == [tree.mean.__array_interface__["data"][0], *tree.mean.shape, *tree.mean.strides]
    assert tree._replace(mean=tree.mean.copy()).words[-6] != words[-6]
    assert words[-1] == tree.sketch.address


def test_threads_share_one_description():
    """Otherwise the address might be that of one which is gone."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            for _ in range(200):
                search = new_search(1, 1, np.dtype(np.float64))
                addresses = set(pool.map(lambda _, search=search: search.address, range(8)))
                assert addresses == {search.words.__array_interface__["data"][0]}
    finally:
        sys.setswitchinterval(before)


def test_a_description_stays_in_its_process(rng):
    h = Hierarchy()
    h.insert(rng.normal(size=(5, 2)))
    tree = h.state.live.tree
    assert tree.address
    assert vars(pickle.loads(pickle.dumps(tree))) == {}


@pytest.mark.parametrize(
    "wrong", [np.zeros((3, 4)), np.zeros(3, np.int64), np.zeros(6, np.int32)[::2], np.frombuffer(bytes(8), np.int32)]
)
def test_columns_must_be_what_they_are_said_to_be(wrong):
    search = new_search(3, 2, np.dtype(np.float64))
    assert search.address
    with pytest.raises(TypeError, match=r"Search\.seen must be a contiguous, writeable array of int32 with 1 "):
        _ = search._replace(seen=wrong).address


def test_columns_with_strides_may_have_them():
    ints, state = np.zeros(2, np.int32), np.zeros(1, Worklist.kinds()["state"].dtype)
    nodes = np.zeros(
        2, [("mark", np.uint8), ("due", np.uint8), ("level", np.int16), ("earlier", np.int32), ("later", np.int32)]
    )
    work = Worklist(ints, *(nodes[name] for name in nodes.dtype.names), ints, state)
    assert work.address


def test_a_group_of_columns_keeps_its_name_and_its_own_methods():
    @described
    class Some(NamedTuple):
        """Two."""

        numbers: Ints
        table: FloatMatrix

        @property
        def dtype(self) -> str:
            return "its own"

    some = Some(np.zeros(3, np.int32), np.zeros((2, 5)))
    assert (Some.__name__, Some.__doc__, some.dtype) == ("Some", "Two.", "its own")
    assert isinstance(some, Described)
    assert some.words[1:3].tolist() == [3, 4]
    assert some.words[4:].tolist() == [2, 5, 40, 8]


def test_a_configuration_has_a_name():
    assert str(Configuration(MeanTree, LINKAGES["ward"].tag, "float32")) == "meantree_ward_float32"
    assert str(Configuration(None, None, "")) == ""
