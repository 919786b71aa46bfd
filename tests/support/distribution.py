"""What users install: builds the wheel and the sdist, installs each, and uses it with no extra and with each extra.

Run it with ``make dist-check`` before a release, on Python 3.11 or newer. It downloads packages, so it is no part of
the tests; what needs no network is in ``test_distribution.py``.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import zipfile
from pathlib import Path

PROJECT = Path(__file__).parents[2]

#: Endings of what compilers and editors leave behind.
LEFTOVERS = (".pyc", ".nbi", ".nbc", "~", ".orig")

#: The machine code in wheels for one platform.
LIBRARY = "evertree/kernels/lib/"

#: What follows has no network and no data of its own.
START = """
import numpy as np, evertree as et
X = np.random.default_rng(0).normal(size=(60, 3))
h = et.Hierarchy()
h.insert(X)
h.refine()
assert len(set(h.cut(n_clusters=3))) == 3
"""

#: A use of each extra, in Python or, where it starts with "evertree", on the command line.
USES = {
    "jit": "from evertree.kernels import machine_code; machine_code.the_compiler()",
    "cli": "evertree cluster points.csv --n-clusters 3",
    "pandas": "assert len(h.to_frame()) == 119",
    "networkx": "assert len(h.to_networkx()) == 119",
    "progress": "h.refine(progress=True)",
    "plot": "h.plot().figure.savefig('tree.png')",
    "sklearn": "assert len(et.AnytimeClustering(n_clusters=3).fit_predict(X)) == 60",
    "river": "model = et.RiverClustering(n_clusters=2); model.learn_one({'x': 1.0}); model.predict_one({'x': 1.0})",
    "sql": """
import sqlite3
with sqlite3.connect("extra.db") as db:
    db.execute("CREATE TABLE IF NOT EXISTS items (id INTEGER PRIMARY KEY, price REAL)")
    db.execute("INSERT OR REPLACE INTO items VALUES (1, 0.5), (2, 0.7), (3, 9.0)")
db.close()
with et.follow("extra.db", table="items", key="id", columns=["price"], n_clusters=[2]) as follower:
    assert len(follower.hierarchy) == 3
""",
    "postgresql": """
try:
    et.follow("postgresql://nobody@127.0.0.1:9/shop", table="items", key="id", columns=["price"])
except et.errors.TransientDatabaseError:  # there is no server, and so nothing more to see
    pass
""",
    "duckdb": """
follow = et.follow
import duckdb
with duckdb.connect("extra.duckdb") as db:
    db.execute("CREATE OR REPLACE TABLE items AS SELECT range AS id, range * 0.5 AS price FROM range(9)")
with follow("duckdb:///extra.duckdb", table="items", key="id", columns=["price"], n_clusters=[2]) as follower:
    assert len(follower.hierarchy) == 9
""",
    "distributed": """
cluster = et.distributed.cluster
import dask.array, distributed
with distributed.Client(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as client:
    tree = cluster(dask.array.from_array(X, chunks=(20, 3)), client=client)
    assert len(set(np.asarray(tree.cut(n_clusters=3)))) == 3
""",
    "demo": "evertree demo",
    "all": "evertree cluster points.csv --n-clusters 3 --plot tree.png",
}

#: Which extra is named where another is missing, that needs it too.
FIRST = {"all": "cli", "demo": "cli", "postgresql": "sql", "duckdb": "sql"}


def main() -> None:
    """Do it all in a temporary folder; exit with 1 at the first thing that is wrong."""
    with tempfile.TemporaryDirectory(prefix="evertree-dist-") as name:
        room = Path(name)
        wheels, sdist = build(room)
        for complaint in [
            *(text for wheel in wheels for text in complaints_of_wheel(wheel)),
            *complaints_of_sdist(sdist),
        ]:
            sys.exit(f"{complaint} ✗")
        say("the files of the wheels and the sdist are complete")
        check_without_extras(Environment(room / "from-sdist", sdist), full=False)
        wheel = wheels[-1]
        base = Environment(room / "from-wheel", wheel)
        check_needs(base)
        check_without_extras(base, full=True)
        for extra in USES:
            check_extra(Environment(room / extra, f"{wheel}[{extra}]", above=base), extra)
        check_tests(room, sdist)


def say(text: str) -> None:
    """Report what is well."""
    print(f"✓ {text}", flush=True)


def build(room: Path) -> tuple[list[Path], Path]:
    """The wheel for any machine, the one with the library that `make dist` has built, and the sdist."""
    tools = Environment(room / "tools", "build")
    tools.run("-m", "build", "--outdir", str(room / "dist"), str(PROJECT))
    os.environ["EVERTREE_WHEEL"] = "platform"
    tools.run("-m", "build", "--wheel", "--outdir", str(room / "dist"), str(PROJECT))
    del os.environ["EVERTREE_WHEEL"]
    wheels = sorted((room / "dist").glob("*.whl"), key=lambda wheel: wheel.stat().st_mtime)
    (sdist,) = (room / "dist").glob("*.tar.gz")
    for file in (*wheels, sdist):
        say(f"{file.name}, {file.stat().st_size:,} bytes")
    return wheels, sdist


def sources() -> set[str]:
    """The files of the package, from ``evertree/`` on."""
    source = PROJECT / "src"
    files = {path.relative_to(source).as_posix() for path in (source / "evertree").rglob("*") if path.is_file()}
    return {name for name in files if "__pycache__" not in name and not name.startswith(LIBRARY)}


def complaints_of_wheel(wheel: Path) -> list[str]:
    """What is missing in a wheel, or should not be there: one for a platform has a library, and does not need Numba."""
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if not name.endswith("/")}
        (metadata,) = (archive.read(name).decode() for name in names if name.endswith(".dist-info/METADATA"))
    about = {name for name in names if ".dist-info/" in name}
    machine_code = {name for name in names if name.startswith(LIBRARY)}
    complaints = [f"the wheel lacks {name}" for name in sorted(sources() - names)]
    complaints += [f"the wheel has {name}" for name in sorted(names - about - sources() - machine_code)]
    needs_numba = any(re.match(r"Requires-Dist: numba[^;]*$", line) for line in metadata.splitlines())
    is_for_platform = not wheel.name.endswith("-py3-none-any.whl")
    if is_for_platform == needs_numba or is_for_platform != bool(machine_code):
        complaints.append(f"{wheel.name} has {len(machine_code)} libraries and needs Numba: {needs_numba}")
    wanted = ("/METADATA", "/entry_points.txt", "/licenses/LICENSE")
    return complaints + [f"the wheel lacks {end}" for end in wanted if not any(name.endswith(end) for name in about)]


def complaints_of_sdist(sdist: Path) -> list[str]:
    """The same for an sdist, with which one can do all that one can with a clone."""
    with tarfile.open(sdist) as archive:
        names = {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}
    wanted = {f"src/{name}" for name in sources()}
    for folder in ("tests", "benchmarks", "paper", "native", "examples", "docs"):
        paths = (path for path in (PROJECT / folder).rglob("*.[pmcn]*") if path.is_file())
        found = {path.relative_to(PROJECT).as_posix() for path in paths}
        made = ("__pycache__", "docs/_build/", "docs/api/", "docs/gallery/")
        wanted |= {name for name in found if not any(part in name for part in made)}
    wanted |= {"LICENSE", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "Makefile", "constraints.txt", "conftest.py"}
    wanted |= {"pyproject.toml", "hatch_build.py", "PKG-INFO", ".ci/run", ".pre-commit-config.yaml"}
    complaints = [f"the sdist lacks {name}" for name in sorted(wanted - names)]
    return complaints + [f"the sdist has {name}" for name in sorted(names) if name.endswith(LEFTOVERS)]


class Environment:
    """A virtual environment with something installed, and an empty folder to run things in.

    One that stands above another has all that is in that: so evertree is compiled once for all of them.
    """

    def __init__(self, place: Path, what: object, above: Environment | None = None) -> None:
        subprocess.run([sys.executable, "-m", "venv", place], check=True)
        self.bin = place / ("Scripts" if os.name == "nt" else "bin")
        self.folder = place / "empty"
        self.folder.mkdir()
        (self.packages,) = self.output("import sysconfig; print(sysconfig.get_path('purelib'))").split("\n")[:1]
        if above is not None:
            Path(self.packages, "below.pth").write_text(above.packages)
        constraints = ["--constraint", str(PROJECT / "constraints.txt")]
        self.run("-m", "pip", "install", "--quiet", "--disable-pip-version-check", *constraints, str(what))

    def command(self, use: str) -> list[str]:
        """What runs a line of the command line, or some Python."""
        if use.startswith("evertree "):
            return [str(self.bin / "python"), "-m", *use.split()]
        return [str(self.bin / "python"), "-c", START + use]

    def attempt(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command in the folder."""
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "NUMBA"))}
        environment["MPLBACKEND"] = "agg"
        return subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True)

    def run(self, *arguments: str) -> None:
        """Run Python with arguments, which must go well."""
        result = self.attempt(str(self.bin / "python"), *arguments)
        if result.returncode:
            sys.exit(f"{' '.join(arguments)[:200]}\n{result.stdout}\n{result.stderr}✗")

    def output(self, code: str) -> str:
        """What some Python prints."""
        return self.attempt(str(self.bin / "python"), "-c", code).stdout


def check_without_extras(environment: Environment, full: bool) -> None:
    """Run-time dependencies alone: README examples run, or say which extra they need; if `full`, each extra does."""
    (environment.folder / "points.csv").write_text("x,y\n0,1\n5,2\n0,3\n7,1\n")
    for example in re.findall(r"```python\n(.*?)```", (PROJECT / "README.md").read_text(), flags=re.DOTALL):
        code = f"import numpy as np, evertree as et\n{example}"
        result = environment.attempt(str(environment.bin / "python"), "-c", code)
        title = example.strip().splitlines()[0]
        if result.returncode == 0:
            say(f"README, with no extra: {title}")
        else:
            say(f"README, with no extra: {title}: {missing_extra(result)}")
    for extra, use in USES.items() if full else ():
        text = missing_extra(environment.attempt(*environment.command(use)))
        if f"evertree[{FIRST.get(extra, extra)}]" not in text:
            sys.exit(f"without {extra}: {text} ✗")
        say(f"without {extra}: {text}")


def check_needs(environment: Environment) -> None:
    """From a wheel for a platform come NumPy, SciPy and small packages in Python, and the first result at once."""
    code = "from importlib.metadata import distributions as d; print(*sorted(x.name for x in d()))"
    found = set(environment.output(code).split()) - {"pip", "setuptools"}
    allowed = {"evertree", "numpy", "scipy", "lazy-loader", "lazy_loader", "narwhals", "filelock", "packaging"}
    if not found <= allowed:
        sys.exit(f"the wheel brings {sorted(found - allowed)} ✗")
    began = time.perf_counter()
    environment.run("-c", START)
    say(f"the wheel brings {', '.join(sorted(found))}; the first cut takes {time.perf_counter() - began:.2f} s")


def missing_extra(result: subprocess.CompletedProcess[str]) -> str:
    """The line that says which extra is missing, the last one."""
    last = (result.stderr.strip().splitlines() or [""])[-1]
    if result.returncode == 0 or "pip install 'evertree[" not in last:
        sys.exit(f"no word on what is missing, but:\n{result.stderr}✗")
    return last


def check_extra(environment: Environment, extra: str) -> None:
    """With an extra alone, what it is for works."""
    (environment.folder / "points.csv").write_text("x,y\n" + "\n".join(f"{i % 7},{i % 5}" for i in range(60)))
    result = environment.attempt(*environment.command(USES[extra]))
    if result.returncode:
        sys.exit(f"{extra}:\n{result.stdout}\n{result.stderr}✗")
    say(f"with {extra}: {USES[extra].strip().splitlines()[0]}")


def check_tests(room: Path, sdist: Path) -> None:
    """From an unpacked sdist, tests can be run: some of them are, with the compiler off."""
    with tarfile.open(sdist) as archive:
        archive.extractall(room, filter="data")
    folder = room / sdist.name.removesuffix(".tar.gz")
    environment = Environment(room / "testing", f"{folder}[all]")
    requirements = tomllib.loads((folder / "pyproject.toml").read_text())["dependency-groups"]["test"]
    constraints = ["--constraint", str(folder / "constraints.txt")]
    environment.run("-m", "pip", "install", "--quiet", *constraints, *requirements)
    code = (
        f"import os, sys, pytest; os.chdir({str(folder)!r}); os.environ['NUMBA_DISABLE_JIT'] = '1'; "
        "sys.exit(pytest.main(['-q', '-m', 'not slow and not process', "
        "'tests/test_package.py', 'tests/test_docs.py', 'tests/test_edits.py', 'tests/io/test_newick.py']))"
    )
    environment.run("-c", code)
    say("tests run from an unpacked sdist")


if __name__ == "__main__":
    main()
