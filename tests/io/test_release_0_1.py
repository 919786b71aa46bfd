"""Files that release 0.1 wrote are opened, with the trees that it had."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from scipy.cluster.hierarchy import cophenet

import evertree as et

FILES = Path(__file__).parents[1] / "files" / "release_0_1"


def hamming(a, b):
    return float(sum(x != y for x, y in zip(a, b, strict=False)) + abs(len(a) - len(b)))


def check(h, name):
    expected = np.load(FILES / f"{name}.npz")
    keys = h.keys()
    assert [repr(key) for key in keys] == expected["keys"].tolist()
    np.testing.assert_allclose(h.cophenetic(), cophenet(expected["Z"]), rtol=1e-12)  # merges may tie
    h.validate()


@pytest.mark.parametrize("file", sorted(FILES.glob("*.evertree")), ids=lambda file: file.stem)
def test_saved_trees(file, tmp_path):
    metric = hamming if file.stem == "words_average" else None
    h = et.load(file, metric=metric)
    check(h, file.stem)
    h.save(tmp_path / "again.evertree")
    check(et.load(tmp_path / "again.evertree", metric=metric), file.stem)
    h.remove(h.keys()[:2])
    h.refine()
    h.validate()


@pytest.mark.parametrize("file", sorted(FILES.glob("*.db")), ids=lambda file: file.stem)
def test_durable_trees(file, tmp_path):
    """With edits in the journal, which are made again."""
    place = shutil.copy(file, tmp_path / file.name)
    metric = hamming if file.stem == "durable_words" else None
    check(et.open(place, read_only=True, metric=metric), file.stem)
    with et.open(place, metric=metric) as h:
        check(h, file.stem)
        h.remove(h.keys()[:2])
        h.refine()
        n_points = len(h)
    again = et.open(place, read_only=True, metric=metric)
    assert len(again) == n_points
    again.validate()


def test_there_are_files():
    assert len(list(FILES.glob("*.evertree"))) == 7
    assert len(list(FILES.glob("*.db"))) == 4
