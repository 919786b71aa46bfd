"""How good the tree is, and how fast it is there, beside other libraries in the same run. Nothing is asserted.

Run it with ``make bench-quality``, or ``python -m benchmarks.quality --quick`` for a look in a minute or two. Every
measurement has a process and a thread of its own; see `benchmarks.peers` for what is timed and how trees are compared.
Data that are not there are skipped. At the end stand the aims, what was measured, and whether they were reached.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import evertree as et
from benchmarks import datasets
from benchmarks.live_tree import headline
from benchmarks.peers import BATCH, GAUSSIAN_PURITY, SYSTEMS

QUICK = ("digits", "glass", "vowel")
GAUSSIANS = (100_000, 1_000_000)
PACKAGES = ("scipy", "fastcluster", "scikit-learn", "betula-cluster", "fishdbc", "genieclust")
THREADS = ("OMP", "OPENBLAS", "MKL", "NUMBA", "RAYON")

#: What is aimed at.
WITH_BATCH = ("digits", "glass", "vowel", "spambase", "letter", "news20", "mnist10k", "shuttle")
MEAN_PURITY, LEAST_PURITY = 0.98, 0.93
TIMES_FASTER = {"mnist10k": 5, "letter": 5, "shuttle": 8}
ABOVE = ("digits", "letter", "mnist10k", "mnist70k")
LARGE, MOST_SECONDS, MOST_MEMORY = ("covtype", "mnist70k"), 60, 4
MOST_GROWTH = 13


class Measured:
    """The runs of one system on one data set, and their means."""

    def __init__(self, runs: list[dict[str, Any]]) -> None:
        self.runs = runs
        self.failure: str | None = next((run["failed"] for run in runs if "failed" in run), None)

    def all(self, key: str) -> list[float]:
        """A figure of each run that has it."""
        return [run[key] for run in self.runs if key in run]

    def mean(self, key: str) -> float:
        """The mean of a figure over the runs."""
        return float(np.mean(self.all(key)))

    @property
    def parts(self) -> dict[str, float]:
        """The seconds of each part of the work."""
        return {part: float(np.mean([run["seconds"][part] for run in self.runs])) for part in self.runs[0]["seconds"]}

    @property
    def seconds(self) -> float:
        """The time of all parts."""
        return sum(self.parts.values())

    @property
    def memory(self) -> float:
        """The peak, in units of the data as float32."""
        return self.mean("bytes") / (4 * np.prod(self.runs[0]["shape"]))

    @property
    def was_disturbed(self) -> bool:
        """Whether the process waited for the processor, or for the disk."""
        return self.seconds > 0.5 and self.seconds > 1.1 * self.mean("cpu")


Table = dict[str, Measured]  # by system


def in_a_child(limit: float, **job: Any) -> dict[str, Any]:
    """One measurement in a new process with one thread, or why there is none."""
    command = [sys.executable, "-m", "benchmarks.peers", json.dumps(job)]
    environment = os.environ | {f"{library}_NUM_THREADS": "1" for library in THREADS}
    root = Path(__file__).resolve().parents[1]
    try:
        child = subprocess.run(
            command, env=environment, cwd=root, capture_output=True, text=True, timeout=limit, check=False
        )
    except subprocess.TimeoutExpired:
        return {"failed": f"not done after {limit:.0f} s, with all that it takes to measure it"}
    if child.returncode == 0:
        return json.loads(child.stdout.splitlines()[-1])
    if child.returncode < 0:
        return {"failed": f"ended by {signal.Signals(-child.returncode).name}"}
    return {"failed": (child.stderr.strip().splitlines() or ["no message"])[-1]}


def measure(data: str, systems: list[str], options: argparse.Namespace) -> Table:
    """All systems on one data set."""
    table = {}
    for name in systems:
        runs: list[dict[str, Any]] = []
        for order in range(options.orders if SYSTEMS[name].by_order else 1):
            show(f"{data}, {name}, order {order} …")
            hint = runs[0]["hint"] if runs else None  # a parameter is looked for once
            runs.append(
                in_a_child(options.limit, data=data, system=name, order=order, folder=str(options.folder), hint=hint)
            )
            if "failed" in runs[-1]:
                break
        table[name] = Measured(runs)
    show("")
    return table


def show(what: str) -> None:
    """Say what is being done to whoever sits before a terminal."""
    if sys.stderr.isatty():
        print(f"{what:60}", end="\r", file=sys.stderr, flush=True)


def batch(table: Table) -> Measured | None:
    """The fastest batch Ward."""
    done = [table[name] for name in BATCH if name in table and table[name].failure is None]
    return min(done, key=lambda measured: measured.seconds, default=None)


def spread(values: list[float]) -> str:
    """The mean, and from where to where the values go."""
    if len(values) == 1 or max(values) - min(values) < 0.0005:
        return f"{np.mean(values):.3f}"
    return f"{np.mean(values):.3f} ({min(values):.3f} to {max(values):.3f})"


def row(name: str, measured: Measured, reference: Measured | None) -> str:
    """One system in the table of a data set."""
    title = SYSTEMS[name].title
    if measured.failure is not None:
        return f"| {title} | – | – | – | – | – | – | – | – | {measured.failure} |"
    value = f"{measured.mean('value') / reference.mean('value'):.4f}" if reference is not None else "–"
    unstable = "–"
    if measured.all("instability"):
        unstable = "{:.1%} ({:.1%} to {:.1%})".format(*(measured.mean(key) for key in ("instability", "low", "high")))
    seconds = f"{measured.seconds:.3g}{'*' if measured.was_disturbed else ''}"
    if len(measured.parts) > 1:
        seconds += " = " + " + ".join(f"{taken:.3g} {part}" for part, taken in measured.parts.items())
    more = f"{measured.mean('more'):.3g}"
    memory = f"{measured.mean('bytes') / 1e6:,.0f} | {measured.memory:.1f}"
    purity, rand = spread(measured.all("purity")), spread(measured.all("rand"))
    cells = (title, purity, rand, value, unstable, seconds, more, memory)
    return f"| {' | '.join(cells)} | {measured.runs[0]['note']} |"


def print_table(data: str, table: Table) -> None:
    about = next((m.runs[0] for m in table.values() if "shape" in m.runs[0]), None)
    headline(data)
    if about is not None:
        n, n_columns = about["shape"]
        print(
            f"{n:,} × {n_columns} {about['dtype']}, {about['n_classes']} classes; "
            f"the purity of a tree with one level is {about['floor']:.3f}.\n"
        )
    print(
        "| system | dendrogram purity | adjusted Rand | tree value / batch | instability | seconds | one more point | "
        "peak, MB | peak / data in float32 | order 0 |"
    )
    print("|" + " --- |" * 10)
    reference = batch(table)
    for name, measured in table.items():
        print(row(name, measured, reference))
    if any(measured.failure is None and measured.was_disturbed for measured in table.values()):
        print("\n\\* The processor was busy with something else for a tenth of the time or more.")
    sys.stdout.flush()


class Verdict(NamedTuple):
    """An aim, what was measured, and whether that reaches it; None where it was not measured."""

    aim: str
    measured: str
    is_reached: bool | None
    is_partial: bool = False  # whether the aim is of more data than were measured


def ours(results: dict[str, Table], data: str) -> Measured | None:
    return results.get(data, {}).get("evertree")


def purity_ratio(table: Table) -> float | None:
    """Our purity by that of batch clustering: 0 where we have no tree and batch has one."""
    reference, mine = batch(table), table.get("evertree")
    if reference is None or mine is None:
        return None
    return 0.0 if mine.failure is not None else mine.mean("purity") / reference.mean("purity")


def aims_beside_batch(results: dict[str, Table]) -> Iterator[Verdict]:
    ratios = {data: purity_ratio(results[data]) for data in WITH_BATCH if data in results}
    found = {data: ratio for data, ratio in ratios.items() if ratio is not None}
    mean, least = "mean of purity / batch purity", "the least of them"
    if not found:
        yield Verdict(f"{mean} at least {MEAN_PURITY}", "no data set", None)
        yield Verdict(f"{least} at least {LEAST_PURITY}", "no data set", None)
    else:
        average, worst = float(np.mean(list(found.values()))), min(found, key=found.__getitem__)
        on, is_partial = f"{len(found)} of {len(WITH_BATCH)} data sets", len(found) < len(WITH_BATCH)
        yield Verdict(f"{mean} at least {MEAN_PURITY}", f"{average:.4f}, {on}", average >= MEAN_PURITY, is_partial)
        is_reached = found[worst] >= LEAST_PURITY
        yield Verdict(f"{least} at least {LEAST_PURITY}", f"{found[worst]:.4f} ({worst}), {on}", is_reached, is_partial)
    for data, aim in TIMES_FASTER.items():
        yield faster(data, aim, results.get(data, {}))


def faster(data: str, aim: int, table: Table) -> Verdict:
    text = f"{data}: {aim} times faster than batch, with a purity of at least {LEAST_PURITY} of its"
    reference, mine, ratio = batch(table), table.get("evertree"), purity_ratio(table)
    if reference is None or mine is None or ratio is None:
        return Verdict(text, "not both measured", None)
    if mine.failure is not None:
        return Verdict(text, mine.failure, False)
    times = reference.seconds / mine.seconds
    beside = ", ".join(
        f"{table[name].seconds / mine.seconds:.1f} times {SYSTEMS[name].title}"
        for name in (*BATCH, "ward-product")
        if name in table and table[name].failure is None
    )
    return Verdict(text, f"{times:.1f} ({beside}); purity ratio {ratio:.3f}", times >= aim and ratio >= LEAST_PURITY)


def aims_beside_summaries(results: dict[str, Table]) -> Iterator[Verdict]:
    for data in ABOVE:
        for peer in ("birch", "betula"):
            text = f"{data}: purity above that of {SYSTEMS[peer].title}"
            mine, theirs = ours(results, data), results.get(data, {}).get(peer)
            if mine is None or theirs is None or theirs.failure is not None:
                yield Verdict(text, "not both measured", None)
            elif mine.failure is not None:
                yield Verdict(text, mine.failure, False)
            else:
                a, b = mine.mean("purity"), theirs.mean("purity")
                yield Verdict(text, f"{a:.4f} beside {b:.4f}", a > b)


def aims_of_size(results: dict[str, Table]) -> Iterator[Verdict]:
    for data in LARGE:
        text = f"{data}: under {MOST_SECONDS} s, memory below {MOST_MEMORY} times the data as float32"
        mine = ours(results, data)
        if mine is None or mine.failure is not None:
            yield Verdict(text, "not measured" if mine is None else str(mine.failure), None if mine is None else False)
        else:
            is_reached = mine.seconds < MOST_SECONDS and mine.memory < MOST_MEMORY
            yield Verdict(text, f"{mine.seconds:.1f} s, {mine.memory:.2f} times", is_reached)
    small, large = (ours(results, datasets.gaussians(n)) for n in GAUSSIANS)
    text = f"{GAUSSIANS[1]:,} × 16 points of 100 Gaussians: purity {GAUSSIAN_PURITY} in under {MOST_SECONDS} s"
    growth = f"growth from {GAUSSIANS[0]:,} points at most {MOST_GROWTH} times"
    if large is None or large.failure is not None:
        yield Verdict(text, "not measured" if large is None else str(large.failure), None if large is None else False)
        yield Verdict(growth, "not both measured", None)
        return
    seconds = large.mean("to_purity")
    to_the_end = f"{large.mean('purity'):.4f} in {large.seconds:.1f} s to the end"
    yield Verdict(text, f"{seconds:.1f} s; {to_the_end}", seconds < MOST_SECONDS)
    if small is None or small.failure is not None:
        yield Verdict(growth, "not both measured", None)
    else:
        times, at_end = seconds / small.mean("to_purity"), large.seconds / small.seconds
        yield Verdict(growth, f"{times:.1f} times; to the end {at_end:.1f} times", times <= MOST_GROWTH)


def print_aims(results: dict[str, Table]) -> None:
    headline("Aims")
    print("| aim | measured | |\n| --- | --- | --- |")
    for group in (aims_beside_batch, aims_beside_summaries, aims_of_size):
        for aim, measured, is_reached, is_partial in group(results):
            verdict = "–" if is_reached is None else "reached" if is_reached else "**missed**"
            print(f"| {aim} | {measured} | {verdict}{' on these' if is_partial else ''} |")


def version(package: str) -> str:
    try:
        return f"{package} {importlib.metadata.version(package)}"
    except importlib.metadata.PackageNotFoundError:
        return f"{package} is not installed"


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="*", choices=datasets.FILES, help="the data sets; all by default")
    parser.add_argument("--gaussians", nargs="*", type=int, metavar="N", help="mixtures; 10⁵ and 10⁶ by default")
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS), help="all by default")
    parser.add_argument("--quick", action="store_true", help=f"only {', '.join(QUICK)}")
    parser.add_argument("--orders", type=int, default=3, help="insertion orders, of which the mean is taken")
    parser.add_argument("--limit", type=float, default=900, help="seconds for one measurement in all")
    datasets.add_folder(parser)
    options = parser.parse_args()
    chosen = options.quick or options.data is not None or options.gaussians is not None
    if options.data is None:
        options.data = QUICK if options.quick else () if options.gaussians is not None else tuple(datasets.FILES)
    if options.gaussians is None:
        options.gaussians = () if chosen else GAUSSIANS
    options.folder = options.folder.resolve()  # the children have a working directory of their own
    return options


def main() -> None:
    options = parsed()
    print(f"evertree {et.__version__}, {'; '.join(version(package) for package in PACKAGES)}")
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.2f}; one thread, {options.orders} insertion orders")
    results: dict[str, Table] = {}
    for data in options.data:
        reason = datasets.missing(data, options.folder)
        if reason is not None:
            print(f"\n{data} is skipped: {reason}", flush=True)
            continue
        results[data] = measure(data, options.systems, options)
        print_table(data, results[data])
    for n in options.gaussians:
        data = datasets.gaussians(n)
        results[data] = measure(data, [name for name in options.systems if name == "evertree"], options)
        print_table(data, results[data])
    print_aims(results)
    print(f"\nload at the end {os.getloadavg()[0]:.2f}")


if __name__ == "__main__":
    main()
