"""Keys on the command line: in files of several kinds, in lists, by name."""

from __future__ import annotations

import datetime
import io
import uuid
from pathlib import Path

import numpy as np
import pytest

import evertree as et
from cli_tools import error_of, json_of, pa, parquet, run, three_groups
from evertree.cli.input_files import read_points
from evertree.cli.input_source import InputFile
from evertree.cli.key_text import find_keys, match_live_keys, parse_key
from evertree.errors import InvalidKeyError
from evertree.hierarchy import Hierarchy


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty folder, which tests are in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def tree_of(keys: list) -> None:
    with et.open("tree.db") as h:
        h.insert(three_groups(len(keys)), keys=keys)


def left() -> list:
    with et.open("tree.db", read_only=True) as h:
        return h.keys()


def test_words_are_whole_numbers_where_they_are_written_like_one():
    words = ("7", "007", "-0", "x", "1.0", "+1", "99999999999999999999")
    assert [parse_key(word) for word in words] == [7, *words[1:]]


def test_keys_are_found_as_text_first():
    h = Hierarchy()
    h.insert(three_groups(3), keys=["7", 8, "x"])
    assert match_live_keys(h, [7, 8, "x", 9]) == ["7", 8, "x", 9]


DAY, MOMENT = datetime.date(2020, 1, 2), datetime.datetime(2020, 1, 2, 3, 4, 5)
ID = uuid.UUID(int=7)


@pytest.mark.parametrize("key", [2.5, DAY, MOMENT, ID, b"ab", (1, "a")])
def test_keys_of_any_type_have_a_name(key):
    """That under which ``cut`` shows them."""
    tree_of([key, "other", 3])
    assert str(key) in run("cut", "tree.db", "-k", 2, "-o", "-").stdout.replace('"', "")
    run("remove", "tree.db", str(key))
    assert left() == ["other", 3]


def test_a_name_that_several_keys_have():
    """The text is meant, and none where that is not there."""
    tree_of(["2020-01-02", DAY, ID])
    run("remove", "tree.db", "2020-01-02")
    assert left() == [DAY, ID]
    h = Hierarchy()
    h.insert(three_groups(2), keys=[(DAY,), (datetime.date(2020, 1, 2), 1)])
    assert find_keys(h, ["(datetime.date(2020, 1, 2),)", "gone"]) == [(DAY,), "gone"]


class Namesake:
    """All of them read the same."""

    def __str__(self) -> str:
        return "same"


def test_a_name_that_is_not_unique_names_nobody():
    h = Hierarchy()
    h.insert(three_groups(2), keys=[Namesake(), Namesake()])
    assert find_keys(h, ["same"]) == ["same"]


def test_names_are_counted_once():
    tree_of([2.5, 3])
    assert json_of("remove", "tree.db", "2.5", "2.5", "3")["removed"] == 2


def test_a_list_of_keys_with_a_mark_of_its_order():
    """As Windows begins text files."""
    for source in ("gone.txt", "-"):
        content = "\ufeffä\r\n7\n".encode()
        tree_of(["ä", 7, "b"])
        Path("gone.txt").write_bytes(content)
        run("remove", "tree.db", "--keys-from", source, stdin=content)
        assert left() == ["b"]
        Path("tree.db").unlink()


@pytest.mark.parametrize("key", ["a\u2028b", "a\x0cb", "a\x85b", "a\x1cb"])
def test_only_line_feeds_end_a_key(key):
    tree_of([key, "c"])
    run("remove", "tree.db", "--keys-from", "-", stdin=f"{key}\n".encode())
    assert left() == ["c"]


def test_a_list_that_is_no_text(folder):
    tree_of([1, 2])
    (folder / "gone.txt").write_bytes(b"1\n\xff\n")
    assert "gone.txt must be text in UTF-8" in error_of("remove", "tree.db", "--keys-from", "gone.txt")
    text = error_of("remove", "tree.db", "--keys-from", "-", stdin=b"\xff\n")
    assert "standard input must be text in UTF-8" in text


@pytest.fixture
def keys_of(folder):
    """Read the keys of an .npz file, or of a Parquet file."""

    def read(keys, kind="npz"):
        X = three_groups(len(keys))
        file = io.BytesIO()
        if kind == "npz":
            np.savez(file, X=X, k=keys)
        else:
            parquet.write_table(pa.table({"k": keys, "x": X[:, 0]}), file)
        (folder / "points").write_bytes(file.getvalue())
        return read_points(InputFile(folder / "points", key="k")).keys

    return read


TIMES = [
    (["2020-01-01", "2020-01-02"], ["2020-01-01", "2020-01-02"]),
    (["2020-01-01", "2020-01-01T05:06:07.25"], ["2020-01-01T00:00:00", "2020-01-01T05:06:07.25"]),
    (["1960-01-01T00:00:01"], ["1960-01-01T00:00:01"]),
]


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
@pytest.mark.parametrize(("times", "keys"), TIMES)
def test_times_are_text(keys_of, times, keys, unit):
    found = np.array(times, f"M8[{unit}]")
    assert keys_of(found) == keys
    assert keys_of(pa.array(found), "parquet") == keys


def test_times_of_other_units(keys_of):
    assert keys_of(np.array(["2020", "2021"], "M8[Y]")) == ["2020-01-01", "2021-01-01"]
    assert keys_of(np.array(["2020-01-01T05"], "M8[h]")) == ["2020-01-01T05:00:00"]


def test_times_of_a_zone(keys_of):
    """They are said in that of Greenwich."""
    times = pa.array(np.array(["2020-01-01", "2020-01-02"], "M8[us]"), pa.timestamp("us", "Europe/Berlin"))
    assert keys_of(times, "parquet") == ["2020-01-01T00:00:00Z", "2020-01-02T00:00:00Z"]


def test_times_that_are_missing(keys_of):
    times = np.array(["2020-01-01", "NaT"], "M8[ns]")
    with pytest.raises(InvalidKeyError, match="'k' has no key in row 2"):
        keys_of(times)
    with pytest.raises(InvalidKeyError, match="column 'k' has no key in row 2"):
        keys_of(pa.array(times), "parquet")


def test_spans_of_time_are_no_keys(keys_of):
    spans = np.array([1, 2], "m8[ns]")
    for keys, kind in ((spans, "npz"), (pa.array(spans), "parquet")):
        with pytest.raises(InvalidKeyError, match="has time spans, which cannot be keys"):
            keys_of(keys, kind)
