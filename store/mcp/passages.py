"""Passages: what belongs together in a session, as a text cut around what was asked.

A passage is a message, or a call with all its results, since a result says little without its call.
Of a long one the lines with the rarest words of the question are kept, with what stands around
them; where lines are missing, a mark tells how many code points they have.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterator, Mapping
from itertools import takewhile
from typing import Any, NamedTuple

from ..records import StoredMessage, find_message_time
from ..text import parse_object
from ..tokens import estimate, message_text
from .answers import SourceState, count_json_tokens

GROUP_REACHES = (2, 20, 200)
"""Positions around a message in which its call and its results are looked for, one by one."""
LINE_LENGTH = 400
"""Code points of a line that are kept around a word; a longer line is cut."""
SHOWN_NEAR_LENGTH = 2_000
"""Code points on each side of the best place of a long text that can be shown."""
LONGEST_KEY_LENGTH = 4_000
"""Code points on each side of a line without which a key in it may not be known as one."""
LINE_TOKENS = 3
"""Tokens that a line costs beside its text."""
NEIGHBOURS = 6
"""Lines that are kept on each side of a line with words, if there is room."""
MAIN_ARGUMENTS = ("command", "cmd", "script", "code", "file_path", "path", "pattern", "query")
"""Arguments that come first of a call."""
HEADED_ROLES = {"tool": "result", "function": "result"}


class Group(NamedTuple):
    """The messages of a passage, in the chat format, and all of them as a text."""

    session_id: str
    messages: tuple[StoredMessage, ...]
    text: str

    @property
    def first(self) -> int:
        """The position of its first message."""
        return self.messages[0].seq

    @property
    def last(self) -> int:
        """The position of its last message."""
        return self.messages[-1].seq

    @property
    def name(self) -> str:
        """Its session and the position of its first message, which no other passage has."""
        return f"{self.session_id}:{self.first}"

    @property
    def at(self) -> int:
        """The time of its first message."""
        return get_moment(self.messages[0])


def get_moment(stored: StoredMessage) -> int:
    """Return the time that a message tells, otherwise when it was stored (ms)."""
    told = find_message_time(stored.message)
    return stored.stored_at if told is None else told


def load_group(source: SourceState, session_id: str, seq: int) -> Group | None:
    """Return the message at a position with its call or its results; None if there is none."""
    for reach in GROUP_REACHES:
        start = max(1, seq - reach)
        near = source.messages(session_id, start, seq + reach, format="openai")
        before = [each for each in near if each.seq <= seq] or near[:1]
        if not before:
            return None
        begun = [*takewhile(is_result, reversed(before))]
        answers = takewhile(is_result, near[len(before) :])
        group = (*before[-len(begun) - 1 :], *answers)
        is_whole = start == 1 or not is_result(group[0])
        if is_whole and group[-1].seq < seq + reach:
            break
    text = "\n".join(render_message(each.message) for each in group)
    return Group(session_id, group, text)


def is_result(stored: StoredMessage) -> bool:
    """Tell whether a message is the result of a call."""
    return stored.message.get("role") in HEADED_ROLES


def render_message(message: Mapping[str, Any]) -> str:
    """Return a message as a text: who speaks, the words, and the calls with their arguments."""
    role = str(message.get("role"))
    calls = message.get("tool_calls")
    said = message_text({"content": message.get("content") or message.get("refusal")})
    lines = [f"{HEADED_ROLES.get(role, role)}: {said}"] if said.strip() or not calls else []
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            lines.append(f"call {function.get('name')}: {render_call_arguments(function)}")
    return "\n".join(lines)


def render_call_arguments(function: Mapping[str, Any]) -> str:
    """Return the arguments of a call as people write them: a text each, the main ones first."""
    given = function.get("arguments")
    fields = given if isinstance(given, dict) else parse_object(given)
    if not fields:
        return str(given or "")
    main = [name for name in MAIN_ARGUMENTS if name in fields]
    names = [*main, *(name for name in fields if name not in main)]
    return "\n".join(
        render_value(fields[name]) if name in main[:1] else f"{name}: {render_value(fields[name])}"
        for name in names
    )


def render_value(value: Any) -> str:
    """Return the value of an argument as a text."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return " ".join(value)
    return json.dumps(value, ensure_ascii=False)


class PassageLine(NamedTuple):
    """A line that can be shown; ``before`` code points are missing in any case before it."""

    text: str
    before: int = 0


def cut_passage(
    group: Group,
    at: int,
    clean: Callable[[str], str],
    weigh: Callable[[list[PassageLine]], list[float]],
    room: int,
) -> str:
    """Return as much of a passage as so many tokens hold: its best lines with those around them.

    Of a long one the surroundings of a place are looked through. ``clean`` covers keys, ``weigh``
    tells what lines are worth.
    """
    if estimate(group.text) <= room * 2:
        shown = clean(group.text)
        if count_json_tokens(shown) <= room:
            return shown
    lines = list_passage_lines(group.text, at, clean)
    worth = weigh(lines)
    best = sorted(range(len(lines)), key=lambda at: -worth[at])
    telling = [at for at in best if worth[at] > 0]
    chosen = [best[0], 0, *telling]
    kept = keep_lines(lines, [*chosen, *find_neighbours(chosen, len(lines))], room)
    while count_json_tokens(shown := join_lines(lines, kept)) > room and len(kept) > 1:
        kept.popitem()
    return shown if kept else lines[best[0]].text[: room * 2]


def list_passage_lines(text: str, at: int, clean: Callable[[str], str]) -> list[PassageLine]:
    """Return the first line of a text and those around a place, all of a text that is not long.

    What is cleaned has room for the longest key on both sides of what is returned.
    """
    reach = SHOWN_NEAR_LENGTH + LONGEST_KEY_LENGTH
    if len(text) <= 2 * reach:
        return [*map(PassageLine, split_lines(clean(text)))]
    first, last = max(0, at - reach), min(len(text), at + reach)
    near = clean(text[first:last])
    left, right = LONGEST_KEY_LENGTH * (first > 0), LONGEST_KEY_LENGTH * (last < len(text))
    begun, *others = map(PassageLine, split_lines(near[left : len(near) - right]))
    lines = [begun, *others, PassageLine("", len(text) - last + right)]
    if first:
        heading = clean(text[:LONGEST_KEY_LENGTH]).split("\n", 1)[0][:LINE_LENGTH]
        missing = max(0, first + left - len(heading))
        lines[:1] = [PassageLine(heading), begun._replace(before=missing)]
    return lines


def keep_lines(lines: list[PassageLine], wanted: list[int], room: int) -> dict[int, None]:
    """Return as many of the wanted lines, the first first, as about so many tokens hold."""
    kept: dict[int, None] = {}
    for at in wanted:
        size = estimate(lines[at].text) + LINE_TOKENS
        if at not in kept and size <= room:
            kept[at] = None
            room -= size
    return kept


def find_neighbours(chosen: list[int], count: int) -> Iterator[int]:
    """Yield the lines around some lines, the nearest to the first of them first."""
    for distance in range(1, NEIGHBOURS + 1):
        for at in chosen[: NEIGHBOURS * 2]:
            yield from (near for near in (at + distance, at - distance) if 0 <= near < count)


def split_lines(text: str) -> list[str]:
    """Return the lines of a text, long ones in pieces that are short enough to be chosen among."""
    return [
        line[at : at + LINE_LENGTH]
        for line in text.split("\n")
        for at in range(0, max(1, len(line)), LINE_LENGTH)
    ]


def join_lines(lines: list[PassageLine], kept: Container[int]) -> str:
    """Return the lines that are kept, with marks where others are missing."""
    shown: list[str] = []
    missing = 0
    for at, line in enumerate([*lines, PassageLine("")]):
        missing += line.before
        if at in kept or at == len(lines):
            shown += [f"[… {missing:,} more]"] if missing else []
            shown.append(line.text)
            missing = 0
        else:
            missing += len(line.text) + 1
    return "\n".join(shown[:-1])
