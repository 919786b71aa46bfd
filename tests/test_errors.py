"""The exceptions: what they carry, and how they read."""

from __future__ import annotations

import pickle

import pytest

from evertree import errors
from evertree.errors import EvertreeError

CLASSES = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, EvertreeError)]


@pytest.mark.parametrize("kind", CLASSES)
def test_remedies(kind):
    """They end the text, whatever the built-in base class is, and survive a trip to another process."""
    assert str(kind("x must be 'a'")) == "x must be 'a'"
    error = kind("x must be 'a'", parameter="x", remedy="give x=")
    for same in (error, pickle.loads(pickle.dumps(error))):
        assert str(same) == "x must be 'a': give x="
        assert (same.problem, same.parameter, same.remedy) == ("x must be 'a'", "x", "give x=")
