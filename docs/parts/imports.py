"""Imports as the import sorter and the formatter leave them, for modules that are written."""

from __future__ import annotations

LONGEST_LINE = 100


def sort_names(names: set[str] | list[str]) -> list[str]:
    """Return imported names in order: constants, classes, the rest."""
    return sorted(names, key=lambda name: (not name.isupper(), not name[:1].isupper(), name))


def render_import(module: str, names: set[str] | list[str]) -> str:
    """Return an import within an indented block, a name a line where one line is too long."""
    ordered = sort_names(names)
    line = f"    from {module} import {', '.join(ordered)}"
    if len(line) <= LONGEST_LINE:
        return line
    return "\n".join(
        [f"    from {module} import (", *(f"        {each}," for each in ordered), "    )"]
    )
