"""Linkage matrices and keys that do not fit together."""

from __future__ import annotations

import numpy as np
import pytest

from evertree.errors import InvalidKeyError, NotFiniteError
from evertree.io import to_digraph, to_nested_json, to_node_frame, write_newick
from matrices import PAIR


@pytest.mark.parametrize("write", [write_newick, to_nested_json, to_node_frame, to_digraph])
def test_matrix_and_keys_must_fit(write):
    with pytest.raises(InvalidKeyError, match="keys must have 2 keys, one for each leaf of Z; it has 3"):
        write(PAIR, ["a", "b", "c"])
    with pytest.raises(NotFiniteError, match="Z must be finite"):
        write(PAIR * np.array([1.0, 1.0, np.inf, 1.0]), ["a", "b"])
