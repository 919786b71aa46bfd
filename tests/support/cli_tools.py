"""What tests of the command line share: files to work on, and a way to run commands in this process."""

from __future__ import annotations

import json
import re
import shlex
import sqlite3
import subprocess
from pathlib import Path

import numpy as np
import pytest

import evertree as et

testing = pytest.importorskip("typer.testing", reason="the command line needs Typer")
pa = pytest.importorskip("pyarrow", reason="the command line reads tables through pyarrow")
csv = pytest.importorskip("pyarrow.csv")
parquet = pytest.importorskip("pyarrow.parquet")

from evertree.cli import app  # noqa: E402


def run(*words: object, code: int = 0, stdin: str | bytes | None = None):
    """Run a command, and check how it ends: without a traceback in any case."""
    result = testing.CliRunner().invoke(app, [str(word) for word in words], input=stdin, prog_name="evertree")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return result


def json_of(*words: object, code: int = 0, stdin: str | bytes | None = None) -> dict:
    """What a command prints with ``--json``: one object, and nothing else."""
    lines = run(*words, "--json", code=code, stdin=stdin).stdout.splitlines()
    assert len(lines) == 1
    return json.loads(lines[0])


def error_of(*words: object, code: int = 1, stdin: str | bytes | None = None) -> str:
    """What a command that fails says: one line on standard error."""
    result = run(*words, code=code, stdin=stdin)
    if code == 1:
        lines = result.stderr.splitlines()
        assert lines[-1].startswith("evertree: ")
        return lines[-1].removeprefix("evertree: ")
    return " ".join(re.sub(r"[│╭╮╰╯─]", " ", result.stderr).split())


def three_groups(n: int = 30) -> np.ndarray:
    """Points in three groups, one after the other."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 2)) + 10 * (np.arange(n) % 3)[:, None]


def write_files(folder: Path, n: int = 30) -> None:
    """All files that examples use: tables, a durable tree, a database."""
    X = three_groups(n)
    table = pa.table({"id": np.arange(n), "name": [f"item {i}" for i in range(n)], "x": X[:, 0], "y": X[:, 1]})
    csv.write_csv(table, folder / "points.csv")
    parquet.write_table(table, folder / "points.parquet")
    (folder / "points.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in table.to_pylist()))
    np.save(folder / "points.npy", X)
    csv.write_csv(pa.table({"id": [100, 101], "x": [0.5, 9.5], "y": [0.1, 9.9]}), folder / "new.csv")
    csv.write_csv(pa.table({"id": [1, 200], "x": [0.5, 9.5], "y": [0.1, 9.9]}), folder / "changes.csv")
    (folder / "gone.txt").write_text("2\n5\n")
    with et.open(folder / "tree.db") as h:
        h.insert(np.vstack([X, X[:13] + 0.1]))
    write_database(folder / "items.db", X)


def write_database(path: Path, X: np.ndarray) -> None:
    """An SQLite database with a table of points."""
    db = sqlite3.connect(path)
    with db:
        db.execute("CREATE TABLE items (id INTEGER PRIMARY KEY, x REAL, y REAL, v TEXT)")
        rows = [(i, x, y, json.dumps([x, y])) for i, (x, y) in enumerate(X.tolist())]
        db.executemany("INSERT INTO items VALUES (?, ?, ?, ?)", rows)
    db.close()


def run_line(line: str, code: int = 0):
    """Run a line of shell, the commands of evertree in it in this process: they may stand in a pipe, or before &&."""
    first, _, rest = line.partition(" | ")
    stdin = None
    if first.startswith("cat ") and rest.startswith("evertree "):
        stdin = Path(first.split()[1]).read_bytes()
        line, rest = rest, ""
    elif rest:
        line = first
    line, _, after = line.partition(" && ")
    words = shlex.split(line)
    if words[0] != "evertree":
        return subprocess.run(["bash", "-c", line], check=True, capture_output=True, text=True)
    result = run(*words[1:], code=code, stdin=stdin)
    if after:
        subprocess.run(["bash", "-c", after], check=True)
    return result
