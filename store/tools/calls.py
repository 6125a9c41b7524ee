"""The files that a tool call names, and their lines.

They are read from its arguments, whatever the tool calls them. Lines are counted from 1. Invalid
lines are unknown, never "all".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

from ..messages import INTEGER_LIMIT, is_integer
from ..text import JsonFields, parse_object
from . import patches
from .kinds import FILE_WORDS, FOLDER_WORDS, LINE_WORDS, normalise_key
from .path_normalization import normalise_path

LineRanges = tuple[tuple[int, int | None], ...]
"""Ranges of lines, each with its first and its last (None: to the end of the file)."""

WHOLE_FILE: LineRanges = ((1, None),)
UNKNOWN_LINES: LineRanges = ()

GivenFields = Sequence[tuple[str, Any]]
"""The fields of an object: its keys in a uniform spelling, and its values."""

_SPAN_WORDS = {
    frozenset(said.split()) for said in ("start", "end", "count", "start end", "start count")
}
"""The words that may describe one range together; an end and a count contradict each other."""

LAST_LINE = INTEGER_LIMIT - 1
SPAN_LIMIT = 2**62
"""Numbers from here on are ignored, so that the sum of two can be stored."""

_DIGITS = re.compile(r"-?[0-9]{1,18}")
_PAIR_TEXT = re.compile(r"[\s\[(]*([0-9]{1,18})\s*[-,:]\s*(-?[0-9]{1,18})[\s\])]*")


class LineHull(NamedTuple):
    """One range around several; ``contiguous`` 0: it has lines that none of them has."""

    start: int | None
    end: int | None
    contiguous: int


def find_asked_lines(given: GivenFields, inherited: LineRanges) -> LineRanges:
    """Return the lines that an object asks for, or ``inherited``, those of the object around it.

    Lines that are given twice are unknown.
    """
    words = [(LINE_WORDS[word], value) for word, value in given if word in LINE_WORDS]
    if not words:
        return inherited
    meant = dict(words)
    if len(meant) < len(words):
        return UNKNOWN_LINES
    if meant.pop("whole", None) is True:
        return WHOLE_FILE
    if meant.keys() == {"pair"}:
        value = meant["pair"]
        pair = _parse_range_pair(value)
        if pair or not isinstance(value, list):
            return pair
        pairs = [*map(_parse_range_pair, value)]
        return tuple(chain(*pairs)) if all(pairs) else UNKNOWN_LINES
    return _parse_span(**meant) if frozenset(meant) in _SPAN_WORDS else UNKNOWN_LINES


def build_line_hull(mentions: Iterable[LineRanges]) -> LineHull:
    """Return the range around all requested lines, both ends None for the whole file."""
    asked = list(mentions)
    if len(asked) == 1 and len(asked[0]) == 1:
        return _build_single_hull(*asked[0][0])
    if WHOLE_FILE in asked:
        return LineHull(None, None, 1)
    if UNKNOWN_LINES in asked:
        return LineHull(None, None, 0)
    ranges = sorted(
        (first, LAST_LINE if last is None else last) for lines in asked for first, last in lines
    )
    start, reached = ranges[0]
    contiguous = 1
    for first, last in ranges:
        if first > reached + 1:
            contiguous = 0
        reached = max(reached, last)
    return LineHull(*_build_single_hull(start, reached)[:2], contiguous)


def _build_single_hull(first: int, last: int | None) -> LineHull:
    """Return a range as its own hull."""
    if last is not None and last < LAST_LINE:
        return LineHull(first, last, 1)
    return LineHull(None if first == 1 else first, None, 1)


def _parse_range_pair(value: object) -> LineRanges:
    ends: Sequence[object]
    if isinstance(value, str):
        found = _PAIR_TEXT.fullmatch(value)
        ends = found.groups() if found else ()
    elif isinstance(value, dict):
        named = {LINE_WORDS.get(normalise_key(key)): each for key, each in value.items()}
        ends = named.get("start"), named.get("end")
    else:
        ends = value if isinstance(value, list) else ()
    if len(ends) != 2 or ends[0] is None:
        return UNKNOWN_LINES
    return _parse_span(*ends)


def _parse_span(start: object = None, end: object = None, count: object = None) -> LineRanges:
    """Return one range.

    -1 ends at the end of the file, 0 starts at line 1, other invalid values are unknown.
    """
    first = 1 if start is None else _parse_line_number(start)
    if first is None or first < 0:
        return UNKNOWN_LINES
    first = max(first, 1)
    last = _parse_line_number(end if count is None else count)
    if count is not None:
        last = first + last - 1 if last and last > 0 else None
    if last == -1 or (count is None and end is None):
        return ((first, None),)
    return ((first, last),) if last is not None and last >= first else UNKNOWN_LINES


def _parse_line_number(value: object) -> int | None:
    if isinstance(value, str):
        value = int(value) if _DIGITS.fullmatch(value) else None
    number = parse_integer(value)
    return None if number is None or abs(number) >= SPAN_LIMIT else number


def parse_integer(value: object) -> int | None:
    """Return a number as an integer that a database holds; None for any other value."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if is_integer(value) else None


class ToolPath(NamedTuple):
    """A file that a call named, with the requested lines, counted from 1.

    Both lines None: the whole file; only ``end_line`` None: to its end. ``contiguous`` 0: not all
    lines between were requested, or it is unknown which. Such a read covers no other for sure, and
    is covered only by all of its hull.
    """

    path: str
    start_line: int | None
    end_line: int | None
    contiguous: int
    mentions: int


class CallPaths(NamedTuple):
    """The distinct files that a call named, and whether that is all it named."""

    paths: tuple[ToolPath, ...]
    complete: bool


SEARCHED_LEVELS = 3
"""Levels of objects that are searched: ``files: [{path: {...}}]`` is as deep as programs go."""

UNASKED_LINES: LineRanges = ((0, None),)
"""Used for the lines if they are not requested."""

PathMention = tuple[str | None, LineRanges]
"""A path with its lines; None for a path that could not be recognised."""
PathMentions = Iterator[PathMention]


def find_call_paths(
    arguments: object, project_root: str | None = None, *, fold_case: bool = False
) -> CallPaths:
    """Return the files that a call's arguments name, one entry for each normalised path.

    Arguments are an object or its JSON text, or a patch in the form of ``apply_patch``. Keys count
    in any spelling (``filePath``, ``file_path``, ``FilePath``); folders only if no file is named.
    Empty and null paths are ignored; an element of a list that is not a path makes the result
    incomplete, as does a path of over 2,000 bytes. Invalid lines are unknown, never "all". Offsets
    count lines from 1, as in most programs; for an offset that counts from 0 the range is a line
    early.
    """
    found: dict[str, list[LineRanges]] = {}
    complete = True
    for path, lines in _find_named_paths(
        _parse_argument_fields(arguments), WHOLE_FILE, SEARCHED_LEVELS
    ):
        key = normalise_path(path, project_root, fold_case=fold_case) if path else ""
        if key:
            found.setdefault(key, []).append(lines)
        else:
            complete = False
    paths = (ToolPath(key, *build_line_hull(asked), len(asked)) for key, asked in found.items())
    return CallPaths(tuple(paths), complete)


def list_file_keys(arguments: object, project_root: str | None = None) -> list[str]:
    """Return the keys of the distinct files that `find_call_paths` finds, without their lines."""
    named = (
        path
        for path, _ in _find_named_paths(
            _parse_argument_fields(arguments), UNASKED_LINES, SEARCHED_LEVELS
        )
        if path
    )
    keys = [normalise_path(path, project_root) for path in named]
    return [*filter(None, dict.fromkeys(keys))]


def _parse_argument_fields(arguments: object) -> JsonFields:
    """Return the fields of arguments; a text that is not an object may be a patch."""
    fields = parse_object(arguments)
    if not fields and isinstance(arguments, str):
        return {"patch": arguments}
    return fields


def _find_named_paths(fields: JsonFields, lines: LineRanges, levels: int) -> PathMentions:
    """Yield each path that an object names, with its lines.

    Folders count if no file is named, patches if no folder is named.
    """
    given = [
        (normalise_key(key), value)
        for key, value in fields.items()
        if value is not None and value != ""
    ]
    if lines is not UNASKED_LINES:
        lines = find_asked_lines(given, lines)
    values = _list_word_values(FILE_WORDS, given) or _list_word_values(FOLDER_WORDS, given)
    for value in values:
        for element in value if isinstance(value, list) else (value,):
            if isinstance(element, dict) and levels:
                yield from (list(_find_named_paths(element, lines, levels - 1)) or [(None, lines)])
            else:
                yield element if isinstance(element, str) else None, lines
    if not values:
        for _, value in given:
            for heading in patches.find_patch_headings(value):
                yield heading.path, UNKNOWN_LINES


def _list_word_values(words: frozenset[str], given: GivenFields) -> list[Any]:
    return [value for word, value in given if word in words]
