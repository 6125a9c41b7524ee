"""A summary without a model: what was asked and answered, what tools did, which files changed.

It is made by rules, always the same and quickly, so that a compaction can always be made. What
tools did is always extracted; which raw text goes into the body is the request's choice.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

from ..clock import zone
from ..database import paused
from ..messages import Message
from ..ready import REQUIRED, Language, counted_phrase, phrase
from ..tools import answered_call_id
from .deeds import (
    Deed,
    Judge,
    Worth,
    counted,
    deed_of,
    enumerated,
    last_changes,
    unknown_call,
    worth_by_action,
)
from .selection import SAID, SHOWN, USER, Heard, Speech, least_room, selected
from .speech import said_in, spoken
from .texts import (
    ELLIPSIS,
    RESULT_ROLES,
    GivenCall,
    count_fitting,
    cut_at_line_end,
    extract_message_text,
    index_calls,
    scrub_text,
)
from .values import (
    ACTIONS_HEADING,
    BODY_HEADING,
    CHANGES_HEADING,
    FileChange,
    KeyAction,
    Summary,
    SummaryRequest,
    build_title,
    measure_summary,
    newest_with_room,
    render_action,
    render_change,
    render_summary,
)

EXTRACTIVE_MODEL = "extractive"
"""What such a summary names as its model."""


def extractive(request: SummaryRequest) -> Summary:
    """Summarise by rules: a title, key actions, file changes, and a body of raw text.

    The lists are whole, for the record; a view shows of them what has room. All that it shows but
    the title keeps the request's limit; half of it is for what tools did, the body has what that
    leaves, half of it for the previous summary. Texts take at most half as much as there was to
    read, but for short ones. The body counts what was left out. Where a policy has deeds told once,
    a view shows of them what the facts do not tell.
    """
    read = _read(request, request.parts_to_keep)
    deeds, room = read.deeds, request.max_chars // 2
    if _facts_tell_deeds(request):
        deeds, room = [deed for deed in deeds if not deed.in_facts], room // 2
    done = _done(deeds)
    lists = _lists(done, room, request.policy.language)
    lists = lists._replace(title=_title(request), model=EXTRACTIVE_MODEL)
    shown = lists._replace(body=_body(request, read, done, lists))
    return _with_whole_lists(shown, read.deeds, request.policy.language)


def _with_whole_lists(shown: Summary, deeds: Sequence[Deed], language: Language) -> Summary:
    """Return a summary that lists all that tools did, whatever of it a view shows."""
    changes = last_changes(change for deed in deeds for change in deed.changes)
    whole = shown._replace(key_actions=_all_actions(deeds, language), file_changes=changes)
    return whole if whole == shown else whole._replace(shown=render_summary(shown, language))


MOST_ACTIONS = 1_000
"""Calls that are listed one by one; of more it is told how often each tool was used."""


def _all_actions(deeds: Sequence[Deed], language: Language) -> tuple[KeyAction, ...]:
    """Return an action for each call, or where they are very many one for each tool."""
    if len(deeds) <= MOST_ACTIONS:
        return tuple(deed.action for deed in deeds)
    times = Counter(deed.action.tool for deed in deeds)
    return tuple(
        KeyAction(tool, phrase("used_times", language, count=count))
        for tool, count in times.items()
    )


def _facts_tell_deeds(request: SummaryRequest) -> bool:
    return request.policy.told_once and request.policy.facts_chars > 0


def completed(summary: Summary, request: SummaryRequest) -> Summary:
    """Return a summary with the title, key actions and file changes that it lacks.

    These are for its record; a view shows what the summarizer gave.
    """
    has_lists = bool(summary.key_actions or summary.file_changes)
    language = request.policy.language
    if has_lists and summary.title:
        return summary
    whole = summary
    if not has_lists:
        whole = _with_whole_lists(summary, _read(request, ()).deeds, language)
    shown = render_summary(summary, language)
    return whole._replace(title=summary.title or _title(request), shown=shown)


def _title(request: SummaryRequest) -> str:
    """Return the title that the times of a request make, in the zone of its policy."""
    return build_title(request.started_at, request.ended_at, zone(request.policy.zone))


class _Done(NamedTuple):
    """The distinct actions with their worth, and what became of each file."""

    actions: Worth
    changes: tuple[FileChange, ...]


def _done(deeds: Sequence[Deed]) -> _Done:
    changes = last_changes(change for deed in deeds for change in deed.changes)
    return _Done(worth_by_action(deeds), changes)


class _Read(NamedTuple):
    """What each answered call did, what was said, in order, and how long all contents were."""

    deeds: list[Deed]
    said: list[Speech]
    size: int

    @property
    def room(self) -> int:
        """The code points that texts may take, so that a summary is shorter than what was said."""
        return max(self.size // 2, least_room(self.said))


def _read(request: SummaryRequest, parts: Sequence[str]) -> _Read:
    """Return what the messages tell; of texts, those in some of their parts.

    In one pass, so that no more need be in memory. An id that is met again means the nearest call
    before.
    """
    deeds: list[Deed] = []
    heard = Heard(request.max_chars)
    waiting: dict[object, GivenCall] = {}
    judge = Judge(request.policy, request.tool_kinds, request.project_root)
    size = 0
    with paused(len(request.messages)):
        for message in request.messages:
            text = extract_message_text(message)
            size += len(text)
            if "tool_calls" in message:
                waiting |= index_calls(message)
            if message.get("role") in RESULT_ROLES:
                call = waiting.pop(answered_call_id(message), None) or unknown_call(message)
                deeds.append(deed_of(call, message, judge))
            heard.add(_speeches(message, text, parts, request.policy.language))
    return _Read(deeds, heard.all(), size)


def _lists(done: _Done, room: int, language: Language) -> Summary:
    """Return the actions and changes that have room, as a summary without a body.

    Changes take half of it at most.
    """
    changes = newest_with_room(done.changes, render_change, room // 2)
    lists = Summary("", file_changes=changes)
    room -= measure_summary(lists)
    return lists._replace(key_actions=_worthiest(done.actions, room, language))


def _worthiest(actions: Worth, room: int, language: Language) -> tuple[KeyAction, ...]:
    """Return the actions worth most that have room, in their own order."""
    by_worth = sorted(actions, key=actions.__getitem__)
    chosen = {*newest_with_room(by_worth, partial(render_action, language=language), room)}
    return tuple(action for action in actions if action in chosen)


def _left_out(done: _Done, lists: Summary, language: Language) -> str:
    """Return a line that counts what is not listed, "" where all is."""
    counts = {
        "more_action": len(done.actions) - len(lists.key_actions),
        "more_change": len(done.changes) - len(lists.file_changes),
    }
    told = [counted_phrase(what, count, language) for what, count in counts.items() if count]
    return phrase("not_listed", language, counts=enumerated(told, language)) if told else ""


def _closing(note: str, counts: str, room: int) -> str:
    """Return what the body closes with: what is not listed, and what was done in numbers."""
    both = "\n".join(filter(None, (note, counts)))
    fitting = (each for each in (both, counts, note) if len(each) < room)
    return next(fitting, "")


def _body(request: SummaryRequest, read: _Read, done: _Done, lists: Summary) -> str:
    """Return the previous summary, what was said, and the closing, in the room that lists leave.

    It is never empty.
    """
    language = request.policy.language
    room = request.max_chars - (measure_summary(lists._replace(body=" "), language) - 1)
    changes = last_changes(change for deed in read.deeds for change in deed.changes)
    counts = counted(read.deeds, changes, language)
    closing = _closing(_left_out(done, lists, language), counts, room // 2)
    left = room - len(closing) - 1
    before = _before(request, read.said, left)
    said = selected(read.said, min(left - len(before) - 1, read.room))
    body = "\n".join(filter(None, (before, said, closing)))
    nothing = phrase("without_text", language, count=len(request.messages))
    return cut_at_line_end(body or nothing, max(room, 1))


def _before(request: SummaryRequest, said: Sequence[Speech], room: int) -> str:
    """Return the previous summary: in half of the room, and in all that is not needed else."""
    text = _flattened(request.previous_summary or "")
    return _whole_lines(text, max(room // 2, room - _size(said)))


def _size(said: Sequence[Speech]) -> int:
    """Return how long all that was said is, with who said it."""
    sizes = (len(each.voice) + len(each.text) for each in said)
    return sum(sizes) + len(": \n") * len(said)


def _whole_lines(text: str, room: int) -> str:
    """Return a text that fits: its first lines and its last ones, with ``...`` between them.

    No line is cut, so that no name in it becomes another one; but of a first line that is too long
    the words at both its ends stay.
    """
    if len(text) <= room:
        return text
    lines = text.splitlines(keepends=True)
    if len(lines) == 1:
        return _whole_words(text, room)
    gap = f"{ELLIPSIS}\n"
    half = (room - len(gap)) // 2
    if len(lines[0]) > half:
        lines[0] = _whole_words(lines[0].rstrip(), half - 1) + "\n"
    return _both_ends(lines, gap, room)


_WORD_END = re.compile(r"(?<=[\s，。；：！？、])")


def _whole_words(line: str, room: int) -> str:
    """Return the words at both ends of a line that is too long; "" for what a list names."""
    if line.startswith("- "):
        return ""
    return _both_ends(_WORD_END.split(line), f"{ELLIPSIS} ", room)


def _both_ends(parts: Sequence[str], gap: str, room: int) -> str:
    """Return the first and the last parts of a text that fit around a gap; "" where none does."""
    left = room - len(gap)
    first = _fitting(parts, left // 2)
    rest = parts[len(first) :]
    last = _fitting(rest[::-1], left - sum(map(len, first)))
    if not first and not last:
        return ""
    return "".join([*first, gap, *reversed(last)]).strip()


def _fitting(parts: Sequence[str], room: int) -> Sequence[str]:
    """Return the first parts of a text that fit."""
    return parts[: count_fitting(map(len, parts), room)]


_HEADING = "|".join(
    [f"# {REQUIRED['title'].text}.*", re.escape(ACTIONS_HEADING), re.escape(CHANGES_HEADING)]
)
_HEADINGS = re.compile(rf"\n*^(?:{_HEADING})\n*", re.MULTILINE)


def _flattened(summary: str) -> str:
    """Return a summary without the headings of one, its body first.

    So summaries of summaries do not nest.
    """
    lists, heading, body = scrub_text(summary).rpartition(BODY_HEADING)
    if not heading:
        return _unheaded(body)
    return f"{body}\n{_unheaded(lists)}".strip()


def _unheaded(text: str) -> str:
    return _HEADINGS.sub("\n", text).strip()


def _speeches(
    message: Message, text: str, parts: Sequence[str], language: Language
) -> Iterator[Speech]:
    """Yield who speaks in a message, and the text, for each part that is kept.

    What a user says where the result of a call would stand is the user's text.
    """
    role = message.get("role")
    if "reasoning" in parts:
        thought = message.get("reasoning_content") or message.get("reasoning")
        if isinstance(thought, str):
            yield Speech(phrase("voice_reasoning", language), thought, SHOWN)
    if "text" in parts:
        yield from _said(text, role, language)
    if role in RESULT_ROLES and "tool" in parts:
        yield Speech(phrase("voice_tool", language), text, SHOWN)


def _said(text: str, role: object, language: Language) -> Iterator[Speech]:
    if role == "user":
        yield Speech(phrase("voice_user", language), spoken(text), USER)
    elif role == "assistant":
        yield Speech(phrase("voice_assistant", language), text, SAID)
    elif role in RESULT_ROLES and (said := said_in(text)):
        yield Speech(phrase("voice_user", language), said, USER)
