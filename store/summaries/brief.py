"""The brief transcript: who said what in short, calls by the names of their tools alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from ..messages import Message
from .fitting import (
    RESULT,
    Caps,
    FittedTranscript,
    Ladder,
    Piece,
    Pieces,
    Style,
    ends_of_groups,
    fitted,
    written,
)
from .labels import CHINESE, Labels
from .texts import ELLIPSIS, RESULT_ROLES, SYSTEM_ROLES, extract_message_text, parse_calls, shorten


class TranscriptLimits(NamedTuple):
    """Code points shown of a chat message, and of a tool result."""

    text: int = 500
    result: int = 200


DEFAULT_LIMITS = TranscriptLimits()

BRIEF_FLOOR = 100
"""Code points of a chat message below which it is rather left for the next summary."""

_TEXT = RESULT + 1
_LOWEST = len(ELLIPSIS)


def render_brief_transcript(
    messages: Iterable[Message], limits: TranscriptLimits = DEFAULT_LIMITS
) -> str:
    """Return messages as a summarizer reads them, with labels and without system messages.

    The limit of a chat message holds as well for the text beside tool calls and for the calls'
    names: without it no transcript could be made to fit.
    """
    pieces = _in_pieces(messages, CHINESE)
    return written(pieces, _style(limits), _caps(limits, limits.text))


def fit_brief_transcript(
    messages: Iterable[Message],
    limits: TranscriptLimits = DEFAULT_LIMITS,
    max_chars: int = 12_000,
    *,
    ends: Sequence[int] | None = None,
    labels: Labels = CHINESE,
) -> FittedTranscript:
    """Return a transcript of at most ``max_chars`` that leaves out none of the messages it shows.

    Messages are shortened alike, as little as possible, down to `BRIEF_FLOOR`; then only the first
    ones are shown, as many as fit, up to one of ``ends``, as `fitted` has it.
    """
    pieces = _in_pieces(messages, labels)
    return fitted(pieces, _style(limits), max_chars, ends)


def find_group_ends(messages: Sequence[Message]) -> list[int]:
    """Return after how many messages a cut parts no tool result from what stands before it."""
    return ends_of_groups([message.get("role") in RESULT_ROLES for message in messages])


def _style(limits: TranscriptLimits) -> Style:
    return Style(_ladder(limits), _shown)


def _shown(piece: Piece, cap: int) -> str:
    return shorten(piece.text, cap)


def _ladder(limits: TranscriptLimits) -> Ladder:
    floor = min(BRIEF_FLOOR, limits.text)
    lowest = min(_LOWEST, floor)
    return Ladder(partial(_caps, limits), lowest, floor, limits.text)


def _caps(limits: TranscriptLimits, text: int) -> Caps:
    """Return both limits made smaller alike, that of results first, as their rank is."""
    result = limits.result * text // max(limits.text, 1)
    lowest = min(_LOWEST, limits.result)
    return max(result, lowest), text


def _in_pieces(messages: Iterable[Message], labels: Labels) -> Iterator[Pieces]:
    for message in messages:
        yield _pieces(message, labels)


def _pieces(message: Message, labels: Labels) -> Pieces:
    role = message.get("role")
    if role in SYSTEM_ROLES:
        return []
    text = extract_message_text(message)
    if role in RESULT_ROLES:
        return [Piece(f"[{labels.result}]: ", text, "\n\n", RESULT)]
    names = ", ".join(call.name for call in parse_calls(message))
    if not names:
        return [Piece(f"[{labels.speaker(role)}]: ", text, "\n\n", _TEXT)]
    calls = Piece(f"[{labels.call}]: ", names, "\n\n", _TEXT)
    said = Piece(f"[{labels.assistant}]: ", text, "\n", _TEXT)
    return [said, calls] if text else [calls]
