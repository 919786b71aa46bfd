from . import (
    fill,
    means,
    merge,
    one_point,
    reciprocal,
    screening,
    search,
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
    "treelets",
]
