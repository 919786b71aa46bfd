"""Every write of a durable hierarchy is made to fail once, in each way; run by test_store_crashes.py under faults.c.

A call that fails must leave the hierarchy as it was, in memory and in the file, and the next one must work.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
import warnings

import evertree as et
from evertree.durable import journal
from store_edits import make_edit, same

KINDS = {"input/output error": 1, "no space": 2, "short write": 3}

shim = ctypes.CDLL(None)


def failing(path: str, calls: int, kind: int, always: bool = False) -> None:
    shim.fail_at(calls, kind, always, os.path.basename(path).encode())


def working() -> None:
    """Let writes work again."""
    shim.fail_at(0, 0, 0, b"-")


def edits_with_a_fault(path: str, calls: int, kind: int, first: int, always: bool) -> bool:
    """Make edits, one of which may fail, and set them beside those of a hierarchy in memory."""
    expected = et.load(f"{path}.start")
    with et.open(path) as h:
        failing(path, calls, kind, always)
        for number in range(first, first + 6):
            before = expected.copy()
            try:
                make_edit(h, number)
            except et.errors.StoreError:
                assert same(h, before), f"edit {number} failed and changed the hierarchy"
                h.validate()
                if always:
                    break
                make_edit(h, number)
            make_edit(expected, number)
            assert same(h, expected), f"edit {number} was made, and the tree is another"
        has_failed = shim.count_failed() > 0
        working()
        # How far a refinement is may be owed to the file until it is closed; edits may not.
        assert et.open(path, read_only=True).keys() == expected.keys(), "the file has other points than memory"
    with et.open(path) as h:
        h.verify()
        assert same(h, expected), "after opening the tree is another"
    return has_failed


def main(folder: str) -> None:
    warnings.simplefilter("ignore")  # snapshots that could not be written
    path = os.path.join(folder, "faulty.db")
    h = et.Hierarchy()
    for number in range(12):
        make_edit(h, number)
    h.save(f"{path}.start")
    with et.open(f"{path}.new", start=h):
        pass
    for soonest, step in ((1e9, 1), (0.0, 5)):  # never a snapshot, and one after each edit
        journal._SOONEST = journal._WORTH = soonest
        for name, kind in KINDS.items():
            for always in (False, True):
                calls, n_faults = 0, 0
                while True:
                    for end in ("", "-wal", "-shm", "-lock"):
                        if os.path.exists(path + end):
                            os.unlink(path + end)
                    shutil.copy(f"{path}.new", path)
                    if not edits_with_a_fault(path, calls, kind, 12, always):
                        break
                    n_faults += 1
                    calls += step
                print(f"{name}{' for ever' if always else ''}: {n_faults} faults")
                assert n_faults > 5


if __name__ == "__main__":
    main(sys.argv[1])
