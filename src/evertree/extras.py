"""Optional packages: imported when used, with an error that says how to install a missing one."""

from __future__ import annotations

import importlib
from typing import Any

from evertree.errors import MissingExtraError


def require(module: str, what: str, extra: str) -> Any:
    """Import a module that `what` needs and the extra `extra` installs."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or module.partition(".")[0] != error.name.partition(".")[0]:
            raise
        raise MissingExtraError(f"{what} needs {error.name}: pip install 'evertree[{extra}]'") from None
