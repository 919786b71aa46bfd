"""What a newcomer's first files run into: each ends with one line that says what to do."""

from __future__ import annotations

import pickle
import zipfile

import numpy as np
import pytest

from cli_tools import error_of, json_of, run, three_groups


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty folder, which tests are in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


SEMICOLONS = "id;x;y\na;1;2\nb;3;4\n"
COMMAS = "id;x;y\na;1,5;2\nb;3;4,25\n"


@pytest.mark.parametrize(
    ("content", "typed"),
    [
        (SEMICOLONS, "';'"),
        (COMMAS, "';'"),
        (SEMICOLONS.replace(";", "\t"), "tab"),
        (SEMICOLONS.replace(";", "|"), "'|'"),
        (SEMICOLONS.replace(";", " "), "' '"),
    ],
)
def test_one_column_that_looks_like_several(content, typed, folder):
    for words in ([], ["--key", "id"], ["--columns", "x,y"], ["--no-header"]):
        text = error_of("cluster", "-", *words, stdin=content)
        assert text.endswith(f"did you mean --delimiter {typed}?")
    found = json_of("cluster", "-", "--key", "id", "--delimiter", typed.strip("'"), "--decimal", ",", stdin=content)
    assert (found["points"], found["columns"]) == (2, ["x", "y"])


def test_commas_in_a_file_of_tabs(folder):
    (folder / "points.tsv").write_text("x,y\n1,2\n")
    assert error_of("cluster", "points.tsv").endswith("did you mean --delimiter ','?")
    assert run("cluster", "points.tsv", "--delimiter", ",", "-k", 1).exit_code == 0


@pytest.mark.parametrize("content", ["name\nred; green\nblue\n", "name\n" + "a;b\n" * 2 + "c\n", "x\n1\n2\n"])
def test_no_delimiter_is_named_if_lines_do_not_agree(content):
    result = run("cluster", "-", "-k", 1, stdin=content, code=0 if "1" in content else 1)
    assert "--delimiter" not in result.stderr


@pytest.mark.parametrize("typed", ["tab", "\\t", "\t"])
def test_ways_to_type_a_tab(typed):
    assert run("cluster", "-", "--delimiter", typed, "-k", 1, stdin="x\ty\n1\t2\n").stdout.endswith("0,0\n")


def test_a_decimal_comma():
    text = error_of("cluster", "-", "--key", "id", "--delimiter", ";", stdin=COMMAS)
    assert text.endswith(
        "column 'x' has '1,5' in row 1, which is not a number: give --decimal ',' if that is a decimal comma"
    )
    assert "--decimal ','" in error_of("cluster", "-", "--delimiter", ";", "--columns", "y", stdin=COMMAS)
    words = ["--key", "id", "--delimiter", ";", "--decimal", ","]
    assert run("cluster", "-", *words, "-k", 2, stdin=COMMAS).stdout == "id,n_clusters=2\na,0\nb,1\n"
    assert "--decimal must be one character" in error_of("cluster", "-", "--decimal", "comma", stdin=COMMAS)


def test_numbers_with_a_plus_sign():
    found = json_of("cluster", "-", stdin="x,y\n+1.5,2\n-3,4\n")
    assert found["columns"] == ["x", "y"]


@pytest.mark.parametrize("wrong", ["Width", "widht", "width_"])
def test_a_mistake_in_the_name_of_a_column(wrong):
    rows = "id,width,height\na,1,2\n"
    text = error_of("cluster", "-", "--columns", f"{wrong},height", stdin=rows)
    assert text == f"standard input has no column {wrong!r}; it has 'id', 'width', 'height': did you mean 'width'?"
    assert error_of("cluster", "-", "--key", "ID", stdin=rows).endswith("did you mean 'id'?")


def test_spaces_around_names():
    rows = "id , x, y\n007,1,2\n8,3,4\n"
    result = run("cluster", "-", "--key", "id", "--columns", "x,y", "-k", 2, "--join", stdin=rows)
    assert result.stdout == "id,x,y,n_clusters=2\n007,1,2,0\n8,3,4,1\n"
    assert run("cluster", "-", "--key", "id", "-k", 2, stdin=rows).stdout.splitlines()[1] == "007,0"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("points.csv", b"", "points.csv is empty"),
        ("points.csv", b"x,y\r\n", "points.csv has columns, but no rows"),
        ("points.csv", b"Gr\xf6\xdfe,y\n1,2\n", "points.csv is not text in UTF-8: convert it, with iconv"),
        ("points.csv", bytes(range(256)) * 5, "points.csv is neither text (in UTF-8) nor Parquet"),
        ("points.csv", b"<!DOCTYPE html><html></html>", "points.csv is HTML or XML: save the table as CSV"),
        ("points.csv", b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n", "points.csv is a PDF, not a table"),
        ("points.csv", b"\x89PNG\r\n\x1a\n\0\0", "points.csv is a picture, not a table"),
        ("points.xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0", "points.xls is an Excel file: save the table as CSV"),
        ("points.h5", b"\x89HDF\r\n\x1a\n\0", "points.h5 is an HDF5 file"),
        ("points.feather", b"ARROW1\0\0", "points.feather is an Arrow file: save the table as Parquet"),
        ("points.csv.bz2", b"BZh91AY&SY\xff\xff", "points.csv.bz2 is compressed by bzip2: decompress it, or use gzip"),
        ("points.csv.zst", b"\x28\xb5\x2f\xfd\x04", "points.csv.zst is compressed by Zstandard"),
        ("points.pkl", pickle.dumps([1.5] * 3, protocol=4), "points.pkl is a pickle of Python"),
    ],
)
def test_files_of_other_kinds_are_named(name, content, message, folder):
    (folder / name).write_bytes(content)
    assert error_of("cluster", name).startswith(message)


def test_text_that_begins_like_another_kind():
    assert run("cluster", "-", "--key", "ORC", "-k", 1, stdin="ORC,größe\na,1\n").stdout.endswith("a,0\n")


@pytest.mark.parametrize(
    ("member", "message"),
    [
        ("xl/workbook.xml", "is an Excel file: save the table as CSV"),
        ("content.xml", "is an OpenDocument file: save the table as CSV"),
        ("points.csv", "is a zip archive without NumPy's arrays: unpack it"),
    ],
)
def test_archives_of_other_kinds_are_named(member, message):
    with zipfile.ZipFile("book.xlsx", "w") as archive:
        archive.writestr(member, "x,y\n1,2\n")
    assert error_of("cluster", "book.xlsx") == f"book.xlsx {message}"


def test_a_folder_and_a_file_that_is_not_there(folder):
    (folder / "folder").mkdir()
    for command in (
        ["cluster", "folder"],
        ["insert", "tree.db", "folder"],
        ["info", "folder"],
        ["cut", "folder", "-k", 2],
    ):
        assert error_of(*command) == "folder: Is a directory"
    assert error_of("insert", "tree.db", "nothing.csv") == "nothing.csv: No such file or directory"
    assert not (folder / "tree.db").exists()


def test_a_table_where_a_tree_should_be(folder):
    (folder / "points.csv").write_text("x,y\n1,2\n")
    assert error_of("cut", "points.csv", "-k", 2).endswith("evertree cluster makes one of points")


def test_more_clusters_than_points_are_refused_before_the_work(monkeypatch):
    np.save("points.npy", three_groups(4))
    monkeypatch.setattr("evertree.cli.commands.cluster.insert_with_bar", None)
    text = error_of("cluster", "points.npy", "-k", 5)
    assert text == "--n-clusters must be an integer from 1 to 4, the number of points; it is 5"
