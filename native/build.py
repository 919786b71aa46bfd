"""Build the library of machine code: every kernel, for every tree, linkage and dtype that it may be called with.

``python -m native.build`` builds it for this processor, ``--levels all`` for all that a wheel serves. What there is to
build follows from the annotations of the kernels. Each kernel becomes an object, which is kept (see
`evertree.kernels.objects`): after an edit only those are made again that depend on it. A C compiler links them.
"""

from __future__ import annotations

import argparse
import importlib
import multiprocessing
import os
import pkgutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import evertree.kernels
from evertree.kernels import library, machine_code, objects
from evertree.kernels.calls import Kernel
from evertree.kernels.objects import Target
from evertree.kernels.signatures import Configuration
from evertree.linkages import LINKAGES

_HERE = Path(__file__).parent

#: The C compiler, and what makes a shared library of objects.
_COMPILER = os.environ.get("CC") or ("clang" if sys.platform == "win32" else "cc")
_SHARED = ["-shared", "-O2"] + ([] if sys.platform == "win32" else ["-fPIC"])
_LINKED = ["-Wl,-z,defs", "-Wl,-s", "-Wl,--build-id=none"] if sys.platform == "linux" else []
_WITH = [] if sys.platform == "win32" else ["-lm"]


class Task(NamedTuple):
    """A kernel and what it is to be compiled for."""

    kernel: Kernel
    configuration: Configuration

    @property
    def symbol(self) -> str:
        """The name of the function in the library."""
        return self.kernel.symbol(self.configuration)


def all_kernels() -> Iterator[Kernel]:
    """The kernels of the package."""
    for module in pkgutil.walk_packages(evertree.kernels.__path__, "evertree.kernels."):
        if module.name.rpartition(".")[2] in ("numba_compiler", "machine_code"):
            continue
        found = vars(importlib.import_module(module.name))
        for value in [*found.values(), *found.get("ROWS", {}).values()]:
            if isinstance(value, Kernel) and value.py_func.__module__ == module.name:
                yield value


def all_tasks() -> list[Task]:
    """All that there is to build, without an entry twice."""
    linkages = list(LINKAGES.values())
    tasks = [Task(kernel, how) for kernel in all_kernels() for how in kernel.signature.configurations(linkages)]
    return list({task.symbol: task for task in tasks}.values())


def objects_for(task: Task, levels: list[str]) -> dict[str, bytes]:
    """The machine code of a task for some levels, kept or compiled.

    What Numba's means would load on this processor is made along with it, and kept: for tests, and after an edit.
    """
    kernel, configuration, symbol = task.kernel, task.configuration, task.symbol
    targets = [Target(level, is_loaded=False) for level in levels] + [Target(machine_code.target(), is_loaded=True)]
    stamps = {target: objects.stamp_of(kernel, configuration, target) for target in targets}
    found = {target: objects.kept(symbol, stamp) for target, stamp in stamps.items()}
    missing = [target for target, code in found.items() if code is None]
    if missing:
        for target, code in zip(missing, machine_code.made(kernel, configuration, symbol, missing), strict=True):
            objects.keep(symbol, stamps[target], code)
            found[target] = code
    return {target.cpu: code for target, code in found.items() if code is not None and not target.is_loaded}


def _make(symbols: list[str], levels: list[str], folder: str) -> int:
    """In a process of its own: write the objects of some tasks to a folder; return how many."""
    tasks = {task.symbol: task for task in all_tasks()}
    for symbol in symbols:
        for level, code in objects_for(tasks[symbol], levels).items():
            (Path(folder) / f"{symbol}.{level}.o").write_bytes(code)
    return len(symbols) * len(levels)


def build(levels: list[str], folder: Path, n_processes: int) -> None:
    """Build the libraries of some levels into a folder."""
    began = time.perf_counter()
    tasks = all_tasks()
    with tempfile.TemporaryDirectory() as place:
        _make_all(tasks, levels, place, n_processes)
        folder.mkdir(parents=True, exist_ok=True)
        for level in levels:
            _link(level, [Path(place) / f"{task.symbol}.{level}.o" for task in tasks], folder, Path(place))
    for other in folder.glob(f"*-v?{library.SUFFIX}"):  # levels of an earlier build, of other sources
        if library.fingerprint().encode() not in other.read_bytes():
            other.unlink()
    seconds = time.perf_counter() - began
    print(f"{len(tasks)} kernels for {', '.join(levels)} in {seconds:.0f} s: {folder}", file=sys.stderr)


def _make_all(tasks: list[Task], levels: list[str], place: str, n_processes: int) -> None:
    """Write all objects to a folder. Kernels for the same tree and linkage share steps, and go to one process."""

    def shared(task: Task) -> str:
        return str(task.configuration)

    groups = [[task.symbol for task in some] for _, some in groupby(sorted(tasks, key=shared), shared)]
    groups.sort(key=len, reverse=True)
    with multiprocessing.get_context("spawn").Pool(n_processes, maxtasksperchild=4) as pool:
        running = [pool.apply_async(_make, (group, levels, place)) for group in groups]
        n_made = 0
        for made in running:
            n_made += made.get()
            print(f"{n_made} of {len(tasks) * len(levels)} kernels", file=sys.stderr)


def _link(level: str, files: list[Path], folder: Path, place: Path) -> None:
    """Link objects to the library of one level, with texts that say what it is made of."""
    source = place / "texts.c"
    export = "__declspec(dllexport) " if sys.platform == "win32" else ""
    texts = {"fingerprint": library.fingerprint(), "compiler": machine_code.the_compiler().versions()}
    lines = [f'{export}const char *evertree_{name} = "{text}";\n' for name, text in texts.items()]
    source.write_text("".join(lines))
    arguments = place / "objects"
    arguments.write_text("\n".join(f'"{file.as_posix()}"' for file in files))
    exported = place / "exported.def"  # elsewhere all functions are, as the other ones of an object are its own
    exported.write_text("\n".join(["EXPORTS", *(file.name.partition(".")[0] for file in files)]))
    export_them = [f"-Wl,/DEF:{exported}"] if sys.platform == "win32" else []
    _compile([str(source), f"@{arguments}", *_LINKED, *export_them], folder / f"{level}{library.SUFFIX}")


def _compile(what: list[str], result: Path) -> None:
    """Run the C compiler; the result appears at once, or not at all."""
    part = result.with_suffix(".part")
    subprocess.run([_COMPILER, *_SHARED, "-o", str(part), *what, *_WITH], check=True)
    os.replace(part, result)


def build_detector(folder: Path) -> None:
    """Build what asks the processor for its level."""
    folder.mkdir(parents=True, exist_ok=True)
    _compile([str(_HERE / "cpu_level.c"), *_LINKED], folder / library.DETECTOR)


def main() -> None:
    """Build what the command line says."""
    parser = argparse.ArgumentParser(prog="python -m native.build", description=__doc__)
    parser.add_argument("--levels", choices=("host", "all"), default="host", help="for this processor, or all levels")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="number of processes")
    options = parser.parse_args()
    build_detector(library.FOLDER)
    host = library.level()
    if host is None:
        sys.exit("native.build: there is no library for this kind of processor; Numba compiles kernels when first used")
    levels = list(library.LEVELS) if options.levels == "all" and host in library.LEVELS else [host]
    build(levels, library.FOLDER, options.jobs)


if __name__ == "__main__":
    main()
