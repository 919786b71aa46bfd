"""``evertree cluster``: from a file of points to cuts, exports and pictures."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest

import evertree as et
from cli_tools import error_of, json_of, parquet, run, three_groups, write_files
from evertree.cli import progress_bar
from evertree.cli.commands import cluster as cluster_module


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder with all files, which tests are in."""
    write_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def rows_of(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text)))


def same_clusters(labels, others) -> bool:
    return len(set(zip(labels, others, strict=True))) == len(set(labels)) == len(set(others))


def test_labels_on_standard_output():
    result = run("cluster", "points.csv", "--key", "id", "--n-clusters", 3)
    header, *rows = rows_of(result.stdout)
    assert header == ["id", "n_clusters=3"]
    assert [row[0] for row in rows] == [str(i) for i in range(30)]
    assert same_clusters([row[1] for row in rows], [i % 3 for i in range(30)])
    assert "30 points, 2 columns: x, y" in result.stderr
    assert "left out, without numbers or a name: name" in result.stderr
    assert "3 clusters of 10 points" in result.stderr


@pytest.mark.parametrize("file", ["points.csv", "points.parquet", "points.npy"])
def test_formats_give_the_same_tree(file):
    run("cluster", file, *([] if file.endswith("npy") else ["--key", "id"]), "--linkage-matrix", "Z.npy")
    expected = et.Hierarchy()
    expected.insert(three_groups())
    expected.refine()
    np.testing.assert_array_equal(np.load("Z.npy"), expected.linkage_matrix())


def test_several_cuts_in_one_table():
    result = run("cluster", "points.csv", "--key", "id", "-k", 2, "-k", 5, "--height", 1.5, "--min-cluster-size", 2)
    assert rows_of(result.stdout)[0] == ["id", "n_clusters=2", "n_clusters=5", "height=1.5"]
    result = run("cluster", "points.csv", "--key", "id", "--min-cluster-size", 4)
    assert rows_of(result.stdout)[0] == ["id", "min_cluster_size=4"]


def test_without_a_cut_there_are_ten_clusters_at_most(folder):
    assert rows_of(run("cluster", "points.csv").stdout)[0] == ["key", "n_clusters=10"]
    assert rows_of(run("cluster", "-", stdin="x\n1\n2\n9\n").stdout)[0] == ["key", "n_clusters=3"]


def test_every_export(folder):
    files = {
        "--newick": "tree.nwk",
        "--tree-json": "tree.json",
        "--linkage-matrix": "Z.csv",
        "--html": "tree.html",
        "--plot": "tree.png",
        "--save": "tree.evertree",
        "--store": "new.db",
        "--output": "labels.parquet",
    }
    options = [word for pair in files.items() for word in pair]
    result = run("cluster", "points.csv", "--key", "name", "--columns", "x,y", "-k", 3, *options)
    h = et.load("tree.evertree")
    assert h.keys() == [f"item {i}" for i in range(30)]
    assert (folder / "tree.nwk").read_text() == h.to_newick() + "\n"
    assert json.loads((folder / "tree.json").read_text())["size"] == 30
    np.testing.assert_array_equal(np.loadtxt("Z.csv", delimiter=",", skiprows=1), h.linkage_matrix())
    page = (folder / "tree.html").read_text(encoding="utf-8")
    assert page == h.to_html(partition=h.cut(n_clusters=3)) + "\n"
    assert (folder / "tree.png").read_bytes().startswith(b"\x89PNG")
    labels = parquet.read_table("labels.parquet")
    assert labels.column_names == ["name", "n_clusters=3"]
    assert labels["n_clusters=3"].to_pylist() == h.cut(n_clusters=3).tolist()
    with et.open("new.db", read_only=True) as durable:
        assert durable.to_newick() == h.to_newick()
    assert all(file in result.stdout for file in files.values())  # text goes there, as no data do
    assert result.stderr == ""


@pytest.mark.parametrize("option", ["--newick", "--tree-json"])
def test_trees_on_standard_output(option):
    result = run("cluster", "points.csv", "--columns", "x,y", option, "-")
    assert result.stdout.count("\n") == 1
    assert result.stdout[0] in "({"
    assert "30 points" in result.stderr


def test_json():
    found = json_of("cluster", "points.csv", "--key", "id", "-k", 3, "-o", "labels.csv", "--linkage", "single")
    assert found["points"] == 30
    assert (found["columns"], found["left_out"]) == (["x", "y"], ["name"])
    assert (found["linkage"], found["metric"], found["goal"]) == ("single", "euclidean", "stable")
    assert found["cuts"] == {"n_clusters=3": {"clusters": 3, "smallest": 10, "largest": 10, "noise": 0}}
    assert found["refinement"]["stable"]
    assert found["files"] == {"labels": "labels.csv"}
    assert json_of("cluster", "points.csv", "-k", 3)["files"] == {}  # and no labels on standard output


def test_scales_come_from_the_points():
    X = three_groups() * [1, 1000]
    np.save("scaled.npy", X)
    run("cluster", "scaled.npy", "--metric", "seuclidean", "--save", "tree.evertree")
    h = et.load("tree.evertree")
    np.testing.assert_allclose(h.metric_params["V"], X.var(axis=0, ddof=1))
    np.save("constant.npy", np.column_stack([X[:, 0], np.ones(30)]))
    run("cluster", "constant.npy", "--metric", "seuclidean", "-k", 3)
    np.save("one.npy", X[:1])
    run("cluster", "one.npy", "--metric", "seuclidean", "-k", 1)


def test_metrics_and_goals():
    params = ["--metric", "minkowski", "--metric-params", '{"p": 3}', "--linkage", "complete", "--goal", "homogeneous"]
    run("cluster", "points.npy", *params, "--search-width", 0, "--save", "tree.evertree")
    h = et.load("tree.evertree")
    assert (h.linkage, h.metric, h.metric_params, h.goal) == ("complete", "minkowski", {"p": 3.0}, "homogeneous")
    assert h.search_width is None


def test_precomputed_dissimilarities():
    x = np.array([0.0, 1.0, 5.0, 7.0])
    np.save("d.npy", np.abs(x[:, None] - x))
    result = run("cluster", "d.npy", "--metric", "precomputed", "--linkage", "average", "-k", 2)
    assert [row[1] for row in rows_of(result.stdout)[1:]] == ["0", "0", "1", "1"]


def test_batch_clustering_is_where_refinement_leads():
    run("cluster", "points.npy", "--linkage-matrix", "Z.npy", "--search-width", 0)
    run("cluster", "points.npy", "--linkage-matrix", "batch.npy", "--batch")
    np.testing.assert_allclose(np.load("Z.npy"), np.load("batch.npy"))


def test_a_budget_of_time():
    words = ["cluster", "points.npy", "-k", 2, "--seconds", 0]
    assert json_of(*words, "--search-width", 4)["refinement"]["stopped_by"] == "seconds"
    assert json_of(*words)["refinement"]["stopped_by"] == "stable"  # a small tree is exact from the first moment


def test_ctrl_c_keeps_what_was_reached(monkeypatch):
    """It ends the refinement; what was asked for is written."""
    interrupt_refinement(monkeypatch)
    result = run("cluster", "points.csv", "--key", "id", "-k", 3, code=130)
    assert len(rows_of(result.stdout)) == 31
    assert "evertree: interrupted" in result.stderr


def interrupt_refinement(monkeypatch):
    def refine(self, *args, progress, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(et.Hierarchy, "refine", refine)


def test_ctrl_c_while_points_come_in(monkeypatch, folder):
    def insert(self, *args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(et.Hierarchy, "insert", insert)
    result = run("cluster", "points.csv", "-k", 3, "-o", "labels.csv", code=130)
    assert result.stderr.endswith("evertree: interrupted\n")
    assert not (folder / "labels.csv").exists()


def test_too_little_memory(monkeypatch):
    def insert(h, points):
        raise MemoryError("Unable to allocate 9 TiB")

    monkeypatch.setattr(cluster_module, "insert_with_bar", insert)
    assert error_of("cluster", "points.csv") == "there is not enough memory: Unable to allocate 9 TiB"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--output", "labels.xls"], "--output must end with .csv or .tsv or .parquet; it is labels.xls"),
        (["--plot", "tree.gif"], "--plot must end with .png or .svg or .pdf"),
        (["--save", "no/tree"], "--save must be in a folder that exists; no does not"),
        (["--save", "-"], "--save cannot go to standard output"),
        (["--output", "points.csv"], "would write over points.csv, which is read"),
        (["--save", "a", "--newick", "./a"], "--save would write over the file of --newick"),
        (["--newick", "-"], "only one of --output and --newick can go to standard output"),
        (["--store", "tree.db"], "tree.db exists already: see evertree insert"),
        (["--metric", "cosine"], "Ward needs Euclidean geometry"),
        (["--metric", "nonsense"], "metric must be"),
        (["--n-clusters", "31"], "--n-clusters must be an integer from 1 to 30"),
    ],
)
def test_what_cannot_be_done_is_refused(options, message, folder):
    before = {path: path.read_bytes() for path in folder.iterdir()}
    assert message in error_of("cluster", "points.csv", "-k", 2, *options)
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--linkage", "nonsense"], "'nonsense' is not one of 'average'"),
        (["--metric-params", "{"], "must be a JSON object"),
        (["--metric-params", "[1]"], "must be a JSON object"),
        (["--json", "--newick", "-"], "nothing else can go to standard output"),
        (["--n-clusters", "0"], "n-clusters"),
        (["--seconds", "-1"], "seconds"),
        (["--save", "x", "--output", "y.csv"], "needs --n-clusters, --height or --min-cluster-size"),
    ],
)
def test_a_wrong_command_line(options, message):
    assert message in error_of("cluster", "points.csv", *options, code=2)


def test_extras_are_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    assert "pip install 'evertree[plot]'" in error_of("cluster", "points.csv", "--plot", "tree.png")
    monkeypatch.setitem(__import__("sys").modules, "pyarrow.csv", None)
    assert "pip install 'evertree[cli]'" in error_of("cluster", "points.csv")


def test_a_bar_on_a_terminal(monkeypatch, capsys):
    """Rich draws it where standard error is a terminal."""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    with progress_bar.progress_bar("Inserting", 10) as show:
        show(5, "half of it")
    said = capsys.readouterr()
    assert said.out == ""
    assert "Inserting" in said.err
    assert "half of it" in said.err
