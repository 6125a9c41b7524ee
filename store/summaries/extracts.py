"""A summary without a model: what was asked and answered, what tools did, which files changed.

It is made by rules, always the same and quickly, so that a compaction can always be made. What
tools did is always extracted; which raw text goes into the body is the request's choice.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, takewhile, zip_longest
from typing import NamedTuple

from ..messages import Message
from ..tools import answered_call_id
from .deeds import Deed, Judge, counted, deed_of, last_changes, unknown_call, worth_by_action
from .texts import (
    ELLIPSIS,
    RESULT_ROLES,
    GivenCall,
    calls_by_id,
    cut,
    message_content,
    one_line,
    scrubbed,
)
from .values import (
    ACTIONS_HEADING,
    BODY_HEADING,
    CHANGES_HEADING,
    FileChange,
    KeyAction,
    Summary,
    SummaryRequest,
    action_line,
    change_line,
    newest,
    rendered,
    rendered_size,
    title,
)

MODEL = "extractive"
"""What such a summary names as its model."""

_ASSISTANT = "Assistant"
_TEXT_LIMIT = 200

Speech = tuple[str, str]
"""Who speaks, and the text."""


def extractive(request: SummaryRequest) -> Summary:
    """Summarise by rules: a title, key actions, file changes, and a body of raw text.

    All but the title keeps the request's limit as it is rendered; half of it is for what tools did,
    the body has what that leaves, half of it for the previous summary. The body counts what was
    left out.
    """
    deeds, said = _read(request, request.parts_to_keep)
    done = _done(deeds)
    lists = _lists(done, request.max_chars // 2)
    lists = lists._replace(title=title(request.started_at, request.ended_at), model=MODEL)
    room = request.max_chars - (rendered_size(lists._replace(body=" ")) - 1)
    closing = _closing(_left_out(done, lists), counted(deeds, done.changes), room // 2)
    return lists._replace(body=_body(request, _paragraphs(said), closing, room))


def completed(summary: Summary, request: SummaryRequest) -> Summary:
    """Return a summary with the title, key actions and file changes that it lacks.

    These are for its record; a view shows what the summarizer gave.
    """
    has_lists = bool(summary.key_actions or summary.file_changes)
    if has_lists and summary.title:
        return summary
    lists = summary
    if not has_lists:
        deeds, _ = _read(request, ())
        lists = _lists(_done(deeds), request.max_chars)
    return summary._replace(
        title=summary.title or title(request.started_at, request.ended_at),
        key_actions=lists.key_actions,
        file_changes=lists.file_changes,
        shown=rendered(summary),
    )


class _Done(NamedTuple):
    """The distinct actions with their worth, and what became of each file."""

    actions: dict[KeyAction, int]
    changes: tuple[FileChange, ...]


def _done(deeds: Sequence[Deed]) -> _Done:
    changes = last_changes(change for deed in deeds for change in deed.changes)
    return _Done(worth_by_action(deeds), changes)


def _read(request: SummaryRequest, parts: Sequence[str]) -> tuple[list[Deed], list[Speech]]:
    """Return what each answered call did, and who said what in some parts, in order.

    In one pass, so that no more need be in memory. An id that is met again means the nearest call
    before.
    """
    deeds: list[Deed] = []
    said: list[Speech] = []
    waiting: dict[object, GivenCall] = {}
    limit = max(_TEXT_LIMIT, request.max_chars // max(len(request.messages), 1))
    judge = Judge(request.policy, request.tool_kinds)
    for message in request.messages:
        waiting |= calls_by_id(message)
        if message.get("role") in RESULT_ROLES:
            answered = waiting.pop(answered_call_id(message), None)
            deeds.append(deed_of(answered or unknown_call(message), message, judge))
        said += _speeches(message, parts, limit)
    return deeds, said


def _speeches(message: Message, parts: Sequence[str], limit: int) -> Iterator[Speech]:
    """Yield who speaks in a message, and the text in one line of at most ``limit`` code points."""
    for voice, text in _voices(message, parts):
        yield voice, one_line(scrubbed(text[: 8 * limit]), limit)


def _lists(done: _Done, room: int) -> Summary:
    """Return the actions and changes that have room, as a summary without a body.

    Changes take half of it at most. Of actions those worth most are kept, in their own order.
    """
    changes = newest(done.changes, change_line, room // 2)
    room -= rendered_size(Summary("", file_changes=changes))
    by_worth = sorted(done.actions, key=done.actions.__getitem__)
    chosen = {*newest(by_worth, action_line, room)}
    actions = tuple(action for action in done.actions if action in chosen)
    return Summary("", key_actions=actions, file_changes=changes)


def _left_out(done: _Done, lists: Summary) -> str:
    counts = {
        "action": len(done.actions) - len(lists.key_actions),
        "file change": len(done.changes) - len(lists.file_changes),
    }
    said = [f"{count} more {what}{'s' * (count > 1)}" for what, count in counts.items() if count]
    return f"({' and '.join(said)} not listed.)" if said else ""


def _closing(note: str, counts: str, room: int) -> str:
    """Return what the body closes with: what is not listed, and what was done in numbers."""
    both = "\n".join(filter(None, (note, counts)))
    return next((each for each in (both, counts, note) if len(each) < room), "")


def _body(request: SummaryRequest, paragraphs: Sequence[str], closing: str, room: int) -> str:
    """Return the previous summary, what was said, and the closing, in ``room`` code points.

    It is never empty.
    """
    left = room - len(closing) - 1
    said_size = sum(len(paragraph) + 1 for paragraph in paragraphs)
    before = _flattened(request.previous_summary or "")
    before = _whole_lines(before, max(left // 2, left - said_size))
    said = _selected(paragraphs, left - len(before) - 1)
    body = "\n".join(filter(None, (before, said, closing)))
    return cut(body or f"{len(request.messages)} messages without text.", max(room, 1))


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
    sizes = accumulate(map(len, parts))
    return parts[: sum(1 for _ in takewhile(lambda size: size <= room, sizes))]


_HEADING = "|".join(
    ["# Summary of conversation.*", re.escape(ACTIONS_HEADING), re.escape(CHANGES_HEADING)]
)
_HEADINGS = re.compile(rf"\n*^(?:{_HEADING})\n*", re.MULTILINE)


def _flattened(summary: str) -> str:
    """Return a summary without the headings of one, its body first.

    So summaries of summaries do not nest.
    """
    lists, heading, body = scrubbed(summary).rpartition(BODY_HEADING)
    if not heading:
        lists, body = body, ""
    listed = _HEADINGS.sub("\n", lists).strip()
    return f"{body}\n{listed}".strip()


def _voices(message: Message, parts: Sequence[str]) -> Iterator[Speech]:
    """Yield who speaks in a message, and the text, for each part that is kept."""
    role = message.get("role")
    if "reasoning" in parts:
        thought = message.get("reasoning_content") or message.get("reasoning")
        if isinstance(thought, str):
            yield "Reasoning", thought
    if role in RESULT_ROLES and "tool" in parts:
        yield "Tool", message_content(message)
    if role in ("user", "assistant") and "text" in parts:
        yield "User" if role == "user" else _ASSISTANT, message_content(message)


def _paragraphs(said: Iterable[Speech]) -> list[str]:
    """Return one for each text; of an assistant's texts in a row only the last, its answer."""
    told = [speech for speech in said if speech[1]]
    following = [voice for voice, _ in told[1:]]
    return [
        f"{voice}: {text}"
        for (voice, text), after in zip_longest(told, following)
        if not voice == after == _ASSISTANT
    ]


def _selected(paragraphs: Sequence[str], room: int) -> str:
    """Return paragraphs that fit.

    All, else the first, which names the goal, and the newest, with ``...`` between.
    """
    if room <= 0:
        return ""
    text = "\n".join(paragraphs)
    if len(text) <= room:
        return text
    goal = cut(paragraphs[0], room // 2)
    left = room - len(goal) - len(f"\n{ELLIPSIS}")
    sizes = accumulate(len(paragraph) + 1 for paragraph in reversed(paragraphs[1:]))
    count = sum(size <= left for size in sizes)
    newest_ones = paragraphs[len(paragraphs) - count :]
    return cut("\n".join([goal, ELLIPSIS, *newest_ones]), room)
