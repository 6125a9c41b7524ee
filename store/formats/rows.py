"""How a foreign message becomes rows, and rows the message again.

A row of the store is one message of a chat: it holds what was said, or one result of a tool, and
its calls stand in rows of their own. Everything that looks into a conversation (facts, rules,
pairing, compaction, search) is about such rows, and a position is the place of one. So a foreign
message is stored as the chat messages that it amounts to: an Anthropic message of a user with three
results and a text is three tool messages and a user's, at four positions, and every rule sees three
results. Nothing is stored twice. What the chat shape has no place for is kept beside each row
(`kept`): the order of blocks, reasoning, and the foreign keys with null in the places of what the
row says itself. The way back fills these in, so it is exact, without a look at any other row than
those of the message: they say themselves which part of how many they are. A line that was rewound
into the middle of a message has the beginning of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from ..messages import TIME_KEYS, WIRE, Message
from .kept import CALL, PART

Problem = tuple[str, str]
"""The key under which a message is not of a format, and why."""


class Codec(NamedTuple):
    """How messages of a format come in, and out again as they were."""

    problem: Callable[[Message], Problem | None]
    """Says why a message is not of the format; None where it is."""
    is_told: Callable[[Message], bool]
    """Tells a message that can be of no other format, by its shape."""
    rows: Callable[[Message], list[Message]]
    """Returns a message of the format as the rows that it is stored as."""
    given: Callable[[Sequence[Message]], Message]
    """Returns the message that went in, or the beginning of it, from its rows."""
    left: Callable[[Message, Message], Message] = lambda *_: {}
    """Returns what is kept of a part of a message, beside its row, when its words are taken out: by
    the row as it was, and as it is without them.
    """


class Sorted(NamedTuple):
    """The blocks of an answer by what becomes of them, and their order where it is not usual."""

    parts: list[Any]
    calls: list[Message]
    plan: list[Any]

    @property
    def shown(self) -> Message:
        """What a row has of them."""
        if self.calls:
            return {"content": self.parts or None, "tool_calls": self.calls}
        return {"content": self.parts} if self.parts or not self.plan else {}

    @property
    def order(self) -> Message:
        """What is kept of them beside the row: parts first, then calls, is the usual order."""
        usual = [PART] * len(self.parts) + [CALL] * len(self.calls)
        return {} if self.plan == usual else {"plan": self.plan}


def sorted_out(
    blocks: Iterable[Any],
    kind: Callable[[Any], str],
    part: Callable[[Any], Any],
    call: Callable[[Any], Message],
) -> Sorted:
    """Return the blocks of an answer by their kinds: parts, calls, and those that are set apart."""
    found = Sorted([], [], [])
    for block in blocks:
        place = kind(block)
        found.plan.append(place or block)
        if place == CALL:
            found.calls.append(call(block))
        elif place == PART:
            found.parts.append(part(block))
    return found


def row(name: str, role: str, shown: Message, beside: Message) -> Message:
    """Return a row of a format: what it shows, and what is kept beside it."""
    return {"role": role, **shown, WIRE: {"format": name, **beside}}


def together(rows: list[Message], message: Message, outer: Message) -> list[Message]:
    """Return the rows of a message with what it says of itself: its id, and when it was said.

    Its own keys are kept by the last row, which has its id; the others have the id of a part.
    """
    for number, each in enumerate(rows):
        each |= {key: message[key] for key in TIME_KEYS if key in message}
        if len(rows) > 1:
            each[WIRE]["part"] = [number, len(rows)]
        if isinstance(message.get("id"), str | int):
            each["id"] = f"{message['id']}/{number + 1}"
    if "id" in message:
        rows[-1]["id"] = message["id"]
    rows[-1][WIRE] |= outer
    return rows


def outer_of(message: Message, content: str, usual_role: str) -> Message:
    """Return what is kept of a message's own keys: nothing where they are the usual two."""
    if [*message] == ["role", content] and message["role"] == usual_role:
        return {}
    return {"outer": {**message, content: None}}


def outer_from(row: Message, content: str, role: str) -> Message:
    """Return a message's own keys by its last row; of one that is redacted its id is left."""
    held = wire_of(row)
    outer: Message = held.get("outer") or {"role": role, content: None}
    number, of = held.get("part", (0, 1))
    is_last = number + 1 == of
    return {**outer, "id": row["id"]} if is_last and "id" in row else outer


def emptied(block: Message, *keys: str) -> Message:
    """Return a block with null in the places of what its row says."""
    return {key: None if key in keys else held for key, held in block.items()}


def filled(block: Message, **values: Any) -> Message:
    """Return a block with values in their places."""
    return {key: values.get(key, held) for key, held in block.items()}


def first_key(block: Message, keys: Iterable[str]) -> str | None:
    """Return the first of some keys that a block has."""
    return next((key for key in keys if key in block), None)


def wire_of(message: Message) -> Message:
    """Return what a row keeps of its format."""
    held: Message = message[WIRE]
    return held
