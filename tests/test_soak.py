"""A short `make soak`: it ends well, and it does not where a tree loses a point."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

#: A tree that forgets the last point of each removal.
FORGETFUL = """
import sys
import evertree as et
from benchmarks import soak

remove = et.Hierarchy.remove
et.Hierarchy.remove = lambda self, keys: remove(self, keys[:-1])
sys.argv = ["soak", "--minutes", "1", "--shrink", "1000"]
soak.main()
"""


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True, timeout=300)


@pytest.mark.process
def test_trees_live_under_random_edits_for_some_seconds():
    done = run("-m", "benchmarks.soak", "--minutes", "0.06", "--shrink", "300", "--every", "1")
    assert done.returncode == 0, done.stderr
    assert "all well" in done.stdout
    assert "Traceback" not in done.stderr


@pytest.mark.process
def test_a_tree_that_loses_points_is_noticed():
    done = run("-c", FORGETFUL)
    assert done.returncode == 1
    assert "points, and" in done.stderr
    assert "with --seed 0" in done.stderr
