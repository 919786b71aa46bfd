"""`Threads`: what becomes of errors, and of threads that cannot be had."""

from __future__ import annotations

import threading
import time

import pytest

from evertree.tree.parallel.threads import Threads


def test_an_error_in_a_thread_is_raised():
    def fail(item):
        raise MemoryError(f"for {item}")

    with Threads(2) as threads, pytest.raises(MemoryError, match="for"):
        threads.each(fail, range(5))


def test_where_no_more_threads_are_to_be_had_nothing_goes_on_unseen(monkeypatch):
    start, n_started, done = threading.Thread.start, [], []

    def fail(self):
        n_started.append(1)
        if len(n_started) > 1:
            raise RuntimeError("can't start new thread")
        start(self)

    def work(item):
        time.sleep(0.05)
        done.append(item)

    monkeypatch.setattr(threading.Thread, "start", fail)
    with Threads(2) as threads:
        with pytest.raises(RuntimeError, match="new thread"):
            threads.each(work, range(5))
        n_done = len(done)
    assert len(done) == n_done
