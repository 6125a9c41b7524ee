"""Convert a foreign message to rows, and rows back to the message.

A row of the store is one message of a chat: it holds a text or one result of a tool, and its calls
are in rows of their own. Everything that reads a conversation (facts, rules, pairing, compaction,
search) works on such rows, and a position is the place of one row. So a foreign message is stored
as the equivalent chat messages: an Anthropic message of a user with three results and a text
becomes three tool messages and a user message, at four positions, and every rule sees three
results. Nothing is stored twice. Values without a place in the chat shape are kept beside each row
(`_wire`): the order of blocks, reasoning, and the foreign keys, with null for the values that the
row holds itself. The way back fills these in, so it is exact, and it reads only the rows of the
message: each row knows its number and the number of rows. A line that was rewound into the middle
of a message has the beginning of that message.

``_wire`` holds: ``format``, the name of the format; ``part``, the number of this piece of the
original message, from 0, and the number of pieces; ``outer``, the message's own keys; ``block``,
the keys of the item that it is; ``plan``, the order of its parts and calls; ``calls``, the values
of calls that a chat has no key for; ``said``, the key of a response that held its text; ``keys``,
``was`` and ``moved``, for a chat's message its keys in order, and the keys that the row has
elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from ..messages import TIME_KEYS, WIRE_KEY, Message, find_json_problem
from .request_messages import ApiCall, PlacedMessage

PART, CALL = "part", "call"
"""The places of a plan for a part of the content and for a call; any other place is a block."""


def find_wire_values(message: Message, name: str) -> Message | None:
    """Return the values that a message keeps of a format; None if it came in another."""
    if WIRE_KEY not in message:
        return None
    held = message[WIRE_KEY]
    if isinstance(held, dict) and held.get("format") == name:
        return held
    return None


def order_by_plan(
    plan: Sequence[Any],
    parts: Sequence[Any],
    calls: Mapping[int, Any],
) -> Iterator[tuple[str, Any]]:
    """Yield the places of a plan with their values, then the values that have no place in it.

    A block in the plan itself is yielded unchanged, under an empty name; calls that are not sent
    are left out.
    """
    left = iter(parts)
    number = 0
    for place in plan:
        if place == CALL:
            if number in calls:
                yield CALL, calls[number]
            number += 1
        elif place == PART:
            yield from ((PART, part) for part in islice(left, 1))
        else:
            yield "", place
    yield from ((PART, part) for part in left)
    yield from ((CALL, call) for position, call in calls.items() if position >= number)


def index_calls_by_position(calls: Sequence[ApiCall]) -> dict[int, ApiCall]:
    """Return calls by their places in their message."""
    return {call.position: call for call in calls}


Problem = tuple[str, str]
"""The key that shows that a message is not of a format, and the reason."""


class Codec(NamedTuple):
    """The functions that convert messages of a format to rows and back unchanged."""

    find_problem: Callable[[Message], Problem | None]
    """Returns why a message is not of the format; None if it is."""
    is_recognized: Callable[[Message], bool]
    """Tells by its shape whether a message can be of no other format."""
    build_rows: Callable[[Message], list[Message]]
    """Returns the rows that store a message of the format."""
    restore: Callable[[Sequence[Message]], Message]
    """Returns the original message, or its beginning, from its rows."""
    build_redacted: Callable[[Message, Message], Message] = lambda *_: {}
    """Returns the values that stay beside a row when it is redacted: from the row before and after
    the redaction.
    """
    write_parts: Callable[[PlacedMessage], list[Message]] | None = None
    """Returns the parts that are sent of one message; None if a message is not sent in parts."""


class SortedBlocks(NamedTuple):
    """The blocks of an answer, sorted into parts and calls, and the plan of their order."""

    parts: list[Any]
    calls: list[Message]
    plan: list[Any]

    @property
    def shown(self) -> Message:
        """The keys of the row that hold them."""
        if self.calls:
            return {"content": self.parts or None, "tool_calls": self.calls}
        return {"content": self.parts} if self.parts or not self.plan else {}

    @property
    def order(self) -> Message:
        """Their order, to keep beside the row; empty for the usual order of parts, then calls."""
        usual = [PART] * len(self.parts) + [CALL] * len(self.calls)
        return {} if self.plan == usual else {"plan": self.plan}


def sort_blocks(
    blocks: Iterable[Any],
    kind: Callable[[Any], str],
    part: Callable[[Any], Any],
    call: Callable[[Any], Message],
) -> SortedBlocks:
    """Return the blocks of an answer by kind: parts, calls, and blocks kept in the plan."""
    found = SortedBlocks([], [], [])
    for block in blocks:
        place = kind(block)
        found.plan.append(place or block)
        if place == CALL:
            found.calls.append(call(block))
        elif place == PART:
            found.parts.append(part(block))
    return found


def split_runs(
    blocks: Iterable[Message], is_result: Callable[[Message], object]
) -> list[list[Message]]:
    """Return the blocks of a user in runs: each result alone; one empty run if there are none."""
    runs: list[list[Message]] = []
    for block in blocks:
        if not runs or is_result(block) or is_result(runs[-1][0]):
            runs.append([block])
        else:
            runs[-1].append(block)
    return runs or [[]]


def build_row(name: str, role: str, shown: Message, beside: Message) -> Message:
    """Return a row of a format from its chat keys and the values kept beside them."""
    return {"role": role, **shown, WIRE_KEY: {"format": name, **beside}}


def join_rows(rows: list[Message], message: Message, outer: Message) -> list[Message]:
    """Return the rows of a message with the data of the message: its id and its time.

    The last row keeps the message's own keys and has its id; other rows have the id of a part.
    """
    message_id = message.get("id")
    is_named = isinstance(message_id, str | int) and find_json_problem(message_id) is None
    for number, each in enumerate(rows):
        each |= {key: message[key] for key in TIME_KEYS if key in message}
        if len(rows) > 1:
            each[WIRE_KEY]["part"] = [number, len(rows)]
        if is_named:
            each["id"] = f"{message_id}/{number + 1}"
    if "id" in message:
        rows[-1]["id"] = message["id"]
    rows[-1][WIRE_KEY] |= outer
    return rows


def build_outer_keys(message: Message, content: str, usual_role: str) -> Message:
    """Return the message's own keys to keep; none if they are the usual two."""
    if [*message] == ["role", content] and message["role"] == usual_role:
        return {}
    return {"outer": {**message, content: None}}


def restore_outer_keys(row: Message, content: str, role: str) -> Message:
    """Return a message's own keys from its last row; a redacted message has only its id left."""
    held = get_wire_values(row)
    outer: Message = held.get("outer") or {"role": role, content: None}
    number, of = held.get("part", (0, 1))
    is_last = number + 1 == of
    return {**outer, "id": row["id"]} if is_last and "id" in row else outer


def empty_keys(block: Message, *keys: str) -> Message:
    """Return a block with null for the values that its row holds."""
    return {key: None if key in keys else held for key, held in block.items()}


def fill_keys(block: Message, **values: Any) -> Message:
    """Return a block with values filled in."""
    return {key: values.get(key, held) for key, held in block.items()}


def find_first_key(block: Message, keys: Iterable[str]) -> str | None:
    """Return the first of some keys that a block has."""
    return next((key for key in keys if key in block), None)


def get_wire_values(message: Message) -> Message:
    """Return the values that a row keeps of its format."""
    held: Message = message[WIRE_KEY]
    return held
