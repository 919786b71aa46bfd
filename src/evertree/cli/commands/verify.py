"""``evertree verify``: whether a file and the tree in it are sound."""

from __future__ import annotations

import typer

from evertree.cli import options
from evertree.cli.examples import examples
from evertree.cli.exits import FAILED
from evertree.cli.output import Output
from evertree.cli.tree_files import open_to_read
from evertree.durable import DurableHierarchy
from evertree.errors import CorruptFileError, InvariantError


@examples(
    ("Whether a file and the tree in it are sound", "evertree verify tree.db"),
    ("In a script", "evertree verify tree.db && cp tree.db backup.db"),
)
def verify(tree: options.AnyTree, as_json: options.Json = False) -> None:
    """Check a file and the tree in it thoroughly.

    The exit code is 0 if they are sound, and 1 if not.
    """
    out = Output(as_json)
    try:
        h = open_to_read(tree, allow_empty=True)
        if isinstance(h, DurableHierarchy):
            h.verify()
        else:
            h.validate()
    except (CorruptFileError, InvariantError) as error:
        if not as_json:
            raise
        out.json({"tree": str(tree), "sound": False, "reason": str(error)})
        raise typer.Exit(FAILED) from None
    out.text(f"{tree} is sound: {len(h):,} points")
    out.json({"tree": str(tree), "sound": True, "reason": None})
