"""The error of a failed tool result, in a few code points.

Summaries and their facts show it. The beginning of a result is seldom its error: programs first
print the command, its duration and its successful steps.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from ..text import JsonFields, get_at_path, parse_object
from .excerpts import find_error_lines

ERROR_TEXT_POINTS = 200
"""Code points of an error that are shown."""
SEARCHED_ERROR_POINTS = 40_000
"""Only both ends of a text longer than this are searched."""


class ErrorText(NamedTuple):
    """The text in which a result reports its error.

    ``from_end``: its end tells more than its beginning.
    """

    text: str
    from_end: bool = False

    def end(self) -> str:
        """Return the end of the text that tells more."""
        end = self.text[-ERROR_TEXT_POINTS:] if self.from_end else self.text[:ERROR_TEXT_POINTS]
        return end.strip()


class ErrorField(NamedTuple):
    """A field in which a JSON result reports an error; ``from_end`` as for `ErrorText`."""

    path: tuple[str, ...]
    from_end: bool = False


ERROR_FIELDS = (
    ErrorField(("error",)),
    ErrorField(("data", "stderr"), from_end=True),
    ErrorField(("stderr",), from_end=True),
    ErrorField(("message",)),
    ErrorField(("text",)),
    ErrorField(("data", "stdout"), from_end=True),
    ErrorField(("stdout",), from_end=True),
)
"""The fields in which a JSON result reports an error, the most reliable first."""

_CODEX_PREAMBLE = r"""
    (?:Command:\ (?s:.{0,4000}?)\n)?
    (?:Chunk\ ID|Exit\ code|Wall\ time):\ .*\n
    (?:.+\n){0,6}?
    Output:\n"""
_CLAUDE_CODE_PREAMBLE = r"(?:Error:\s)?Exit\ code:?\ -?[0-9]+\n"
_MINI_SWE_PREAMBLE = r"<returncode>-?[0-9]+</returncode>\n(?:<output>\n)?"
OUTPUT_PREAMBLE = re.compile(
    rf"\A(?:{_CODEX_PREAMBLE}|{_CLAUDE_CODE_PREAMBLE}|{_MINI_SWE_PREAMBLE})(?=\s*\S)",
    re.VERBOSE,
)
"""The lines that a program prints about a command before the output."""

_TRACEBACK_HEADING = re.compile(r"Traceback \(most recent call last\):?")


def find_error_text(text: str, fields: JsonFields | None = None) -> str:
    """Return the error of a failed result, without the words before an output.

    A short text is returned as it is; for JSON its code and message, otherwise stderr. For a longer
    text the result is the first line that reports an error and the newest ones; if there is none,
    the end of a command's output, or the beginning of any other text. ``fields`` are those of a
    text that is a JSON object, {} for any other (None: not read yet).
    """
    fields = parse_object(text) if fields is None else fields
    in_fields = (
        ErrorText(_render_error_field(get_at_path(path, fields)), from_end)
        for path, from_end in ERROR_FIELDS
    )
    said = next((each for each in in_fields if each.text), None) or ErrorText(
        OUTPUT_PREAMBLE.sub("", text.strip(), count=1).strip()
    )
    if len(said.text) <= ERROR_TEXT_POINTS:
        return said.text
    return _select_error_lines(said.text) or said.end()


def _render_error_field(field: Any) -> str:
    """Return the text of a field; for an object its code and its message."""
    if isinstance(field, dict):
        said = [_render_error_field(field.get(key)) for key in ("code", "message")]
        return ": ".join(filter(None, said))
    return str(field).strip() if type(field) in (str, int) else ""


def _select_error_lines(text: str) -> str:
    """Return the first line that reports an error, and as many of the last ones as fit.

    Returns "" if there is none. Only both ends of a very long text are searched.
    """
    if len(text) > SEARCHED_ERROR_POINTS:
        half = SEARCHED_ERROR_POINTS // 2
        text = f"{text[:half]}\n{text[-half:]}"
    distinct = dict.fromkeys(line.strip() for _, line in find_error_lines(text))
    first, *others = [line for line in distinct if not _TRACEBACK_HEADING.fullmatch(line)] or [""]
    if not others:
        return first[:ERROR_TEXT_POINTS]
    selected = [first[: ERROR_TEXT_POINTS // 2]]
    for line in reversed(others):
        if len("\n".join([*selected, line])) > ERROR_TEXT_POINTS:
            break
        selected.insert(1, line)
    return "\n".join(selected)
