"""Trees as Newick text, the format of phylogenetics: ``((a:1,b:1):2,c:3);``."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from evertree.errors import DataError, InvalidKeyError, listed
from evertree.io.nodes import number_nodes
from evertree.kernels.columns import NULL

# Quotes never hurt, and readers differ in what they accept without them: some read an underscore as a blank.
_BARE = re.compile(r"[^\W_](?:[^\W_]|[-+.|])*")

# Possessive, so that a quote that is never closed does not match up to a doubled quote in the middle.
_TOKEN = re.compile(
    r"\s*+(?:(?P<mark>[(),:;])|'(?P<quoted>[^']*+(?:''[^']*+)*+)'|(?P<bare>[^\s()\[\],:;']++)|(?P<other>.)|\Z)"
)
_BRACKET = re.compile(r"[\[\]]")
_NUMBER = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")


def write_newick(Z: NDArray[np.float64], keys: Sequence[Hashable], branch_lengths: bool = True) -> str:
    """The tree as Newick text.

    The length of a branch is the difference of the heights of its two nodes. Leaves have height 0, so the distance from
    each leaf to the root is the height of the root.

    Parameters
    ----------
    Z : array of shape (n - 1, 4)
        SciPy's linkage matrix.
    keys : list of n keys
        ``keys[i]`` is leaf i. Labels are ``str(key)``, quoted where needed.
    branch_lengths : bool, default True
        Whether to write branch lengths, with all digits.

    Returns
    -------
    str
        One line, without a newline. It is ``;`` for a tree without leaves.

    Raises
    ------
    InvalidKeyError
        Two keys have the same text.

    Examples
    --------
    >>> from evertree.io import write_newick
    >>> Z = np.array([[0.0, 1.0, 1.0, 2.0], [2.0, 3.0, 5.0, 3.0]])
    >>> write_newick(Z, ["a", "b", "it's"])
    "('it''s':5.0,(a:1.0,b:1.0):4.0);"
    >>> write_newick(Z, ["a", "b", "c"], branch_lengths=False)
    '(c,(a,b));'
    """
    nodes = number_nodes(Z, keys)
    label = _labels(keys)
    n, n_nodes = len(keys), nodes.height.size
    if n == 0:
        return ";"
    suffix = [""] * n_nodes
    if branch_lengths:
        # Rounding may put a merge a little below its child.
        length = np.maximum(nodes.height[nodes.parent[:-1]] - nodes.height[:-1], 0.0)
        suffix[:-1] = [f":{value!r}" for value in length.tolist()]
    left, right = nodes.left.tolist(), nodes.right.tolist()
    pieces: list[str] = []
    waiting: list[int | str] = [n_nodes - 1]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            pieces.append(item)
        elif item < n:
            pieces.append(label[item] + suffix[item])
        else:
            pieces.append("(")
            waiting += [")" + suffix[item], right[item], ",", left[item]]
    return "".join(pieces) + ";"


def _labels(keys: Sequence[Hashable]) -> list[str]:
    """The keys as text, quoted where needed."""
    texts = [str(key) for key in keys]
    if len(set(texts)) < len(texts):
        shared = next(text for text, count in Counter(texts).items() if count > 1)
        same = [key for key, text in zip(keys, texts, strict=True) if text == shared]
        raise InvalidKeyError(
            f"the keys {listed(same)} have the same text {shared!r}, which Newick cannot tell apart: give these "
            "points keys with different texts"
        )
    return [text if _BARE.fullmatch(text) else "'" + text.replace("'", "''") + "'" for text in texts]


@dataclass(frozen=True, eq=False)
class ParsedTree:
    """A tree that was read from text.

    Attributes
    ----------
    labels : list of n str
        The labels of the leaves in the order of the text.
    Z : array of shape (n - 1, 4)
        SciPy's linkage matrix, in which leaf i is ``labels[i]``; heights never decrease from row to row, and the left
        child of a merge is the first in the text.

    Examples
    --------
    >>> from evertree.io import read_newick
    >>> tree = read_newick("(a:2,b:2);")
    >>> tree.labels, tree.Z.tolist()
    (['a', 'b'], [[0.0, 1.0, 2.0, 2.0]])
    """

    labels: list[str]
    Z: NDArray[np.float64]


def read_newick(text: str, resolve: bool = False) -> ParsedTree:
    """Read one tree from Newick text.

    The height of a node is its distance to its farthest leaf; all leaves have height 0, even if the text puts some of
    them nearer to the root than others. If no branch has a length, the height is the number of levels below. Otherwise
    a missing length counts as 0, and so does a negative one, because no merge is below its children.

    Labels may be in quotes, and ``''`` is the empty label; underscores in labels without quotes are kept as they are.
    Comments in ``[ ]``, which may be nested, the labels of inner nodes and the length of the root's branch are ignored.
    A node with one child is dropped, and the branches above and below it become one.

    Parameters
    ----------
    text : str
        The tree, with the semicolon at its end.
    resolve : bool, default False
        Whether to merge three or more children of a node one after the other, in the order of the text, all at the
        height of the node. By default such a node is refused.

    Returns
    -------
    ParsedTree
        The labels of the leaves, and a linkage matrix.

    Raises
    ------
    DataError
        The text is malformed, two leaves have the same label, a leaf has none, or a node has too many children.
        Positions in its message count characters from 0.

    Examples
    --------
    >>> from evertree.io import read_newick
    >>> tree = read_newick("((a:1,b:1):2,c:3)root;")
    >>> tree.labels
    ['a', 'b', 'c']
    >>> tree.Z
    array([[0., 1., 1., 2.],
           [3., 2., 3., 3.]])
    >>> read_newick("(a,b,c);", resolve=True).Z
    array([[0., 1., 1., 2.],
           [3., 2., 1., 3.]])
    >>> read_newick("(a,b;")
    Traceback (most recent call last):
        ...
    evertree.errors.DataError: not a Newick tree: at position 4, expected ':', ',' or ')', but found ';'
    """
    if not isinstance(text, str):
        raise DataError(f"text must be a str; it is {type(text).__name__}: read or decode it first")
    outline = _parse(text.removeprefix("\ufeff"))
    labels = [outline.label[u] for u in outline.leaves]
    if len(set(labels)) < len(labels):
        shared = [label for label, count in Counter(labels).items() if count > 1]
        raise DataError(f"the labels of leaves must differ; given more than once: {listed(shared)}")
    if not resolve:
        for u in outline.inner:
            if len(outline.children[u]) > 2:
                raise DataError(
                    f"the node at position {outline.position[u]} has {len(outline.children[u])} children, but a merge "
                    "has two: resolve=True merges them one after the other"
                )
    return ParsedTree(labels, _linkage_matrix(outline, _heights(outline)))


@dataclass
class _Outline:
    """The parsed text as columns, one entry per node, numbered in the order of their first characters."""

    position: list[int] = field(default_factory=list)
    parent: list[int] = field(default_factory=list)
    children: list[list[int]] = field(default_factory=list)
    label: list[str] = field(default_factory=list)
    length: list[float | None] = field(default_factory=list)
    leaves: list[int] = field(default_factory=list)
    inner: list[int] = field(default_factory=list)  # children before parents

    def add(self, position: int, parent: int, label: str) -> int:
        u = len(self.parent)
        self.position.append(position)
        self.parent.append(parent)
        self.children.append([])
        self.label.append(label)
        self.length.append(None)
        if parent != NULL:
            self.children[parent].append(u)
        return u


class _Token(NamedTuple):
    kind: str  # a mark stands for itself; "quoted", "bare", or "" at the end of the text
    value: str
    position: int


def _tokens(text: str) -> Iterator[_Token]:
    """The tokens of the text, without blanks and comments; the last one is the end of the text."""
    start = 0
    while True:
        match = _TOKEN.match(text, start)
        assert match is not None  # anything matches one of the alternatives
        kind, start = match.lastgroup, match.end()
        if kind is None:
            yield _Token("", "", start)
            return
        value, position = match[kind], match.start(kind)
        if value == "[" and kind == "other":
            start = _end_of_comment(text, position)
        elif kind == "other":
            found = "a quote that is never closed" if value == "'" else f"{value!r} outside a comment"
            raise DataError(f"not a Newick tree: at position {position}, found {found}, but expected a label or a mark")
        elif kind == "quoted":
            yield _Token(kind, value.replace("''", "'"), position - 1)
        else:
            yield _Token(value if kind == "mark" else kind, value, position)


def _end_of_comment(text: str, position: int) -> int:
    """The position after the comment that starts here."""
    depth = 0
    for match in _BRACKET.finditer(text, position):
        depth += 1 if match[0] == "[" else -1
        if depth == 0:
            return match.end()
    raise DataError(f"not a Newick tree: expected a ']' for the comment that starts at position {position}")


class _After(Enum):
    """What was read last, which decides what may come next."""

    NOTHING = auto()  # a node is to come
    CHILDREN = auto()
    LABEL = auto()
    COLON = auto()
    LENGTH = auto()
    TREE = auto()


# Where a node may end.
_NODE = (_After.CHILDREN, _After.LABEL, _After.LENGTH)


def _parse(text: str) -> _Outline:
    """Read the text into columns, without recursion."""
    outline = _Outline()
    after, opened, u = _After.NOTHING, NULL, NULL
    for token in _tokens(text):
        kind, is_label = token.kind, token.kind in ("quoted", "bare")
        if after is _After.NOTHING and kind == "(":
            opened = outline.add(token.position, opened, "")
        elif after is _After.NOTHING and is_label:
            u = outline.add(token.position, opened, token.value)
            outline.leaves.append(u)
            after = _After.LABEL
        elif after is _After.CHILDREN and is_label:
            after = _After.LABEL
        elif after in (_After.CHILDREN, _After.LABEL) and kind == ":":
            after = _After.COLON
        elif after is _After.COLON and kind == "bare":
            outline.length[u] = _read_length(token)
            after = _After.LENGTH
        elif after in _NODE and kind == "," and opened != NULL:
            after = _After.NOTHING
        elif after in _NODE and kind == ")" and opened != NULL:
            u, opened, after = opened, outline.parent[opened], _After.CHILDREN
            outline.inner.append(u)
        elif (after in _NODE or after is _After.NOTHING) and kind == ";" and opened == NULL:
            after = _After.TREE
        elif not (after is _After.TREE and kind == ""):
            _refuse(token, after, opened != NULL)
    return outline


def _read_length(token: _Token) -> float:
    length = float(token.value) if _NUMBER.fullmatch(token.value) else math.nan
    if not math.isfinite(length):
        raise DataError(
            f"not a Newick tree: at position {token.position}, expected a finite number as the length of a branch, but "
            f"found {token.value[:30]!r}"
        )
    return length


def _refuse(token: _Token, after: _After, is_inside: bool) -> NoReturn:
    """Say what was expected instead of this token."""
    expected = {
        _After.NOTHING: ["a label", "'('"],
        _After.CHILDREN: ["a label", "':'"],
        _After.LABEL: ["':'"],
        _After.COLON: ["the length of a branch"],
        _After.LENGTH: [],
        _After.TREE: ["the end of the text"],
    }[after]
    if after in _NODE and is_inside:
        expected += ["','", "')'"]
    elif after in _NODE or (after is _After.NOTHING and not is_inside):
        expected += ["';'"]
    words = " or ".join([", ".join(expected[:-1]), expected[-1]] if len(expected) > 1 else expected)
    found = repr(token.value[:30]) if token.kind else "the end of the text"
    hint = ""
    if after is _After.LABEL and token.kind in ("quoted", "bare"):
        hint = ": a label of several words needs quotes"
    elif after is _After.TREE:
        hint = ": read one tree at a time"
    raise DataError(f"not a Newick tree: at position {token.position}, expected {words}, but found {found}{hint}")


def _heights(outline: _Outline) -> list[float]:
    """The longest path down from each node, in length or, if no branch has a length, in levels."""
    lengths = outline.length
    if all(length is None for length in lengths[1:]):
        level = [0] * len(lengths)
        for u in outline.inner:
            below = [level[child] for child in outline.children[u]]
            level[u] = max(below) + (len(below) > 1)
        return [float(value) for value in level]
    # Pairs of a float and its rounding error: 100,000 plain sums would lose five digits.
    height = [(0.0, 0.0)] * len(lengths)
    for u in outline.inner:
        height[u] = max(_add(height[child], max(lengths[child] or 0.0, 0.0)) for child in outline.children[u])
        if not math.isfinite(height[u][0]):
            raise DataError("the sum of branch lengths overflows: give them in a larger unit")
    return [high for high, _ in height]


def _add(total: tuple[float, float], length: float) -> tuple[float, float]:
    """Dekker's double-double sum: the nearest float and the rest. The float never decreases."""
    high, low = total
    rough = high + length
    part = rough - high
    low += (high - (rough - part)) + (length - part)
    nearest = rough + low
    return nearest, low - (nearest - rough)


def _linkage_matrix(outline: _Outline, height: list[float]) -> NDArray[np.float64]:
    """SciPy's Z, with leaves and children in the order of the text."""
    n = len(outline.leaves)
    number = [NULL] * len(height)
    for i, u in enumerate(outline.leaves):
        number[u] = i
    size = [1] * n
    rows: list[tuple[int, int, float, int]] = []
    for u in outline.inner:
        number[u], *others = (number[child] for child in outline.children[u])
        for other in others:
            size.append(size[number[u]] + size[other])
            rows.append((number[u], other, height[u], size[-1]))
            number[u] = n + len(rows) - 1
    Z = np.array(rows, np.float64).reshape(-1, 4)
    # Stable: a merge at the height of its child still comes later.
    order = np.argsort(Z[:, 2], kind="stable")
    final = np.arange(n + len(rows))
    final[n + order] = np.arange(n, n + len(rows))
    Z[:, :2] = final[Z[:, :2].astype(np.int64)]
    return Z[order]
