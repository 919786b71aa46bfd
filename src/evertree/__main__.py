"""``python -m evertree``, and the ``evertree`` command."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

#: The exit code after Ctrl-C.
_INTERRUPTED = 130


def main() -> None:
    """Run the command line, or say what to install for it."""
    try:
        _replace_closed_streams()
        _run()
    except KeyboardInterrupt:  # while modules are imported; after that, commands handle it
        print("evertree: interrupted", file=sys.stderr)
        sys.exit(_INTERRUPTED)


def _run() -> None:
    try:
        import rich  # noqa: F401

        from evertree.cli import app
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        sys.exit(f"evertree: the command line needs {error.name}: pip install 'evertree[cli]'")
    app()


def _replace_closed_streams() -> None:
    """Discard output to closed streams, and keep their file descriptors from being reused.

    Standard input stays None, so that its readers can tell.
    """
    if sys.stdin is None:
        os.open(os.devnull, os.O_RDONLY)
    if sys.stdout is None:
        sys.stdout = _nowhere()
    if sys.stderr is None:
        sys.stderr = _nowhere()


def _nowhere() -> TextIO:
    return open(os.devnull, "w", encoding="utf-8", errors="replace")


if __name__ == "__main__":
    main()
