"""The lines of a Claude Code session file, read once: what is conversation, what is a fact about it, what is left out.

A line of the conversation keeps its blocks and its envelope; everything else is dropped at once, because most of a
file's bytes are copies for the screen (progress, `toolUseResult`). Which lines make which message is decided elsewhere.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from hashlib import blake2b
from typing import Any, NamedTuple

from .claude_blocks import Block, blocks_of
from .events import Noted, fields_of, left_out, plural, sketch, text_of
from .source import Source, Value

CONVERSATION = ("user", "assistant")

TITLES = {"custom-title": "customTitle", "ai-title": "aiTitle", "summary": "summary"}
"""Line type → its key that holds a title, the best first."""

SUBTYPES: dict[str, Callable[[dict[str, Any]], object]] = {
    "system": lambda line: line.get("subtype"),
    "attachment": lambda line: fields_of(line.get("attachment")).get("type"),
    "progress": lambda line: fields_of(line.get("data")).get("type"),
    "queue-operation": lambda line: line.get("operation"),
}
"""Line type → what tells its lines apart, for the note on what was left out."""

_NOT_ENVELOPE = ("type", "uuid", "message", "toolUseResult")
_NOT_FACTS = ("role", "content", "id")


class Line(NamedTuple):
    """One line of the conversation; ``envelope`` is what stands around the API's message, ``api`` within it."""

    uuid: str | None
    parent: str | None
    role: str
    sidechain: bool
    agent: str | None
    message_id: str | None
    content: object
    blocks: list[Block]
    envelope: dict[str, Any]
    api: dict[str, Any]
    copies: list[str]

    @property
    def request_id(self) -> str | None:
        """Return the API request that a line answers, None where the line does not say."""
        return text_of(self.envelope.get("requestId"))

    def holds(self, kind: str) -> bool:
        """Tell whether one of the line's blocks is of a type."""
        return any(block.get("type") == kind for block in self.blocks)


class Reading:
    """Collect a file's conversation, line by line.

    ``anchors`` leads from every uuid to the conversation line it stands for: the line itself, the line a copy repeats,
    or the nearest one above a line that is no conversation (None where there is none).
    """

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.anchors: dict[str, int | None] = {}
        self._titles: list[tuple[str, str, object]] = []
        self.agents: dict[str, str] = {}
        self._left_out: Counter[tuple[str, str]] = Counter()
        self._results, self._results_size, self._copies = 0, 0, 0
        self._blocks: dict[bytes, int] = {}
        self._boundary: dict[str, Any] = {}

    def read(self, source: Source) -> Iterator[Noted]:
        """Read a whole file; return a note for each line that is broken."""
        for item in source.values():
            problem = item if isinstance(item, Noted) else self._take(item)
            if problem:
                yield problem

    def title(self) -> str | None:
        """Return the session's title: one the user gave before one a program made; the last of its sort."""
        titles = {kind: title for kind, title, leaf in self._titles if self._is_own(leaf)}
        return next((titles[kind] for kind in TITLES if kind in titles), None)

    def notes(self) -> Iterator[Noted]:
        """Return a note for each sort of line that was left out."""
        foreign = Counter((kind, "of other sessions") for kind, _, leaf in self._titles if not self._is_own(leaf))
        yield from left_out(self._left_out + foreign, "line")
        if self._copies:
            yield Noted(None, f"left out {plural(self._copies, 'copied line')}, said before in the file", False)
        if self._results:
            size = f"{plural(self._results, 'result line')} ({self._results_size:,} bytes)"
            yield Noted(None, f"left out toolUseResult of {size}: it repeats the tool results", False)

    def _is_own(self, leaf: object) -> bool:
        """Tell whether a title is this session's: a file may begin with the summaries of other sessions."""
        return not isinstance(leaf, str) or leaf in self.anchors

    def _take(self, item: Value) -> Noted | None:
        if not isinstance(item.value, dict):
            return Noted(item.line, f"{sketch(item.value)} is no line of a session", True)
        kind = item.value.get("type")
        if kind in CONVERSATION:
            return self._take_conversation(item)
        self._take_other(item.value, kind if isinstance(kind, str) else "untyped")
        return None

    def _take_conversation(self, item: Value) -> Noted | None:
        message = item.value.get("message")
        blocks = blocks_of(message.get("content")) if isinstance(message, dict) else None
        if blocks is None:
            return Noted(item.line, f"a {item.value['type']} line without a message that can be read", True)
        line = _line_of(item.value, message, blocks)
        self._drop_tool_use_result(item.value.get("toolUseResult"), line)
        original = self._original(line)
        self._anchor(line.uuid, len(self.lines) if original is None else original)
        if original is None:
            self.lines.append(self._with_boundary(line))
        else:
            self._copies += 1
            self.lines[original].copies.extend([line.uuid] if line.uuid else [])
        return None

    def _take_other(self, value: dict[str, Any], kind: str) -> None:
        """Remember what a line that is no conversation says about it: its place in the tree, a title, a boundary."""
        parent = text_of(value.get("parentUuid")) or text_of(value.get("logicalParentUuid"))
        above = self.anchors.get(parent) if parent else len(self.lines) - 1 if self.lines else None
        self._anchor(text_of(value.get("uuid")), above)
        title = text_of(value.get(TITLES.get(kind, "")))
        if title:
            self._titles.append((kind, title, value.get("leafUuid")))
        elif kind == "system" and isinstance(value.get("compactMetadata"), dict):
            self._boundary = {"compactMetadata": value["compactMetadata"]}
        else:
            subtype = SUBTYPES[kind](value) if kind in SUBTYPES else None
            self._left_out[kind, subtype if isinstance(subtype, str) else ""] += 1

    def _anchor(self, uuid: str | None, index: int | None) -> None:
        if uuid is not None:
            self.anchors.setdefault(uuid, index)

    def _with_boundary(self, line: Line) -> Line:
        """Return a line; a compaction's summary with what the boundary before it says of the compaction."""
        if line.envelope.get("isCompactSummary") is not True or not self._boundary:
            return line
        boundary, self._boundary = self._boundary, {}
        return line._replace(envelope=line.envelope | boundary)

    def _original(self, line: Line) -> int | None:
        """Return which line this one copies, None where it says anything new.

        A resumed or rewritten session repeats lines, under their own uuid or a new one, sometimes a block a line: a
        line of which each block was said before, at the same moment, is a copy.
        """
        moment = line.envelope.get("timestamp") or line.uuid or len(self._blocks)
        keys = [_block_key(line, moment, block) for block in line.blocks or [{}]]
        originals = [self._blocks.setdefault(key, len(self.lines)) for key in keys]
        return originals[0] if max(originals) < len(self.lines) else None

    def _drop_tool_use_result(self, result: object, line: Line) -> None:
        if result is None:
            return
        self._results += 1
        self._results_size += len(json.dumps(result, ensure_ascii=False).encode("utf-8", "surrogatepass"))
        agent = text_of(fields_of(result).get("agentId"))
        calls = [text_of(block.get("tool_use_id")) for block in line.blocks]
        if agent and calls and calls[0]:
            self.agents[agent] = calls[0]


def _line_of(value: dict[str, Any], message: dict[str, Any], blocks: list[Block]) -> Line:
    role = value["type"]
    api = {key: fact for key, fact in message.items() if key not in _NOT_FACTS}
    if api.get("type") == "message":
        del api["type"]
    if message.get("role", role) != role:
        api["role"] = message["role"]
    return Line(
        uuid=text_of(value.get("uuid")),
        parent=text_of(value.get("parentUuid")) or text_of(value.get("logicalParentUuid")),
        role=role,
        sidechain=value.get("isSidechain") is True,
        agent=text_of(value.get("agentId")),
        message_id=text_of(message.get("id")),
        content=message.get("content"),
        blocks=blocks,
        envelope={key: fact for key, fact in value.items() if key not in _NOT_ENVELOPE},
        api=api,
        copies=[],
    )


def _block_key(line: Line, moment: object, block: Block) -> bytes:
    """Return what is equal for copies of a block: a tool call's id within its message, else the moment it was said."""
    is_call = line.message_id and line.request_id and block.get("type") == "tool_use" and block.get("id")
    said = None if is_call else moment
    key = json.dumps([line.role, line.sidechain, line.agent, line.message_id, said, block], sort_keys=True)
    return blake2b(key.encode(), digest_size=16).digest()
