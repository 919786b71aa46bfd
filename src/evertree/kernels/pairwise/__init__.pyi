from . import (
    check,
    dissimilarities,
    pairs,
    parallel,
    path,
    point,
    radius,
    search,
    values,
)

__all__ = [
    "check",
    "dissimilarities",
    "pairs",
    "parallel",
    "path",
    "point",
    "radius",
    "search",
    "values",
]
