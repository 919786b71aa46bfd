"""What has been run so far, on disk: one line for each case, so that a run can be stopped at any moment and resumed."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from evertree.errors import ParameterError
from evertree.reproduce.study import Case, Row, Study


class Records:
    """The rows of each case that has been run, in a file of JSON lines that is only ever appended to."""

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


def write_text(path: Path, text: str) -> None:
    """Write a file, all of it or nothing."""
    partial = path.with_name(f"{path.name}.partial")
    partial.write_text(text, encoding="utf-8", newline="")
    partial.replace(path)


def write_csv(path: Path, columns: Iterable[str], rows: Iterable[Iterable[Any]]) -> None:
    """Write a table."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    write_text(path, text.getvalue())


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
