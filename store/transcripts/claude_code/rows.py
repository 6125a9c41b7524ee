"""The rows of a Claude Code session file, read once.

A row of the conversation keeps its blocks and its envelope. Of any other row only what it says of
the conversation is kept, because most of a file's bytes are copies for the screen (progress,
``toolUseResult``). Which rows make which message is decided elsewhere.
"""

from __future__ import annotations

import marshal
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from typing import NamedTuple

from ...text import Fields, counted
from ..blocks import Block, blocks_of
from ..events import Noted, fields_of, left_out, omissions, sketch, text_of, without
from ..source import Value
from .agents import Agents, cost_of
from .queue import Queue, line_of_attachment, words_of

CONVERSATION = ("user", "assistant")

TITLES = {"custom-title": "customTitle", "ai-title": "aiTitle", "summary": "summary"}
"""Row type → its key that holds a title, the best first."""

SUBTYPES: dict[str, Callable[[Fields], object]] = {
    "system": lambda row: row.get("subtype"),
    "attachment": lambda row: fields_of(row.get("attachment")).get("type"),
    "progress": lambda row: fields_of(row.get("data")).get("type"),
    "queue-operation": lambda row: row.get("operation"),
}
"""Row type → what tells its rows apart, for the note on what was left out."""

BESIDE: dict[str, Callable[[str], bool]] = {
    "system": lambda subtype: subtype in ("local_command", "stop_hook_summary"),
    "attachment": lambda _: True,
    "progress": lambda subtype: subtype == "hook_progress",
}
"""Row type → of which of its rows what they say may be kept beside a message."""

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

PLAIN = 2
"""Version of marshal's format in which equal values are the same bytes, whoever else holds them."""

_NOT_ENVELOPE = ("type", "uuid", "message", "toolUseResult")
_NOT_EXTRA = ("role", "content", "id")


class Row(NamedTuple):
    """One row of the conversation.

    ``envelope`` is what stands around the API's message, ``api`` what the message says beyond its
    content, ``copies`` the uuids of rows that repeat this one.
    """

    uuid: str | None
    parent: str | None
    role: str
    sidechain: bool
    agent: str | None
    message_id: str | None
    content: object
    blocks: list[Block]
    envelope: Fields
    api: Fields
    copies: list[str]

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


class _Title(NamedTuple):
    """A title, the type of row that gave it, and the row that it names as its session's last."""

    kind: str
    text: str
    leaf: object


class Reading:
    """Collect a file's conversation, row by row.

    ``anchors`` leads from every uuid to the row of the conversation it stands for: the row itself,
    the row a copy repeats, or the nearest one above a row that is no conversation (None where there
    is none). ``agents`` leads from subagents to the calls that began them. ``_absorbed`` leads from
    words that left the queue for the turn that was running to their row. ``beside`` leads from rows
    to what hung on them and is no conversation, where that is to be kept.
    """

    def __init__(self, *, keeps_beside: bool = False) -> None:
        self._keeps_beside = keeps_beside
        self.beside: dict[int, list[Fields]] = {}
        self.rows: list[Row] = []
        self.anchors: dict[str, int | None] = {}
        self._subagents = Agents()
        self._titles: list[_Title] = []
        self._left_out: Counter[tuple[str, str]] = Counter()
        self._results = self._copies = 0
        self._blocks: dict[bytes, int] = {}
        self._boundary: Fields = {}
        self._queue = Queue()
        self._absorbed: dict[str, int] = {}

    @property
    def agents(self) -> dict[str, str]:
        """Return the calls that began subagents, by these."""
        return self._subagents.calls

    def knows(self, value: Fields) -> bool:
        """Tell whether a row hangs on what was read, or repeats it."""
        if {text_of(value.get("uuid")), _parent_of(value)} & self.anchors.keys():
            return True
        row = _row_of(value)
        return row is not None and all(key in self._blocks for key in self._keys(row))

    def title(self) -> str | None:
        """Return the session's last title: one the user gave before one that a program made."""
        titles = {title.kind: title.text for title in self._titles if self._is_own(title)}
        return next((titles[kind] for kind in TITLES if kind in titles), None)

    def titles(self) -> list[str]:
        """Return every title that the file gives, of which it was the last once."""
        return [title.text for title in self._titles]

    def notes(self) -> Iterator[Noted]:
        """Return a note for each sort of row that was left out."""
        foreign = [title.kind for title in self._titles if not self._is_own(title)]
        others = Counter((kind, "of other sessions") for kind in foreign)
        yield from omissions(self._left_out + others, "line")
        own = Counter(title.kind for title in self._titles if self._is_own(title))
        for kind, count in sorted(own.items()):
            yield Noted(None, f"took titles from {counted(count, f'{kind} line')}, the last counts")
        if self._queue.waiting:
            why = " that the model was never given"
            yield left_out(self._queue.waiting, "queued prompt", why)
        if self._copies:
            yield left_out(self._copies, "copied line", ", said before in the file")
        if self._results:
            lines = counted(self._results, "result line")
            told = f"left out toolUseResult of {lines}: most of it repeats the tool results"
            yield Noted(None, told)

    def _is_own(self, title: _Title) -> bool:
        """Tell whether a title is this session's; a file may begin with those of others."""
        return not isinstance(title.leaf, str) or title.leaf in self.anchors

    def take(self, item: Value) -> Noted | None:
        """Take a row; return what is wrong with it."""
        if not isinstance(item.value, dict):
            return Noted(item.row, f"{sketch(item.value)} is no line of a session", broken=True)
        kind = item.value.get("type")
        line = self._absorbed_line(item.value)
        if line:
            return self._take_conversation(Value(item.row, line))
        if kind in CONVERSATION:
            return self._take_conversation(item)
        self._take_other(item.value, kind if isinstance(kind, str) else "untyped")
        return None

    def _absorbed_line(self, value: Fields) -> Fields | None:
        """Return the line that a row of the queue, of progress or an attachment stands for."""
        kind = value.get("type")
        if kind == "queue-operation":
            return self._queue.take(value)
        if kind == "progress":
            return self._subagents_line(value)
        return line_of_attachment(value) if kind == "attachment" else None

    def _subagents_line(self, value: Fields) -> Fields | None:
        line = self._subagents.took(value)
        if line:
            self._anchor(text_of(value.get("uuid")), self._above(value))
        return line

    def _take_conversation(self, item: Value) -> Noted | None:
        row = _row_of(item.value)
        if row is None:
            text = f"a {item.value['type']} line without a message that can be read"
            return Noted(item.row, text, broken=True)
        self._drop_tool_use_result(item.value.get("toolUseResult"), row)
        original = self._original(row)
        if original is None:
            original = self._absorbed_before(row)
        if original is None:
            self._add(row)
        else:
            self._add_copy(row, original)
        return None

    def _absorbed_before(self, row: Row) -> int | None:
        """Return the row of the same words that left the queue just before, else None.

        What is said is queued no longer.
        """
        words = words_of(row.content)
        if row.role != "user" or self._queue.said(words):
            return None
        absorbed = self._absorbed.pop(words, None)
        is_last = absorbed == len(self.rows) - 1
        return absorbed if is_last or "queued" in row.envelope else None

    def _add(self, row: Row) -> None:
        index = len(self.rows)
        self._anchor(row.uuid, index)
        self.rows.append(self._with_boundary(row))
        if not row.uuid and "queued" in row.envelope:
            self._absorbed[words_of(row.content)] = index

    def _add_copy(self, row: Row, index: int) -> None:
        original = self.rows[index]
        self._anchor(row.uuid, index)
        self._copies += 1
        if row.uuid:
            original.copies.append(row.uuid)

    def _take_other(self, value: Fields, kind: str) -> None:
        """Remember a place in the tree, a title, or where the context was compacted."""
        self._anchor(text_of(value.get("uuid")), self._above(value))
        title = text_of(value.get(TITLES.get(kind, "")))
        if title:
            self._titles.append(_Title(kind, title, value.get("leafUuid")))
        elif kind == "system" and isinstance(value.get("compactMetadata"), dict):
            self._boundary = {"compactMetadata": value["compactMetadata"]}
        else:
            self._leave(kind, value)

    def _leave(self, kind: str, value: Fields) -> None:
        told = SUBTYPES[kind](value) if kind in SUBTYPES else None
        subtype = text_of(told) or ""
        if self._keeps_beside and kind in BESIDE and BESIDE[kind](subtype):
            self.beside.setdefault(self._above(value) or 0, []).append(value)
        else:
            self._left_out[kind, subtype] += 1

    def _above(self, value: Fields) -> int | None:
        """Return the row of the conversation above a row that is none."""
        parent = _parent_of(value)
        if parent:
            return self.anchors.get(parent)
        return len(self.rows) - 1 if self.rows else None

    def _anchor(self, uuid: str | None, index: int | None) -> None:
        if uuid is not None:
            self.anchors.setdefault(uuid, index)

    def _with_boundary(self, row: Row) -> Row:
        """Return a row; a compaction's summary with what was said of the compaction before it."""
        if not row.is_summary or not self._boundary:
            return row
        boundary, self._boundary = self._boundary, {}
        return row._replace(envelope=row.envelope | boundary)

    def _original(self, row: Row) -> int | None:
        """Return which row this one copies, None where it says anything new.

        A resumed or rewritten session repeats rows, under their own uuid or a new one, sometimes a
        block a row: a row of which each block was said before, at the same moment, is a copy.
        """
        originals = [self._blocks.setdefault(key, len(self.rows)) for key in self._keys(row)]
        return originals[0] if max(originals) < len(self.rows) else None

    def _keys(self, row: Row) -> list[bytes]:
        """Return what is equal for a row's blocks and their copies."""
        moment = row.envelope.get("timestamp") or row.uuid or len(self._blocks)
        return [_block_key(row, moment, block) for block in row.blocks or [{}]]

    def _drop_tool_use_result(self, result: object, row: Row) -> None:
        """Count a copy of a result, and keep which call began the subagent that it names."""
        if result is None:
            return
        self._results += 1
        agent = text_of(fields_of(result).get("agentId"))
        call = text_of(row.blocks[0].get("tool_use_id")) if row.blocks else None
        self._subagents.began(agent, call)


def _row_of(value: Fields) -> Row | None:
    """Return a row of the conversation, None where it has no message that can be read."""
    message = value.get("message")
    if not isinstance(message, dict) or is_unread(message):
        return None
    blocks = blocks_of(message.get("content"))
    if blocks is None:
        return None
    return Row(
        uuid=text_of(value.get("uuid")),
        parent=_parent_of(value),
        role=value["type"],
        sidechain=value.get("isSidechain") is True,
        agent=text_of(value.get("agentId")),
        message_id=text_of(message.get("id")),
        content=message.get("content"),
        blocks=blocks,
        envelope=without(value, *_NOT_ENVELOPE) | cost_of(value.get("toolUseResult")),
        api=_api_of(message, value["type"]),
        copies=[],
    )


def is_unread(message: Fields) -> bool:
    """Tell a message that has its words elsewhere, as those of a program much like this one."""
    return "parts" in message and "content" not in message


def _parent_of(value: Fields) -> str | None:
    return text_of(value.get("parentUuid")) or text_of(value.get("logicalParentUuid"))


def _api_of(message: Fields, role: str) -> Fields:
    """Return what the API's message says beyond its content; its role only where it is another."""
    api = without(message, *_NOT_EXTRA)
    if api.get("type") == "message":
        del api["type"]
    if message.get("role", role) != role:
        api["role"] = message["role"]
    return api


def _block_key(row: Row, moment: object, block: Block) -> bytes:
    """Return what is equal for copies of a block.

    A tool call is known by its id within its message, anything else by the moment it was said.
    """
    if _is_known_call(row, block):
        moment = None
    speaker = [row.role, row.sidechain, row.agent, row.message_id]
    try:
        key = marshal.dumps([*speaker, moment, block], PLAIN)
    except ValueError as problem:
        raise RecursionError("a block is nested too deeply") from problem
    return blake2b(key, digest_size=16).digest()


def _is_known_call(row: Row, block: Block) -> bool:
    if block.get("type") != "tool_use" or not block.get("id"):
        return False
    return bool(row.message_id and row.request_id)


def constant_of(rows: Sequence[Row]) -> Fields:
    """Return what every envelope of a run says the same, but for what belongs to one message.

    A row of the queue has hardly any envelope, which says nothing of the others'.
    """
    whole = [row.envelope for row in rows if row.uuid or "queued" not in row.envelope]
    first, *others = whole or [rows[0].envelope]
    constant = without(first, *OF_ONE_MESSAGE)
    for other in others:
        differing = [key for key in constant if not _same(first, other, key)]
        constant = without(constant, *differing)
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
