"""A child that edits a durable hierarchy is killed at random moments; run by test_store_crashes.py.

Each child is forked from a process that has the kernels in memory, so that it edits at once. It says on a pipe which
edits were acknowledged. After each kill the file is opened: it must have these, and may have one more.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time

import evertree as et
from evertree.durable import journal
from store_edits import make_edit, same

journal._SOONEST = 0.004  # many snapshots, so that many kills hit one


def edit_for_ever(path: str, number: int, pipe: int) -> None:
    h = et.open(path)
    while True:
        make_edit(h, number)
        os.write(pipe, b".")
        number += 1


def kill_once(path: str, number: int, seconds: float) -> int:
    """Let a child edit from an edit on for some time; return how many edits it said it had made."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            edit_for_ever(path, number, writing)
        finally:
            os._exit(1)
    os.close(writing)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if not os.WIFSIGNALED(status):
        sys.exit("the child failed before it was killed")
    with os.fdopen(reading, "rb") as pipe:
        return len(pipe.read())


def new(linkage: str, last: int) -> et.Hierarchy:
    """What the file begins with: nothing, and a window where there is to be one."""
    h = et.Hierarchy(linkage)
    if last:
        h.keep(last=last, max_age=last / 2, time=0)
    return h


def main(path: str, n_kills: int, linkage: str, seed: int, last: int) -> None:
    chance = random.Random(seed)
    et.open(path, start=new(linkage, last)).close()
    expected = new(linkage, last)
    for number in range(30):  # compile, or load, all kernels
        make_edit(expected, number)
    expected, number, n_in_flight = new(linkage, last), 0, 0
    for kill in range(n_kills):
        for _ in range(kill_once(path, number, chance.uniform(0.0, 0.06))):
            make_edit(expected, number)
            number += 1
        with et.open(path) as found:
            found.validate()
            if not same(found, expected):
                make_edit(expected, number)
                number += 1
                n_in_flight += 1
                if not same(found, expected):
                    sys.exit(f"after kill {kill} and {number} edits the tree is another")
    print(f"{n_kills} kills, {number} edits, {n_in_flight} in flight")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
