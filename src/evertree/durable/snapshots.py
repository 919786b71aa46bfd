"""The snapshot in the file of a durable hierarchy, as a state in memory."""

from __future__ import annotations

from typing import Any

from evertree.durable.sqlite_file import SQLiteFile
from evertree.errors import CorruptFileError, EvertreeError, InvariantError
from evertree.io import snapshot
from evertree.io.archive import SIGNS_OF_DAMAGE
from evertree.state import State
from evertree.tree import invariants


def read_snapshot(file: SQLiteFile, metric: Any) -> State:
    """The state in the snapshot. `metric` is the function used as the metric, if it was a function and is given."""
    try:
        header, arrays = file.read_snapshot()
    except EvertreeError:
        raise
    except SIGNS_OF_DAMAGE as error:
        raise CorruptFileError(f"{file.path} is damaged: {error}") from error
    function = metric if callable(metric) and header.get("metric") is None else None
    return snapshot.restored(header, arrays, file.path, function)


def check_tree(state: State, path: str) -> None:
    """Refuse a state that is not a valid tree after its edits. O(n m)."""
    try:
        invariants.check_all_but_statistics(state.live, state.keys.leaves())
    except InvariantError as error:
        raise CorruptFileError(f"{path} is damaged: {error}") from error
