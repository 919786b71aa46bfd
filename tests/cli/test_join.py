"""``--join`` and ``--drop-missing``: labels beside the table that came in, and rows without values."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pytest

import evertree as et
from cli_tools import error_of, json_of, pa, parquet, run

THINGS = """\
id,name,width,zip,height
c1,"cup, small",8.0,00123,9.50
c2,mug,,00124,10
p1,plate,26,99999,2
p2,"a ""dish"" for two",24.5,99999,NA
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder with a table that lacks two values, which tests are in."""
    (tmp_path / "things.csv").write_text(THINGS)
    (tmp_path / "whole.csv").write_text("id,x,note\n007,1.50,a\n8,9.0,\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def rows_of(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text)))


CHOSEN = ["--columns", "width,height", "--drop-missing"]


def test_rows_without_values_are_left_out():
    result = run("cluster", "things.csv", "--key", "id", *CHOSEN, "-k", 2)
    assert result.stdout == "id,n_clusters=2\nc1,0\np1,1\n"
    said = "evertree: things.csv: 2 rows with missing values are left out: rows 2, 4\n"
    assert result.stderr.startswith(said)
    found = json_of("cluster", "things.csv", "--key", "id", *CHOSEN, "-k", 2)
    assert (found["points"], found["dropped"]) == (2, [2, 4])


def test_which_rows_is_said_on_standard_error():
    """Also where nothing but an object goes to standard output."""
    result = run("insert", "tree.db", "things.csv", *CHOSEN, "--json")
    assert result.stderr.startswith("evertree: things.csv: 2 rows with missing values")
    assert run("cluster", "whole.csv", "--columns", "x", "--drop-missing", "-k", 2).stderr.startswith("2 points")


def test_without_the_option_they_are_errors():
    text = error_of("cluster", "things.csv", "--columns", "width,height")
    assert text.endswith(
        "missing values in rows 2, 4, columns 'width', 'height': fill them, or leave these rows out with --drop-missing"
    )


def test_a_key_may_be_missing_too():
    rows = "id,x\na,1\n,2\nc,3\n"
    result = run("cluster", "-", "--key", "id", "--drop-missing", "-k", 2, "--join", stdin=rows)
    assert result.stdout == "id,x,n_clusters=2\na,1,0\n,2,\nc,3,1\n"


def test_of_arrays(folder):
    X = np.array([[1.0, 2.0], [np.nan, 3.0], [9.0, 9.0]])
    np.savez("points.npz", X=X, id=np.array(["a", "b", "c"]))
    result = run("cluster", "points.npz", "--key", "id", "--drop-missing", "-k", 2, "--join")
    assert result.stdout == "id,1,2,n_clusters=2\na,1.0,2.0,0\nb,nan,3.0,\nc,9.0,9.0,1\n"
    assert run("cluster", "points.npz", "--key", "id", "--drop-missing", "-k", 2).stdout.endswith("a,0\nc,1\n")


def test_no_row_has_all_values():
    assert error_of("cluster", "-", "--drop-missing", stdin="x,y\n1,\n,2\n") == (
        "standard input has no row without missing values"
    )


def test_infinite_values_are_not_missing():
    text = error_of("cluster", "-", "--drop-missing", stdin="x,y\n1,\n2,inf\n3,4\n")
    assert text == "standard input has infinite values in row 2, column 'y': correct them, or remove these rows"


def test_dissimilarities_need_every_row():
    rows = "a,b,c\n0,1,2\n1,0,\n2,3,0\n"
    for command in (["cluster", "-"], ["insert", "new.db", "-"]):
        text = error_of(*command, "--metric", "precomputed", "--linkage", "single", "--drop-missing", stdin=rows)
        assert "--drop-missing would break the order of precomputed dissimilarities" in text


def test_anomalies_are_named_by_their_rows_in_the_file():
    with et.open("tree.db") as h:
        h.insert([[8.0, 9.0], [8.5, 9.5], [9.0, 9.0]])
    found = json_of("anomalies", "tree.db", "things.csv", *CHOSEN)
    assert [row["row"] for row in found["anomalies"]] == [3, 1]


def test_rows_in_errors_are_those_of_the_file():
    zeros = "x,y\n1,1\n2,2\n0,0\n"
    words = ["--metric", "cosine", "--linkage", "single"]
    for command in (["cluster", "-"], ["cluster", "-", "--batch"], ["insert", "new.db", "-"]):
        text = error_of(*command, *words, stdin=zeros)
        assert text.startswith("standard input: ")
        assert "row 3" in text
    run("insert", "new.db", "-", *words, stdin="x,y\n1,1\n")
    assert "row 3" in error_of("insert", "new.db", "-", *words, stdin=zeros)
    text = error_of("cluster", "-", *words, "--drop-missing", stdin="x,y\n1,\n2,2\n0,0\n")
    assert "row 2" in text
    assert text.endswith("rows are counted without those left out")


def test_labels_beside_the_table():
    """Values are as they were written; a row that is left out has no label."""
    result = run("cluster", "things.csv", "--key", "id", *CHOSEN, "-k", 2, "-k", 1, "--join")
    header, *rows = rows_of(result.stdout)
    before, *others = rows_of(THINGS)
    assert header == [*before, "n_clusters=2", "n_clusters=1"]
    assert [row[:5] for row in rows] == others
    assert [row[5:] for row in rows] == [["0", "0"], ["", ""], ["1", "0"], ["", ""]]


def test_labels_beside_a_table_without_keys_or_names():
    result = run("cluster", "-", "--no-header", "--columns", "2", "-k", 2, "--join", stdin="a,01\nb,5\n")
    assert result.stdout == "1,2,n_clusters=2\na,01,0\nb,5,1\n"
    result = run("cluster", "-", "--no-header", "--key", "1", "-k", 2, "--join", stdin="01,1\nb,5\n")
    assert result.stdout == "1,2,n_clusters=2\n01,1,0\nb,5,1\n"


def test_noise_is_not_a_row_that_is_left_out():
    result = run("cluster", "-", "--min-cluster-size", 2, "--drop-missing", "--join", stdin="x,y\n1,1\n2,1\n3,\n")
    assert [row[2] for row in rows_of(result.stdout)[1:]] == ["-1", "-1", ""]


def test_files(folder):
    result = run("cluster", "whole.csv", "--columns", "x", "-k", 2, "--join", "-o", "joined.tsv")
    assert Path("joined.tsv").read_text() == "id\tx\tnote\tn_clusters=2\n007\t1.50\ta\t0\n8\t9.0\t\t1\n"
    assert "labels: joined.tsv" in result.stdout
    run("cluster", "joined.tsv", "--columns", "x", "-k", 1, "--join", "-o", "again.csv")
    assert rows_of(Path("again.csv").read_text())[0] == ["id", "x", "note", "n_clusters=2", "n_clusters=1"]


def test_parquet_has_types():
    run("cluster", "things.csv", *CHOSEN, "--key", "name", "-k", 2, "--join", "-o", "joined.parquet")
    table = parquet.read_table("joined.parquet")
    assert table.column_names == ["id", "name", "width", "zip", "height", "n_clusters=2"]
    assert table.schema.field("width").type == pa.float64()
    assert table["n_clusters=2"].to_pylist() == [0, None, 1, None]
    run("cluster", "joined.parquet", *CHOSEN, "--key", "id", "-k", 1, "--join", "-o", "joined.csv")
    assert rows_of(Path("joined.csv").read_text())[2] == ["c2", "mug", "", "124", "10.0", "", ""]


def test_a_name_that_is_taken():
    text = error_of("cluster", "-", "--columns", "x", "-k", 1, "--join", stdin="x,n_clusters=1\n1,0\n")
    assert text == "--join would write a second column 'n_clusters=1': standard input has one already"


@pytest.mark.parametrize("words", [["--save", "tree.evertree"], ["-k", 2, "--json"]])
def test_there_must_be_labels_to_join(words):
    assert "needs a table of clusters" in error_of("cluster", "whole.csv", "--join", *words, code=2)
