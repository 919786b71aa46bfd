"""What linkages there are (`eq.Linkage`), and their properties."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

# The tags by which kernels know a linkage. Values that differ by less than the tolerance, as a share of the larger, are
# equal.


class Single(NamedTuple):
    """The smallest dissimilarity between the clusters (`eq.SingleLinkage`)."""

    tolerance: float


class Complete(NamedTuple):
    """The largest dissimilarity between the clusters (`eq.CompleteLinkage`)."""

    tolerance: float


class Average(NamedTuple):
    """The mean dissimilarity between the clusters (`eq.AverageLinkage`)."""

    tolerance: float


class Minimax(NamedTuple):
    """The smallest radius around one of its points that covers the union (`eq.MinimaxLinkage`)."""

    tolerance: float


class Ward(NamedTuple):
    """The growth of the sum of squared errors when the clusters are merged (`eq.WardLinkage`)."""

    tolerance: float


Tag = Single | Complete | Average | Minimax | Ward


@dataclass(frozen=True)
class Linkage:
    """A row of the table of linkages."""

    name: str
    tag: type[Tag]
    reducible: bool  # `def.ReducibleLinkage`
    strongly_reducible: bool  # `eq.StrongReducibility`
    nni_reducible: bool  # `def.Contraction`


#: The linkages and their properties.
LINKAGES = {
    linkage.name: linkage
    for linkage in (
        Linkage("single", Single, reducible=True, strongly_reducible=True, nni_reducible=True),
        Linkage("complete", Complete, reducible=True, strongly_reducible=True, nni_reducible=True),
        Linkage("average", Average, reducible=True, strongly_reducible=True, nni_reducible=False),
        Linkage("minimax", Minimax, reducible=True, strongly_reducible=True, nni_reducible=True),
        Linkage("ward", Ward, reducible=True, strongly_reducible=False, nni_reducible=True),
    )
}

#: Tags of the linkages that are strongly reducible, and of the others: where kernels differ by that alone.
STRONGLY_REDUCIBLE = tuple(linkage.tag for linkage in LINKAGES.values() if linkage.strongly_reducible)
NOT_STRONGLY_REDUCIBLE = tuple(linkage.tag for linkage in LINKAGES.values() if not linkage.strongly_reducible)
