"""`Forest`: the parts of a tree and what is above them, refined across the borders in rounds.

In each round the parts show their upper nodes; nodes that may be in a blocking pair with one elsewhere ask there; what
was found is laid open, and all upper nodes are refined together as one treelet; its subtrees are put back into parts,
and these refine their seams. Nothing depends on which task ends first: what comes from parts is put in their order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evertree.distributed import asking
from evertree.distributed import parts as tasks
from evertree.distributed.asking import Pairs
from evertree.distributed.parts import NO_NAMES, STRIDE, Crown
from evertree.distributed.pieces import Outline, Piece, inflate, live_nodes
from evertree.distributed.runner import Runner, share
from evertree.distributed.settling import Top, join_crowns, join_parts, settle
from evertree.kernels.columns import NULL
from evertree.tree import Aim
from evertree.tree.scheme import Scheme

#: Rounds before the guard ends refinement.
MOST_ROUNDS = 30

#: Blocking pairs that are laid open in one round, as a share of the points of a part, so that they fit into one task.
SHARE_OF_PAIRS = 0.25
FEWEST_PAIRS = 1_000


@dataclass
class Rounds:
    """What they have done so far.

    Attributes
    ----------
    rounds, moves, grafts : int
        Those of building the parts are counted too.
    n_asked : int
        Questions in the last round.
    n_pairs : int
        Blocking pairs found across borders in the last round.
    n_changed : int
        Parts that changed in the last round.
    stopped_by : str or None
        ``"stable"``, or ``"rounds"`` where the guard ended it; None while it goes on.
    """

    rounds: int = 0
    moves: int = 0
    grafts: int = 0
    n_asked: int = 0
    n_pairs: int = 0
    n_changed: int = 0
    stopped_by: str | None = None


class _Seen(NamedTuple):
    """A crown, here and where it was made."""

    crown: Crown
    handle: Any


class _Known(NamedTuple):
    """A node of the upper tree as it was when it last asked."""

    birth: int
    n_points: int
    height: float
    limit: float


class Forest:
    """The parts of a tree, by number, the tree above their subtrees, and how they are refined.

    Attributes
    ----------
    handles : dict
        The handle of each `Part`, none of which is empty.
    top : Top
    """

    def __init__(self, handles: Mapping[int, Any], top: Top, scheme: Scheme, aim: Aim, part_size: int) -> None:
        self.handles = dict(sorted(handles.items()))
        self.top = top
        self.scheme, self.aim, self.part_size = scheme, aim, part_size
        self._crowns: dict[int, _Seen] = {}
        #: Parts whose nodes that are due have not asked yet.
        self._is_due = set(self.handles)
        #: Names of further nodes that are to ask again, wherever they are now.
        self._names = NO_NAMES
        #: The nodes of the upper tree that have asked, and all that there were when they last did.
        self._known: set[_Known] = set()
        self._looked_at: list[_Known] = []

    @classmethod
    def joined(
        cls,
        runner: Runner,
        handles: Mapping[int, Any],
        part_of: NDArray[np.int64],
        children: NDArray[np.int32],
        scheme: Scheme,
        aim: Aim,
        part_size: int,
    ) -> Forest:
        """A tree of new parts, not refined.

        Parameters
        ----------
        handles
            Of parts. The `Part.origin` of each says which of its groups, counted in the part, its subtrees are.
        part_of
            The part of each group, ascending; some groups, and parts, may have come out empty.
        children
            The tree above all groups, in postorder: group g is g, and union j is n_groups + j.
        """
        place = np.arange(part_of.size) - np.searchsorted(part_of, part_of)
        forest = cls(handles, Top(part_of * STRIDE + place, children), scheme, aim, part_size)
        forest.edited(runner, handles)
        return forest

    def edited(self, runner: Runner, handles: Mapping[int, Any]) -> None:
        """Parts have been edited; subtrees of theirs may have vanished. Call `refine` next.

        Parameters
        ----------
        handles
            Of the parts that `insert_into`, `remove_from` or `in_one` made of the old ones, by number.
        """
        self.handles.update(handles)
        for number in handles:
            self._crowns.pop(number, None)
        self._is_due.update(handles)
        self._look(runner)
        place = {
            number * STRIDE + int(was): number * STRIDE + i
            for number in handles
            for i, was in enumerate(self._crowns[number].crown.origin)
        }
        is_edited = np.isin(self.top.ids // STRIDE, list(handles))
        gone = is_edited & ~np.isin(self.top.ids, list(place))
        self.top = self.top.without(gone)
        self.top = self.top._replace(ids=np.array([place.get(i, i) for i in self.top.ids.tolist()], np.int64))
        for number in [number for number in handles if self._crowns[number].crown.piece.n_leaves == 0]:
            self._forget(number)

    def copy(self) -> Forest:
        """The same forest, to edit and refine apart from this one."""
        twin = Forest(self.handles, self.top, self.scheme, self.aim, self.part_size)
        twin._crowns, twin._is_due = dict(self._crowns), set(self._is_due)
        twin._names, twin._known = self._names, set(self._known)
        return twin

    def is_due(self, number: int) -> bool:
        """Whether nodes of a part have yet to ask for partners elsewhere."""
        return number in self._is_due

    def reread(self, handles: Mapping[int, Any]) -> None:
        """The same parts from elsewhere. Nothing refers any more to where they were from."""
        self.handles = dict(sorted(handles.items()))
        self._crowns.clear()

    def let_go(self) -> None:
        """Hold no results any more. What others hold of them stays."""
        self.handles = dict.fromkeys(self.handles)
        self._crowns.clear()

    def upper(self, runner: Runner) -> Piece:
        """The tree above, with the crown of each part. There must be a point."""
        self._look(runner)
        return join_parts(self.top, {number: seen.crown.piece for number, seen in self._crowns.items()})

    def whole(self, runner: Runner) -> Piece:
        """All of the tree in one piece, which must fit into the memory of one machine. There must be a point."""
        parts = zip(self.handles, runner.gather(list(self.handles.values())), strict=True)
        return join_parts(self.top, {number: part.piece for number, part in parts})

    def n_points(self, runner: Runner) -> int:
        """How many points there are."""
        self._look(runner)
        return sum(seen.crown.piece.n_points for seen in self._crowns.values())

    def scan(self, runner: Runner) -> tuple[int, int]:
        """How many nodes are above their parent, and at how many homogeneity is violated, by a full scan."""
        if not self.handles:
            return 0, 0
        found = [runner.submit("scan", _scan_part, handle, self.scheme, self.aim) for handle in self.handles.values()]
        upper = self.upper(runner)
        found.append(runner.submit("scan", tasks.scan, upper, self._above(upper), self.scheme, self.aim))
        inverted, violated = np.sum(runner.gather(found), axis=0)
        return int(inverted), int(violated)

    def refine(self, runner: Runner, progress: Callable[[Rounds], object] | None = None) -> Rounds:
        """Refine until a round changes nothing. `progress` is called after each round."""
        done = Rounds()
        self._look(runner)
        self._count(done, self._is_due)
        while done.stopped_by is None:
            if done.rounds == MOST_ROUNDS:
                done.stopped_by = "rounds"
            elif not self._round(runner, done):
                done.stopped_by = "stable"
            if progress is not None:
                progress(done)
        return done

    def _round(self, runner: Runner, done: Rounds) -> bool:
        """One round; return whether there has to be another: something has changed, or there are more pairs."""
        if not self.handles:
            return False
        pairs = self._find_pairs(runner, done)
        most = max(FEWEST_PAIRS, int(SHARE_OF_PAIRS * self.part_size))
        order = np.argsort(pairs.value, kind="stable")
        left = self._names_of(runner, pairs.asker[order[most:]])
        # Who found a partner may have another, which shows when this one is gone.
        self._names = np.concatenate([self._names_of(runner, pairs.asker[order[:most]]), left])
        crowns, outlines = self._expose(runner, pairs.at(order[:most]))
        treelet = self.top, list(crowns), list(crowns.values()), self.part_size, self.scheme, self.aim
        (settled,) = runner.gather([runner.submit("treelet", settle, *treelet)])
        self.top = settled.top
        changed = self._put_back(runner, outlines, settled.plans)
        self._look(runner)
        done.rounds, done.n_changed = done.rounds + 1, len(changed)
        done.moves, done.grafts = done.moves + settled.moves, done.grafts + settled.grafts
        self._count(done, changed)
        if changed or settled.moves + settled.grafts:
            return True
        self._names = left
        return order.size > most

    def _count(self, done: Rounds, numbers: set[int]) -> None:
        """Add what the last tasks did that made the parts of some numbers, as far as these are there."""
        for number in numbers & set(self._crowns):
            crown = self._crowns[number].crown
            done.moves, done.grafts = done.moves + crown.moves, done.grafts + crown.grafts

    def _look(self, runner: Runner) -> None:
        """Fetch the crowns of parts that have changed."""
        numbers = [number for number in self.handles if number not in self._crowns]
        handles = [self._crown(runner, number, None) for number in numbers]
        for number, handle, crown in zip(numbers, handles, runner.gather(handles), strict=True):
            self._crowns[number] = _Seen(crown, handle)
        self._crowns = dict(sorted(self._crowns.items()))

    def _crown(self, runner: Runner, number: int, nodes: NDArray[np.int64] | None) -> Any:
        part, size = self.handles[number], self.part_size
        return runner.submit("crown", tasks.crown, part, number, nodes, size, self.scheme, self.aim)

    def _forget(self, number: int) -> None:
        del self.handles[number], self._crowns[number]
        self._is_due.discard(number)

    def _above(self, upper: Piece) -> NDArray[np.int64]:
        """The nodes of the upper tree that are in no part, or the root of a subtree there."""
        trees = {number: tasks.subtrees(seen.crown.piece) for number, seen in self._crowns.items()}
        n_leaves = np.array([trees[i // STRIDE][i % STRIDE].n_leaves for i in self.top.ids.tolist()])
        ends = np.cumsum(n_leaves)
        first, stop = upper.stretches()
        return np.flatnonzero(np.isin(first, ends - n_leaves) & np.isin(stop, ends))

    def _find_pairs(self, runner: Runner, done: Rounds) -> Pairs:
        """Blocking pairs across borders, one for each node that asked and found any."""
        lightest = min(seen.crown.lightest for seen in self._crowns.values())
        crowns = [seen.handle for seen in self._crowns.values()]
        shared = runner.submit("upper", join_crowns, self.top, list(self._crowns), crowns)
        scheme, aim, names = self.scheme, self.aim, share(runner, "names", self._names)
        asked = [
            runner.submit("ask", asking.ask, handle, number, shared, lightest, self.is_due(number), names, scheme, aim)
            for number, handle in self.handles.items()
            if len(self._names) or (self.is_due(number) and self._crowns[number].crown.n_due)
        ]
        nodes = self._changed_above(self.upper(runner))
        if nodes.size:
            asked.append(runner.submit("ask", asking.ask_above, shared, nodes, lightest, scheme, aim))
        found = runner.gather([runner.submit("ask-count", asking.counts_and_pairs, handle) for handle in asked])
        done.n_asked = sum(sum(counts.values()) for counts, _ in found)
        answers = []
        for number in sorted({number for counts, _ in found for number in counts}):
            questions = [
                runner.submit("pick", asking.questions_to, handle, number)
                for handle, (counts, _) in zip(asked, found, strict=True)
                if number in counts
            ]
            answers.append(runner.submit("answer", asking.answer, self.handles[number], number, questions, scheme, aim))
        pairs = _best_of([pairs for _, pairs in found] + runner.gather(answers))
        done.n_pairs = pairs.asker.size
        self._is_due.clear()
        return pairs

    def _names_of(self, runner: Runner, askers: NDArray[np.int64]) -> NDArray[np.int64]:
        """The names of nodes of parts; nodes of the upper tree are forgotten instead, which has the same effect."""
        self._known -= {self._looked_at[-1 - asker] for asker in askers[askers < 0].tolist()}
        named = [
            runner.submit("names", tasks.names_of, self.handles[number], nodes)
            for number, nodes in _by_part(askers[askers >= 0]).items()
        ]
        return np.concatenate([NO_NAMES, *runner.gather(named)])

    def _changed_above(self, upper: Piece) -> NDArray[np.int64]:
        """Which nodes of the upper tree, the root aside, are others than when they last asked."""
        live = inflate(upper, self.scheme, self.aim)
        u = live_nodes(upper, np.arange(upper.n_nodes))
        parent = live.tree.parent[u]
        columns = *upper.names().T, live.tree.height[u], live.tree.height[parent]
        self._looked_at = [_Known(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]
        is_changed = np.array([one not in self._known for one in self._looked_at]) & (parent != NULL)
        self._known = set(self._looked_at)
        return np.flatnonzero(is_changed)

    def _expose(self, runner: Runner, pairs: Pairs) -> tuple[dict[int, Any], dict[int, list[Outline]]]:
        """Handles of the crowns in which the nodes of pairs are laid open, and their shapes."""
        nodes = np.concatenate([pairs.asker, pairs.partner])
        by_part = _by_part(np.unique(nodes[nodes >= 0]))
        opened = {number: self._crown(runner, number, some) for number, some in by_part.items()}
        shapes = runner.gather([runner.submit("outline", tasks.outlines, handle) for handle in opened.values()])
        crowns = {number: seen.handle for number, seen in self._crowns.items()}
        outlines = {number: tasks.outlines(seen.crown) for number, seen in self._crowns.items()}
        return {**crowns, **opened}, {**outlines, **dict(zip(opened, shapes, strict=True))}

    def _put_back(
        self, runner: Runner, old: Mapping[int, list[Outline]], plans: Mapping[int, list[Outline]]
    ) -> set[int]:
        """Give the parts what was planned for them; return the numbers of those that are others than before."""
        changed = {
            number
            for number in {*plans, *old}
            if len(plans.get(number, ())) != len(old.get(number, ()))
            or not all(map(_is_same, plans[number], old[number]))
        }
        handles, names = {}, share(runner, "names", self._names)
        for number in sorted(changed & set(plans)):
            plan = plans[number]
            ids = np.unique(np.concatenate([outline.ids for outline in plan]))
            gifts = [
                runner.submit("give", tasks.give, self.handles[giver], giver, giver * STRIDE + some)
                for giver, some in _by_part(ids).items()
                if giver != number
            ]
            before = {tuple(outline.names[-1].tolist()): outline for outline in old.get(number, ())}
            is_new = [not _is_same(outline, before.get(tuple(outline.names[-1].tolist()))) for outline in plan]
            handles[number] = runner.submit(
                "take",
                tasks.take,
                self.handles.get(number),
                number,
                plan,
                is_new,
                gifts,
                names,
                self.scheme,
                self.aim,
            )
        self.handles = dict(sorted({**self.handles, **handles}.items()))
        for number in changed:
            self._crowns.pop(number, None)
            if number in plans:
                self._is_due.add(number)
            else:
                del self.handles[number]
        return changed


def _scan_part(part: tasks.Part, scheme: Scheme, aim: Aim) -> tuple[int, int]:
    return tasks.scan(part.piece, None, scheme, aim)


def _is_same(one: Outline, other: Outline | None) -> bool:
    """Whether two subtrees have the same shape over the same atoms."""
    return other is not None and np.array_equal(one.ids, other.ids) and np.array_equal(one.children, other.children)


def _by_part(ids: NDArray[np.int64]) -> dict[int, NDArray[np.int64]]:
    """The nodes of some ids, by the number of their part."""
    number = ids // STRIDE
    return {int(some): ids[number == some] % STRIDE for some in np.unique(number)}


def _best_of(found: list[Pairs]) -> Pairs:
    """Of the pairs of each node that asked, the one with the smallest ζ; of equal ones that with the first partner."""
    if not found:
        return Pairs(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    pairs = Pairs(*(np.concatenate(columns) for columns in zip(*found, strict=True)))
    order = np.lexsort([pairs.partner, pairs.value, pairs.asker])
    _, first = np.unique(pairs.asker[order], return_index=True)
    return pairs.at(order[first])
