"""Excerpts of a longer text by its lines, and of a longer JSON value by its items.

Each form tells how much it leaves out and is stable: cut again to the same limits, it stays as it
is. Lengths are code points, lines end at a line feed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from ..phrases import Language, render_phrase
from ..text import ELLIPSIS, MARKER, clip_text, format_marker, is_marker

_ERROR_PATTERN = "error|fail|exception|traceback|fatal|panic|denied|abort|no such|not found"
_ERROR_SPELLINGS = (
    _ERROR_PATTERN,
    _ERROR_PATTERN.upper(),
    _ERROR_PATTERN.title(),
    "No such|Not found",
)
ERROR_WORDS = re.compile("|".join(_ERROR_SPELLINGS))  # four times as fast as ignoring the case
"""Words in a line that explain why a command failed."""
_LOWER_ERROR_WORDS = _ERROR_PATTERN.split("|")


def translate_markers(language: Language, text: str) -> str:
    """Return a shortened text with its markers in a language."""
    if ELLIPSIS not in text:
        return text

    def told(found: re.Match[str]) -> str:
        return render_phrase(f"more_{found[2]}", language, count=found[1]) if found[2] else found[0]

    key = f'"{render_phrase("ellipsis", language)}":'
    return MARKER.sub(told, text).replace(f'"{ELLIPSIS}":', key)


JSON_DEPTH = 8
"""Levels of a JSON value that are kept."""


class ValueLimits(NamedTuple):
    """Limits of each text, each list and each object in a JSON value."""

    points: int
    items: int
    keys: int = 20


LIMIT_STEPS = (
    ValueLimits(10_000, 100, 100),
    ValueLimits(1000, 20, 50),
    ValueLimits(500, 20, 50),
    ValueLimits(200, 10, 20),
    ValueLimits(100, 5, 20),
    ValueLimits(50, 3, 20),
    ValueLimits(50, 2, 10),
    ValueLimits(20, 1, 10),
    ValueLimits(20, 1, 2),
)
"""Limits that are tried in turn until a JSON value is small enough."""


PlacedLine = tuple[int, str]
"""A line of a text, preceded by the place where it starts."""


class Excerpt(NamedTuple):
    """Lines of a text, none too wide, and the rest after or before them ("" if there is none)."""

    shown: str
    rest: str


def clip_lines(text: str, width: int) -> str:
    """Return a text with its longer lines clipped."""
    if not _has_longer_line(text, width):
        return text
    return "\n".join([clip_text(line, width) for line in text.split("\n")])


def _has_longer_line(text: str, width: int) -> bool:
    place = 0
    while len(text) - place > width:
        place = text.rfind("\n", place, place + width + 1) + 1
        if not place:
            return True
    return False


def count_lines(text: str) -> int:
    """Return the number of lines of a text; the last may lack its line end."""
    return text.count("\n") + (text[-1:] not in ("", "\n"))


def take_first_lines(text: str, lines: int, width: int) -> Excerpt:
    """Return the first lines, none wider than ``width``, and the rest of the text."""
    end = -1
    for _ in range(lines):
        end = text.find("\n", end + 1)
        if end < 0:
            end = len(text)
            break
    if end >= len(text) - 1:
        return Excerpt(clip_lines(text, width), "")
    return Excerpt(clip_lines(text[:end], width), text[end + 1 :])


def take_last_lines(text: str, lines: int, width: int) -> Excerpt:
    """Return the last lines, none wider than ``width``, and the text before them."""
    end = len(text) - text.endswith("\n")
    for _ in range(lines):
        end = text.rfind("\n", 0, end)
        if end < 0:
            break
    return Excerpt(clip_lines(text[end + 1 :], width), text[: max(end, 0)])


def cut_to_first_lines(text: str, *, lines: int, width: int) -> str:
    """Return the first lines and a line with the marker, or the rest if that is a marker."""
    shown, rest = take_first_lines(text, lines, width)
    if not rest:
        return shown
    marker = rest if is_marker(rest) else format_marker(count_lines(rest), "lines")
    return f"{shown}\n{marker}"


def find_error_lines(text: str) -> list[PlacedLine]:
    """Return the lines that contain `ERROR_WORDS`, ten times as fast as `find_matching_lines`."""
    lowered = text.lower()
    if len(lowered) > len(text):  # then the places differ
        return list(find_matching_lines(ERROR_WORDS, text, 0, len(text)))
    starts: set[int] = set()
    for word in _LOWER_ERROR_WORDS:
        place = lowered.find(word)
        while place >= 0:
            starts.add(lowered.rfind("\n", 0, place) + 1)
            place = lowered.find(word, _find_end_of_line(lowered, place))
    lines = ((start, text[start : _find_end_of_line(text, start)]) for start in sorted(starts))
    return [line for line in lines if ERROR_WORDS.search(line[1])]


def find_matching_lines(
    pattern: re.Pattern[str],
    text: str,
    place: int,
    most: int,
) -> Iterator[PlacedLine]:
    """Yield the next lines after a place that match a pattern."""
    for _ in range(most):
        found = pattern.search(text, place)
        if not found:
            return
        start, line = find_line_around(text, *found.span())
        yield start, line
        place = start + len(line) + 1


def find_line_around(text: str, start: int, end: int) -> PlacedLine:
    """Return the line around a range of a text."""
    line_start = text.rfind("\n", 0, start) + 1
    return line_start, text[line_start : _find_end_of_line(text, end)]


def _find_end_of_line(text: str, place: int) -> int:
    end = text.find("\n", place)
    return len(text) if end < 0 else end


def find_cut_place(text: str, points: int) -> int:
    """Return where the first code points end: at the end of a line if possible."""
    return max(text.rfind("\n", 0, points + 1), 0) or points


def cut_to_both_ends(
    text: str, points: int, lines: int, width: int, telling: Iterable[PlacedLine] = ()
) -> str:
    """Return the first code points, the marker, the telling lines of the rest, the last lines."""
    tail, before = take_last_lines(text, lines, width)
    end = find_cut_place(text, points)
    if end >= len(before):
        return clip_lines(text, width)
    kept = [clip_text(line, width) for start, line in telling if end <= start < len(before)]
    left_out = count_lines(before[end:].removeprefix("\n")) - len(kept)
    gap = [format_marker(left_out, "lines")] if left_out else []
    return "\n".join([before[:end], *gap, *kept, tail])


def trim_value(value: Any, limits: ValueLimits, depth: int = JSON_DEPTH) -> Any:
    """Return a JSON value with texts clipped, lists and objects cut, and its depth limited."""
    if isinstance(value, str):
        return clip_text(value, limits.points)
    if not value or not isinstance(value, list | dict):
        return value
    if not depth:
        return format_marker(len(value), "items" if isinstance(value, list) else "keys")
    if isinstance(value, list):
        more = len(value) - limits.items
        is_whole = _is_within_limit(more, value[-1])
        kept = value if is_whole else value[: limits.items]
        items = [trim_value(each, limits, depth - 1) for each in kept]
        return items if is_whole else [*items, format_marker(more, "items")]
    more = len(value) - limits.keys
    is_whole = _is_within_limit(more, value.get(ELLIPSIS))
    keys = value if is_whole else islice(value, limits.keys)
    fields = {key: trim_value(value[key], limits, depth - 1) for key in keys}
    return fields if is_whole else {**fields, ELLIPSIS: format_marker(more, "keys")}


def _is_within_limit(more: int, last: object) -> bool:
    """Tell a list or object within its limit; a marker at its end does not count."""
    return more <= 0 or (more == 1 and is_marker(last))
