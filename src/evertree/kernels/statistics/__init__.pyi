from . import (
    fill,
    means,
    merge,
    search,
    treelets,
)

__all__ = [
    "fill",
    "means",
    "merge",
    "search",
    "treelets",
]
