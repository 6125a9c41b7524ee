"""Shorter forms of texts and of JSON values, each saying how much it leaves out.

Lengths are code points, lines end at a line feed. A form is stable: cut again to the same limits, it stays as it is.
All functions are pure, total and linear in the length of what comes in.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

MARKER = re.compile(r"… \([0-9]+ more (?:lines|characters|items|keys)\)")
"""The one way of saying that something was left out."""

ERROR_WORDS = re.compile("error|fail|exception|traceback|fatal|panic|denied|abort|no such|not found", re.IGNORECASE)
"""What a line says that tells why a command failed."""

STEPS = (
    *((10_000, 100, 100), (1000, 20, 50), (500, 20, 50), (200, 10, 20), (100, 5, 20)),
    *((50, 3, 20), (50, 2, 10), (20, 1, 10), (20, 1, 2)),
)
"""Code points of a text, items of a list and keys of an object, tried in turn until a JSON value is small enough."""

KEYS = 20
ROOM = 50
"""Code points that a line with the marker may take."""
_DEPTH = 8
_OMITTED = "…"


def _marker(count: int, what: str) -> str:
    return f"… ({count} more {what})"


def digest(text: str, points: int) -> str:
    """Return the first code points and ``...``, the text itself where it has no more."""
    if len(text) <= points or (len(text) == points + 3 and text.endswith("...")):
        return text
    return text[:points] + "..."


def clipped(text: str, points: int, before_marker: str = "") -> str:
    """Return the first code points and the marker, the text itself where that is no longer."""
    if len(text) <= points or MARKER.fullmatch(text, points + len(before_marker)):
        return text
    cut = f"{text[:points]}{before_marker}{_marker(len(text) - points, 'characters')}"
    return cut if len(cut) < len(text) else text


def outside(text: str, points: int, tail: int) -> str:
    """Return the beginning, a line with the marker and the last ``tail`` code points: ``points`` at most in all."""
    if len(text) <= points:
        return text
    head = points - tail - ROOM
    return f"{text[:head]}\n{_marker(len(text) - head - tail, 'characters')}\n{text[-tail:]}"


def narrowed(text: str, width: int) -> str:
    """Return a text with its longer lines clipped."""
    if not _has_longer(text, width):
        return text
    return "\n".join([clipped(line, width) for line in text.split("\n")])


def _has_longer(text: str, width: int) -> bool:
    place = 0
    while len(text) - place > width:
        place = text.rfind("\n", place, place + width + 1) + 1
        if not place:
            return True
    return False


def count_lines(text: str) -> int:
    """Return how many lines a text has; the last may lack its end."""
    return text.count("\n") + (text[-1:] not in ("", "\n"))


def first(text: str, lines: int, width: int) -> tuple[str, str]:
    """Return the first lines, none wider than ``width``, and the rest of the text ("" where that is all)."""
    if len(text) < lines or text.count("\n") < lines:
        return narrowed(text, width), ""
    end = -1
    for _ in range(lines):
        end = text.find("\n", end + 1)
    if end == len(text) - 1:
        return narrowed(text, width), ""
    return narrowed(text[:end], width), text[end + 1 :]


def first_lines(text: str, lines: int, width: int) -> str:
    """Return the first lines and a line with the marker."""
    shown, rest = first(text, lines, width)
    if not rest:
        return shown
    return f"{shown}\n{rest if MARKER.fullmatch(rest) else _marker(count_lines(rest), 'lines')}"


def last(text: str, lines: int, width: int) -> tuple[str, str]:
    """Return the last lines, none wider than ``width``, and what stands before them."""
    start = len(text) - text.endswith("\n")
    for _ in range(lines):
        start = text.rfind("\n", 0, start)
        if start < 0:
            return narrowed(text, width), ""
    return narrowed(text[start + 1 :], width), text[:start]


def is_cut(text: str) -> bool:
    """Tell a text in which one line is the marker."""
    return " more lines)" in text and any(MARKER.fullmatch(line) for line in text.split("\n"))


def lines_with(pattern: re.Pattern[str], text: str, place: int, most: int) -> Iterator[tuple[int, str]]:
    """Yield the next lines after a place in which a pattern is found, each with the place where it starts."""
    for _ in range(most):
        found = pattern.search(text, place)
        if not found:
            return
        start, place = text.rfind("\n", 0, found.start()) + 1, text.find("\n", found.end()) + 1 or len(text) + 1
        yield start, text[start : place - 1]


def beginning(text: str, points: int) -> int:
    """Return where the first code points end: with a line where that is possible."""
    return max(text.rfind("\n", 0, points + 1), 0) or points


def both_ends(text: str, points: int, lines: int, width: int, telling: Iterable[tuple[int, str]] = ()) -> str:
    """Return the first code points, the marker, what is telling of the lines left out, and the last lines.

    Telling lines are given with the places where they start in the text.
    """
    tail, before = last(text, lines, width)
    end = beginning(text, points)
    if end >= len(before):
        return narrowed(text, width)
    kept = [clipped(line, width) for start, line in telling if end <= start < len(before)]
    left = count_lines(before[end:].removeprefix("\n")) - len(kept)
    return "\n".join([before[:end], *([_marker(left, "lines")] if left else []), *kept, tail])


def trimmed(value: Any, points: int, items: int, keys: int = KEYS, depth: int = _DEPTH) -> Any:
    """Return a JSON value with its texts clipped, its lists and objects cut short, nothing too deep."""
    if isinstance(value, str):
        return clipped(value, points)
    if not isinstance(value, list | dict) or not value:
        return value
    if not depth:
        return _marker(len(value), "items" if isinstance(value, list) else "keys")
    if isinstance(value, list):
        whole = len(value) <= items or (len(value) == items + 1 and is_marker(value[-1]))
        shown = [trimmed(each, points, items, keys, depth - 1) for each in (value if whole else value[:items])]
        return shown if whole else [*shown, _marker(len(value) - items, "items")]
    whole = len(value) <= keys or (len(value) == keys + 1 and is_marker(value.get(_OMITTED)))
    fields = {
        key: trimmed(value[key], points, items, keys, depth - 1) for key in islice(value, len(value) if whole else keys)
    }
    return fields if whole else {**fields, _OMITTED: _marker(len(value) - keys, "keys")}


def is_marker(value: object) -> bool:
    """Tell whether a value stands for what was left out."""
    return isinstance(value, str) and MARKER.fullmatch(value) is not None


def _refused(constant: str) -> None:
    raise ValueError(constant)


decoded = json.JSONDecoder(parse_constant=_refused).decode
"""Return the value of JSON text; ``ValueError`` for all else, NaN included, ``RecursionError`` if it is too deep."""

_plainly = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
_SURROGATE = re.compile("[\ud800-\udfff]")


def size(value: Any) -> int:
    """Return how many code points a value has as JSON text."""
    return len(_plainly(value))


def encoded(value: Any) -> str:
    """Return JSON text that UTF-8 can hold: halves of a character are joined, lone ones escaped.

    Raises ``ValueError`` for a number that JSON has not.
    """
    joined = _plainly(value).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", joined)
