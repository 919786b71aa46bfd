"""Bandwidth: seconds of the main loops, the bytes that they touch, and a plain copy and random reads in the same run.

Run it with ``make bench-bandwidth``, or ``python -m benchmarks.bandwidth --quick``, on an idle machine. One thread.

Bytes are counted in cache lines of 64. How often something is done is counted in the run itself. What it touches is
found from a sample: before some calls, the kernel does a little of the work in plain Python (`benchmarks.cache_lines`).
Each line counts once for each search, graft, or whatever is counted, and once more if it is written: that is what moves
if nothing is left in the caches from the one before. Where whole arrays are gone through, the count follows from their
sizes. Seconds are those of the processor. Nothing is asserted.
"""

from __future__ import annotations

import argparse
import os
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import evertree as et
from benchmarks import datasets, wide
from benchmarks.cache_lines import LINE, Lines, lines_of, watched
from evertree import kernels
from evertree.kernels.calls import Kernel
from evertree.kernels.columns import (
    MEAN_NODE,
    NO_LIST,
    UNLIMITED,
    Tree,
    new_node_columns,
)
from evertree.kernels.shared.stabilise import STEPS_OF_SEARCH

#: How much is done in plain Python before a call, and how long that may take, as a share of the seconds of its loop.
N_COUNTED, COUNTING = 4, 0.5

#: What touches so many bytes is done once more, with all in the second cache; but no more of it than so much.
IN_CACHE, MOST_REPEATED = 1 << 19, 32

#: How many steps are timed, one by one, before a call.
N_TIMED = 256

#: Loops with a smaller share of the time are not listed, and what the first few are bound by is said.
SMALLEST_SHARE, N_EXPLAINED = 0.01, 3

#: Nodes for which a search is made in the finished tree, and how many at once, in memory order.
N_SEARCHED, AT_ONCE = 20_000, 256

#: Bytes of the arrays that show what memory can do, and points of a tree that loads what is measured.
MEMORY, N_WARM = 1 << 28, 80_000

#: A step that takes longer was interrupted.
SLOWEST = 1e-3

#: Kernels by name: their loop, and the arguments that have an entry for each search or whatever it does.
UNITS = {
    "find_nearest": ("insertion: routing to pieces", ("leaves", "near")),
    "insert_by_search": ("insertion: by search", ("leaves",)),
    "fill_lists": ("lists: descents", ("rows", "steps")),
    "ask_lists": ("lists: asking neighbours", ("rows", "near", "near_value")),
    "share_lists": ("lists: sharing", ("rows", "near", "near_value")),
    "find_partners": ("searches", ("nodes", "partners")),
    "search_outside": ("searches outside pieces", ("nodes",)),
    "graft_found": ("grafts that rounds found", ("nodes", "partners")),
}

#: What may be called again with the same arguments: then all that it reads is in the cache.
REPEATABLE = ("find_nearest", "fill_lists", "ask_lists", "find_partners")

#: Kernels that take steps of several kinds: their loop, and the argument that limits them.
STEPS = {"stabilise": ("pieces", "max_steps"), "homogenise": ("moves", "max_checks")}

#: Kernels that go through whole arrays.
STREAMS = {
    "multiply": "products: multiplying",
    "screen": "products: screening",
    "permute_rows": "renumbering",
    "relabel": "renumbering",
    "relabel_nodes": "renumbering",
    "postorder": "post-order walks",
}


def stream_bytes(name: str, of: dict[str, Any]) -> float:
    """The bytes of a kernel that goes through arrays, each once; scattered rows are those of their lines."""
    if name == "multiply":
        return of["x"].nbytes + (of["stop"] - of["start"]) * (of["y"][0].nbytes + of["block"][:, 0].nbytes)
    if name == "screen":  # four numbers of each place
        return of["block"].nbytes + 4 * of["block"][0].nbytes
    if name == "permute_rows":
        n_moved = np.count_nonzero(of["place"] != np.arange(of["place"].size))
        return 2 * LINE * lines_of(of["matrix"]) * n_moved + of["place"].nbytes + 2 * of["is_done"].nbytes
    if name == "relabel":
        return 2 * of["near"].nbytes + 4 * of["near"].size
    n_nodes = of["nodes"].size
    if name == "relabel_nodes":  # parent and children lie side by side
        n_records = n_nodes + of["place"].size  # once more for what is due
        return n_records * LINE * lines_of(of["tree"].parent, 12) + n_nodes * 5 * 4
    return n_nodes * (MEAN_NODE.itemsize + 3 * 4)  # a node waits in the list before it gets its place there


@dataclass
class Loop:
    """What is known of a loop, by kind of work: how much there was, and what a sample of it touched and took."""

    seconds: float = 0.0
    counting: float = 0.0
    done: Counter[str] = field(default_factory=Counter)
    each: dict[str, float] = field(default_factory=dict)  # bytes of one, in the last sample
    covered: Counter[str] = field(default_factory=Counter)  # how much there was since there are samples
    covered_bytes: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    timed: Counter[str] = field(default_factory=Counter)
    timed_seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    n_repeated: int = 0
    repeated: float = 0.0

    def note_sample(self, touched: dict[str, list[int]]) -> None:
        """Note the bytes of each piece of work of a sample."""
        self.each |= {kind: float(np.mean(n_bytes)) for kind, n_bytes in touched.items()}

    def note_done(self, done: Counter[str]) -> None:
        """Note work: each piece of it touches what those of the last sample did."""
        self.done += done
        for kind in done.keys() & self.each.keys():
            self.covered[kind] += done[kind]
            self.covered_bytes[kind] += done[kind] * self.each[kind]

    def bytes(self, kind: str) -> float:
        """All that one kind of work touched."""
        return self.covered_bytes[kind] * self.done[kind] / max(self.covered[kind], 1)

    @property
    def gain_of_cache(self) -> float:
        """How many times faster it is with all in the cache; 0 if that is not known."""
        return self.seconds / self.done[""] * self.n_repeated / self.repeated if self.n_repeated else 0.0

    def parts(self) -> dict[str, float]:
        """Seconds by kind of work, in proportion to what some of it took; with one kind, all."""
        kinds = [kind for kind in self.timed if self.timed[kind] and self.covered[kind]]
        weight = {kind: self.done[kind] * self.timed_seconds[kind] / self.timed[kind] for kind in kinds}
        return {kind: self.seconds * weight[kind] / sum(weight.values()) for kind in kinds}


def steps_by_kind(state: NDArray[Any]) -> Counter[str]:
    """The steps of refinement so far."""
    checks, searches, grafts = (int(state[name][0]) for name in ("checks", "searches", "grafts"))
    lists = int(state["other_steps"][0]) // STEPS_OF_SEARCH - searches - grafts
    return Counter({"checks": checks, "searches in vain": searches - grafts, "grafts": grafts, "lists": lists})


def kind_of_step(before: Counter[str], after: Counter[str]) -> str | None:
    """What a step was: a graft comes after a search, and either after a check."""
    return next(
        (kind for kind in ("grafts", "searches in vain", "lists", "checks") if after[kind] > before[kind]), None
    )


class Profile:
    """Seconds and bytes of the kernels that are called in a ``with`` block, by one thread."""

    def __init__(self) -> None:
        self.loops: dict[str, Loop] = {}
        self.counting = 0.0  # seconds that are none of the work
        self.n_flops = 0
        self._is_counting = False
        self._rng = np.random.default_rng(0)

    def __enter__(self) -> Profile:
        profile, self._call = self, Kernel.__call__

        def call(kernel: Kernel, *args: Any) -> Any:
            return kernel.py_func(*args) if profile._is_counting else profile._timed(kernel, args)

        Kernel.__call__ = call  # type: ignore[method-assign,assignment]
        return self

    def __exit__(self, *_: object) -> None:
        Kernel.__call__ = self._call  # type: ignore[method-assign]

    def _timed(self, kernel: Kernel, args: tuple[Any, ...]) -> Any:
        began = time.thread_time()
        name, of = kernel.__name__, dict(zip(kernel.signature.kinds, args, strict=True))
        loop = self.loops.setdefault(_title(name), Loop())
        if name in UNITS.keys() | STEPS.keys() and loop.counting <= COUNTING * loop.seconds:
            (self._count_units if name in UNITS else self._count_steps)(kernel, of, loop)
            loop.counting += time.thread_time() - began
        elif name in STREAMS:
            loop.each[""] = stream_bytes(name, of)
            self.n_flops += 2 * of["x"].size * (of["stop"] - of["start"]) if name == "multiply" else 0
        before = _amount(name, of)
        ready = time.thread_time()
        self.counting += ready - began
        result = self._call(kernel, *args)
        loop.seconds += time.thread_time() - ready
        loop.note_done(_amount(name, of) - before if name in STEPS else before)
        return result

    def _in_python(self, kernel: Kernel, args: tuple[Any, ...]) -> None:
        self._is_counting = True
        try:
            with np.errstate(all="ignore"):
                kernel.py_func(*args)
        finally:
            self._is_counting = False

    def _count_units(self, kernel: Kernel, of: dict[str, Any], loop: Loop) -> None:
        """Do some of the work of a call in Python, each with nothing in the cache; and compiled, with all in it."""
        each = UNITS[kernel.__name__][1]
        count = len(of[each[-1]])
        if not count:
            return
        touched = []
        for k in self._rng.choice(count, min(N_COUNTED, count), replace=False):
            lines = Lines()
            one = (x[k : k + 1] if name in each else x for name, x in of.items())
            self._in_python(kernel, tuple(watched(x, lines) for x in one))
            touched.append(lines.take())
        loop.note_sample({"": touched})
        if kernel.__name__ in REPEATABLE:
            most = max(min(int(IN_CACHE / loop.each[""]), MOST_REPEATED, count), 1)
            start = int(self._rng.integers(count - most + 1))
            some = [x[start : start + most] if name in each else x for name, x in of.items()]
            loop.repeated += best(lambda: self._call(kernel, *some), 3)
            loop.n_repeated += most

    def _count_steps(self, kernel: Kernel, of: dict[str, Any], loop: Loop) -> None:
        """Take some steps in Python, one by one; and then some, compiled, that the call would take."""
        lines = Lines()
        seen = {name: watched(x, lines) for name, x in of.items()} | {STEPS[kernel.__name__][1]: 1}
        touched: dict[str, list[int]] = {}
        for _ in range(16 * N_COUNTED):
            before = steps_by_kind(seen["work"].state)
            self._in_python(kernel, tuple(seen.values()))
            kind = kind_of_step(before, steps_by_kind(seen["work"].state))
            if kind is not None:
                touched.setdefault(kind, []).append(lines.take())
        loop.note_sample(touched)
        if kernel.__name__ == "stabilise" and of["search"].state["stop_at"][0] == UNLIMITED:
            self._time_steps(kernel, of, loop)

    def _time_steps(self, kernel: Kernel, of: dict[str, Any], loop: Loop) -> None:
        """Take steps as the call would: all pending checks, then a search and what follows from it, and so on."""
        columns = [of[name] for name in ("tree", "work", "search", "linkage")]
        state = of["work"].state
        call = best(lambda: self._call(kernel, *columns, 0, UNLIMITED), 9)
        for _ in range(N_TIMED):
            before, began = steps_by_kind(state), time.perf_counter()
            if state["pending"][0] > 0:
                self._call(kernels.shared.homogenise.homogenise, *columns[:2], columns[3], UNLIMITED, UNLIMITED)
            else:
                self._call(kernel, *columns, 1, UNLIMITED)
            seconds, after = time.perf_counter() - began - call, steps_by_kind(state)
            kind = kind_of_step(before, after)
            if kind is not None and seconds < SLOWEST:
                loop.timed[kind] += after[kind] - before[kind]
                loop.timed_seconds[kind] += max(seconds, 0.0)


def _amount(name: str, of: dict[str, Any]) -> Counter[str]:
    """How much work a call is given; of steps, how many have been taken so far."""
    if name in STEPS:
        return steps_by_kind(of["work"].state)
    return Counter({"": len(of[UNITS[name][1][-1]]) if name in UNITS else 1})


def _title(name: str) -> str:
    return UNITS[name][0] if name in UNITS else STEPS[name][0] if name in STEPS else STREAMS.get(name, f"`{name}`")


class Memory(NamedTuple):
    """Bytes a second: read and written in order, rows at random, and rows each of which says where the next one is."""

    copy: float
    gather: float
    chain: float


def best(work: Callable[[], object], repetitions: int) -> float:
    """The least seconds of a few."""
    taken = []
    for _ in range(repetitions):
        began = time.perf_counter()
        work()
        taken.append(time.perf_counter() - began)
    return min(taken)


def measure_memory(n_columns: int) -> Memory:
    """What memory can do, with rows of float32."""
    rng = np.random.default_rng(0)
    source = np.ones((MEMORY // (4 * n_columns), n_columns), np.float32)
    target, rows = np.ones_like(source), rng.integers(len(source), size=len(source))
    copy = best(lambda: np.copyto(target, source), 9)
    gather = best(lambda: np.take(source, rows, axis=0, out=target, mode="clip"), 9)
    # A path of nodes at random places, down which a kernel goes.
    n = MEMORY // MEAN_NODE.itemsize // 2
    columns, _ = new_node_columns(2 * n, MEAN_NODE)
    path = 2 * rng.permutation(n).astype(np.int32) + 1
    columns["left"][path] = np.append(path[1:], 0)
    columns["right"][path] = 2 * np.arange(n)
    tree = Tree(*(columns[name] for name in Tree._fields))
    room = path[:1].copy(), np.zeros(1, np.int32), np.empty(n, np.int32), np.empty(n, np.int64)
    chain = best(lambda: kernels.shared.cut.label_below(tree, *room), 5)
    gathered = len(rows) * LINE * lines_of(source) + target.nbytes + rows.nbytes
    # From the height to the children of a node.
    return Memory(2 * source.nbytes / copy, gathered / gather, n * (LINE * lines_of(columns["height"], 36) + 8) / chain)


def print_row(memory: Memory, title: str, seconds: float, total: float, count: int, n_bytes: float, hot: float) -> None:
    """A row of a table; what is 0 is not known."""
    rate = n_bytes / seconds
    cells = [
        f"{seconds:.2f}" if seconds >= 1 else f"{seconds:.2g}",
        f"{seconds / total:.1%}" if total else "",
        f"{count:,}" if count else "",
        f"{n_bytes / count / 1e3:,.2f}" if count and n_bytes else "",
        *([f"{rate / 1e9:.1f}", f"{rate / memory.copy:.2f}", f"{rate / memory.gather:.2f}"] if n_bytes else [""] * 3),
        f"{hot:.1f}" if hot else "",
    ]
    print(f"| {title} | {' | '.join(cells)} |", flush=True)


def print_profile(profile: Profile, total: float, memory: Memory) -> None:
    """A row for each loop, the largest first, and what the first few are bound by."""
    print("| loop | s | share | how often | KB each | GB/s | of the copy | of the gather | times faster in the cache |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    rows = []
    for title, loop in profile.loops.items():
        for kind, seconds in (loop.parts() or {"": loop.seconds}).items():
            full_title = f"{title}: {kind}" if kind else title
            rows.append((full_title, seconds, loop.done[kind], loop.bytes(kind), loop.gain_of_cache))
    rows = sorted((row for row in rows if row[1] >= SMALLEST_SHARE * total), key=lambda row: -row[1])
    for title, seconds, count, n_bytes, hot in rows:
        print_row(memory, title, seconds, total, count, n_bytes, hot)
    rest = total - sum(row[1] for row in rows)
    print_row(memory, "all else", rest, total, 0, 0.0, 0.0)
    print("\nThe largest shares:")
    for title, seconds, _, n_bytes, hot in [row for row in rows if row[3]][:N_EXPLAINED]:
        bound = bound_by(n_bytes / seconds, title in STREAMS.values(), hot, memory)
        print(f"- {title}, {seconds / total:.0%}, bound by {bound}")


def bound_by(rate: float, is_stream: bool, hot: float, memory: Memory) -> str:
    """What keeps a loop from being faster that touches so many bytes a second, and is so much faster in the cache."""
    if is_stream:
        return "bandwidth" if rate > memory.copy / 2 else "arithmetic: a plain copy is more than twice as fast"
    if hot:
        bound = "latency" if hot > 2 else "arithmetic"
        return f"{bound}: {max(1 - 1 / hot, 0):.0%} of the time is gone if all is in the cache"
    if rate > memory.gather:
        return "arithmetic and caches: memory does not deliver that much at random"
    return "arithmetic" if rate < memory.chain else "latency or arithmetic: these figures do not tell which"


def build(x: NDArray[Any]) -> tuple[et.Hierarchy, float]:
    """A refined tree, and seconds."""
    h = et.Hierarchy("ward")
    began = time.process_time()
    h.insert(x)
    h.refine()
    return h, time.process_time() - began


def search_some(live: Any, nodes: NDArray[np.int32]) -> None:
    """Searches for some of the nodes of a finished tree."""
    tree, search = live.scratch()
    nodes = np.sort(nodes[nodes != live.root])
    search.state["notes"][0] = NO_LIST
    for start in range(0, nodes.size, AT_ONCE * nodes.size // N_SEARCHED):
        some = nodes[start : start + AT_ONCE].copy()
        kernels.shared.rounds.find_partners(tree, search, live.tag, some, np.empty_like(some))


def report(x: NDArray[Any]) -> None:
    """Building, refining and reading a tree of some points."""
    build(x[: min(4 * len(x) // 5, N_WARM)])
    memory = measure_memory(x.shape[1])
    copy, gather, chain = (f"{rate / 1e9:.1f}" for rate in memory)
    print(f"\n## {len(x):,} x {x.shape[1]}\n\nGB/s of a plain copy: {copy}; of rows at random, by `take`: {gather};")
    print(f"of nodes at random, each of which leads to the next: {chain}.\n")
    with Profile() as profile:
        h, total = build(x)
    print_profile(profile, total - profile.counting, memory)
    print("\n| in the finished tree | s | | how often | KB each | GB/s | of the copy | of the gather | in the cache |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    live, n = h.state.live, len(x)
    nodes = live.nodes()
    with Profile() as profile:
        search_some(live, nodes)
    for title, loop in profile.loops.items():
        print_row(memory, title, loop.seconds, 0.0, loop.done[""], loop.bytes(""), loop.gain_of_cache)
    all_nodes = 2 * n * MEAN_NODE.itemsize
    # Labels are gathered in the order of the keys.
    cut_bytes = all_nodes + n * (LINE + 8 + 8 + 3 * 4)
    # Four passes over all nodes; by height, nine lines at random: numbers (2), children (2) and their numbers (2), the
    # height, and where leaves begin and end (2); and fifty arrays of eight bytes a merge, which are read or written.
    matrix_bytes = 4 * all_nodes + n * (9 * LINE + 50 * 8)
    for title, work, n_bytes in (
        ("post-order walk", live.nodes, stream_bytes("postorder", {"nodes": nodes})),
        ("cut", lambda: h.cut(n_clusters=100), cut_bytes),
        ("linkage_matrix", h.linkage_matrix, matrix_bytes),
    ):
        print_row(memory, title, best(work, 3), 0.0, n, n_bytes, 0.0)


def report_products(x: NDArray[np.float32]) -> None:
    """The batch tree of some points, by products of matrices."""
    et.agglomerate(x[: len(x) // 4])
    print(f"\n## The batch tree of {len(x):,} x {x.shape[1]}\n")
    memory = measure_memory(x.shape[1])
    with Profile() as profile:
        began = time.process_time()
        et.agglomerate(x)
        total = time.process_time() - began - profile.counting
    print_profile(profile, total, memory)
    y = x[:256]
    dot = best(lambda: np.dot(y, x.T), 3)
    multiplying = profile.loops[STREAMS["multiply"]].seconds
    ours, theirs = profile.n_flops / multiplying / 1e9, 2 * y.size * len(x) / dot / 1e9
    print(f"\nMultiplying: {ours:.0f} GFLOP/s. NumPy's product of {len(y)} rows with all: {theirs:.0f}.")


def main() -> None:
    """Measure what the options ask for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="ten times fewer points in 16 columns")
    options = parser.parse_args()
    print(f"evertree {et.__version__}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.2f}", flush=True)
    report(datasets.mixture(100_000 if options.quick else 1_000_000)[0].astype(np.float32))
    x = wide.decaying(20_000, 384)[0]
    report(x)
    report_products(x)
    print(f"\nload at the end {os.getloadavg()[0]:.2f}")


if __name__ == "__main__":
    main()
