"""Settings of all tests."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

import evertree
from evertree.tree import MeanLiveTree, PairLiveTree

# With it, all machine code must come from the library: what it lacks would be an error that says to install Numba.
if os.environ.get("EVERTREE_TESTS") == "without numba":
    sys.modules.update(dict.fromkeys(("numba", "llvmlite")))
    collect_ignore = ["src/evertree/kernels/numba_compiler.py"]

# Where tests run in the background, Ctrl-C may be switched off.
signal.signal(signal.SIGINT, signal.default_int_handler)

COMPILED = os.environ.get("NUMBA_DISABLE_JIT", "0") == "0"

settings.register_profile(
    "compiled", max_examples=100, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
settings.register_profile("interpreted", settings.get_profile("compiled"), max_examples=5, stateful_step_count=15)
settings.register_profile("nightly", settings.get_profile("compiled"), max_examples=2_000, derandomize=False)
# The same examples each time, so that a failure is of the change at hand; new ones by night (make test-nightly).
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("compiled" if COMPILED else "interpreted"))


@pytest.fixture
def rng() -> np.random.Generator:
    """The same random numbers for every test."""
    return np.random.default_rng(0)


@pytest.fixture
def searched(monkeypatch):
    """By default, small trees are made by searches, moves and grafts, as large ones are."""
    for kind in (MeanLiveTree, PairLiveTree):
        monkeypatch.setattr(kind, "is_cheap", lambda *_: False)


@pytest.fixture(autouse=True)
def _doctest_names(doctest_namespace, tmp_path, monkeypatch, request):
    """Examples in docstrings use np and et, and write their files to a folder of their own."""
    doctest_namespace.update(np=np, et=evertree)
    if isinstance(request.node, pytest.DoctestItem):
        monkeypatch.chdir(tmp_path)
        if "distributed" in request.node.path.parts:
            doctest_namespace["client"] = request.getfixturevalue("client")


@pytest.fixture(scope="module")
def client():
    """A Dask cluster of two workers in this process."""
    distributed = pytest.importorskip("distributed", reason="distributed trees need Dask")
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": False, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        yield client


@pytest.fixture
def shared_data() -> Path:
    """The folder with real data sets, which is not part of the project."""
    folder = Path(__file__).parents[1] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the real data sets are not beside this clone")
    return folder
