"""`Scored`: how far rows stand apart that have come or changed."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from evertree.hierarchy import Hierarchy
from evertree.partition import Partition
from evertree.sql.flow import keys_at


@dataclass(frozen=True)
class Scored:
    """Scores of some keys.

    The score of any point changes with every edit. To write all of them would take longer than all the rest of a poll,
    so a row has the score of the moment that matters for an alarm: when it comes or changes.

    Attributes
    ----------
    positions : array of int
        Where the keys stand among those of now, ascending.
    scores : list of float
    """

    positions: NDArray[np.intp]
    scores: list[float]

    @classmethod
    def none(cls) -> Self:
        """No scores."""
        return cls(np.empty(0, np.intp), [])

    @classmethod
    def of(cls, h: Hierarchy, now: Partition, keys: Sequence[Hashable], others: NDArray[np.intp], measure: str) -> Self:
        """Score points of `h`, whose clusters are `now`: by key, where they are still there, and by position."""
        live = [key for key in keys if key in h]
        positions = np.unique(np.concatenate([h.positions(live), others]))
        if not positions.size:  # as of an empty hierarchy
            return cls.none()
        return cls(positions, h.score_samples(keys=keys_at(now, positions), measure=measure).tolist())
