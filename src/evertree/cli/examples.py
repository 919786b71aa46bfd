"""Examples, which every command shows at the end of its help, and which run as tests."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

_Command = TypeVar("_Command", bound=Callable[..., Any])

#: By the name of a function: what each example does, and the command.
EXAMPLES: dict[str, tuple[tuple[str, str], ...]] = {}


def examples(*pairs: tuple[str, str]) -> Callable[[_Command], _Command]:
    """Note the examples of a command: what each does, and how it reads."""

    def note(command: _Command) -> _Command:
        EXAMPLES[command.__name__] = pairs
        return command

    return note


def help_text(command: Callable[..., Any]) -> str:
    """The docstring of a command, a line for each paragraph, so that it is wrapped where the terminal ends."""
    paragraphs = inspect.getdoc(command) or ""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs.split("\n\n"))


def epilog(command: Callable[..., Any]) -> str:
    """What stands at the end of the help of a command."""
    lines = [f"{what}:\n    {line}" for what, line in EXAMPLES[command.__name__]]
    return "\n".join(["[bold]Examples[/bold]", *lines])
