"""The package from outside: what importing costs, the cache of kernels, the command line, the documentation."""

from __future__ import annotations

import importlib
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import evertree

PROJECT = Path(__file__).parents[1]


def run(code: str, cache: Path, **environment: str) -> dict:
    """Run a program in a new process, with the given folder for compiled code."""
    result = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "EVERTREE_CACHE_DIR": str(cache), "NUMBA_DISABLE_JIT": "0", **environment},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    return {"said": result.stderr, **json.loads(result.stdout)}


@pytest.mark.process
def test_importing_is_light(tmp_path):
    """No kernels, no optional packages, not even SciPy."""
    heavy = [
        "numba",
        "pandas",
        "polars",
        "pyarrow",
        "networkx",
        "sklearn",
        "matplotlib",
        "river",
        "dask",
        "distributed",
        "scipy",
        "typer",
        "rich",
    ]
    found = f"[name for name in {heavy} if name in sys.modules]"
    code = f"import sys, json; from evertree import *; print(json.dumps({{'loaded': {found}}}))"
    assert run(code, tmp_path)["loaded"] == []


def test_version():
    from importlib.metadata import version

    assert evertree.__version__ == version("evertree")


@pytest.mark.process
@pytest.mark.parametrize("command", [["-m", "evertree"], ["-c", "from evertree.__main__ import main; main()"]])
def test_command_line(command):
    result = subprocess.run([sys.executable, *command, "--version"], capture_output=True, text=True, check=True)
    assert result.stdout == f"evertree {evertree.__version__}\n"


@pytest.mark.process
def test_command_line_without_its_extra():
    """It says what to install."""
    code = "import sys; sys.modules['typer'] = None; from evertree.__main__ import main; main()"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 1
    assert "pip install 'evertree[cli]'" in result.stderr
    assert "Traceback" not in result.stderr


def test_the_command_starts_and_ends(monkeypatch, capsys):
    pytest.importorskip("typer", reason="the command line needs typer")
    from evertree import __main__ as command

    monkeypatch.setattr(sys, "argv", ["evertree", "--version"])
    with pytest.raises(SystemExit) as ended:
        command.main()
    assert (ended.value.code, capsys.readouterr().out) == (0, f"evertree {evertree.__version__}\n")

    def interrupt():
        raise KeyboardInterrupt

    monkeypatch.setattr("evertree.cli.app", interrupt)
    with pytest.raises(SystemExit) as ended:
        command.main()
    assert ended.value.code == 130
    monkeypatch.setitem(sys.modules, "evertree.cli", None)
    with pytest.raises(ModuleNotFoundError, match=r"evertree\.cli"):  # which no extra would mend
        command.main()
    monkeypatch.setitem(sys.modules, "rich", None)
    with pytest.raises(SystemExit, match=r"needs rich: pip install 'evertree\[cli\]'"):
        command.main()


def test_closed_streams_are_replaced(monkeypatch):
    from evertree import __main__ as command

    opened = []
    monkeypatch.setattr(command.os, "open", lambda *arguments: opened.append(arguments))
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, name, None)
    command._replace_closed_streams()
    nowhere = [sys.stdout, sys.stderr]
    for stream in nowhere:
        stream.write("nobody reads this \ud800")
        stream.close()
    assert sys.stdin is None
    assert [arguments[0] for arguments in opened] == [os.devnull]
    assert [stream.name for stream in nowhere] == [os.devnull] * 2


def test_demo_on_a_few_digits(tmp_path, monkeypatch):
    """The whole of it, as a command, is `test_demo`."""
    for module in ("matplotlib", "sklearn", "rich"):
        pytest.importorskip(module, reason=f"the demo needs {module}")
    from rich.console import Console

    from evertree.cli import demonstration

    X, y = demonstration._load_digits(0)
    monkeypatch.setattr(demonstration, "_load_digits", lambda seed: (X[:40], y[:40]))
    for name, number in {"_N_REMOVED": 3, "_N_UPDATED": 4, "_BATCH": 16, "_N_ORDERS": 2}.items():
        monkeypatch.setattr(demonstration, name, number)
    console = Console(record=True, width=120, file=io.StringIO())
    demonstration.run(console, tmp_path / "picture.svg", seed=0)
    said = console.export_text()
    assert said.startswith("40 handwritten digits of 8 × 8 pixels, Ward linkage: 3 are removed again, 4 arrive")
    rows = {line.split("│")[1].strip(): line.split("│")[2:-1] for line in said.splitlines() if line.startswith("│")}
    assert list(rows) == ["live", "homogeneous", "batch HAC"]
    assert rows["batch HAC"][3].strip() == rows["live"][3].strip() == "0.0%"
    assert rows["batch HAC"][4].strip() == rows["live"][4].strip()
    found = re.search(r"([\d.]+)% of its clusters are those .* ([\d.]+)% to ([\d.]+)% after", " ".join(said.split()))
    here, low, high = map(float, found.groups())
    assert low <= high <= 100.0
    assert min(here, low) > 90.0  # merges may tie
    assert (tmp_path / "picture.svg").read_text(encoding="utf-8").count("purity") >= 2


@pytest.mark.process
@pytest.mark.slow
def test_demo(tmp_path):
    picture = tmp_path / "picture.png"
    result = subprocess.run(
        [sys.executable, "-m", "evertree", "demo", "--output", str(picture)], capture_output=True, text=True, check=True
    )
    for word in (
        "points / s",
        "moves",
        "grafts",
        "blocked",
        "purity",
        "cophenetic",
        "live",
        "homogeneous",
        "batch HAC",
    ):
        assert word in result.stdout
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size > 20_000


@pytest.mark.process
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--output", "x.foo"], "must end with .png"),
        (["--output", "no/x.png"], "folder that exists"),
        (["--seed", "-1"], "seed"),
    ],
)
def test_demo_with_bad_arguments(tmp_path, arguments, message):
    command = [sys.executable, "-m", "evertree", "demo", *arguments]
    result = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert result.returncode != 0
    assert message in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.process
def test_demo_without_its_extra(tmp_path):
    code = (
        "import sys; sys.modules['sklearn'] = None; sys.argv[1:] = ['demo']; from evertree.__main__ import main; main()"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert result.returncode == 1
    assert "pip install 'evertree[demo]'" in result.stderr
    assert "Traceback" not in result.stderr


def public_names():
    for name in [*evertree.__all__, *(name for name in evertree._names if name not in evertree.__all__)]:
        thing = getattr(evertree, name)
        yield name, thing
        if isinstance(thing, type):
            for member in dir(thing):
                value = getattr(thing, member)
                owner = getattr(value.fget if isinstance(value, property) else value, "__module__", None) or ""
                if not member.startswith("_") and owner.startswith("evertree"):  # and not inherited from elsewhere
                    yield f"{name}.{member}", value
    for module in ("quality", "plotting", "io"):
        package = importlib.import_module(f"evertree.{module}")
        for name in package.__all__:
            yield f"{module}.{name}", getattr(package, name)


@pytest.mark.parametrize(
    ("name", "thing"), [pair for pair in public_names() if callable(pair[1]) or isinstance(pair[1], property)]
)
def test_public_names_are_documented(name, thing):
    """A docstring; and an example, which runs as a test, for everything but exceptions."""
    assert thing.__doc__, name
    if not (isinstance(thing, type) and issubclass(thing, Exception)):
        assert ">>> " in thing.__doc__, name


@pytest.mark.slow
def test_readme_runs(tmp_path, monkeypatch, capsys):
    """Its Python examples, one after the other in an empty folder; and again, where the first run left its files."""
    monkeypatch.chdir(tmp_path)
    pytest.importorskip("sklearn", reason="an example uses the estimator")
    examples = re.findall(r"```python\n(.*?)```", (PROJECT / "README.md").read_text(), flags=re.DOTALL)
    assert len(examples) == 2
    for _ in range(2):
        names: dict = {}
        for example in examples:
            exec(example, names)
        assert names["h"].is_monotone()
        assert names["tuesday"].sizes()[5] == 80
        assert evertree.load("tree.evertree").keys() == names["h"].keys()
        assert len(names["model"].labels_) == len(names["h"]) + 10
        assert capsys.readouterr().out.startswith("{0: ")


PAPER = (PROJECT / "docs" / "paper.md").read_text()
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAPER.splitlines() if line.startswith("| `")]


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_paper_names_places_that_exist(row):
    """`docs/paper.md`: code that can be imported, and tests that are there."""
    _, _, code, tests = row
    assert code, "every label has a place in the code"
    assert tests, "and a test"
    for place in re.findall(r"`([\w.]+)`", code):
        module, _, name = place.rpartition(".")
        owner = module
        try:
            found = importlib.import_module(owner)
        except ModuleNotFoundError:
            owner, _, kind = module.rpartition(".")
            found = getattr(importlib.import_module(owner), kind)
        assert hasattr(found, name), place
    for place in re.findall(r"`([\w/]*test_\w+\.py)::(\w+)`", tests):
        text = (PROJECT / "tests" / place[0]).read_text()
        assert f"def {place[1]}(" in text, place


def test_paper_has_a_row_for_every_label():
    rows = [label for row in ROWS for label in re.findall(r"`([^`]+)`", row[0])]
    assert sorted(rows) == (PROJECT / "tests" / "paper_labels.txt").read_text().split()


def test_list_of_labels_is_the_papers():
    source = PROJECT.parent / "shared" / "paper" / "anytime-hierarchical-clustering.tex"
    if not source.is_file():
        pytest.skip("the source of the paper is not beside this clone")
    text = re.sub(r"(?m)^\s*%.*$", "", source.read_text())
    labels = set(re.findall(r"\\label\{((?:def|eq|fig|tab|prop|lem|thm)[.:][\w-]+)\}", text))
    assert sorted(labels) == (PROJECT / "tests" / "paper_labels.txt").read_text().split()
