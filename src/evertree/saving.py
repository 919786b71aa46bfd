"""What of a hierarchy goes into a file, and back: `evertree.file_format` knows how a file is written."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from evertree.columns import PENDING, Tree, Worklist
from evertree.errors import CorruptFileError, EvertreeError
from evertree.file_format import read, write
from evertree.inputs import GOALS, as_choice, as_whole_number
from evertree.keys import KeyTable, decode_keys, encode_keys
from evertree.linkages import Scheme
from evertree.tree import LiveTree, invariants


def save(path: str | os.PathLike[str], live: LiveTree, keys: KeyTable, options: Mapping[str, Any]) -> None:
    """Write a tree, its keys and the options of its hierarchy."""
    used = live.n_used
    header = {
        "linkage": live.scheme.linkage.name,
        "metric": live.scheme.metric,
        "next_birth": keys.next_birth,
        "next_number": keys.next_number,
        "keys": None if keys.is_numbered else encode_keys(keys.keys()),
        **options,
    }
    arrays = {f"tree.{name}": column[:used] for name, column in live.tree._asdict().items()}
    arrays["tree.state"] = live.tree.state
    arrays["work.pending"] = live.work.stack[: live.work.state[PENDING]]
    arrays["work.mark"] = live.work.mark[:used]
    arrays["work.state"] = live.work.state
    arrays["leaves"] = keys.leaves()
    if keys.is_numbered:
        arrays["numbers"] = np.array(keys.keys(), np.int64)
    if live.kept is not None:
        arrays["points"] = live.kept[: used // 2]
    if live.scheme.matrix is not None:
        arrays["VI"] = live.scheme.matrix
    write(path, header, arrays)


def load(path: str | os.PathLike[str]) -> tuple[LiveTree, KeyTable, dict[str, Any]]:
    """Read what `save` wrote, and check that it is a tree."""
    header, arrays = read(path)
    try:
        scheme = Scheme(header["linkage"], header["metric"], {"VI": arrays["VI"]} if "VI" in arrays else None)
        tree = Tree(**{name: arrays[f"tree.{name}"] for name in Tree._fields})
        pending = arrays["work.pending"]
        stack = np.empty_like(tree.parent)
        stack[: pending.size] = pending
        work = Worklist(stack, arrays["work.mark"], arrays["work.state"])
        live = LiveTree.of_columns(scheme, tree, work, arrays.get("points"))
        names = arrays["numbers"].tolist() if header["keys"] is None else decode_keys(header["keys"])
        keys = KeyTable.assembled(
            names, arrays["leaves"], header["keys"] is None, header["next_birth"], header["next_number"]
        )
        invariants.check_shape(live)
        invariants.check_worklist(live)
        invariants.check_points(live)
        invariants.check_keys(live, keys.leaves())
        if keys.next_birth <= live.tree.birth[keys.leaves()].max(initial=-1):
            raise CorruptFileError("a point is younger than the next one")
        live.warm_up()
        options = {"goal": as_choice("goal", header["goal"], GOALS), "seed": as_whole_number("seed", header["seed"])}
    except (EvertreeError, LookupError, TypeError, ValueError) as error:
        raise CorruptFileError(f"{path} is damaged: {error}") from error
    return live, keys, options
