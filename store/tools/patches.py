"""Patches in the form of ``apply_patch``: the files that they name, and the changes to each.

Such a patch is an argument of its own, part of a command, or part of a longer text. Pure and total.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ..text import as_list

BEGIN = "*** Begin Patch"
"""The line that marks a text as a patch."""

CHANGES: Mapping[str, str] = {
    "Add File": "created",
    "Update File": "modified",
    "Delete File": "deleted",
    "Move to": "created",
}
"""The headings of a patch, and the change that each makes to the named file."""

MOVED = "Move to"
"""The heading of a file's new path; it follows the old path, which no longer exists after it."""

_HEADING = re.compile(rf"^\*\*\* ({'|'.join(CHANGES)}): (.*\S)\s*$", re.MULTILINE)


class Heading(NamedTuple):
    """A line of a patch that names a file: one of `CHANGES`, and the path as it is written."""

    says: str
    path: str


def headings(value: object) -> Iterator[Heading]:
    """Yield the headings of the patches in a text, or in the texts of a list.

    Any other value has none.
    """
    for text in as_list(value):
        if isinstance(text, str) and BEGIN in text:
            yield from map(Heading._make, _HEADING.findall(text))


def changes(value: object) -> Iterator[tuple[str, str]]:
    """Yield each path that patches name, as it is written, and the change to it.

    The change is a value of `CHANGES`.
    """
    before = None
    for says, path in headings(value):
        if says == MOVED and before:
            yield before, "deleted"
        yield path, CHANGES[says]
        before = path
