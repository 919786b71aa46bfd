"""Kernels that keep a tree the batch tree through edits. A module is imported when its name is first used."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
