"""Sessions of Kimi's command: ``wire.jsonl``, of Kimi CLI (protocol 1.3) and of Kimi Code (1.4).

Both write what happens as it happens: turns, parts of answers, calls, results. What an agent below
does is told among the events of Kimi CLI, and in a file of its own by Kimi Code.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from hashlib import md5
from pathlib import Path
from typing import Any

from ..records import Message
from ..text import JsonFields
from .conversations import (
    GatheredSession,
    build_chat_message,
    build_result_message,
    join_content,
    load_side_file,
    round_milliseconds,
)
from .parser_events import (
    Event,
    NoteEvent,
    RequestUsage,
    SessionMessage,
    build_chat_call,
    convert_to_milliseconds,
    find_first_text,
    get_fields,
    get_objects,
    get_text,
    list_omission_notes,
    note_unread_value,
)
from .source import TranscriptSource
from .usages import TokenKeys, build_request_usage

__all__ = ["is_kimi_row", "parse_kimi"]

KIMI_CLI_TOKENS = TokenKeys("input_other", "output", "input_cache_read", "input_cache_creation")
KIMI_CODE_TOKENS = TokenKeys("inputOther", "output", "inputCacheRead", "inputCacheCreation")
KIMI_CODE_TYPES = ("turn.", "context.", "config.", "usage.", "metadata")
"""Beginnings of the types of rows that Kimi Code writes."""
MODEL_ROWS = ("config.update", "usage.record")
STEP_ENDS = ("StepBegin", "StepInterrupted", "TurnEnd", "step.begin")


def is_kimi_row(value: Any) -> bool:
    """Tell whether a value is a row of either protocol, or the head of a file."""
    fields = get_fields(value)
    message = get_fields(fields.get("message"))
    kind = get_text(fields.get("type")) or ""
    if "timestamp" in fields and {"type", "payload"} <= message.keys():
        return True
    return ("protocol_version" in fields and kind == "metadata") or (
        "time" in fields and kind.startswith(KIMI_CODE_TYPES)
    )


def parse_kimi(source: TranscriptSource) -> Iterator[Event]:
    """Yield the session of a file, those of the agents below it, and the notes."""
    name, parent = _find_kimi_names(source)
    session = _KimiSession()
    for item in source.values():
        if isinstance(item, NoteEvent):
            yield item
        elif is_kimi_row(item.value):
            session.take(item.value)
        else:
            yield note_unread_value(item.row, item.value, "no row of a wire")
    state = load_side_file(source.path.with_name("state.json"))
    titles = [state.get("custom_title"), state.get("title")]
    root = _find_kimi_folder(source.path.absolute())
    yield from session.events(GatheredSession("kimi", name, [], titles, root, parent=parent))
    yield from list_omission_notes(session.silent, "event")


def _find_kimi_names(source: TranscriptSource) -> tuple[str, str | None]:
    """Return a session's id, and that of the session whose agent it is: by its folders."""
    if source.stem != "wire":
        return source.stem, None
    folder = source.path.absolute().parent
    if folder.parent.name != "agents":
        return folder.name, None
    name = folder.parent.parent.name
    return (name, None) if folder.name == "main" else (f"{name}/{folder.name}", name)


def _find_kimi_folder(path: Path) -> str | None:
    """Return the project whose digest a session's folder is named after, as Kimi CLI lists it."""
    folders = path.parents
    if len(folders) < 4:
        return None
    known = get_objects(load_side_file(folders[3] / "kimi.json").get("work_dirs"))
    paths = filter(None, (get_text(each.get("path")) for each in known))
    digests = {md5(each.encode(), usedforsecurity=False).hexdigest(): each for each in paths}
    return digests.get(folders[1].name)


def _parse_kimi_call(told: JsonFields) -> JsonFields:
    """Return a call, as either protocol tells it."""
    function = get_fields(told.get("function"))
    if function:
        return build_chat_call(told.get("id"), function.get("name"), function.get("arguments"))
    return build_chat_call(told.get("toolCallId"), told.get("name"), told.get("args"))


class _KimiSession:
    """What happened, event by event: an answer is open until a result or a question."""

    def __init__(self) -> None:
        self._said: list[SessionMessage] = []
        self._answer: Message | None = None
        self._spent: list[RequestUsage] = []
        self._agents: dict[str, _KimiSession] = {}
        self._prompt: object = None
        self.model: str | None = None
        self.silent: Counter[tuple[str, str]] = Counter()

    def take(self, row: JsonFields) -> None:
        """Take the next row of a file."""
        message = get_fields(row.get("message"))
        kind = get_text(row.get("type")) or ""
        moment = round_milliseconds(row.get("time"))
        if "payload" in message:
            moment = convert_to_milliseconds(row.get("timestamp"))
            self._take_event(message, get_fields(message["payload"]), moment)
        elif kind == "context.append_loop_event":
            event = get_fields(row.get("event"))
            self._take_event(event, event, moment)
        elif kind == "turn.prompt":
            self._prompt = row.get("input")
            self._ask(self._prompt, moment)
        elif kind == "context.append_message" and message.get("content") != self._prompt:
            self._ask(message.get("content"), moment)
        elif kind in MODEL_ROWS:
            told = map(row.get, ("modelAlias", "model"))
            self.model = find_first_text((*told, self.model))

    def _take_event(self, event: JsonFields, told: JsonFields, moment: int | None) -> None:
        self._happen(get_text(event.get("type")) or "", told, moment)

    def _happen(self, kind: str, told: JsonFields, moment: int | None) -> None:
        """Take an event of either protocol."""
        if kind in ("TurnBegin", "SteerInput"):
            self._ask(told.get("user_input"), moment)
        elif kind in ("ContentPart", "content.part"):
            self._add_part(get_fields(told.get("part")) or told, moment)
        elif kind in ("ToolCall", "tool.call"):
            self._open(moment).setdefault("tool_calls", []).append(_parse_kimi_call(told))
        elif kind in ("ToolResult", "tool.result"):
            self._end_call(told, moment)
        elif kind in ("StatusUpdate", "step.end"):
            self._pay(told)
        elif kind == "SubagentEvent":
            self._take_below(told, moment)
        elif kind in STEP_ENDS:
            self._close()
        else:
            self.silent[kind, ""] += 1

    def _take_below(self, told: JsonFields, moment: int | None) -> None:
        name = find_first_text(map(told.get, ("task_tool_call_id", "parent_tool_call_id")))
        event = get_fields(told.get("event"))
        below = self._agents.setdefault(name or "agent", _KimiSession())
        below._take_event(event, get_fields(event.get("payload")), moment)

    def _ask(self, content: object, moment: int | None) -> None:
        self._close()
        self._say(build_chat_message("user", join_content(content), timestamp=moment))

    def _open(self, moment: int | None) -> Message:
        """Return the answer that is being written; a new one has the time of its first part."""
        if self._answer is None:
            self._answer = build_chat_message("assistant", None, timestamp=moment)
        return self._answer

    def _add_part(self, part: JsonFields, moment: int | None) -> None:
        match part:
            case {"type": "think", "think": str(text)} if text:
                answer = self._open(moment)
                answer["reasoning_content"] = answer.get("reasoning_content", "") + text
            case {"type": "text", "text": str(text)}:
                if text:
                    answer = self._open(moment)
                    said = answer["content"]
                    joined = said + text if isinstance(said, str) else join_content(said, text)
                    answer["content"] = joined
            case {"type": str()}:
                answer = self._open(moment)
                answer["content"] = join_content(answer["content"], part)

    def _end_call(self, told: JsonFields, moment: int | None) -> None:
        self._close()
        given = get_fields(told.get("return_value")) or get_fields(told.get("result"))
        failed = given.get("is_error") is True or given.get("isError") is True
        call = told.get("tool_call_id") or told.get("toolCallId")
        said = given.get("output") or given.get("message")
        content = join_content(said) if isinstance(said, list) else said
        self._say(build_result_message(call, content, failed=failed, timestamp=moment))

    def _pay(self, told: JsonFields) -> None:
        """Note what the request of the last answer cost."""
        usage = told.get("token_usage")
        keys = KIMI_CLI_TOKENS if usage else KIMI_CODE_TOKENS
        spent = build_request_usage(usage or told.get("usage"), keys, self.model, "moonshot")
        if self._answer is not None:
            self._spent += spent
            return
        answers = (at for at, each in enumerate(self._said) if each.message["role"] == "assistant")
        for place in [*answers][-1:]:
            before = self._said[place]
            self._said[place] = before._replace(spent=(*before.spent, *spent))

    def _close(self) -> None:
        if self._answer is not None:
            self._say(self._answer)
        self._answer = None

    def _say(self, message: Message) -> None:
        message["id"] = f"message-{len(self._said) + 1}"
        self._said.append(SessionMessage(message, spent=tuple(self._spent)))
        self._spent = []

    def events(self, opened: GatheredSession) -> Iterator[Event]:
        """Yield the session, then those of the agents below it."""
        self._close()
        yield from opened._replace(said=self._said, model=self.model).events()
        for call, below in self._agents.items():
            name = f"{opened.name}/agent-{call}"
            yield from below.events(opened._replace(name=name, titles=(), parent=opened.name))
            self.silent.update(below.silent)
