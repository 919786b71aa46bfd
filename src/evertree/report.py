"""What a refinement did."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Report:
    """What `evertree.Hierarchy.refine` did, or has done so far when a progress callback gets it.

    Attributes
    ----------
    moves : int
        Nearest neighbour interchanges made.
    checks : int
        Nodes at which homogeneity was checked.
    seconds : float
        Time taken.
    pending : int
        Nodes that are still to be checked.
    homogeneous : bool
        Whether the tree is known to be homogeneous: no checks are left.
    stopped_by : str or None
        ``"homogeneous"``, ``"moves"`` or ``"seconds"``; ``"guard"`` if rounding made moves go round in circles, so
        that the tolerance had to be widened; None while the refinement is still going on.

    Examples
    --------
    >>> import numpy as np, evertree as et
    >>> h = et.Hierarchy.random(np.arange(20.0).reshape(-1, 1) ** 2)
    >>> h.refine(moves=3).stopped_by
    'moves'
    >>> h.refine()
    Report(moves=..., checks=..., seconds=..., pending=0, homogeneous=True, stopped_by='homogeneous')
    """

    moves: int
    checks: int
    seconds: float
    pending: int
    homogeneous: bool
    stopped_by: str | None
