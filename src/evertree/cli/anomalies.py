"""``evertree anomalies``: the points that stand apart most, of a tree or of a file."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from evertree.anomalies import Anomaly
from evertree.cli import options, writing
from evertree.cli.examples import examples
from evertree.cli.opening import open_to_read, require_points
from evertree.cli.output import DASH, Voice, check_targets, counted
from evertree.cli.tables import Source, naming_columns, read_points
from evertree.errors import ParameterError
from evertree.hierarchy import Hierarchy

#: How many points are told of, where the user does not say.
_USUAL = 10

#: What is told of each, after its key.
_NUMBERS = ("score", "size", "ratio", "height")


@examples(
    ("The ten points of a tree that stand apart most", "evertree anomalies tree.db"),
    ("Those of a table, before they are inserted", "evertree anomalies tree.db new.csv --key id"),
    ("Only alarms: prints nothing where there is none", "evertree anomalies tree.db new.csv --key id --above 25"),
    ("All scores, by another measure", "evertree anomalies tree.db --all --measure displacement -o s.csv"),
    ("In a pipe", "cat new.csv | evertree anomalies tree.db - --columns x,y --output -"),
)
def anomalies(
    tree: options.AnyTree,
    points: Annotated[
        Path | None,
        typer.Argument(
            metavar="POINTS",
            show_default=False,
            help="A table of points, as insert takes it; - for standard input. By default the points of the tree.",
        ),
    ] = None,
    top: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="How many points: 10 by default, and with --above as many as there are."),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All points.")] = False,
    above: Annotated[
        float | None, typer.Option(metavar="SCORE", min=0, help="Only points with a score above that.")
    ] = None,
    measure: Annotated[
        options.MeasureName,
        typer.Option(
            metavar="NAME",
            help="jump, which knows how far a point stands apart, or displacement: how many times larger the others "
            "are than what stands apart.",
        ),
    ] = options.MeasureName.JUMP,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Write a table: .csv, .parquet, or - for CSV on standard output."
        ),
    ] = None,
    key: options.Key = None,
    columns: options.Columns = None,
    delimiter: options.Delimiter = None,
    header: options.Header = True,
    array: options.Array = None,
    as_json: options.Json = False,
) -> None:
    """Find the points that stand apart from the others, and say why.

    The higher the score, the more anomalous. The points of a table are scored each as if it came alone, and the tree
    does not change. They are named by their keys, or by their rows, from 1.

    The exit code is 0, whatever is found. With --above, nothing is printed where there is none, so that cron
    sends no mail.
    """
    if everything and top is not None:
        raise typer.BadParameter("name a number by --top, or give --all", param_hint="--all")
    if as_json and output == DASH:
        raise typer.BadParameter("with --json, nothing else can go to standard output", param_hint="--output")
    if points is None and (key, columns, delimiter, header, array) != (None, None, None, True, None):
        raise typer.BadParameter("how a table is read needs one: give POINTS", param_hint="POINTS")
    check_targets({"--output": (output, writing.ENDINGS)}, *(path for path in (tree, points) if path is not None))
    h = open_to_read(tree)
    require_points(h, tree)
    limit = None if everything else top or (_USUAL if above is None else None)
    wanted = Wanted(limit, above, str(measure))
    if points is None:
        found = wanted.of(h)
    else:
        found = wanted.in_table(h, Source(points, key, columns, delimiter, header, array))
    _tell(found, output, Voice(as_json, output == DASH), {"tree": str(tree), "measure": wanted.measure})


@dataclass(frozen=True)
class Found:
    """The points that stand apart, each with its key, or with its row where it has none."""

    n_points: int
    key_name: str
    keys: list[Hashable]
    anomalies: Sequence[Anomaly]

    @property
    def numbers(self) -> dict[str, list[float]]:
        """What is told of each, as columns."""
        return {name: [getattr(anomaly, name) for anomaly in self.anomalies] for name in _NUMBERS}

    @property
    def reasons(self) -> list[str]:
        """Why each of them stands apart."""
        return [anomaly.reason for anomaly in self.anomalies]

    def text(self) -> str:
        """For people."""
        columns = [[self.key_name, *map(str, self.keys)]]
        columns += [[name, *(f"{value:,.6g}" for value in values)] for name, values in self.numbers.items()]
        widths = [max(map(len, column)) for column in columns]
        rows = zip(*columns, ["reason", *self.reasons], strict=True)
        return "\n".join(
            "  ".join([name.ljust(widths[0]), *map(str.rjust, numbers, widths[1:]), reason])
            for name, *numbers, reason in rows
        )

    def described(self) -> list[dict[str, Any]]:
        """For machines."""
        name = "row" if self.key_name == "row" else "key"
        columns = {name: self.keys, **self.numbers, "reason": self.reasons}
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


@dataclass(frozen=True)
class Wanted:
    """Which points the user asked for."""

    top: int | None
    above: float | None
    measure: str

    def of(self, h: Hierarchy) -> Found:
        """Of the points of a tree."""
        found = self._in(h, None)
        return Found(len(h), "key", [anomaly.key for anomaly in found], found)

    def in_table(self, h: Hierarchy, source: Source) -> Found:
        """Of those in a file."""
        if not isinstance(h.metric, str):
            raise ParameterError(
                "POINTS must be left out where a function compares points, as in this tree: they need not be rows of "
                "numbers. In Python, score_samples takes them"
            )
        points = read_points(source)
        with naming_columns(points, source):
            found = self._in(h, points.values)
        if points.keys is None:
            return Found(len(points.values), "row", [anomaly.row + 1 for anomaly in found], found)
        return Found(len(points.values), points.key_name, [points.keys[anomaly.row] for anomaly in found], found)

    def _in(self, h: Hierarchy, X: Any) -> list[Anomaly]:
        n = self.top
        if self.above is not None:
            n_above = int(np.count_nonzero(h.score_samples(X, self.measure) > self.above))
            n = n_above if n is None else min(n, n_above)
        return [] if n == 0 else h.anomalies(X, n, self.measure)


def _tell(found: Found, output: Path | None, voice: Voice, about: dict[str, Any]) -> None:
    n_found = len(found.keys)
    if output is not None:
        columns = {name: np.array(values, np.float64) for name, values in found.numbers.items()}
        writing.write(output, found.key_name, found.keys, {**columns, "reason": np.array(found.reasons, np.str_)})
        if output != DASH:
            voice.say(f"{n_found:,} of {counted(found.n_points, 'point')}: {output}")
    elif n_found:
        voice.say(found.text())
    what = {"anomalies": found.described()} if output is None else {}
    voice.answer({**about, "points": found.n_points, "found": n_found, "output": output and str(output), **what})
