"""A study: cases that can be run in any order, each with its own random numbers, and the records of those that were."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from evertree.errors import ParameterError
from paper.output import write_csv, write_text

#: What names a case, such as ("uniform", 50, 17), and what a case gives.
Case = tuple[str | int, ...]
Row = tuple[str | int | float, ...]


@dataclass(frozen=True)
class Settings:
    """What all cases share."""

    seed: int = 0
    mnist: Path | None = None  # None: the sample of 2,000 images beside the code

    def rng(self, *name: str | int) -> np.random.Generator:
        """Random numbers for what has this name: the same whatever else is run, and in which order."""
        key = [part if isinstance(part, int) else zlib.crc32(part.encode()) for part in name]
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=tuple(key)))


@dataclass(frozen=True)
class Study:
    """An experiment.

    `run` is a function of a module, so that other processes find it. Its rows have the columns that follow those of the
    case. Cases of a study that measures time are run one at a time, or they would slow each other down. Otherwise a
    process is given `at_once` cases; those of a process that is stopped are lost.
    """

    name: str
    title: str
    case_columns: tuple[str, ...]
    columns: tuple[str, ...]
    cases: Sequence[Case]
    run: Callable[[Settings, Case], list[Row]]
    is_timed: bool = False
    at_once: int = 1


class Records:
    """The rows of each case that has been run.

    They are in a file of JSON lines that is only ever appended to, so that a run can be stopped at any moment and
    resumed.
    """

    def __init__(self, folder: Path, study: Study) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / f"{study.name}.jsonl"
        self._n_columns = len(study.columns)
        self._rows: dict[Case, list[Row]] = {}
        if self._path.exists():
            self._read()

    def _read(self) -> None:
        """Read all whole lines. The last may be cut short, if the process was killed: it is dropped."""
        content = self._path.read_bytes()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            with self._path.open("r+b") as file:
                file.truncate(whole)
        try:
            for line in content[:whole].splitlines():
                case, rows = json.loads(line)
                self._rows[tuple(case)] = [self._checked(row) for row in rows]
        except (ValueError, TypeError):
            raise ParameterError(f"{self._path} is damaged: remove it to run that part again") from None

    def _checked(self, row: Any) -> Row:
        if len(row) != self._n_columns:
            raise ValueError("a row of another study")
        return tuple(row)

    def __contains__(self, case: Case) -> bool:
        return case in self._rows

    def __getitem__(self, case: Case) -> list[Row]:
        return self._rows[case]

    def add(self, results: Iterable[tuple[Case, list[Row]]]) -> None:
        """Keep the rows of some cases; they are on disk when this returns."""
        try:
            with self._path.open("ab") as file:
                for case, rows in results:
                    file.write(json.dumps([case, rows]).encode() + b"\n")
                    self._rows[case] = rows
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:  # which names no file where the disk is full
            raise OSError(error.errno, error.strerror, str(self._path)) from None


def write_table(path: Path, study: Study, records: Records) -> None:
    """Write all rows of a study in the order of its cases."""
    rows = ((*case, *row) for case in study.cases for row in records[case])
    write_csv(path, (*study.case_columns, *study.columns), rows)


def check_settings(folder: Path, wanted: dict[str, Any]) -> None:
    """Refuse to add to records that were made with other settings; `wanted` are these, by what they are called."""
    path = folder / "settings.json"
    advice = f"choose another --output, or remove {folder} to run everything again"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise ParameterError(f"{folder} holds records, but not the settings that they were made with: {advice}")
        write_text(path, json.dumps(wanted, indent=2) + "\n")
        return
    try:
        found = dict(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError):
        raise ParameterError(f"{path} is damaged: {advice}") from None
    differing = [name for name, value in wanted.items() if found.get(name) != value]
    if differing:
        raise ParameterError(f"{folder} holds records that were made with another {' and '.join(differing)}: {advice}")
