"""Newick: what is written has SciPy's distances, and what is read back is the same tree."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.cluster.hierarchy import cophenet, is_monotonic, is_valid_linkage, linkage, to_tree
from scipy.spatial.distance import pdist

from evertree.errors import DataError, InvalidKeyError
from evertree.io import read_newick, write_newick
from matrices import EMPTY, N_DEEP, ODD_LABELS, PAIR, caterpillar, random_linkage


def by_label(tree, labels):
    """The cophenetic distances of a parsed tree, for leaves in another order."""
    n = len(labels)
    square = np.zeros((n, n))
    square[np.triu_indices(n, 1)] = cophenet(tree.Z) if n > 1 else 0.0
    square += square.T
    place = {label: i for i, label in enumerate(tree.labels)}
    order = [place[label] for label in labels]
    return square[np.ix_(order, order)][np.triu_indices(n, 1)]


def newick_distances(text, n):
    """Half the way from leaf to leaf along the branches, read in another way: by a stack of open nodes."""
    depth_of, ancestors_of, branch = {}, {}, {}
    stack, n_seen = [[]], 0
    for mark, label, length in re.findall(r"([(),;])|(?:(\d+)?:([-+.e\d]+))", text):
        if mark == "(":
            stack.append([])
        elif mark == ")":
            n_seen += 1
            below = [leaf for _, leaves in stack.pop() for leaf in leaves]
            stack[-1].append((f"inner {n_seen}", below))
        elif length:
            if label:
                stack[-1].append((f"leaf {label}", [int(label)]))
            branch[stack[-1][-1][0]] = (float(length), stack[-1][-1][1])
    for node, (length, below) in branch.items():
        for leaf in below:
            depth_of[leaf] = depth_of.get(leaf, 0.0) + length
            ancestors_of.setdefault(leaf, {})[node] = length
    ways = []
    for i in range(n):
        for j in range(i + 1, n):
            common = ancestors_of[i].keys() & ancestors_of[j].keys()
            ways.append((depth_of[i] + depth_of[j]) / 2 - sum(branch[node][0] for node in common))
    return np.array(ways)


@pytest.mark.parametrize("method", ["single", "average", "complete", "ward"])
@pytest.mark.parametrize("n", [2, 3, 12, 40])
def test_branch_lengths_are_cophenetic_distances(rng, n, method):
    Z = random_linkage(rng, n, method)
    np.testing.assert_allclose(newick_distances(write_newick(Z, range(n)), n), cophenet(Z), rtol=1e-12)


def test_newick_follows_scipys_tree(rng):
    Z = random_linkage(rng, 20)

    def text(node):
        return str(node.id) if node.is_leaf() else f"({text(node.left)},{text(node.right)})"

    assert write_newick(Z, range(20), branch_lengths=False) == text(to_tree(Z)) + ";"


def test_small_trees_are_written():
    assert write_newick(EMPTY, []) == ";"
    assert write_newick(EMPTY, ["a"]) == "a;"
    assert write_newick(PAIR, ["a", ("b", 1)]) == "(a:2.5,'(''b'', 1)':2.5);"
    assert write_newick(PAIR, ["a", "b"], branch_lengths=False) == "(a,b);"


def test_no_branch_is_negative():
    Z = np.array([[0.0, 1.0, 1.0, 2.0], [2.0, 3.0, 1.0 - 1e-16, 3.0]])
    assert write_newick(Z, "abc") == "(c:0.9999999999999999,(a:1.0,b:1.0):0.0);"


@pytest.mark.parametrize("label", ODD_LABELS)
def test_odd_labels_come_back(label):
    for keys in ([label, "other"], ["other", label]):
        assert read_newick(write_newick(PAIR, keys)).labels == keys
    assert read_newick(write_newick(EMPTY, [label])).labels == [label]


def test_only_what_needs_quotes_gets_them():
    assert write_newick(PAIR, ["a-1.5", "木"]) == "(a-1.5:2.5,木:2.5);"
    for label in ["a_b", "a b", "", "a/b", "-", '"']:
        assert f"'{label}'" in write_newick(PAIR, ["other", label])


def test_keys_with_the_same_text_are_refused():
    Z = random_linkage(np.random.default_rng(0), 4)
    with pytest.raises(
        InvalidKeyError, match=r"the keys 1, '1' have the same text '1'.*: give these points keys"
    ) as caught:
        write_newick(Z, ["a", 1, "1", "b"])
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("method", ["single", "average", "ward"])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 30, 200])
def test_round_trip(rng, n, method):
    Z, keys = random_linkage(rng, n, method), [f"key {i}" for i in range(n)]
    text = write_newick(Z, keys)
    tree = read_newick(text)
    assert sorted(tree.labels) == sorted(keys)
    assert tree.Z.shape == (max(n - 1, 0), 4)
    if n > 1:
        assert is_valid_linkage(tree.Z)
        assert is_monotonic(tree.Z)
        np.testing.assert_allclose(tree.Z[:, 2], Z[:, 2], rtol=1e-12)
        np.testing.assert_allclose(by_label(tree, keys), cophenet(Z), rtol=1e-12)
    assert write_newick(tree.Z, tree.labels, branch_lengths=False) == write_newick(Z, keys, branch_lengths=False)


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_round_trip_of_extreme_heights(rng, scale):
    Z = random_linkage(rng, 30, "complete")
    Z[:, 2] *= scale
    np.testing.assert_allclose(read_newick(write_newick(Z, range(30))).Z[:, 2], Z[:, 2], rtol=1e-12)


def test_round_trip_of_ties(rng):
    Z = linkage(rng.integers(0, 3, size=(60, 2)).astype(float), "single")
    tree = read_newick(write_newick(Z, range(60)))
    assert is_valid_linkage(tree.Z)
    assert np.array_equal(by_label(tree, [str(i) for i in range(60)]), cophenet(Z))


@settings(max_examples=200)
@given(
    st.lists(st.text(st.characters(codec=None, exclude_categories=())), max_size=12, unique=True), st.integers(0, 99)
)
def test_round_trip_of_any_text(labels, seed):
    Z = random_linkage(np.random.default_rng(seed), len(labels))
    tree = read_newick(write_newick(Z, labels))
    assert sorted(tree.labels) == sorted(labels)
    np.testing.assert_allclose(by_label(tree, labels), cophenet(Z) if len(Z) else [], rtol=1e-12)


@settings(max_examples=300)
@given(st.text("()',:;[]ab1 .e-_", max_size=25))
def test_any_text_is_read_or_refused(text):
    try:
        tree = read_newick(text, resolve=True)
    except DataError:
        return
    assert len(tree.Z) == max(len(tree.labels) - 1, 0)
    assert len(tree.Z) == 0 or (is_valid_linkage(tree.Z) and is_monotonic(tree.Z))


def test_heights_are_the_longest_ways_down():
    tree = read_newick("((a:1,b:4):2,(c:1,d:2):0.5):7;")
    assert tree.labels == ["a", "b", "c", "d"]
    assert tree.Z.tolist() == [[2, 3, 2, 2], [0, 1, 4, 2], [5, 4, 6, 4]]


def test_without_lengths_heights_are_levels():
    assert read_newick("(((a,b),c),(d,e)):3;").Z.tolist() == [[0, 1, 1, 2], [3, 4, 1, 2], [5, 2, 2, 3], [7, 6, 3, 5]]


def test_missing_and_negative_lengths_count_as_zero():
    assert read_newick("((a:1,b),c);").Z[:, 2].tolist() == [1, 1]
    tree = read_newick("((a:1,b:1):-0.5,c:-2);")
    assert tree.Z[:, 2].tolist() == [1, 1]
    assert is_valid_linkage(tree.Z)


@pytest.mark.parametrize(
    "text",
    [
        "((a:1,b:1):2,c:3);",
        " ( ( a : 1 ,\n b : 1 ) : 2 ,\tc : 3 ) ; \n",
        "[&R] ((a[x]:1[y],b:[z]1)[(:;,'\"]:2,c:3[nested [twice] over])[];[end]",
        "(('a':1,'b':1)inner:2,'c':3)'the root':9;",
        "((a:+1.0,b:1.e0)0.95:20E-1,c:.3e+1);",
        "((((a:0.5):0.5,b:1)):2,(c:3));",
        "(((a:1,b:1):2,c:3));",
        "((((a:0.5)x:0.5,b:1)'y':1.5):0.5,((c:1)):2)z;",
    ],
)
def test_ways_to_write_one_tree(text):
    tree = read_newick(text)
    assert tree.labels == ["a", "b", "c"]
    assert tree.Z.tolist() == [[0, 1, 1, 2], [3, 2, 3, 3]]


def test_small_trees_are_read():
    for text in [";", " ;", "[nothing];"]:
        tree = read_newick(text)
        assert tree.labels == []
        assert tree.Z.shape == (0, 4)
    for text in ["a;", "a:3;", "(a);", "((a:1):2)x:3;"]:
        tree = read_newick(text)
        assert tree.labels == ["a"]
        assert tree.Z.shape == (0, 4)
    assert read_newick("(a,b);").Z.tolist() == [[0, 1, 1, 2]]


def test_underscores_stay():
    assert read_newick("(a_b,'c_d');").labels == ["a_b", "c_d"]


MALFORMED = {
    "": "position 0, expected a label, '(' or ';', but found the end of the text",
    "[a];b": "position 4, expected the end of the text, but found 'b': read one tree at a time",
    "(a,b)": "position 5, expected a label, ':' or ';', but found the end of the text",
    "(a,b": "position 4, expected ':', ',' or ')', but found the end of the text",
    "(a,b;": "position 4, expected ':', ',' or ')', but found ';'",
    "(a,b));": "position 5, expected a label, ':' or ';', but found ')'",
    "a,b;": "position 1, expected ':' or ';', but found ','",
    "(a,b)x,c;": "position 6, expected ':' or ';', but found ','",
    "();": "position 1, expected a label or '(', but found ')'",
    "(a,);": "position 3, expected a label or '(', but found ')'",
    "(,a);": "position 1, expected a label or '(', but found ','",
    "(a,:1);": "position 3, expected a label or '(', but found ':'",
    "(a:1,(:1):2);": "position 6, expected a label or '(', but found ':'",
    "(a:,b);": "position 3, expected the length of a branch, but found ','",
    "(a:'1',b);": "position 3, expected the length of a branch, but found '1'",
    "(a:x,b);": "position 3, expected a finite number as the length of a branch, but found 'x'",
    "(a:nan,b:1);": "position 3, expected a finite number",
    "(a:1,b:inf);": "position 7, expected a finite number",
    "(a:1e999,b:1);": "position 3, expected a finite number",
    "(a:1_0,b:1);": "position 3, expected a finite number",
    "(a:１,b:1);": "position 3, expected a finite number",
    "(a:1:2,b:1);": "position 4, expected ',' or ')', but found ':'",
    "(a:1 x,b:1);": "position 5, expected ',' or ')', but found 'x'",
    "(a b,c);": "position 3, expected ':', ',' or ')', but found 'b': a label of several words needs quotes",
    "(a(b,c));": "position 2, expected ':', ',' or ')', but found '('",
    "(a,b)(c,d);": "position 5, expected a label, ':' or ';', but found '('",
    "('a,b);": "position 1, found a quote that is never closed",
    "('a''b,c);": "position 1, found a quote that is never closed",
    "(it's,b);": "position 3, found a quote that is never closed",
    "(a[x,b);": "expected a ']' for the comment that starts at position 2",
    "(a[x[y],b);": "expected a ']' for the comment that starts at position 2",
    "(a],b);": "position 2, found ']' outside a comment",
    "(a,b);(c,d);": "position 6, expected the end of the text, but found '(': read one tree at a time",
    "(a,b);;": "position 6, expected the end of the text, but found ';'",
}


@pytest.mark.parametrize("text", MALFORMED)
def test_malformed_text_is_refused(text):
    with pytest.raises(DataError) as caught:
        read_newick(text)
    assert str(caught.value).startswith("not a Newick tree: ")
    assert MALFORMED[text] in str(caught.value)


def test_equal_labels_are_refused():
    with pytest.raises(DataError, match="labels of leaves must differ; given more than once: 'a'"):
        read_newick("((a,b),'a');")


def test_text_must_be_text():
    with pytest.raises(DataError, match="text must be a str; it is bytes"):
        read_newick(b"(a,b);")


def test_too_long_branches_are_refused():
    with pytest.raises(DataError, match="larger unit"):
        read_newick("((a:1e308,b:1):1.7e308,c:1);")


def test_a_node_with_many_children_is_refused():
    with pytest.raises(DataError, match=r"the node at position 3 has 4 children, .*: resolve=True merges them"):
        read_newick("(a,(b,c,d,e));")


def test_a_node_with_many_children_is_resolved():
    tree = read_newick("((a:1,b:2,c:1,d:1):1,e:3,f:3);", resolve=True)
    assert tree.labels == list("abcdef")
    assert tree.Z.tolist() == [[0, 1, 2, 2], [6, 2, 2, 3], [7, 3, 2, 4], [8, 4, 3, 5], [9, 5, 3, 6]]
    assert is_valid_linkage(tree.Z)


def test_resolved_children_meet_at_one_height():
    # The last child is the farthest: the merges of the others wait for it.
    assert read_newick("(a:1,b:1,c:5);", resolve=True).Z[:, 2].tolist() == [5, 5]
    assert read_newick("(a,b,(c,d));", resolve=True).Z[:, 2].tolist() == [1, 2, 2]


def test_resolve_changes_nothing_else(rng):
    text = write_newick(random_linkage(rng, 30), range(30))
    assert np.array_equal(read_newick(text, resolve=True).Z, read_newick(text).Z)


def test_parsed_tree_is_frozen():
    with pytest.raises(AttributeError):
        read_newick("(a,b);").labels = []


def test_deep_newick(seconds):
    Z = caterpillar(N_DEEP)
    tree = read_newick(write_newick(Z, range(N_DEEP)))
    assert tree.labels == [str(i) for i in range(N_DEEP)]
    np.testing.assert_allclose(tree.Z, Z, rtol=1e-12)


@pytest.mark.slow
def test_deep_newick_of_equal_branches(seconds):
    n = N_DEEP
    text = "(" * (n - 1) + "0:0" + "".join(f",{i}:0):0.1" for i in range(1, n)) + ";"
    heights = read_newick(text).Z[:, 2]
    np.testing.assert_allclose(heights, 0.1 * np.arange(n - 1), rtol=1e-15)


@pytest.mark.slow
def test_deep_contraction_comments_and_children(seconds):
    n = N_DEEP
    assert read_newick("(" * n + "a" + ":1)" * n + ";").labels == ["a"]
    assert read_newick("[" * n + "]" * n + "(a,b);").labels == ["a", "b"]
    tree = read_newick("(" + ",".join(f"{i}:1" for i in range(n)) + ");", resolve=True)
    assert is_valid_linkage(tree.Z)
    with pytest.raises(DataError, match="expected a label"):
        read_newick("(" * n)


def test_cophenetic_correlation_survives(rng):
    X = rng.normal(size=(25, 2))
    tree = read_newick(write_newick(linkage(X, "average"), range(25)))
    order = [int(label) for label in tree.labels]
    expected, _ = cophenet(linkage(X, "average"), pdist(X))
    assert cophenet(tree.Z, pdist(X[order]))[0] == pytest.approx(expected)
