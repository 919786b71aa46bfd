"""Thousands of damaged and forged files, loaded and opened in a child process; run by ``make fuzz``.

Each must be refused by an EvertreeError, or give a valid tree: the same one, unless the checksums were made right for
another. Anything else is a finding, and is printed with its number, by which it can be made again: a crash of the
process, a hang, another exception, a warning, memory far beyond the size of the file, a tree that is none.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import select
import subprocess
import sys
import tempfile
import time
import tracemalloc
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

import evertree as et
from damaged import NAMES, Mutant, edit_distance, mutant, original, write
from evertree.errors import EvertreeError, InvariantError

#: Seconds of a processor that a file may take.
PATIENCE = 20.0

#: Bytes that reading a file may take: so many times its size, and what a small tree needs for its work.
TIMES_ITS_SIZE, AT_LEAST = 30, 20 << 20

#: In errors of `Hierarchy.validate`: linkages between pairs of points, and bounds on all members of a cluster.
HARD_TO_CHECK = ("the height of node", "the center of node", "a cross value of node", "outside its radius")

#: Bytes that a child may have more than when it began.
ROOM = 1 << 29


def same(a: et.Hierarchy, b: et.Hierarchy) -> bool:
    """Whether two hierarchies have the same keys, points and tree."""
    return (
        a.keys() == b.keys()
        and np.array_equal(a.linkage_matrix(), b.linkage_matrix())
        and np.array_equal(a.points(), b.points())
        and (a.linkage, a.goal, a.window) == (b.linkage, b.goal, b.window)
    )


def outcome(case: Mutant, path: Path) -> str:
    """What comes of a file: a word or two; a finding begins with an exclamation mark."""
    metric = edit_distance if case.original.name == "objects" else None
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    try:
        h = et.open(path, metric=metric) if case.is_store else et.load(path, metric)
    except EvertreeError as error:
        if "allocate" in str(error) or "MemoryError" in repr(error.__cause__):
            return f"! memory: {error}"
        h, result = None, f"refused: {type(error).__name__}"
    taken = tracemalloc.get_traced_memory()[1] - before
    if taken > TIMES_ITS_SIZE * len(case.content) + AT_LEAST:
        return f"! memory: {taken:,} bytes for {len(case.content):,}"
    if h is None:
        return result
    try:
        h.validate()
    except InvariantError as error:
        # What takes more than linear time to check is left to validate(); no kernel must stumble over it.
        is_hard = case.is_forged and any(word in str(error) for word in HARD_TO_CHECK)
        return use(h, is_valid=False) or "refused: validate()" if is_hard else f"! not valid: {error}"
    if same(h, case.original.h):
        result = "the same tree"
    elif case.is_forged:
        result = "another valid tree"
    else:
        return "! another tree"
    return use(h) or result


def use(h: et.Hierarchy, is_valid: bool = True) -> str | None:
    """Edit a tree that was read: what no check has found may lead a kernel astray only now."""
    h = h.copy()
    try:
        h.cut(n_clusters=min(3, max(len(h), 1)))
        h.remove(h.keys()[1:3])
        h.refine(moves=100)
        if len(h) and h.metric != "precomputed":
            h.insert(h.points()[:2], time=None if h.window is None or h.window.max_age is None else 1e6)
        h.refine()
        if is_valid:
            h.validate()
    except InvariantError as error:
        return f"! not valid after edits: {error}"
    except EvertreeError:
        return None
    return None


def work(seed: int, names: list[str], first: int, last: int) -> None:
    """In the child: go through some numbers, and print what came of each."""
    for name in names:
        use(original(name).h)  # so that kernels are in memory
    with open("/proc/self/statm") as file:
        size = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + ROOM, size + ROOM))
    tracemalloc.start()
    warnings.simplefilter("error")
    with tempfile.TemporaryDirectory() as folder:
        for number in range(first, last):
            case = mutant(seed, number, names)
            path = write(case, folder)
            print(json.dumps(["begin", number, case.original.name, case.is_store, case.what]), flush=True)
            try:
                result = outcome(case, path)
            except Exception as error:
                result = f"! {type(error).__name__}: {error}"
            print(json.dumps(["end", number, result]), flush=True)


def run(seed: int, names: list[str], first: int, last: int, counts: Counter[str]) -> None:
    """Let children go through all numbers; print findings, and count how often there was what."""
    while first < last:
        command = [sys.executable, __file__, "--seed", str(seed), "--names", *names]
        command += ["--child", str(first), str(last)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            current, ended, began = None, None, 0.0
            while True:
                is_ready, _, _ = select.select([child.stdout], [], [], 1.0)
                if not is_ready:
                    if current is not None and _seconds(child.pid) - began > PATIENCE:
                        child.kill()
                        ended = "! hangs"
                        break
                    continue
                line = child.stdout.readline()
                if not line:
                    break
                kind, number, *rest = json.loads(line)
                if kind == "begin":
                    current, began = (number, rest), _seconds(child.pid)
                    continue
                _count(counts, *current, rest[0])
                first, current = number + 1, None
        if current is not None:
            _count(counts, *current, ended or f"! crashed with {child.returncode}")
            first = current[0] + 1
        elif child.returncode:
            raise RuntimeError(f"the child ended with {child.returncode}")


def _seconds(pid: int) -> float:
    """What a process has taken of a processor so far: others may use the machine too."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _count(counts: Counter[str], number: int, about: list[str], result: str) -> None:
    name, is_store, what = about
    if result.startswith("!"):
        counts["FINDING"] += 1
        print(f"{number}: {'store' if is_store else 'file'} {name!r}, {what}: {result}", flush=True)
    else:
        counts[f"{'store' if is_store else 'file'}, {result}"] += 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--names", nargs="+", choices=NAMES, default=list(NAMES), help="which files are changed")
    parser.add_argument("--child", type=int, nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        work(options.seed, options.names, *options.child)
        return
    began, counts = time.perf_counter(), Counter[str]()
    with contextlib.suppress(KeyboardInterrupt):
        run(options.seed, options.names, options.first, options.first + options.count, counts)
    for name, count in sorted(counts.items()):
        print(f"{count:6,}  {name}")
    print(f"{sum(counts.values()):6,}  in {time.perf_counter() - began:.0f} s")
    sys.exit(counts["FINDING"] > 0)


if __name__ == "__main__":
    main()
