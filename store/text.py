"""Texts that every engine holds, texts made shorter, and JSON in texts.

There are four ways to shorten a text. They differ in what they tell of the rest: nothing
(`truncate`, `truncate_to_line`), its length (`clip_text`), or its end (`truncate_middle`). Lengths
are in code points. A shortened text that is shortened again to the same limits stays as it is. All
these functions are pure, and linear in the length of their input.

Functions that often get the same texts cache their results (`clearable_cache`). They do not know
which session a text belongs to, so all these caches are cleared when words are removed from any.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, ParamSpec, TypeGuard, TypeVar

CachedParams = ParamSpec("CachedParams")
CachedResultT = TypeVar("CachedResultT")

ELLIPSIS = "…"
"""The sign for the rest of a text, unless the caller has another one."""
ELLIPSES = (ELLIPSIS, "...")
"""The signs for it in Chinese, and in English, which is ASCII."""

MARKER = re.compile(
    r"(?:…|\.\.\.) \(([0-9]+) more (lines|characters|items|keys)\)"
    r"|… \(还有 [0-9]+ (?:行|个字符|项|个键)\)"
)
"""The one form of the number of omitted things, and the same in the language of a policy."""

MARKER_ROOM = 50
"""Code points that a line with the marker may take."""

JsonFields = dict[str, Any]
"""The fields of a JSON object."""

JsonDefault = Callable[[Any], Any]
"""Makes a JSON value from a value that is not one."""

_QUERY_PASSWORD = re.compile(r"(?<=password=)[^&]*")
_USER_PASSWORD = re.compile(r"(?<=[/:])([^:/?#@]*:).*(?=@)")

READ_FACTOR = 4
"""Only this many times the limit of a text is read to put it into one line."""


def is_text(value: object) -> TypeGuard[str]:
    """Tell a string without NUL or surrogates: a text column of every engine holds it exactly."""
    if not isinstance(value, str) or "\0" in value:
        return False
    return value.isascii() or encode_utf8(value) is not None


def hide_password(url: str) -> str:
    """Return a URL with its passwords replaced by ***, even if it is malformed."""
    return _USER_PASSWORD.sub(r"\1***", _QUERY_PASSWORD.sub("***", url))


def encode_utf8(value: object) -> bytes | None:
    """Return a text in UTF-8; None for a value that a text column does not hold."""
    if not isinstance(value, str) or "\0" in value:
        return None
    try:
        return str.encode(value)
    except UnicodeEncodeError:
        return None


as_plain_str = str.__str__
"""Return a text as a plain ``str``, even if its class overrides ``__str__``."""


def check_text(text: str) -> str:
    """Return a text. Raises ValueError for a text that no database or API takes."""
    if not is_text(text):
        raise ValueError("no database and no API takes a text with NUL or a lone surrogate")
    return text


def truncate(
    text: str,
    limit: int,
    *,
    ellipsis: str = ELLIPSIS,
    at_line_end: bool = False,
) -> str:
    """Return the beginning of a text in at most ``limit`` code points, the ellipsis included.

    ``at_line_end``: cut at the end of a line if there is one in the last half.
    """
    if len(text) <= limit:
        return text
    room = max(limit - len(ellipsis), 0)
    if at_line_end:
        line_end = text.rfind("\n", 0, room + 1)
        room = line_end + 1 if room // 2 <= line_end < room else room
    return (text[:room] + ellipsis)[:limit]


def truncate_to_line(text: str, limit: int, *, ellipsis: str = ELLIPSIS) -> str:
    """Return the beginning of a text as one line of at most ``limit`` code points.

    Only the beginning of a very long text is read.
    """
    beginning = text[: READ_FACTOR * limit]
    line = " ".join(beginning.split())
    if len(beginning) < len(text):
        line += ellipsis
    return truncate(line, limit, ellipsis=ellipsis)


def clip_text(text: str, points: int, before_marker: str = "") -> str:
    """Return the first code points and the marker, or the text itself if that is no longer."""
    if len(text) <= points or MARKER.fullmatch(text, points + len(before_marker)):
        return text
    cut = f"{text[:points]}{before_marker}{format_marker(len(text) - points, 'characters')}"
    return cut if len(cut) < len(text) else text


def truncate_middle(
    text: str,
    limit: int,
    *,
    tail: int,
    gap: str | None = None,
) -> str:
    """Return both ends of a text in at most ``limit`` code points, ``tail`` of them its last.

    ``gap`` is put on a line of its own between them; None: the marker.
    """
    if len(text) <= limit:
        return text
    room = MARKER_ROOM if gap is None else len(gap) + 2
    head = limit - tail - room
    if gap is None:
        gap = format_marker(len(text) - head - tail, "characters")
    return f"{text[:head]}\n{gap}\n{text[-tail:]}"


def format_marker(count: int, what: str) -> str:
    """Return the marker for a number of omitted things."""
    return f"… ({count} more {what})"


def is_marker(value: object) -> bool:
    """Tell whether a value is a marker for omitted things."""
    return isinstance(value, str) and MARKER.fullmatch(value) is not None


# Below: JSON.


def parse_object(value: object) -> JsonFields:
    """Return a JSON object, or the object in a JSON text; {} for any other value."""
    if isinstance(value, str):
        bare = value.strip()
        if bare[:1] != "{" or bare[-1:] != "}":
            return {}
        try:
            value = parse_json(bare)
        except (ValueError, RecursionError):
            return {}
    return value if isinstance(value, dict) else {}


def get_at_path(path: tuple[str, ...], value: Any) -> Any:
    """Return the value at a path of keys in a JSON value; None if there is none."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def wrap_in_list(value: object) -> list[Any]:
    """Return the items of a list; any other value is the only item."""
    return value if isinstance(value, list) else [value]


_decode_beginning = json.JSONDecoder().raw_decode


def parse_json(bare: str) -> Any:
    """Return the value of JSON text without space around it, at half the price of ``json.loads``.

    Raises ``ValueError`` for any other text, and ``RecursionError`` if it is too deep.
    """
    value, end = _decode_beginning(bare)
    if end < len(bare):
        raise ValueError("there is more behind the value")
    return value


def _refuse_json_constant(constant: str) -> None:
    raise ValueError(constant)


decode_json = json.JSONDecoder(parse_constant=_refuse_json_constant).decode
"""Return the value of JSON text.

Raises ``ValueError`` for any other text, NaN included, and ``RecursionError`` if it is too deep.
"""

_encode_unescaped = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
_ACTING_CHARACTERS = re.compile("[\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Characters that control a terminal, change the text direction or cannot be written at all."""


def format_json_line(
    value: Any, *, ascii_only: bool = False, default: JsonDefault | None = None
) -> str:
    """Return a value as JSON of one line, with control and unwritable characters as escapes."""
    text = json.dumps(value, ensure_ascii=ascii_only, default=default)
    return _ACTING_CHARACTERS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


_SURROGATE = re.compile("[\ud800-\udfff]")


def measure_json(value: Any) -> int:
    """Return the number of code points of a value as JSON text."""
    return len(_encode_unescaped(value))


def encode_json(value: Any) -> str:
    """Return JSON text that UTF-8 can hold: halves of a character are joined, lone ones escaped.

    Raises ``ValueError`` for a number that JSON does not have.
    """
    halves = _encode_unescaped(value).encode("utf-16-le", "surrogatepass")
    joined = halves.decode("utf-16-le", "surrogatepass")
    return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", joined)


_CONSONANT_Y = re.compile(r"(?<![aeiou])y$")


def format_count(number: int, noun: str) -> str:
    """Return a number of things in words: 1 result, 2,000 results, 3 entries."""
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {_CONSONANT_Y.sub('ie', noun)}s"


_cache_clearers: list[Callable[[], None]] = []


def clearable_cache(
    most: int,
) -> Callable[[Callable[CachedParams, CachedResultT]], Callable[CachedParams, CachedResultT]]:
    """Let a function cache its results for the last ``most`` arguments."""

    def remembering(
        function: Callable[CachedParams, CachedResultT],
    ) -> Callable[CachedParams, CachedResultT]:
        made = lru_cache(maxsize=most)(function)
        _cache_clearers.append(made.cache_clear)
        return made  # type: ignore[return-value]  # it takes what the function takes

    return remembering


def clear_caches() -> None:
    """Clear all caches made by `clearable_cache`."""
    for forget in _cache_clearers:
        forget()
