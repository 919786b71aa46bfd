"""Trees on Dask: the result is valid, the same for any number of workers, and reads like a Hierarchy."""

from __future__ import annotations

import gc
import sys

import numpy as np
import pytest

import evertree as et
from evertree.errors import (
    ClosedError,
    ColumnNamesError,
    DimensionError,
    DuplicateKeyError,
    EmptyHierarchyError,
    InvariantError,
    LinkageError,
    MissingExtraError,
    NotFiniteError,
    NotNumericError,
    ParameterError,
    UnknownKeyError,
    ZeroVectorError,
)

distributed = pytest.importorskip("distributed", reason="distributed trees need Dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")

SCHEMES = [("ward", "euclidean"), ("average", "sqeuclidean"), ("average", "cosine")]


def mixture(n: int, n_columns: int = 4, seed: int = 0, dtype=np.float64) -> np.ndarray:
    rng = np.random.default_rng(seed)
    centres = 6 * rng.normal(size=(12, n_columns))
    return (centres[rng.integers(12, size=n)] + rng.normal(size=(n, n_columns))).astype(dtype)


def check(t, linkage: str = "ward") -> None:
    """All that must be true of a tree after an edit."""
    t.validate()
    assert t.is_monotone()
    assert t.is_homogeneous() or linkage == "ward"
    assert t.report.stopped_by == "stable"
    h = t.to_hierarchy()
    h.validate()
    assert h.is_monotone()
    assert h.is_homogeneous() or linkage == "ward"
    assert h.keys() == t.keys().compute().tolist()
    assert len(h) == len(t)


@pytest.fixture
def small_samples(monkeypatch):
    """Samples that are a part of the points only, though these are few."""
    monkeypatch.setattr("evertree.distributed.sampling.FEWEST_SAMPLED", 200)
    monkeypatch.setattr("evertree.distributed.sampling.SAMPLED_PER_PART", 20)


@pytest.mark.slow
@pytest.mark.parametrize(("linkage", "metric"), SCHEMES)
def test_tree_is_valid_and_nearly_that_of_one_machine(client, small_samples, linkage, metric):
    x = mixture(2_000)
    t = et.distributed.cluster(da.from_array(x, chunks=(450, 4)), client, linkage=linkage, metric=metric, part_size=300)
    check(t, linkage)
    assert t.n_parts > 4
    h = t.to_hierarchy()
    np.testing.assert_array_equal(h.points(), x)
    alone = et.Hierarchy(linkage, metric)
    alone.insert(x)
    alone.refine()
    ours, theirs = (tree.linkage_matrix()[:, 2].sum() for tree in (h, alone))
    assert ours == pytest.approx(theirs, rel=0.02)


@pytest.mark.slow
def test_labels_and_merges_are_those_of_the_whole_tree(client, small_samples):
    x = mixture(150)
    t = et.distributed.cluster(x, client, part_size=30)
    h = t.to_hierarchy()
    for k in (1, 2, 7, 40, 150):
        np.testing.assert_array_equal(t.cut(n_clusters=k).compute(), h.cut(n_clusters=k))
    for height in (0.0, 0.5, 3.0, 1e9):
        np.testing.assert_array_equal(t.cut(height=height).compute(), h.cut(height=height))
    whole = h.linkage_matrix()
    np.testing.assert_allclose(t.linkage_matrix(149), whole, rtol=1e-9)
    top = t.linkage_matrix(20)
    np.testing.assert_allclose(top[:, 2:], whole[-20:, 2:], rtol=1e-9)
    sizes = np.bincount(t.cut(n_clusters=21).compute())
    members = [{i} for i in range(21)]
    for a, b, _, size in top:
        members.append(members[int(a)] | members[int(b)])
        assert sum(sizes[i] for i in members[-1]) == size
    assert members[-1] == set(range(21))
    assert t.linkage_matrix(0).shape == (0, 4)


@pytest.mark.slow
def test_workers_and_chunks_do_not_matter(small_samples):
    x = mixture(1_200)
    found = []
    for n_workers, rows in ((1, 1_200), (2, 170), (4, 333)):
        options = {"n_workers": n_workers, "threads_per_worker": 1, "processes": False, "dashboard_address": ":0"}
        with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
            t = et.distributed.cluster(da.from_array(x, chunks=(rows, 2)), client, part_size=200)
            assert t.n_parts > 3
            found.append((t.linkage_matrix(1_199), t.cut(n_clusters=30).compute(), t.report.grafts))
    for other in found[1:]:
        np.testing.assert_array_equal(other[0], found[0][0])
        np.testing.assert_array_equal(other[1], found[0][1])
        assert other[2] == found[0][2]


def test_the_seed_decides_what_is_sampled(small_samples):
    from evertree.distributed import sampling
    from evertree.distributed.chunks import Chunk

    x = mixture(1_000)
    share = sampling.share_of(1_000, 100)
    assert share == 0.2

    def sample(begin, end, seed=0):
        return sampling.sample_chunk(Chunk(x[begin:end], end - begin, 1.0, None), begin, share, seed)

    ids, points = sample(0, 1_000)
    np.testing.assert_array_equal(points, x[ids])
    by_chunk = [sample(i, i + 99) for i in range(0, 1_000, 99)]
    np.testing.assert_array_equal(np.concatenate([chunk[0] for chunk in by_chunk]), ids)
    np.testing.assert_array_equal(np.concatenate([chunk[1] for chunk in by_chunk]), points)
    assert 150 < ids.size < 250
    assert not np.array_equal(sample(0, 1_000, seed=1)[0], ids)


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_few_points(client, n):
    x = mixture(n)
    t = et.distributed.cluster(da.from_array(x, chunks=(2, 4)), client, part_size=1)
    assert len(t) == n
    t.validate()
    np.testing.assert_array_equal(t.keys().compute(), np.arange(n))
    assert t.linkage_matrix(max(n - 1, 0)).shape == (max(n - 1, 0), 4)
    assert t.to_hierarchy().keys() == list(range(n))
    if n == 0:
        with pytest.raises(EmptyHierarchyError, match="at least one point"):
            t.cut(n_clusters=1)
    else:
        np.testing.assert_array_equal(t.cut(n_clusters=n).compute(), np.arange(n))
    assert t.insert(x + 1) == range(n, 2 * n)
    check(t) if n else None


@pytest.mark.slow
@pytest.mark.parametrize("part_size", [10, 1_000])
def test_points_that_are_all_the_same(client, part_size):
    t = et.distributed.cluster(np.ones((60, 3)), client, part_size=part_size)
    check(t)
    assert t.cut(height=0.0).compute().max() == 0
    np.testing.assert_array_equal(np.unique(t.cut(n_clusters=60).compute()), np.arange(60))


@pytest.mark.slow
def test_float32_stays_float32(client):
    x = mixture(120, dtype=np.float32)
    t = et.distributed.cluster(da.from_array(x, chunks=(50, 4)), client, part_size=40)
    check(t)
    assert "float32" in repr(t)
    assert t.to_hierarchy().points().dtype == np.float32
    t.insert(mixture(30, seed=1))
    assert t.to_hierarchy().points().dtype == np.float32


@pytest.mark.slow
def test_parameters_of_a_metric(client):
    x = mixture(100)
    inverse = np.linalg.inv(np.cov(x.T))
    t = et.distributed.cluster(x, client, metric="mahalanobis", metric_params={"VI": inverse}, part_size=40)
    check(t)
    np.testing.assert_array_equal(t.to_hierarchy().points(), x)
    np.testing.assert_array_equal(t.metric_params["VI"], inverse)


@pytest.mark.slow
def test_parquet_in_several_files(client, tmp_path):
    frame = pd.DataFrame(mixture(200), columns=list("abcd"))
    for i in range(5):
        frame[40 * i : 40 * i + 40].to_parquet(tmp_path / f"{i}.parquet")
    t = et.distributed.cluster(dd.read_parquet(tmp_path), client, part_size=60)
    check(t)
    np.testing.assert_array_equal(t.to_hierarchy().points(), frame.to_numpy())


@pytest.mark.slow
def test_chunks_of_unknown_length(client):
    x = mixture(200)
    whole = da.from_array(x, chunks=(70, 4))
    t = et.distributed.cluster(whole[whole[:, 0] > 0], client, part_size=50)
    check(t)
    np.testing.assert_array_equal(t.to_hierarchy().points(), x[x[:, 0] > 0])


@pytest.mark.slow
def test_tiny_chunks_are_put_together(client):
    steps = []
    et.distributed.cluster(da.from_array(mixture(200), chunks=(2, 4)), client, part_size=50, progress=steps.append)
    assert {step.total for step in steps if step.step == "read"} == {2}


@pytest.mark.parametrize("kind", ["dask array", "data frame", "array"])
def test_rows_with_missing_values_are_named(client, kind):
    x = mixture(90)
    x[73, 1] = np.nan
    given = {
        "dask array": lambda: da.from_array(x, chunks=(20, 4)),
        "data frame": lambda: dd.from_pandas(pd.DataFrame(x, columns=list("abcd")), npartitions=4),
        "array": lambda: x,
    }[kind]()
    column = "'b'" if kind == "data frame" else "1"
    with pytest.raises(NotFiniteError, match=f"in row 73, column {column}"):
        et.distributed.cluster(given, client, part_size=20)


def test_rows_that_a_metric_refuses_are_named(client):
    x = mixture(90)
    x[[41, 77]] = 0
    with pytest.raises(ZeroVectorError, match="remove row 41 or"):  # those of the first chunk that has any
        et.distributed.cluster(
            da.from_array(x, chunks=(20, 4)), client, linkage="average", metric="cosine", part_size=20
        )


@pytest.mark.parametrize(
    ("linkage", "metric"), [("single", "euclidean"), ("average", "euclidean"), ("minimax", "cosine")]
)
def test_linkages_that_compare_pairs_are_refused(client, linkage, metric):
    with pytest.raises(LinkageError, match=r"cannot be distributed.*evertree\.Hierarchy on one machine"):
        et.distributed.cluster(mixture(10), client, linkage=linkage, metric=metric)


def test_bad_arguments(client):
    x = mixture(20)
    with pytest.raises(DimensionError, match="two dimensions"):
        et.distributed.cluster(da.from_array(x[:, 0], chunks=5), client)
    with pytest.raises(NotNumericError, match="'name'"):
        et.distributed.cluster(dd.from_pandas(pd.DataFrame({"name": ["a", "b"], "x": [1.0, 2.0]})), client)
    with pytest.raises(ParameterError, match=r"client must be None or a distributed\.Client; it is str"):
        et.distributed.cluster(x, "tcp://nowhere")
    with pytest.raises(ParameterError, match="search_width must be a positive integer"):
        et.distributed.cluster(x, client, search_width=None)
    with pytest.raises(ParameterError, match="part_size must be a positive integer"):
        et.distributed.cluster(x, client, part_size=0)
    with pytest.raises(ParameterError, match="progress must be"):
        et.distributed.cluster(x, client, progress=7)
    t = et.distributed.cluster(x, client)
    with pytest.raises(ParameterError, match="one of them only"):
        t.cut()
    with pytest.raises(ParameterError, match="one of them only"):
        t.cut(n_clusters=2, height=1.0)
    with pytest.raises(ParameterError, match="from 1 to 20"):
        t.cut(n_clusters=21)
    with pytest.raises(ParameterError, match="k must be at most 19"):
        t.linkage_matrix(20)


@pytest.mark.slow
@pytest.mark.parametrize(("linkage", "metric"), SCHEMES)
def test_batches_come_and_go(client, small_samples, linkage, metric):
    x = mixture(600)
    t = et.distributed.cluster(x[:300], client, linkage=linkage, metric=metric, part_size=80)
    assert t.insert(da.from_array(x[300:500], chunks=(70, 4))) == range(300, 500)
    check(t, linkage)
    t.remove(range(0, 500, 3))
    check(t, linkage)
    assert t.insert(x[500:]) == range(500, 600)
    check(t, linkage)
    live = np.setdiff1d(np.arange(600), np.arange(0, 500, 3))
    np.testing.assert_array_equal(t.keys().compute(), live)
    np.testing.assert_array_equal(t.to_hierarchy().points(), x[live])
    np.testing.assert_array_equal(t.cut(n_clusters=9).compute(), t.to_hierarchy().cut(n_clusters=9))


@pytest.mark.slow
def test_a_batch_many_times_as_large_as_the_tree(client):
    x = mixture(300)
    t = et.distributed.cluster(x[:10], client, part_size=25)
    t.insert(da.from_array(x[10:], chunks=(20, 4)))
    check(t)
    assert t.n_parts > 6
    assert max(part.subtrees.n_leaves for part in t._runner().gather(list(t._tree.handles.values()))) <= 50


@pytest.mark.slow
def test_chunks_of_a_later_batch_do_not_matter(client):
    x = np.random.default_rng(1).normal(size=(400, 4))
    found = []
    for rows in (40, 27):
        t = et.distributed.cluster(x[:10], client, part_size=40)
        t.insert(da.from_array(x[10:], chunks=(rows, 4)))
        found.append(t.linkage_matrix(399))
    np.testing.assert_array_equal(*found)


@pytest.mark.slow
def test_removing_all_and_starting_again(client):
    t = et.distributed.cluster(mixture(40), client, part_size=15)
    t.remove(t.keys())
    assert len(t) == 0
    t.validate()
    assert t.keys().compute().size == 0
    assert t.insert(mixture(30, seed=1)) == range(40, 70)
    check(t)
    t.remove(41)
    assert 41 not in t.keys().compute()


@pytest.mark.slow
def test_an_edit_that_fails_changes_nothing(client):
    x = mixture(60)
    t = et.distributed.cluster(x, client, part_size=20)
    before, report = t.linkage_matrix(59), t.report
    with pytest.raises(UnknownKeyError, match="key 60, 77:"):
        t.remove([0, 60, 77])
    with pytest.raises(UnknownKeyError, match="'a': keys are numbers"):
        t.remove([1, "a"])
    with pytest.raises(DuplicateKeyError, match="more than once: 3"):
        t.remove(np.array([3, 4, 3]))
    with pytest.raises(DimensionError, match="4 columns"):
        t.insert(da.from_array(x[:, :3], chunks=(20, 3)))
    with pytest.raises(NotFiniteError, match="row 1"):
        t.insert(np.full((2, 4), [[0.0], [np.inf]]))

    def stop(progress) -> None:
        if progress.step == "insert":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        t.insert(x, progress=stop)
    assert t.insert(np.empty((0, 4))) == range(60, 60)
    t.remove([])
    np.testing.assert_array_equal(t.linkage_matrix(59), before)
    assert t.report is report
    t.validate()
    assert t.insert(x[:1]) == range(60, 61)


def test_the_largest_value_so_far_counts_for_overflow(client, monkeypatch, tmp_path):
    t = et.distributed.cluster([[1e150, 0.0], [0.0, 1.0]], client)
    t.save(tmp_path / "tree")
    seen = []
    monkeypatch.setattr("evertree.distributed.distributed_hierarchy.checked_largest", lambda *given: seen.append(given))
    t.insert([[1.0, 1.0]])
    et.distributed.load(tmp_path / "tree", client).insert([[1.0, 1.0], [2.0, 2.0]])
    assert seen == [(3.0, 1e150, 2), (4.0, 1e150, 2)]


@pytest.mark.slow
def test_labels_are_of_the_moment_at_which_the_tree_was_cut(client):
    x = mixture(60)
    t = et.distributed.cluster(x, client, part_size=20)
    expected = t.to_hierarchy().cut(n_clusters=5)
    labels = t.cut(n_clusters=5)
    t.remove(range(40))
    np.testing.assert_array_equal(labels.compute(), expected)


@pytest.mark.slow
def test_broken_trees_are_noticed(client):
    t = et.distributed.cluster(mixture(60), client, part_size=20)
    t.validate()
    t._n_points -= 1
    with pytest.raises(InvariantError, match="60 points, and not 59"):
        t.validate()
    t._n_points += 1
    top = t._tree.top
    t._tree.top = top._replace(ids=top.ids[::-1] + 1)
    with pytest.raises(InvariantError, match="the top"):
        t.validate()
    t._tree.top = top
    number, handle = next(iter(t._tree.handles.items()))
    part = handle.result()
    trees = part.subtrees
    for wrong, text in (
        ({"children": trees.children[::-1].copy()}, "no forest"),
        ({"ids": trees.ids + 1}, "in two parts"),
        ({"size": -trees.size}, "not positive"),
    ):
        broken = part._replace(subtrees=trees._replace(**wrong))
        t._tree.handles[number] = t.client.submit(lambda value: value, broken)
        with pytest.raises(InvariantError, match=text):
            t.validate()


@pytest.mark.slow
def test_progress_is_told(client):
    steps = []
    et.distributed.cluster(mixture(80), client, part_size=20, progress=steps.append)
    assert {"read", "plan", "route", "build", "summarise", "search", "rebalance"} <= {step.step for step in steps}
    assert all(0 < step.done <= step.total and step.seconds >= 0 for step in steps)


@pytest.mark.parametrize("has_rich", [True, False])
def test_a_bar_in_the_terminal(client, has_rich, monkeypatch, capsys):
    if not has_rich:
        monkeypatch.setitem(sys.modules, "rich.console", None)
    et.distributed.cluster(mixture(20), client, progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert ("build: 1 tasks done" in err) != has_rich


def test_closing_lets_a_given_client_live(client):
    before = set(client.futures)
    with et.distributed.cluster(mixture(20), client) as t:
        assert t.client is client
        labels = t.cut(n_clusters=2)
        assert set(client.futures) - before
    assert labels.compute().max() == 1
    del labels
    gc.collect()
    assert set(client.futures) <= before
    assert client.status == "running"
    assert repr(t).endswith("20 points, 4 columns of float64, in 1 part, closed")
    with pytest.raises(ClosedError, match="closed: load it"):
        t.cut(n_clusters=2)
    assert et.distributed.cluster(mixture(20)).client is client  # the current one


def test_tasks_of_an_edit_that_fails_are_given_up(client):
    """Also where somebody keeps the traceback, as a shell does, which refers to all of them."""
    t = et.distributed.cluster(mixture(60), client, part_size=20)
    before = set(client.futures)

    def stop(progress) -> None:
        if progress.step == "insert":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as kept:
        t.insert(mixture(60, seed=1), progress=stop)
    assert kept.tb is not None
    t.validate()
    left = set(client.futures) - before
    assert not {key for key in left if not key.startswith("validate-")}


def test_keys_fit_a_tree_that_another_thread_edits_meanwhile(client, monkeypatch):
    t = et.distributed.cluster(mixture(60), client, part_size=20)
    count = et.distributed.keyed_arrays.count_blocks

    def edit_meanwhile(*given):
        blocks = count(*given)
        monkeypatch.undo()
        t.remove(range(30))
        return blocks

    monkeypatch.setattr("evertree.distributed.keyed_arrays.count_blocks", edit_meanwhile)
    assert t.keys().compute().tolist() == list(range(60))
    assert t.keys().compute().tolist() == list(range(30, 60))


def test_bytes_of_workers_that_came_and_went(client, monkeypatch):
    counts = iter([{"lost": 100, "there": 50}, {"there": 80, "new": 5}])
    monkeypatch.setattr("evertree.distributed.dask_runner.DaskRunner.bytes_sent", lambda _: next(counts))
    assert et.distributed.cluster(mixture(20), client).report.bytes_moved == 35


def test_a_client_that_is_not_the_current_one(client):
    with distributed.Client(client.scheduler.address, set_as_default=False) as other:
        t = et.distributed.cluster(mixture(30), other, part_size=20)
        t.remove(t.keys()[:10])
        assert len(t) == 20
    with pytest.raises(ParameterError, match="client must be running; it is closed"):
        et.distributed.cluster(mixture(20), other)


@pytest.mark.parametrize("name", ["cluster", "load", "DistributedHierarchy"])
def test_without_dask_the_remedy_is_named(name, monkeypatch):
    monkeypatch.delitem(vars(et.distributed), name, raising=False)  # which has been used before
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtraError, match=r"needs distributed: pip install 'evertree\[distributed\]'"):
        getattr(et.distributed, name)


def test_names_of_the_package():
    assert {"cluster", "load", "DistributedHierarchy"} <= set(dir(et.distributed))
    with pytest.raises(AttributeError, match="attribute nothing"):
        _ = et.distributed.nothing


@pytest.mark.parametrize("is_lazy", [False, True])
def test_columns_go_by_name(client, tmp_path, is_lazy):
    x = mixture(60, 3)
    frame = pd.DataFrame(x, columns=["a", "b", "c"])

    def given(some):
        return dd.from_pandas(some, npartitions=2) if is_lazy else some

    t = et.distributed.cluster(given(frame[:40]), client, part_size=20)
    assert t.column_names == ("a", "b", "c")
    t.save(tmp_path / "tree")
    t = et.distributed.load(tmp_path / "tree", client)
    t.insert(given(frame[40:][["c", "a", "b"]]))
    h = t.to_hierarchy()
    np.testing.assert_array_equal(h.points(), x)
    assert h.column_names == ("a", "b", "c")
    with pytest.raises(ColumnNamesError, match="it lacks 'c', and has the unknown 'd'"):
        t.insert(given(frame[:3].rename(columns={"c": "d"})))
    assert len(t) == 60
