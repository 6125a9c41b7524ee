"""Patches in the form of ``apply_patch``: the files that they name, and the changes to each.

Such a patch is an argument of its own, part of a command, or part of a longer text. Pure and total.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ..text import wrap_in_list

PATCH_BEGIN = "*** Begin Patch"
"""The line that marks a text as a patch."""

HEADING_CHANGES: Mapping[str, str] = {
    "Add File": "created",
    "Update File": "modified",
    "Delete File": "deleted",
    "Move to": "created",
}
"""The headings of a patch, and the change that each makes to the named file."""

MOVE_HEADING = "Move to"
"""The heading of a file's new path; it follows the old path, which no longer exists after it."""

_PATCH_HEADING = re.compile(rf"^\*\*\* ({'|'.join(HEADING_CHANGES)}): (.*\S)\s*$", re.MULTILINE)


class PatchHeading(NamedTuple):
    """A line of a patch that names a file: one of `HEADING_CHANGES`, and the path as written."""

    says: str
    path: str


def find_patch_headings(value: object) -> Iterator[PatchHeading]:
    """Yield the headings of the patches in a text, or in the texts of a list.

    Any other value has none.
    """
    for text in wrap_in_list(value):
        if isinstance(text, str) and PATCH_BEGIN in text:
            yield from map(PatchHeading._make, _PATCH_HEADING.findall(text))


def list_patch_changes(value: object) -> Iterator[tuple[str, str]]:
    """Yield each path that patches name, as it is written, and the change to it.

    The change is a value of `HEADING_CHANGES`.
    """
    before = None
    for says, path in find_patch_headings(value):
        if says == MOVE_HEADING and before:
            yield before, "deleted"
        yield path, HEADING_CHANGES[says]
        before = path
