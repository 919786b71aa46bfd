"""``python -m evertree``, and the ``evertree`` command."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line, or say what to install for it."""
    try:
        from evertree.cli import app
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        sys.exit(f"evertree: the command line needs {error.name}: pip install 'evertree[cli]'")
    app()


if __name__ == "__main__":
    main()
