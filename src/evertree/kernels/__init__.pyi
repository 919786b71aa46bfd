from . import pairwise, shared, statistics

__all__ = ["pairwise", "shared", "statistics"]
