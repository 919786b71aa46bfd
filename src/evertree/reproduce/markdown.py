"""Small pieces of Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(columns: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    """A table with a heading for each column."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(str(cell) for cell in line)} |" for line in lines)


def image(name: str, caption: str) -> str:
    """A picture beside the page."""
    return f"![{caption}]({name})"
