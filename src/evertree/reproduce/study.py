"""A study: cases that can be run in any order, each with random numbers of its own, and the rows that they give."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

#: What names a case, such as ("uniform", 50, 17), and what a case gives.
Case = tuple[str | int, ...]
Row = tuple[str | int | float, ...]


@dataclass(frozen=True)
class Settings:
    """What all cases share."""

    seed: int = 0
    mnist: Path | None = None  # None: the sample that comes with the package

    def rng(self, *name: str | int) -> np.random.Generator:
        """Random numbers for what has this name: the same whatever else is run, and in which order."""
        key = [part if isinstance(part, int) else zlib.crc32(part.encode()) for part in name]
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=tuple(key)))


@dataclass(frozen=True)
class Study:
    """An experiment.

    `run` is a function of a module, so that other processes find it. Its rows have the columns that follow those of the
    case. Cases of a study that measures time are run one at a time, or they would slow each other down. Otherwise a
    process is given `at_once` cases; those of one that is stopped are lost.
    """

    name: str
    title: str
    case_columns: tuple[str, ...]
    columns: tuple[str, ...]
    cases: Sequence[Case]
    run: Callable[[Settings, Case], list[Row]]
    is_timed: bool = False
    at_once: int = 1
