"""The one way to a terminal: what is written there moves no cursor and turns no text around.

Messages, titles, ids and names of files were written by others, and any command may print them. So
while a command runs, a standard stream that is a terminal stands behind a gate, which writes out
whatever could act on it, whoever wrote it and by whichever way. Colours and bars alone are meant to
act. `rich` makes them apart from texts, and a `Screen` writes them past the gate, the texts in them
made safe. A file or a pipe gets what was written, as it is.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast

from .shown import safe


class Gate:
    """A terminal's stream that is written to in safe texts alone."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write a text, with what could act on a terminal written out."""
        return self.stream.write(safe(text))

    def writelines(self, lines: Iterable[str]) -> None:
        """Write texts one after the other."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        if name == "buffer":  # bytes would go past the gate
            raise AttributeError(name)
        return getattr(self.stream, name)


@contextmanager
def gated() -> Iterator[None]:
    """Put a gate before each standard stream that is a terminal."""
    streams = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = map(_before, streams)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = streams


@contextmanager
def ungated() -> Iterator[None]:
    """Let what the project itself says, such as its help, act on a terminal."""
    streams = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = map(behind, streams)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = streams


def behind(stream: TextIO) -> TextIO:
    """Return the stream behind a gate; any other stream as it is."""
    return stream.stream if isinstance(stream, Gate) else stream


def _before(stream: TextIO) -> TextIO:
    return cast(TextIO, Gate(stream)) if stream.isatty() else stream
