"""How a command ends: errors in one line without a traceback, Ctrl-C, closed pipes, and the exit codes."""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import typer
from typer.core import TyperGroup

from evertree.errors import ColumnNamesError, DuplicateKeyError, EvertreeError, LockedError

#: Exit codes; 0 means success, and 2, for a wrong command line, is Typer's.
FAILED = 1
INTERRUPTED = 130
CLOSED_PIPE = 141

#: For the help of the whole command line.
EXIT_CODES = """\
[bold]Exit codes[/bold]
0 success, 1 an error, reported in one line, 2 a wrong command line, 130 Ctrl-C, 141 a closed pipe.

Each command has examples: evertree cluster --help"""

#: Remedies that have nothing in common with those in Python.
_REMEDIES: dict[type[EvertreeError], str] = {
    LockedError: "try again when that process has ended; cut, anomalies, plot, export, info and verify work meanwhile",
    ColumnNamesError: "choose its columns with --columns, or rename them",
    DuplicateKeyError: "evertree upsert gives these points new values",
}


class Commands(TyperGroup):
    """All commands; each ends in the same ways."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        with _clean_exit():
            result = super().invoke(ctx)
            sys.stdout.flush()  # a closed pipe shows here at the latest
            return result


@contextmanager
def _clean_exit() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        try:
            yield
        except BrokenPipeError:
            _discard_output()
            raise typer.Exit(CLOSED_PIPE) from None
        except KeyboardInterrupt:
            print_error("interrupted")
            raise typer.Exit(INTERRUPTED) from None
        except MemoryError as error:
            print_error(f"there is not enough memory: {error}")
            raise typer.Exit(FAILED) from None
        except (EvertreeError, OSError, UnicodeError) as error:
            print_error(error_text(error))
            _discard_unwritable_output()
            raise typer.Exit(FAILED) from None


def print_error(text: str) -> None:
    """Print an error or a notice as one line on standard error."""
    typer.echo(f"evertree: {' '.join(text.split())}", err=True)


def error_text(error: Exception) -> str:
    """The text of an error, with parameters written as options and a remedy for the command line."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"
    if not isinstance(error, EvertreeError):
        return str(error)
    problem = error.problem
    if error.parameter is not None:
        problem = _as_option(error.parameter) + problem.removeprefix(error.parameter)
    if error.parameter == "search_width":
        problem = problem.replace("None", "0")
    if error.remedy is None:
        return problem
    return f"{problem}: {_REMEDIES.get(type(error)) or _with_options(error.remedy)}"


def _as_option(parameter: str) -> str:
    return f"--{parameter.replace('_', '-')}"


def _with_options(remedy: str) -> str:
    """A remedy with options for parameters. A limit is lifted by ``name=None`` in Python, and by ``--name 0`` here."""
    values = {"None": " 0", "True": "", None: ""}
    remedy = re.sub(r"\b(\w+)=(None|True)?", lambda found: _as_option(found[1]) + values[found[2]], remedy)
    return re.sub(r"\b\w+\(\)", r"\g<0> in Python", remedy)


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    print_error(f"warning: {message}")


def _discard_unwritable_output() -> None:
    """On a full disk, what is still in the buffer would fail again when Python exits."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        _discard_output()


def _discard_output() -> None:
    """Send what is still in the buffer nowhere; otherwise Python would print an error when it exits."""
    with suppress(OSError, ValueError):  # standard output need not be a file
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
