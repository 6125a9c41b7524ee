"""A transcript file as JSON values, whatever its suffix says: one document, or lines of JSON read one at a time.

What crashed writers leave behind is survived here, once for all kinds: broken lines, two values on a line, comment
lines at the top, a byte order mark, bad UTF-8. Nothing here knows what the values mean.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable, Iterator
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from .events import Noted

Progress = Callable[[int], None]

PROGRESS_STEP = 256 * 1024
"""Bytes between two calls of a progress function."""

_decode = json.JSONDecoder().raw_decode


class Value(NamedTuple):
    """One JSON value and the line it began on, counted from 1; None for a document, whose parts have no lines."""

    line: int | None
    value: Any


class Source:
    """A transcript file. Lines are streamed; a document is held whole, because JSON cannot be read otherwise."""

    def __init__(self, path: str | PathLike[str], progress: Progress | None = None) -> None:
        self.path = Path(path)
        self.problem: str | None = None
        self._progress = progress or (lambda _: None)
        self._document = self._read_document() if self._begins_document() else None

    @property
    def stem(self) -> str:
        """Return the file's name without its last suffix, as text any store can hold."""
        return self.path.stem.encode("utf-8", "surrogateescape").decode("utf-8", "replace")

    def values(self) -> Iterator[Value | Noted]:
        """Return the file's values in order, with a note in the place of what could not be read.

        Raises OSError where the file cannot be read.
        """
        if self._document is None:
            yield from self._values_of_lines()
        else:
            yield self._document
            self._progress(self.path.stat().st_size)

    def _values_of_lines(self) -> Iterator[Value | Noted]:
        before, consumed, reported = True, 0, 0
        with self.path.open("rb") as file:
            for number, raw in enumerate(file, 1):
                consumed += len(raw)
                line = _content(number, raw)
                before = before and (not line or line.startswith(b"//"))
                if line and not before:
                    yield from _values_of(number, line)
                if consumed - reported >= PROGRESS_STEP:
                    reported = consumed
                    self._progress(consumed)
        self._progress(consumed)

    def _begins_document(self) -> bool:
        """Tell whether the first line is only the beginning of a value, as in a pretty-printed document."""
        with self.path.open("rb") as file:
            lines = (_content(number, raw) for number, raw in enumerate(file, 1))
            first = next((line for line in lines if line and not line.startswith(b"//")), b"")
        if not first.startswith((b"{", b"[")):
            return False
        try:
            _decode(first.decode())
        except json.JSONDecodeError as problem:
            # no JSON string goes over the end of a line: an open one means a cut line, not the start of a document
            return not problem.msg.startswith("Unterminated string")
        except (ValueError, RecursionError):
            return False
        return False

    def _read_document(self) -> Value | None:
        try:
            return Value(None, json.loads(self.path.read_bytes().decode("utf-8-sig")))
        except (ValueError, RecursionError) as problem:
            self.problem = _explain(problem)
            return None


def _content(number: int, raw: bytes) -> bytes:
    return (raw.removeprefix(codecs.BOM_UTF8) if number == 1 else raw).strip()


def _values_of(number: int, line: bytes) -> Iterator[Value | Noted]:
    """Return every value of a line: writers that crash or race leave two side by side (8 lines of 606 real files)."""
    try:
        text = line.decode().strip()
        place = 0
        while place < len(text):
            value, end = _decode(text, place)
            yield Value(number, value)
            place = _gap(text, end)
    except (ValueError, RecursionError) as problem:
        yield Noted(number, f"line {number} is left out, it is {_explain(problem)}", True)


def _gap(text: str, place: int) -> int:
    """Return where the next value of a line begins."""
    while place < len(text) and text[place].isspace():
        place += 1
    return place


def _explain(problem: Exception) -> str:
    if isinstance(problem, json.JSONDecodeError):
        where = f"line {problem.lineno}, " if problem.lineno > 1 else ""
        return f"not JSON: {problem.msg} at {where}character {problem.colno}"
    if isinstance(problem, UnicodeDecodeError):
        return f"not UTF-8: {problem.reason} at byte {problem.start + 1}"
    return "nested too deeply" if isinstance(problem, RecursionError) else f"not JSON: {problem}"
