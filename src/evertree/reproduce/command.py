"""``evertree reproduce``: run what is missing, then write tables, figures and the page."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

import evertree
from evertree.errors import ParameterError
from evertree.extras import require
from evertree.reproduce import figures, mnist, page, runner, section5
from evertree.reproduce.questions import (
    growth,
    insertion_orders,
    metric_learning,
    orders,
    over_time,
    random_single,
)
from evertree.reproduce.records import Records, check_settings, write_table, write_text
from evertree.reproduce.study import Settings, Study

#: What the paper left open, in the order of the page.
QUESTIONS = {
    "How does the number of moves grow?": growth,
    "How much does the order of moves matter?": orders,
    "How much does the order of insertion matter?": insertion_orders,
    "How good is the tree after how much time?": over_time,
    "What does a randomized single linkage cost?": random_single,
    "Can the tree follow a metric that is being learned?": metric_learning,
}


@dataclass(frozen=True)
class Options:
    """What the user asked for."""

    output: Path
    repetitions: int = 1000
    extended: bool = False
    seed: int = 0
    n_jobs: int | None = None
    mnist: Path | None = None


def run(console: Console, options: Options) -> None:
    """Run the experiments that have no record in the output folder yet, and write everything anew."""
    _require_extras(options)
    settings = Settings(options.seed, options.mnist)
    digits = mnist.load(options.mnist)
    _make_folder(options.output)
    progress_folder = options.output / "progress"
    check_settings(
        progress_folder,
        {"seed": options.seed, "MNIST": digits.fingerprint, "version of evertree": evertree.__version__},
    )
    paper = section5.study(options.repetitions)
    questions = {heading: module.study() for heading, module in QUESTIONS.items()} if options.extended else {}
    records = {study.name: Records(progress_folder, study) for study in (paper, *questions.values())}
    n_jobs = options.n_jobs or runner.n_cores()
    _run_all(console, [paper, *questions.values()], settings, records, n_jobs)
    for study in (paper, *questions.values()):
        write_table(options.output / f"{study.name}.csv", study, records[study.name])
    results = section5.Results.of(paper, records[paper.name])
    for figure in figures.FIGURES:
        figures.write(figure, results, options.output)
    answers = [
        (heading, QUESTIONS[heading].answer(records[study.name], options.output))
        for heading, study in questions.items()
    ]
    kind = "given by --mnist" if options.mnist is not None else "that come with evertree, for all repetitions"
    source = f"the {len(digits):,} images {kind}"
    report = options.output / "report.md"
    write_text(report, page.write(results, _command_line(options), source, answers))
    console.print(f"The page: {report}", highlight=False, markup=False, soft_wrap=True)


def _require_extras(options: Options) -> None:
    for module in ("matplotlib", "sklearn") if options.extended else ("matplotlib",):
        require(module, "reproduce", "reproduce")


def _make_folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise ParameterError(f"--output must be a folder; {path} is a file, or below one") from None


def _run_all(
    console: Console, studies: list[Study], settings: Settings, records: dict[str, Records], n_jobs: int
) -> None:
    columns = (
        TextColumn("{task.description:32}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as progress:
        for study in studies:
            if not console.is_terminal:  # where a bar shows only when it has ended
                console.print(f"{study.title}: {len(study.cases):,} cases", highlight=False)
            runner.run(study, settings, records[study.name], n_jobs, progress)


def _command_line(options: Options) -> str:
    words = ["evertree", "reproduce", "--repetitions", str(options.repetitions), "--seed", str(options.seed)]
    if options.mnist is not None:
        words += ["--mnist", str(options.mnist)]
    if options.extended:
        words.append("--extended")
    return shlex.join(words)
