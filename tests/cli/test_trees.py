"""The commands that change and read trees: insert, remove, refine, cut, plot, export, info, verify."""

from __future__ import annotations

import json
import os
import sqlite3

import numpy as np
import pytest

import evertree as et
from cli_tools import error_of, json_of, parquet, run, three_groups, write_files
from evertree.cli.progress_bar import refine_with_bar
from evertree.durable import DurableHierarchy
from evertree.durable.sqlite_file import STORE_VERSION
from evertree.io.archive import FORMAT_VERSION


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder with all files, which tests are in: tree.db has the points 0 to 42."""
    write_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def saved(folder):
    """A saved tree, for the commands that read both kinds."""
    run("export", "tree.db", "--save", "tree.evertree")
    return "tree.evertree"


def keys_in(path="tree.db") -> list:
    with et.open(path, read_only=True) as h:
        h.validate()
        return h.keys()


def test_insert_makes_a_tree():
    result = run("insert", "new.db", "points.csv", "--key", "id", "--linkage", "average", "--metric", "cityblock")
    assert result.stdout == "30 points inserted; new.db has 30\nleft out, without numbers or a name: name\n"
    with et.open("new.db", read_only=True) as h:
        assert (h.linkage, h.metric, h.keys()) == ("average", "cityblock", list(range(30)))
        np.testing.assert_array_equal(h.points(), three_groups())


def test_insert_into_a_tree():
    assert run("insert", "tree.db", "new.csv", "--key", "id").stdout == "2 points inserted; tree.db has 45\n"
    assert keys_in()[-2:] == [100, 101]
    result = run("insert", "tree.db", "points.npy")
    assert result.stdout == "30 points inserted (keys 102 to 131); tree.db has 75\n"


def test_insert_with_json():
    found = json_of("insert", "tree.db", "new.csv", "--key", "id")
    assert found.pop("seconds") > 0
    assert found == {
        "tree": "tree.db",
        "created": False,
        "inserted": 2,
        "updated": 0,
        "gone": 0,
        "first_key": 100,
        "last_key": 101,
        "points": 45,
        "columns": ["x", "y"],
        "left_out": [],
        "dropped": [],
    }
    assert json_of("insert", "new.db", "points.csv", "--key", "id")["created"]


def test_update():
    assert "taken already: 1: evertree upsert gives" in error_of("insert", "tree.db", "changes.csv", "--key", "id")
    assert 200 not in keys_in()
    result = run("insert", "tree.db", "changes.csv", "--key", "id", "--update")
    assert result.stdout == "1 point inserted, 1 updated; tree.db has 44\n"
    with et.open("tree.db", read_only=True) as h:
        assert h.points()[1].tolist() == [0.5, 0.1]
        assert 200 in h
    assert "needs --key" in error_of("insert", "tree.db", "changes.csv", "--update", code=2)


def test_an_update_that_fails_changes_nothing(folder):
    """Also where new points came in before it: cosine has no use for a row of zeros."""
    run(
        "insert",
        "c.db",
        "-",
        "--key",
        "id",
        "--linkage",
        "single",
        "--metric",
        "cosine",
        stdin="id,x,y\n1,1,2\n2,2,1\n",
    )
    text = "id,x,y\n3,1,1\n2,0,0\n"
    assert "row" in error_of("insert", "c.db", "-", "--key", "id", "--update", stdin=text)
    assert keys_in("c.db") == [1, 2]


def test_an_insert_that_fails_changes_nothing(folder):
    before = keys_in()
    text = error_of("insert", "tree.db", "-", stdin="x,y,z\n1,2,3\n")
    assert text == "standard input must have 2 columns, as the points before it had; it has 3 (x, y, z)"
    text = error_of("insert", "tree.db", "-", stdin="x,y\n1,\n")
    assert text.endswith("it has 1 (x); left out, without numbers or a name: y")
    assert "missing" in error_of("insert", "tree.db", "-", stdin="x,y\n1,\n2,3\n")
    assert keys_in() == before
    zeros = "x,y\n1,1\n0,0\n"
    error_of("insert", "new.db", "-", "--metric", "cosine", "--linkage", "single", stdin=zeros)
    assert not (folder / "new.db").exists()


def test_options_of_a_tree_that_is_there():
    """What can be done is said for the command line."""
    text = error_of("insert", "tree.db", "points.npy", "--linkage", "single")
    assert text.startswith("--linkage must be 'ward', as in ")
    assert text.endswith("it is 'single': use another file, or change this one with set_linkage() in Python")
    text = error_of("insert", "tree.db", "points.npy", "--metric", "sqeuclidean")
    assert "--metric must be 'euclidean'" in text
    assert text.endswith("with set_metric() in Python")
    text = error_of("insert", "tree.db", "points.npy", "--search-width", 0)
    assert text.startswith("--search-width must be 'auto'")
    assert text.endswith("it is 0: use another file")
    assert len(keys_in()) == 43


def test_an_update_is_one_edit(monkeypatch):
    """So that nothing can come between the new points and the new values."""
    for name in ("insert", "update"):
        monkeypatch.setattr(DurableHierarchy, name, None)
    run("insert", "tree.db", "changes.csv", "--key", "id", "--update")
    with et.open("tree.db", read_only=True) as h:
        assert 200 in h
        assert h.points()[1].tolist() == [0.5, 0.1]


def test_an_update_without_memory_changes_nothing(monkeypatch):
    def upsert(*_, **__):
        raise MemoryError("no more")

    monkeypatch.setattr(DurableHierarchy, "upsert", upsert)
    assert "not enough memory" in error_of("insert", "tree.db", "changes.csv", "--key", "id", "--update")
    assert 200 not in keys_in()


def test_keys_of_a_tree_that_has_text(folder):
    """A key in a text file is the text that is live, and a number otherwise."""
    with et.open("text.db") as h:
        h.insert(three_groups(3), keys=["7", "8", "x"])
    run("insert", "text.db", "-", "--key", "id", "--update", stdin="id,x,y\n7,5,5\n9,6,6\n")
    assert keys_in("text.db") == ["7", "8", "x", 9]
    run("remove", "text.db", 8, 9, "x")
    assert keys_in("text.db") == ["7"]


def test_remove():
    assert run("remove", "tree.db", 3, "5").stdout == "2 points removed; tree.db has 41\n"
    assert run("remove", "tree.db", 4, "--keys-from", "-", stdin="7\n\n 9 \n7\n").stdout.startswith("3 points removed")
    assert not {3, 4, 5, 7, 9} & set(keys_in())


def test_remove_all_or_none():
    text = error_of("remove", "tree.db", 3, 99, "zebra")
    assert "no live point with the key 99, 'zebra', and none was removed" in text
    assert len(keys_in()) == 43
    found = json_of("remove", "tree.db", 3, 99, "zebra", "--missing-ok")
    assert found == {"tree": "tree.db", "removed": 1, "missing": 2, "points": 42}
    assert "by their keys" in error_of("remove", "tree.db", code=2)
    assert run("remove", "tree.db", "--keys-from", "-", stdin="").stdout.startswith("0 points removed")
    assert "nothing.txt: No such file" in error_of("remove", "tree.db", "--keys-from", "nothing.txt")


def test_remove_all():
    run("remove", "tree.db", *range(43))
    assert keys_in() == []
    assert "is a tree without points" in error_of("cut", "tree.db", "-k", 1)
    assert "is a tree without points" in error_of("plot", "tree.db", "-o", "x.png")
    assert json_of("info", "tree.db")["points"] == 0
    run("info", "tree.db")
    run("verify", "tree.db")
    run("refine", "tree.db")
    run("insert", "tree.db", "points.csv", "--key", "id", "--columns", "x,y")


def test_negative_keys():
    run("insert", "n.db", "-", "--key", "id", stdin="id,x\n-1,0\n-2,1\n")
    run("remove", "n.db", "--", -1)
    assert keys_in("n.db") == [-2]


def random_tree(path: str, n: int = 60) -> None:
    et.open(path, start=et.Hierarchy.random(np.random.default_rng(0).normal(size=(n, 2)))).close()


def test_refine():
    random_tree("random.db")
    found = json_of("refine", "random.db", "--moves", 5)
    assert (found["stopped_by"], found["moves"] + found["grafts"]) == ("moves", 5)
    assert json_of("info", "random.db")["pending"] > 0
    assert "the tree is homogeneous" in run("refine", "random.db", "--until", "homogeneous").stdout
    result = run("refine", "random.db", "--seconds", 100)
    assert "the tree is stable, quality 100.0%" in result.stdout
    assert json_of("info", "random.db")["pending"] == 0
    with et.open("random.db", read_only=True) as h:
        assert h.is_stable()


def test_a_quality_that_is_not_measured():
    random_tree("random.db")
    assert "the time is over, quality not measured" in run("refine", "random.db", "--seconds", 0).stdout
    assert json_of("refine", "random.db", "--seconds", 0)["quality"] is None


def test_ctrl_c_in_refine_keeps_what_was_reached(monkeypatch):
    random_tree("random.db")

    def interrupted(h, seconds, moves, until):
        h.refine(moves=7)
        return

    monkeypatch.setattr("evertree.cli.commands.refine.refine_with_bar", interrupted)
    result = run("refine", "random.db", code=130)
    assert "evertree: interrupted after 7 moves, which are kept" in result.stderr
    with et.open("random.db", read_only=True) as h:
        assert h.n_moves + h.n_grafts == 7
    found = json_of("refine", "random.db", code=130)
    assert (found["moves"] + found["grafts"], found["stopped_by"], found["stable"]) == (7, "interrupted", False)
    assert found["pending"] + found["due"] > 0
    assert found["seconds"] > 0


def test_a_refinement_that_is_interrupted_gives_no_report():
    h = et.Hierarchy.random(np.random.default_rng(0).normal(size=(60, 2)))

    def interrupting(*_, progress=None, **__):
        progress(et.Hierarchy.refine(h, moves=1))
        raise KeyboardInterrupt

    h.refine = interrupting
    assert refine_with_bar(h, None) is None


def test_cut(saved):
    for tree in ("tree.db", saved):
        header, *rows = run("cut", tree, "-k", 3, "--height", 4).stdout.splitlines()
        assert header == "key,n_clusters=3,height=4.0"
        assert len(rows) == 43
    result = run("cut", "tree.db", "-k", 3, "--min-cluster-size", 5, "-o", "labels.tsv")
    assert result.stdout.startswith("n_clusters=3: 3 clusters of")
    found = json_of("cut", "tree.db", "-k", 3, "-o", "labels.parquet")
    assert found["cuts"]["n_clusters=3"]["clusters"] == 3
    assert "labels" not in found
    with et.open("tree.db", read_only=True) as h:
        assert parquet.read_table("labels.parquet")["n_clusters=3"].to_pylist() == h.cut(n_clusters=3).tolist()
    assert "give --n-clusters" in error_of("cut", "tree.db", code=2)
    assert "nothing else" in error_of("cut", "tree.db", "-k", 2, "--json", "-o", "-", code=2)


def test_cut_with_json_alone():
    """The labels are in the object."""
    found = json_of("cut", "tree.db", "-k", 3, "-k", 2)
    with et.open("tree.db", read_only=True) as h:
        assert found["keys"] == h.keys()
        assert found["labels"] == {f"n_clusters={k}": h.cut(n_clusters=k).tolist() for k in (3, 2)}
    assert found["output"] is None


def test_keys_of_several_types_in_parquet():
    with et.open("mixed.db") as h:
        h.insert(three_groups(3), keys=["a", 1, 2.5])
    run("cut", "mixed.db", "-k", 2, "-o", "labels.parquet")
    assert parquet.read_table("labels.parquet")["key"].to_pylist() == ["a", "1", "2.5"]


def test_points_in_no_cluster():
    with et.open("noise.db") as h:
        h.insert([[0.0], [0.1], [0.2], [50.0], [9.0], [9.1], [9.2]])
    result = run("cut", "noise.db", "-k", 2, "--min-cluster-size", 3, "-o", "labels.csv")
    assert result.stdout == "n_clusters=2: 2 clusters of 3 points, 1 point in none\n"
    result = run("cut", "noise.db", "--min-cluster-size", 8, "-o", "labels.csv")
    assert "7 points in none" in result.stdout


def test_clusters_without_a_number():
    with et.open("lines.db", linkage="single") as h:
        h.insert([[0.0], [1.0], [4.0], [5.0], [50.0], [51.0], [100.0]])
    for options in (["--method", "leaf"], ["--method", "eom", "--epsilon", 4], ["--allow-single-cluster"]):
        labels = json_of("cut", "lines.db", "--min-cluster-size", 2, *options)["labels"]["min_cluster_size=2"]
        with et.open("lines.db", read_only=True) as h:
            method, epsilon = ("leaf" if "leaf" in options else "eom"), 4.0 * (4 in options)
            one = {"allow_single_cluster": "--allow-single-cluster" in options}
            assert labels == h.cut(min_cluster_size=2, method=method, epsilon=epsilon, **one).tolist()
    wanted = "--method must be given with a least size alone; it is 'leaf': leave out --n-clusters and --height"
    assert wanted in error_of("cut", "lines.db", "-k", 2, "--method", "leaf")
    assert wanted in error_of("cut", "lines.db", "--method", "leaf")
    assert "--epsilon must be given with" in error_of("cluster", "points.csv", "--epsilon", 2)


def test_plot(folder, saved):
    for tree in ("tree.db", saved):
        assert run("plot", tree, "-o", "tree.png", "-k", 3, "--title", "Points").stdout == "tree.png\n"
        assert (folder / "tree.png").read_bytes().startswith(b"\x89PNG")
    run("plot", "tree.db", "-o", "tree.svg", "--truncate", 0, "--orientation", "left")
    assert (folder / "tree.svg").read_text().startswith("<?xml")
    assert "must end with .png" in error_of("plot", "tree.db", "-o", "tree.doc")
    assert json_of("plot", "tree.db", "-o", "t.png") == {"tree": "tree.db", "points": 43, "output": "t.png"}


def test_export(folder, saved):
    for tree in ("tree.db", saved):
        newick = run("export", tree, "--newick", "-").stdout
        assert newick == et.load(saved).to_newick() + "\n"
    result = run("export", "tree.db", "--tree-json", "t.json", "--linkage-matrix", "Z.npy")
    assert result.stdout == "tree json: t.json\nlinkage matrix: Z.npy\n"
    assert json.loads((folder / "t.json").read_text())["size"] == 43
    assert np.load("Z.npy").shape == (42, 4)
    assert run("export", saved, "--html", "t.html").stdout == "html: t.html\n"
    assert (folder / "t.html").read_text(encoding="utf-8") == et.load(saved).to_html() + "\n"
    assert "--html must end with .html or .htm" in error_of("export", "tree.db", "--html", "t.txt")
    assert "would write over tree.db" in error_of("export", "tree.db", "--save", "tree.db")
    assert "give --newick" in error_of("export", "tree.db", code=2)
    found = json_of("export", "tree.db", "--newick", "t.nwk", "--save", "t.evertree")
    assert found == {"tree": "tree.db", "points": 43, "files": {"newick": "t.nwk", "save": "t.evertree"}}
    assert "nothing else" in error_of("export", "tree.db", "--newick", "-", "--json", code=2)


def test_insert_with_a_window(saved):
    result = run("insert", "tree.db", "points.npy", "--keep-last", 40)
    assert result.stdout == "30 points inserted (keys 43 to 72), 33 gone; tree.db has 40\n"
    assert keys_in() == list(range(33, 73))
    assert run("insert", "tree.db", "new.csv", "--key", "id").stdout == "2 points inserted, 2 gone; tree.db has 40\n"
    assert "window        the last 40 points" in run("info", "tree.db").stdout
    assert json_of("info", "tree.db")["window"] == {"last": 40, "max_age": None}
    assert json_of("info", saved)["window"] is None
    assert "it has the unknown 'id': choose its columns" in error_of("insert", "tree.db", "new.csv", "--keep-last", 1)
    assert len(keys_in()) == 40
    found = json_of("insert", "tree.db", "new.csv", "--columns", "x,y", "--keep-last", 0)
    assert (found["inserted"], found["gone"], found["points"]) == (2, 0, 42)
    assert json_of("info", "tree.db")["window"] is None


def test_insert_by_the_clock_of_the_data(folder):
    (folder / "more.csv").write_text("x,y\n1,2\n3,4\n")
    result = run("insert", "new.db", "points.npy", "--max-age", 5, "--time", 0, "--keep-last", 31)
    assert result.stdout == "30 points inserted (keys 0 to 29), 0 gone; new.db has 30\n"
    assert run("insert", "new.db", "more.csv", "--time", 4).stdout.startswith(
        "2 points inserted (keys 30 to 31), 1 gone"
    )
    assert "window        the last 31 points, none that came more than 5 ago" in run("info", "new.db").stdout
    assert error_of("insert", "new.db", "more.csv").endswith("which so far was given; it is None: give --time here too")
    assert "time must not go back" in error_of("insert", "new.db", "more.csv", "--time", 3)
    assert keys_in("new.db") == list(range(1, 32))
    run("insert", "new.db", "more.csv", "--time", 6)
    assert keys_in("new.db") == [30, 31, 32, 33]
    run("insert", "new.db", "more.csv", "--max-age", 0)
    run("insert", "new.db", "more.csv", "--max-age", 60)
    assert json_of("info", "new.db")["window"] == {"last": 31, "max_age": 60}
    assert "or lift the limit first, with --max-age 0" in error_of("insert", "new.db", "more.csv", "--time", 9)


def test_points_that_leave_the_window_are_not_updated(folder):
    run("insert", "tree.db", "new.csv", "--key", "id", "--keep-last", 2)
    rows = "id,x,y\n100,7,7\n7,1,2\n101,8,8\n"
    found = json_of("insert", "tree.db", "-", "--key", "id", "--update", stdin=rows)
    assert (found["inserted"], found["updated"], found["gone"]) == (1, 1, 1)
    with et.open("tree.db", read_only=True) as h:
        assert dict(zip(h.keys(), h.points().tolist(), strict=True)) == {101: [8.0, 8.0], 7: [1.0, 2.0]}


def test_values_that_are_refused_let_no_point_leave_the_window(folder):
    run("insert", "tree.db", "new.csv", "--key", "id", "--keep-last", 2)
    before = keys_in()
    rows = "id,x,y\n100,7e200,7\n7,1,2\n8,1,2\n"
    for options in ([], ["--keep-last", 1]):
        text = error_of("insert", "tree.db", "-", "--key", "id", "--update", *options, stdin=rows)
        assert "scale X" in text
        assert keys_in() == before
    np.save("square.npy", 1 - np.eye(3))
    np.save("row.npy", [[1.0, 1.0, 1.0, 0.0]])
    run("insert", "given.db", "square.npy", "--metric", "precomputed", "--linkage", "average")
    error_of("insert", "given.db", "row.npy", "--keep-last", 2)
    assert keys_in("given.db") == [0, 1, 2]
    assert json_of("info", "given.db")["window"] is None


def test_info(saved):
    text = run("info", "tree.db").stdout
    for words in ("durable, format version", "43", "2 of float64", "ward on euclidean", "stable"):
        assert words in text
    found = json_of("info", "tree.db", "--measure")
    assert (found["kind"], found["format_version"], found["points"]) == ("durable", STORE_VERSION, 43)
    assert (found["columns"], found["dtype"], found["linkage"]) == (2, "float64", "ward")
    assert found["instability"]["n_nodes"] == 84
    other = json_of("info", saved)
    assert (other["kind"], other["format_version"]) == ("saved", FORMAT_VERSION)
    same = ("points", "columns", "dtype", "linkage", "metric", "goal", "moves", "grafts", "pending", "root_height")
    assert [found[name] for name in same] == [other[name] for name in same]
    assert "of 84 nodes are in a blocking pair" in run("info", saved, "--measure").stdout


def test_info_of_dissimilarities_and_functions():
    h = et.Hierarchy("average", "precomputed")
    h.insert([[0.0, 1.0], [1.0, 0.0]])
    h.save("d.evertree")
    assert json_of("info", "d.evertree")["columns"] is None
    run("info", "d.evertree")
    h = et.Hierarchy("single", metric=lambda s, t: abs(len(s) - len(t)))
    h.insert(["a", "bb", "ccccc"])
    h.save("f.evertree")
    assert json_of("info", "f.evertree")["metric"] == "<lambda>"
    run("cut", "f.evertree", "-k", 2)


def test_verify(saved):
    for tree in ("tree.db", saved):
        assert run("verify", tree).stdout == f"{tree} is sound: 43 points\n"
        assert json_of("verify", tree) == {"tree": tree, "sound": True, "reason": None}


def test_a_damaged_durable_tree():
    with sqlite3.connect("tree.db") as db:
        db.execute("UPDATE snapshot SET bytes = zeroblob(length(bytes)) WHERE name = 'array tree.birth'")
        db.execute("UPDATE journal SET crc = crc + 1")
    db.close()
    assert "is damaged" in error_of("verify", "tree.db")
    found = json_of("verify", "tree.db", code=1)
    assert not found["sound"]
    assert "is damaged" in found["reason"]
    assert "is damaged" in error_of("cut", "tree.db", "-k", 2)


def test_a_damaged_saved_tree(folder, saved):
    content = bytearray((folder / saved).read_bytes())
    for place in range(len(content) // 2, len(content) // 2 + 64):  # one byte alone may be a date, or padding
        content[place] ^= 255
    (folder / saved).write_bytes(content)
    assert "is damaged" in error_of("verify", saved)
    assert not json_of("verify", saved, code=1)["sound"]


@pytest.mark.parametrize(
    "words",
    [["cut", "-k", 2], ["anomalies"], ["plot", "-o", "x.png"], ["info"], ["verify"], ["export", "--newick", "-"]],
)
def test_what_is_no_tree(words, folder):
    command, *options = words
    assert error_of(command, "nothing.db", *options) == "nothing.db: No such file or directory"
    assert "points.csv holds no tree" in error_of(command, "points.csv", *options)
    assert "not one that evertree.open has written" in error_of(command, "items.db", *options)


@pytest.mark.parametrize("words", [["remove", 1], ["refine"], ["insert", "points.csv"]])
def test_trees_that_cannot_be_changed(words, saved):
    command, *options = words
    assert "is a saved tree, which can only be read" in error_of(command, saved, *options)
    assert "holds no tree" in error_of(command, "points.csv", *options)
    if command != "insert":
        assert error_of(command, "nothing.db", *options) == "nothing.db: No such file or directory"


def test_a_tree_that_another_writes_to():
    """It can be read, and not be changed."""
    with et.open("tree.db") as h:
        h.insert([[1.0, 1.0]], keys=["mine"])
        assert "mine" in run("cut", "tree.db", "-k", 3).stdout
        assert json_of("info", "tree.db")["points"] == 44
        run("verify", "tree.db")
        for words in (["remove", "tree.db", 1], ["refine", "tree.db"], ["insert", "tree.db", "points.npy"]):
            text = error_of(*words)
            assert f"tree.db is open for writing already, by process {os.getpid()}: try again when" in text
            assert "read_only" not in text
