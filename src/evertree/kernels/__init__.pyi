from . import ordered, pairwise, shared, statistics

__all__ = ["ordered", "pairwise", "shared", "statistics"]
