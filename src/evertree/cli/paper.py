"""``evertree reproduce``: the experiments of the paper."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evertree.cli.examples import examples
from evertree.cli.exits import INTERRUPTED, print_error


@examples(
    ("A quick look", "evertree reproduce --repetitions 1 --output quick"),
    ("All of it, with what the paper left open", "evertree reproduce --extended"),
)
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
    """Repeat the experiments of the paper (section 5).

    A page sets what it says beside what is found. Stop it with Ctrl-C at any time: the same command goes on from
    there. More --repetitions add to what has been run.
    """
    from rich.console import Console

    from evertree.reproduce import command

    try:
        command.run(Console(), command.Options(output, repetitions, extended, seed, jobs, mnist))
    except KeyboardInterrupt:
        print_error("interrupted; the same command goes on from here")
        raise typer.Exit(INTERRUPTED) from None
