"""`Aim`: what a tree is refined to, and how."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal

#: How many MiB a matrix of all pairs may take by default.
WORKING_MEMORY = 2048.0

#: A search width that depends on the tree: exhaustive where that is cheap, and otherwise the number after it.
AUTO: Final = "auto"
AUTO_WIDTH = 4


Width = int | None | Literal["auto"]


@dataclass(frozen=True)
class Aim:
    """What a tree is refined to, and how widely blocking pairs are searched for.

    Attributes
    ----------
    goal : str
        ``"homogeneous"`` or ``"stable"``.
    search_width : int, None or "auto"
        Number of nodes that a descent keeps on each level; None for exhaustive searches; `AUTO` for either.
    n_threads : int or None
        Number of threads; None for one. The result does not depend on it.
    working_memory : float
        How many MiB a matrix of all pairs may take.
    """

    goal: str
    search_width: Width
    n_threads: int | None = None
    working_memory: float = WORKING_MEMORY

    @cached_property
    def is_stable(self) -> bool:
        """Whether the goal is a stable tree."""
        return self.goal == "stable"
