"""Workers that are killed cost time and nothing else: processes that are killed in the middle."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest

import evertree as et

distributed = pytest.importorskip("distributed", reason="distributed trees need Dask")
da = pytest.importorskip("dask.array")

pytestmark = [pytest.mark.process, pytest.mark.slow]


@pytest.fixture(scope="module")
def client():
    """Two worker processes, which come back when they are killed."""
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        yield client


def data():
    rng = np.random.default_rng(0)
    centres = 4 * rng.normal(size=(10, 3))
    x = centres[rng.integers(10, size=1_200)] + rng.normal(size=(1_200, 3))
    return da.from_array(x, chunks=(400, 3))


class Killer:
    """Kills a worker when a step has come so far: a progress callback."""

    def __init__(self, client, *steps: str) -> None:
        self.client, self.steps, self.killed = client, list(steps), []

    def __call__(self, progress) -> None:
        if self.steps and progress.step == self.steps[0]:
            self.steps.pop(0)
            pids = self.client.run(os.getpid)
            pid = pids[min(pids)] if pids else None
            if pid is not None:
                os.kill(pid, signal.SIGKILL)
                self.killed.append(pid)


@pytest.fixture(scope="module")
def expected(client):
    """The tree without a kill, before and after edits."""
    return edited(client, None)


def edited(client, killer) -> list[np.ndarray]:
    found = []
    t = et.distributed.cluster(data(), client, part_size=250, progress=killer)
    found += [t.linkage_matrix(1_199), t.cut(n_clusters=20).compute()]
    t.insert(data()[:200] + 0.5, progress=killer)
    t.remove(range(0, 1_000, 5), progress=killer)
    t.validate()
    assert t.is_monotone()
    return [*found, t.linkage_matrix(len(t) - 1), t.keys().compute()]


@pytest.mark.parametrize("steps", [("build",), ("answer", "remove")], ids="-".join)
def test_the_result_is_that_without_the_kills(client, expected, steps):
    killer = Killer(client, *steps)
    found = edited(client, killer)
    assert len(killer.killed) == len(steps)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)
