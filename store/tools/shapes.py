"""The shapes of short forms: the data and text to keep, by the kind of result.

The rules of short forms name these. A shape makes new ``data`` from a result's data and from the
facts found in it. If it gets its own output again, it leaves it unchanged. Limits are code points
unless they are called lines or items.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from ..ready import Language
from ..text import Fields, json_length
from .excerpts import (
    ERROR_WORDS,
    STEPS,
    Limits,
    PlacedLine,
    both_ends,
    end_of_start,
    is_cut,
    line_around,
    lines_at_end,
    lines_at_start,
    lines_with,
    trimmed,
)
from .results import exit_said
from .todos import recap

Names = tuple[str, ...]
Shape = Callable[[Fields, Fields], Fields]

POINTS, TAIL = 2000, 600
"""Limits of a result without a rule of its own."""
WIDTH = 300
"""Limit of one line, one item, one fact."""
READ_WIDTH = 2000
"""Limit of one line of a file that was read."""
OUTPUT_POINTS = 400
"""Output of a command up to this stays as it is."""
STDOUT_POINTS = 200
STDERR_LINES = 20
LAST_LINES = 3
"""Lines kept from the end of a successful command's output, which usually sums up."""
TELLING_LINES = 50
"""Lines kept from the middle of a failed command's output, because they report an error."""
OUTPUT_MOST = STDOUT_POINTS + 100 + (TELLING_LINES + STDERR_LINES + 1) * (WIDTH + 40)
"""No output of a command is longer than this."""

ERROR = re.compile(r"\s*(?:<tool_use_error>|Error\b|Traceback \(most)")
"""The beginning of a text that is an error as a whole."""

_HUNK = re.compile(r"^@@ -\S+ \+([0-9]+)(?:,([0-9]+))? @@", re.MULTILINE)
_DOTS = "..."

CHANGES = {
    "diff_preview": "diff",
    "diff": "diff",
    "diff_summary": "diff",
    "content": "content",
    "content_summary": "content",
}
"""The fields that tell a change, the best place first, each with its meaning: the difference, or
the new content.
"""


def listed(data: Fields, facts: Fields, *, lists: Names, items: int, total: str) -> Fields:
    """Keep the first items, whether that is all, and how many there are."""
    name = _first_list(data, lists)
    if name is None:
        return facts
    found = data[name]
    counted = facts.pop(total, None)
    return {
        **facts,
        name: [trimmed(item, Limits(WIDTH, 10)) for item in found[:items]],
        "truncated": bool(data.get("truncated")) or len(found) > items,
        total: counted if type(counted) is int else len(found),
    }


def _first_list(data: Fields, names: Names) -> str | None:
    found = (name for name in names if isinstance(data.get(name), list))
    return next(found, None)


def fragment(data: Fields, facts: Fields, *, lines: int) -> Fields:
    """Keep the first lines of a file that was read.

    The end of the range is kept only if all lines are.
    """
    content = data.get("content")
    if content is None:
        return facts
    if not isinstance(content, str):
        return {**facts, "content": squeezed(content, POINTS)}
    shown, rest = lines_at_start(content, lines, READ_WIDTH)
    if rest:
        facts.pop("end_line", None)
    return {**facts, "content": shown, "truncated": bool(data.get("truncated") or rest)}


def changed(data: Fields, facts: Fields, *, lines: int) -> Fields:
    """Keep the facts of a change and the first lines of the difference, or of the new text."""
    name = next((name for name in CHANGES if data.get(name)), None)
    text = data[name] if name else None
    if name is None or not isinstance(text, str):
        return facts
    what = CHANGES[name]
    shown, rest = lines_at_start(text, lines, WIDTH)
    short = {**facts, f"{what}_summary": shown}
    if rest or data.get(f"{what}_truncated"):
        short[f"{what}_truncated"] = True
    if rest and what == "diff":
        ranges = [_range(hunk) for hunk in _HUNK.finditer(text)]
        short["changed_ranges"] = trimmed(ranges, Limits(WIDTH, 20))
    return short


def _range(hunk: re.Match[str]) -> str:
    start, count = hunk.groups("1")
    return f"{start}-{_last_line(start, count)}"


def _last_line(start: str, count: str) -> int | str:
    return "?" if len(start) + len(count) >= 40 else int(start) + int(count) - 1


def ran(data: Fields, facts: Fields, *, failed: bool = False) -> Fields:
    """Keep the outcome of a command, the beginning of its output and the end of its errors.

    If a command failed without a word on stderr, the end of stdout is kept too.
    """
    stdout, stderr = _said(data, "stdout", "stdout_summary"), _said(data, "stderr", "stderr_tail")
    ending = _said(data, "stdout_tail")
    if failed and not stderr and len(stdout) > STDOUT_POINTS + len(_DOTS):
        ending = stdout
    tail, before = lines_at_end(stderr, STDERR_LINES, WIDTH)
    short = {
        "stdout_summary": _digest(stdout),
        "stdout_tail": lines_at_end(ending, STDERR_LINES, WIDTH).shown,
        "stderr_tail": tail,
        "stderr_truncated": bool(before or data.get("stderr_truncated")),
    }
    return facts | {name: value for name, value in short.items() if value}


def _digest(stdout: str) -> str:
    """Return the first code points of stdout and three dots, as in the protocol.

    A digest stays as it is.
    """
    is_digest = len(stdout) == STDOUT_POINTS + len(_DOTS) and stdout.endswith(_DOTS)
    if len(stdout) <= STDOUT_POINTS or is_digest:
        return stdout
    return stdout[:STDOUT_POINTS] + _DOTS


def _said(data: Fields, *names: str) -> str:
    found = next((data[name] for name in names if data.get(name)), "")
    return found if isinstance(found, str) else json.dumps(found)


def recapped(data: Fields, facts: Fields, language: Language = "en") -> Fields:
    """Keep the recap; if there is none, make one from the list."""
    said = facts.get("recap") or recap(data, language=language)
    return {"recap": said or ""} if said or data else {}


def whole(data: Fields, _facts: Fields) -> Fields:
    """Keep all: instructions and decisions are valid beyond their turn."""
    return data


def digested(data: Fields, _facts: Fields) -> Fields:
    """Keep the data of an unknown tool, cut if it is long."""
    short = squeezed(data, POINTS - 60)
    return short if short is data else {**short, "truncated": True}


def squeezed(value: Any, points: int) -> Any:
    """Return a JSON value cut to at most this many code points, or its size if no cut is enough."""
    whole_size = json_length(value)
    if whole_size <= points:
        return value
    for limits in STEPS:
        cut = trimmed(value, limits)
        if json_length(cut) <= points:
            return cut
    return {"original_size": whole_size}


def output_text(text: str, *, failed: bool = False) -> str:
    """Keep the beginning, the line with the exit code, and the end.

    For a command that failed, and for a text that begins as an error, more of the end is kept, and
    the lines that report an error.
    """
    if len(text) <= OUTPUT_POINTS or (len(text) <= OUTPUT_MOST and is_cut(text)):
        return text
    bare = text.strip()
    failed = failed or bool(ERROR.match(bare))
    lines = STDERR_LINES if failed else LAST_LINES
    telling = dict(_exit_line(text, bare))
    if failed:
        start = end_of_start(text, STDOUT_POINTS)
        telling.update(lines_with(ERROR_WORDS, text, start, TELLING_LINES))
    return both_ends(text, STDOUT_POINTS, lines, WIDTH, sorted(telling.items()))


def _exit_line(text: str, bare: str) -> Iterator[PlacedLine]:
    said = exit_said(bare)
    if said.code is not None:
        place = text.find(bare) + said.place
        yield line_around(text, place, place)
