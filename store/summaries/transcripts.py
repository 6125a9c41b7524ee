"""Transcripts of messages for a summarizer: a brief and a whole one, fitted into a limit.

A transcript that is too long is never cut at its end, where nobody would notice the loss. The texts
of its messages are shortened first, as a `ShorteningLadder` says; then whole groups are left for
the next summary, and the transcript is returned with the number of messages that it shows.

The *brief* transcript has short texts, and calls by the names of their tools alone. In the *whole*
one texts and results are whole, calls have their arguments, and each message has its time. Only
where there is no room for all of that are texts shortened, the largest of a rank first:
`SHORTENING_ORDER` is the order. So paths, commands and instructions stay as long as there is
output to be shortened instead.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import accumulate, chain
from typing import Any, NamedTuple

from ..messages import Message
from ..phrases import Language, render_phrase
from ..text import truncate_middle
from ..tools import compress, find_answered_call_id, translate_markers
from .message_texts import (
    RESULT_ROLES,
    SUMMARY_ELLIPSIS,
    SYSTEM_ROLES,
    GivenCall,
    extract_message_text,
    flatten_to_line,
    index_calls,
    make_unknown_call,
    parse_calls,
    parse_json_container,
    scrub_text,
    shorten_text,
)
from .prompts import choose_phrase_language
from .summary import convert_to_datetime

# The words of a transcript for those who speak in it.


class Labels(NamedTuple):
    """The words for the speakers, for a call and for its result."""

    user: str
    assistant: str
    call: str
    result: str

    def speaker(self, role: object) -> str:
        """Return the word for a role; every role but the user's is an assistant's."""
        return self.user if role == "user" else self.assistant


_LABEL_CODES = ("voice_user", "voice_assistant", "label_call", "label_result")
CHINESE_LABELS = Labels(*(render_phrase(code, "zh") for code in _LABEL_CODES))
ENGLISH_LABELS = Labels(*(render_phrase(code, "en") for code in _LABEL_CODES))


def get_labels(language: str) -> Labels:
    """Return the labels for a prompt's language."""
    return CHINESE_LABELS if choose_phrase_language(language) == "zh" else ENGLISH_LABELS


# Fitting any transcript into its limit.

RESULT_RANK = 0
"""The rank of tool results; each style has higher ranks of its own."""


class FittedTranscript(NamedTuple):
    """A transcript within its limit, and how many messages it shows, from the first one on."""

    transcript: str
    messages_shown: int


class TranscriptPiece(NamedTuple):
    """A part of a transcript: a text that may be shortened, and the texts around it.

    Texts of one ``rank`` are shortened together; ``tool`` is the tool whose result the text is.
    """

    before: str
    text: str
    after: str
    rank: int
    tool: str | None = None

    @property
    def around(self) -> int:
        """The code points around the text."""
        return len(self.before) + len(self.after)


TranscriptPieces = list[TranscriptPiece]
"""The pieces of one message."""

RankCaps = Sequence[int]
"""The code points shown of a text, by its rank."""


class ShorteningLadder(NamedTuple):
    """The steps in which texts are shortened; on a higher rung no text is shorter.

    Below the ``floor`` messages are left for the next summary, except those of the first group.
    """

    caps: Callable[[int], RankCaps]
    lowest: int
    floor: int
    highest: int


class FittingStyle(NamedTuple):
    """The way in which pieces are made to fit.

    ``show`` returns the text of a piece in at most a number of code points, ``rank`` returns the
    pieces with new ranks after it is known which are shown.
    """

    ladder: ShorteningLadder
    show: Callable[[TranscriptPiece, int], str]
    rank: Callable[[list[TranscriptPieces]], list[TranscriptPieces]] = list


def fit_pieces(
    messages: Iterable[TranscriptPieces],
    style: FittingStyle,
    max_chars: int,
    ends: Sequence[int] | None = None,
) -> FittedTranscript:
    """Return a transcript of at most ``max_chars`` that leaves out none of the messages it shows.

    Texts are shortened as little as possible, down to the floor; then only the first messages are
    shown, as many as fit. ``ends``, ascending, are the numbers of messages after which a range may
    end; by default the ends of whole groups, a call with its results. The first end alone goes
    below the floor; where not even its labels fit, ``messages_shown`` is 0. Of many messages no
    more are taken than are needed to see that the rest does not fit.
    """
    ladder = style.ladder
    taken, sizes = _take_pieces(messages, ladder.caps(ladder.floor), max_chars, ends)
    if sizes[-1] <= max_chars:
        return _fit_all(taken, style, ladder.floor, max_chars)
    if ends is None:
        ends = _list_group_ends([_has_result_piece(pieces) for pieces in taken])
    fitting = bisect_right(sizes, max_chars) - 1
    count = max((end for end in ends if end <= fitting), default=0)
    if count:
        return _fit_all(taken[:count], style, ladder.floor, max_chars)
    first = next(iter(ends), 0)
    return _fit_all(taken[:first], style, ladder.lowest, max_chars)


def find_group_ends(messages: Sequence[Message]) -> list[int]:
    """Return the numbers of messages after which a cut parts no tool result from its call."""
    return _list_group_ends([message.get("role") in RESULT_ROLES for message in messages])


def _list_group_ends(are_results: Sequence[bool]) -> list[int]:
    ends = [end for end, is_result in enumerate(are_results[1:], 1) if not is_result]
    return [*ends, len(are_results)] if are_results else []


def _has_result_piece(pieces: TranscriptPieces) -> bool:
    return bool(pieces) and pieces[0].rank == RESULT_RANK


def _take_pieces(
    messages: Iterable[TranscriptPieces], caps: RankCaps, max_chars: int, ends: Sequence[int] | None
) -> tuple[list[TranscriptPieces], list[int]]:
    """Return messages until they do not fit and the first end is known.

    With them the length of the transcript of the first 0, 1, 2 … of them. All that fit are among
    them, and the first that does not, since lengths only grow.
    """
    first = ends[0] if ends else None
    taken: list[TranscriptPieces] = []
    sizes = [0]
    for count, pieces in enumerate(messages):
        if first is None and count and not _has_result_piece(pieces):
            first = count
        if first is not None and count >= first and sizes[-1] > max_chars:
            break
        taken.append(pieces)
        sizes.append(
            sizes[-1] + sum(each.around + min(caps[each.rank], len(each.text)) for each in pieces)
        )
    return taken, sizes


def _fit_all(
    messages: list[TranscriptPieces], style: FittingStyle, lowest: int, max_chars: int
) -> FittedTranscript:
    """Return a transcript of all messages on the highest rung that fits, from ``lowest`` on."""
    messages = style.rank(messages)
    ladder, measure = style.ladder, _index_lengths(messages)
    rungs = range(lowest, ladder.highest + 1)
    fitting = bisect_right(rungs, max_chars, key=lambda rung: measure(ladder.caps(rung)))
    if not fitting:
        return FittedTranscript("", 0)
    caps = ladder.caps(rungs[fitting - 1])
    return FittedTranscript(_join_pieces(messages, style, caps), len(messages))


def _index_lengths(messages: list[TranscriptPieces]) -> Callable[[RankCaps], int]:
    """Return a function that returns the length of pieces under the caps of their ranks.

    It does not look at the pieces again: for each rank it has the sorted lengths of texts, and the
    sums of the first of them.
    """
    labels = 0
    lengths: dict[int, list[int]] = {}
    for piece in chain.from_iterable(messages):
        labels += piece.around
        lengths.setdefault(piece.rank, []).append(len(piece.text))
    for each in lengths.values():
        each.sort()
    sums = {rank: list(accumulate(each, initial=0)) for rank, each in lengths.items()}

    def measure(caps: RankCaps) -> int:
        size = labels
        for rank, each in lengths.items():
            whole = bisect_right(each, caps[rank])
            size += sums[rank][whole] + caps[rank] * (len(each) - whole)
        return size

    return measure


def _join_pieces(messages: Iterable[TranscriptPieces], style: FittingStyle, caps: RankCaps) -> str:
    """Return pieces as one text, each shortened to the cap of its rank."""
    return "".join(
        f"{piece.before}{style.show(piece, caps[piece.rank])}{piece.after}"
        for piece in chain.from_iterable(messages)
    )


# The brief transcript.


class TranscriptLimits(NamedTuple):
    """Code points shown of a chat message, and of a tool result."""

    text: int = 500
    result: int = 200


DEFAULT_LIMITS = TranscriptLimits()

BRIEF_FLOOR = 100
"""Code points of a chat message below which it is left for the next summary instead."""

_BRIEF_TEXT = RESULT_RANK + 1
_BRIEF_LOWEST = len(SUMMARY_ELLIPSIS)


def render_brief_transcript(
    messages: Iterable[Message], limits: TranscriptLimits = DEFAULT_LIMITS
) -> str:
    """Return messages as a summarizer reads them, with labels and without system messages.

    The limit of a chat message is also that of the text with tool calls and of the calls' names:
    without it no transcript could be made to fit.
    """
    pieces = _split_brief_pieces(messages, CHINESE_LABELS)
    return _join_pieces(pieces, _build_brief_style(limits), _build_brief_caps(limits, limits.text))


def fit_brief_transcript(
    messages: Iterable[Message],
    limits: TranscriptLimits = DEFAULT_LIMITS,
    max_chars: int = 12_000,
    *,
    ends: Sequence[int] | None = None,
    labels: Labels = CHINESE_LABELS,
) -> FittedTranscript:
    """Return a brief transcript of at most ``max_chars``; all messages that it shows are complete.

    Texts of all messages are shortened equally, as little as possible, down to `BRIEF_FLOOR`; then
    only the first messages are shown, as many as fit, up to one of ``ends``, as in `fit_pieces`.
    """
    return fit_pieces(
        _split_brief_pieces(messages, labels), _build_brief_style(limits), max_chars, ends
    )


def _build_brief_style(limits: TranscriptLimits) -> FittingStyle:
    floor = min(BRIEF_FLOOR, limits.text)
    lowest = min(_BRIEF_LOWEST, floor)
    ladder = ShorteningLadder(partial(_build_brief_caps, limits), lowest, floor, limits.text)
    return FittingStyle(ladder, lambda piece, cap: shorten_text(piece.text, cap))


def _build_brief_caps(limits: TranscriptLimits, text: int) -> RankCaps:
    """Return both limits reduced equally, that of results first, in the order of their ranks."""
    result = limits.result * text // max(limits.text, 1)
    lowest = min(_BRIEF_LOWEST, limits.result)
    return max(result, lowest), text


def _split_brief_pieces(messages: Iterable[Message], labels: Labels) -> Iterator[TranscriptPieces]:
    for message in messages:
        role = message.get("role")
        if role in SYSTEM_ROLES:
            yield []
            continue
        text = extract_message_text(message)
        if role in RESULT_ROLES:
            yield [TranscriptPiece(f"[{labels.result}]: ", text, "\n\n", RESULT_RANK)]
            continue
        names = ", ".join(call.name for call in parse_calls(message))
        if not names:
            yield [TranscriptPiece(f"[{labels.speaker(role)}]: ", text, "\n\n", _BRIEF_TEXT)]
            continue
        pieces = [TranscriptPiece(f"[{labels.call}]: ", names, "\n\n", _BRIEF_TEXT)]
        if text:
            pieces.insert(0, TranscriptPiece(f"[{labels.assistant}]: ", text, "\n", _BRIEF_TEXT))
        yield pieces


# The whole transcript.

ASSISTANT, NEWEST, USER = range(RESULT_RANK + 1, RESULT_RANK + 4)
"""Ranks: texts and calls of an assistant; the same and results of the last messages; users'
texts.
"""

WHOLE_FLOOR = 100
"""Code points of any text below which its message is left for the next summary instead."""

SHORTENING_ORDER: tuple[tuple[int, int], ...] = (
    (RESULT_RANK, 8000),
    (NEWEST, 16_000),
    (RESULT_RANK, 1000),
    (ASSISTANT, 4000),
    (NEWEST, 4000),
    (RESULT_RANK, 200),
    (ASSISTANT, 500),
    (USER, 4000),
    (NEWEST, 500),
    (RESULT_RANK, WHOLE_FLOOR),
    (ASSISTANT, WHOLE_FLOOR),
    (NEWEST, WHOLE_FLOOR),
    (USER, WHOLE_FLOOR),
)
"""The rank to be shortened, and the code points of a text down to which it is; then the next."""

NEWEST_MESSAGES = 20
"""How many of the last messages shown are the newest."""

SHORT_FORM_FROM = 1000
"""Code points of room from which a result is shown in its short form instead of by its ends."""

BOTH_ENDS_FROM = 200
"""Code points of room from which a text shows its end as well as its beginning."""

_WHOLE_LOWEST = 3
_TOOL_NAME_LIMIT = 80

_LABEL_WORDS = "|".join(re.escape(word) for word in (*ENGLISH_LABELS, *CHINESE_LABELS))
_FORGED_LABEL = re.compile(rf"^([^\S\n]*)\[(?=(?:{_LABEL_WORDS})\b)", re.MULTILINE)


class DatedMessage(NamedTuple):
    """A message and its time (ms), if that is known."""

    message: Message
    at: int | None = None


SummaryToolKinds = Mapping[str, Any]
"""The kinds of tools by their names."""


def fit_whole_transcript(
    messages: Iterable[DatedMessage],
    max_chars: int,
    labels: Labels,
    kinds: SummaryToolKinds,
) -> FittedTranscript:
    """Return a transcript of at most ``max_chars``, of all messages or of the first that fit.

    ``kinds`` are the kinds of tools, for the short forms of results.
    """
    language: Language = "zh" if labels is CHINESE_LABELS else "en"
    levels = [max_chars] * (USER + 1)
    steps: list[tuple[int, int]] = []
    for rank, level in SHORTENING_ORDER:
        low = min(level, levels[rank])
        steps.append((rank, levels[rank] - low))
        levels[rank] = low
    steps.reverse()

    def caps_of_rung(rung: int) -> RankCaps:
        caps = [min(rung, WHOLE_FLOOR)] * (USER + 1)
        left = rung - WHOLE_FLOOR
        for rank, height in steps:
            if left <= 0:
                break
            caps[rank] += min(left, height)
            left -= height
        return caps

    highest = WHOLE_FLOOR + sum(height for _, height in steps)
    style = FittingStyle(
        ShorteningLadder(caps_of_rung, _WHOLE_LOWEST, WHOLE_FLOOR, highest),
        partial(_show_text, kinds, language),
        _rank_last_messages,
    )
    return fit_pieces(_split_whole_pieces(messages, labels), style, max_chars)


def _rank_last_messages(shown: list[TranscriptPieces]) -> list[TranscriptPieces]:
    """Return pieces, those of the last messages ranked as the newest, except users' texts."""
    older, last = shown[:-NEWEST_MESSAGES], shown[-NEWEST_MESSAGES:]
    newest = [
        [piece if piece.rank == USER else piece._replace(rank=NEWEST) for piece in pieces]
        for pieces in last
    ]
    return [*older, *newest]


def _split_whole_pieces(
    messages: Iterable[DatedMessage], labels: Labels
) -> Iterator[TranscriptPieces]:
    """Yield the pieces of each message; a result is labelled with the tool of its call."""
    calls: dict[object, GivenCall] = {}
    for message, at in messages:
        role = message.get("role")
        if role in SYSTEM_ROLES:
            yield []
            continue
        text = extract_message_text(message)
        if role in RESULT_ROLES:
            call = calls.get(find_answered_call_id(message)) or make_unknown_call(message)
            label = _render_label(labels.result, at, call.name)
            yield [TranscriptPiece(label, text, "\n\n", RESULT_RANK, call.name)]
            continue
        calls |= index_calls(message)
        pieces = [
            TranscriptPiece(
                _render_label(labels.call, at, call.name),
                _render_arguments(call.arguments),
                "\n\n",
                ASSISTANT,
            )
            for call in parse_calls(message)
        ]
        if text or not pieces:
            rank = USER if role == "user" else ASSISTANT
            label = _render_label(labels.speaker(role), at)
            pieces.insert(0, TranscriptPiece(label, text, "\n\n", rank))
        yield pieces


def _render_label(word: str, at: int | None, tool: str | None = None) -> str:
    name = "" if tool is None else f" {flatten_to_line(scrub_text(tool), _TOOL_NAME_LIMIT)}"
    time = "" if at is None else _render_minute(at // 60_000)
    return f"[{word}{name}{time}]: "


@lru_cache(maxsize=256)  # several messages have the same minute, one after the other
def _render_minute(minutes: int) -> str:
    moment = convert_to_datetime(minutes * 60_000)
    return f" {moment:%Y-%m-%d %H:%M}" if moment else ""


def _render_arguments(arguments: Any) -> str:
    """Return a call's arguments unchanged, but with every script readable."""
    if arguments is None:
        return ""
    if isinstance(arguments, str) and "\\u" not in arguments:
        return arguments
    value = parse_json_container(arguments)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _show_text(
    kinds: SummaryToolKinds, language: Language, piece: TranscriptPiece, cap: int
) -> str:
    """Return a text in at most ``cap`` code points; a result in its short form, else by its ends.

    No line of it can pass for a label of the transcript, or a file could easily speak as the user.
    That does not change its length.
    """
    text = piece.text
    if len(text) > cap:
        if piece.tool and cap >= SHORT_FORM_FROM:
            text = compress(piece.tool, text, kind=kinds.get(piece.tool), language=language)
        if cap < BOTH_ENDS_FROM:
            text = shorten_text(text, cap)
        else:
            text = translate_markers(language, truncate_middle(text, cap, tail=cap // 3))
    if "[" not in text:
        return text  # the fast path: most texts have none
    return _FORGED_LABEL.sub(r"\1(", text)
