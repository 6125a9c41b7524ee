"""Entries of a pi session, which `pi --session` goes on with.

The loader follows ``parentId`` up from the last entry, so the entries stand in one chain; a result
is a message. A compaction has the summary, and names the first entry that is kept: one after it,
so that none before it is sent. The program has a system prompt of its own; that of a session is a
message that it sends and does not show.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ...records import Message, extract_content_text
from ...text import JsonFields
from ..parser_events import build_text_part
from .blocks import (
    extract_block_text,
    find_model_provider,
    parse_media_block,
    split_result_blocks,
    split_user_blocks,
)
from .sessions import TimedMessage, WritableLine, WritableSession, render_iso_moment

PI_SESSION_VERSION = 3
"""The version of the program's file."""
PI_APIS = {
    "anthropic": "anthropic-messages",
    "openai": "openai-responses",
    "google": "google-generative-ai",
}
"""Provider → the API by which the program asks it."""
PI_FREE = dict.fromkeys(("input", "output", "cacheRead", "cacheWrite"), 0)
PI_NO_USAGE = {**PI_FREE, "totalTokens": 0, "cost": {**PI_FREE, "total": 0}}


def build_pi_entries(about: WritableSession, told: WritableLine) -> Iterator[JsonFields]:
    """Yield the head and the entries of a session, of messages as Anthropic's API takes them."""
    yield {
        "type": "session",
        "version": PI_SESSION_VERSION,
        "id": str(about.id),
        "timestamp": render_iso_moment(about.began),
        "cwd": about.cwd,
    }
    writer = _PiWriter(about)
    if about.title:
        yield writer.build_entry("session_info", about.began, name=about.title)
    yield from writer.write(told.hidden)
    if told.stands:
        summary, *others = told.stands
        yield writer.build_compaction(told.hidden_until, summary)
        yield from writer.write((told.hidden_until, each) for each in others)
    yield from writer.write(told.said)


def build_pi_path(about: WritableSession) -> str:
    """Return the place of a session in the program's folder of sessions."""
    folder = re.sub(r"[/\\:]", "-", re.sub(r"^[/\\]", "", about.cwd))
    began = re.sub("[:.]", "-", render_iso_moment(about.began))
    return f"--{folder}--/{began}_{about.id}.jsonl"


class _PiWriter:
    """The number of entries written so far, and the names of the calls by id."""

    def __init__(self, about: WritableSession) -> None:
        self._about = about
        self._provider = find_model_provider(about.model)
        self._number = 0
        self._tools: dict[str, str] = {}

    def write(self, said: Iterable[TimedMessage]) -> Iterator[JsonFields]:
        """Yield the entries of messages."""
        for moment, message in said:
            if message["role"] == "assistant":
                yield self._build_answer(moment, message["content"])
                continue
            results, words = split_user_blocks(message["content"])
            yield from (self._build_result(moment, each) for each in results)
            content = [*map(_convert_pi_block, words)]
            if content and message["role"] == "user":
                yield self._build_message(moment, "user", content=content)
            elif content:
                more = {"customType": "system", "content": content, "display": False}
                yield self.build_entry("custom_message", moment, **more)

    def build_compaction(self, moment: int, summary: Message) -> JsonFields:
        """Return the entry that hides all before it."""
        return self.build_entry(
            "compaction",
            moment,
            summary=extract_content_text(summary["content"]),
            firstKeptEntryId=_name_pi_entry(self._number + 2),
            tokensBefore=0,
        )

    def build_entry(self, kind: str, moment: int, **fields: object) -> JsonFields:
        """Return the next entry."""
        parent = _name_pi_entry(self._number) if self._number else None
        self._number += 1
        entry = {"type": kind, "id": _name_pi_entry(self._number), "parentId": parent}
        return {**entry, "timestamp": render_iso_moment(moment), **fields}

    def _build_message(self, moment: int, role: str, **fields: object) -> JsonFields:
        message = {"role": role, **fields, "timestamp": moment}
        return self.build_entry("message", moment, message=message)

    def _build_answer(self, moment: int, blocks: list[Message]) -> JsonFields:
        calls = {block["id"]: block["name"] for block in blocks if block["type"] == "tool_use"}
        self._tools |= calls
        is_signed = any(block.get("signature") for block in blocks)
        return self._build_message(
            moment,
            "assistant",
            content=[*map(_convert_pi_block, blocks)],
            api=PI_APIS["anthropic" if is_signed else self._provider],
            provider=self._provider,
            model=self._about.model,
            usage=PI_NO_USAGE,
            stopReason="toolUse" if calls else "stop",
        )

    def _build_result(self, moment: int, result: Message) -> JsonFields:
        text, media = split_result_blocks(result)
        texts = [build_text_part(text)] if text else []
        return self._build_message(
            moment,
            "toolResult",
            toolCallId=result["tool_use_id"],
            toolName=self._tools[result["tool_use_id"]],
            content=[*texts, *map(_convert_pi_block, media)],
            isError=result.get("is_error") is True,
        )


def _name_pi_entry(number: int) -> str:
    return f"{number:08x}"


def _convert_pi_block(block: Message) -> JsonFields:
    """Return a block in the shape of the program; a file that it has no block for is named."""
    media = parse_media_block(block)
    if media is not None and media.type.startswith("image/") and media.data is not None:
        return {"type": "image", "mimeType": media.type, "data": media.data}
    if media is not None:
        return build_text_part(f"[{media.type if media.data else media.url} left out]")
    if block["type"] == "tool_use":
        call = {"id": block["id"], "name": block["name"], "arguments": block["input"]}
        return {"type": "toolCall", **call}
    if block["type"] in ("thinking", "redacted_thinking"):
        signature = block.get("signature", block.get("data", ""))
        is_redacted = {"redacted": True} if block["type"] == "redacted_thinking" else {}
        thought = {"thinking": block.get("thinking", ""), "thinkingSignature": signature}
        return {"type": "thinking", **thought, **is_redacted}
    return build_text_part(extract_block_text(block))
