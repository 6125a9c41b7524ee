"""The error of a failed tool result, in a few code points.

Summaries and their facts show it. The beginning of a result is seldom its error: programs first
print the command, its duration and its successful steps.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from ..text import Fields, as_object, get_at_path
from .excerpts import error_lines

POINTS = 200
"""Code points of an error that are shown."""
READ = 40_000
"""Only both ends of a text longer than this are searched."""


class Said(NamedTuple):
    """The text in which a result reports its error.

    ``from_end``: its end tells more than its beginning.
    """

    text: str
    from_end: bool = False

    def end(self) -> str:
        """Return the end of the text that tells more."""
        end = self.text[-POINTS:] if self.from_end else self.text[:POINTS]
        return end.strip()


class ErrorField(NamedTuple):
    """A field in which a JSON result reports an error; ``from_end`` as for `Said`."""

    path: tuple[str, ...]
    from_end: bool = False


FIELDS = (
    ErrorField(("error",)),
    ErrorField(("data", "stderr"), from_end=True),
    ErrorField(("stderr",), from_end=True),
    ErrorField(("message",)),
    ErrorField(("text",)),
    ErrorField(("data", "stdout"), from_end=True),
    ErrorField(("stdout",), from_end=True),
)
"""The fields in which a JSON result reports an error, the most reliable first."""

_CODEX = r"""
    (?:Command:\ (?s:.{0,4000}?)\n)?
    (?:Chunk\ ID|Exit\ code|Wall\ time):\ .*\n
    (?:.+\n){0,6}?
    Output:\n"""
_CLAUDE_CODE = r"(?:Error:\s)?Exit\ code:?\ -?[0-9]+\n"
_MINI_SWE_AGENT = r"<returncode>-?[0-9]+</returncode>\n(?:<output>\n)?"
PREAMBLE = re.compile(
    rf"\A(?:{_CODEX}|{_CLAUDE_CODE}|{_MINI_SWE_AGENT})(?=\s*\S)",
    re.VERBOSE,
)
"""The lines that a program prints about a command before the output."""

_HEADING = re.compile(r"Traceback \(most recent call last\):?")


def error_told(text: str, fields: Fields | None = None) -> str:
    """Return the error of a failed result, without the words before an output.

    A short text is returned as it is; for JSON its code and message, otherwise stderr. For a longer
    text the result is the first line that reports an error and the newest ones; if there is none,
    the end of a command's output, or the beginning of any other text. ``fields`` are those of a
    text that is a JSON object, {} for any other (None: not read yet).
    """
    said = _said(text.strip(), as_object(text) if fields is None else fields)
    if len(said.text) <= POINTS:
        return said.text
    return _telling(said.text) or said.end()


def _said(text: str, fields: Fields) -> Said:
    in_field = _said_in_field(fields)
    return in_field or Said(PREAMBLE.sub("", text, count=1).strip())


def _said_in_field(fields: Fields) -> Said | None:
    for path, from_end in FIELDS:
        said = _coded(get_at_path(path, fields))
        if said:
            return Said(said, from_end)
    return None


def _coded(field: Any) -> str:
    """Return the text of a field; for an object its code and its message."""
    if isinstance(field, dict):
        said = [_coded(field.get(key)) for key in ("code", "message")]
        return ": ".join(filter(None, said))
    return str(field).strip() if type(field) in (str, int) else ""


def _telling(text: str) -> str:
    """Return the first line that reports an error, and as many of the last ones as fit.

    Returns "" if there is none.
    """
    distinct = dict.fromkeys(line.strip() for _, line in error_lines(_ends(text)))
    first, *others = [line for line in distinct if not _HEADING.fullmatch(line)] or [""]
    if not others:
        return first[:POINTS]
    return _with_newest(first[: POINTS // 2], others)


def _with_newest(first: str, others: list[str]) -> str:
    told = [first]
    for line in reversed(others):
        if len("\n".join([*told, line])) > POINTS:
            break
        told.insert(1, line)
    return "\n".join(told)


def _ends(text: str) -> str:
    """Return both ends of a long text; a short one is whole."""
    if len(text) <= READ:
        return text
    return f"{text[: READ // 2]}\n{text[-READ // 2 :]}"
