"""One row of a Claude Code session file that is of the conversation, and what sorting needs of it.

Which rows make which message is decided elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import NamedTuple

from ...text import Fields
from ..blocks import Block, blocks_of
from ..events import text_of, without
from .agents import cost_of

CONVERSATION = ("user", "assistant")

Indices = Sequence[int | None]
"""For each row the index of another, None where there is none."""

OF_ONE_MESSAGE = {
    "parentUuid",
    "logicalParentUuid",
    "timestamp",
    "requestId",
    "promptId",
    "isMeta",
    "isCompactSummary",
    "isVisibleInTranscriptOnly",
    "compactMetadata",
    "permissionMode",
    "sourceToolAssistantUUID",
    "sourceToolUseID",
    "queued",
    "agent_cost",
}
"""Envelope keys that stay with their message even where a whole session has the same value."""

_NOT_ENVELOPE = ("type", "uuid", "message", "toolUseResult")
_NOT_EXTRA = ("role", "content", "id")


class Row(NamedTuple):
    """One row of the conversation.

    ``envelope`` holds the fields around the API's message, ``api`` the fields of the message other
    than its content.
    """

    uuid: str | None
    parent: str | None
    role: str
    sidechain: bool
    agent: str | None
    message_id: str | None
    content: object
    envelope: Fields
    api: Fields
    blocks: list[Block]

    @property
    def request_id(self) -> str | None:
        """Return the API request that a row answers, None where the row does not say."""
        return text_of(self.envelope.get("requestId"))

    @property
    def is_summary(self) -> bool:
        """Tell whether a row is the summary that a compaction made."""
        return self.envelope.get("isCompactSummary") is True

    def holds(self, kind: str) -> bool:
        """Tell whether one of the row's blocks is of a type."""
        return any(block.get("type") == kind for block in self.blocks)


class Outline(NamedTuple):
    """What sorting needs of a row; many rows have the same.

    ``begins_turn`` where it is a prompt that a user typed; ``width`` is how many messages the row
    of a user makes.
    """

    role: str
    sidechain: bool
    agent: str | None
    is_prompt: bool
    begins_turn: bool
    is_summary: bool
    has_request: bool
    width: int


def is_prompt(row: Row) -> bool:
    """Tell whether a user said a row on the main line: no tool's result and no summary."""
    if row.role != "user" or row.sidechain or row.is_summary:
        return False
    return not row.holds("tool_result")


LINKS = {"assistant": ("tool_use", "id"), "user": ("tool_result", "tool_use_id")}
"""Role of a row → the type of its blocks that name calls, and the key of the call's id."""


def row_of(value: Fields) -> Row | None:
    """Return a row of the conversation, None where it has no message that can be read."""
    message, role = value.get("message"), text_of(value.get("type"))
    if not isinstance(message, dict) or is_unread(message):
        return None
    blocks = blocks_of(message.get("content"))
    if blocks is None or role is None:
        return None
    return Row(
        uuid=text_of(value.get("uuid")),
        parent=parent_of(value),
        role=role,
        sidechain=value.get("isSidechain") is True,
        agent=text_of(value.get("agentId")),
        message_id=text_of(message.get("id")),
        content=message.get("content"),
        envelope=without(value, *_NOT_ENVELOPE) | cost_of(value.get("toolUseResult")),
        api=_api_of(message, value["type"]),
        blocks=blocks,
    )


def is_unread(message: Fields) -> bool:
    """Tell a message that has its words elsewhere, as those of a program much like this one."""
    return "parts" in message and "content" not in message


def parent_of(value: Fields) -> str | None:
    """Return the uuid of the row that a row hangs on, None where it hangs on nothing."""
    return text_of(value.get("parentUuid")) or text_of(value.get("logicalParentUuid"))


def _api_of(message: Fields, role: str) -> Fields:
    """Return what the API's message says beyond its content; its role only where it is another."""
    api = without(message, *_NOT_EXTRA)
    if api.get("type") == "message":
        del api["type"]
    if message.get("role", role) != role:
        api["role"] = message["role"]
    return api


def block_key(row: Row, moment: object, block: Block) -> object:
    """Return the key of a block, the same for all its copies.

    A tool call is identified by its id within its message, any other block by its moment.
    """
    if _is_known_call(row, block):
        moment = None
    return row.role, row.sidechain, row.agent, row.message_id, moment, block


def _is_known_call(row: Row, block: Block) -> bool:
    if block.get("type") != "tool_use" or not block.get("id"):
        return False
    return bool(row.message_id and row.request_id)


def constant_of(rows: Iterable[Row]) -> Fields:
    """Return the fields that all envelopes of a run share, except those of a single message.

    A row of the queue has hardly any envelope and is not compared.
    """
    waiting = iter(rows)
    first = next(waiting)
    each = chain([first], waiting)
    whole = (row.envelope for row in each if row.uuid or "queued" not in row.envelope)
    constant = without(next(whole, first.envelope), *OF_ONE_MESSAGE)
    for other in whole:
        differing = [key for key in constant if not _same(constant, other, key)]
        constant = without(constant, *differing) if differing else constant
    return constant


def _same(one: Fields, other: Fields, key: str) -> bool:
    """Tell whether two objects have the same value under a key; 1 and True are not the same."""
    if key not in one or key not in other:
        return False
    value, others = one[key], other[key]
    return type(value) is type(others) and bool(value == others)


def differences(first: Fields, other: Fields) -> Fields:
    """Return what an envelope says otherwise than the first one."""
    differing = (key for key in other if not _same(first, other, key))
    return {key: other[key] for key in differing}
