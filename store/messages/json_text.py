"""JSON as text that every database can hold, and values that JSON and columns cannot hold."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable
from typing import Any, TypeGuard, TypeVar

from ..errors import VERIFY_HINT, Damaged
from ..text import is_text, parse_json

DEPTH_LIMIT = 200

INTEGER_LIMIT = 2**63
"""An integer column holds only integers below it."""

SIZE_LIMIT = 64 * 1024 * 1024
"""Bytes that a message may take as stored text: beyond it engines slow down, then refuse."""

DecodedT = TypeVar("DecodedT")

_WRAP_MARK = "="  # no JSON text begins with it
_BITS_LIMIT = 13_000  # Python itself refuses to print numbers of over 4,300 digits


def encode(value: object) -> str:
    """Return a JSON value as text that every engine can hold and that decodes to an equal value.

    Lone surrogates are written as escapes. If a text has two halves side by side, which a JSON
    reader would join to one character, the value is wrapped whole (base64 of the text, after
    ``=``).
    """
    text = _encode_plain_json(value)
    if is_text(text):
        return text
    escaped = _encode_ascii_json(value)
    if json.loads(escaped) == value:
        return escaped
    as_bytes = text.encode("utf-8", "surrogatepass")
    return _WRAP_MARK + base64.b64encode(as_bytes).decode("ascii")


_COMPACT_SEPARATORS = (",", ":")
_encode_plain_json = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, separators=_COMPACT_SEPARATORS
).encode
_encode_ascii_json = json.JSONEncoder(
    ensure_ascii=True, allow_nan=False, separators=_COMPACT_SEPARATORS
).encode


def build_encoder(
    write_text: Callable[[str], str], separators: tuple[str, str]
) -> Callable[[Any], str]:
    """Return a function that writes a value that JSON has: one in C, if there is one.

    `json.JSONEncoder` makes such a function for each value, and looks for lists within themselves.
    """
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        is_ascii = write_text is json.encoder.encode_basestring_ascii
        return json.JSONEncoder(ensure_ascii=is_ascii, separators=separators).encode
    pieces = make(None, None, write_text, None, *reversed(separators), False, False, True)
    return lambda value: "".join(pieces(value, 0))


encode_checked = build_encoder(json.encoder.encode_basestring, _COMPACT_SEPARATORS)
"""Return a value in which `find_json_problem` found none as JSON, which may have surrogates."""


def decode(text: str) -> Any:
    """Return the JSON value written by `encode`. Raises Damaged."""
    if not isinstance(text, str):
        raise Damaged(f"a row holds {text!r:.60} instead of JSON; {VERIFY_HINT}")
    try:
        if text.startswith(_WRAP_MARK):
            text = base64.b64decode(text[1:]).decode("utf-8", "surrogatepass")
        return parse_json(text)
    except (ValueError, RecursionError) as error:
        raise Damaged(f"a row holds no JSON: {text!r:.60}; {VERIFY_HINT}") from error


def decode_as(kind: type[DecodedT], text: str) -> DecodedT:
    """Return the JSON value of a given type written by `encode`. Raises Damaged."""
    value = decode(text)
    if not isinstance(value, kind):
        raise Damaged(f"a row holds {text!r:.60}, which is not {kind.__name__}; {VERIFY_HINT}")
    return value


def count_utf8_bytes(text: str) -> int:
    """Return the number of UTF-8 bytes of a text, with three bytes for a lone surrogate."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def is_integer(value: object) -> TypeGuard[int]:
    """Tell a whole number of at most 64 bits, no bool: an integer column holds it exactly."""
    return type(value) is int and -INTEGER_LIMIT <= value < INTEGER_LIMIT


def find_json_problem(value: object) -> str | None:
    """Return why JSON, or a message, cannot hold a value; None if it can."""
    try:
        _ValueWalk().least(value, DEPTH_LIMIT)
    except _UnfitError as unfit:
        return str(unfit)
    return None


class _UnfitError(Exception):
    """Raised for a value that cannot be held; the text says why."""


class _ValueWalk:
    """A walk through a value that may contain the same list or object again and again.

    A value that is small in memory may be endless as text. So the walk visits each list and object
    once for each level at which it is found, and counts the least length of the text.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[int, int]] = {}  # levels left, characters

    def least(self, value: object, levels: int) -> int:
        """Return the least number of characters of a value, to a depth of ``levels``."""
        if isinstance(value, str):
            return len(value) + 2
        if not isinstance(value, dict | list):
            if isinstance(value, int):
                if value.bit_length() > _BITS_LIMIT:
                    raise _UnfitError("a whole number of more than 13,000 bits")
            elif isinstance(value, float):
                if not math.isfinite(value):
                    raise _UnfitError(f"{value} is no JSON number")
            elif value is not None:
                raise _UnfitError(f"JSON has no {type(value).__name__}")
            return 1
        left, size = self._known.get(id(value), (DEPTH_LIMIT + 1, 0))
        if left > levels:
            size = self._within(value, levels)
            self._known[id(value)] = levels, size
        return size

    def _within(self, value: dict[Any, Any] | list[Any], levels: int) -> int:
        if not levels:
            raise _UnfitError(f"nested more than {DEPTH_LIMIT} levels deep")
        size = 2
        for each in value.values() if isinstance(value, dict) else value:
            size += len(each) + 2 if type(each) is str else self.least(each, levels - 1)
        if isinstance(value, dict):
            try:
                size += len("".join(value)) + 3 * len(value)
            except TypeError:
                raise _UnfitError("keys are text") from None
        if size > _ENDLESS_SIZE:
            raise _UnfitError(f"as text it takes more than {SIZE_LIMIT:,} bytes")
        return size


_ENDLESS_SIZE = 2 * SIZE_LIMIT  # what is stored is a little shorter than the text of the whole
