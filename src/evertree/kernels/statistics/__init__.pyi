from . import (
    fill,
    means,
    merge,
    one_point,
    reciprocal,
    screening,
    search,
    sketches,
    treelets,
)

__all__ = [
    "fill",
    "means",
    "merge",
    "one_point",
    "reciprocal",
    "screening",
    "search",
    "sketches",
    "treelets",
]
