"""`Threads`: what becomes of errors, and of threads that cannot be had."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

import evertree as et
from evertree.tree import refine
from evertree.tree.parallel import rounds
from evertree.tree.parallel.threads import Threads


def test_an_error_in_a_thread_is_raised():
    def fail(item):
        raise MemoryError(f"for {item}")

    with Threads(2) as threads, pytest.raises(MemoryError, match="for"):
        threads.each(fail, range(5))


@pytest.mark.parametrize("n_to_be_had", [0, 1])
def test_where_no_more_threads_are_to_be_had_the_others_do_it(monkeypatch, n_to_be_had):
    start, n_started, done, looks = threading.Thread.start, [], [], []

    def fail(self):
        if len(n_started) >= n_to_be_had:
            raise RuntimeError("can't start new thread")
        n_started.append(1)
        start(self)

    def work(item):
        time.sleep(0.01)
        done.append(item)

    monkeypatch.setattr(threading.Thread, "start", fail)
    with Threads(2) as threads:
        for _ in range(2):
            threads.each(work, range(5), looks.append)
    assert sorted(done) == sorted(2 * list(range(5)))
    assert looks


def test_an_error_ends_all_without_threads(monkeypatch):
    def fail(_):
        raise RuntimeError("can't start new thread")

    done = []

    def work(item):
        done.append(item)
        raise MemoryError

    monkeypatch.setattr(threading.Thread, "start", fail)
    with Threads(2) as threads, pytest.raises(MemoryError):
        threads.each(work, range(5))
    assert done == [0]


def test_a_large_tree_grows_where_no_threads_are_to_be_had(monkeypatch):
    """A process may be limited, or about to end."""
    monkeypatch.setattr(rounds, "FEWEST_POINTS", 30)
    monkeypatch.setattr(rounds, "FEWEST_NUMBERS", 0)
    monkeypatch.setattr(refine, "FEW", 0)

    def fail(_):
        raise RuntimeError("can't start new thread")

    trees = []
    x = np.random.default_rng(0).normal(size=(200, 3))
    for is_limited in (False, True):
        h = et.Hierarchy(search_width=4)
        with monkeypatch.context() as patched:
            if is_limited:
                patched.setattr(threading.Thread, "start", fail)
            h.insert(x[:100])
            h.insert(x[100:])
            assert h.refine().stable
        h.validate()
        trees.append(h.linkage_matrix())
    np.testing.assert_array_equal(*trees)
