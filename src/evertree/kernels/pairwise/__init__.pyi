from . import (
    check,
    dissimilarities,
    pairs,
    parallel,
    path,
    point,
    radius,
    search,
    spanning_tree,
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
    "spanning_tree",
    "values",
]
