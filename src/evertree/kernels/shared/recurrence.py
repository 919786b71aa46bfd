"""The recurrence of Lance and Williams (`eq.Recurrence`): the linkage of a union from the linkages of its parts."""

from __future__ import annotations

from evertree.kernels.compile import inline
from evertree.kernels.dispatch import linkage_must_define


@linkage_must_define
def coefficients(linkage, size_a, size_b, size_c):
    """The row of `tab.Recurrence`: α of A, α of B, β and γ, for clusters of the given sizes.

    Where γ is not 0, it is -1/2 or 1/2, and α is 1/2. For a linkage of pairs, β is 0 and α is the same for every C: so
    the linkage between a cluster and all nodes follows from that to the points in one pass.
    """


@inline
def linkage_of_union(linkage, z_ac, z_bc, z_ab, size_a, size_b, size_c):
    """ζ(A ∪ B, C) from ζ(A, C), ζ(B, C) and ζ(A, B) (`eq.Recurrence`). O(1).

    With α = 1/2 and γ = ∓1/2 the formula is the smaller or the larger of two numbers, and is computed as such: half a
    sum and half a difference would lose the low digits of the smaller number.
    """
    alpha_a, alpha_b, beta, gamma = coefficients(linkage, size_a, size_b, size_c)
    if gamma < 0.0:
        return min(z_ac, z_bc)
    if gamma > 0.0:
        return max(z_ac, z_bc)
    return alpha_a * z_ac + alpha_b * z_bc + beta * z_ab
