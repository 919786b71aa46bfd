"""The message that kernels are being compiled, so that users know what takes so long."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable
from typing import Any

from evertree.kernels.columns import MeanTree, PairTree

#: Approximate seconds to compile the kernels of a linkage, by the kind of its tree.
_SECONDS = {MeanTree: 15, PairTree: 30}

_logger = logging.getLogger("evertree")
_has_told = threading.Event()


def tell_when_compiled(compiled: Any) -> None:
    """Let a kernel announce its compilation: once per process, and not if it is loaded from disk."""
    cache = compiled._cache
    load = cache.load_overload

    def load_or_tell(signature: Iterable[Any], *context: Any) -> Any:
        found = load(signature, *context)
        if found is None and not _has_told.is_set():
            kind = next(argument.instance_class for argument in signature if _is_tree(argument))
            _has_told.set()
            _logger.warning(_text(_SECONDS[kind], getattr(cache, "cache_path", None)))
        return found

    cache.load_overload = load_or_tell


def _is_tree(argument: Any) -> bool:
    return getattr(argument, "instance_class", None) in _SECONDS


def _text(seconds: int, place: str | None) -> str:
    if place is None:
        return (
            f"evertree compiles its kernels, about {seconds} s in every process, as there is nowhere to keep them: "
            "set NUMBA_CACHE_DIR to a folder that can be written to"
        )
    return f"evertree compiles its kernels, about {seconds} s, and once only: they are kept in {place}"
