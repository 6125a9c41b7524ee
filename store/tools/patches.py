"""Patches in the form of ``apply_patch``: which files they name, and what they make of each.

Such a patch stands in an argument of its own, in a command, or among the words of one. Pure and
total.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ..text import as_list

BEGIN = "*** Begin Patch"
"""What a text has in it that is read as a patch."""

CHANGES: Mapping[str, str] = {
    "Add File": "created",
    "Update File": "modified",
    "Delete File": "deleted",
    "Move to": "created",
}
"""The headings of a patch, and what each makes of the file that it names."""

MOVED = "Move to"
"""The heading that stands below that of another file, which is gone after it."""

_HEADING = re.compile(rf"^\*\*\* ({'|'.join(CHANGES)}): (.*\S)\s*$", re.MULTILINE)


class Heading(NamedTuple):
    """A line of a patch that names a file: one of `CHANGES`, and the path as it is written."""

    says: str
    path: str


def headings(value: object) -> Iterator[Heading]:
    """Yield the headings of the patches in a text, or in the texts of a list.

    Anything else has none.
    """
    for text in as_list(value):
        if isinstance(text, str) and BEGIN in text:
            yield from map(Heading._make, _HEADING.findall(text))


def changes(value: object) -> Iterator[tuple[str, str]]:
    """Yield each path that patches name, as it is written, and what becomes of it.

    A value of `CHANGES`.
    """
    before = None
    for says, path in headings(value):
        if says == MOVED and before:
            yield before, "deleted"
        yield path, CHANGES[says]
        before = path
