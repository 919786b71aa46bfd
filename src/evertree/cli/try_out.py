"""``evertree demo`` and ``evertree warmup``: first steps."""

from __future__ import annotations

import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from evertree.cli import options
from evertree.cli.examples import examples
from evertree.cli.output import Output, plural
from evertree.cli.progress_bar import progress_bar


class DtypeName(StrEnum):
    """The types of points."""

    FLOAT64 = "float64"
    FLOAT32 = "float32"


@examples(
    ("A table and a picture, in a minute", "evertree demo"),
    ("Other edits, elsewhere", "evertree demo --seed 1 --output digits.svg"),
)
def demo(
    output: Annotated[Path, typer.Option(help="Where to write the picture.")] = Path("evertree-demo.png"),
    seed: Annotated[int, typer.Option(min=0, help="For the order of the points and the choice of edits.")] = 0,
) -> None:
    """Stream handwritten digits into a live tree, edit it, and set it beside batch clustering."""
    from rich.console import Console

    from evertree.cli import demonstration

    demonstration.run(Console(), output, seed)


@examples(
    ("For ward, the default linkage", "evertree warmup"),
    ("For other linkages, on points of one type", "evertree warmup --linkage single --dtype float64"),
    ("For all linkages, which takes some minutes", "evertree warmup --all"),
)
def warmup(
    linkage: Annotated[
        list[options.LinkageName] | None,
        typer.Option(metavar="NAME", help="Which linkages; ward by default. Repeatable."),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All linkages.")] = False,
    dtype: Annotated[
        list[DtypeName] | None,
        typer.Option(metavar="NAME", help="float64 or float32; both by default. Repeatable."),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Compile the kernels ahead, so that nobody has to wait.

    Compiled kernels are kept on disk, and last until evertree, Numba or the processor changes. The environment variable
    NUMBA_CACHE_DIR says where, if not beside the package.
    """
    from evertree.cli import precompile

    wanted = list(options.LinkageName) if everything else linkage or [options.LinkageName("ward")]
    cases = precompile.warmup_cases(wanted, dtype or list(DtypeName))
    out = Output(as_json)
    began = time.perf_counter()
    counts = []
    with progress_bar("Compiling", len(cases)) as show:
        for n_done, case in enumerate(cases):
            show(n_done, str(case))
            counts.append(precompile.compile_case(case))
    seconds = time.perf_counter() - began
    folder = precompile.cache_folder()
    for case, count in zip(cases, counts, strict=True):
        done = f"{plural(count, 'function')} compiled" if count else "nothing had to be done"
        out.text(f"{case}: {done}")
    out.text(f"{seconds:.1f} s; {precompile.cache_text(folder)}")
    compiled = {str(case): count for case, count in zip(cases, counts, strict=True)}
    out.json({"compiled": compiled, "seconds": seconds, "cache": folder})
