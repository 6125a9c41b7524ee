"""One row of a Claude Code session file that is of the conversation, and what sorting needs of it.

Which rows make which message is decided elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import NamedTuple

from ...text import JsonFields
from ..blocks import ContentBlock, parse_blocks
from ..disk_buffer import KeyNumbers
from ..parser_events import drop_keys, get_fields, get_text

AGENT_PROGRESS_TYPE = "agent_progress"
AGENT_COST_KEYS = ("totalTokens", "totalDurationMs", "totalToolUseCount", "usage")
"""Keys of a subagent's result that tell its cost; ``usage`` is that of its last request."""
_PROGRESS_ROW_KEYS = ("data", "uuid", "timestamp", "toolUseID", "parentToolUseID")


class SubagentTracker:
    """Follow the subagents of a session: the calls that began them, and their last rows.

    ``_prompts`` leads from what calls ask of subagents to these calls, the first that asks it.
    """

    def __init__(self) -> None:
        self._prompts = KeyNumbers()
        self._asking: list[str] = []
        self.calls: dict[str, str] = {}
        self._last: dict[str, str | None] = {}

    def took(self, value: JsonFields) -> JsonFields | None:
        """Return the row of a subagent's that a row of progress holds, None where it holds none."""
        data = get_fields(value.get("data"))
        agent, said = get_text(data.get("agentId")), get_fields(data.get("message"))
        if (
            data.get("type") != AGENT_PROGRESS_TYPE
            or not agent
            or said.get("type") not in AGENT_MESSAGE_TYPES
        ):
            return None
        self.began(agent, get_text(value.get("parentToolUseID")))
        place = {"parentUuid": self._last.get(agent), "isSidechain": True, "agentId": agent}
        self._last[agent] = get_text(said.get("uuid"))
        return {**drop_keys(value, *_PROGRESS_ROW_KEYS), **said, **place}

    def began(self, agent: str | None, call: str | None) -> None:
        """Keep which call began a subagent."""
        if agent and call:
            self.calls[agent] = call

    def asked_in(self, blocks: Iterable[ContentBlock]) -> None:
        """Keep what calls ask of subagents."""
        for block in blocks:
            prompt = get_text(get_fields(block.get("input")).get("prompt"))
            call = get_text(block.get("id"))
            if block.get("type") == "tool_use" and prompt and call:
                self._prompts.setdefault(prompt, len(self._asking))
                self._asking.append(call)

    def call_that_asks(self, prompt: str) -> str | None:
        """Return the first call that asked a subagent for something."""
        number = self._prompts.get(prompt)
        return None if number is None else self._asking[number]


AGENT_MESSAGE_TYPES = ("user", "assistant")


def parse_agent_cost(result: object) -> JsonFields:
    """Return what the result of a call says of a subagent's cost, as a key of its message."""
    told = get_fields(result)
    cost = {key: told[key] for key in AGENT_COST_KEYS if key in told}
    return {"agent_cost": cost} if "totalTokens" in cost else {}


CONVERSATION_ROW_TYPES = ("user", "assistant")

RowIndices = Sequence[int | None]
"""For each row the index of another, None where there is none."""

MESSAGE_ENVELOPE_KEYS = {
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

_NON_ENVELOPE_KEYS = ("type", "uuid", "message", "toolUseResult")
_NON_EXTRA_KEYS = ("role", "content", "id")


class ConversationRow(NamedTuple):
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
    envelope: JsonFields
    api: JsonFields
    blocks: list[ContentBlock]

    @property
    def request_id(self) -> str | None:
        """Return the API request that a row answers, None where the row does not say."""
        return get_text(self.envelope.get("requestId"))

    @property
    def is_summary(self) -> bool:
        """Tell whether a row is the summary that a compaction made."""
        return self.envelope.get("isCompactSummary") is True

    def holds(self, kind: str) -> bool:
        """Tell whether one of the row's blocks is of a type."""
        return any(block.get("type") == kind for block in self.blocks)


class RowOutline(NamedTuple):
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


CALL_BLOCK_BY_ROLE = {"assistant": ("tool_use", "id"), "user": ("tool_result", "tool_use_id")}
"""Role of a row → the type of its blocks that name calls, and the key of the call's id."""


def parse_conversation_row(value: JsonFields) -> ConversationRow | None:
    """Return a row of the conversation, None where it has no message that can be read."""
    message, role = value.get("message"), get_text(value.get("type"))
    if not isinstance(message, dict) or has_only_parts(message):
        return None
    blocks = parse_blocks(message.get("content"))
    if blocks is None or role is None:
        return None
    return ConversationRow(
        uuid=get_text(value.get("uuid")),
        parent=find_parent_uuid(value),
        role=role,
        sidechain=value.get("isSidechain") is True,
        agent=get_text(value.get("agentId")),
        message_id=get_text(message.get("id")),
        content=message.get("content"),
        envelope=drop_keys(value, *_NON_ENVELOPE_KEYS)
        | parse_agent_cost(value.get("toolUseResult")),
        api=_pick_api_fields(message, value["type"]),
        blocks=blocks,
    )


def has_only_parts(message: JsonFields) -> bool:
    """Tell a message that has its words elsewhere, as those of a program much like this one."""
    return "parts" in message and "content" not in message


def find_parent_uuid(value: JsonFields) -> str | None:
    """Return the uuid of the row that a row hangs on, None where it hangs on nothing."""
    return get_text(value.get("parentUuid")) or get_text(value.get("logicalParentUuid"))


def _pick_api_fields(message: JsonFields, role: str) -> JsonFields:
    """Return what the API's message says beyond its content; its role only where it is another."""
    api = drop_keys(message, *_NON_EXTRA_KEYS)
    if api.get("type") == "message":
        del api["type"]
    if message.get("role", role) != role:
        api["role"] = message["role"]
    return api


def build_block_key(row: ConversationRow, moment: object, block: ContentBlock) -> object:
    """Return the key of a block, the same for all its copies.

    A tool call is identified by its id within its message, any other block by its moment.
    """
    if block.get("type") != "tool_use" or not block.get("id"):
        call = False
    else:
        call = bool(row.message_id and row.request_id)
    if call:
        moment = None
    return row.role, row.sidechain, row.agent, row.message_id, moment, block


def find_constant_fields(rows: Iterable[ConversationRow]) -> JsonFields:
    """Return the fields that all envelopes of a run share, except those of a single message.

    A row of the queue has hardly any envelope and is not compared.
    """
    waiting = iter(rows)
    first = next(waiting)
    each = chain([first], waiting)
    whole = (row.envelope for row in each if row.uuid or "queued" not in row.envelope)
    constant = drop_keys(next(whole, first.envelope), *MESSAGE_ENVELOPE_KEYS)
    for other in whole:
        differing = [key for key in constant if not _has_same_value(constant, other, key)]
        constant = drop_keys(constant, *differing) if differing else constant
    return constant


def _has_same_value(one: JsonFields, other: JsonFields, key: str) -> bool:
    """Tell whether two objects have the same value under a key; 1 and True are not the same."""
    if key not in one or key not in other:
        return False
    value, others = one[key], other[key]
    return type(value) is type(others) and bool(value == others)


def pick_differing_fields(first: JsonFields, other: JsonFields) -> JsonFields:
    """Return what an envelope says otherwise than the first one."""
    differing = (key for key in other if not _has_same_value(first, other, key))
    return {key: other[key] for key in differing}
