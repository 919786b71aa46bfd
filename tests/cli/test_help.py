"""What the command line says of itself: help, examples, the page about it, completion."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path
from typing import get_args

import pytest

from cli_tools import app, error_of, run, run_line, testing, write_files
from evertree.anomalies import MEASURES
from evertree.cli import PANELS, options
from evertree.cli.examples import EXAMPLES
from evertree.cli.exits import EXIT_CODES
from evertree.input.arrays import GOALS
from evertree.linkages import LINKAGES

PAGE = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text(encoding="utf-8")
COMMANDS = {command.__name__: command for commands in PANELS.values() for command in commands}
LINES = [(name, line) for name, pairs in EXAMPLES.items() for _, line in pairs]


def test_commands_stand_in_panels():
    text = run("--help").stdout
    for panel, commands in PANELS.items():
        assert f"─ {panel} ─" in text
        for command in commands:
            assert re.search(rf"│ {command.__name__}\s", text)
    assert set(EXAMPLES) == set(COMMANDS)
    assert {"Try", "Cluster a file", "Durable trees", "Databases"} == set(PANELS)


def test_exit_codes_are_told():
    told = re.findall(r"\b\d+\b", EXIT_CODES)
    assert told == ["0", "1", "2", "130", "141"]
    assert told == re.findall(r"^\| (\d+) \|", PAGE, flags=re.MULTILINE)
    assert "Exit codes" in run("--help").stdout


def test_no_words_are_help():
    assert run(code=2).output.strip() == run("--help").output.strip()


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command(name):
    """It fits a terminal of 80 columns, and each example is on one line."""
    result = testing.CliRunner(env={"COLUMNS": "80"}).invoke(app, [name, "--help"])
    assert result.exit_code == 0
    lines = [line.strip() for line in result.stdout.splitlines()]
    assert "Examples" in lines
    for what, line in EXAMPLES[name]:
        assert line in lines
        assert f"{what}:" in lines
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert run(name, "-h").stdout == run(name, "--help").stdout


@pytest.fixture
def _light(monkeypatch):
    """What would take minutes, or go on for ever, is only called."""
    from evertree.cli import demonstration

    def follow(self, interval, listen, on_tick, stop, full_every):
        on_tick(self.poll())
        stop.set()

    monkeypatch.setattr(
        demonstration, "run", lambda console, output, seed: console.print(output.write_text("a picture"))
    )
    try:
        from evertree.sql import Follower
    except ImportError:
        return
    monkeypatch.setattr(Follower, "run", follow)


@pytest.mark.usefixtures("_light")
@pytest.mark.parametrize(("name", "line"), LINES, ids=[line for _, line in LINES])
def test_examples_run(name, line, tmp_path, monkeypatch):
    if name == "follow":
        pytest.importorskip("sqlalchemy", reason="follow needs SQLAlchemy")
    write_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("URL", "sqlite:///items.db")
    assert f"evertree {name} " in f"{line} "
    result = run_line(line)
    assert result.stdout
    targets = [word for word in shlex.split(line.partition(" | ")[0]) if word.endswith((".png", ".npy", ".svg"))]
    assert all((tmp_path / target).exists() for target in targets)


def console_blocks() -> list[list[str]]:
    found = re.findall(r"^```console\n(.*?)^```$", PAGE, flags=re.DOTALL | re.MULTILINE)
    return [block.splitlines() for block in found]


def commands_of(block: list[str]) -> list[tuple[str, str]]:
    """The commands of a block, each with what it prints; one that is not at its end goes on to its last line."""
    found: list[tuple[str, list[str]]] = []
    open_until = None
    for line in block:
        if open_until is not None:
            found[-1] = (f"{found[-1][0]}\n{line.removeprefix('> ')}", [])
            open_until = None if line.removeprefix("> ") == open_until else open_until
        elif line.startswith("$ "):
            found.append((line.removeprefix("$ "), []))
            open_until = "END" if line.endswith("<<END") else '"' if line.endswith('-c "') else None
        else:
            found[-1][1].append(line)
    return [(command, "\n".join(lines)) for command, lines in found]


def as_pattern(text: str) -> str:
    return ".*".join(re.escape(part) for part in text.split("..."))


@pytest.mark.slow  # it draws, too
def test_page_runs(tmp_path, monkeypatch):
    """The commands of the page, one after the other in an empty folder, print what it says."""
    pytest.importorskip("sqlalchemy", reason="follow needs SQLAlchemy")
    pytest.importorskip("matplotlib", reason="pictures need Matplotlib")
    monkeypatch.chdir(tmp_path)
    n_compared = 0
    code = 0
    for command, says in (pair for block in console_blocks() for pair in commands_of(block)):
        if "evertree " in command:
            code = 1 if re.fullmatch(r"evertree: .*", says) else 0  # otherwise it is a notice, and more follows
            first, _, rest = command.partition(" | ")
            if first.startswith("printf") and rest:
                stdin = subprocess.run(["bash", "-c", first], capture_output=True, check=True).stdout
                output = run(*shlex.split(rest)[1:], stdin=stdin, code=code).output
            else:
                output = run_line(command, code).output
        elif command == "echo $?":
            output = f"{code}\n"
        else:
            output = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True).stdout
        assert re.fullmatch(as_pattern(says), output.rstrip("\n"), flags=re.DOTALL), f"{command}\n{output}"
        n_compared += bool(says)
    assert n_compared >= 12


def test_page_has_every_command():
    for name in COMMANDS:
        assert f"`{name}`" in PAGE or f"evertree {name}" in PAGE or name == "demo"


def test_options_have_the_choices_of_the_library():
    assert set(options.LinkageName) == set(LINKAGES)
    assert set(get_args(options.GoalName)) == set(GOALS)
    assert set(get_args(options.MeasureName)) == set(MEASURES)


def complete(words: str, monkeypatch) -> list[str]:
    monkeypatch.setenv("_EVERTREE_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split(" ")) - 1))
    return run().stdout.split()


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("evertree re", ["remove", "refine"]),
        ("evertree cluster points.csv --linkage ", list(options.LinkageName)),
        ("evertree insert --metric co", ["cosine", "correlation"]),
        ("evertree cluster --goal ", list(GOALS)),
        ("evertree refine tree.db --until s", ["stable"]),
        ("evertree cluster --min", ["--min-cluster-size"]),
        ("evertree anomalies --measure d", ["displacement"]),
    ],
)
def test_completion(words, found, monkeypatch):
    assert complete(words, monkeypatch) == found


def test_completion_can_be_installed():
    text = run("--help").stdout
    assert "--install-completion" in text
    assert "--show-completion" in text


def test_a_command_that_does_not_exist():
    assert "No such command 'clutser'" in error_of("clutser", code=2)
