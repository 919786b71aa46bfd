"""Reading and conversions: nodes, SciPy's matrix, cuts, the ultrametric, copies."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from scipy.cluster import hierarchy as sch
from scipy.spatial.distance import pdist

import naive
from evertree import NULL, Hierarchy
from evertree.errors import EmptyHierarchyError, ParameterError, UnknownKeyError, UnknownNodeError
from evertree.tree import views
from helpers import SCHEMES, definition, fingerprint, hard_data, hierarchy_of, nested, new, square


def same_partition(a, b):
    return len(set(zip(a.tolist(), b.tolist(), strict=True))) == np.unique(a).size == np.unique(b).size


def unrefined(rng, n=40, linkage="ward", metric="euclidean"):
    return hierarchy_of(naive.random_tree(rng, n), rng.normal(size=(n, 2)), linkage, metric)


@pytest.mark.parametrize(("linkage", "metric"), SCHEMES)
def test_nodes_know_their_family(rng, linkage, metric):
    h = unrefined(rng, 20, linkage, metric)
    zeta = definition(h)
    for u in h.nodes().tolist():
        children = h.children(u)
        if children:
            a, b = (frozenset(h.members(child)) for child in children)
            assert [h.parent(child) for child in children] == [u, u]
            assert h.sibling(children[0]) == children[1]
            assert h.sibling(children[1]) == children[0]
            assert sorted([*a, *b]) == h.members(u)
            value = zeta(a, b)
            assert h.height(u) == pytest.approx(np.sqrt(2 * value) if linkage == "ward" else value)
        else:
            assert h.height(u) == 0
            assert h.leaf(h.members(u)[0]) == u
    assert h.parent(h.root) == h.sibling(h.root) == NULL == -1


@pytest.mark.parametrize(("linkage", "metric"), SCHEMES)
def test_many_nodes_at_once(rng, linkage, metric):
    h = unrefined(rng, 20, linkage, metric)
    h.remove([3, 7])
    nodes = h.nodes()
    for some in (nodes, nodes[::-2], nodes[:1], nodes[:0], nodes.tolist(), tuple(nodes.tolist()[:3])):
        each = [int(u) for u in some]
        for ask in (h.parent, h.sibling, h.height, h.size):
            found = ask(some)
            assert isinstance(found, np.ndarray)
            assert found.tolist() == [ask(u) for u in each]
        assert h.children(some).shape == (len(each), 2)
        assert [tuple(pair) for pair in h.children(some).tolist()] == [h.children(u) or (NULL, NULL) for u in each]
        assert h.members(some) == [h.members(u) for u in each]
    assert [h.size(u) for u in nodes.tolist()] == [len(h.members(u)) for u in nodes.tolist()]
    assert type(h.size(h.root)) is type(h.parent(h.root)) is int
    assert type(h.height(h.root)) is float
    assert h.parent(np.int32(nodes[0])) == h.parent(int(nodes[0]))
    some = dict.fromkeys(nodes.tolist()[:3])
    assert h.height(some.keys()).shape == h.size(iter(some)).shape == (3,)
    assert list(h.prototypes(some)) == list(some)


@pytest.mark.parametrize("wrong", [[-1], [10**6], [0, 2.5], [[0, 2]], ["a"], [0, [2, 4]], [2**40], [True]])
def test_wrong_nodes(rng, wrong):
    h = unrefined(rng, 5)
    for ask in (h.parent, h.children, h.sibling, h.members, h.height, h.size, h.prototypes):
        with pytest.raises(UnknownNodeError, match="node"):
            ask(wrong)
    h.remove([0])
    gone = [u for u in range(10) if u not in h.nodes()]
    assert gone
    for u in gone:
        with pytest.raises(UnknownNodeError, match=f"it is {u}"):
            h.height([h.root, u])


@pytest.mark.parametrize("name", hard_data())
@pytest.mark.parametrize("refined", [False, True])
def test_linkage_matrix_is_valid_on_hard_data(name, refined):
    x = hard_data()[name]
    for linkage, metric in (("ward", "euclidean"), ("average", "sqeuclidean")):
        h = Hierarchy.random(x, linkage, metric)
        if refined:
            h.refine()
        Z = h.linkage_matrix()
        assert Z.shape == (max(len(x) - 1, 0), 4)
        if len(x) < 2:
            continue
        assert np.all(np.isfinite(Z))
        assert sch.is_valid_linkage(Z, throw=True)
        assert sch.is_monotonic(Z)
        assert sch.cophenet(Z).size == len(x) * (len(x) - 1) // 2
        assert sch.fcluster(Z, 2, "maxclust").size == len(x)
        assert len(sch.dendrogram(Z, no_plot=True)["leaves"]) == len(x)


@pytest.mark.parametrize(
    ("linkage", "metric", "method"), [("ward", "euclidean", "ward"), ("average", "sqeuclidean", "average")]
)
def test_heights_are_in_scipys_units(rng, linkage, metric, method):
    x = rng.normal(size=(50, 3))
    Z = sch.linkage(x, method, metric=metric)
    h = Hierarchy.from_linkage(Z, x, linkage, metric)
    np.testing.assert_allclose(h.linkage_matrix(), Z, rtol=1e-9)


def test_cosine_heights_are_scipys(rng):
    x = rng.normal(size=(50, 3))
    Z = sch.linkage(x, "average", metric="cosine")
    h = Hierarchy.from_linkage(Z, x, "average", "cosine")
    np.testing.assert_allclose(h.linkage_matrix(), Z, rtol=1e-9)


def test_round_trip_through_the_matrix(rng):
    h = unrefined(rng)
    twin = Hierarchy.from_linkage(h.linkage_matrix(), h.points())
    assert naive.clusters(nested(twin)) == naive.clusters(nested(h))


@pytest.mark.parametrize("edited", [False, True])
def test_cut_is_fcluster(rng, edited):
    h = unrefined(rng, 60)
    if edited:
        h.remove([3, 17, 40])
        h.insert(rng.normal(size=(5, 2)), keys=list("abcde"))
    Z = h.linkage_matrix()
    for k in (1, 2, 5, len(h)):
        labels = h.cut(n_clusters=k)
        assert np.unique(labels).tolist() == list(range(k))
        assert same_partition(labels, sch.cut_tree(Z, k).ravel())
        _, first = np.unique(labels, return_index=True)
        assert np.all(np.diff(first) > 0)  # numbered by first appearance
    for height in (0.0, 0.5, 1.0, 3.0, 1e9):
        assert same_partition(h.cut(height=height), sch.fcluster(Z, height, "distance"))


@pytest.mark.parametrize("kind", ["spread", "tied", "equal", "unrefined"])
@pytest.mark.parametrize(
    ("linkage", "metric"),
    [
        *(("ward", "euclidean"), ("single", "euclidean"), ("average", "cosine"), ("average", "sqeuclidean")),
        *(("complete", "cityblock"), ("minimax", "euclidean")),
    ],
)
def test_cut_of_some_keys_and_of_any_tree(rng, monkeypatch, linkage, metric, kind):
    """Three ways to find labels agree: by climbing, from the root down, and with heights made monotone."""
    x = {
        "spread": lambda: rng.uniform(1, 9, size=(220, 2)),
        "tied": lambda: rng.integers(1, 5, size=(220, 2)).astype(float),
        "equal": lambda: np.ones((220, 2)),
        "unrefined": lambda: rng.uniform(1, 9, size=(220, 2)),
    }[kind]()
    h = Hierarchy.random(x, linkage, metric) if kind == "unrefined" else new(linkage, metric)
    if kind != "unrefined":
        h.insert(x)
        h.refine()
    Z = h.linkage_matrix()
    levels = [{"n_clusters": k} for k in (1, 2, 7, 100, 219, 220)]
    levels += [{"height": float(z)} for z in (0.0, Z[0, 2], Z[110, 2], Z[-1, 2], np.nextafter(Z[-5, 2], 0), 1e300)]
    levels += [{"min_cluster_size": 4}]
    keys = [219, 0, 77]
    for level in levels:
        labels, some = h.cut(**level), h.cut(**level, keys=keys)
        assert some.dtype == labels.dtype
        np.testing.assert_array_equal(some, labels[keys])
        np.testing.assert_array_equal(h.cut(**level, keys=h.keys()[::-1]), labels[::-1])
        with monkeypatch.context() as patch:
            patch.setattr(views, "_find_tops", lambda *_: None)
            np.testing.assert_array_equal(h.cut(**level), labels)
            np.testing.assert_array_equal(h.cut(**level, keys=keys), labels[keys])


@pytest.mark.parametrize("n_jobs", [2, 3])
@pytest.mark.parametrize("n_clusters", [1, 2, 7, 40, 120])
def test_threads_label_the_same_clusters(rng, monkeypatch, n_clusters, n_jobs):
    x, weights = rng.normal(size=(120, 3)), rng.choice([0.5, 1.0, 9.0], 120)
    h = Hierarchy("ward")
    h.insert(x, sample_weight=weights)
    h.remove(h.keys()[5:20])
    h.refine()
    expected = h.cut(n_clusters=min(n_clusters, len(h)))
    monkeypatch.setattr("evertree.tree.views._FEWEST_TO_SHARE", 0)
    h.n_jobs = n_jobs
    np.testing.assert_array_equal(h.cut(n_clusters=min(n_clusters, len(h))), expected)


def test_threads_see_that_a_tree_is_not_monotone(rng, monkeypatch):
    monkeypatch.setattr("evertree.tree.views._FEWEST_TO_SHARE", 0)
    found, x = [], rng.normal(size=(60, 2))
    for n_jobs in (1, 2):
        h = Hierarchy.random(x, "ward", n_jobs=n_jobs, seed=1)
        found.append(np.stack([h.cut(n_clusters=k) for k in range(1, 61)]))
    np.testing.assert_array_equal(*found)


def test_cut_of_a_tree_that_is_not_monotone(rng):
    h = Hierarchy.random(rng.normal(size=(300, 2)), goal="homogeneous")
    assert not h.is_monotone()
    for k in (2, 9, 100):
        assert same_partition(h.cut(n_clusters=k), sch.cut_tree(h.linkage_matrix(), k).ravel())
        np.testing.assert_array_equal(h.cut(n_clusters=k, keys=[5]), h.cut(n_clusters=k)[[5]])


@pytest.mark.parametrize("linkage", ["ward", "single"])
def test_all_cuts_of_small_trees_that_are_not_monotone(linkage):
    """Also where the only inversion is just where the cut is."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(3, 14))
        h = Hierarchy.random(rng.normal(size=(n, 2)), linkage, seed=seed)
        Z, keys = h.linkage_matrix(), h.keys()
        for k in range(1, n + 1):
            labels = h.cut(n_clusters=k)
            assert same_partition(labels, sch.cut_tree(Z, k).ravel())
            np.testing.assert_array_equal(h.cut(n_clusters=k, keys=keys[-1:]), labels[-1:])


@pytest.mark.parametrize("count", [3, 200])
def test_keys_of_a_cut_may_be_an_iterator(rng, count):
    h = Hierarchy()
    keys = h.insert(rng.normal(size=(300, 2)))[::-1][:count]
    np.testing.assert_array_equal(h.cut(n_clusters=9, keys=iter(keys)), h.cut(n_clusters=9)[keys])


def test_few_labels_need_no_other(rng, monkeypatch):
    h = Hierarchy()
    h.insert(rng.normal(size=(300, 2)))
    h.refine()
    expected = h.cut(n_clusters=9)
    monkeypatch.setattr(views, "cut", None)
    np.testing.assert_array_equal(h.cut(n_clusters=9, keys=[0, 250]), expected[[0, 250]])


def test_cut_of_unknown_keys(rng):
    h = Hierarchy()
    h.insert(rng.normal(size=(5, 2)))
    with pytest.raises(UnknownKeyError, match="7"):
        h.cut(n_clusters=2, keys=[0, 7])
    assert h.cut(n_clusters=2, keys=[]).size == 0


def test_cut_gives_the_number_asked_for_in_spite_of_ties():
    h = Hierarchy()
    h.insert(np.zeros((10, 2)))
    for k in range(1, 11):
        assert np.unique(h.cut(n_clusters=k)).size == k
    assert np.unique(h.cut(height=0)).size == 1


@pytest.mark.parametrize("last", [[4, 5], [5, 4]])
def test_ties_go_to_the_older_point_whatever_the_order_of_children(last):
    Z = [[0, 1, 1, 2], [3, 2, 1, 2], [*last, 9, 4]]
    h = Hierarchy.from_linkage(Z, [[0.0], [1.0], [10.0], [11.0]])
    assert h.cut(n_clusters=3).tolist() == [0, 0, 1, 2]
    assert h.linkage_matrix()[:2, :2].tolist() == [[0, 1], [2, 3]]


@pytest.mark.parametrize(("linkage", "metric"), SCHEMES)
def test_cophenetic_is_scipys(rng, linkage, metric):
    h = unrefined(rng, 30, linkage, metric)
    h.remove([4, 5])
    np.testing.assert_allclose(h.cophenetic(), sch.cophenet(h.linkage_matrix()), rtol=1e-12)
    if linkage != "ward":
        np.testing.assert_array_equal(h.cophenetic(as_dissimilarity=True), h.cophenetic())


@pytest.mark.parametrize("weighted", [False, True])
def test_cophenetic_of_ward_has_heights_of_average_linkage(rng, weighted):
    """The matrix U of the paper's section 5.2."""
    x = rng.normal(size=(25, 2))
    w = rng.uniform(0.5, 3, size=25) if weighted else None
    h = hierarchy_of(naive.random_tree(rng, 25), x, sample_weight=w)
    for _ in range(2):
        expected = naive.cophenetic(nested(h), naive.average(square(pdist(x)), w))
        np.testing.assert_allclose(square(h.cophenetic(as_dissimilarity=True)), expected, rtol=1e-12)
        raw = naive.cophenetic(nested(h), naive.average(square(pdist(x)), w), monotone=False)
        found = h.cophenetic(as_dissimilarity=True, monotone=False)
        np.testing.assert_allclose(square(found), raw, rtol=1e-12)
        h.refine()


@pytest.mark.parametrize(("linkage", "metric"), SCHEMES)
def test_cophenetic_is_an_ultrametric(rng, linkage, metric):
    """u(i, j) ≤ max(u(i, k), u(k, j)), on trees that are not refined too."""
    h = unrefined(rng, 15, linkage, metric)
    for _ in range(2):
        u = square(h.cophenetic())
        assert np.all(u[:, None, :] <= np.maximum(u[:, :, None], u[None, :, :]) + 1e-12)
        h.refine()


@pytest.mark.parametrize("n", [0, 1, 2])
def test_small_hierarchies(n):
    h = Hierarchy()
    h.insert(np.arange(2.0 * n).reshape(n, 2))
    assert len(h) == n
    assert h.keys() == list(range(n))
    assert h.nodes().size == max(2 * n - 1, 0)
    assert h.linkage_matrix().shape == (max(n - 1, 0), 4)
    assert h.cophenetic().shape == (n * (n - 1) // 2,)
    assert h.is_homogeneous()
    assert h.is_monotone()
    assert h.violations().size == 0
    h.validate()
    if n:
        assert h.members(h.root) == h.keys()
        assert h.cut(n_clusters=1).tolist() == [0] * n
        assert h.cut(height=0).tolist() == list(range(n))


def test_members_are_in_the_order_of_keys(rng):
    h = Hierarchy()
    h.insert(rng.normal(size=(10, 2)), keys=list("jihgfedcba"))
    h.update(["j"], [[0.0, 0.0]])
    assert h.members(h.root) == list("jihgfedcba")


def test_copy_shares_nothing(rng):
    for linkage, metric in SCHEMES:
        h = new(linkage, metric)
        h.insert(rng.normal(size=(20, 2)), keys=[f"k{i}" for i in range(20)])
        twin = h.copy()
        assert fingerprint(twin) == fingerprint(h)
        before = fingerprint(h)
        twin.remove(["k3"])
        twin.update(["k4"], [[9.0, 9.0]])
        twin.insert([[1.0, 1.0]])
        assert fingerprint(h) == before


def test_pickle_and_deepcopy(rng):
    for linkage, metric in SCHEMES:
        h = new(linkage, metric)
        h.insert(rng.normal(size=(20, 2)))
        h.remove([3])
        for twin in (pickle.loads(pickle.dumps(h)), copy.deepcopy(h), copy.copy(h)):
            np.testing.assert_array_equal(twin.linkage_matrix(), h.linkage_matrix())
            assert (
                twin.state.live.tree.size.strides == h.state.live.tree.size.strides
            )  # or kernels would be compiled anew
            twin.insert([[1.0, 2.0]])
            twin.validate()
            assert (len(twin), len(h)) == (20, 19)


@pytest.mark.parametrize("node", [-1, 10**6, 1.5, "a", None, True])
def test_unknown_nodes(rng, node):
    h = unrefined(rng, 5)
    for ask in (h.parent, h.children, h.sibling, h.members, h.height):
        with pytest.raises(UnknownNodeError, match="node must be a node of the tree as it is now; it is"):
            ask(node)


def test_nodes_that_are_free_are_unknown(rng):
    h = unrefined(rng, 5)
    leaf = h.leaf(2)
    h.remove([2])
    with pytest.raises(UnknownNodeError):
        h.parent(leaf)
    with pytest.raises(UnknownKeyError, match="no live point has the key 2"):
        h.leaf(2)


def test_an_empty_hierarchy_says_so():
    h = Hierarchy()
    with pytest.raises(EmptyHierarchyError, match="root needs at least one point"):
        _ = h.root
    with pytest.raises(EmptyHierarchyError, match="cut needs at least one point"):
        h.cut(n_clusters=1)
    with pytest.raises(EmptyHierarchyError, match="insert points first"):
        h.cut(height=1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "it got none of them"),
        ({"n_clusters": 2, "height": 1.0}, "n_clusters or height, not both"),
        ({"n_clusters": 0}, "n_clusters must be an integer from 1 to 5; it is 0"),
        ({"n_clusters": 6}, "from 1 to 5; it is 6"),
        ({"n_clusters": 2.0}, "must be an integer"),
        ({"n_clusters": True}, "must be an integer"),
        ({"height": -1}, "height must be a non-negative number; it is -1"),
        ({"height": float("nan")}, "height must be"),
        ({"height": True}, "height must be"),
        ({"min_cluster_size": 0}, "min_cluster_size must be a positive integer; it is 0"),
        ({"n_clusters": 4, "min_cluster_size": 2}, "n_clusters must be at most ., as many as have 2 points or more"),
    ],
)
def test_bad_cuts(rng, arguments, message):
    with pytest.raises(ParameterError, match=message):
        unrefined(rng, 5).cut(**arguments)


def test_repr_says_what_it_is():
    h = Hierarchy("average", "cosine")
    assert repr(h) == "Hierarchy(linkage='average', metric='cosine'): empty"
    h.insert(np.ones((3, 2), np.float32))
    assert repr(h) == "Hierarchy(linkage='average', metric='cosine'): 3 points, 2 columns of float32"


def test_memory_is_twice_the_data_and_a_little(rng):
    x = rng.normal(size=(500, 16))
    for goal, more in (("homogeneous", 200), ("stable", 370)):  # lists of neighbours
        h = Hierarchy(goal=goal)
        h.insert(x)
        assert h.n_bytes <= 2 * x.nbytes + more * len(x)
