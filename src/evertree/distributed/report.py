"""`DistributedReport`: what it took."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DistributedReport:
    """What the last edit of a `DistributedHierarchy` did; the first is that of `cluster`.

    Attributes
    ----------
    rounds : int
        Rounds of refinement across the borders of parts.
    moves : int
        Nearest neighbour interchanges made.
    grafts : int
        Subtrees cut off and attached elsewhere, each to resolve a blocking pair.
    parts : int
        How many parts the tree lies in.
    bytes_moved : int
        What workers sent, to each other and to the driver, as far as those know that are still there.
    seconds : float
        Time taken.
    stopped_by : str or None
        ``"stable"`` if the last round found nothing to change: then the tree is monotone, for average linkage
        homogeneous, and searches of the given width find no blocking pair. ``"rounds"`` if it was the last that is
        allowed. None for a tree that was loaded.

    Examples
    --------
    >>> from evertree.distributed import DistributedReport
    >>> DistributedReport(rounds=3, moves=120, grafts=40, parts=2, bytes_moved=10_000, seconds=0.5, stopped_by="stable")
    DistributedReport(rounds=3, moves=120, grafts=40, parts=2, bytes_moved=10000, seconds=0.5, stopped_by='stable')
    """

    rounds: int
    moves: int
    grafts: int
    parts: int
    bytes_moved: int
    seconds: float
    stopped_by: str | None
