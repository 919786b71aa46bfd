"""Kernels: loops over the columns of a tree, in Python, that become machine code. Modules are imported on first use."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
