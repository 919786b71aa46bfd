"""``evertree plot``: a picture of a tree."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from evertree.cli import options
from evertree.cli.examples import examples
from evertree.cli.output import Output
from evertree.cli.output_files import PICTURES, check_output_files, draw_tree
from evertree.cli.tree_files import open_to_read


@examples(
    ("The top of a tree", "evertree plot tree.db -o tree.png"),
    ("In the colours of three clusters", "evertree plot tree.db -o tree.svg --n-clusters 3"),
    ("Every leaf, with the root on the left", "evertree plot tree.db -o tree.pdf --truncate 0 --orientation left"),
)
def plot(
    tree: options.AnyTree,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The picture: .png, .svg or .pdf.")],
    truncate: Annotated[
        int, typer.Option(metavar="N", min=0, help="How many clusters to show at the bottom; 0 shows every leaf.")
    ] = 50,
    n_clusters: Annotated[
        int | None, typer.Option("--n-clusters", "-k", metavar="N", min=1, help="Colour N clusters.")
    ] = None,
    orientation: Annotated[Literal["top", "left"], typer.Option(help="Where the root is.")] = "top",
    title: Annotated[str | None, typer.Option(help="A title.")] = None,
    as_json: options.Json = False,
) -> None:
    """Draw a tree as a dendrogram."""
    check_output_files({"--output": (output, PICTURES)}, tree)
    h = open_to_read(tree)
    labels = None if n_clusters is None else h.cut(n_clusters=n_clusters)
    draw_tree(output, h, labels, n_shown=truncate or None, orientation=orientation, title=title)
    out = Output(as_json)
    out.text(str(output))
    out.json({"tree": str(tree), "points": len(h), "output": str(output)})
