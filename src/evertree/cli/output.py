"""What commands print: text for people, JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from evertree.tree.refine import Report

#: The file name that means standard input or standard output.
DASH = Path("-")

_OUTCOMES = {
    "stable": "the tree is stable",
    "homogeneous": "the tree is homogeneous",
    "seconds": "the time is over",
    "moves": "the moves are made",
    "guard": "rounding stops it",
}


class Output:
    """Prints text, or with ``--json`` one object and no text.

    Text goes to standard output, unless data goes there: then to standard error.
    """

    def __init__(self, as_json: bool, data_on_stdout: bool = False) -> None:
        if as_json and data_on_stdout:
            raise typer.BadParameter("nothing else can go to standard output: name a file", param_hint="--json")
        self._as_json = as_json
        self._to_stderr = data_on_stdout

    def text(self, *lines: str) -> None:
        """Print lines for people."""
        if not self._as_json:
            for line in lines:
                typer.echo(line, err=self._to_stderr)

    def json(self, values: Mapping[str, Any]) -> None:
        """Print an object for programs."""
        if self._as_json:
            typer.echo(json.dumps(values, default=str))


def plural(number: int, noun: str) -> str:
    """A number of things: ``"1 point"``, ``"1,000 points"``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def some_names(names: Sequence[str]) -> str:
    """The first names, and dots for others."""
    return ", ".join([*names[:8], *(["…"] if len(names) > 8 else [])])


def report_text(report: Report) -> str:
    """What a refinement did, in one line."""
    outcome = _OUTCOMES.get(report.stopped_by or "", "")
    return f"{moves_text(report)} in {report.seconds:.1f} s: {outcome}, {quality_text(report)}"


def report_json(report: Report) -> dict[str, Any]:
    """What a refinement did, for programs."""
    names = ("moves", "grafts", "seconds", "quality", "stable", "homogeneous", "pending", "due", "stopped_by")
    return {name: getattr(report, name) for name in names}


def moves_text(report: Report) -> str:
    """How many moves and grafts were made."""
    return f"{plural(report.moves, 'move')}, {plural(report.grafts, 'graft')}"


def quality_text(report: Report) -> str:
    """The quality that a report estimates."""
    return "quality not measured" if report.quality is None else f"quality {report.quality:.1%}"
