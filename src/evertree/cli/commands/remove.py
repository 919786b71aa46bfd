"""``evertree remove``: points that leave a durable tree."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evertree.cli import options
from evertree.cli.examples import examples
from evertree.cli.input_files import read_stdin
from evertree.cli.key_text import find_keys
from evertree.cli.output import DASH, Output, plural
from evertree.cli.tree_files import open_to_write
from evertree.errors import FileFormatError, UnknownKeyError, listed


@examples(
    ("By key", "evertree remove tree.db 17 42"),
    ("By the keys in a file, one per line", "evertree remove tree.db --keys-from gone.txt"),
    (
        "From a pipe, with keys that may be gone already",
        "cat gone.txt | evertree remove tree.db --keys-from - --missing-ok",
    ),
)
def remove(
    tree: options.Tree,
    keys: Annotated[
        list[str] | None, typer.Argument(metavar="KEY", show_default=False, help="The keys of the points.")
    ] = None,
    keys_from: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A file with a key in each line; - for standard input.")
    ] = None,
    missing_ok: Annotated[bool, typer.Option("--missing-ok", help="Ignore keys that no live point has.")] = False,
    as_json: options.Json = False,
) -> None:
    """Remove points from a durable tree.

    Either all of them are removed or, on an error, none. A key is looked up as text, then as an integer if it is
    written like one, and finally as cut prints it. Write -- before keys that begin with a minus sign.
    """
    words = list(keys or [])
    if keys_from is not None:
        words += _read_words(keys_from)
    elif not words:
        raise typer.BadParameter("name the points by their keys, or give --keys-from FILE", param_hint="KEY...")
    with open_to_write(tree) as h:
        wanted = find_keys(h, words)
        unknown = [key for key in wanted if key not in h]
        if unknown and not missing_ok:
            raise UnknownKeyError(
                f"{tree} has no live point with the key {listed(unknown)}, and none was removed; --missing-ok ignores "
                "such keys"
            )
        gone = [key for key in wanted if key in h]
        h.remove(gone)
    out = Output(as_json)
    missing = f", {plural(len(unknown), 'key')} not there" if unknown else ""
    out.text(f"{plural(len(gone), 'point')} removed{missing}; {tree} has {len(h):,}")
    out.json({"tree": str(tree), "removed": len(gone), "missing": len(unknown), "points": len(h)})


def _read_words(path: Path) -> list[str]:
    """The lines of a text file. Only line feeds, with or without carriage returns, end a line."""
    content = read_stdin() if path == DASH else path.read_bytes()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        name = "standard input" if path == DASH else path
        raise FileFormatError(f"{name} must be text in UTF-8, with a key in each line: {error}") from None
    words = (line.strip(" \t\r") for line in text.split("\n"))
    return [word for word in words if word]
