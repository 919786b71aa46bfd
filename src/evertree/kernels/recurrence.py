"""The recurrence of Lance and Williams (`eq.Recurrence`): the linkage of a union from the linkages of its parts."""

from __future__ import annotations

from evertree.kernels.compile import choose, inline
from evertree.linkages import Average, Complete, Single, Ward


def _single(linkage, size_a, size_b, size_c):
    return 0.5, 0.5, 0.0, -0.5


def _complete(linkage, size_a, size_b, size_c):
    return 0.5, 0.5, 0.0, 0.5


def _average(linkage, size_a, size_b, size_c):
    both = size_a + size_b
    return size_a / both, size_b / both, 0.0, 0.0


def _ward(linkage, size_a, size_b, size_c):
    total = size_a + size_b + size_c
    return (size_a + size_c) / total, (size_b + size_c) / total, -size_c / total, 0.0


#: `tab.Recurrence`: α of A, α of B, β and γ, for clusters of the given sizes. Minimax linkage has no recurrence.
COEFFICIENTS = {Single: _single, Complete: _complete, Average: _average, Ward: _ward}


#: The row of `tab.Recurrence` for the linkage at hand.
coefficients = choose("linkage", COEFFICIENTS)


@inline
def linkage_of_union(linkage, z_ac, z_bc, z_ab, size_a, size_b, size_c):
    """ζ(A ∪ B, C) from ζ(A, C), ζ(B, C) and ζ(A, B) (`eq.Recurrence`). O(1).

    With α = 1/2 and γ = ∓1/2 the formula is the smaller or the larger of two numbers, and is taken so: half of a sum
    and half of a difference would lose what the one has in smaller digits than the other.
    """
    alpha_a, alpha_b, beta, gamma = coefficients(linkage, size_a, size_b, size_c)
    if gamma < 0.0:
        return min(z_ac, z_bc)
    if gamma > 0.0:
        return max(z_ac, z_bc)
    return alpha_a * z_ac + alpha_b * z_bc + beta * z_ab
