"""`Incoming`: validated points, ready to be inserted into a tree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Points that are placed or scored together, without being inserted: few, as they need rows in the tree.
GUESTS_AT_ONCE = 64


@dataclass(frozen=True)
class Incoming:
    """Validated points, ready to be inserted into a tree.

    Attributes
    ----------
    points : array, list or None
        As given: vectors or objects; None if only their dissimilarities are known.
    coordinates : array or None
        Of vectors, for the scheme of the tree.
    dissimilarities : array of shape (k, n_others) or None
        If they are stored: between the k points and the others, which the caller of `fill` names.
    n_evaluated : int
        Number of calls of a user's function for them.
    """

    points: Any = None
    coordinates: NDArray[Any] | None = None
    dissimilarities: NDArray[Any] | None = None
    n_evaluated: int = 0

    @property
    def stored(self) -> NDArray[Any]:
        """What a tree stores of the points, in the dtype of the tree."""
        kept = self.dissimilarities if self.coordinates is None else self.coordinates
        assert kept is not None
        return kept

    @property
    def n_columns(self) -> int | None:
        """Number of columns of vectors; None for other points."""
        return self.points.shape[1] if isinstance(self.points, np.ndarray) else None

    def __len__(self) -> int:
        return len(self.stored if self.points is None else self.points)

    def parts(self) -> Iterator[Incoming]:
        """The points in parts of `GUESTS_AT_ONCE`. Stored dissimilarities among them have no meaning."""
        count, n_others = len(self), 0 if self.dissimilarities is None else self.dissimilarities.shape[1] - len(self)
        for start in range(0, count, GUESTS_AT_ONCE):
            some = slice(start, start + GUESTS_AT_ONCE)
            columns = np.r_[0:n_others, n_others + np.arange(count)[some]]
            yield Incoming(
                None if self.points is None else self.points[some],
                None if self.coordinates is None else self.coordinates[some],
                None if self.dissimilarities is None else self.dissimilarities[some][:, columns],
            )
