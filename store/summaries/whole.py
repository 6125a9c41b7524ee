"""The whole transcript: the messages themselves, as a model needs them to write an archive.

Texts and results are whole, calls have their arguments, and each message says when it was said.
Only where there is no room for all of that do texts give way, the largest of a rank first:
`GIVES_WAY` says in which order. So paths, commands and instructions are kept for as long as there
is output to be shortened instead.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache, partial
from typing import Any, NamedTuple

from ..messages import Message
from ..ready import Language
from ..text import truncate_middle
from ..tools import answered_call_id, compress, markers_in
from .fitting import RESULT, Caps, FittedTranscript, Ladder, Piece, Pieces, Style, fitted
from .labels import CHINESE, ENGLISH, Labels
from .summary import to_datetime
from .texts import (
    RESULT_ROLES,
    SYSTEM_ROLES,
    GivenCall,
    extract_message_text,
    flatten_to_line,
    index_calls,
    make_unknown_call,
    parse_calls,
    parse_json,
    scrub_text,
    shorten,
)

SAID, NEWEST, ASKED = range(RESULT + 1, RESULT + 4)
"""Ranks: what an assistant said and called for; the same and results of late; what users said."""

FLOOR = 100
"""Code points of any text below which its message is rather left for the next summary."""

GIVES_WAY: tuple[tuple[int, int], ...] = (
    (RESULT, 8000),
    (NEWEST, 16_000),
    (RESULT, 1000),
    (SAID, 4000),
    (NEWEST, 4000),
    (RESULT, 200),
    (SAID, 500),
    (ASKED, 4000),
    (NEWEST, 500),
    (RESULT, FLOOR),
    (SAID, FLOOR),
    (NEWEST, FLOOR),
    (ASKED, FLOOR),
)
"""Which rank gives way, and down to how many code points a text; then the next of the table."""

NEWEST_MESSAGES = 20
"""How many of the last messages shown are the newest."""

SHORT_FORM_FROM = 1000
"""Code points of room from which a result is told in its short form rather than by its ends."""

BOTH_ENDS_FROM = 200
"""Code points of room from which a text shows its end as well as its beginning."""

_LOWEST = 3
_NAME_LIMIT = 80

_WORDS = "|".join(re.escape(word) for word in (*ENGLISH, *CHINESE))
_FORGED = re.compile(rf"^([^\S\n]*)\[(?=(?:{_WORDS})\b)", re.MULTILINE)


class DatedMessage(NamedTuple):
    """A message, and when it was said (ms), as far as is known."""

    message: Message
    at: int | None = None


Kinds = Mapping[str, Any]
"""Of what kind each tool is."""


def fit_whole_transcript(
    messages: Iterable[DatedMessage],
    max_chars: int,
    labels: Labels,
    kinds: Kinds,
) -> FittedTranscript:
    """Return a transcript of at most ``max_chars``, of all messages or of the first that fit.

    ``kinds`` says of what kind a tool is, for the short forms of results.
    """
    language: Language = "zh" if labels is CHINESE else "en"
    style = Style(_ladder(max_chars), partial(_shown, kinds, language), _ranked)
    return fitted(_pieces(messages, labels), style, max_chars)


def _ladder(max_chars: int) -> Ladder:
    """Return the rungs of `GIVES_WAY`: one for each code point by which a rank gives way."""
    caps = [max_chars] * (ASKED + 1)
    steps: list[_Step] = []
    for rank, level in GIVES_WAY:
        low = min(level, caps[rank])
        steps.append(_Step(rank, caps[rank] - low))
        caps[rank] = low
    steps.reverse()
    highest = FLOOR + sum(step.height for step in steps)
    return Ladder(partial(_caps, steps), _LOWEST, FLOOR, highest)


class _Step(NamedTuple):
    """A part of a ladder, on which the texts of one rank grow."""

    rank: int
    height: int


def _caps(steps: list[_Step], rung: int) -> Caps:
    caps = [min(rung, FLOOR)] * (ASKED + 1)
    left = rung - FLOOR
    for rank, height in steps:
        if left <= 0:
            break
        caps[rank] += min(left, height)
        left -= height
    return caps


def _ranked(shown: list[Pieces]) -> list[Pieces]:
    """Return pieces, those of the last messages ranked as the newest but for users' texts."""
    older, last = shown[:-NEWEST_MESSAGES], shown[-NEWEST_MESSAGES:]
    return [*older, *map(_newest, last)]


def _newest(pieces: Pieces) -> Pieces:
    return [piece if piece.rank == ASKED else piece._replace(rank=NEWEST) for piece in pieces]


def _pieces(messages: Iterable[DatedMessage], labels: Labels) -> Iterator[Pieces]:
    """Yield the pieces of each message; a result is labelled with the tool of its call."""
    calls: dict[object, GivenCall] = {}
    for message, at in messages:
        role = message.get("role")
        if role in SYSTEM_ROLES:
            yield []
        elif role in RESULT_ROLES:
            call = calls.get(answered_call_id(message)) or make_unknown_call(message)
            yield [_result(message, call.name, labels, at)]
        else:
            calls |= index_calls(message)
            yield _said(message, labels, at)


def _result(message: Message, tool: str, labels: Labels, at: int | None) -> Piece:
    before = _label(f"{labels.result} {_named(tool)}", at)
    return Piece(before, extract_message_text(message), "\n\n", RESULT, tool)


def _said(message: Message, labels: Labels, at: int | None) -> Pieces:
    role, text = message.get("role"), extract_message_text(message)
    pieces = [
        Piece(_label(f"{labels.call} {_named(call.name)}", at), _arguments(call), "\n\n", SAID)
        for call in parse_calls(message)
    ]
    if text or not pieces:
        rank = ASKED if role == "user" else SAID
        before = _label(labels.speaker(role), at)
        pieces.insert(0, Piece(before, text, "\n\n", rank))
    return pieces


def _label(words: str, at: int | None) -> str:
    when = "" if at is None else _minute(at // 60_000)
    return f"[{words}{when}]: "


@lru_cache(maxsize=256)
def _minute(minutes: int) -> str:
    """Return when a message was said; several are said in a minute, one after the other."""
    when = to_datetime(minutes * 60_000)
    return f" {when:%Y-%m-%d %H:%M}" if when else ""


def _named(tool: str) -> str:
    return flatten_to_line(scrub_text(tool), _NAME_LIMIT)


def _arguments(call: GivenCall) -> str:
    """Return a call's arguments as they were given, but with every script readable."""
    given = call.arguments
    if given is None:
        return ""
    if isinstance(given, str) and "\\u" not in given:
        return given
    return _unescaped(given)


def _unescaped(arguments: Any) -> str:
    value = parse_json(arguments)
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)


def _shown(kinds: Kinds, language: Language, piece: Piece, cap: int) -> str:
    """Return what is shown of a text; no line of it can pass for a label of the transcript.

    It would else be easy for a file to speak as the user. Its length stays what it is.
    """
    text = piece.text
    if len(text) > cap:
        text = _shorter(kinds, language, piece, cap)
    if "[" not in text:
        return text  # as most are: their lines need no look
    return _FORGED.sub(r"\1(", text)


def _shorter(kinds: Kinds, language: Language, piece: Piece, cap: int) -> str:
    """Return a text in less room.

    A result in its short form, what is still too long by its ends.
    """
    text = piece.text
    if piece.tool and cap >= SHORT_FORM_FROM:
        text = compress(piece.tool, text, kind=kinds.get(piece.tool), language=language)
    if cap < BOTH_ENDS_FROM:
        return shorten(text, cap)
    return markers_in(language, truncate_middle(text, cap, tail=cap // 3))
