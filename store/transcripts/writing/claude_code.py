"""Rows of a Claude Code session, which `claude --resume` goes on with.

Its loader follows ``parentUuid`` up from the last row, and takes each row on the way. So the rows
stand in one chain: a row for each block of an answer, with one message id, and for each result.
Where it compacted, the chain begins anew: a boundary, then a summary as the user's, then the rest.
The program has a system prompt of its own; that of a session is a row of the user's that it sends,
and does not show (``isMeta``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import count

from ...records import Message
from ...text import JsonFields
from .sessions import TimedMessage, WritableLine, WritableSession, render_iso_moment

CLAUDE_CODE_VERSION = "2.1.0"
"""The version of the program whose rows these are."""
CLAUDE_CODE_BLOCK_TYPES = (
    *("text", "thinking", "redacted_thinking"),
    *("tool_use", "tool_result"),
    *("image", "document"),
)
"""Types of blocks that the program writes; its requests ask for none of a server's own tools."""
NO_USAGE = {"input_tokens": 0, "output_tokens": 0}


SUMMARY_ROW_FLAGS = {"isVisibleInTranscriptOnly": True, "isCompactSummary": True}
"""What a row has that tells what a compaction left."""


def build_claude_code_rows(about: WritableSession, told: WritableLine) -> Iterator[JsonFields]:
    """Yield the rows of a session, of messages as Anthropic's API takes them."""
    if about.title:
        name = str(about.id)
        yield {"type": "custom-title", "customTitle": about.title, "sessionId": name}
    writing = _ClaudeCodeWriter(about)
    yield from writing.all(told.hidden)
    if told.stands:
        yield from writing.compaction(told.hidden_until, told.stands)
    yield from writing.all(told.said)


def name_project_folder(cwd: str) -> str:
    """Return the folder in which the program keeps the sessions of a project."""
    return re.sub(r"[^A-Za-z0-9]", "-", cwd)


class _ClaudeCodeWriter:
    """The rows written so far: the last one, and in which one each call was made."""

    def __init__(self, about: WritableSession) -> None:
        self._about = about
        self._last: str | None = None
        self._callers: dict[str, str] = {}
        self._numbers = count()

    def all(self, said: Iterable[TimedMessage]) -> Iterator[JsonFields]:
        """Yield the rows of messages."""
        for moment, message in said:
            yield from self._rows(next(self._numbers), moment, message)

    def compaction(self, moment: int, stands: Sequence[Message]) -> Iterator[JsonFields]:
        """Yield the rows of a compaction of all rows so far."""
        boundary = self._boundary(moment)
        yield boundary
        self._last = boundary["uuid"]
        summary, *others = self.all((moment, message) for message in stands)
        yield summary | SUMMARY_ROW_FLAGS
        yield from others

    def _boundary(self, moment: int) -> JsonFields:
        return self._row("system", moment, self._about.row_id("compaction")) | {
            "parentUuid": None,
            "logicalParentUuid": self._last,
            "subtype": "compact_boundary",
            "content": "Conversation compacted",
            "isMeta": False,
            "level": "info",
            "compactMetadata": {"trigger": "manual", "preTokens": 0},
        }

    def _rows(self, number: int, moment: int, message: Message) -> Iterator[JsonFields]:
        """Yield the rows of a message."""
        is_answer = message["role"] == "assistant"
        blocks = [
            (
                block
                if block["type"] in CLAUDE_CODE_BLOCK_TYPES
                else {"type": "text", "text": json.dumps(block, ensure_ascii=False)}
            )
            for block in message["content"]
        ]
        if message["role"] == "assistant":
            parts = [[block] for block in blocks]
        else:
            results = [[block] for block in blocks if block["type"] == "tool_result"]
            words = [block for block in blocks if block["type"] != "tool_result"]
            parts = [*results, words] if words else results
        for place, blocks in enumerate(parts):
            kind = "assistant" if is_answer else "user"
            row = self._row(kind, moment, self._about.row_id(number, place))
            is_last = place + 1 == len(parts)
            if is_answer:
                row |= self._answer(number, blocks, is_last=is_last)
            else:
                is_plain = len(blocks) == 1 and blocks[0].keys() == {"type", "text"}
                content = blocks[0]["text"] if is_plain else blocks
                row["message"] = {"role": "user", "content": content}
            row |= {"isMeta": True} if message["role"] == "system" else {}
            yield row | self._link(row["uuid"], blocks[0])
            self._last = row["uuid"]

    def _link(self, uuid: str, block: Message) -> JsonFields:
        """Remember the row of a call; return which one a result is linked to."""
        if block["type"] == "tool_use":
            self._callers[block["id"]] = uuid
        caller = self._callers.get(block.get("tool_use_id", ""))
        return {"sourceToolAssistantUUID": caller} if caller else {}

    def _row(self, kind: str, moment: int, uuid: str) -> JsonFields:
        return {
            "parentUuid": self._last,
            "isSidechain": False,
            "userType": "external",
            "cwd": self._about.cwd,
            "sessionId": str(self._about.id),
            "version": CLAUDE_CODE_VERSION,
            "gitBranch": "",
            "type": kind,
            "uuid": uuid,
            "timestamp": render_iso_moment(moment),
        }

    def _answer(self, number: int, blocks: list[Message], *, is_last: bool) -> JsonFields:
        name = self._about.row_id(number).replace("-", "")[:24]
        calls = any(block["type"] == "tool_use" for block in blocks)
        reason = ("tool_use" if calls else "end_turn") if is_last else None
        message = {
            "id": f"msg_{name}",
            "type": "message",
            "role": "assistant",
            "model": self._about.model,
            "content": blocks,
            "stop_reason": reason,
            "stop_sequence": None,
            "usage": NO_USAGE,
        }
        return {"requestId": f"req_{name}", "message": message}
