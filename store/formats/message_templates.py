"""Restore messages of a format from their rows by templates.

The shape of a message is the text beside each of its rows, and which columns have a value. Ids and
times in that text are those of the columns, so marks stand for them in the shape.
"""

from __future__ import annotations

import marshal
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import starmap
from json.decoder import scanstring  # type: ignore[attr-defined]
from json.encoder import encode_basestring
from secrets import randbits
from typing import Any, NamedTuple

from ..messages import EMPTY_CALL_TEXT, Message, assemble_message
from ..text import clearable_cache, parse_json
from .chat_rows import find_wire_values
from .openai import replace_surrogates
from .parts import JSON_ESCAPE
from .value_templates import (
    MOST_TEMPLATES,
    SPECIMEN_MARK,
    Build,
    MadeT,
    TemplateEntry,
    compile_display,
    remove_type,
    render_display,
)

LONGEST_SHAPE = 600
"""Code points of the text beside a row up to which others are expected to have the same."""
ID_PREFIX, QUOTED_ID_KEY, PART_NUMBER_KEY = '"id":', '"id":"', '"part":'
ID_MARKS = [*map(chr, range(1, 9)), *map(chr, range(14, 32))]
"""Characters that no JSON text has, each for one of the ids in it: no two texts become equal."""
TIME_MARK = "\v"
CALL_ID_MARKS = ID_MARKS[2:]
MOST_CALLS = len(CALL_ID_MARKS)
USUAL_CALL_TEXTS = (None, EMPTY_CALL_TEXT)
TIME_SPECIMEN = randbits(60) + 2**61
PART_MARK = f"{SPECIMEN_MARK}part"
PART_TEXT_KEY = '"text":"'
LONGEST_PREFIX, LONGEST_SUFFIX = 64, 64
"""Code points of JSON before and after the text of a content that is one text part."""

FormatRow = Sequence[Any]
"""A stored row: position, time, digest, format, and its `Columns`."""
NAME_PLACE, ANSWERED_PLACE, MOMENT_PLACE, MESSAGE_ID_PLACE, CONTENT_PLACE = 5, 7, 8, 9, 12
"""The places of some of its columns, and the first places of the values of a row."""
FIRST_VALUE = CONTENT_PLACE + 1
CALL_SIZE = 7
"""The values of a call: its position, its columns, and its arguments as they went in."""


class RowShape(NamedTuple):
    """What rows that are restored alike have in common."""

    text: str
    wire_format: str
    role: str
    status: str | None
    lacking: tuple[bool, bool, bool, bool]
    """Whether there is no id, no moment, no id of a call, no name."""
    content_form: str | None
    parts: int | str
    """The JSON of a content around its only long text, the number of its parts, or -1."""
    calls: int


ShapedRow = tuple[tuple[Any, ...], Sequence[Any]]
"""The fields of the shape of a row, and the values of its places: columns, parts and calls."""


def shape_row(row: FormatRow, calls: Sequence[FormatRow]) -> ShapedRow | None:
    """Return a row of a format with its shape; None if no other row is expected to have the same.

    Calls are rows with their position first. Raises ValueError, TypeError where columns hold
    something else than they should.
    """
    _, _, _, wire_format, role, name, status, answered, moment, message_id, text, form, content = (
        row
    )
    if text is None or len(text) > LONGEST_SHAPE or content == "":
        return None
    if moment is not None:
        text = text.replace(f'"timestamp":{moment}', TIME_MARK)
    if QUOTED_ID_KEY in text:
        if message_id is not None:
            text = text.replace(ID_PREFIX + encode_basestring(message_id), ID_MARKS[0])
        if QUOTED_ID_KEY in text:
            text = _mark_ids(text, answered, calls)
    values = row
    parts: int | str = -1
    if form == "json":
        found = _shape_content(row, content)
        if found is None:
            return None
        parts, values = found
    if calls:
        given = _add_call_values(values, calls)
        if given is None:
            return None
        values = given
    lacking = message_id is None, moment is None, answered is None, name is None
    return (text, wire_format, role, status, lacking, form, parts, len(calls)), values


def _shape_content(row: FormatRow, content: str) -> tuple[int | str, Sequence[Any]] | None:
    """Return the shape of a content of JSON, and the values of its row with those in it."""
    start = content.find(PART_TEXT_KEY, 0, LONGEST_PREFIX) + len(PART_TEXT_KEY)
    if start >= len(PART_TEXT_KEY):
        said, end = scanstring(content, start)
        if said and len(content) - end < LONGEST_SUFFIX:
            return f"{content[:start]}{TIME_MARK}{content[end:]}", (*row, said)
    decoded = parse_json(content)
    if isinstance(decoded, list):
        return len(decoded), (*row, decoded, *decoded)
    return (-1, (*row, decoded)) if decoded else None


def _add_call_values(values: Sequence[Any], calls: Sequence[FormatRow]) -> Sequence[Any] | None:
    """Return the values of a row and of its calls; None if one has not the usual shape."""
    found = [*values]
    for call in calls:
        _, call_id, name, form, arguments, extra = call
        if call_id is None or name is None or extra not in USUAL_CALL_TEXTS:
            return None
        found += call
        found.append(parse_json(arguments) if form == "json" else arguments)
    return found if len(calls) <= MOST_CALLS else None


def _mark_ids(text: str, answered: str | None, calls: Sequence[FormatRow]) -> str:
    """Return the text beside a row with marks for the ids of calls."""
    if answered is not None:
        text = text.replace(ID_PREFIX + encode_basestring(answered), ID_MARKS[1])
    for mark, call in zip(CALL_ID_MARKS, calls, strict=False):
        if call[1] is not None:
            text = text.replace(ID_PREFIX + encode_basestring(call[1]), mark)
    return text


class _RowSpecimens:
    """Rows with a text of its own in each place, and the places that a restored message has."""

    def __init__(self, shapes: Iterable[RowShape]) -> None:
        self._moments: dict[int, int] = {}
        self._lists: dict[int, int] = {}
        self._size = 0
        self._needed: set[int] = set()
        self.rows = [*map(self._build_row, shapes)]

    def _build_row(self, shape: RowShape) -> Message:
        start = self._size
        first_call = start + FIRST_VALUE
        if shape.content_form == "json":
            first_call += 1 + (max(0, shape.parts) if isinstance(shape.parts, int) else 0)
        self._size = first_call + CALL_SIZE * shape.calls
        first_calls = range(first_call, self._size, CALL_SIZE)
        moment = TIME_SPECIMEN + start
        self._moments[moment] = start + MOMENT_PLACE
        ids = [
            start + MESSAGE_ID_PLACE,
            start + ANSWERED_PLACE,
            *(place + 1 for place in first_calls),
        ]
        text = shape.text.replace(TIME_MARK, f'"timestamp":{moment}')
        for mark, place in zip(ID_MARKS, ids, strict=False):
            text = text.replace(mark, f'{QUOTED_ID_KEY}{_name_place(place)}"')
        lacks_id, lacks_moment, lacks_answered, lacks_name = shape.lacking
        columns = (
            shape.role,
            None if lacks_name else _name_place(start + NAME_PLACE),
            shape.status,
            None if lacks_answered else _name_place(start + ANSWERED_PLACE),
            None if lacks_moment else moment,
            None if lacks_id else _name_place(start + MESSAGE_ID_PLACE),
            text,
            "text" if shape.content_form == "json" else shape.content_form,
            self._build_content(shape, start),
        )
        return assemble_message(columns, [*map(self._build_call, first_calls)] or None)

    def _build_content(self, shape: RowShape, start: int) -> Any:
        """Return the content of a row; a list is known again as itself or by all its parts."""
        if shape.content_form == "text":
            self._needed.add(start + CONTENT_PLACE)
            return _name_place(start + CONTENT_PLACE)
        if shape.content_form != "json":
            return None
        decoded = start + FIRST_VALUE
        if isinstance(shape.parts, str):
            self._needed.add(decoded)
            return parse_json(shape.parts.replace(TIME_MARK, f'{_name_place(decoded)}"'))
        if shape.parts < 0:
            self._needed.add(decoded)
            return _build_part(decoded)
        places = range(decoded + 1, decoded + 1 + shape.parts)
        self._needed.update(places)
        content = [*map(_build_part, places)]
        self._lists[id(content)] = decoded
        return content

    def _build_call(self, first: int) -> Message:
        """Return a call; its arguments are an object, which some formats require."""
        arguments = first + CALL_SIZE - 1
        self._needed.add(arguments)
        function = {"name": _name_place(first + 2), "arguments": _build_part(arguments)}
        return {"id": _name_place(first + 1), "type": "function", "function": function}

    def compile_builder(self, restored: Any) -> Build | None:
        """Return a function that builds such a message; None if it lacks a value of the rows.

        What a codec looks into is no longer there as it is, and may be different in another row.
        """
        display = render_display(restored, self._find_place)
        return None if self._needed else compile_display(display, remove_type=remove_type)

    def _find_place(self, held: Any) -> str | None:
        if type(held) is int and held in self._moments:
            return self._take(self._moments[held])
        if isinstance(held, str) and SPECIMEN_MARK in held:
            return self._take(int(held.removeprefix(SPECIMEN_MARK)))
        if isinstance(held, list) and id(held) in self._lists:
            place = self._lists[id(held)]
            self._needed.difference_update(range(place + 1, place + 1 + len(held)))
            return self._take(place)
        if isinstance(held, dict) and PART_MARK in held:
            found = self._take(held[PART_MARK])
            return found if "type" in held else f"remove_type({found})"
        return None

    def _take(self, place: int) -> str:
        self._needed.discard(place)
        return f"values[{place}]"


def _name_place(place: int) -> str:
    return f"{SPECIMEN_MARK}{place}"


def _build_part(place: int) -> Message:
    return {"type": "text", PART_MARK: place}


RestoreRows = Callable[[str, Sequence[Message]], MadeT]
"""Returns a message of a format, or what is sent of it, from its rows."""


def restore_shaped_row(shaped: ShapedRow, restore: RestoreRows[Message]) -> Message | None:
    """Return the message that a row holds alone, if messages of its shape have a template."""
    shape, values = shaped
    entry = find_message_template(shape)
    build = entry.template
    if build is None:
        if PART_NUMBER_KEY in shape[0]:
            return None
        build = entry.see_again(_make_message_template, (shape,), restore)
    return build(values) if build else None


def restore_shaped_rows(rows: Sequence[ShapedRow], restore: RestoreRows[Message]) -> Message | None:
    """Return the message that some rows hold, if messages of their shapes have a template."""
    shapes = tuple([shape for shape, _ in rows])
    entry = find_message_template(shapes)
    build = entry.template or entry.see_again(_make_message_template, shapes, restore)
    return build([value for _, values in rows for value in values]) if build else None


def write_shaped_row(shaped: ShapedRow, write: RestoreRows[list[Message]]) -> list[Message] | None:
    """Return what is sent of a row in its own format, if rows of its shape have a template."""
    shape, values = shaped
    if not _is_sent_unchanged(shape, values):
        return None
    entry = find_message_template((write, shape))
    build = entry.template or entry.see_again(_make_message_template, (shape,), write)
    return build(values) if build else None


def _is_sent_unchanged(shape: tuple[Any, ...], values: Sequence[Any]) -> bool:
    """Tell whether a row has only texts and arguments that every writer sends as they are."""
    _, _, role, _, _, form, parts, calls = shape
    said, first_call = values[CONTENT_PLACE], FIRST_VALUE
    if form == "json":
        if role == "tool" or type(parts) is int:
            return False
        said, first_call = values[FIRST_VALUE], FIRST_VALUE + 1
    if calls:
        for place in range(first_call + CALL_SIZE - 1, len(values), CALL_SIZE):
            if type(values[place]) is not dict or JSON_ESCAPE in values[place - 2]:
                return False
    if said is None:
        return True
    return not said.isspace() and (said.isascii() or replace_surrogates(said) is said)


class KeptMessage(NamedTuple):
    """What builds a message of a format again, as often as it is read.

    ``copies`` return new ones of those values that a caller could change, by their places.
    """

    build: Build
    values: list[Any]
    copies: tuple[tuple[int, Callable[[], Any]], ...]

    def restore(self) -> Message:
        """Return the message; nothing in it that can be changed is shared."""
        values = self.values
        if self.copies:
            values = [*values]
            for place, copy in self.copies:
                values[place] = copy()
        message: Message = self.build(values)
        return message


def keep_message(rows: Sequence[ShapedRow], *, is_alone: bool) -> KeptMessage | None:
    """Return what builds the message of some rows, or of one ``is_alone``, if it has a template."""
    shapes = rows[0][0] if is_alone else tuple([shape for shape, _ in rows])
    build = find_message_template(shapes).template
    if build is None:
        return None
    values = [value for _, held in rows for value in held]
    try:
        copies = [
            (place, _copy_later(held))
            for place, held in enumerate(values)
            if type(held) in (dict, list)
        ]
    except ValueError:  # nested too deeply
        return None
    return KeptMessage(build, values, tuple(copies))


def _copy_later(held: Any) -> Callable[[], Any]:
    """Return what copies a value of JSON, in the quickest way. Raises ValueError."""
    within = held.values() if type(held) is dict else held
    if not any(type(each) in (dict, list) for each in within):
        copied: Callable[[], Any] = held.copy().copy  # the caller has the value itself
        return copied
    return partial(marshal.loads, marshal.dumps(held))


@clearable_cache(MOST_TEMPLATES)
def find_message_template(_: tuple[Any, ...], /) -> TemplateEntry[Build]:
    """Return the entry of the messages with rows of some shapes, or of one."""
    return TemplateEntry()


def _make_message_template(
    shapes: Iterable[tuple[Any, ...]], restore: RestoreRows[Any]
) -> Build | None:
    named = [*starmap(RowShape, shapes)]
    specimens = _RowSpecimens(named)
    restored = restore(named[0].wire_format, specimens.rows)
    return specimens.compile_builder(restored)


def find_shaped_part(shaped: ShapedRow) -> Any:
    """Return the part of a message that a row says it is; None if it says nothing."""
    shape, _ = shaped
    return _find_part(shape) if PART_NUMBER_KEY in shape[0] else None


@clearable_cache(MOST_TEMPLATES)
def _find_part(shape: tuple[Any, ...]) -> Any:
    held = find_wire_values(_RowSpecimens([RowShape(*shape)]).rows[0], shape[1])
    return held.get("part") if held else None
