"""The page of a tree: what is in the file. `test_browser` looks at what browsers make of it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas
import polars
import pyarrow
import pytest
from scipy.cluster.hierarchy import is_valid_linkage

import evertree as et
from evertree.errors import DimensionError, ParameterError
from evertree.io.html.data import nodes_with_prototypes, widest_gap
from evertree.plotting import lay_out
from evertree.tree import views
from helpers import HOSTILE_KEYS


def decoded(text: str, dtype: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), dtype)


def data_of(page: str) -> dict:
    """What the page knows, as a browser finds it: up to the first end of a script."""
    begin = page.index('<script id="data" type="application/json">')
    begin = page.index(">", begin) + 1
    return json.loads(page[begin : page.index("</script", begin)])


@pytest.fixture
def h(rng):
    h = et.Hierarchy(search_width=4)
    h.insert(rng.normal(size=(60, 3)), keys=[f"p{i}" for i in range(60)])
    h.remove(["p3", "p4"])
    h.refine()
    return h


def test_data_are_those_of_the_tree(h, tmp_path):
    partition = h.partition(n_clusters=4)
    text = h.to_html(tmp_path / "tree.html", partition)
    assert (tmp_path / "tree.html").read_text(encoding="utf-8") == text + "\n"
    data, Z = data_of(text), h.linkage_matrix()
    assert data["keys"] == h.keys()
    np.testing.assert_array_equal(decoded(data["merges"], "<i4").reshape(-1, 2), Z[:, :2])
    np.testing.assert_array_equal(decoded(data["heights"], "<f8"), Z[:, 2])
    given = data["given"]
    assert [int(given["names"][rank]) for rank in decoded(given["of"], "<i4")] == partition.labels.tolist()
    assert data_of(h.to_html())["given"] is None
    assert data_of(h.to_html(partition=partition.labels))["given"] == given


def test_prototypes_are_those_of_the_nodes(h):
    labels = h.cut(n_clusters=4)
    data, Z = data_of(h.to_html(partition=labels)), h.linkage_matrix()
    merges, leaves = (decoded(data["prototypes"][name], "<i4").tolist() for name in ("nodes", "leaves"))
    assert merges == sorted(nodes_with_prototypes(Z, labels).tolist())
    node_of = {frozenset(h.members(u)): u for u in h.nodes().tolist()}
    members: list[frozenset] = [frozenset([key]) for key in data["keys"]]
    for left, right in Z[:, :2].astype(int).tolist():
        members.append(members[left] | members[right])
    for merge, leaf in zip(merges, leaves, strict=True):
        u = node_of[members[merge]]
        assert h.prototypes(u)[u] == h.keys()[leaf]
    for label in range(4):
        cluster = frozenset(np.array(h.keys())[labels == label].tolist())
        assert len(cluster) == 1 or members.index(cluster) in merges


@pytest.mark.parametrize("linkage", ["single", "minimax"])
def test_prototypes_that_take_long_are_left_out(linkage, rng, monkeypatch):
    h = et.Hierarchy(linkage)
    h.insert(rng.normal(size=(40, 2)))
    sizes = h.linkage_matrix()[:, 3]
    monkeypatch.setattr("evertree.hierarchy.exports._MOST_COMPARED", 10)
    merges = decoded(data_of(h.to_html())["prototypes"]["nodes"], "<i4")
    np.testing.assert_array_equal(merges, 40 + np.flatnonzero(sizes <= 10))


def test_prototypes_take_a_look_at_so_many_points_and_no_more(h, monkeypatch):
    Z = h.linkage_matrix()
    monkeypatch.setattr("evertree.hierarchy.exports._MOST_LOOKED_AT", 70)
    merges = decoded(data_of(h.to_html())["prototypes"]["nodes"], "<i4")
    assert merges[-1] == 2 * len(h) - 2  # the root is the first, and then what is left
    assert 1 < merges.size < len(Z)
    assert Z[merges - len(h), 3].sum() <= 70


def test_a_cluster_that_is_no_node_has_the_prototype_of_its_largest_node():
    h = et.Hierarchy("single")
    h.insert([[0.0], [1.0], [2.5], [20.0], [21.0]])
    labels = [0, 0, 0, 1, 0]  # no node is cluster 0; the largest inside it is {0, 1, 2}
    assert 6 in nodes_with_prototypes(h.linkage_matrix(), np.array(labels))
    h.to_html(partition=labels)
    assert data_of(h.to_html(partition=[-1] * 5))["given"]["noise"] == 0


def test_clusters_far_below_the_root_have_prototypes():
    n = 200
    steps = np.arange(n - 1)
    path = np.column_stack([steps + 1, n + steps - 1, steps + 1.0, steps + 2])
    path[0, :2] = [0, 1]
    labels = np.where(np.arange(n) < 5, 1, 0)
    assert nodes_with_prototypes(path, labels).tolist()[-50:] == list(range(2 * n - 2, 2 * n - 52, -1))
    assert nodes_with_prototypes(path, labels)[0] == n + 3  # the first five; the others are no node


@pytest.mark.parametrize("n", [0, 1, 2])
def test_small_trees(n):
    h = et.Hierarchy()
    h.insert(np.arange(float(n)).reshape(n, 1))
    assert data_of(h.to_html())["keys"] == [str(i) for i in range(n)]
    assert data_of(h.to_html(partition=np.zeros(n, int)))["given"]["names"] == ["0"][:n]
    assert h._repr_html_().count("<text") == (n if n > 1 else 0)  # one point is no picture


def test_a_path_and_equal_points():
    n = 3_000
    Z = [[0, 1, 1.0, 2]] + [[i + 1, n + i - 1, float(i + 1), i + 2] for i in range(1, n - 1)]
    path = et.Hierarchy.from_linkage(Z, np.zeros((n, 1)))
    data = data_of(path.to_html())
    assert decoded(data["merges"], "<i4").size == 2 * (n - 1)
    assert decoded(data["heights"], "<f8").max() == 0.0
    assert data["nClusters"] == 1
    assert path._repr_html_().count("<text") == 30


@pytest.mark.parametrize(
    ("heights", "expected"),
    [([], 1), ([0.0, 0.0], 1), ([5.0], 2), ([1.0, 2.0, 9.0], 2), ([1.0, 8.0, 9.0], 3), ([0.0, 3.0, 4.0], 3)],
)
def test_default_number_of_clusters(heights, expected):
    assert widest_gap(np.array(heights)) == expected
    many = np.concatenate([np.full(50, 1e-9), np.linspace(1.0, 1.1, 30)])
    assert 2 <= widest_gap(many) <= 10


def test_nothing_in_a_key_is_markup(tmp_path):
    h = et.Hierarchy()
    h.insert(np.arange(float(len(HOSTILE_KEYS))).reshape(-1, 1), keys=HOSTILE_KEYS)
    text = h.to_html(tmp_path / "tree.html", title=HOSTILE_KEYS[0] + "\ud800", columns={HOSTILE_KEYS[0]: HOSTILE_KEYS})
    data = data_of(text)
    assert data["keys"] == [str(key) for key in HOSTILE_KEYS]
    assert data["columns"][0]["name"] == HOSTILE_KEYS[0]
    assert (text.count("<script"), text.count("</script>"), text.count("<img"), text.count("<b>")) == (2, 2, 0, 0)
    assert "&lt;/script&gt;" in text
    glance = h._repr_html_()
    assert "<b>" not in glance
    assert "<img" not in glance
    assert "<script" not in glance


def test_the_policy_allows_only_what_is_in_the_page(h):
    text = h.to_html()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
    assert policy.startswith("default-src 'none';")
    assert policy.endswith("base-uri 'none'; form-action 'none'")  # for which there is no default
    for kind, pattern in (("script", r'<script type="module">(.*?)</script>'), ("style", r"<style>(.*?)</style>")):
        content = re.search(pattern, text, flags=re.DOTALL)[1]
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
    assert not re.search(r"https?://|url\(|@import|\bimport\(|fetch\(", text)


def test_columns(h):
    n = len(h)
    frame = pandas.DataFrame({"kind": ["a", "b"] * (n // 2), "value": np.arange(n) / 7, "few": np.arange(n) % 3})
    kind, value, few = data_of(h.to_html(columns=frame))["columns"]
    assert (kind["names"], few["names"]) == (["a", "b"], ["0", "1", "2"])
    np.testing.assert_array_equal(decoded(kind["data"], "<i4"), np.arange(n) % 2)
    np.testing.assert_array_equal(decoded(value["data"], "<f8"), np.arange(n) / 7)
    for other in (polars.from_pandas(frame), pyarrow.Table.from_pandas(frame), frame.to_dict("list")):
        assert data_of(h.to_html(columns=other))["columns"] == [kind, value, few]


def test_values_of_columns(h):
    n = len(h)
    times = np.datetime64("2026-05-04", "ns") + np.arange(n) * np.timedelta64(1, "D")
    gaps = [None, *range(1, n)]
    columns = {"time": times, "gaps": gaps, "few": [None, *[True] * (n - 1)], "huge": [10**400 + i for i in range(n)]}
    time, some, few, huge = data_of(h.to_html(columns=columns))["columns"]
    assert time["names"][:2] == ["2026-05-04 00:00:00", "2026-05-05 00:00:00"]
    np.testing.assert_array_equal(decoded(some["data"], "<f8"), [np.nan, *range(1, n)])
    assert few["names"] == ["–", "True"]
    assert len(huge["names"]) == n
    nullable = pandas.DataFrame({"gaps": pandas.array(gaps, "Int64"), "few": pandas.array(columns["few"], "boolean")})
    assert data_of(h.to_html(columns=nullable))["columns"] == [some, few]
    twice = pandas.DataFrame(np.arange(2.0 * n).reshape(n, 2), columns=["x", "x"])
    assert [column["name"] for column in data_of(h.to_html(columns=twice))["columns"]] == ["x", "x"]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"partition": [0, 1]}, DimensionError, r"labels must have shape \(58,\)"),
        ({"partition": np.zeros(58)}, ParameterError, "labels must be integers"),
        ({"columns": {"a": [1, 2]}}, DimensionError, "columns must have 58 values each.* 'a' has 2"),
        ({"columns": {"a": "x" * 58}}, DimensionError, "'a' has 1"),
        ({"columns": [1, 2]}, ParameterError, "columns must be a mapping from names to values"),
        ({"title": 3}, ParameterError, "title must be a text; it is int"),
    ],
)
def test_what_is_refused_leaves_the_file_as_it_was(h, options, error, message, tmp_path):
    path = tmp_path / "tree.html"
    h.to_html(path)
    before = path.read_bytes()
    with pytest.raises(error, match=message):
        h.to_html(path, **options)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_partition_of_other_points_is_refused(h):
    old = h.partition(n_clusters=3)
    h.remove(["p0"])
    with pytest.raises(ParameterError, match="partition must be of the points that are live now"):
        h.to_html(partition=old)


def test_a_page_is_replaced_only_when_it_is_whole(h, tmp_path, monkeypatch):
    path = tmp_path / "tree.html"
    h.to_html(path)
    before = path.read_bytes()

    def fail(_):
        raise OSError("the disk is full")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="the disk is full"):
        h.to_html(path, title="new")
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(FileNotFoundError, match="no such folder"):
        h.to_html(tmp_path / "nowhere" / "tree.html")


def test_a_link_stays_a_link_and_what_is_private_private(h, tmp_path):
    path, link = tmp_path / ("x" * 250), tmp_path / "link"
    path.write_text("before")
    path.chmod(0o600)
    link.symlink_to(path)
    text = h.to_newick(link)
    assert link.is_symlink()
    assert path.read_text() == text + "\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.process
def test_a_pipe_stays_a_pipe(h):
    code = "import sys; sys.stdout.write(str(len(sys.stdin.read())))"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as reader:
        h.to_newick(f"/dev/fd/{reader.stdin.fileno()}")
        found, _ = reader.communicate()
    assert int(found) == len(h.to_newick()) + 1


def test_the_top_is_that_of_the_linkage_matrix(h):
    top, whole = views.find_top(h.state.live, 12), lay_out(h.linkage_matrix(), 12)
    assert is_valid_linkage(top.Z)
    layout = lay_out(top.Z)
    np.testing.assert_allclose(layout.height, whole.height)
    np.testing.assert_allclose(layout.left_x, whole.left_x)
    np.testing.assert_allclose(top.height[layout.bottom_node], whole.bottom_height)
    np.testing.assert_array_equal(top.size[layout.bottom_node], whole.bottom_size)
    everything = views.find_top(h.state.live, 1_000)
    np.testing.assert_allclose(everything.Z, h.linkage_matrix())


def test_the_top_of_a_tree_that_is_not_monotone_is_drawn(rng):
    h = et.Hierarchy.random(rng.normal(size=(200, 2)))
    assert not h.is_monotone()
    assert (np.diff(views.find_top(h.state.live, 30).Z[:, 2]) >= 0).all()
    assert h._repr_html_().count("<text") == 30


def test_what_notebooks_show(h):
    shown = h._repr_html_()
    for text in (
        "Ward on euclidean",
        "58 points, 3 columns of float64",
        "stable",
        "100%: the tree has reached",
        "<svg",
    ):
        assert text in shown
    assert "currentColor" in shown
    assert shown.count("Z") == len(re.findall(r">\(\d+\)</text>", shown)) > 0  # a triangle for each that is no point
    assert shown == h.copy()._repr_html_()
    h.insert([[9.0, 9.0, 9.0]])
    assert re.search(r"at least \d+\.\d%: \d+ of 117 nodes are to be looked at", h._repr_html_())
    assert "not measured: all 115 nodes" in et.Hierarchy.random(h.points()[:58])._repr_html_()
    own = et.Hierarchy("complete", metric=lambda s, t: abs(len(s) - len(t)))
    own.insert(["a", "bbb", "cc"], keys=["<i>", "y", "z"])
    assert "&lt;lambda&gt;" in own._repr_html_()


def test_pages_wait_for_edits(h):
    """What another thread has half done is not shown."""
    for show in (h._repr_html_, h.to_html):
        with ThreadPoolExecutor(1) as pool:
            with h.state.lock.access:
                shown = pool.submit(show)
                with pytest.raises(TimeoutError):
                    shown.result(timeout=0.05)
            assert shown.result(timeout=30)


def test_without_trust_the_texts_of_the_picture_stay_apart(h):
    """JupyterLab shows only the texts of a picture where it has no trust in a notebook."""
    shown = h._repr_html_()
    texts = re.sub("<[^>]*>", "", shown[shown.index("<svg") :])
    assert len(texts.split()) == 30


def test_wide_letters_have_room(h):
    def height(keys):
        h = et.Hierarchy()
        h.insert([[0.0], [1.0]], keys=keys)
        return int(re.search(r'viewBox="0 0 \d+ (\d+)"', h._repr_html_())[1])

    assert height(["漢字", "b"]) == height(["abcd", "b"]) > height(["ab", "b"])


def test_quality_after_the_other_goal(rng):
    h = et.Hierarchy(goal="homogeneous")
    h.insert(rng.normal(size=(200, 2)))
    assert "100%" in h._repr_html_()
    h.refine(until="stable")
    assert "not measured" in h._repr_html_()


@pytest.mark.process
def test_a_glance_needs_no_matplotlib():
    code = (
        "import sys, evertree as et; h = et.Hierarchy(); h.insert([[0.0], [1.0]]); h._repr_html_(); h.to_html();"
        "assert 'matplotlib' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
