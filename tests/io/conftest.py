"""Deep trees: recursion would fail after some thousand levels, and work that is not linear would take minutes."""

from __future__ import annotations

import time

import pytest


@pytest.fixture
def seconds():
    """Fails if the test takes longer than anything linear would on a slow machine."""
    start = time.perf_counter()
    yield
    assert time.perf_counter() - start < 20
