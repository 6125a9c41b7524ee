"""Prepare the rows of messages of a format by templates.

The shape of a message is everything in it except its texts: its keys in their order, the values
that name the kinds of it and its parts, and the places of texts and of the arguments of calls.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from hashlib import sha256
from itertools import count
from json.encoder import encode_basestring
from typing import Any, NamedTuple

from ..formats import (
    MOST_TEMPLATES,
    SPECIMEN_MARK,
    Build,
    TemplateEntry,
    compile_display,
    encode_message,
    render_display,
)
from ..messages import (
    SIZE_LIMIT,
    Message,
    PreparedMessage,
    StoredCall,
    TextSize,
    count_utf8_bytes,
    encode_checked,
    encode_narrow_bytes,
    find_json_problem,
    has_no_time,
    make_columns,
    prepare_object,
)
from ..text import clearable_cache, is_text
from ..tokens import FRAMING_TOKENS, count_message_tokens, estimate, message_text

KIND_KEYS = frozenset(("type", "role", "status"))
"""Keys whose texts name the kind of something: they are part of the shape."""
INPUT_KEYS = frozenset(("input", "args", "arguments", "action"))
"""Keys of objects that are stored as one JSON text, whatever is in them."""
SMALL_SIZE = SIZE_LIMIT // 8
"""Code points of a message up to which it is certainly within the limit as stored."""
LONGEST_ID = 500
DEEPEST_SHAPE = 6
MOST_PLACES = 64
PLACES = re.compile(rf'("?){SPECIMEN_MARK}([0-9]+)\.\1|\{{"{SPECIMEN_MARK}([0-9]+):":null\}}')
"""The texts of a specimen in a text made of it, in quotes if that is JSON; and its objects."""


class UnusualMessageError(Exception):
    """Raised for a message that has no shape, as it may be one that cannot be stored."""


def _trace_value(value: Any, key: Any, values: list[Any], levels: int) -> Any:
    """Return the shape of a value; add the values of its places. Raises UnusualMessageError."""
    kind = type(value)
    if kind is str:
        if not value or key in KIND_KEYS:
            return value
        if key == "id" and len(value) > LONGEST_ID:
            raise UnusualMessageError
        values.append(value)
        return str
    if kind is dict:
        if key in INPUT_KEYS:
            values.append(value)
            return dict
        if levels:
            levels -= 1
            shapes = [_trace_value(held, name, values, levels) for name, held in value.items()]
            return ("{", *value, *shapes)
    elif kind is list:
        if levels and len(values) + len(value) < MOST_PLACES:
            return ("[", *[_trace_value(each, None, values, levels - 1) for each in value])
    elif value is None or kind is bool or kind is int:
        return kind, value
    raise UnusualMessageError


def _build_specimen(value: Any, key: Any, number: Callable[[], int]) -> Any:
    """Return a value with a text or an object of its own in each place, in the same order."""
    if type(value) is str and value and key not in KIND_KEYS:
        return f"{SPECIMEN_MARK}{number()}."
    if type(value) is dict:
        if key in INPUT_KEYS:
            return {f"{SPECIMEN_MARK}{number()}:": None}
        return {name: _build_specimen(held, name, number) for name, held in value.items()}
    if type(value) is list:
        return [_build_specimen(each, None, number) for each in value]
    return value


class RowTemplate(NamedTuple):
    """How to prepare one row of a message."""

    build: Build
    """Returns its columns, its calls, its message in the shape of a chat, and texts of tokens."""
    said: TextSize
    """The size of the text that a model is sent of each row."""


class RowsTemplate(NamedTuple):
    """How to prepare the rows of the messages of a shape."""

    wire_format: str
    json_places: tuple[int, ...]
    """The places of values that are in JSON; their JSON texts follow the values."""
    rows: tuple[RowTemplate, ...]

    def prepare(self, message: Message, values: list[Any]) -> list[PreparedMessage] | None:
        """Return the rows of a message; None if they cannot be stored as any others are."""
        if not all(is_text(each) if type(each) is str else is_object(each) for each in values):
            return None
        for place in self.json_places:
            value = values[place]
            is_plain = type(value) is str
            values.append(encode_basestring(value) if is_plain else encode_checked(value))
            if not is_plain and not is_text(values[-1]):
                return None
        prepared = [self._prepare_row(row, values) for row in self.rows]
        if sum(map(len, filter(None, values))) > SMALL_SIZE:
            return None
        prepared[-1] = prepared[-1]._replace(came=message)
        return prepared

    def _prepare_row(self, row: RowTemplate, values: list[Any]) -> PreparedMessage:
        columns, calls, chat, texts = row.build(values)
        content = columns.content
        wide = b"" if content is None else content.encode()
        length, size = row.said
        for text in texts:
            length += len(text)
            size += len(wide) if text is content else count_utf8_bytes(text)
        return PreparedMessage(
            columns,
            calls,
            chat,
            sha256(encode_narrow_bytes(columns, calls) + wide).digest(),
            len(wide) if columns.content_form == "text" else None,
            self.wire_format,
            TextSize(length, size),
        )


def is_object(value: Any) -> bool:
    """Tell an object of JSON."""
    return find_json_problem(value) is None


def prepare_by_template(message: Message, name: str | None) -> list[PreparedMessage] | None:
    """Return the rows of a message of a format, if messages of its shape were prepared before.

    Without a name its shape decides the format. None: it is prepared like any other.
    """
    if not has_no_time(message):
        return None
    values: list[Any] = []
    try:
        shape = _trace_value(message, None, values, DEEPEST_SHAPE)
    except UnusualMessageError:
        return None
    entry = find_rows_template((name, shape))
    template = entry.template or entry.see_again(_make_rows_template, message, name)
    return template.prepare(message, values) if template else None


@clearable_cache(MOST_TEMPLATES)
def find_rows_template(_: tuple[str | None, Any], /) -> TemplateEntry[RowsTemplate]:
    """Return the entry of the messages of a shape in a format."""
    return TemplateEntry()


def _make_rows_template(message: Message, name: str | None) -> RowsTemplate | None:
    numbers = count()
    specimen = _build_specimen(message, None, numbers.__next__)
    wire_format, rows = encode_message(specimen, name, 0)
    if wire_format is None:
        return None
    places = _JsonPlaces(next(numbers))
    templates = [*map(places.make_row_template, [prepare_object(row, 0) for row in rows])]
    return RowsTemplate(wire_format, tuple(places.places), tuple(templates))


class _JsonPlaces:
    """The places whose values are in JSON; their JSON texts follow the values."""

    def __init__(self, values: int) -> None:
        self._values = values
        self.places: list[int] = []

    def make_row_template(self, row: PreparedMessage) -> RowTemplate:
        """Return the template that makes a row like that of a specimen."""
        calls = "".join(f"make_call({self._render(call)}), " for call in row.calls)
        said = message_text(row.message)
        found = [*PLACES.finditer(said)]
        same = PLACES.sub("", said)
        texts = "".join(f"{self._render_place(said, each)}, " for each in found)
        display = (
            f"(make_columns({self._render(row.columns)}), ({calls}), {self._render(row.message)}, "
            f"({texts}))"
        )
        build = compile_display(display, make_columns=make_columns, make_call=make_call)
        if count_message_tokens(row.message, estimate) != FRAMING_TOKENS + estimate(said):
            raise UnusualMessageError  # pictures count as well
        return RowTemplate(build, TextSize(len(same), count_utf8_bytes(same)))

    def _render(self, specimen: Any) -> str:
        return render_display(specimen, self._find_place)

    def _find_place(self, held: Any) -> str | None:
        if isinstance(held, dict) and len(held) == 1:
            found = PLACES.fullmatch(encode_checked(held))
            return f"values[{found[3]}]" if found and found[3] else None
        if not isinstance(held, str) or SPECIMEN_MARK not in held:
            return None
        end, pieces = 0, []
        for found in PLACES.finditer(held):
            pieces += [repr(held[end : found.start()]), self._render_place(held, found)]
            end = found.end()
        pieces.append(repr(held[end:]))
        return " + ".join(each for each in pieces if each != "''")

    def _render_place(self, text: str, found: re.Match[str]) -> str:
        """Return the expression for a place in a text."""
        if found[2] and not found[1]:
            if text[: found.start()].endswith('"'):
                raise UnusualMessageError  # in JSON, with more of the same text
            return f"values[{found[2]}]"
        place = int(found[2] or found[3])
        if place not in self.places:
            self.places.append(place)
        return f"values[{self._values + self.places.index(place)}]"


make_call: Callable[[Sequence[Any]], StoredCall] = partial(tuple.__new__, StoredCall)
