"""The command line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
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

    with _clean_errors():
        demonstration.run(Console(), output, seed)


@app.command()
def reproduce(
    output: Annotated[Path, typer.Option(help="The folder for figures, tables and the page.")] = Path("reproduction"),
    repetitions: Annotated[int, typer.Option(min=1, help="Pairings of data and tree for each size.")] = 1000,
    extended: Annotated[bool, typer.Option("--extended", help="Answer what the paper left open, too.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same numbers.")] = 0,
    jobs: Annotated[int | None, typer.Option(min=1, help="Processes; by default one for each core.")] = None,
    mnist: Annotated[
        Path | None,
        typer.Option(
            envvar="EVERTREE_MNIST",
            help="All of MNIST: an .npz file, or the folder of its four original files. By default a sample of 2,000 "
            "images that comes with evertree.",
        ),
    ] = None,
) -> None:
    """Repeat the experiments of the paper (section 5), and set what it says beside what is found.

    Stop it with Ctrl-C at any time: the same command goes on from there. More --repetitions add to what has been run.
    """
    from evertree.reproduce import command

    options = command.Options(output, repetitions, extended, seed, jobs, mnist)
    with _clean_errors():
        try:
            command.run(Console(), options)
        except KeyboardInterrupt:
            typer.echo("evertree: interrupted; the same command goes on from here", err=True)
            raise typer.Exit(130) from None


@contextmanager
def _clean_errors() -> Iterator[None]:
    """Errors that a user can mend, without a traceback."""
    try:
        yield
    except (EvertreeError, OSError) as error:
        typer.echo(f"evertree: {error}", err=True)
        raise typer.Exit(1) from None
