"""The linkages (`eq.Linkage`), one file each: to add a linkage, add a file to this folder.

The file `ward.py`, for example, has `LINKAGE`, the properties of Ward's linkage for Python, and functions for kernels.
These implement the kernel steps of the same name that are marked `linkage_must_define` or `linkage_may_define`; see
`evertree.kernels.dispatch`. CONTRIBUTING.md says what a new linkage needs.

Importing this package imports none of the files, and no compiler.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple


class Tag(NamedTuple):
    """A linkage as kernels see it. Its class, a subclass of this one, identifies the linkage."""

    #: Values that differ by less than this, relative to the larger, are equal.
    tolerance: float


@dataclass(frozen=True)
class Linkage:
    """The properties of a linkage."""

    name: str
    tag: type[Tag]

    #: `def.ReducibleLinkage`
    reducible: bool

    #: `eq.StrongReducibility`
    strongly_reducible: bool

    #: `def.Contraction`
    nni_reducible: bool

    #: The metric on which it follows from the sizes, means and variances of two clusters (`tab.Complexity`), by a
    #: `factor` and an `offset`: Euclidean distances between coordinates, without which it is undefined; their squares;
    #: or none. On all other metrics it is computed from pairs of points.
    statistics: Literal["euclidean", "squared"] | None

    #: Whether it is the radius of the union around one of its points, the center. Otherwise it has a recurrence.
    has_centers: bool = False

    #: Whether `compare` uses bounds on dissimilarities from the distances to pivots.
    bounds_help: bool = False

    #: Whether its merges are the edges of a minimum spanning tree.
    is_spanning: bool = False

    @property
    def from_pairs(self) -> bool:
        """Whether it can be computed from dissimilarities, and has their units."""
        return self.statistics != "euclidean"

    @property
    def definition(self) -> Callable[..., Any]:
        """Its value between two slices of a matrix of dissimilarities, with weights (`eq.Linkage`), if `from_pairs`."""
        found: Callable[..., Any] = sys.modules[self.tag.__module__].definition
        return found


class _Files(Mapping[str, Linkage]):
    """The files of this folder, each imported on first use."""

    def __init__(self) -> None:
        self._names = tuple(module.name for module in pkgutil.iter_modules(__path__) if module.name[0] != "_")

    def __getitem__(self, name: str) -> Linkage:
        if name not in self._names:
            raise KeyError(name)
        linkage: Linkage = importlib.import_module(f"{__name__}.{name}").LINKAGE
        return linkage

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._names


#: The linkages by name.
LINKAGES: Mapping[str, Linkage] = _Files()
