"""Files: round trips, versions, damage."""

from __future__ import annotations

import hashlib
import json
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest

import evertree as et
from evertree import Hierarchy
from evertree.errors import CorruptFileError, FileFormatError, InvalidKeyError, NewerFormatError
from evertree.io import archive
from helpers import SCHEMES, assert_valid_and_homogeneous, fingerprint, new


@pytest.fixture
def path(tmp_path):
    return tmp_path / "tree.evertree"


def same(a: Hierarchy, b: Hierarchy) -> bool:
    """All that can be told from outside, and how it would go on."""
    return (
        a.keys() == b.keys()
        and np.array_equal(a.linkage_matrix(), b.linkage_matrix())
        and np.array_equal(a.points(), b.points())
        and a.points().dtype == b.points().dtype
        and (a.linkage, a.metric, a.goal, a.seed, a.n_moves) == (b.linkage, b.metric, b.goal, b.seed, b.n_moves)
    )


@pytest.mark.parametrize(("linkage", "metric"), SCHEMES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_round_trip(rng, path, linkage, metric, dtype):
    h = new(linkage, metric)
    h.insert(rng.normal(size=(30, 2)).astype(dtype), sample_weight=rng.uniform(1, 2, size=30))
    h.remove([2, 5, 7])
    h.save(path)
    twin = et.load(path)
    twin.validate()
    assert same(h, twin)
    for edited in (h, twin):
        assert edited.insert([[0.5, 0.5]]) == [30]
        edited.update([3], [[1.0, 2.0]])
        edited.remove([4])
    assert same(h, twin)


def test_a_refinement_goes_on_after_loading(rng, path):
    h = Hierarchy.random(rng.normal(size=(100, 2)), seed=3)
    h.refine(moves=50)
    h.save(path)
    twin = et.load(path)
    assert h.refine() != twin.refine(moves=0)
    twin.refine()
    assert same(h, twin)


@pytest.mark.parametrize("n", [0, 1, 2])
@pytest.mark.parametrize("named", [False, True])
def test_small_ones(path, n, named):
    h = Hierarchy()
    h.insert(np.arange(float(n)).reshape(n, 1), keys=[f"k{i}" for i in range(n)] if named else None)
    h.save(path)
    assert same(h, et.load(path))


def test_keys_survive(rng, path):
    h = Hierarchy()
    h.insert(rng.normal(size=(4, 2)), keys=["a", 7, (1, "x"), None])
    h.save(path)
    twin = et.load(path)
    assert twin.keys() == ["a", 7, (1, "x"), None]
    assert twin.insert([[0.0, 0.0]]) == [8]


def test_a_key_that_cannot_be_saved_leaves_the_old_file(rng, path):
    h = Hierarchy()
    h.insert([[0.0]], keys=["a"])
    h.save(path)
    before = path.read_bytes()
    h.insert([[1.0]], keys=[1j])
    with pytest.raises(InvalidKeyError, match="can be saved"):
        h.save(path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_there_is_no_pickle_in_it(rng, path):
    h = Hierarchy()
    h.insert(rng.normal(size=(5, 2)), keys=list("abcde"))
    h.save(path)
    with np.load(path, allow_pickle=False) as archive:
        assert all(archive[name].dtype != object for name in archive)


def rewritten(path, right_checksum=True, **changes):
    """The file with other entries in its header."""
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive}
    header = {**json.loads(arrays.pop("header").tobytes()), **changes}
    text = np.frombuffer(json.dumps(header).encode(), np.uint8)
    if right_checksum:
        arrays["header_sha256"] = np.frombuffer(hashlib.sha256(text.tobytes()).digest(), np.uint8)
    with path.open("wb") as file:
        np.savez(file, header=text, **arrays)


def test_an_edited_header_is_refused(rng, path):
    h = Hierarchy("average", "sqeuclidean")
    h.insert(rng.normal(size=(5, 2)))
    h.save(path)
    rewritten(path, right_checksum=False, metric="cosine")
    with pytest.raises(CorruptFileError, match="header does not have its checksum"):
        et.load(path)


def test_newer_formats_are_refused(rng, path):
    h = Hierarchy()
    h.insert(rng.normal(size=(5, 2)))
    h.save(path)
    rewritten(path, version=archive.FORMAT_VERSION + 1)
    with pytest.raises(NewerFormatError, match="has format version 5, and this evertree reads up to 4: upgrade"):
        et.load(path)


@pytest.mark.parametrize("metric", ["cosine", "mahalanobis"])
def test_files_of_older_versions_are_read(metric):
    h = et.load(Path(__file__).parents[1] / "files" / f"version_1_{metric}.evertree")
    assert h.metric == metric
    assert_valid_and_homogeneous(h)
    h.insert([[0.5, 0.5]])
    assert_valid_and_homogeneous(h)
    assert len(h) == (12 if metric == "cosine" else 13)


def test_files_of_version_2_are_read_and_go_on():
    """They have the goal "homogeneous", no heights of means and no lists of neighbours."""
    folder = Path(__file__).parents[1] / "files"
    x = np.random.default_rng(7).normal(size=(40, 3)).round(3)
    ward, complete = et.load(folder / "version_2_ward.evertree"), et.load(folder / "version_2_complete.evertree")
    np.testing.assert_array_equal(ward.points(), x)
    assert complete.keys() == [f"k{i}" for i in range(40) if i != 3]
    for h in (ward, complete):
        assert h.goal == "homogeneous"
        assert h.refine().homogeneous
        assert_valid_and_homogeneous(h)
        assert h.refine(until="stable").stable
        h.validate()
        h.certify()
        h.insert(x[:1] + 0.1)
        assert_valid_and_homogeneous(h)


def test_files_of_version_3_are_read_and_go_on():
    """They have no window."""
    folder = Path(__file__).parents[1] / "files"
    x = np.random.default_rng(7).normal(size=(40, 3)).round(3)
    ward, complete = et.load(folder / "version_3_ward.evertree"), et.load(folder / "version_3_complete.evertree")
    assert ward.keys() == [i for i in range(40) if i != 3]
    for h in (ward, complete):
        np.testing.assert_array_equal(h.points(), np.delete(x, 3, axis=0))
        assert h.window is None
        assert h.refine().stable
        h.keep(last=20)
        h.insert(x[:1] + 0.1)
        h.validate()


def test_files_of_version_4_have_their_window():
    h = et.load(Path(__file__).parents[1] / "files" / "version_4_window.evertree")
    assert h.window == et.Window(last=30, max_age=10.0)
    assert (h.keys(), h.expire(time=13.5)) == (list(range(5, 32)), list(range(5, 14)))
    h.validate()


def test_files_of_others_are_refused(tmp_path):
    text = tmp_path / "text"
    text.write_text("hello")
    archive = tmp_path / "archive.npz"
    np.savez(archive, x=np.ones(3))
    array = tmp_path / "array.npy"
    np.save(array, np.ones(3))
    for path in (text, archive, array):
        with pytest.raises(FileFormatError, match=r"is not a file written by Hierarchy.save"):
            et.load(path)
    et.open(tmp_path / "durable").close()
    with pytest.raises(FileFormatError, match=r"use evertree.open\(path\)"):
        et.load(tmp_path / "durable")
    with pytest.raises(FileNotFoundError):
        et.load(tmp_path / "nothing")


def test_every_changed_byte_is_noticed(rng, path):
    """A flipped bit anywhere in the file: it is refused, or (in what the archive does not use) the tree is the same."""
    h = Hierarchy()
    h.insert(rng.normal(size=(8, 2)))
    h.save(path)
    good = path.read_bytes()
    n_refused = 0
    for place in range(0, len(good), 37):
        damaged = bytearray(good)
        damaged[place] ^= 0x10
        path.write_bytes(bytes(damaged))
        try:
            assert same(et.load(path), h)
        except FileFormatError:
            n_refused += 1
    assert n_refused > len(good) // 37 // 2


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 0.999])
def test_a_file_that_was_cut_off_is_refused(rng, path, share):
    h = Hierarchy()
    h.insert(rng.normal(size=(50, 2)))
    h.save(path)
    good = path.read_bytes()
    path.write_bytes(good[: int(share * len(good))])
    with pytest.raises(FileFormatError):
        et.load(path)


def test_a_tree_that_is_none_is_refused(rng, path):
    """Arrays with right checksums that do not make a tree."""
    h = Hierarchy()
    h.insert(rng.normal(size=(10, 2)))
    h.state.live.tree.parent[h.leaf(0)] = h.root
    h.save(path)
    with pytest.raises(CorruptFileError, match="is damaged"):
        et.load(path)
    rewritten(path, next_birth="many", linkage="wart")
    with pytest.raises(CorruptFileError, match="linkage must be"):
        et.load(path)


def test_the_archive_is_a_plain_zip(rng, path):
    h = Hierarchy()
    h.insert(rng.normal(size=(10, 2)))
    before = fingerprint(h)
    h.save(path)
    assert fingerprint(h) == before
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None


def test_places_that_cannot_be_saved_to(tmp_path):
    h = Hierarchy()
    with pytest.raises(FileNotFoundError, match=r"no such folder to save to: '.*nowhere'"):
        h.save(tmp_path / "nowhere" / "tree")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        h.save(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("change", [{"goal": "best"}, {"seed": -1}, {"seed": None}, {"next_birth": 2}])
def test_options_of_a_file_are_checked(rng, path, change):
    h = Hierarchy()
    h.insert(rng.normal(size=(5, 2)))
    h.save(path)
    rewritten(path, **change)
    with pytest.raises(CorruptFileError, match="is damaged"):
        et.load(path)


@pytest.mark.parametrize(("linkage", "metric"), SCHEMES)
def test_an_empty_hierarchy_can_be_copied_and_saved(rng, path, linkage, metric):
    h = new(linkage, metric)
    h.save(path)
    for twin in (h.copy(), et.load(path), pickle.loads(pickle.dumps(h))):
        twin.insert(rng.normal(size=(4, 2)))
        assert_valid_and_homogeneous(twin)
        twin.remove(twin.keys())
        twin.save(path)
        again = et.load(path)
        again.insert(rng.normal(size=(4, 2)))
        assert_valid_and_homogeneous(again)
