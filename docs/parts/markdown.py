"""Text of the code as Markdown: docstrings, tables."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable

SOURCES = re.compile(r" \([A-Z]\d*\.\d+[a-z]?(?:[-, ]+[A-Z]\d*\.\d+[a-z]?)*\)| \([A-Z]\d\)")
"""Where a rule was written down first: of use in the code only."""


def plain(text: str | None) -> str:
    """Return a docstring's text as Markdown.

    One space between words, `code` for both kinds of backticks.
    """
    return SOURCES.sub("", re.sub(r"\s+", " ", (text or "").replace("``", "`"))).strip()


def paragraphs(text: str | None) -> str:
    """Return a whole docstring, each paragraph on a line."""
    return "\n\n".join(plain(each) for each in inspect.cleandoc(text or "").split("\n\n"))


def as_table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Return a table with a line of headings."""
    names = list(head)
    lines = [names, ["---"] * len(names), *([_cell(each) for each in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(value: object) -> str:
    return str(value).replace("|", "\\|") or "–"
