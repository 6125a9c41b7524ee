"""A summary without a model: the texts of messages, the actions of tools, the changes of files.

It is made by rules, quickly and always with the same result, so that a compaction is always
possible. Actions are always extracted; the request chooses which raw text goes into the body.

Then come the other texts, the newest first, in their own words: plain words are what a summary
loses, and no index of names brings them back. A text is cut only where there is no room for it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from ..clock import load_zone
from ..database import pause_gc
from ..messages import Message
from ..phrases import REQUIRED, Language, render_counted_phrase, render_phrase
from ..tools import find_answered_call_id
from .actions import (
    CallSummary,
    describe_file_counts,
    join_words,
    merge_changes,
    summarize_call,
)
from .message_texts import (
    RESULT_ROLES,
    SUMMARY_ELLIPSIS,
    GivenCall,
    count_fitting,
    cut_at_line_end,
    extract_message_text,
    extract_rejection_reason,
    extract_user_words,
    flatten_to_line,
    index_calls,
    make_unknown_call,
    scrub_text,
    shorten_text,
)
from .summary import (
    ACTIONS_HEADING,
    BODY_HEADING,
    CHANGES_HEADING,
    FileChange,
    KeyAction,
    Summary,
    SummaryRequest,
    build_title,
    measure_summary,
    render_action,
    render_change,
    render_summary,
    select_newest_fitting,
)

USER, LAST, SAID, DRAFT, SHOWN = range(5)
"""The ranks of texts, the first to have room: a user's, the last answer, another answer, a text on
the way to an answer, and the text of a result.
"""

SHORT_TEXT = 200
"""Code points up to which a text is whole even where that makes a summary no shorter."""

LEAST_TEXT = 100
"""Code points of a text below which it is left out rather than cut."""

BUFFERED_ROOMS = 16
"""The newest texts of so many times the room are buffered while more are read."""

EXTRACTIVE_MODEL = "extractive"
"""The model that such a summary names."""

LONGEST_EDIT = 400
"""Code points of one text that an edit wrote."""

MOST_ACTIONS = 1_000
"""Calls that are listed one by one; of more the uses of each tool are counted."""


class RankedSpeech(NamedTuple):
    """A text, its speaker and its rank."""

    voice: str
    text: str
    rank: int


class SpeechBuffer:
    """The texts of messages as they are read: of very many the first and the newest are kept."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._size = 0
        self._speeches: list[RankedSpeech] = []

    def add(self, speeches: Iterable[RankedSpeech]) -> None:
        """Add texts, as much of each as could have room."""
        longest = 2 * self._room
        for speech in speeches:
            if speech.text:
                is_long = len(speech.text) > longest
                part = speech._replace(text=speech.text[:longest]) if is_long else speech
                self._speeches.append(part)
                self._size += len(part.text)
        if self._size > 4 * BUFFERED_ROOMS * self._room:
            self._shrink()

    def ranked(self) -> list[RankedSpeech]:
        """Return the texts, each in one line, in order; the assistant's last is the last answer.

        A text of an assistant before its next one is on the way to an answer.
        """
        ranked: list[RankedSpeech] = []
        ranks = {SAID: LAST}
        next_rank = USER
        for speech in reversed(self._speeches):
            line = flatten_to_line(scrub_text(speech.text), len(speech.text))
            if line:
                is_draft = speech.rank == next_rank == SAID
                next_rank = speech.rank
                rank = DRAFT if is_draft else ranks.pop(next_rank, next_rank)
                ranked.append(RankedSpeech(speech.voice, line, rank))
        return ranked[::-1]

    def _shrink(self) -> None:
        """Keep the first and the newest of users' texts, and the newest of all others."""
        indices = range(len(self._speeches))
        users = [index for index in indices if self._speeches[index].rank == USER]
        others = [index for index in indices if self._speeches[index].rank != USER]
        kept = {*users[:1], *self._newest(users), *self._newest(others)}
        self._speeches = [self._speeches[index] for index in sorted(kept)]
        self._size = sum(len(speech.text) for speech in self._speeches)

    def _newest(self, indices: list[int]) -> list[int]:
        sizes = (len(self._speeches[index].text) for index in reversed(indices))
        first = len(indices) - count_fitting(sizes, BUFFERED_ROOMS * self._room)
        return indices[first:]


def select_speeches(speeches: Sequence[RankedSpeech], room: int) -> str:
    """Return texts in at most ``room`` code points, one on each line, in order."""
    lines = [f"{speech.voice}: {speech.text}" for speech in speeches]
    text = "\n".join(lines)
    if len(text) <= room:
        return text
    if room <= 0:
        return ""
    ranks = [speech.rank for speech in speeches]
    least = min(LEAST_TEXT, room // 2)
    # A user's text may be so long that the last answer has at most a quarter of the room.
    answer = sum(len(line) + 1 for line, rank in zip(lines, ranks, strict=True) if rank == LAST)
    user_sizes = [len(line) + 1 for line, rank in zip(lines, ranks, strict=True) if rank == USER]
    user_limit = _find_common_limit(user_sizes, room - min(answer, room // 4))
    if user_limit < least:
        first = [line for line, rank in zip(lines, ranks, strict=True) if rank <= LAST]
        return _join_goal_and_newest(first, room)
    shown: dict[int, str] = {}
    newest_first = range(len(lines))[::-1]
    for index in sorted(newest_first, key=ranks.__getitem__):
        limit = min(room, user_limit) if ranks[index] == USER else room
        if len(lines[index]) <= limit or limit >= least:
            shown[index] = shorten_text(lines[index], limit)
            room -= len(shown[index]) + 1
    return "\n".join(shown[index] for index in sorted(shown))


def _find_common_limit(sizes: list[int], room: int) -> int:
    """Return the greatest length to which texts can be cut so that all of them fit."""
    sizes.sort()
    left = room
    for index, size in enumerate(sizes):
        rest = len(sizes) - index
        if size * rest > left:
            return left // rest - 1
        left -= size
    return room


def _join_goal_and_newest(lines: Sequence[str], room: int) -> str:
    """Return the first line, which names the goal, and the newest, with ``...`` between."""
    goal = cut_at_line_end(lines[0], room // 2)
    left = room - len(goal) - len(f"\n{SUMMARY_ELLIPSIS}")
    sizes = (len(line) + 1 for line in reversed(lines[1:]))
    first = len(lines) - count_fitting(sizes, left)
    return cut_at_line_end("\n".join([goal, SUMMARY_ELLIPSIS, *lines[first:]]), room)


def extractive(request: SummaryRequest) -> Summary:
    """Summarise by rules: a title, key actions, file changes, and a body of raw text.

    The lists are whole, for the record; a view shows as much of them as has room. Its text without
    the title keeps the request's limit; half of it is for the actions of tools, the body has the
    rest, and half of that is for the previous summary. Texts take at most half of the length of all
    contents, except short ones. The body counts the entries that the lists leave out. Where a
    policy shows actions once, a view shows those that are not among the facts.
    """
    language = request.policy.language
    content = _read_content(request, request.parts_to_keep)
    calls, room = content.calls, request.max_chars // 2
    if request.policy.told_once and request.policy.facts_chars > 0:
        calls, room = [call for call in calls if not call.in_facts], room // 2
    worth: dict[KeyAction, int] = {}
    for call in calls:
        worth.pop(call.action, None)  # an action is listed where it was met last
        worth[call.action] = call.worth
    all_changes = _list_changes(calls)
    changes = select_newest_fitting(all_changes, render_change, room // 2)
    room -= measure_summary(Summary("", file_changes=changes))
    line_of = partial(render_action, language=language)
    worthiest = {*select_newest_fitting(sorted(worth, key=worth.__getitem__), line_of, room)}
    actions = tuple(action for action in worth if action in worthiest)
    lists = Summary("", _build_title(request), actions, changes, EXTRACTIVE_MODEL)
    left_out = {
        "more_action": len(worth) - len(actions),
        "more_change": len(all_changes) - len(changes),
    }
    counts = [
        render_counted_phrase(noun, count, language) for noun, count in left_out.items() if count
    ]
    note = ""
    if counts:
        note = render_phrase("not_listed", language, counts=join_words(counts, language))
    shown = lists._replace(body=_build_body(request, content, lists, note))
    return _add_whole_lists(shown, content.calls, language)


def complete_summary(summary: Summary, request: SummaryRequest) -> Summary:
    """Return a summary with the title, key actions and file changes that it lacks.

    These are for its record; a view shows the text of the summarizer.
    """
    has_lists = bool(summary.key_actions or summary.file_changes)
    language = request.policy.language
    if has_lists and summary.title:
        return summary
    whole = summary
    if not has_lists:
        whole = _add_whole_lists(summary, _read_content(request, ()).calls, language)
    shown = render_summary(summary, language)
    return whole._replace(title=summary.title or _build_title(request), shown=shown)


def _build_title(request: SummaryRequest) -> str:
    """Return the title for the times of a request, in the zone of its policy."""
    return build_title(request.started_at, request.ended_at, load_zone(request.policy.zone))


def _list_changes(calls: Iterable[CallSummary]) -> tuple[FileChange, ...]:
    return merge_changes(change for call in calls for change in call.changes)


def _add_whole_lists(shown: Summary, calls: Sequence[CallSummary], language: Language) -> Summary:
    """Return a summary with all actions and changes; a view shows it as it was without them.

    Very many calls are counted by their tools.
    """
    actions = tuple(call.action for call in calls)
    if len(calls) > MOST_ACTIONS:
        times = Counter(action.tool for action in actions)
        actions = tuple(
            KeyAction(tool, render_phrase("used_times", language, count=count))
            for tool, count in times.items()
        )
    whole = shown._replace(key_actions=actions, file_changes=_list_changes(calls))
    return whole if whole == shown else whole._replace(shown=render_summary(shown, language))


class _Content(NamedTuple):
    """The answered calls of messages, their texts in order, and the length of all contents."""

    calls: list[CallSummary]
    speeches: list[RankedSpeech]
    size: int


def _read_content(request: SummaryRequest, parts: Sequence[str]) -> _Content:
    """Return the content of the messages; of texts, those in some of their parts.

    In one pass, so that few messages need be in memory. An id that is repeated means the nearest
    call before.
    """
    calls: list[CallSummary] = []
    buffer = SpeechBuffer(request.max_chars)
    waiting: dict[object, GivenCall] = {}
    size = 0
    with pause_gc(len(request.messages)):
        for message in request.messages:
            text = extract_message_text(message)
            size += len(text)
            if "tool_calls" in message:
                waiting |= index_calls(message)
            if message.get("role") in RESULT_ROLES:
                call = waiting.pop(find_answered_call_id(message), None) or make_unknown_call(
                    message
                )
                calls.append(summarize_call(call, message, request))
            buffer.add(_read_speeches(message, text, parts, request.policy.language))
    return _Content(calls, buffer.ranked(), size)


def _read_speeches(
    message: Message, text: str, parts: Sequence[str], language: Language
) -> Iterator[RankedSpeech]:
    """Yield the text of a message with its speaker, for each part that is kept.

    The words of a user in the result of a refused call are the user's text.
    """
    role = message.get("role")
    if "reasoning" in parts:
        reasoning = message.get("reasoning_content") or message.get("reasoning")
        if isinstance(reasoning, str):
            yield RankedSpeech(render_phrase("voice_reasoning", language), reasoning, SHOWN)
    if "text" in parts:
        if role == "user":
            yield RankedSpeech(
                render_phrase("voice_user", language), extract_user_words(text), USER
            )
        elif role == "assistant":
            yield RankedSpeech(render_phrase("voice_assistant", language), text, SAID)
        elif role in RESULT_ROLES and (reason := extract_rejection_reason(text)):
            yield RankedSpeech(render_phrase("voice_user", language), reason, USER)
    if role in RESULT_ROLES and "tool" in parts:
        yield RankedSpeech(render_phrase("voice_tool", language), text, SHOWN)


def _build_body(request: SummaryRequest, content: _Content, lists: Summary, note: str) -> str:
    """Return the previous summary, the texts, and the closing, in the room that lists leave.

    The closing is ``note``, which counts the entries that are not listed, and the counts of files.
    The previous summary has half of the room, and all that the texts do not need. Texts take at
    most half of the length of all contents, so that a summary is shorter than these, except short
    texts. The body is never empty.
    """
    language, speeches = request.policy.language, content.speeches
    room = request.max_chars - (measure_summary(lists._replace(body=" "), language) - 1)
    counts = describe_file_counts(content.calls, _list_changes(content.calls), language)
    both = "\n".join(filter(None, (note, counts)))
    closing = next((each for each in (both, counts, note) if len(each) < room // 2), "")
    edits = _select_edits(content.calls, min(request.policy.edits_chars, room // 3))
    left = room - len(closing) - len(edits) - 2
    size = sum(len(speech.voice) + len(": \n") + len(speech.text) for speech in speeches)
    previous = _remove_headings(request.previous_summary or "")
    previous = _shorten_lines(previous, max(left // 2, left - size))
    short_size = sum(
        min(len(speech.text), SHORT_TEXT) + len(speech.voice) + 3
        for speech in speeches
        if speech.rank != DRAFT
    )
    most = max(content.size // 2, short_size)
    texts = select_speeches(speeches, min(left - len(previous) - 1, most))
    body = "\n".join(filter(None, (previous, texts, closing, edits)))
    nothing = render_phrase("without_text", language, count=len(request.messages))
    return cut_at_line_end(body or nothing, max(room, 1))


def _select_edits(calls: Sequence[CallSummary], room: int) -> str:
    """Return the newest texts that edits wrote, as they are, in order."""
    shown: dict[str, str] = {}
    for call in reversed(calls):
        path = call.changes[0].path if call.edited else ""
        left = room - len(path) - len(":\n\n")
        text = cut_at_line_end(call.edited, min(LONGEST_EDIT, left))
        entry = f"{path}:\n{text}"
        if text.strip() and entry not in shown and len(entry) < room:
            shown[entry] = path
            room -= len(entry) + 1
    return "\n".join(reversed(shown))


_HEADING_WORDS = "|".join(
    [f"# {REQUIRED['title'].text}.*", re.escape(ACTIONS_HEADING), re.escape(CHANGES_HEADING)]
)
_HEADING_LINES = re.compile(rf"\n*^(?:{_HEADING_WORDS})\n*", re.MULTILINE)


def _remove_headings(summary: str) -> str:
    """Return a summary without its headings, its body first.

    So summaries of summaries do not nest.
    """
    lists, heading, body = scrub_text(summary).rpartition(BODY_HEADING)
    if not heading:
        return _HEADING_LINES.sub("\n", body).strip()
    lists = _HEADING_LINES.sub("\n", lists).strip()
    return f"{body}\n{lists}".strip()


def _shorten_lines(text: str, room: int) -> str:
    """Return a text that fits: its first lines and its last ones, with ``...`` between them.

    No line is cut, so that no name in it becomes another one; but of a first line that is too long
    the words at both its ends stay.
    """
    if len(text) <= room:
        return text
    lines = text.splitlines(keepends=True)
    if len(lines) == 1:
        return _shorten_words(text, room)
    gap = f"{SUMMARY_ELLIPSIS}\n"
    half = (room - len(gap)) // 2
    if len(lines[0]) > half:
        lines[0] = _shorten_words(lines[0].rstrip(), half - 1) + "\n"
    return _join_both_ends(lines, gap, room)


_WORD_END = re.compile(r"(?<=[\s，。；：！？、])")


def _shorten_words(line: str, room: int) -> str:
    """Return the words at both ends of a line that is too long; "" for an entry of a list."""
    if line.startswith("- "):
        return ""
    return _join_both_ends(_WORD_END.split(line), f"{SUMMARY_ELLIPSIS} ", room)


def _join_both_ends(parts: Sequence[str], gap: str, room: int) -> str:
    """Return the first and the last parts of a text that fit around a gap; "" where none does."""
    left = room - len(gap)
    first = parts[: count_fitting(map(len, parts), left // 2)]
    rest = parts[len(first) :][::-1]
    last = rest[: count_fitting(map(len, rest), left - sum(map(len, first)))]
    if not first and not last:
        return ""
    return "".join([*first, gap, *reversed(last)]).strip()
