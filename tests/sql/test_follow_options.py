"""Options of `follow` that are refused, and the cuts that they ask for."""

from __future__ import annotations

import json

import pytest
import sqlalchemy as sa

import evertree as et
import postgres
from evertree.errors import EvertreeError, ParameterError
from evertree.sql import follow
from evertree.sql.follow_options import CutColumn, FollowOptions, as_cuts
from evertree.tree.scheme import Scheme
from followed import Source

NONE = et.Partition.of([], [])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"table": "nothing"}, "table must be a table or a view of the database; there is no 'nothing'"),
        ({"table": 3}, "table must be a name; it is 3"),
        (
            {"key": "nothing"},
            "key must be of the table 'items', which has 'id', 'x', 'y', 'version'; it has no 'nothing'",
        ),
        ({"key": ["id", "x"]}, "key must be a name"),
        ({"columns": ["x", "no"]}, "columns must be of the table 'items', .* it has no 'no'"),
        ({"columns": []}, "columns must be a list of names"),
        ({"columns": ["x", "x"]}, "columns must differ"),
        ({"columns": None}, "it got neither"),
        ({"vector": "x"}, "it got both"),
        ({"columns": None, "vector": "no"}, "vector must be of the table"),
        ({"version": "no"}, "version must be of the table"),
        ({"n_clusters": None}, "follow takes n_clusters, height or min_cluster_size; it got none"),
        ({"n_clusters": 0}, "n_clusters must be a positive integer; it is 0"),
        ({"n_clusters": "3"}, "n_clusters must be a number or a collection of numbers"),
        ({"height": -1}, "height must be a non-negative number"),
        ({"min_cluster_size": 0}, "min_cluster_size must be a positive integer"),
        ({"metric": "precomputed", "linkage": "average"}, "metric must compare rows"),
        ({"linkage": "best"}, "linkage must be"),
        ({"linkage": "ward", "metric": "cosine"}, "Ward needs Euclidean geometry"),
        ({"metric": "mahalanobis", "metric_params": {"VI": [[1.0]]}}, "must be 2 × 2"),
        ({"dtype": "int8"}, "dtype must be None, 'float32' or 'float64'; it is 'int8'"),
        ({"chunk": 0}, "chunk must be a positive integer"),
        ({"seconds": -1}, "seconds must be None or a non-negative number"),
        ({"prefix": ""}, "prefix must be None or a name"),
        ({"scores": "far"}, "scores must be 'jump' or 'displacement'; it is 'far'"),
        ({"key": "score", "scores": "jump"}, "key must not have the name of a column that is written; 'score' is one"),
        ({"key": "n_clusters_3"}, "key must not have the name of a column that is written"),
    ],
)
def test_parameters_that_are_refused(options, message, tmp_path):
    source = Source("sqlite", tmp_path)
    source.insert([(1, 0.0, 0.0)])
    with pytest.raises(EvertreeError, match=message):
        source.follow(**options)


def test_a_name_that_the_database_would_cut_off():
    url = postgres.shared_server().new_database()
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        connection.exec_driver_sql(f"CREATE TABLE {'t' * 50} (id int, x float8)")
    engine.dispose()
    with pytest.raises(ParameterError, match="prefix must be so short that names have at most 63 bytes"):
        follow(url, "t" * 50, "id", ["x"])


def test_names_of_cuts_differ():
    heights = [2.5, 2, 0.00001, 1e16, 1e-16, 1.5e-7, 25, 2.05]
    names = [cut.name for cut in as_cuts([2, 3], heights, None)]
    assert names[:6] == ["n_clusters_2", "n_clusters_3", "height_2_5", "height_2", "height_1e_05", "height_1e16"]
    assert len(set(names)) == len(names) == 10
    assert all(name.replace("_", "").isalnum() for name in names)
    assert len(as_cuts([2, 2, 2], [1, 1.0], None)) == 2


def test_clusters_without_a_number():
    h = et.Hierarchy("single")
    h.insert([[0.0], [1.0], [3.0], [4.0], [20.0], [21.0], [90.0]])
    for method in (None, "eom", "leaf"):
        (cut,) = as_cuts(None, None, 2, method)
        assert (cut.name, cut.method) == ("min_cluster_size_2", method or "eom")
        assert cut.partition(h, NONE).labels.tolist() == h.cut(min_cluster_size=2, method=method).tolist()
    with pytest.raises(ParameterError, match="method must be 'eom' or 'leaf'; it is 'dbscan'"):
        as_cuts(None, None, 2, "dbscan")
    with pytest.raises(ParameterError, match="method must be given with a least size alone; it is 'leaf'"):
        as_cuts(3, None, 2, "leaf")


def options_for(cuts):
    names = {"table": "items", "key": "id", "columns": ("x",), "vector": None, "version": None, "schema": None}
    scheme = {"scheme": Scheme("ward", "euclidean"), "scores": None, "dtype": None}
    return FollowOptions(**names, **scheme, cuts=cuts, prefix="p_", seconds=None, chunk=1)


def test_tables_of_release_0_1_have_the_smallest_clusters():
    """They were written without a method."""
    for cuts, others in ((as_cuts(None, None, 2, "leaf"), as_cuts(None, None, 2)), (as_cuts(3, None, 2), None)):
        stored = json.loads(options_for(cuts).as_json())
        del stored["method"]
        options_for(cuts).check_stored(json.dumps(stored))
        if others is not None:
            with pytest.raises(ParameterError, match=r"method must be 'leaf', as when .* were written; it is 'eom'"):
                options_for(others).check_stored(json.dumps(stored))


def test_clusters_of_a_minimum_size_are_as_many_as_there_are():
    h = et.Hierarchy(goal="stable")
    h.insert([[0.0], [1.0], [10.0], [11.0], [20.0], [21.0], [90.0]])
    h.refine()
    cut = CutColumn("n_clusters_3", 3, None, 2)
    assert cut.partition(h, NONE).labels.tolist() == [0, 0, 1, 1, 2, 2, -1]
    assert CutColumn("n_clusters_2", 2, None, 2).partition(h, NONE).labels.max() == 1
    h.remove([4, 6])
    h.refine()
    assert cut.partition(h, NONE).labels.tolist()[:4] == [0, 0, 1, 1]
    h.remove([0, 1, 2, 3])
    assert cut.partition(h, NONE).labels.tolist() == [-1]
