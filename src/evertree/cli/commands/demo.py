"""``evertree demo``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evertree.cli.examples import examples


@examples(
    ("A table and a picture, in a minute", "evertree demo"),
    ("Other edits, elsewhere", "evertree demo --seed 1 --output digits.svg"),
)
def demo(
    output: Annotated[Path, typer.Option(help="Where to write the picture.")] = Path("evertree-demo.png"),
    seed: Annotated[int, typer.Option(min=0, help="For the order of the points and the choice of edits.")] = 0,
) -> None:
    """Stream handwritten digits into a live tree, edit it, and set it beside batch clustering."""
    from rich.console import Console

    from evertree.cli import demonstration

    demonstration.run(Console(), output, seed)
