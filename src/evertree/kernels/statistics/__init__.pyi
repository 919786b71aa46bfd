from . import (
    fill,
    means,
    merge,
    one_point,
    reciprocal,
    search,
    treelets,
)

__all__ = [
    "fill",
    "means",
    "merge",
    "one_point",
    "reciprocal",
    "search",
    "treelets",
]
