"""The command line: the app, and its commands in panels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

import evertree
from evertree.cli.commands import (
    anomalies,
    cluster,
    cut,
    demo,
    export,
    follow,
    info,
    insert,
    plot,
    refine,
    remove,
    upsert,
    verify,
)
from evertree.cli.examples import epilog, help_text
from evertree.cli.exits import EXIT_CODES, Commands

#: The commands, as the help lists them.
PANELS: dict[str, tuple[Callable[..., object], ...]] = {
    "Try": (demo.demo,),
    "Cluster a file": (cluster.cluster,),
    "Durable trees": (
        insert.insert,
        upsert.upsert,
        remove.remove,
        refine.refine,
        cut.cut,
        anomalies.anomalies,
        plot.plot,
        export.export,
        info.info,
        verify.verify,
    ),
    "Databases": (follow.follow,),
}

app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"evertree {evertree.__version__}")
        raise typer.Exit


@app.callback(epilog=EXIT_CODES)
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Hierarchical clustering of data that changes."""


for _panel, _commands in PANELS.items():
    for _command in _commands:
        app.command(help=help_text(_command), epilog=epilog(_command), rich_help_panel=_panel)(_command)
