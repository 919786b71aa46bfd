"""The files of points that commands read: what is made of them, and what is said where they are wrong."""

from __future__ import annotations

import gzip
import io
from datetime import date
from decimal import Decimal

import numpy as np
import pytest

from cli_tools import error_of, pa, parquet, run, three_groups
from evertree.cli.input_files import read_points
from evertree.cli.input_source import InputFile
from evertree.errors import DataError, EvertreeError, FileFormatError, InvalidKeyError, KeysError
from evertree.hierarchy import Hierarchy


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def points_of(tmp_path):
    """Read a file with some content."""

    def read(content, name="points.csv", **options):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return read_points(InputFile(path, **options))

    return read


def test_text(points_of):
    points = points_of("id,x,note,y\na,1,hello,2.5\nb,-3e2,,4\n", key="id")
    np.testing.assert_array_equal(points.values, [[1, 2.5], [-300, 4]])
    assert points.values.dtype == np.float64
    assert points.keys == ["a", "b"]
    assert (points.key_name, points.columns, points.left_out) == ("id", ["x", "y"], ["note"])


def test_columns_by_name_and_in_that_order(points_of):
    points = points_of("x,y,z\n1,2,3\n4,5,6\n", columns="z, x")
    np.testing.assert_array_equal(points.values, [[3, 1], [6, 4]])
    points = points_of('"x,1",y\n1,2\n', columns='"x,1"')
    np.testing.assert_array_equal(points.values, [[1]])


def test_no_header(points_of):
    points = points_of("7,1,2\n8,3,4\n", has_header=False)
    assert points.columns == ["1", "2", "3"]
    points = points_of("7,1,2\n8,3,4\n", has_header=False, key="1", columns="3")
    np.testing.assert_array_equal(points.values, [[2], [4]])
    assert points.keys == [7, 8]


@pytest.mark.parametrize(
    ("name", "content", "options"),
    [
        ("points.tsv", "x\ty\n1\t2\n", {}),
        ("points.txt", "x;y\n1;2\n", {"delimiter": ";"}),
        ("points.csv", "x,y\r\n1,2\r\n", {}),
        ("points.csv", "\ufeffx,y\n1,2", {}),
        ("points.csv", 'x,y,note\n1,2,"two\nlines, and a comma"\n', {}),
        ("points.csv.gz", gzip.compress(b"x,y\n1,2\n"), {}),
        ("points.tsv.gz", gzip.compress(b"x\ty\n1\t2\n"), {}),
        ("points", "x,y\n\n1,2\n\n", {}),
        ("points.csv", "x,y,b\n1,2,\n", {}),
        ("points.csv", "PAR1,x,y\na,1,2\n", {}),
    ],
)
def test_kinds_of_text(points_of, name, content, options):
    points = points_of(content, name, **options)
    assert points.columns == ["x", "y"]
    np.testing.assert_array_equal(points.values, [[1, 2]])


def test_blank_lines_around_a_single_column(points_of):
    np.testing.assert_array_equal(points_of("\n\nx\n1\n2\n\n\n").values, [[1], [2]])


def test_truth_values_are_numbers(points_of):
    np.testing.assert_array_equal(points_of("x,y\n1,true\n2,false\n").values, [[1, 1], [2, 0]])


def test_an_index_without_a_name_is_left_out(points_of):
    """As pandas writes it by default."""
    points = points_of(",x\n0,5\n1,6\n")
    assert (points.columns, points.left_out) == (["x"], ["(no name)"])


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("", {}, "is empty"),
        ("\n\n", {}, "is empty"),
        ("x,y\n", {}, "has columns, but no rows"),
        ("1.5,2\n3,4\n", {}, "has numbers where the names of columns should be: 1.5, 2. Give --no-header"),
        ("x,y\n1,2\n3\n", {}, "row 2 has 1 values, and the rows before it have 2"),
        ("x,y\n1,2\n3,4,5\n", {}, "row 2 has 3 values, and the rows before it have 2"),
        ("1,2\n3\n", {"has_header": False}, "row 2 has 1 values"),
        (f"x,y\n1,2\n{'3' * (1 << 25)},4\n", {}, "has a line of more than 16 MB: is a quotation mark missing?"),
        ("x,y\n1,2\n3,\n4,5\n,6\n", {}, "missing values in rows 2, 4, columns 'x', 'y'"),
        ("x,y\n1,2\n3,NA\n", {}, "missing values in row 2, column 'y'"),
        ("x,y\n1,2\n3,inf\n", {}, "infinite values in row 2, column 'y'"),
        ("x,y\n1,2\n3,4o\n5,6\n", {}, "column 'y' has '4o' in row 2, which is not a number"),
        ("x,y\n1,a\n2,b\n", {"columns": "y"}, "column 'y' has 'a' in row 1, which is not a number"),
        ("x,y\n1,2020-01-01\n", {"columns": "y"}, "column 'y' has no numbers, but values of type date32"),
        ("x,y\n1,2\n", {"columns": "x,z"}, "has no column 'z'; it has 'x', 'y'"),
        ("x,y\n1,2\n", {"key": "id"}, "has no column 'id'; it has 'x', 'y'"),
        ("1,2\n", {"has_header": False, "key": "id"}, "has no column 'id'; it has '1', '2'"),
        ("x,x\n1,2\n", {}, "more than one column named 'x'"),
        ("x,y\na,b\n", {}, "has no column of numbers to compare; it has 'x', 'y'"),
        ("id\n1\n", {"key": "id"}, "has no column of numbers"),
        ("x;y\n1;2\n", {}, "did you mean --delimiter ';'?"),
        ("x,y\n1,2\n", {"delimiter": "::"}, "--delimiter must be one character"),
        ("id,x\na,1\n,2\n", {"key": "id"}, "column 'id' has no key in row 2"),
        ("id,x\na,1\na,2\n", {"key": "id"}, "--key id: keys must differ; given more than once: 'a'"),
        (b"\x00\x01binary\x00", {}, "is neither text (in UTF-8) nor Parquet, .npy or .npz"),
        ("x,y\n1,2\n".encode("utf-16"), {}, "is text in UTF-16: save it as UTF-8"),
        (b"SQLite format 3\0" + bytes(100), {}, "is an SQLite database"),
        (b"PAR1\0 but no more", {}, "is damaged"),
        (b"PAR1 but no more, PAR1", {}, "is damaged"),
        (b"x,\xff\n1,2\n", {}, "is not text in UTF-8: convert it"),
        (b"x,id\n1,a\n2,\xff\n", {"key": "id"}, "row 2, column 2 is not text in UTF-8"),
        (b"1,a\n2,\xff\n", {"key": "2", "has_header": False}, "row 2, column 2 is not text in UTF-8"),
        ("x\n1\n\n2\n", {}, "has a blank line where row 2 should be"),
        ("\n1\r\n2\r\n\r\n4\r\n", {"has_header": False}, "has a blank line where row 3 should be"),
        (gzip.compress(b"x\n\n2\n", mtime=0), {}, "has a blank line where row 1 should be"),
        ("x;y\n\n1;2\n", {}, "did you mean --delimiter ';'?"),
        ("x,id\n1,2\n", {"columns": "x,id", "key": "id"}, "--columns must leave out the key: 'id'"),
        ("x,y\n1,2\n", {"columns": "x,y,x"}, "--columns must name each column once; given more than once: 'x'"),
        (b"\x1f\x8b but no more", {}, "cannot be read"),
    ],
)
def test_what_is_wrong_is_said(points_of, content, options, message):
    with pytest.raises((DataError, FileFormatError, KeysError, EvertreeError)) as error:
        points_of(content, **options)
    assert message in str(error.value)
    assert "points.csv" in str(error.value) or message.startswith("--")


def test_a_slip_far_into_a_file(points_of):
    """What comes late must not be taken for what came first."""
    lines = ["x,y", *(f"{i},{i}" for i in range(200_000))]
    assert points_of("\n".join([*lines, "1.5,2.5"])).values[-1].tolist() == [1.5, 2.5]
    with pytest.raises(DataError, match=r"column 'y' has 'oops' in row 200001"):
        points_of("\n".join([*lines, "1,oops"]))


def test_keys_in_text(points_of):
    """Whole numbers where they are written like one; nothing is lost: 007 stays."""
    points = points_of("id,x\n7,1\n007,2\n-3,3\n1.0,4\nNA,5\n0,6\n+1,7\n99999999999999999999,8\n", key="id")
    assert points.keys == [7, "007", -3, "1.0", "NA", 0, "+1", "99999999999999999999"]
    assert points.keys_are_text


def test_parquet_keeps_types(points_of, tmp_path):
    file = io.BytesIO()
    table = pa.table(
        {
            "day": [date(2020, 1, 1), date(2020, 1, 2)],
            "code": ["7", "8"],
            "x": pa.array([1.5, 2.5], pa.float32()),
            "d": [Decimal("1.25"), Decimal("2.5")],
        }
    )
    parquet.write_table(table, file)
    points = points_of(file.getvalue(), "p", key="code")
    assert points.keys == ["7", "8"]
    assert not points.keys_are_text
    assert (points.columns, points.left_out) == (["x", "d"], ["day"])
    points = points_of(file.getvalue(), "p", key="day", columns="x")
    assert points.keys == [date(2020, 1, 1), date(2020, 1, 2)]
    assert points.values.dtype == np.float32


def npy(array) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def npz(**arrays) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def test_arrays(points_of):
    X = three_groups(4)
    points = points_of(npy(X), "p.npy")
    np.testing.assert_array_equal(points.values, X)
    assert points.columns == ["1", "2"]
    np.testing.assert_array_equal(points_of(npy(X), "p.npy", columns="2").values, X[:, 1:])
    assert points_of(npy(X.astype(np.float32)), "p.npy").values.dtype == np.float32


def test_archives_of_arrays(points_of):
    X = three_groups(4)
    np.testing.assert_array_equal(points_of(npz(X=X, other=X + 1), "p.npz").values, X)
    np.testing.assert_array_equal(points_of(npz(only=X, y=np.arange(4)), "p.npz").values, X)
    points = points_of(npz(a=X, b=X + 1, names=np.array(["p", "q", "r", "s"])), "p.npz", array="b", key="names")
    np.testing.assert_array_equal(points.values, X + 1)
    assert points.keys == ["p", "q", "r", "s"]


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        (npy(np.arange(3.0)), {}, "must have a matrix, a row for each point; the array has 1 dimension"),
        (npy(np.array([["a"]])), {}, "must have numbers; the array is of type <U1"),
        (npy(np.array([[np.nan, 1.0]])), {}, "missing values in row 1, column '1'"),
        (npy(np.zeros((2, 2)))[:-5], {}, "cannot be read"),
        (npy(np.zeros((0, 2))), {}, "has columns, but no rows"),
        (npy(np.zeros((2, 2))), {"columns": "0,3"}, "has columns 1 to 2; there is no column '0', '3'"),
        (npy(np.zeros((2, 2))), {"key": "id"}, "has no array 'id' with keys"),
        (npz(a=np.zeros((2, 2)), b=np.zeros((2, 2))), {}, "has the matrices 'a', 'b': name the one with the points"),
        (npz(a=np.zeros(2)), {}, "has no matrix, but 'a'"),
        (npz(a=np.zeros((2, 2))), {"array": "X"}, "has no array 'X'; it has 'a'"),
        (npz(X=np.zeros((2, 2)), k=np.zeros(3)), {"key": "k"}, "must have a key for each of the 2 points"),
        (npz(X=np.zeros((2, 2)), k=np.array([1, np.nan])), {"key": "k"}, "has no key in row 2"),
        (b"PK\x03\x04 but no more", {}, "cannot be read"),
    ],
)
def test_what_is_wrong_with_arrays(points_of, content, options, message):
    with pytest.raises((DataError, FileFormatError, InvalidKeyError)) as error:
        points_of(content, "p", **options)
    assert message in str(error.value)


def test_a_saved_tree_is_no_table(tmp_path):
    h = Hierarchy()
    h.insert(three_groups(3))
    h.save("tree.evertree")
    assert "is a saved tree, not a table of points" in error_of("cluster", "tree.evertree")


@pytest.mark.parametrize("content", [b"x,y\n0,0\n0,1\n9,9\n", npy([[0.0, 0.0], [0.0, 1.0], [9.0, 9.0]])])
def test_standard_input(content):
    result = run("cluster", "-", "-k", 2, stdin=content)
    assert result.stdout == "key,n_clusters=2\n0,0\n1,0\n2,1\n"
    assert error_of("cluster", "-", stdin="") == "standard input is empty"


def test_files_that_cannot_be_opened(tmp_path):
    assert error_of("cluster", "nothing.csv") == "nothing.csv: No such file or directory"
    assert error_of("cluster", tmp_path) == f"{tmp_path}: Is a directory"
