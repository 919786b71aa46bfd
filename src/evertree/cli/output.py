"""What the command line says: text for people, JSON for machines, bars for the patient."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from evertree.errors import ParameterError
from evertree.hierarchy import Hierarchy
from evertree.tree.refine import Report

#: The name of standard input and standard output.
DASH = Path("-")

Show = Callable[[float, str], None]


class Voice:
    """Where text goes: to standard output, unless data go there; nowhere with ``--json``, which wants one object."""

    def __init__(self, as_json: bool, data_on_stdout: bool = False) -> None:
        self._as_json = as_json
        self._to_stderr = data_on_stdout

    def say(self, text: str) -> None:
        """Tell people."""
        if not self._as_json:
            typer.echo(text, err=self._to_stderr)

    def answer(self, found: Mapping[str, Any]) -> None:
        """Tell machines."""
        if self._as_json:
            typer.echo(json.dumps(found, default=str))


def counted(number: int, what: str, plural: str | None = None) -> str:
    """A number of things."""
    return f"{number:,} {what if number == 1 else plural or what + 's'}"


def check_targets(targets: Mapping[str, tuple[Path | None, tuple[str, ...]]], *sources: Path) -> None:
    """Refuse files that cannot be written, before hours of work: by option, each with the endings it may have.

    No ending is for any; a dash among them allows standard output, which has room for one.
    """
    given = {option: (path, endings) for option, (path, endings) in targets.items() if path is not None}
    for option, (path, endings) in given.items():
        if path == DASH and "-" not in endings:
            raise ParameterError(f"{option} cannot go to standard output: name a file")
    on_stdout = [option for option, (path, _) in given.items() if path == DASH]
    if len(on_stdout) > 1:
        raise ParameterError(f"only one of {' and '.join(on_stdout)} can go to standard output: name a file")
    seen: dict[Path, str] = {}
    for option, (path, endings) in given.items():
        if path == DASH:
            continue
        files = [ending for ending in endings if ending != "-"]
        if files and path.suffix.lower() not in files:
            raise ParameterError(f"{option} must end with {' or '.join(files)}; it is {path}")
        if not path.absolute().parent.is_dir():
            raise ParameterError(f"{option} must be in a folder that exists; {path.parent} does not")
        place = path.resolve()
        if place in [source.resolve() for source in sources]:
            raise ParameterError(f"{option} would write over {path}, which is read")
        if place in seen:
            raise ParameterError(f"{option} would write over the file of {seen[place]}")
        seen[place] = option


@contextmanager
def bar(what: str, total: float) -> Iterator[Show]:
    """A bar on standard error, where that is a terminal: call what it gives with how much is done, and a text."""
    if not sys.stderr.isatty():
        yield lambda done, text: None  # noqa: ARG005
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[text]}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(what, total=total, text="")
        with _noting_compilation(lambda: progress.update(task, text="compiling, once; see evertree warmup")):
            yield lambda done, text: progress.update(task, completed=done, text=text)


@contextmanager
def _noting_compilation(note: Callable[[], object]) -> Iterator[None]:
    """Call a function when a kernel is compiled: the first time that takes half a minute."""
    from numba.core import event

    class Listener(event.Listener):  # type: ignore[misc]  # mypy does not read Numba
        def on_start(self, _: Any) -> None:
            note()

        def on_end(self, _: Any) -> None:
            pass

    with event.install_listener("numba:compile", Listener()):
        yield


def refine(h: Hierarchy, seconds: float | None, moves: int | None = None, until: str | None = None) -> Report | None:
    """Refine a tree with a bar; None if Ctrl-C ended it, which keeps what was reached."""
    with bar("Refining", 1.0) as show:

        def follow(report: Report) -> None:
            show(report.quality, f"quality {report.quality:.1%}, {_moves(report)}")

        try:
            return h.refine(seconds, moves, until, progress=follow)
        except KeyboardInterrupt:
            return None


def report_text(report: Report) -> str:
    """What a refinement did, in a line."""
    reached = {
        "stable": "the tree is stable",
        "homogeneous": "the tree is homogeneous",
        "seconds": "the time is over",
        "moves": "the moves are made",
        "guard": "rounding stops it",
    }
    state = reached.get(report.stopped_by or "", "")
    return f"{_moves(report)} in {report.seconds:.1f} s: {state}, quality {report.quality:.1%}"


def report_json(report: Report) -> dict[str, Any]:
    """What a refinement did, for machines."""
    names = ("moves", "grafts", "seconds", "quality", "stable", "homogeneous", "pending", "due", "stopped_by")
    return {name: getattr(report, name) for name in names}


def _moves(report: Report) -> str:
    return f"{counted(report.moves, 'move')}, {counted(report.grafts, 'graft')}"
