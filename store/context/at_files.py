"""Files that a user mentions as ``@path``: they are found, and the model is reminded to read them.

A mention injects no content. The reminder is added when a request is assembled; the stored message
stays as typed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

MOST = 5
"""Files that a reminder names; the others are counted."""

_MENTION = re.compile(r'(?<![A-Za-z0-9\u00c0-\u024f])@(?:"([^"\n]+)"|([a-zA-Z0-9/._-]+))')
"""A path without spaces, or any path in quotes.

What follows a letter or digit is an address, not a mention.
"""
_PLAIN = re.compile("[a-zA-Z0-9/._-]*[a-zA-Z0-9/_-]")
"""A path that is a mention of itself without quotes."""
_ABSOLUTE = re.compile(r"[/\\~]|[A-Za-z]:")


def mentions(
    text: str,
    *,
    root: str | os.PathLike[str] | None = None,
) -> list[str]:
    """Return the project's files that a text mentions, in order, each once, at most five.

    Full stops at the end belong to the sentence; absolute paths and ``..`` are no mentions.
    With a ``root``, only what exists below it counts.
    """
    return _all(text, root)[:MOST]


def reminder(text: str) -> str:
    """Return the reminder to read the files that a text mentions, "" where it mentions none."""
    found = _all(text)
    if not found:
        return ""
    these = "this file" if len(found) == 1 else "these files"
    return (
        "<system-reminder>\n"
        f"The user mentioned {_named(found)}.\n"
        f"You MUST read {these} with the Read tool before answering.\n"
        "</system-reminder>"
    )


def _named(paths: list[str]) -> str:
    """Return the first of many files by name, and how many more there are."""
    named = [_mention(path) for path in paths[:MOST]]
    if len(paths) > MOST:
        named.append(f"(and {len(paths) - MOST} more…)")
    return ", ".join(named)


def _mention(path: str) -> str:
    return f"@{path}" if _PLAIN.fullmatch(path) else f'@"{path}"'


def remind(text: str) -> str:
    """Return a text with the reminder of the files that it mentions.

    As it is where there are none, or it has it.
    """
    added = reminder(text)
    return text if not added or text.endswith(added) else f"{text}\n\n{added}"


def _all(
    text: str,
    root: str | os.PathLike[str] | None = None,
) -> list[str]:
    found = dict.fromkeys(filter(_in_project, _mentioned(text)))
    if root is None:
        return list(found)
    return [path for path in found if Path(root, path).exists()]


def _mentioned(text: str) -> Iterator[str]:
    """Yield the paths that a text mentions, whatever they lead to."""
    if "@" not in text:
        return
    for quoted, plain in _MENTION.findall(text):
        path = quoted or plain.rstrip(".")
        yield path.strip()


def _in_project(path: str) -> bool:
    if not path.strip("./") or _ABSOLUTE.match(path):
        return False
    return ".." not in re.split(r"[/\\]", path)
