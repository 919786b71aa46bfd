from . import pairwise, repair, shared, statistics

__all__ = ["pairwise", "repair", "shared", "statistics"]
