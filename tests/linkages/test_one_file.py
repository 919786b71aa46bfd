"""A linkage is one file: with nothing but what it must have, it works everywhere, as the one does that it copies."""

from __future__ import annotations

import inspect
import itertools
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import evertree as et
from evertree import linkages
from evertree.kernels.compile import IS_COMPILED
from evertree.kernels.shared.linkage_values import factor, offset
from helpers import Hierarchy

#: What the file of average linkage has, without all that makes it faster.
FILE = """
from evertree.kernels.pairwise.values import collect_both
from evertree.kernels.pairwise.pairs import find_shares, weighted_sum
from evertree.linkages import Linkage, Tag


class Plain(Tag):
    pass


LINKAGE = Linkage(
    "plain", Plain, reducible=True, strongly_reducible=True, nni_reducible=False, statistics="squared"
)


def factor(linkage, size_a, size_b):
    return 1.0


def offset(linkage, variance_a, variance_b):
    return variance_a + variance_b


def definition(d, weights, a, b):
    return weights[a] / weights[a].sum() @ d[a, b] @ (weights[b] / weights[b].sum())


def coefficients(linkage, size_a, size_b, size_c):
    both = size_a + size_b
    return size_a / both, size_b / both, 0.0, 0.0


def compare(linkage, tree, a, c, floor, start, value):
    n_rows, n_others = collect_both(tree, a, c)
    rows, others = tree.pairs.rows[:n_rows], tree.pairs.others[:n_others]
    total, row = weighted_sum(tree, rows, others, start, max(value, 0.0))
    if row < rows.size:
        return total, False, row
    return total / find_shares(tree, rows, tree.pairs.share), True, -1


def with_member(linkage, so_far, value, share):
    return so_far + share * value


def without_members(linkage):
    return 0.0
"""

#: What a test with the compiler on runs in a process that keeps its kernels elsewhere. The linkage is not strongly
#: reducible here, so that all moves are asked for.
SCRIPT = """
import sys
import numpy as np
from scipy.cluster.hierarchy import linkage
import evertree as et
from evertree import linkages

linkages.__path__.append(sys.argv[1])
linkages.LINKAGES._names += ("plain",)
x = np.random.default_rng(0).normal(size=(60, 3))
h = et.Hierarchy("plain", search_width=None)
h.insert(x[:40])
h.remove([3, 17, 30])
h.insert(x[40:])
h.refine()
h.validate()
there = np.delete(x, [3, 17, 30], axis=0)
np.testing.assert_allclose(h.linkage_matrix(), linkage(there, "average"), rtol=1e-9)
"""

STEPS = re.findall(
    r"^@linkage_m(?:ay|ust)_define\ndef (\w+)",
    "\n".join(
        file.read_text(encoding="utf-8") for file in (Path(linkages.__file__).parents[1] / "kernels").rglob("*.py")
    ),
    flags=re.MULTILINE,
)


@pytest.fixture
def plain(tmp_path, monkeypatch):
    """The name of the linkage, while its file is there."""
    if IS_COMPILED:
        pytest.skip("a linkage of a test has no place among the kernels that are kept on disk")
    (tmp_path / "plain.py").write_text(FILE)
    monkeypatch.setattr(linkages, "__path__", [*linkages.__path__, str(tmp_path)])
    monkeypatch.setattr(linkages.LINKAGES, "_names", (*linkages.LINKAGES, "plain"))
    yield "plain"
    sys.modules.pop("evertree.linkages.plain", None)


@pytest.mark.parametrize("metric", ["sqeuclidean", "euclidean", "cityblock"])
@pytest.mark.parametrize("goal", ["stable", "homogeneous"])
def test_it_lives_as_the_one_it_copies(rng, tmp_path, plain, metric, goal):
    x, weights = rng.normal(size=(60, 3)), rng.uniform(0.5, 2, size=60)
    trees = [Hierarchy(name, metric, goal=goal) for name in ("average", plain)]
    for h in trees:
        h.insert(x[:40], sample_weight=weights[:40])
        h.remove([3, 17, 30])
        h.update([5, 6], x[40:42])
        h.insert(x[42:], sample_weight=weights[42:])
        h.refine()
        h.validate()
        if goal == "stable":
            h.certify()
    copy = trees[1].copy()
    copy.set_linkage("ward", metric="euclidean")
    copy.set_linkage(plain, metric=metric)
    trees[1].save(tmp_path / "tree.evertree")
    loaded = et.load(tmp_path / "tree.evertree")
    copies = [trees[1], loaded, copy] if goal == "stable" else [trees[1], loaded]
    for h in copies:
        np.testing.assert_allclose(h.linkage_matrix(), trees[0].linkage_matrix(), rtol=1e-9)
    assert copies[1].linkage == plain


def test_batch_clustering_has_it(rng, plain):
    x = rng.normal(size=(40, 2))
    ours, theirs = (et.agglomerate(x, name) for name in (plain, "average"))
    np.testing.assert_allclose(ours.linkage_matrix(), theirs.linkage_matrix(), rtol=1e-9)
    ours.certify()


def test_what_is_missing_is_named(plain):
    tag = linkages.LINKAGES[plain].tag
    del sys.modules[tag.__module__].factor
    with pytest.raises(
        NotImplementedError, match=r"evertree.linkages.plain must define factor\(linkage, size_a, size_b\)"
    ):
        factor(tag(1e-9), 1.0, 1.0)


@pytest.mark.process
@pytest.mark.slow
def test_it_is_compiled(tmp_path):
    (tmp_path / "plain.py").write_text(FILE.replace("strongly_reducible=True", "strongly_reducible=False"))
    environment = {**os.environ, "EVERTREE_CACHE_DIR": str(tmp_path / "kernels")}
    subprocess.run([sys.executable, "-c", SCRIPT, str(tmp_path)], env=environment, check=True, timeout=600)


def test_linkages_are_the_files_of_a_folder():
    assert {"single", "complete", "average", "minimax", "ward"} <= set(linkages.LINKAGES)
    assert [linkage.name for linkage in linkages.LINKAGES.values()] == list(linkages.LINKAGES)
    assert len(linkages.LINKAGES) == len(list(linkages.LINKAGES))
    with pytest.raises(KeyError):
        linkages.LINKAGES["wards"]


@pytest.mark.parametrize("linkage", linkages.LINKAGES.values(), ids=list(linkages.LINKAGES))
def test_a_file_has_what_it_must_have(linkage):
    file = sys.modules[linkage.tag.__module__]
    tag = linkage.tag(1e-9)
    plain = {name for name, f in vars(file).items() if inspect.isfunction(f) and f.__module__ == file.__name__}
    helpers = set(re.findall(r"^@inline\ndef (\w+)", inspect.getsource(file), flags=re.MULTILINE))
    assert plain - helpers <= {*STEPS, "definition"}
    sizes = np.array([1e-3, 1.0, 2.0, 1e6])
    if linkage.statistics:
        values = np.array([[file.factor(tag, a, b) for a in sizes] for b in sizes])
        np.testing.assert_allclose(values, values.T, rtol=1e-15)
        assert np.all((values > 0) & (values <= np.maximum(np.minimum.outer(sizes, sizes), 1)))
        assert np.all(np.diff(values) >= 0)
        offsets = np.array([[offset(tag, a, b) for a in sizes] for b in sizes])
        assert np.array_equal(offsets, offsets.T)
        assert np.all(offsets >= 0)
        assert np.all(np.diff(offsets) >= 0)
        assert offset(tag, 2.0, 6.0) == 2 * offset(tag, 1.0, 3.0)
    if linkage.from_pairs and not linkage.has_centers:
        for a, b in itertools.product(sizes, sizes):
            alpha_a, alpha_b, beta, gamma = file.coefficients(tag, a, b, 1.0)
            assert file.coefficients(tag, a, b, 7.0) == (alpha_a, alpha_b, beta, gamma)
            assert beta == 0
            assert alpha_a + alpha_b == pytest.approx(1.0)
            assert abs(gamma) == 0.5 if gamma else alpha_a > 0
