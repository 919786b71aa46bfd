"""The command line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

import evertree
from evertree.errors import EvertreeError

app = typer.Typer(
    help="Hierarchical clustering of data that changes.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"evertree {evertree.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Hierarchical clustering of data that changes."""


@app.command()
def demo(
    output: Annotated[Path, typer.Option(help="Where to write the picture.")] = Path("evertree-demo.png"),
    seed: Annotated[int, typer.Option(min=0, help="For the order of the points and the choice of edits.")] = 0,
) -> None:
    """Stream handwritten digits into a live tree, edit it, and set it beside batch clustering."""
    from evertree import demo as demonstration

    try:
        demonstration.run(Console(), output, seed)
    except (EvertreeError, OSError) as error:
        typer.echo(f"evertree: {error}", err=True)
        raise typer.Exit(1) from None
