"""Progress bars for long calls: ``progress=True`` in a terminal or a notebook."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from evertree.errors import ParameterError
from evertree.extras import require
from evertree.input.points import Progress
from evertree.tree.refine import Report


@contextmanager
def of_refinement(progress: Any) -> Iterator[Callable[[Report], object] | None]:
    """The callback of a refinement: the user's own, none, or, for True, one that moves a bar."""
    if not _is_true(progress):
        yield _callback(progress)
        return
    with _tqdm()(total=100, desc="Refining", bar_format="{l_bar}{bar}| {elapsed}{postfix}") as bar:

        def show(report: Report) -> None:
            bar.set_postfix_str(f"{report.moves:,} moves, {report.grafts:,} grafts", refresh=False)
            if report.quality is not None:
                bar.update(100 * report.quality - bar.n)  # an estimate, which may go back

        yield show


@contextmanager
def of_pairs(progress: Any) -> Iterator[Progress | None]:
    """The callback of a comparison of pairs: the user's own, none, or, for True, one that moves a bar."""
    if not _is_true(progress):
        yield _callback(progress)
        return
    tqdm = _tqdm()
    bars: list[Any] = []

    def show(done: int, total: int) -> None:
        if not bars:  # where nothing is compared, there is none
            bars.append(tqdm(total=total, desc="Comparing", unit=" pairs", unit_scale=True))
        bars[0].update(done - bars[0].n)

    try:
        yield show
    finally:
        for bar in bars:
            bar.close()


def _is_true(progress: Any) -> bool:
    return isinstance(progress, (bool, np.bool_)) and bool(progress)


def _tqdm() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # in a notebook without ipywidgets, tqdm falls back to text with a warning
        return require("tqdm.auto", "progress=True", "progress").tqdm


def _callback(progress: Any) -> Any:
    if progress is None or isinstance(progress, (bool, np.bool_)):
        return None
    if not callable(progress):
        raise ParameterError(f"progress must be True, False, None or callable; it is {progress!r}")
    return progress
