from . import (
    check,
    dissimilarities,
    pairs,
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
    "path",
    "point",
    "radius",
    "search",
    "spanning_tree",
    "values",
]
