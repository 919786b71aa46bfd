"""Points in JSON: an object in each line, or an array of objects."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

from cli_tools import error_of, json_of, run
from evertree.cli.input_files import read_points
from evertree.cli.input_source import InputFile
from evertree.errors import DataError, EvertreeError, FileFormatError

LINES = '{"id": "a", "x": 1, "y": 2.5, "note": "p"}\n\n{"id": 7, "x": 3, "y": 4, "tags": [1, 2]}\n'
ARRAY = '[\n {"id": "a", "x": 1, "y": 2.5},\n {"id": 7, "x": 3, "y": 4}\n]\n'


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def points_of(tmp_path):
    """Read a file with some content."""

    def read(content, name="points.jsonl", **options):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return read_points(InputFile(path, **options))

    return read


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("points.jsonl", LINES),
        ("points.ndjson", LINES),
        ("points.jsonl", LINES.rstrip("\n")),
        ("points.jsonl", LINES.replace("\n", "\r\n")),
        ("points.jsonl", "\ufeff" + LINES),
        ("points.jsonl.gz", gzip.compress(LINES.encode())),
        ("points.json", ARRAY),
        ("points.json", LINES),
        ("points.json.gz", gzip.compress(ARRAY.encode())),
        ("points", LINES),
        ("points.csv", ARRAY),
    ],
)
def test_kinds_of_json(points_of, name, content):
    points = points_of(content, name, key="id")
    np.testing.assert_array_equal(points.values, [[1, 2.5], [3, 4]])
    assert points.keys == ["a", 7]
    assert not points.keys_are_text
    assert points.columns == ["x", "y"]
    assert points.left_out == ([] if "[\n" in str(content) or name.startswith("points.json.") else ["note", "tags"])


def test_keys_keep_their_types(points_of):
    content = '{"id": "7", "x": 1}\n{"id": 7, "x": 2}\n{"id": 2.5, "x": 3}\n{"id": 99999999999999999999, "x": 4}\n'
    assert points_of(content, key="id").keys == ["7", 7, 2.5, 99999999999999999999]
    assert points_of('{"id": "2020-01-01", "x": 1}', key="id").keys == ["2020-01-01"]


def test_fields_that_rows_lack_are_missing(points_of):
    content = '{"x": 1, "y": 2}\n{"x": 3}\n{"x": 4, "y": null, "z": 5}\n'
    with pytest.raises(DataError, match=r"missing values in rows 1, 2, 3, columns 'y', 'z': fill them, or leave"):
        points_of(content)
    points = points_of(content, drop_missing=True, columns="y,x")
    np.testing.assert_array_equal(points.values, [[2, 1]])
    assert points.dropped == [2, 3]


def test_numbers_of_any_size(points_of):
    points = points_of('{"x": 1152921504606846977, "y": 1e3}\n{"x": 0.5, "y": 12345678901234567890123}\n')
    assert points.columns == ["x", "y"]
    np.testing.assert_array_equal(points.values, [[2.0**60, 1e3], [0.5, 12345678901234567890123.0]])


def test_numbers_as_text_are_compared_where_they_are_named(points_of):
    content = '{"zip": "01234", "x": 1}\n{"zip": "99999", "x": 2}\n'
    assert points_of(content).left_out == ["zip"]
    np.testing.assert_array_equal(points_of(content, columns="zip").values, [[1234], [99999]])
    with pytest.raises(DataError, match=r"no column of numbers .*: choose those .* as text with --columns x,y"):
        points_of('{"x": "1", "y": "2"}\n')


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("", {}, "is empty"),
        ("\n \n", {}, "is empty"),
        ("[]", {}, "has no rows"),
        ('{"x": 1}\n{"x": \n', {}, "line 2 cannot be read as JSON: Expecting value at column"),
        ('[{"x": 1},]', {}, "cannot be read as JSON"),
        ("[[1, 2], [3, 4]]", {}, "row 1 is an array, not an object"),
        ("[1, 2]\n[3, 4]\n", {}, "line 1 is an array, not an object"),
        ('{"x": 1}\n3\n', {}, "line 2 is a number, not an object"),
        ('{"x": 1}\nnull\n', {}, "line 2 is null, not an object"),
        ('{"x": {"0": 1, "1": 2}, "y": {"0": 1, "1": 2}}', {}, "is one JSON object of others: a table is an array"),
        ('{\n"x": [1, 2]\n}', {}, "is one JSON object: a table is an array"),
        ('{"x": 1, "y": 2}\n{"x": 2, "y": "none"}\n{"x": 2, "y": 3}\n', {}, "column 'y' has 'none' in row 2, which is"),
        ('{"x": 1}\n{"x": NaN}\n', {}, "missing values in row 2, column 'x'"),
        ('{"x": 1}\n{"x": Infinity}\n', {}, "infinite values in row 2, column 'x'"),
        ('{"x": 1}\n{"x": 1' + 400 * "0" + "}\n", {}, "infinite values in row 2, column 'x'"),
        ('{"x": 1' + 5000 * "0" + "}\n", {}, "line 1 cannot be read as JSON"),
        ("[" * 100_000, {}, "cannot be read as JSON"),
        ('{"x": 1}\n', {"columns": "y"}, "has no column 'y'; it has 'x'"),
        ('{"x": 1}\n', {"key": "id"}, "has no column 'id'; it has 'x'"),
        ('{"id": 1, "x": 1}\n{"x": 1}\n', {"key": "id"}, "column 'id' has no key in row 2"),
        ('{"id": [1], "x": 1}\n', {"key": "id"}, "--key id"),
        ('{"x": [1, 2]}\n', {"columns": "x"}, "column 'x' has '[1, 2]' in row 1, which is not a number"),
        (b'{"x": "\xff"}\n', {}, "is not text in UTF-8"),
        ('{"x": 1}\n', {"format": "csv"}, "--format must be left out: "),
        ("x,y\n1,2\n", {"format": "jsonl"}, "line 1 cannot be read as JSON"),
        ("x,y\n1,2\n", {}, "line 1 cannot be read as JSON"),
    ],
)
def test_what_is_wrong_is_said(points_of, content, options, message):
    with pytest.raises((DataError, FileFormatError, EvertreeError)) as error:
        points_of(content, **options)
    assert message in str(error.value)
    assert "points.jsonl" in str(error.value)


@pytest.mark.parametrize("words", [[], ["--format", "jsonl"], ["--format", "json"]])
def test_standard_input(words):
    result = run("cluster", "-", *words, "--key", "id", "-k", 2, stdin=LINES)
    assert result.stdout == "id,n_clusters=2\na,0\n7,1\n"
    assert error_of("cluster", "-", *words, stdin="") == "standard input is empty"


def test_a_format_can_be_named():
    assert run("cluster", "-", "--format", "tsv", "-k", 1, stdin="x\ty\n1\t2\n").stdout.endswith("0,0\n")
    assert run("cluster", "-", "--format", "csv", "-k", 1, stdin="x,y\n1,2\n").stdout.endswith("0,0\n")
    assert "'yaml' is not one of 'csv'" in error_of("cluster", "-", "--format", "yaml", code=2)


def test_every_command_that_reads_points():
    assert json_of("insert", "tree.db", "-", "--key", "id", stdin=LINES)["inserted"] == 2
    assert json_of("anomalies", "tree.db", "-", "--key", "id", stdin=LINES)["points"] == 2
    assert run("cut", "tree.db", "-k", 2).stdout == "key,n_clusters=2\na,0\n7,1\n"


def test_joined_labels():
    rows = [{"x": 1, "t": True, "tags": [1, "ü"]}, {"x": 3.5, "note": "a, b"}, {"x": 9, "note": None}]
    text = "".join(f"{json.dumps(row)}\n" for row in rows)
    result = run("cluster", "-", "--columns", "x", "--height", 3, "--join", stdin=text)
    assert result.stdout == 'x,t,tags,note,height=3.0\n1.0,true,"[1, ""\\u00fc""]",,0\n3.5,,,"a, b",0\n9.0,,,,1\n'
