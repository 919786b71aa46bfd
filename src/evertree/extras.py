"""Packages that only some of evertree needs: imported when used, and where one is missing, a word on how to get it."""

from __future__ import annotations

import importlib
from typing import Any

from evertree.errors import MissingExtraError


def require(module: str, what: str, extra: str) -> Any:
    """Import a module that `what` needs and the extra `extra` brings."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or module.partition(".")[0] != error.name.partition(".")[0]:
            raise
        raise MissingExtraError(f"{what} needs {error.name}: pip install 'evertree[{extra}]'") from None
