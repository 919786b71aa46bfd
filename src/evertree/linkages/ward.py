"""Ward's linkage: the growth of the sum of squared errors when two clusters are merged (`eq.WardLinkage`)."""

from __future__ import annotations

import numpy as np

from evertree.linkages import Linkage, Tag


class Ward(Tag):
    """The tag of Ward's linkage."""


LINKAGE = Linkage(
    "ward",
    Ward,
    reducible=True,
    strongly_reducible=False,
    nni_reducible=True,
    statistics="euclidean",
)


def factor(linkage, size_a, size_b):
    """The harmonic sum |A| |B| / (|A| + |B|), in an order that does not overflow.

    In a kernel, / would raise an error for zero; loops that may do so are not vectorised.
    """
    return np.divide(size_a, size_a + size_b) * size_b


def height_of(linkage, value):
    """SciPy's height."""
    return np.sqrt(2.0 * value)


def coefficients(linkage, size_a, size_b, size_c):
    """`tab.Recurrence`."""
    total = size_a + size_b + size_c
    return (size_a + size_c) / total, (size_b + size_c) / total, -size_c / total, 0.0
