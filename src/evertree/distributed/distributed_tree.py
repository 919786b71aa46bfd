"""`DistributedTree`: the parts of a tree and the top tree above them, refined across parts in rounds.

In each round the parts send summaries of themselves; nodes that may be in a blocking pair with a node of another part
search for it; the pairs that were found are added to the summaries, and these are refined together as one tree; its
subtrees are assigned to parts again, which refine where they have changed. The result does not depend on which task
ends first, because whatever comes from parts is put in the order of their numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evertree.distributed import cross_partition_search as search
from evertree.distributed import parts as tasks
from evertree.distributed.cross_partition_search import BlockingPairs
from evertree.distributed.dask_runner import Runner, share
from evertree.distributed.parts import PartSummary
from evertree.distributed.rebalance import join_parts, join_summaries, rebalance
from evertree.distributed.subtrees import NO_SIGNATURES, STRIDE, Shape, Subtrees, is_postorder, live_nodes, to_live
from evertree.errors import InvariantError
from evertree.kernels.columns import NULL
from evertree.tree import Aim
from evertree.tree.scheme import Scheme

#: The most rounds.
MOST_ROUNDS = 30

#: The most blocking pairs that are resolved in one round, as a share of `part_size`, so that they fit into one task;
#: and a number that is always allowed.
SHARE_OF_PAIRS = 0.25
FEWEST_PAIRS = 1_000


@dataclass
class RoundCounts:
    """What the rounds have done so far.

    Attributes
    ----------
    rounds, moves, grafts : int
        Moves and grafts include those of building the parts.
    n_queries : int
        Queries in the last round.
    n_pairs : int
        Blocking pairs found across parts in the last round.
    n_changed : int
        Parts that changed in the last round.
    stopped_by : str or None
        ``"stable"``, or ``"rounds"`` after `MOST_ROUNDS`; None before the end.
    """

    rounds: int = 0
    moves: int = 0
    grafts: int = 0
    n_queries: int = 0
    n_pairs: int = 0
    n_changed: int = 0
    stopped_by: str | None = None


class _Fetched(NamedTuple):
    """A summary, and its handle."""

    summary: PartSummary
    handle: Any


class DistributedTree:
    """The parts of a tree, the top tree above their subtrees, and how they are refined.

    Attributes
    ----------
    handles : dict
        The handle of each `Part`, by its number. No part is empty.
    top : Shape
        The top tree. The id of a leaf is the number of its part times STRIDE, plus the position of the subtree there.
    """

    def __init__(self, handles: Mapping[int, Any], top: Shape, scheme: Scheme, aim: Aim, part_size: int) -> None:
        self.handles = dict(sorted(handles.items()))
        self.top = top
        self.scheme, self.aim, self.part_size = scheme, aim, part_size
        self._fetched: dict[int, _Fetched] = {}
        #: Parts whose due nodes have not searched yet.
        self._is_due = set(self.handles)
        #: Signatures of further nodes that have to search again, in whatever part they are now.
        self._search_again = NO_SIGNATURES
        #: The nodes of the upper tree that have searched, and all nodes of the last round by number: each by its
        #: signature, its height and the height of its parent.
        self._searched: set[tuple[float, ...]] = set()
        self._upper_nodes: list[tuple[float, ...]] = []

    @classmethod
    def from_parts(
        cls,
        runner: Runner,
        handles: Mapping[int, Any],
        part_of: NDArray[np.int64],
        children: NDArray[np.int32],
        scheme: Scheme,
        aim: Aim,
        part_size: int,
    ) -> DistributedTree:
        """A tree of new parts, not refined across them.

        Parameters
        ----------
        handles
            Of parts. `Part.origin` says which of its groups each subtree comes from.
        part_of
            The part of each group, ascending. Groups and parts may be empty.
        children
            The tree above all groups, in postorder: group g is node g, and union j is node n_groups + j.
        """
        position = np.arange(part_of.size) - np.searchsorted(part_of, part_of)
        tree = cls(handles, Shape(part_of * STRIDE + position, children), scheme, aim, part_size)
        tree.replace_parts(runner, handles)
        return tree

    def replace_parts(self, runner: Runner, handles: Mapping[int, Any]) -> None:
        """Put edited parts in the place of the old ones; some of their subtrees may be gone. Call `refine` next.

        Parameters
        ----------
        handles
            Of the parts that `insert_into`, `remove_from` or `combine` returned, by number.
        """
        self.handles.update(handles)
        for number in handles:
            self._fetched.pop(number, None)
        self._is_due.update(handles)
        self._fetch_summaries(runner)
        position = {
            number * STRIDE + int(was): number * STRIDE + i
            for number in handles
            for i, was in enumerate(self._fetched[number].summary.origin)
        }
        is_edited = np.isin(self.top.ids // STRIDE, list(handles))
        gone = is_edited & ~np.isin(self.top.ids, list(position))
        self.top = self.top.without(gone)
        self.top = self.top._replace(ids=np.array([position.get(i, i) for i in self.top.ids.tolist()], np.int64))
        for number in handles:
            if self._fetched[number].summary.subtrees.n_leaves == 0:
                del self.handles[number], self._fetched[number]
                self._is_due.discard(number)

    def copy(self) -> DistributedTree:
        """The same tree, to edit and refine apart from this one."""
        twin = DistributedTree(self.handles, self.top, self.scheme, self.aim, self.part_size)
        twin._fetched, twin._is_due = dict(self._fetched), set(self._is_due)
        twin._search_again, twin._searched = self._search_again, set(self._searched)
        return twin

    def is_due(self, number: int) -> bool:
        """Whether nodes of a part have yet to search other parts."""
        return number in self._is_due

    def reload(self, handles: Mapping[int, Any]) -> None:
        """Take the same parts from another place, and let go of the old handles."""
        self.handles = dict(sorted(handles.items()))
        self._fetched.clear()

    def release(self) -> None:
        """Let go of all handles."""
        self.handles = dict.fromkeys(self.handles)
        self._fetched.clear()

    def upper(self, runner: Runner) -> Subtrees:
        """The upper tree: the top tree with the summary of each part. There must be a point."""
        self._fetch_summaries(runner)
        return join_parts(self.top, {number: fetched.summary.subtrees for number, fetched in self._fetched.items()})

    def whole(self, runner: Runner) -> Subtrees:
        """The whole tree, which must fit into the memory of one machine. There must be a point."""
        parts = zip(self.handles, runner.gather(list(self.handles.values())), strict=True)
        return join_parts(self.top, {number: part.subtrees for number, part in parts})

    def scan(self, runner: Runner) -> tuple[int, int]:
        """The number of inversions, and of violations of homogeneity, in the whole tree."""
        if not self.handles:
            return 0, 0
        how = self.scheme, self.aim
        found = [runner.submit("scan", tasks.scan_part, handle, *how) for handle in self.handles.values()]
        upper = self.upper(runner)
        found.append(runner.submit("scan", tasks.scan, upper, self._nodes_above_parts(upper), *how))
        inverted, violated = np.sum(runner.gather(found), axis=0)
        return int(inverted), int(violated)

    def validate(self, runner: Runner, n_points: int) -> None:
        """Raise an `InvariantError` if the tree breaks an invariant.

        Each part sends its insertion numbers, to see that none is there twice: eight bytes for each point.
        """
        how = self.scheme, self.aim
        handles = [runner.submit("validate", tasks.validate_part, handle, *how) for handle in self.handles.values()]
        ids, positions = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for number, (wrong, of_part, n_subtrees) in zip(self.handles, runner.gather(handles), strict=True):
            _require(wrong is None, f"part {number}: {wrong}")
            ids.append(of_part)
            positions.append(number * STRIDE + np.arange(n_subtrees))
        every, top = np.concatenate(ids), self.top
        _require(every.size == n_points, f"the parts have {every.size} points, and not {n_points}")
        _require(np.unique(every).size == every.size, "a point is in two parts")
        has_all = np.array_equal(np.sort(top.ids), np.concatenate(positions))
        _require(has_all, "the top tree does not have each subtree once")
        is_tree = is_postorder(top.children, top.ids.size) and len(top.children) == max(top.ids.size - 1, 0)
        _require(is_tree, "the top tree is no tree")

    def refine(self, runner: Runner, progress: Callable[[RoundCounts], object] | None = None) -> RoundCounts:
        """Refine until a round changes nothing. `progress` is called after each round."""
        counts = RoundCounts()
        self._fetch_summaries(runner)
        self._count(counts, self._is_due)
        while counts.stopped_by is None:
            if counts.rounds == MOST_ROUNDS:
                counts.stopped_by = "rounds"
            elif not self._round(runner, counts):
                counts.stopped_by = "stable"
            if progress is not None:
                progress(counts)
        return counts

    def _round(self, runner: Runner, counts: RoundCounts) -> bool:
        """One round; return whether another is needed: something has changed, or there are more pairs."""
        if not self.handles:
            return False
        pairs = self._find_pairs(runner, counts)
        most = max(FEWEST_PAIRS, int(SHARE_OF_PAIRS * self.part_size))
        order = np.argsort(pairs.value, kind="stable")
        left = self._signatures_of(runner, pairs.node[order[most:]])
        # A node that found a partner may have another one, which is found when the first is gone.
        self._search_again = np.concatenate([self._signatures_of(runner, pairs.node[order[:most]]), left])
        summaries, shapes = self._open_pairs(runner, pairs.at(order[:most]))
        upper = self.top, list(summaries), list(summaries.values()), self.part_size, self.scheme, self.aim
        ((self.top, new_shapes, moves, grafts),) = runner.gather([runner.submit("rebalance", rebalance, *upper)])
        changed = self._assemble(runner, shapes, new_shapes)
        self._fetch_summaries(runner)
        counts.rounds, counts.n_changed = counts.rounds + 1, len(changed)
        counts.moves, counts.grafts = counts.moves + moves, counts.grafts + grafts
        self._count(counts, changed)
        if changed or moves or grafts:
            return True
        self._search_again = left
        return order.size > most

    def _count(self, counts: RoundCounts, numbers: set[int]) -> None:
        """Add the moves and grafts of the last tasks on the parts of some numbers."""
        for number in numbers & set(self._fetched):
            summary = self._fetched[number].summary
            counts.moves, counts.grafts = counts.moves + summary.moves, counts.grafts + summary.grafts

    def _fetch_summaries(self, runner: Runner) -> None:
        """Fetch the summaries of parts that have changed."""
        numbers = [number for number in self.handles if number not in self._fetched]
        handles = [self._summarise(runner, number, None) for number in numbers]
        for number, handle, summary in zip(numbers, handles, runner.gather(handles), strict=True):
            self._fetched[number] = _Fetched(summary, handle)
        self._fetched = dict(sorted(self._fetched.items()))

    def _summarise(self, runner: Runner, number: int, nodes: NDArray[np.int64] | None) -> Any:
        part, size = self.handles[number], self.part_size
        return runner.submit("summarise", tasks.summarise, part, number, nodes, size, self.scheme, self.aim)

    def _nodes_above_parts(self, upper: Subtrees) -> NDArray[np.int64]:
        """The nodes of the upper tree that are in no part, or the root of a subtree there."""
        trees = {number: fetched.summary.subtrees.split() for number, fetched in self._fetched.items()}
        n_leaves = np.array([trees[i // STRIDE][i % STRIDE].n_leaves for i in self.top.ids.tolist()])
        ends = np.cumsum(n_leaves)
        first, stop = upper.leaf_ranges()
        return np.flatnonzero(np.isin(first, ends - n_leaves) & np.isin(stop, ends))

    def _find_pairs(self, runner: Runner, counts: RoundCounts) -> BlockingPairs:
        """Blocking pairs across parts, at most one for each node that searches."""
        lightest = min(fetched.summary.lightest for fetched in self._fetched.values())
        summaries = [fetched.handle for fetched in self._fetched.values()]
        upper = runner.submit("upper", join_summaries, self.top, list(self._fetched), summaries)
        how, again = (self.scheme, self.aim), share(runner, "signatures", self._search_again)
        searches = [
            runner.submit(
                "search", search.search_from_part, handle, number, upper, lightest, self.is_due(number), again, *how
            )
            for number, handle in self.handles.items()
            if len(self._search_again) or (self.is_due(number) and self._fetched[number].summary.n_due)
        ]
        nodes = self._changed_upper_nodes(self.upper(runner))
        if nodes.size:
            searches.append(runner.submit("search", search.search_from_upper, upper, nodes, lightest, *how))
        found = runner.gather([runner.submit("search-count", search.counts_and_pairs, handle) for handle in searches])
        counts.n_queries = sum(sum(n_queries.values()) for n_queries, _ in found)
        answers = []
        for number in sorted({number for n_queries, _ in found for number in n_queries}):
            queries = [
                runner.submit("pick", search.queries_to, handle, number)
                for handle, (n_queries, _) in zip(searches, found, strict=True)
                if number in n_queries
            ]
            answers.append(runner.submit("answer", search.answer, self.handles[number], number, queries, *how))
        pairs = search.best_pairs([pairs for _, pairs in found] + runner.gather(answers))
        counts.n_pairs = pairs.node.size
        self._is_due.clear()
        return pairs

    def _signatures_of(self, runner: Runner, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
        """The signatures of nodes of parts. Nodes of the upper tree count as not searched instead: the same effect."""
        self._searched -= {self._upper_nodes[-1 - node] for node in nodes[nodes < 0].tolist()}
        found = [
            runner.submit("signatures", tasks.signatures_of, self.handles[number], some)
            for number, some in _by_part(nodes[nodes >= 0]).items()
        ]
        return np.concatenate([NO_SIGNATURES, *runner.gather(found)])

    def _changed_upper_nodes(self, upper: Subtrees) -> NDArray[np.int64]:
        """The nodes of the upper tree, without the root, that have changed since they last searched."""
        live = to_live(upper, self.scheme, self.aim)
        u = live_nodes(upper, np.arange(upper.n_nodes))
        parent = live.tree.parent[u]
        columns = *upper.signatures().T, live.tree.height[u], live.tree.height[parent]
        self._upper_nodes = list(zip(*(column.tolist() for column in columns), strict=True))
        is_changed = np.array([node not in self._searched for node in self._upper_nodes]) & (parent != NULL)
        self._searched = set(self._upper_nodes)
        return np.flatnonzero(is_changed)

    def _open_pairs(self, runner: Runner, pairs: BlockingPairs) -> tuple[dict[int, Any], dict[int, list[Shape]]]:
        """Handles of summaries that reach down to the nodes of pairs, and their shapes."""
        nodes = np.concatenate([pairs.node, pairs.partner])
        by_part = _by_part(np.unique(nodes[nodes >= 0]))
        opened = {number: self._summarise(runner, number, some) for number, some in by_part.items()}
        of_opened = runner.gather([runner.submit("shape", tasks.shapes_of, handle) for handle in opened.values()])
        summaries = {number: fetched.handle for number, fetched in self._fetched.items()}
        shapes = {number: tasks.shapes_of(fetched.summary) for number, fetched in self._fetched.items()}
        return {**summaries, **opened}, {**shapes, **dict(zip(opened, of_opened, strict=True))}

    def _assemble(self, runner: Runner, old: Mapping[int, list[Shape]], new: Mapping[int, list[Shape]]) -> set[int]:
        """Give the parts their new shapes; return the numbers of those that have changed."""
        before, after = ({number: [one.key() for one in some] for number, some in of.items()} for of in (old, new))
        changed = {number for number in {*new, *old} if before.get(number) != after.get(number)}
        handles, again = {}, share(runner, "signatures", self._search_again)
        for number in sorted(changed & set(new)):
            shapes = new[number]
            ids = np.unique(np.concatenate([shape.ids for shape in shapes]))
            extracted = [
                runner.submit("extract", tasks.extract, self.handles[other], other, other * STRIDE + some)
                for other, some in _by_part(ids).items()
                if other != number
            ]
            is_new = [key not in before.get(number, ()) for key in after[number]]
            how = again, self.scheme, self.aim
            handles[number] = runner.submit(
                "assemble", tasks.assemble, self.handles.get(number), number, shapes, is_new, extracted, *how
            )
        self.handles = dict(sorted({**self.handles, **handles}.items()))
        for number in changed:
            self._fetched.pop(number, None)
            if number in new:
                self._is_due.add(number)
            else:
                del self.handles[number]
        return changed


def _by_part(ids: NDArray[np.int64]) -> dict[int, NDArray[np.int64]]:
    """The nodes of some stub ids, by the number of their part."""
    number = ids // STRIDE
    return {int(some): ids[number == some] % STRIDE for some in np.unique(number)}


def _require(condition: bool, what: str) -> None:
    if not condition:
        raise InvariantError(f"{what}: a bug in evertree, please report it")
