"""Transcripts of other programs as sessions and messages: pure parsers, told apart by content, never by suffix.

Each kind is a row of `KINDS`: what to call it, what it looks like, how it is read. Nothing here knows a store; what a
parser yields can be appended as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from store.errors import StoreError, UnknownTranscript

from . import claude_code, codex, openai, openhands, swe_agent, tau_bench
from .events import Event, Noted, Opened, Said, sketch
from .source import Progress, Source, Value

__all__ = ["KINDS", "Event", "Noted", "Opened", "Said", "read", "size", "sniff"]


class Kind(NamedTuple):
    """A kind of transcript: ``looks`` tells one of its values, ``parse`` reads a whole file."""

    expected: str
    looks: Callable[[Any], bool]
    parse: Callable[[Source], Iterator[Event]]


KINDS = {
    "openai": Kind("messages with a role, in a list, under 'messages' or one a line", openai.looks, openai.parse),
    "tau_bench": Kind("records with a 'traj' and a 'task_id'", tau_bench.looks, tau_bench.parse),
    "swe_agent": Kind("an object with a 'history' of messages", swe_agent.looks, swe_agent.parse),
    "claude_code": Kind("lines with a 'type' and a 'sessionId'", claude_code.looks, claude_code.parse),
    "codex": Kind("lines with a 'type' and a 'payload'", codex.looks, codex.parse),
    "openhands": Kind("events with a 'source', in a list or one a line", openhands.looks, openhands.parse),
}

SNIFFED_VALUES = 200
"""Values, at most, a file may hold before the first that tells its kind."""


def sniff(path: str | PathLike[str]) -> str:
    """Return the kind of transcript a file holds, judged by its content.

    Raises UnknownTranscript, naming what was found and what was expected; StoreError where the file cannot be read.
    """
    return _sniff(_open(path, None))


def read(path: str | PathLike[str], *, kind: str | None = None, progress: Progress | None = None) -> Iterator[Event]:
    """Read a transcript: each session, then its messages, and notes on what was broken or left out.

    ``kind`` None means by content. ``progress`` gets the bytes consumed so far. The same file gives the same events
    each time. Raises StoreError where the file cannot be read, UnknownTranscript where it is none.
    """
    if kind is not None and kind not in KINDS:
        raise StoreError(f"there is no kind of transcript {kind!r}; the kinds are {', '.join(KINDS)}")
    source = _open(path, progress)
    return _events(source, KINDS[kind or _sniff(source)])


def size(path: str | PathLike[str]) -> int:
    """Return a file's size in bytes: what `read` reports progress against. Raises StoreError."""
    try:
        return Path(path).stat().st_size
    except OSError as problem:
        raise _unreadable(path, problem) from problem


def _open(path: str | PathLike[str], progress: Progress | None) -> Source:
    try:
        return Source(path, progress)
    except OSError as problem:
        raise _unreadable(path, problem) from problem


def _events(source: Source, kind: Kind) -> Iterator[Event]:
    try:
        yield from kind.parse(source)
    except OSError as problem:
        raise _unreadable(source.path, problem) from problem
    except RecursionError as problem:
        raise StoreError(f"{source.path}: a message is nested too deeply to be read") from problem


def _sniff(source: Source) -> str:
    first: Value | Noted | None = None
    for item in islice(source.values(), SNIFFED_VALUES):
        first = first or item
        found = next((name for name in KINDS if isinstance(item, Value) and KINDS[name].looks(item.value)), None)
        if found:
            return found
    expected = "; ".join(f"{name} ({kind.expected})" for name, kind in KINDS.items())
    raise UnknownTranscript(f"{source.path} {_describe(source, first)}; expected one of: {expected}")


def _describe(source: Source, first: Value | Noted | None) -> str:
    if source.problem:
        return f"is {source.problem}"
    if first is None:
        return "is empty"
    return f"begins with {sketch(first.value)}" if isinstance(first, Value) else f"cannot be read: {first.text}"


def _unreadable(path: str | PathLike[str], problem: OSError) -> StoreError:
    return StoreError(f"cannot read {str(path)!r}: {problem.strerror or problem}")
