"""Files that a user mentions as ``@path``: found, and turned into a reminder to read them first (S4.39-S4.46).

A mention injects no content. The reminder is added when a request is assembled; the stored message stays as typed.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

MOST = 5
"""Files that a reminder names; the others are counted (S4.43)."""

_MENTION = re.compile(r'(?<![A-Za-z0-9\u00c0-\u024f])@(?:"([^"\n]+)"|([a-zA-Z0-9/._-]+))')
"""S4.40, or any path in quotes; what follows a letter or digit is an address, not a mention (S4.42)."""
_PLAIN = re.compile("[a-zA-Z0-9/._-]*[a-zA-Z0-9/_-]")
"""A path that is a mention of itself without quotes."""
_ABSOLUTE = re.compile(r"[/\\~]|[A-Za-z]:")


def mentions(text: str, *, root: str | os.PathLike[str] | None = None) -> list[str]:
    """Return the project's files that a text mentions, in order, each once, at most five (S4.43).

    Full stops at the end belong to the sentence; absolute paths and ``..`` are no mentions (A4.15). With a ``root``,
    only what exists below it counts.
    """
    return _all(text, root)[:MOST]


def reminder(text: str) -> str:
    """Return the reminder to read the files that a text mentions, "" where it mentions none (S4.44, A4.16)."""
    found = _all(text)
    if not found:
        return ""
    named = [f"@{path}" if _PLAIN.fullmatch(path) else f'@"{path}"' for path in found[:MOST]]
    if len(found) > MOST:
        named.append(f"(and {len(found) - MOST} more…)")
    these = "this file" if len(found) == 1 else "these files"
    return (
        "<system-reminder>\n"
        f"The user mentioned {', '.join(named)}.\n"
        f"You MUST read {these} with the Read tool before answering.\n"
        "</system-reminder>"
    )


def remind(text: str) -> str:
    """Return a text with the reminder of the files that it mentions; as it is where there are none, or it has it."""
    added = reminder(text)
    return text if not added or text.endswith(added) else f"{text}\n\n{added}"


def _all(text: str, root: str | os.PathLike[str] | None = None) -> list[str]:
    if "@" not in text:
        return []
    paths = ((quoted or plain.rstrip(".")).strip() for quoted, plain in _MENTION.findall(text))
    found = dict.fromkeys(path for path in paths if _in_project(path))
    return [path for path in found if root is None or (Path(root) / path).exists()]


def _in_project(path: str) -> bool:
    return bool(path.strip("./")) and not _ABSOLUTE.match(path) and ".." not in re.split(r"[/\\]", path)
