"""The files that a tool call names, and their lines.

They are read from its arguments, whatever the tool calls them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from ..text import JsonFields, parse_object
from . import patches
from .kinds import FILE_WORDS, FOLDER_WORDS, normalise_key
from .line_ranges import (
    UNKNOWN_LINES,
    WHOLE_FILE,
    GivenFields,
    LineRanges,
    build_line_hull,
    find_asked_lines,
)
from .paths import normalise_path


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
                yield from (
                    list(_find_named_paths(element, lines, (levels - 1))) or [(None, lines)]
                )
            else:
                yield element if isinstance(element, str) else None, lines
    if not values:
        for _, value in given:
            for heading in patches.find_patch_headings(value):
                yield heading.path, UNKNOWN_LINES


def _list_word_values(words: frozenset[str], given: GivenFields) -> list[Any]:
    return [value for word, value in given if word in words]
