"""``evertree insert``, ``remove`` and ``refine``: what changes a durable tree."""

from __future__ import annotations

import time
from collections.abc import Hashable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

import evertree
from evertree.cli import options
from evertree.cli.cluster import Scheme, fill
from evertree.cli.examples import examples
from evertree.cli.exits import INTERRUPTED, complain
from evertree.cli.keys import live_keys, named_keys, words_in
from evertree.cli.opening import is_durable, open_to_write
from evertree.cli.output import Voice, counted, report_json, report_text
from evertree.cli.output import refine as refine_with_bar
from evertree.cli.tables import Points, Source, naming_columns, read_points
from evertree.errors import DuplicateKeyError, UnknownKeyError, listed
from evertree.hierarchy import Hierarchy
from evertree.input.arrays import as_keys
from evertree.locking import Uninterrupted
from evertree.tree.refine import Report
from evertree.windows import Window


@examples(
    ("A new tree, or more points for one that is there", "evertree insert tree.db new.csv --key id"),
    ("New values for points that are there, too", "evertree insert tree.db changes.csv --key id --update"),
    ("Only the last 1,000 points stay, now and later", "evertree insert tree.db new.csv --key id --keep-last 1000"),
    ("From a pipe, into a new tree of another kind", "cat points.csv | evertree insert other.db - --linkage average"),
)
def insert(
    tree: options.Tree,
    file: options.File,
    update: Annotated[
        bool, typer.Option("--update", help="Points whose key is live already get the values in the file.")
    ] = False,
    key: options.Key = None,
    columns: options.Columns = None,
    delimiter: options.Delimiter = None,
    header: options.Header = True,
    array: options.Array = None,
    linkage: options.Linkage = None,
    metric: options.Metric = None,
    metric_params: options.MetricParams = None,
    goal: options.Goal = None,
    search_width: options.SearchWidth = None,
    keep_last: options.KeepLast = None,
    max_age: options.MaxAge = None,
    time_of_points: options.Time = None,
    as_json: options.Json = False,
) -> None:
    """Insert the points of a file into a durable tree, new or old.

    All of them are inserted, or on an error none. The file must have the columns of the points before, in their
    order: a tree does not know their names. Keys in text files are whole numbers where they are written like one,
    and text otherwise. A window that is given stays with the tree.
    """
    if update and key is None:
        raise typer.BadParameter("needs --key, to know which points are meant", param_hint="--update")
    began = time.perf_counter()
    source = Source(file, key, columns, delimiter, header, array)
    scheme = Scheme(linkage, metric, options.params_of(metric_params), goal, search_width)
    is_new = not tree.exists()
    if is_new:
        scheme.check()
    else:
        is_durable(tree)  # or an error, before a pipe is read
    points = read_points(source)
    limits = Limits(keep_last, max_age, time_of_points)
    n_before = n_updated = 0
    if is_new:
        h, keys = _new_tree(tree, points, scheme, limits)
    else:
        with open_to_write(tree, **scheme.given()) as h:
            n_before = len(h)
            keys, n_updated = _upserted(h, points, update, source, limits)
    n_gone = n_before + len(keys) - len(h)
    numbered = f" (keys {keys[0]} to {keys[-1]})" if keys and points.keys is None else ""
    updated = f", {n_updated:,} updated" if update else ""
    voice = Voice(as_json)
    gone = "" if h.window is None else f", {n_gone:,} gone"
    voice.say(f"{counted(len(keys), 'point')} inserted{numbered}{updated}{gone}; {tree} has {len(h):,}")
    if points.left_out:
        voice.say(points.left_out_text)
    voice.answer(
        {
            "tree": str(tree),
            "created": is_new,
            "inserted": len(keys),
            "updated": n_updated,
            "gone": n_gone,
            "first_key": keys[0] if keys else None,
            "last_key": keys[-1] if keys else None,
            "points": len(h),
            "columns": points.columns,
            "left_out": points.left_out,
            "seconds": time.perf_counter() - began,
        }
    )


@dataclass(frozen=True)
class Limits:
    """A window as options give it: None where a limit stays as it is, 0 where it is lifted."""

    last: int | None
    max_age: float | None
    time: float | None

    def set(self, h: Hierarchy) -> None:
        """Let a tree have these limits, and those that it has beside them."""
        if self.last is None and self.max_age is None:
            return
        now = h.window or Window()
        last = now.last if self.last is None else self.last or None
        h.keep(last, now.max_age if self.max_age is None else self.max_age or None, self.time)

    def insert(self, h: Hierarchy, values: Any, keys: list[Hashable] | None = None) -> list[Hashable]:
        """Set the limits, and insert points. Points that cannot be inserted leave the limits as they are."""
        trial = h.copy() if h.metric == "precomputed" else h
        if trial is not h:  # dissimilarities are to the points that stay
            self.set(trial)
        trial.check(values, keys)
        self.set(h)
        return h.insert(values, keys, time=self.time)


def _new_tree(path: Path, points: Points, scheme: Scheme, limits: Limits) -> tuple[Hierarchy, list[Hashable]]:
    """A new durable tree, and the keys of its points. It is made in memory first, so that an error leaves no file."""
    h = Hierarchy(**scheme.given(points.values))
    limits.set(h)
    keys = fill(h, points, limits.time)
    evertree.open(path, start=h).close()
    return h, keys


def _upserted(h: Hierarchy, points: Points, update: bool, source: Source, limits: Limits) -> tuple[list[Hashable], int]:
    """Insert points, and update those that are there; return the new keys and how many were updated."""
    with naming_columns(points, source):
        if points.keys:
            return _upserted_by_key(h, points, update, source, limits)
        return limits.insert(h, points.values), 0


def _upserted_by_key(
    h: Hierarchy, points: Points, update: bool, source: Source, limits: Limits
) -> tuple[list[Hashable], int]:
    assert points.keys is not None
    keys = as_keys(live_keys(h, points.keys) if points.keys_are_text else points.keys)
    there = [row for row, key in enumerate(keys) if key in h]
    if there and not update:
        raise DuplicateKeyError(
            f"{source.name}: these keys are live already: {listed(keys[row] for row in there)}. --update gives their "
            "points new values"
        )
    known = set(there)
    new = [row for row in range(len(keys)) if row not in known]
    if there and h.metric != "precomputed":  # what leaves the window would not come back if they were refused then
        h.check(points.values[there])
    with Uninterrupted():  # between the two edits, too
        inserted = limits.insert(h, points.values[new], [keys[row] for row in new])
        there = [row for row in there if keys[row] in h]  # some may have left the window
        try:
            if there:
                h.update([keys[row] for row in there], points.values[there])
        except BaseException:
            h.remove([key for key in inserted if key in h])
            raise
    return inserted, len(there)


@examples(
    ("By key", "evertree remove tree.db 17 42"),
    ("By the keys in a file, a line for each", "evertree remove tree.db --keys-from gone.txt"),
    (
        "From a pipe, with keys that may be gone already",
        "cat gone.txt | evertree remove tree.db --keys-from - --missing-ok",
    ),
)
def remove(
    tree: options.Tree,
    keys: Annotated[
        list[str] | None, typer.Argument(metavar="KEY", show_default=False, help="The keys of the points.")
    ] = None,
    keys_from: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A file with a key in each line; - for standard input.")
    ] = None,
    missing_ok: Annotated[bool, typer.Option("--missing-ok", help="Pass over keys that no live point has.")] = False,
    as_json: options.Json = False,
) -> None:
    """Remove points from a durable tree.

    All of them are removed, or on an error none. A key is looked for as text, where it is written like one as a
    whole number, and at last as cut prints it. Write -- before keys that begin with a minus sign.
    """
    words = list(keys or [])
    if keys_from is not None:
        words += words_in(keys_from)
    elif not words:
        raise typer.BadParameter("name the points by their keys, or give --keys-from FILE", param_hint="KEY...")
    with open_to_write(tree) as h:
        wanted = named_keys(h, words)
        unknown = [key for key in wanted if key not in h]
        if unknown and not missing_ok:
            raise UnknownKeyError(
                f"{tree} has no live point with the key {listed(unknown)}, and none was removed; --missing-ok passes "
                "over such keys"
            )
        gone = [key for key in wanted if key in h]
        h.remove(gone)
        n_points = len(h)
    voice = Voice(as_json)
    missing = f", {counted(len(unknown), 'key')} not there" if unknown else ""
    voice.say(f"{counted(len(gone), 'point')} removed{missing}; {tree} has {n_points:,}")
    voice.answer({"tree": str(tree), "removed": len(gone), "missing": len(unknown), "points": n_points})


@examples(
    ("To the tree that batch clustering would make", "evertree refine tree.db"),
    ("For five seconds, say in a nightly job", "evertree refine tree.db --seconds 5 --json"),
    ("The paper's goal, and no more than a thousand moves", "evertree refine tree.db --until homogeneous --moves 1000"),
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

    It ends when the tree has reached its goal or a budget is spent; the same command goes on from there. Ctrl-C
    ends it, with exit code 130, and keeps what was reached.
    """
    voice = Voice(as_json)
    goal = None if until is None else str(until)
    with open_to_write(tree) as h:
        before, began = (h.n_moves, h.n_grafts), time.perf_counter()
        report = refine_with_bar(h, seconds, moves, goal)
        found = report_json(report or _so_far(h, before, began, goal))
    if report is None:
        n_made = found["moves"] + found["grafts"]
        complain(f"interrupted after {counted(n_made, 'move')}, which it keeps; the same command goes on from here")
    else:
        voice.say(report_text(report))
    voice.answer({"tree": str(tree), "points": len(h), **found})
    if report is None:
        raise typer.Exit(INTERRUPTED)


def _so_far(h: Hierarchy, before: tuple[int, int], began: float, goal: str | None) -> Report:
    """The report of a refinement that Ctrl-C has ended."""
    seconds = time.perf_counter() - began
    moves, grafts = h.n_moves - before[0], h.n_grafts - before[1]
    left = h.refine(moves=0, until=goal)  # it makes none, and tells what is left to do
    return replace(left, moves=moves, grafts=grafts, seconds=seconds, stopped_by="interrupted")
