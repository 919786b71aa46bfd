"""How the command line ends: errors without a traceback, Ctrl-C, closed pipes, and the exit codes."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import typer
from typer.core import TyperGroup

from evertree.cli.remedies import on_the_command_line
from evertree.errors import EvertreeError

#: Exit codes; 0 is for success, and 2, for a wrong command line, is Typer's.
MENDABLE = 1
INTERRUPTED = 130
CLOSED_PIPE = 141

#: For the help of the whole command line.
EXIT_CODES = """\
[bold]Exit codes[/bold]
0 done, 1 an error that is told in one line, 2 a wrong command line, 130 Ctrl-C, 141 a closed pipe.

Each command has examples: evertree cluster --help"""


class Commands(TyperGroup):
    """All commands, with one way to end."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        with _clean_end():
            result = super().invoke(ctx)
            sys.stdout.flush()  # a closed pipe shows here at the latest
            return result


@contextmanager
def _clean_end() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        try:
            yield
        except BrokenPipeError:
            _drop_output()
            raise typer.Exit(CLOSED_PIPE) from None
        except KeyboardInterrupt:
            complain("interrupted")
            raise typer.Exit(INTERRUPTED) from None
        except MemoryError as error:
            complain(f"there is not enough memory: {error}")
            raise typer.Exit(MENDABLE) from None
        except (EvertreeError, OSError, UnicodeError) as error:
            complain(_text(error))
            _drop_what_has_no_room()
            raise typer.Exit(MENDABLE) from None


def complain(text: str) -> None:
    """Say in one line of standard error what is wrong, or what one should know."""
    typer.echo(f"evertree: {' '.join(text.split())}", err=True)


def _text(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"
    return on_the_command_line(str(error))


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    complain(f"warning: {message}")


def _drop_what_has_no_room() -> None:
    """Where the disk is full, what is still to be written would fail again when Python ends."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        _drop_output()


def _drop_output() -> None:
    """Nobody reads what is still to be written: without this, Python would complain when it ends."""
    with suppress(OSError, ValueError):  # standard output need not be a file
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
