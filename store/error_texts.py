"""What a failed tool result says of why it failed, in a few code points: for summaries and the facts told with them.

The beginning of a result is seldom its error: programs say first what they ran, how long it took and what went well.
"""

from __future__ import annotations

import re
from typing import Any

from .excerpts import ERROR_WORDS, decoded, lines_with

POINTS = 200
"""Code points of an error that are told."""
READ = 40_000
"""Of a text longer than this only both ends are looked through."""

FIELDS: tuple[tuple[tuple[str, ...], bool], ...] = (
    (("error",), False),
    (("data", "stderr"), True),
    (("stderr",), True),
    (("message",), False),
    (("text",), False),
    (("data", "stdout"), True),
    (("stdout",), True),
)
"""Where a JSON result says an error, the surest place first (S4.18); whether its end says more than its beginning."""

PREAMBLE = re.compile(
    r"""\A(?:
    (?:Command:\ (?s:.{0,4000}?)\n)?(?:Chunk\ ID|Exit\ code|Wall\ time):\ .*\n(?:.+\n){0,6}?Output:\n  # Codex
    | (?:Error:\s)?Exit\ code:?\ -?[0-9]+\n                                                            # Claude Code
    | <returncode>-?[0-9]+</returncode>\n(?:<output>\n)?                                               # mini-swe-agent
    )(?=\s*\S)""",
    re.VERBOSE,
)
"""What a program says of a command before the output."""

_HEADING = re.compile(r"Traceback \(most recent call last\):?")


def error_told(text: str) -> str:
    """Return what a failed result says of its error; what is short as it is, without the words before an output.

    Of JSON its code and message, else stderr. Of a longer text the first line that says an error and the newest ones;
    where none does, the end of what a command said, the beginning of everything else.
    """
    said, from_end = _said(text.strip())
    if len(said) <= POINTS:
        return said
    return _telling(said) or (said[-POINTS:] if from_end else said[:POINTS]).strip()


def _said(text: str) -> tuple[str, bool]:
    value = _object(text)
    for path, from_end in FIELDS if value else ():
        field: Any = value
        for key in path:
            field = field.get(key) if isinstance(field, dict) else None
        if said := _coded(field):
            return said, from_end
    return PREAMBLE.sub("", text, count=1).strip(), False


def _object(text: str) -> dict[str, Any]:
    try:
        value = decoded(text) if text[:1] == "{" else None
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _coded(field: Any) -> str:
    """Return the text of a field; of an object its code and its message."""
    if isinstance(field, dict):
        return ": ".join(filter(None, map(_coded, (field.get("code"), field.get("message")))))
    return str(field).strip() if type(field) in (str, int) else ""


def _telling(text: str) -> str:
    """Return the first line that says an error, and as many of the last ones as there is room for; "" for none."""
    ends = text if len(text) <= READ else f"{text[: READ // 2]}\n{text[-READ // 2 :]}"
    found = (line.strip() for _, line in lines_with(ERROR_WORDS, ends, 0, READ))
    first, *others = [*dict.fromkeys(line for line in found if not _HEADING.fullmatch(line))] or [""]
    told = [first[: POINTS // 2 if others else POINTS]]
    for line in reversed(others):
        if len("\n".join([*told, line])) > POINTS:
            break
        told.insert(1, line)
    return "\n".join(told)
