"""The linkages (`eq.Linkage`), one file each: a file more in this folder is a linkage more.

The file `ward.py` has `LINKAGE`, what Python knows of Ward's linkage, and functions, what kernels know of it. These
stand for the steps of kernels that have the same name and are marked `linkage_must_define` or `linkage_may_define`
there; see `evertree.kernels.dispatch`. CONTRIBUTING.md says what a new one needs.

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
    """What kernels are given of a linkage. Its class, which is a subclass of this, says which linkage it is."""

    #: Values that differ by less than this, as a share of the larger, are equal.
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

    #: On which metrics it follows from the sizes, means and variances of two clusters (`tab.Complexity`), by a `factor`
    #: and an `offset`: on Euclidean distances between coordinates, without which it has no meaning; on their squares;
    #: or on none. It is computed from pairs of points on all metrics that are left.
    statistics: Literal["euclidean", "squared"] | None

    #: Whether it is the radius of the union around one of its points, the center. Otherwise it has a recurrence.
    has_centers: bool = False

    #: Whether `compare` uses bounds on dissimilarities, by the distances to some pivots.
    bounds_help: bool = False

    #: Whether SciPy and fastcluster have it, by this name.
    in_scipy: bool = False

    @property
    def from_pairs(self) -> bool:
        """Whether it is computed from dissimilarities, where means do not give it, and has their units."""
        return self.statistics != "euclidean"

    @property
    def definition(self) -> Callable[..., Any]:
        """Its value on a matrix of dissimilarities and weights, between two slices (`eq.Linkage`), if `from_pairs`."""
        found: Callable[..., Any] = sys.modules[self.tag.__module__].definition
        return found


class _Files(Mapping[str, Linkage]):
    """The files of this folder. One is imported when it is asked for."""

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
