"""The document of an opencode session, which `opencode import` takes into its database.

An answer is a message of parts, and a call has its result in it. Ids are in the order of the
messages and before all that the program makes, because its loop compares them: an answer after
the newest question would end it. A compaction is a question with a part of that type, and the
answer to it, the summary; the program sends nothing that stands before. Its own system prompt
stays; that of a session is a text that it sends and does not show (``synthetic``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ...records import Message
from ...text import JsonFields
from .blocks import (
    extract_block_text,
    find_model_provider,
    parse_media_block,
    split_result_blocks,
    split_user_blocks,
)
from .sessions import TimedMessage, WritableLine, WritableSession

OPENCODE_VERSION = "1.18.0"
"""The version of the program whose document this is."""
OPENCODE_AGENT = "build"
"""The program's own agent, which writes files."""
NO_CACHE = {"read": 0, "write": 0}
NO_TOKENS = {"input": 0, "output": 0, "reasoning": 0, "cache": NO_CACHE}
THOUGHT_KEYS = {"signature": "signature", "data": "redactedData"}
"""Key of a block of thoughts → that of the metadata in which the program keeps it."""


def build_opencode_documents(about: WritableSession, told: WritableLine) -> Iterator[JsonFields]:
    """Yield the one document of a session, of messages as Anthropic's API takes them."""
    writer = _OpencodeWriter(about)
    writer.add(told.hidden)
    if told.stands:
        writer.add_compaction(told.hidden_until, told.stands)
    writer.add(told.said)
    last = told.said[-1:] or told.hidden[-1:]
    ended = last[0][0] if last else about.began
    yield {
        "info": {
            "id": name_opencode_session(about),
            "slug": str(about.id),
            "projectID": "global",
            "directory": about.cwd,
            "path": "",
            "title": about.title or "",
            "version": OPENCODE_VERSION,
            "time": {"created": about.began, "updated": ended},
        },
        "messages": writer.messages,
    }


def name_opencode_session(about: WritableSession) -> str:
    """Return the id of a session in the program."""
    return f"ses_{about.id.hex[:26]}"


class _OpencodeWriter:
    """The messages written so far, and the calls without results among their parts."""

    def __init__(self, about: WritableSession) -> None:
        self.messages: list[JsonFields] = []
        self._about = about
        self._model = {"providerID": find_model_provider(about.model), "modelID": about.model}
        self._calls: dict[str, JsonFields] = {}
        self._number = 0
        self._question = ""

    def add(self, said: Iterable[TimedMessage]) -> None:
        """Add messages."""
        for moment, message in said:
            if message["role"] == "assistant":
                self._add_answer(moment, message["content"])
                continue
            results, words = split_user_blocks(message["content"])
            for result in results:
                self._end_call(moment, result)
            if words:
                self._add_question(moment, words, is_shown=message["role"] == "user")

    def add_compaction(self, moment: int, stands: Sequence[Message]) -> None:
        """Add what hides all messages so far: a question, the summary, and what else stands."""
        summary, *others = stands
        self._add_message("user", moment, {"agent": OPENCODE_AGENT, "model": self._model})
        self._add_part("compaction", auto=False)
        self._add_answer(moment, summary["content"], summary=True)
        self.add((moment, message) for message in others)

    def _add_question(self, moment: int, blocks: list[Message], *, is_shown: bool) -> None:
        self._add_message("user", moment, {"agent": OPENCODE_AGENT, "model": self._model})
        for block in blocks:
            self._add_block(block, {} if is_shown else {"synthetic": True})

    def _add_answer(self, moment: int, blocks: list[Message], **more: bool) -> None:
        calls = any(block["type"] == "tool_use" for block in blocks)
        info = {
            "parentID": self._question,
            **self._model,
            "mode": OPENCODE_AGENT,
            "agent": OPENCODE_AGENT,
            "path": {"cwd": self._about.cwd, "root": self._about.cwd},
            "cost": 0,
            "tokens": NO_TOKENS,
            "finish": "tool-calls" if calls else "stop",
            **more,
        }
        self._add_message("assistant", moment, info)
        self._add_part("step-start")
        for block in blocks:
            self._add_block(block, {})
        self._add_part("step-finish", reason=info["finish"], cost=0, tokens=NO_TOKENS)

    def _add_block(self, block: Message, more: JsonFields) -> None:
        """Add the part of a block."""
        moment = self.messages[-1]["info"]["time"]["created"]
        media = parse_media_block(block)
        if media is not None:
            self._add_part("file", mime=media.type, url=media.url)
        elif block["type"] == "tool_use":
            state = {"status": "pending", "input": block["input"], "time": {"start": moment}}
            self._add_part("tool", callID=block["id"], tool=block["name"], state=state)
            self._calls[block["id"]] = self.messages[-1]["parts"][-1]
        elif block["type"] in ("thinking", "redacted_thinking"):
            kept = {name: block[key] for key, name in THOUGHT_KEYS.items() if key in block}
            self._add_part(
                "reasoning",
                text=block.get("thinking", ""),
                time={"start": moment, "end": moment},
                metadata={"anthropic": kept},
            )
        else:
            self._add_part("text", text=extract_block_text(block), **more)

    def _end_call(self, moment: int, result: Message) -> None:
        """Give a call its result; only one that did not fail can have pictures."""
        part = self._calls.pop(result["tool_use_id"])
        pending = part["state"]
        text, media = split_result_blocks(result)
        state = {"input": pending["input"], "time": {**pending["time"], "end": moment}}
        if result.get("is_error") and not media:
            part["state"] = {"status": "error", "error": text, **state}
            return
        files = [
            self._build_part("file", part["messageID"], mime=each.type, url=each.url)
            for each in map(parse_media_block, media)
            if each
        ]
        state |= {"attachments": files} if files else {}
        part["state"] = {
            "status": "completed",
            "output": text,
            "title": part["tool"],
            "metadata": {},
            **state,
        }

    def _add_message(self, role: str, moment: int, info: JsonFields) -> None:
        session = name_opencode_session(self._about)
        time = {"created": moment} | ({"completed": moment} if role == "assistant" else {})
        name = self._name("msg")
        told = {"id": name, "sessionID": session, "role": role, "time": time}
        self._question = name if role == "user" else self._question
        self.messages.append({"info": told | info, "parts": []})

    def _add_part(self, kind: str, **fields: object) -> None:
        message = self.messages[-1]
        message["parts"].append(self._build_part(kind, message["info"]["id"], **fields))

    def _build_part(self, kind: str, message: str, **fields: object) -> JsonFields:
        session = name_opencode_session(self._about)
        told = {"id": self._name("prt"), "sessionID": session, "messageID": message}
        return {**told, "type": kind, **fields}

    def _name(self, kind: str) -> str:
        """Return the next id, in the order in which they are made."""
        self._number += 1
        return f"{kind}_{self._number:012x}{self._about.id.hex[:14]}"
