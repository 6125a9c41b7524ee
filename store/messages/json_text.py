"""JSON as text that every database can hold, and what of a value JSON and columns cannot hold."""

from __future__ import annotations

import base64
import json
import math
from typing import Any, TypeGuard

from ..text import is_text

DEPTH_LIMIT = 200

INTEGER_LIMIT = 2**63
"""What an integer column holds is below it."""

_WRAPPED = "="  # no JSON text begins with it
_DIGITS_LIMIT = 13_000  # bits; Python itself refuses to print numbers of over 4,300 digits


def encode(value: object) -> str:
    """Return a JSON value as text that every engine can hold and that decodes to an equal value.

    Lone surrogates are written as escapes. Two halves side by side, which a JSON reader would join
    to one character, are wrapped whole (base64 of the text, after ``=``).
    """
    text = _plainly(value)
    if is_text(text):
        return text
    escaped = _escaped(value)
    if json.loads(escaped) == value:
        return escaped
    return _wrapped(text)


_COMPACT = (",", ":")
_plainly = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=_COMPACT).encode
_escaped = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=_COMPACT).encode


def _wrapped(text: str) -> str:
    as_bytes = text.encode("utf-8", "surrogatepass")
    return _WRAPPED + base64.b64encode(as_bytes).decode("ascii")


def decode(text: str) -> Any:
    """Return the JSON value that `encode` wrote."""
    if text.startswith(_WRAPPED):
        text = base64.b64decode(text[1:]).decode("utf-8", "surrogatepass")
    return json.loads(text)


def utf8_size(text: str) -> int:
    """Return the bytes of a text in UTF-8, in which a lone surrogate takes three."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def is_integer(value: object) -> TypeGuard[int]:
    """Tell a whole number of at most 64 bits, no bool: an integer column holds it exactly."""
    return type(value) is int and -INTEGER_LIMIT <= value < INTEGER_LIMIT


def problem_of(value: object, levels: int = DEPTH_LIMIT) -> str | None:
    """Say why JSON cannot hold a value of at most so many nested levels; None where it can."""
    if value is None or isinstance(value, str):
        return None
    if isinstance(value, int | float):
        return _problem_of_number(value)
    if not isinstance(value, dict | list):
        return f"JSON has no {type(value).__name__}"
    if not levels:
        return f"nested more than {DEPTH_LIMIT} levels deep"
    if isinstance(value, dict) and not all(isinstance(key, str) for key in value):
        return "keys are text"
    below = value.values() if isinstance(value, dict) else value
    problems = (problem_of(each, levels - 1) for each in below)
    return next(filter(None, problems), None)


def _problem_of_number(value: float) -> str | None:
    if isinstance(value, int):
        is_short = value.bit_length() < _DIGITS_LIMIT
        return None if is_short else "a whole number of more than 3,900 digits"
    return None if math.isfinite(value) else f"{value} is no JSON number"
