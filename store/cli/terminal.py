"""Output to a terminal, in which no text of a message moves the cursor or turns text around.

Messages, titles, ids and names of files come from others, and any command may print them. So while
a command runs, each standard stream that is a terminal is replaced by one that escapes every
control character, from any source. Only colours and progress bars may act on the terminal: ``rich``
keeps them apart from texts, and a `Screen` writes them to the original stream, with the texts in
them escaped. Files and pipes get the output unchanged.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TextIO, cast

from .shown import escape_controls


class EscapingStream:
    """A terminal's stream on which control characters are escaped."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write a text with its control characters escaped."""
        return self.stream.write(escape_controls(text))

    def writelines(self, lines: Iterable[str]) -> None:
        """Write texts one after the other."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        if name == "buffer":  # bytes would not be escaped
            raise AttributeError(name)
        return getattr(self.stream, name)


def escape_output() -> AbstractContextManager[None]:
    """Escape control characters on each standard stream that is a terminal."""
    return _replace_streams(_wrap_terminal)


def allow_styles() -> AbstractContextManager[None]:
    """Let what the project itself prints, such as its help, use colours."""
    return _replace_streams(original_stream)


def original_stream(stream: TextIO) -> TextIO:
    """Return the terminal's own stream for an escaping one; any other stream as it is."""
    return stream.stream if isinstance(stream, EscapingStream) else stream


def _wrap_terminal(stream: TextIO) -> TextIO:
    return cast(TextIO, EscapingStream(stream)) if stream.isatty() else stream


@contextmanager
def _replace_streams(replace: Callable[[TextIO], TextIO]) -> Iterator[None]:
    streams = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = map(replace, streams)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = streams
