"""Sessions of Grok Build: ``chat_history.jsonl``, with the files beside it.

What the model saw is in the history; when, which calls failed, what it cost and the pictures of the
user are only in what the screen showed, ``updates.jsonl``. Titles are in ``summary.json``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ..records import FilePath, Message
from ..text import JsonFields
from .conversations import (
    GatheredSession,
    build_chat_message,
    build_picture_part,
    build_result_message,
    join_content,
    load_side_file,
    load_side_rows,
    round_milliseconds,
)
from .parser_events import (
    Event,
    NoteEvent,
    RequestUsage,
    SessionMessage,
    build_chat_call,
    convert_to_milliseconds,
    drop_empty_fields,
    drop_keys,
    get_fields,
    get_nested,
    get_objects,
    get_text,
    join_texts,
    note_omission,
    note_unread_value,
    parse_iso_milliseconds,
)
from .source import TranscriptSource
from .usages import TokenKeys, build_request_usage

__all__ = ["has_grok_screen", "is_grok_row", "parse_grok_build"]

GROK_ROLES = {
    "system": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "tool_result": "tool",
}
"""Type of a row, or its role in older files → the role in the chat."""
GROK_MARKS = {
    "user": {"prompt_index", "synthetic_reason"},
    "assistant": {"model_id"},
    "tool_result": {"tool_call_id"},
    "backend_tool_call": {"kind"},
}
"""Type of a row → its keys; any one of them tells that it is Grok's."""
GROK_SEALED_KEYS = {"encrypted_content", "kind"}
"""Keys of a row before an answer; any one says more than its summary."""
WAITING_ROWS = ("reasoning", "backend_tool_call")
"""Types of rows that belong to the answer after them; what xAI's servers found is in no file."""

SCREEN_FILE = "updates.jsonl"
"""The file beside a history that has what the screen showed."""

GROK_TOKENS = TokenKeys(
    "inputTokens", "outputTokens", "cachedReadTokens", "cacheCreationTokens", beside=False
)
_GROK_ROW_KEYS = ("type", "role", "content", "tool_calls", "tool_call_id", "reasoning_content")
_SUMMARY_KEYS = ("info", "generated_title", "session_summary", "current_model_id", "created_at")


def is_grok_row(value: Any) -> bool:
    """Tell whether a value is a row that only Grok Build writes."""
    fields = get_fields(value)
    kind = get_text(fields.get("type")) or get_text(fields.get("role"))
    return not GROK_MARKS.get(kind or "", set()).isdisjoint(fields) and "message" not in fields


def has_grok_screen(path: FilePath) -> bool:
    """Tell whether a file has beside it what the screen showed, with the costs."""
    return Path(path).with_name(SCREEN_FILE).exists()


def parse_grok_build(source: TranscriptSource) -> Iterator[Event]:
    """Yield the session of a history, and the notes."""
    folder = source.path.absolute().parent
    chat = _GrokSession(load_side_rows(folder / SCREEN_FILE))
    for item in source.values():
        if isinstance(item, NoteEvent):
            yield item
        elif not chat.take(get_fields(item.value)):
            yield note_unread_value(item.row, item.value, "no row of a history")
    chat.end_turn()
    if chat.waiting:
        yield note_omission(len(chat.waiting), "thought", ", whose answer is not there yet")
    stem = folder.name if source.stem == "chat_history" else source.stem
    yield from _open_session(load_side_file(folder / "summary.json"), stem, chat).events()


def _open_session(summary: JsonFields, stem: str, chat: _GrokSession) -> GatheredSession:
    told = get_fields(summary.get("info"))
    return GatheredSession(
        "grok_build",
        get_text(told.get("id")) or stem,
        chat.said,
        titles=map(summary.get, ("generated_title", "session_summary")),
        root=told.get("cwd"),
        model=get_text(summary.get("current_model_id")) or chat.model,
        parent=summary.get("parent_session_id"),
        created=parse_iso_milliseconds(summary.get("created_at")),
        told=drop_keys(summary, *_SUMMARY_KEYS),
    )


class _ShownTurn(NamedTuple):
    """The record of a turn on the screen: its beginning, the user's pictures, its cost."""

    began: int | None
    pictures: list[JsonFields]
    costs: list[RequestUsage]

    def add_picture(self, shown: JsonFields) -> None:
        """Keep a shown picture."""
        if shown.get("type") == "image":
            self.pictures.append(build_picture_part(shown.get("mimeType"), shown.get("data")))


class _GrokScreen:
    """What the screen showed of a session: its turns, and when calls ended, by their ids."""

    def __init__(self, updates: list[JsonFields]) -> None:
        self.turns: list[_ShownTurn] = []
        self.moments: dict[str, int | None] = {}
        self.failed: set[str] = set()
        self._before: str | None = None
        for row in updates:
            self._take(get_fields(get_nested(row, "params", "update")), _find_update_time(row))

    def _take(self, update: JsonFields, moment: int | None) -> None:
        kind, call = map(get_text, (update.get("sessionUpdate"), update.get("toolCallId")))
        if kind == "user_message_chunk":
            if self._before != kind:
                self.turns.append(_ShownTurn(moment, [], []))
            self.turns[-1].add_picture(get_fields(update.get("content")))
        elif kind == "turn_completed" and self.turns:
            self.turns[-1].costs.extend(_list_turn_costs(update))
        elif call:
            self.moments[call] = moment
            self.failed |= {call} if update.get("status") == "failed" else set()
        self._before = kind


def _find_update_time(row: JsonFields) -> int | None:
    for keys in (("params", "_meta"), ("params", "update", "_meta")):
        moment = round_milliseconds(get_nested(row, *keys, "agentTimestampMs"))
        if moment:
            return moment
    return convert_to_milliseconds(row.get("timestamp"))


def _list_turn_costs(update: JsonFields) -> Iterator[RequestUsage]:
    usage, turn = get_fields(update.get("usage")), get_text(update.get("prompt_id"))
    models = get_fields(usage.get("modelUsage")) or {"": usage}
    for model, told in models.items():
        for each in build_request_usage(told, GROK_TOKENS, model, "xai"):
            yield each._replace(name=f"{turn}, {model}" if turn else None)


class _GrokSession:
    """A history, row by row; thoughts and searches wait for the answer after them."""

    def __init__(self, updates: list[JsonFields]) -> None:
        self._screen = _GrokScreen(updates)
        self.said: list[SessionMessage] = []
        self.waiting: list[JsonFields] = []
        self._turns: Iterator[_ShownTurn] = iter(self._screen.turns)
        self._turn: _ShownTurn | None = None
        self._moment: int | None = None
        self.model: str | None = None

    def take(self, row: JsonFields) -> bool:
        """Take the next row; return False for one that cannot be read."""
        kind = get_text(row.get("type")) or get_text(row.get("role")) or ""
        if kind in WAITING_ROWS:
            self.waiting.append(row)
        elif kind not in GROK_ROLES or "content" not in row:
            return False
        elif kind == "assistant":
            self._add(self._answer_of(row))
        else:
            if kind == "user":
                self._begin_turn(row)
            self._add(self._message_of(GROK_ROLES[kind], row))
        return True

    def end_turn(self) -> None:
        """Add to the last answer of a turn what the turn cost."""
        last = self.said[-1] if self.said else None
        if self._turn and last and last.message["role"] == "assistant":
            self.said[-1] = last._replace(spent=tuple(self._turn.costs))

    def _begin_turn(self, row: JsonFields) -> None:
        if self.waiting:  # of an answer that was interrupted
            self._add(self._answer_of({"content": None}))
        if "synthetic_reason" not in row:
            self.end_turn()
            self._turn = next(self._turns, None)
            self._moment = self._turn.began if self._turn else self._moment

    def _add(self, message: Message) -> None:
        name = f"row-{len(self.said) + 1}"
        moment = drop_empty_fields({"timestamp": self._moment})
        self.said.append(SessionMessage({**message, "id": name, **moment}))

    def _message_of(self, role: str, row: JsonFields) -> Message:
        extra = drop_keys(row, *_GROK_ROW_KEYS)
        if role == "tool":
            call = get_text(row.get("tool_call_id")) or ""
            self._moment = self._screen.moments.get(call) or self._moment
            failed = call in self._screen.failed
            return build_result_message(call, row["content"], failed=failed, grok_build=extra)
        is_prompt = role == "user" and "synthetic_reason" not in row
        pictures = self._turn.pictures if self._turn and is_prompt else []
        return build_chat_message(role, join_content(row["content"], pictures), grok_build=extra)

    def _answer_of(self, row: JsonFields) -> Message:
        self.model = get_text(row.get("model_id")) or self.model
        waiting, self.waiting = self.waiting, []
        rows = [drop_keys(each, "summary") for each in waiting if GROK_SEALED_KEYS & each.keys()]
        extra = {**drop_keys(row, *_GROK_ROW_KEYS), "rows": rows}
        return build_chat_message(
            "assistant",
            join_content(row["content"]),
            tool_calls=list(map(_parse_grok_call, get_objects(row.get("tool_calls")))),
            reasoning_content=join_texts([_join_summaries(waiting), row.get("reasoning_content")]),
            grok_build=drop_empty_fields(extra),
        )


def _join_summaries(rows: list[JsonFields]) -> str:
    parts = (part for row in rows for part in get_objects(row.get("summary")))
    return join_texts(part.get("text") for part in parts)


def _parse_grok_call(call: JsonFields) -> JsonFields:
    """Return a call, whose name and arguments are its own or, in older files, a function's."""
    function = get_fields(call.get("function")) or call
    return build_chat_call(call.get("id"), function.get("name"), function.get("arguments"))
