"""What a foreign exception tells: with all its causes for a record, without its words for a log.

An exception of a host or a library may quote what it was given: a request, and so what a user said.
Its words go where the messages are, into the database, and to whoever asks a log for everything.
"""

from __future__ import annotations

from collections.abc import Iterator

from .texts import cut_at_line_end, scrub_text

LONGEST_CHAIN = 8
"""Causes that are told, at most."""
_LIMIT = 500
"""Code points told of each."""


def chain_of(error: BaseException) -> str:
    """Return what an exception says, and behind it what each of its causes does."""
    return "; caused by ".join(map(_told, _causes(error)))


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and its causes, each once."""
    seen: dict[int, BaseException] = {}
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen and len(seen) < LONGEST_CHAIN:
        yield cause
        seen[id(cause)] = cause
        cause = _cause(cause)


def _cause(error: BaseException) -> BaseException | None:
    """Return what an exception was raised from, else what was being dealt with when it was."""
    if error.__cause__ is not None or error.__suppress_context__:
        return error.__cause__
    return error.__context__


def _told(error: BaseException) -> str:
    said = _said(error)
    kind = type(error).__name__
    return cut_at_line_end(f"{kind}: {said}" if said else kind, _LIMIT)


def _said(error: BaseException) -> str:
    try:
        return scrub_text(str(error)).strip()
    except Exception:  # noqa: BLE001 - an error whose text cannot be had is still an error
        return ""
