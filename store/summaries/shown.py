"""What a model is shown of the messages it summarises: a transcript, and one that fits.

A text too long is never cut at its end, where nobody would notice what was lost: each message is shortened, then whole
groups are left for the next summary, and how many messages were shown is said (A2.7).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, chain
from typing import NamedTuple

from ..messages import Message
from .texts import ELLIPSIS, RESULT_ROLES, SYSTEM_ROLES, calls_of, message_content, shortened


class TranscriptLimits(NamedTuple):
    """Code points shown of a chat message (S2.23) and of a tool result (S2.25)."""

    text: int = 500
    result: int = 200


class Fitted(NamedTuple):
    """A transcript within its limit, and how many messages from the first on it shows, each of them."""

    transcript: str
    messages_shown: int


class _Piece(NamedTuple):
    """A line of a transcript: what stands before the text that may be shortened, and after it."""

    before: str
    text: str
    after: str
    is_result: bool = False


LIMITS = TranscriptLimits()

FLOOR = 100
"""Code points of a chat message below which it is rather left for the next summary."""


def transcript(messages: Iterable[Message], limits: TranscriptLimits = LIMITS) -> str:
    """Return messages as a summarizer reads them (S2.22-S2.26).

    The limit of a chat message holds as well for the text beside tool calls and for the calls' names, of which S2.24
    says nothing: without it no transcript could be made to fit.
    """
    return _written(map(_pieces, messages), limits)


def fit(
    messages: Iterable[Message],
    limits: TranscriptLimits = LIMITS,
    max_chars: int = 12_000,
    *,
    ends: Sequence[int] | None = None,
) -> Fitted:
    """Return a transcript of at most ``max_chars`` that leaves nothing out of the messages it says it shows (A2.7).

    Messages are shortened alike, as little as possible, down to `FLOOR`; then only the first ones are shown, as many
    as fit. ``ends``, ascending, are the numbers of messages after which a range may end; by default the ends of whole
    groups, a call with its results. The first end alone goes below the floor; where not even its labels fit,
    ``messages_shown`` is 0. Of many messages no more are taken than it needs to see that the rest does not fit.
    """
    low = min(FLOOR, limits.text)
    taken, pieces, sizes = _taken(messages, _scaled(limits, low), max_chars, ends)
    count = len(taken)
    if sizes[count] > max_chars:
        ends = group_ends(taken) if ends is None else ends
        fitting = [end for end in ends if end <= count and sizes[end] <= max_chars]
        count, low = (fitting[-1], low) if fitting else (next(iter(ends), 0), min(len(ELLIPSIS), low))
    caps, size = range(low, limits.text + 1), _sizer(pieces[:count])
    fits = bisect_right(caps, max_chars, key=lambda cap: size(_scaled(limits, cap)))
    return Fitted(_written(pieces[:count], _scaled(limits, caps[fits - 1])), count) if fits else Fitted("", 0)


def group_ends(messages: Sequence[Message]) -> list[int]:
    """Return after how many messages a cut parts no tool result from what stands before it."""
    following = [message.get("role") in RESULT_ROLES for message in messages[1:]]
    return [end for end, is_result in enumerate([*following, False], 1) if not is_result] if messages else []


def _pieces(message: Message) -> list[_Piece]:
    role = message.get("role")
    if role in SYSTEM_ROLES:
        return []
    text = message_content(message)
    if role in RESULT_ROLES:
        return [_Piece("[工具结果]: ", text, "\n\n", is_result=True)]
    names = ", ".join(call.name for call in calls_of(message)) if message.get("tool_calls") else ""
    if not names:
        return [_Piece("[用户]: " if role == "user" else "[助手]: ", text, "\n\n")]
    return [*([_Piece("[助手]: ", text, "\n")] if text else []), _Piece("[工具调用]: ", names, "\n\n")]


def _limit(piece: _Piece, limits: TranscriptLimits) -> int:
    return limits.result if piece.is_result else limits.text


def _scaled(limits: TranscriptLimits, text: int) -> TranscriptLimits:
    """Return both limits made smaller alike."""
    result = limits.result * text // max(limits.text, 1)
    return TranscriptLimits(text, max(result, min(limits.result, len(ELLIPSIS))))


def _written(pieces: Iterable[list[_Piece]], limits: TranscriptLimits) -> str:
    return "".join(
        f"{piece.before}{shortened(piece.text, _limit(piece, limits))}{piece.after}"
        for each in pieces
        for piece in each
    )


def _taken(
    messages: Iterable[Message], limits: TranscriptLimits, max_chars: int, ends: Sequence[int] | None
) -> tuple[list[Message], list[list[_Piece]], list[int]]:
    """Return messages until they do not fit and the first end is known, their pieces, and their length 0, 1, 2 … long.

    All that fit are among them, and the first that does not, since lengths only grow.
    """
    first = ends[0] if ends else None
    taken: list[Message] = []
    pieces: list[list[_Piece]] = []
    sizes = [0]
    for message in messages:
        if first is None and taken and message.get("role") not in RESULT_ROLES:
            first = len(taken)
        if first is not None and len(taken) >= first and sizes[-1] > max_chars:
            break
        taken.append(message)
        pieces.append(_pieces(message))
        sizes.append(sizes[-1] + _size(pieces[-1], limits))
    return taken, pieces, sizes


def _size(pieces: list[_Piece], limits: TranscriptLimits) -> int:
    size = 0
    for before, text, after, is_result in pieces:
        limit = limits.result if is_result else limits.text
        size += len(before) + len(after) + (min(limit, len(text)))
    return size


def _sizer(pieces: list[list[_Piece]]) -> Callable[[TranscriptLimits], int]:
    """Return what tells the length of a transcript by its limits, without looking at each piece again."""
    flat = list(chain.from_iterable(pieces))
    labels = sum(len(piece.before) + len(piece.after) for piece in flat)
    texts = _shortener([len(piece.text) for piece in flat if not piece.is_result])
    results = _shortener([len(piece.text) for piece in flat if piece.is_result])
    return lambda limits: labels + texts(limits.text) + results(limits.result)


def _shortener(lengths: list[int]) -> Callable[[int], int]:
    """Return what tells the sum of lengths when none may be more than a limit."""
    lengths.sort()
    sums = list(accumulate(lengths, initial=0))

    def shortened_to(limit: int) -> int:
        whole = bisect_right(lengths, limit)
        return sums[whole] + limit * (len(lengths) - whole)

    return shortened_to
