"""``evertree upsert``: new values for points that are there, and those that are not, all or nothing."""

from __future__ import annotations

import pytest

import evertree as et
from cli_tools import error_of, json_of, run

ROWS = "id,x,y\n1,0,10\nb,1,11\n3,50,90\n"
CHANGES = "id,x,y\n1,2,12\nnew,7,8\n"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder with a tree, which tests are in."""
    monkeypatch.chdir(tmp_path)
    run("insert", "tree.db", "-", "--key", "id", stdin=ROWS)
    return tmp_path


def points(path="tree.db") -> dict:
    with et.open(path, read_only=True) as h:
        h.validate()
        return dict(zip(h.keys(), h.points().tolist(), strict=True))


def test_a_new_tree():
    result = run("upsert", "new.db", "-", "--key", "id", "--linkage", "average", stdin=ROWS)
    assert result.stdout == "3 points inserted, 0 updated; new.db has 3\n"
    assert points("new.db") == points()


def test_points_that_are_there_and_others():
    result = run("upsert", "tree.db", "-", "--key", "id", stdin=CHANGES)
    assert result.stdout == "1 point inserted, 1 updated; tree.db has 4\n"
    assert points() == {1: [2.0, 12.0], "b": [1.0, 11.0], 3: [50.0, 90.0], "new": [7.0, 8.0]}


def test_with_json():
    found = json_of("upsert", "tree.db", "-", "--key", "id", stdin=CHANGES)
    assert (found["created"], found["inserted"], found["updated"], found["points"]) == (False, 1, 1, 4)
    assert (found["first_key"], found["last_key"]) == ("new", "new")
    found = json_of("upsert", "tree.db", "-", "--key", "id", stdin=CHANGES)
    assert (found["inserted"], found["updated"], found["first_key"]) == (0, 2, None)


def test_all_or_nothing():
    before = points()
    error_of("upsert", "tree.db", "-", "--key", "id", stdin="id,x,y\n1,2,12\nnew,7e200,8\n")
    assert points() == before


def test_rows_that_are_left_out_change_nothing():
    result = run("upsert", "tree.db", "-", "--key", "id", "--drop-missing", stdin="id,x,y\n1,,12\nb,5,6\n")
    assert result.stdout == "0 points inserted, 1 updated; tree.db has 3\n"
    assert result.stderr == "evertree: standard input: 1 row with missing values is left out: row 1\n"
    assert (points()[1], points()["b"]) == ([0.0, 10.0], [5.0, 6.0])


def test_columns_in_another_order():
    run("upsert", "tree.db", "-", "--key", "id", stdin="y,id,x\n12,1,2\n8,new,7\n")
    assert points()[1] == [2.0, 12.0]
    assert points()["new"] == [7.0, 8.0]


def test_what_is_wrong_is_said():
    assert "--key" in error_of("upsert", "tree.db", "-", code=2)
    assert "given more than once: 1" in error_of(
        "upsert", "tree.db", "-", "--key", "id", stdin="id,x,y\n1,1,1\n1,2,2\n"
    )
    assert "did you mean 'id'?" in error_of("upsert", "tree.db", "-", "--key", "Id", stdin=ROWS)


def test_with_a_window():
    run("upsert", "new.db", "-", "--key", "id", "--max-age", 5, "--time", 0, stdin=ROWS)
    result = run("upsert", "new.db", "-", "--key", "id", "--keep-last", 3, "--time", 1, stdin=CHANGES)
    assert result.stdout == "1 point inserted, 0 updated, 1 gone; new.db has 3\n"  # 1 was the oldest
    assert list(points("new.db")) == ["b", 3, "new"]
    assert error_of("upsert", "new.db", "-", "--key", "id", stdin=CHANGES).endswith("give --time here too")
    run("upsert", "new.db", "-", "--key", "id", "--time", 6, stdin="id,x,y\nlast,1,1\n")
    assert list(points("new.db")) == ["new", "last"]


def test_dissimilarities():
    words = ["--key", "id", "--metric", "precomputed", "--linkage", "single"]
    run("upsert", "given.db", "-", *words, stdin="id,a,b\na,0,1\nb,1,0\n")
    result = run("upsert", "given.db", "-", "--key", "id", stdin="id,a,b,c\nb,2,0,3\nc,4,3,0\n")
    assert result.stdout == "1 point inserted, 1 updated; given.db has 3\n"
    error_of("upsert", "given.db", "-", "--key", "id", "--keep-last", 1, stdin="id,a\nb,2\n")
    with et.open("given.db", read_only=True) as h:
        assert (len(h), h.window) == (3, None)
