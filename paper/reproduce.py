"""Repeat the experiments of the paper (section 5): ``python -m paper.reproduce``, from the root of a clone.

A report sets what the paper says beside what is found. Stop it with Ctrl-C at any time: the same command goes on from
there. More --repetitions add to what has been run.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

import evertree
from evertree.errors import EvertreeError, ParameterError
from evertree.extras import require
from paper import figures, mnist, report, runner, section5
from paper.output import write_text
from paper.questions import QUESTIONS
from paper.study import Records, Settings, Study, check_settings, write_table

INTERRUPTED = 130


def run(console: Console, options: argparse.Namespace) -> None:
    """Run the experiments that have no record in the output folder yet, and write tables, figures and the report."""
    for module in ("matplotlib", "sklearn") if options.extended else ("matplotlib",):
        require(module, "python -m paper.reproduce", "demo")
    digits = mnist.load(options.mnist)
    _make_folder(options.output)
    progress_folder = options.output / "progress"
    check_settings(
        progress_folder,
        {"seed": options.seed, "MNIST": digits.fingerprint, "version of evertree": evertree.__version__},
    )
    paper = section5.study(options.repetitions)
    questions = {heading: module.study() for heading, module in QUESTIONS.items()} if options.extended else {}
    studies = [paper, *questions.values()]
    records = {study.name: Records(progress_folder, study) for study in studies}
    _run_all(console, studies, Settings(options.seed, options.mnist), records, options.jobs or runner.n_cores())
    for study in studies:
        write_table(options.output / f"{study.name}.csv", study, records[study.name])
    results = section5.Results.of(paper, records[paper.name])
    for figure in figures.FIGURES:
        figures.write(figure, results, options.output)
    answers = [
        (heading, QUESTIONS[heading].answer(records[study.name], options.output))
        for heading, study in questions.items()
    ]
    kind = "given by --mnist" if options.mnist is not None else "in paper/mnist_2000.npz, for all repetitions"
    path = options.output / "report.md"
    source = f"the {len(digits):,} images {kind}"
    write_text(path, report.write(results, _command_line(options), source, answers))
    console.print(f"The report: {path}", highlight=False, markup=False, soft_wrap=True)


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


def _command_line(options: argparse.Namespace) -> str:
    """What gives the same numbers."""
    words = ["python", "-m", "paper.reproduce", "--repetitions", str(options.repetitions), "--seed", str(options.seed)]
    if options.mnist is not None:
        words += ["--mnist", str(options.mnist)]
    if options.extended:
        words.append("--extended")
    return shlex.join(words)


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The options of a command line."""
    parser = argparse.ArgumentParser(prog="python -m paper.reproduce", description=__doc__, allow_abbrev=False)
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("reproduction"),
        help="the folder for figures, tables and the report; by default %(default)s",
    )
    parser.add_argument(
        "--repetitions",
        type=_integer_from(1),
        default=1000,
        help="pairings of data and tree for each size; by default %(default)s",
    )
    parser.add_argument("--extended", action="store_true", help="answer what the paper left open, too")
    parser.add_argument("--seed", type=_integer_from(0), default=0, help="the same seed gives the same numbers")
    parser.add_argument("--jobs", type=_integer_from(1), help="processes; by default one for each core")
    parser.add_argument(
        "--mnist",
        type=Path,
        default=os.environ.get("EVERTREE_MNIST") or None,
        help="all of MNIST: an .npz file, or the folder of its four original files; by default what the environment "
        "variable EVERTREE_MNIST names, or a sample of 2,000 images",
    )
    return parser.parse_args(arguments)


def _integer_from(least: int) -> Callable[[str], int]:
    def parse_integer(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"must be an integer of at least {least}; it is {text!r}")
        return int(text)

    return parse_integer


def main() -> None:
    """Run the command; errors that the user can mend are told in a line."""
    try:
        run(Console(), parse())
    except KeyboardInterrupt:
        print("interrupted; the same command goes on from here", file=sys.stderr)
        sys.exit(INTERRUPTED)
    except (EvertreeError, OSError) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
