"""``evertree anomalies``: which points stand apart, of trees and of tables."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest

import evertree as et
from cli_tools import error_of, json_of, parquet, run

NEW = "id,x,y\nfar,90,90\nnear,1,2\n"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder, which tests are in: tree.db has the points 0 to 24 in a group, and an outlier."""
    monkeypatch.chdir(tmp_path)
    X = [[i % 5, i // 5] for i in range(25)]
    with et.open("tree.db") as h:
        h.insert(X)
        h.insert([[40.0, 3.0]], keys=["out"])
        h.save("tree.evertree")
    (tmp_path / "new.csv").write_text(NEW)
    return tmp_path


@pytest.fixture
def h():
    return et.load("tree.evertree")


def rows_of(text: str) -> list[dict]:
    return list(csv.DictReader(io.StringIO(text)))


@pytest.mark.parametrize("tree", ["tree.db", "tree.evertree"])
def test_points_of_a_tree(tree, h):
    header, first, *others = run("anomalies", tree).stdout.splitlines()
    assert header.split() == ["key", "score", "size", "ratio", "height", "reason"]
    assert first.split()[:4] == ["out", f"{h.anomaly_scores()[25]:,.6g}", "1", "25"]
    assert first.endswith(f"  {h.anomalies(n=1)[0].reason}")
    assert len(others) == 9
    assert len({line.index("joins") for line in (first, *others) if "  joins" in line}) == 1  # columns are aligned


def test_how_many():
    assert len(run("anomalies", "tree.db", "--top", 3).stdout.splitlines()) == 4
    assert len(run("anomalies", "tree.db", "--all").stdout.splitlines()) == 27
    assert "give either --top or --all" in error_of("anomalies", "tree.db", "--all", "--top", 3, code=2)
    assert "--top" in error_of("anomalies", "tree.db", "--top", 0, code=2)


@pytest.mark.parametrize("measure", ["jump", "displacement"])
def test_all_scores_in_a_table(measure, h):
    text = run("anomalies", "tree.db", "--all", "--measure", measure, "--output", "-").stdout
    found = {row["key"]: float(row["score"]) for row in rows_of(text)}
    scores = h.anomaly_scores(measure=measure)
    assert found == {str(key): score for key, score in zip(h.keys(), scores.tolist(), strict=True)}
    assert list(found.values()) == sorted(found.values(), reverse=True)


def test_above(h):
    scores = np.sort(h.anomaly_scores())
    assert json_of("anomalies", "tree.db", "--above", 0)["found"] == 26  # more than 10
    assert json_of("anomalies", "tree.db", "--above", 0, "--top", 3)["found"] == 3
    assert json_of("anomalies", "tree.db", "--above", scores[-1] - 1e-6)["found"] == 1
    assert json_of("anomalies", "tree.db", "--above", scores[-1], "--all")["anomalies"] == []


def test_nothing_above_is_no_output():
    result = run("anomalies", "tree.db", "new.csv", "--key", "id", "--above", 1e6)
    assert result.output == ""
    result = run("anomalies", "tree.db", "--above", 1e6, "--output", "-")
    assert result.output == "key,score,size,ratio,height,reason\n"
    assert run("anomalies", "tree.db", "--above", 1e6, "-o", "x.parquet").stdout == "0 of 26 points: x.parquet\n"
    assert parquet.read_table("x.parquet").num_rows == 0


def test_points_of_a_table(h):
    found = json_of("anomalies", "tree.db", "new.csv", "--key", "id")
    expected = h.anomalies([[90.0, 90.0], [1.0, 2.0]])
    names = ("score", "size", "ratio", "height", "reason")
    rows = [{"key": key} for key in ("far", "near")]
    for row, one in zip(rows, expected, strict=True):
        row.update({name: getattr(one, name) for name in names})
    about = {"tree": "tree.db", "measure": "jump", "points": 2, "found": 2, "output": None}
    assert found == {**about, "anomalies": rows}
    with et.open("tree.db", read_only=True) as durable:
        assert len(durable) == 26


def test_points_without_keys_are_named_by_their_rows(folder):
    text = run("anomalies", "tree.db", "-", "--columns", "x,y", "-o", "-", stdin="x,y\n90,90\n900,2\n").stdout
    assert [row["row"] for row in rows_of(text)] == ["2", "1"]
    np.save("new.npy", [[90.0, 90.0], [1.0, 2.0]])
    assert [row["row"] for row in json_of("anomalies", "tree.db", "new.npy")["anomalies"]] == [1, 2]
    (folder / "new.tsv").write_text("1\t2\n90\t90\n")
    assert run("anomalies", "tree.db", "new.tsv", "--no-header").stdout.splitlines()[1].split()[0] == "2"


def test_files():
    result = run("anomalies", "tree.db", "new.csv", "--key", "id", "-o", "found.parquet")
    assert result.stdout == "2 of 2 points: found.parquet\n"
    table = parquet.read_table("found.parquet")
    assert table.column_names == ["id", "score", "size", "ratio", "height", "reason"]
    assert table["id"].to_pylist() == ["far", "near"]
    found = json_of("anomalies", "tree.db", "--top", 1, "-o", "found.tsv")
    assert found == {"tree": "tree.db", "measure": "jump", "points": 26, "found": 1, "output": "found.tsv"}
    with open("found.tsv", encoding="utf-8") as file:
        assert next(csv.DictReader(file, delimiter="\t"))["key"] == "out"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["new.csv", "--columns", "x"], "new.csv must have 2 columns, as the points before it had; it has 1 (x)"),
        (["wide.csv"], "it has 3 (x, y, z); left out, without numbers or a name: id"),
        (["nothing.csv"], "nothing.csv: No such file or directory"),
        (["-o", "tree.db"], "--output must end with .csv or .tsv or .parquet; it is tree.db"),
        (["new.csv", "-o", "new.csv"], "--output would write over new.csv, which is read"),
        (["new.csv", "--key", "name"], "new.csv has no column 'name'; it has 'id', 'x', 'y'"),
    ],
)
def test_what_cannot_be_done_is_refused(words, message, folder):
    (folder / "wide.csv").write_text("id,x,y,z\na,1,2,3\n")
    before = {path: path.read_bytes() for path in folder.iterdir()}
    assert message in error_of("anomalies", "tree.db", *words)
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize("words", [["--key", "id"], ["--columns", "x"], ["--no-header"], ["--delimiter", ";"]])
def test_options_of_a_table_need_one(words):
    assert "give POINTS" in error_of("anomalies", "tree.db", *words, code=2)


def test_a_wrong_command_line():
    assert "nothing else" in error_of("anomalies", "tree.db", "--json", "-o", "-", code=2)
    assert "'far' is not one of 'jump'" in error_of("anomalies", "tree.db", "--measure", "far", code=2)


def test_a_tree_without_points():
    et.Hierarchy().save("empty.evertree")
    assert "is a tree without points: see evertree insert" in error_of("anomalies", "empty.evertree")


def test_points_that_a_function_compares():
    h = et.Hierarchy("single", metric=lambda s, t: abs(len(s) - len(t)))
    h.insert(["a", "bb", "ccccc"])
    h.save("texts.evertree")
    assert json_of("anomalies", "texts.evertree", "--top", 1)["anomalies"][0]["key"] == 2
    assert "metric is a function" in error_of("anomalies", "texts.evertree", "new.csv")


def test_dissimilarities():
    h = et.Hierarchy("average", "precomputed")
    h.insert(1.0 - np.eye(4))
    h.save("d.evertree")
    found = json_of("anomalies", "d.evertree", "-", stdin="a,b,c,d\n1,1,1,1\n9,9,9,9\n")
    assert [row["row"] for row in found["anomalies"]] == [2, 1]
    assert "the dissimilarities to keys()" in error_of("anomalies", "d.evertree", "-", stdin="a,b\n1,1\n")


def test_a_tree_that_another_writes_to():
    with et.open("tree.db") as h:
        h.insert([[-90.0, 0.0]], keys=["mine"])
        assert json_of("anomalies", "tree.db", "--top", 1)["anomalies"][0]["key"] == "mine"


def test_keys_that_json_does_not_have():
    with et.open("bytes.db") as h:
        h.insert([[0.0], [1.0], [9.0]], keys=[b"a", b"b", b"c"])
    text = run("anomalies", "bytes.db", "--json").stdout
    assert json.loads(text)["anomalies"][0]["key"] == "b'c'"
