"""``evertree refine``: improve a durable tree."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Annotated

import typer

from evertree.cli import options
from evertree.cli.examples import examples
from evertree.cli.exits import INTERRUPTED, print_error
from evertree.cli.output import Output, plural, report_json, report_text
from evertree.cli.progress_bar import refine_with_bar
from evertree.cli.tree_files import open_to_write


@examples(
    ("To the tree that batch clustering would make", "evertree refine tree.db"),
    ("For five seconds, say in a nightly job", "evertree refine tree.db --seconds 5 --json"),
    ("To the paper's goal, in at most 1,000 moves", "evertree refine tree.db --until homogeneous --moves 1000"),
)
def refine(
    tree: options.Tree,
    seconds: options.Seconds = None,
    moves: Annotated[int | None, typer.Option(metavar="N", min=0, help="How many moves may be made.")] = None,
    until: Annotated[
        options.GoalName | None,
        typer.Option(metavar="NAME", help="stable or homogeneous. By default the goal of the tree."),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Improve a durable tree.

    It ends when the tree has reached its goal or a budget is spent; the same command continues from there. Ctrl-C
    ends it, with exit code 130, and keeps what was reached.
    """
    out = Output(as_json)
    with open_to_write(tree) as h:
        n_moves, n_grafts, began = h.n_moves, h.n_grafts, time.perf_counter()
        report = refine_with_bar(h, seconds, moves, until)
        is_interrupted = report is None
        if report is None:
            report = replace(
                h.refine(moves=0, until=until),  # makes no moves, and reports what is left to do
                moves=h.n_moves - n_moves,
                grafts=h.n_grafts - n_grafts,
                seconds=time.perf_counter() - began,
                stopped_by="interrupted",
            )
    if is_interrupted:
        made = plural(report.moves + report.grafts, "move")
        print_error(f"interrupted after {made}, which are kept; the same command continues from here")
    else:
        out.text(report_text(report))
    out.json({"tree": str(tree), "points": len(h), **report_json(report)})
    if is_interrupted:
        raise typer.Exit(INTERRUPTED)
