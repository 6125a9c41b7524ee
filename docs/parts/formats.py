"""What each wire format takes."""

from __future__ import annotations

from store.formats import FORMATS, Alphabet, Format

from .markdown import as_table


def formats() -> str:
    """Return a row for each format that providers take."""
    rows = (_row(row) for row in FORMATS.values() if row.names)
    return as_table(["format", "system text", "ids of calls", "names of tools"], rows)


def _row(row: Format) -> tuple[str, ...]:
    assert row.names
    system = "`View.system`" if row.system else "a message"
    return f"`{row.name}`", system, _taken(row.names.ids), _taken(row.names.tools)


def _taken(names: Alphabet) -> str:
    foreign = names.foreign.pattern
    signs = f"`{foreign.replace('[^', '[')}`" if foreign.startswith("[^") else "any text"
    begins = f", begins with a letter or `{names.begins}`" if names.begins else ""
    return f"{signs}, at most {names.longest}{begins}"
