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
from ..text import MARKER, JsonFields, measure_json
from .excerpts import (
    ERROR_WORDS,
    LIMIT_STEPS,
    PlacedLine,
    ValueLimits,
    cut_to_both_ends,
    find_cut_place,
    find_line_around,
    find_matching_lines,
    take_first_lines,
    take_last_lines,
    trim_value,
)
from .results import find_exit_code
from .todos import render_recap

FieldNames = tuple[str, ...]
DataShape = Callable[[JsonFields, JsonFields], JsonFields]

POINTS, TAIL = 2000, 600
"""Limits of a result without a rule of its own."""
LINE_WIDTH = 300
"""Limit of one line, one item, one fact."""
READ_WIDTH = 2000
"""Limit of one line of a file that was read."""
OUTPUT_POINTS = 400
"""Output of a command up to this stays as it is."""
STDOUT_POINTS = 200
STDERR_LINES = 20
LAST_LINES = 3
"""Lines kept from the end of a successful command's output, which usually sums up."""
ERROR_LINES_LIMIT = 50
"""Lines kept from the middle of a failed command's output, because they report an error."""
SHORT_OUTPUT_LIMIT = (
    STDOUT_POINTS + 100 + (ERROR_LINES_LIMIT + STDERR_LINES + 1) * (LINE_WIDTH + 40)
)
"""No output of a command is longer than this."""

ERROR_BEGINNING = re.compile(r"\s*(?:<tool_use_error>|Error\b|Traceback \(most)")
"""The beginning of a text that is an error as a whole."""

_HUNK = re.compile(r"^@@ -\S+ \+([0-9]+)(?:,([0-9]+))? @@", re.MULTILINE)
_DOTS = "..."

CHANGE_TEXT_FIELDS = {
    "diff_preview": "diff",
    "diff": "diff",
    "diff_summary": "diff",
    "content": "content",
    "content_summary": "content",
}
"""The fields that tell a change, the best place first, each with its meaning: the difference, or
the new content.
"""


def shorten_list(
    data: JsonFields, facts: JsonFields, *, lists: FieldNames, items: int, total: str
) -> JsonFields:
    """Keep the first items, whether that is all, and how many there are."""
    name = _find_first_list(data, lists)
    if name is None:
        return facts
    found = data[name]
    counted = facts.pop(total, None)
    return {
        **facts,
        name: [trim_value(item, ValueLimits(LINE_WIDTH, 10)) for item in found[:items]],
        "truncated": bool(data.get("truncated")) or len(found) > items,
        total: counted if type(counted) is int else len(found),
    }


def _find_first_list(data: JsonFields, names: FieldNames) -> str | None:
    found = (name for name in names if isinstance(data.get(name), list))
    return next(found, None)


def shorten_file(data: JsonFields, facts: JsonFields, *, lines: int) -> JsonFields:
    """Keep the first lines of a file that was read.

    The end of the range is kept only if all lines are.
    """
    content = data.get("content")
    if content is None:
        return facts
    if not isinstance(content, str):
        return {**facts, "content": squeeze_value(content, POINTS)}
    shown, rest = take_first_lines(content, lines, READ_WIDTH)
    if rest:
        facts.pop("end_line", None)
    return {**facts, "content": shown, "truncated": bool(data.get("truncated") or rest)}


def shorten_change(data: JsonFields, facts: JsonFields, *, lines: int) -> JsonFields:
    """Keep the facts of a change and the first lines of the difference, or of the new text."""
    name = next((name for name in CHANGE_TEXT_FIELDS if data.get(name)), None)
    text = data[name] if name else None
    if name is None or not isinstance(text, str):
        return facts
    what = CHANGE_TEXT_FIELDS[name]
    shown, rest = take_first_lines(text, lines, LINE_WIDTH)
    short = {**facts, f"{what}_summary": shown}
    if rest or data.get(f"{what}_truncated"):
        short[f"{what}_truncated"] = True
    if rest and what == "diff":
        ranges = [_render_hunk_range(hunk) for hunk in _HUNK.finditer(text)]
        short["changed_ranges"] = trim_value(ranges, ValueLimits(LINE_WIDTH, 20))
    return short


def _render_hunk_range(hunk: re.Match[str]) -> str:
    start, count = hunk.groups("1")
    return f"{start}-{_compute_last_line(start, count)}"


def _compute_last_line(start: str, count: str) -> int | str:
    return "?" if len(start) + len(count) >= 40 else int(start) + int(count) - 1


def shorten_command(data: JsonFields, facts: JsonFields, *, failed: bool = False) -> JsonFields:
    """Keep the outcome of a command, the beginning of its output and the end of its errors.

    If a command failed without a word on stderr, the end of stdout is kept too.
    """
    stdout, stderr = (
        _find_field_text(data, "stdout", "stdout_summary"),
        _find_field_text(data, "stderr", "stderr_tail"),
    )
    ending = _find_field_text(data, "stdout_tail")
    if failed and not stderr and len(stdout) > STDOUT_POINTS + len(_DOTS):
        ending = stdout
    tail, before = take_last_lines(stderr, STDERR_LINES, LINE_WIDTH)
    short = {
        "stdout_summary": _digest_stdout(stdout),
        "stdout_tail": take_last_lines(ending, STDERR_LINES, LINE_WIDTH).shown,
        "stderr_tail": tail,
        "stderr_truncated": bool(before or data.get("stderr_truncated")),
    }
    return facts | {name: value for name, value in short.items() if value}


def _digest_stdout(stdout: str) -> str:
    """Return the first code points of stdout and three dots, as in the protocol.

    A digest stays as it is.
    """
    is_digest = len(stdout) == STDOUT_POINTS + len(_DOTS) and stdout.endswith(_DOTS)
    if len(stdout) <= STDOUT_POINTS or is_digest:
        return stdout
    return stdout[:STDOUT_POINTS] + _DOTS


def _find_field_text(data: JsonFields, *names: str) -> str:
    found = next((data[name] for name in names if data.get(name)), "")
    return found if isinstance(found, str) else json.dumps(found)


def shorten_todos(data: JsonFields, facts: JsonFields, language: Language = "en") -> JsonFields:
    """Keep the recap; if there is none, make one from the list."""
    said = facts.get("recap") or render_recap(data, language=language)
    return {"recap": said or ""} if said or data else {}


def keep_data(data: JsonFields, _facts: JsonFields) -> JsonFields:
    """Keep all: instructions and decisions are valid beyond their turn."""
    return data


def shorten_unknown(data: JsonFields, _facts: JsonFields) -> JsonFields:
    """Keep the data of an unknown tool, cut if it is long."""
    short = squeeze_value(data, POINTS - 60)
    return short if short is data else {**short, "truncated": True}


def squeeze_value(value: Any, points: int) -> Any:
    """Return a JSON value cut to at most this many code points, or its size if no cut is enough."""
    whole_size = measure_json(value)
    if whole_size <= points:
        return value
    for limits in LIMIT_STEPS:
        cut = trim_value(value, limits)
        if measure_json(cut) <= points:
            return cut
    return {"original_size": whole_size}


def shorten_output(text: str, *, failed: bool = False) -> str:
    """Keep the beginning, the line with the exit code, and the end.

    For a command that failed, and for a text that begins as an error, more of the end is kept, and
    the lines that report an error.
    """
    if len(text) <= OUTPUT_POINTS or (
        len(text) <= SHORT_OUTPUT_LIMIT
        and (
            (" more lines)" in text or " 行)" in text)
            and any(MARKER.fullmatch(line) for line in text.split("\n"))
        )
    ):
        return text
    bare = text.strip()
    failed = failed or bool(ERROR_BEGINNING.match(bare))
    lines = STDERR_LINES if failed else LAST_LINES
    telling = dict(_find_exit_line(text, bare))
    if failed:
        start = find_cut_place(text, STDOUT_POINTS)
        telling.update(find_matching_lines(ERROR_WORDS, text, start, ERROR_LINES_LIMIT))
    return cut_to_both_ends(text, STDOUT_POINTS, lines, LINE_WIDTH, sorted(telling.items()))


def _find_exit_line(text: str, bare: str) -> Iterator[PlacedLine]:
    said = find_exit_code(bare)
    if said.code is not None:
        place = text.find(bare) + said.place
        yield find_line_around(text, place, place)
