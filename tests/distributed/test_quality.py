"""Trees on Dask are as good as those of one machine, on real data; `benchmarks.distributed` has more of these."""

from __future__ import annotations

import numpy as np
import pytest

import evertree as et

distributed = pytest.importorskip("distributed", reason="distributed trees need Dask")
da = pytest.importorskip("dask.array")

N_POINTS = 4_000
LEVELS = (100, 300, 1_000)  # of ten clusters the error differs by 5 % between orders of the points


def error_of(h: et.Hierarchy, n_clusters: int) -> float:
    """The sum of squared distances to the means of so many clusters: what the merges below them cost."""
    return float((h.linkage_matrix()[: len(h) - n_clusters, 2] ** 2).sum() / 2)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["letter", "shuttle"])
def test_a_tree_in_parts_is_within_two_percent_of_that_on_one_machine(client, shared_data, monkeypatch, name):
    monkeypatch.setattr("evertree.distributed.sampling.FEWEST_SAMPLED", N_POINTS // 10)
    monkeypatch.setattr("evertree.distributed.sampling.SAMPLED_PER_PART", 20)
    with np.load(shared_data / f"{name}.npz") as file:
        rows = np.random.default_rng(0).choice(len(file["X"]), N_POINTS, replace=False)
        x, y = file["X"][rows].astype(np.float64), file["y"][rows]
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    alone = et.Hierarchy()
    alone.insert(x)
    alone.refine()
    t = et.distributed.cluster(da.from_array(x, chunks=(1_000, -1)), client, part_size=N_POINTS // 8)
    assert t.n_parts > 5
    assert t.report.stopped_by == "stable"
    ours = t.to_hierarchy()
    assert et.quality.tree_value(ours) > 0.98 * et.quality.tree_value(alone)
    for n_clusters in LEVELS:
        assert error_of(ours, n_clusters) < 1.02 * error_of(alone, n_clusters), n_clusters
    # On one machine it differs by 4 % between orders of the points.
    assert et.quality.dendrogram_purity(ours, y) > 0.95 * et.quality.dendrogram_purity(alone, y)
