"""Trees over more points than one machine holds, on Dask.

Words that all modules use: the input comes in *chunks*; the tree is in *parts*, which Dask would call partitions, each
some *subtrees* that one task works on; the *top tree* above all subtrees is on the driver. A *stub* is a leaf that
stands for a subtree of another part. The *summary* of a part is its upper nodes above stubs, and the *upper tree* is
the top tree with all summaries. What works on parts needs no Dask, and can be imported without it.
"""

from typing import Any

import lazy_loader

from evertree.extras import require

_load_name, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    if name in __all__:
        for module in ("distributed", "dask.array", "dask.dataframe", "pyarrow"):
            require(module, f"evertree.distributed.{name}", "distributed")
    return _load_name(name)
