"""Rows of a Qwen Code session, which `qwen --resume` goes on with.

The loader follows ``parentUuid`` up from the last row, and sends the contents of the rows. A row of
a compression has the contents that take the place of all before it. The program has a system
prompt of its own; that of a session is a row of the user's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...records import Message
from ...text import JsonFields
from .claude_code import name_project_folder
from .gemini_contents import ResponseParts, get_content_parts, split_user_parts
from .sessions import TimedMessage, WritableLine, WritableSession, render_iso_moment

QWEN_CODE_VERSION = "0.15.0"
"""The version of the program whose rows these are."""
COMPRESSED = 1
"""The state of a compression that has succeeded."""


def build_qwen_code_rows(about: WritableSession, told: WritableLine) -> Iterator[JsonFields]:
    """Yield the rows of a session, of contents as Gemini's API takes them."""
    writer = _QwenCodeWriter(about)
    yield from writer.write(told.hidden)
    if told.stands:
        contents = [
            {"role": "user", "parts": get_content_parts(each)} if each["role"] == "system" else each
            for each in told.stands
        ]
        counted = {"originalTokenCount": 0, "newTokenCount": 0, "compressionStatus": COMPRESSED}
        payload = {"info": counted, "compressedHistory": contents}
        yield writer.build_system_row(told.hidden_until, "chat_compression", payload)
    yield from writer.write(told.said)
    if about.title:
        title = {"customTitle": about.title, "titleSource": "manual"}
        yield writer.build_system_row(writer.moment, "custom_title", title)


def build_qwen_code_path(about: WritableSession) -> str:
    """Return the place of a session in the program's folder."""
    return f"projects/{name_project_folder(about.cwd)}/chats/{about.id}.jsonl"


class _QwenCodeWriter:
    """The number of rows written so far, and when the last was said (ms)."""

    def __init__(self, about: WritableSession) -> None:
        self.moment = about.began
        self._about = about
        self._number = 0

    def write(self, said: Iterable[TimedMessage]) -> Iterator[JsonFields]:
        """Yield the rows of contents."""
        for self.moment, content in said:
            parts = get_content_parts(content)
            if content["role"] == "model":
                yield self._build_row("assistant", parts, model=self._about.model)
                continue
            responses, words = split_user_parts(parts)
            yield from map(self._build_result_row, responses)
            if words:
                yield self._build_row("user", words)

    def build_system_row(self, moment: int, kind: str, payload: JsonFields) -> JsonFields:
        """Return the next row, which is the program's own."""
        self.moment = moment
        return self._build_base("system") | {"subtype": kind, "systemPayload": payload}

    def _build_result_row(self, result: ResponseParts) -> JsonFields:
        beside = {"parts": result.media} if result.media else {}
        part = {"functionResponse": {**result.drop_names(), **beside}}
        told = {"callId": result.response["id"], "status": result.state}
        return self._build_row("tool_result", [part], toolCallResult=told)

    def _build_row(self, kind: str, parts: list[Message], **more: object) -> JsonFields:
        role = "model" if kind == "assistant" else "user"
        return {**self._build_base(kind), "message": {"role": role, "parts": parts}, **more}

    def _build_base(self, kind: str) -> JsonFields:
        """Return what every row has, of the next one."""
        number = self._number
        self._number += 1
        return {
            "uuid": self._about.row_id(number),
            "parentUuid": self._about.row_id(number - 1) if number else None,
            "sessionId": str(self._about.id),
            "timestamp": render_iso_moment(self.moment),
            "type": kind,
            "cwd": self._about.cwd,
            "version": QWEN_CODE_VERSION,
        }
