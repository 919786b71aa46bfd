"""The command line in processes of its own: pipes, Ctrl-C, terminals, exit codes, what starting costs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import evertree as et
from cli_tools import write_files

pytestmark = pytest.mark.process

BIN = Path(sys.executable).parent
ENVIRONMENT = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "NUMBA_DISABLE_JIT": "0"}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder with all files, which tests are in."""
    if not (BIN / "evertree").exists():
        pytest.skip("evertree is not installed beside this Python")
    write_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def shell(line: str, **environment: str) -> subprocess.CompletedProcess:
    """Run a line of bash; its exit code is that of the first command that fails in a pipe."""
    command = ["bash", "-o", "pipefail", "-c", line]
    return subprocess.run(command, capture_output=True, text=True, env={**ENVIRONMENT, **environment}, timeout=100)


def test_a_pipe():
    line = "cat points.csv | evertree cluster - --key id -k 3 2> said.txt | tail -n +2"
    result = shell(f"{line} | cut -d, -f2 | sort | uniq -c")
    assert result.returncode == 0
    assert result.stderr == ""
    assert [line.split()[0] for line in result.stdout.splitlines()] == ["10", "10", "10"]


def test_a_pipe_that_is_closed(folder):
    """Nothing is said, whether it is closed while much is being written, or before little is."""
    np.save("many.npy", np.arange(20_000.0).reshape(-1, 1))
    et.open("many.db", start=et.Hierarchy.random(np.load("many.npy"))).close()
    result = shell("evertree cut many.db -k 3 | head -n 1")
    assert (result.returncode, result.stdout, result.stderr) == (141, "key,n_clusters=3\n", "")
    result = shell("evertree info tree.db | true")
    assert (result.returncode, result.stderr) == (141, "")


@pytest.mark.parametrize(
    ("line", "code", "says"),
    [
        ("evertree cluster - <&-", 1, "evertree: standard input is closed: there is nothing to read\n"),
        (
            "evertree remove tree.db --keys-from - <&-",
            1,
            "evertree: standard input is closed: there is nothing to read\n",
        ),
        ("evertree cluster nothing.csv <&- >&-", 1, "evertree: nothing.csv: No such file or directory\n"),
        ("evertree info tree.db >&-", 0, ""),
        ("evertree cut tree.db -k 3 -o labels.csv <&- >&- 2>&-", 0, ""),
        ("evertree cluster nothing.csv 2>&-", 1, ""),
    ],
)
def test_streams_that_are_closed(line, code, says):
    result = shell(line)
    assert (result.returncode, result.stdout, result.stderr) == (code, "", says)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no full device")
@pytest.mark.parametrize("words", ["-k 3", "--newick -", "-k 3 --json"])
def test_a_full_disk(words):
    result = shell(f"evertree cluster points.csv --key id {words} > /dev/full")
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1] == "evertree: No space left on device"
    assert "Traceback" not in result.stderr


def test_standard_error_that_is_closed():
    """What goes to standard output goes there."""
    result = shell("evertree cluster points.csv --key id -k 2 2>&-")
    assert result.returncode == 0
    assert len(result.stdout.splitlines()) == 31


FINDER = """
import sys
class Finder:
    def find_spec(self, name, *_):
        if name == {name!r}:
            raise {error}
sys.meta_path.insert(0, Finder())
from evertree.__main__ import main
main()
"""


def ended_by(name: str, error: str) -> tuple[int, str]:
    """How the command line ends if an error comes while a module is imported."""
    code = FINDER.format(name=name, error=error)
    result = subprocess.run([sys.executable, "-c", code, "info"], capture_output=True, text=True, env=ENVIRONMENT)
    return result.returncode, result.stderr


def test_ctrl_c_while_modules_are_imported():
    """From the first that takes time, of the library and of the command line."""
    for name in ("numpy", "evertree.hierarchy", "typer"):
        assert ended_by(name, "KeyboardInterrupt") == (130, "evertree: interrupted\n")


@pytest.mark.parametrize("name", ["typer", "rich"])
def test_packages_that_are_missing(name):
    code, says = ended_by(name, f"ModuleNotFoundError(name={name!r})")
    assert code == 1
    assert says == f"evertree: the command line needs {name}: pip install 'evertree[cli]'\n"


def test_errors_have_no_traceback():
    result = shell("evertree cluster nothing.csv")
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == "evertree: nothing.csv: No such file or directory\n"
    assert shell("evertree cluster --linkage x points.csv").returncode == 2


def test_process_substitution():
    assert shell("evertree cluster <(cat points.csv) --key id -k 3").stdout.startswith("id,n_clusters=3\n")


def test_completion_in_bash():
    """What bash calls, set up by what --show-completion prints."""
    script = shell("evertree", _EVERTREE_COMPLETE="source_bash").stdout
    assert "complete -o default" in script
    line = f"{script}\nCOMP_WORDS=(evertree cluster --linkage s); COMP_CWORD=3; _evertree_completion evertree; "
    assert shell(line + 'echo "${COMPREPLY[@]}"').stdout == "single\n"


@pytest.mark.parametrize("words", [["--version"], ["--help"], ["cluster", "--help"]])
def test_starting_is_light(words):
    """Little more than what importing the library takes."""
    heavy = ["numba", "scipy", "pyarrow", "pandas", "sqlalchemy", "matplotlib", "sklearn"]
    heavy += ["rich.console"] if words == ["--version"] else []
    code = (
        "import sys, json\nfrom evertree.__main__ import main\n"
        f"sys.argv[1:] = {words}\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code\n"
        f"print(json.dumps([name for name in {heavy} if name in sys.modules]), file=sys.stderr)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=ENVIRONMENT)
    assert json.loads(result.stderr.splitlines()[-1]) == []


def test_ctrl_c_while_following():
    """It ends after the look that is under way, and SIGTERM does, too."""
    pytest.importorskip("sqlalchemy", reason="follow needs SQLAlchemy")
    words = ["follow", "items.db", "--table", "items", "--key", "id", "--columns", "x,y", "--interval", "0.2", "--json"]
    for stop, code in ((signal.SIGINT, 130), (signal.SIGTERM, 0)):
        process = subprocess.Popen(
            [BIN / "evertree", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT
        )
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["points"] == 30
        assert json.loads(process.stdout.readline())["inserted"] == 0
        process.send_signal(stop)
        _, errors = process.communicate(timeout=30)
        assert process.returncode == code
        assert "Traceback" not in errors


@pytest.mark.slow
def test_ctrl_c_while_refining_on_a_terminal(folder):
    """There is a bar, it ends at once, and what was reached is kept."""
    pty = pytest.importorskip("pty", reason="terminals are Unix's")
    X = np.random.default_rng(0).normal(size=(40_000, 8))
    et.open("random.db", start=et.Hierarchy.random(X)).close()
    terminal, end = pty.openpty()
    process = subprocess.Popen(
        [BIN / "evertree", "refine", "random.db"],
        stdout=subprocess.PIPE,
        stderr=end,
        env={**ENVIRONMENT, "TERM": "xterm", "COLUMNS": "100"},
    )
    os.close(end)
    seen, is_sent, deadline = b"", False, time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            seen += os.read(terminal, 4096)
        except OSError:  # the process has ended
            break
        if not is_sent and b"moves" in seen:
            process.send_signal(signal.SIGINT)
            is_sent = True
    os.close(terminal)
    output, _ = process.communicate(timeout=30)
    assert process.returncode == 130, seen.decode()
    assert output == b""
    assert b"Refining" in seen
    assert b"evertree: interrupted after" in seen
    assert b"Traceback" not in seen
    with et.open("random.db", read_only=True) as h:
        assert h.n_moves > 0
