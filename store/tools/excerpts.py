"""Excerpts of a longer text by its lines, and of a longer JSON value by its items.

Each form tells how much it leaves out and is stable: cut again to the same limits, it stays as it
is. Lengths are code points, lines end at a line feed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from ..ready import Language, render_phrase
from ..text import ELLIPSIS, MARKER, JsonFields, clip_text, format_marker, is_marker

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
    end = _find_lines_end(lines, text)
    if end >= len(text) - 1:
        return Excerpt(clip_lines(text, width), "")
    return Excerpt(clip_lines(text[:end], width), text[end + 1 :])


def _find_lines_end(lines: int, text: str) -> int:
    """Return where the first lines end; the end of the text if it has no more."""
    end = -1
    for _ in range(lines):
        end = text.find("\n", end + 1)
        if end < 0:
            return len(text)
    return end


def take_last_lines(text: str, lines: int, width: int) -> Excerpt:
    """Return the last lines, none wider than ``width``, and the text before them."""
    end = len(text) - text.endswith("\n")
    for _ in range(lines):
        end = text.rfind("\n", 0, end)
        if end < 0:
            break
    return Excerpt(clip_lines(text[end + 1 :], width), text[: max(end, 0)])


def cut_to_first_lines(text: str, *, lines: int, width: int) -> str:
    """Return the first lines and a line with the marker."""
    shown, rest = take_first_lines(text, lines, width)
    if not rest:
        return shown
    return f"{shown}\n{_build_lines_marker(rest)}"


def _build_lines_marker(rest: str) -> str:
    """Return the marker of the omitted lines; a single line that is a marker is returned itself."""
    return rest if is_marker(rest) else format_marker(count_lines(rest), "lines")


def find_error_lines(text: str) -> list[PlacedLine]:
    """Return the lines that contain `ERROR_WORDS`, ten times as fast as `find_matching_lines`."""
    lowered = text.lower()
    if len(lowered) > len(text):  # then the places differ
        return list(find_matching_lines(ERROR_WORDS, text, 0, len(text)))
    starts = {start for word in _LOWER_ERROR_WORDS for start in _find_line_starts(word, lowered)}
    lines = ((start, text[start : _find_end_of_line(text, start)]) for start in sorted(starts))
    return [line for line in lines if ERROR_WORDS.search(line[1])]


def _find_line_starts(word: str, text: str) -> Iterator[int]:
    """Yield the starts of the lines that contain a word."""
    place = text.find(word)
    while place >= 0:
        yield text.rfind("\n", 0, place) + 1
        place = text.find(word, _find_end_of_line(text, place))


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
    gap = _build_gap_marker(before[end:], len(kept))
    return "\n".join([before[:end], *gap, *kept, tail])


def _build_gap_marker(between: str, kept: int) -> list[str]:
    """Return the marker of the omitted lines between both ends, if there are any."""
    left_out = count_lines(between.removeprefix("\n")) - kept
    return [format_marker(left_out, "lines")] if left_out else []


def trim_value(value: Any, limits: ValueLimits, depth: int = JSON_DEPTH) -> Any:
    """Return a JSON value with texts clipped, lists and objects cut, and its depth limited."""
    if isinstance(value, str):
        return clip_text(value, limits.points)
    if not value:
        return value
    if isinstance(value, list):
        return _trim_list(value, limits, depth) if depth else format_marker(len(value), "items")
    if isinstance(value, dict):
        return _trim_object(value, limits, depth) if depth else format_marker(len(value), "keys")
    return value


def _trim_list(value: list[Any], limits: ValueLimits, depth: int) -> list[Any]:
    more = len(value) - limits.items
    if _is_within_limit(more, value[-1]):
        return _trim_items(value, limits, depth - 1)
    shown = _trim_items(value[: limits.items], limits, depth - 1)
    return [*shown, format_marker(more, "items")]


def _trim_items(items: list[Any], limits: ValueLimits, depth: int) -> list[Any]:
    return [trim_value(each, limits, depth) for each in items]


def _is_within_limit(more: int, last: object) -> bool:
    """Tell a list or object within its limit; a marker at its end does not count."""
    return more <= 0 or (more == 1 and is_marker(last))


def _trim_object(value: JsonFields, limits: ValueLimits, depth: int) -> JsonFields:
    more = len(value) - limits.keys
    whole = _is_within_limit(more, value.get(ELLIPSIS))
    kept = value if whole else islice(value, limits.keys)
    shown = {key: trim_value(value[key], limits, depth - 1) for key in kept}
    return shown if whole else {**shown, ELLIPSIS: format_marker(more, "keys")}
