"""The examples at the end of each command's help, which also run as tests."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

_Command = TypeVar("_Command", bound=Callable[..., Any])

#: For each command, by name: what each example does, and the line to type.
EXAMPLES: dict[str, tuple[tuple[str, str], ...]] = {}


def examples(*pairs: tuple[str, str]) -> Callable[[_Command], _Command]:
    """Decorate a command with its examples: what each does, and the line to type."""

    def register(command: _Command) -> _Command:
        EXAMPLES[command.__name__] = pairs
        return command

    return register


def help_text(command: Callable[..., Any]) -> str:
    """The docstring of a command with each paragraph on one line, so that the terminal decides where to wrap it."""
    paragraphs = inspect.getdoc(command) or ""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs.split("\n\n"))


def epilog(command: Callable[..., Any]) -> str:
    """The end of a command's help."""
    lines = [f"{what}:\n    {line}" for what, line in EXAMPLES[command.__name__]]
    return "\n".join(["[bold]Examples[/bold]", *lines])
