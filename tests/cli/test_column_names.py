"""The names of columns: the command line gives them to the library, which keeps and compares them."""

from __future__ import annotations

import numpy as np
import pytest

import evertree as et
from cli_tools import error_of, json_of, pa, parquet, run

ROWS = "id,x,y\na,0,10\nb,1,11\nc,50,90\n"
TURNED = "y,id,x\n10,d,0\n90,e,51\n"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder with a tree of the columns x and y, which tests are in."""
    monkeypatch.chdir(tmp_path)
    run("insert", "tree.db", "-", "--key", "id", stdin=ROWS)
    return tmp_path


def points() -> dict:
    with et.open("tree.db", read_only=True) as h:
        return dict(zip(h.keys(), h.points().tolist(), strict=True))


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_the_library_is_given_names(kind, monkeypatch, folder):
    table = pa.table({"id": ["d"], "x": pa.array([1.5], pa.float32()), "y": pa.array([2.5], pa.float32())})
    if kind == "parquet":
        parquet.write_table(table, "new.parquet")
    elif kind == "csv":
        (folder / "new.csv").write_text("id,x,y\nd,1.5,2.5\n")
    else:
        (folder / "new.jsonl").write_text('{"id": "d", "x": 1.5, "y": 2.5}\n')
    seen = []
    insert = et.Hierarchy.insert

    def spy(self, X, *args, **options):
        seen.append(X)
        return insert(self, X, *args, **options)

    monkeypatch.setattr(et.Hierarchy, "insert", spy)
    run("insert", "tree.db", f"new.{kind}", "--key", "id")
    run("cluster", f"new.{kind}", "--key", "id", "-k", 1)
    assert [X.column_names for X in seen] == [["x", "y"], ["x", "y"]]
    assert points()["d"] == [1.5, 2.5]


def test_what_has_no_names_is_given_as_an_array():
    np.save("new.npy", [[1.0, 2.0]])
    run("insert", "tree.db", "new.npy")
    run("insert", "tree.db", "-", "--no-header", stdin="3,4\n")
    run("insert", "given.db", "-", "--metric", "precomputed", "--linkage", "single", stdin="a,b\n0,1\n1,0\n")
    run("insert", "given.db", "-", stdin="a,b,c\n1,2,0\n")
    assert list(points().values())[-2:] == [[1.0, 2.0], [3.0, 4.0]]
    assert json_of("info", "given.db")["points"] == 3


def test_columns_in_another_order():
    run("insert", "tree.db", "-", "--key", "id", stdin=TURNED)
    assert points()["d"] == [0.0, 10.0]
    assert points()["e"] == [51.0, 90.0]


def test_updates_in_another_order():
    run("insert", "tree.db", "-", "--key", "id", "--update", stdin="y,id,x\n12,a,2\n7,f,8\n")
    assert points()["a"] == [2.0, 12.0]
    assert points()["f"] == [8.0, 7.0]


def test_anomalies_in_another_order():
    straight = json_of("anomalies", "tree.db", "-", "--key", "id", stdin="id,x,y\nd,0,10\ne,51,90\n")
    assert json_of("anomalies", "tree.db", "-", "--key", "id", stdin=TURNED) == straight


@pytest.mark.parametrize("command", ["insert", "anomalies"])
def test_columns_of_other_names(command):
    for stdin in ("id,x,z\nd,1,2\n", "id,x\nd,1\n", "id,x,y,z\nd,1,2,3\n"):
        text = error_of(command, "tree.db", "-", "--key", "id", stdin=stdin)
        assert text.startswith("standard input")
        assert "'y'" in text or "'z'" in text
    assert len(points()) == 3


def test_info_shows_the_names():
    assert "column names  x, y\n" in run("info", "tree.db").stdout
    assert json_of("info", "tree.db")["column_names"] == ["x", "y"]
    run("cluster", "-", "--key", "id", "--save", "tree.evertree", stdin=ROWS)
    assert json_of("info", "tree.evertree")["column_names"] == ["x", "y"]


def test_info_of_a_tree_without_names():
    np.save("new.npy", [[1.0, 2.0]])
    run("insert", "new.db", "new.npy")
    assert json_of("info", "new.db")["column_names"] is None
    assert "column names" not in run("info", "new.db").stdout
