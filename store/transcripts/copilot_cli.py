"""Sessions of Copilot CLI, and transcripts of the same shape by Copilot's extension of VS Code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any

from ..records import Message
from ..text import JsonFields
from .disk_buffer import BufferedMapping, DiskBuffer
from .parser_events import (
    CompactionEvent,
    Event,
    NoteEvent,
    SessionEvent,
    SessionMessage,
    SessionNames,
    build_chat_call,
    drop_empty_fields,
    drop_keys,
    find_first_text,
    find_title,
    get_fields,
    get_list,
    get_text,
    list_omission_notes,
    note_unread_value,
    parse_iso_milliseconds,
    render_json,
    render_titles,
    split_metadata,
)
from .source import TranscriptSource
from .trees import Tree, build_tree_events, insert_compactions, list_ancestors

__all__ = ["is_readable_copilot_event", "parse_copilot_cli"]

MessageParser = Callable[[JsonFields], Message]


COPILOT_EVENT_KEYS = {"type", "id", "parentId"}
"""Keys of every event."""


def is_copilot_event(value: object) -> bool:
    """Tell whether a JSON value is an event of this program."""
    fields = get_fields(value)
    return isinstance(fields.get("data"), dict) and fields.keys() >= COPILOT_EVENT_KEYS


def find_event_agent(event: JsonFields) -> str | None:
    """Return whose event it is: a subagent's, by its call or its id; None for the session's own."""
    return get_text(event["data"].get("parentToolCallId")) or get_text(event.get("agentId"))


def parse_copilot_event(name: str, event: JsonFields) -> Message | None:
    """Return an event as a message with this id, None where it is none."""
    kind = get_text(event["type"])
    if kind not in MESSAGE_PARSERS:
        return None
    make, *said = MESSAGE_PARSERS[kind]
    data = event["data"]
    moment = parse_iso_milliseconds(event.get("timestamp"))
    message = make(data) | {"id": name} | ({} if moment is None else {"timestamp": moment})
    extra = _drop_repeated_content(message["content"], drop_keys(data, *said))
    if "result" in extra:
        extra["result"] = _drop_repeated_content(message["content"], get_fields(extra["result"]))
    return message | drop_empty_fields({"copilot_cli": drop_empty_fields(extra)})


def _drop_repeated_content(content: object, fields: JsonFields) -> JsonFields:
    """Return the fields that say something, and not the same as the content."""
    return {key: held for key, held in drop_empty_fields(fields).items() if held != content}


def _parse_system_event(data: JsonFields) -> Message:
    return {"role": "system", "content": get_text(data.get("content")) or ""}


def _parse_user_event(data: JsonFields) -> Message:
    return {"role": "user", "content": get_text(data.get("content")) or ""}


def _parse_assistant_event(data: JsonFields) -> Message:
    calls = [_parse_tool_request(get_fields(each)) for each in get_list(data.get("toolRequests"))]
    thought = get_text(data.get("reasoningText"))
    more = drop_empty_fields({"tool_calls": calls, "reasoning_content": thought})
    return {"role": "assistant", "content": get_text(data.get("content"))} | more


def _parse_tool_request(request: JsonFields) -> JsonFields:
    """Return a call; its description for people (``intentionSummary``) is kept beside it."""
    asked = request.get("arguments")
    if not isinstance(asked, str):
        arguments = render_json(asked or {})
    else:
        arguments = asked if asked.lstrip().startswith("{") else render_json({"input": asked})
    extra = drop_empty_fields(drop_keys(request, "toolCallId", "name", "arguments", "type"))
    call = build_chat_call(request.get("toolCallId"), request.get("name"), arguments)
    return call | drop_empty_fields({"copilot_cli": extra})


def _parse_tool_completion(data: JsonFields) -> Message:
    told = (
        get_fields(data.get("result")).get("content"),
        get_fields(data.get("error")).get("message"),
    )
    content = next(filter(None, map(get_text, told)), "")
    link = drop_empty_fields({"tool_call_id": get_text(data.get("toolCallId"))})
    failed = {"messageStatus": "error"} if data.get("success") is False else {}
    return {"role": "tool", "content": content} | link | failed


MESSAGE_PARSERS: dict[str, tuple[MessageParser, *tuple[str, ...]]] = {
    "system.message": (_parse_system_event, "content", "role"),
    "user.message": (_parse_user_event, "content"),
    "system.notification": (_parse_user_event, "content"),
    "assistant.message": (_parse_assistant_event, "content", "toolRequests", "reasoningText"),
    "tool.execution_complete": (_parse_tool_completion, "toolCallId", "success"),
}
"""Type of an event → what makes a message of it, and the keys that this says."""


BEGUN, DONE = "session.compaction_start", "session.compaction_complete"


START, REWIND, THOUGHT = "session.start", "session.snapshot_rewind", "assistant.reasoning"
TITLE, MODEL, SHUTDOWN = "session.title_changed", "session.model_change", "session.shutdown"
AGENT_STARTED = "subagent.started"
CALL_STARTED, CALL_DONE = "tool.execution_start", "tool.execution_complete"
SUBAGENT_TOOLS = ("runSubagent", "search_subagent", "execution_subagent")
"""Tools of the extension: rows before the end of such a call are its subagent's."""

STATE_EVENT_TYPES = (START, REWIND, THOUGHT, TITLE, MODEL, SHUTDOWN, AGENT_STARTED, BEGUN, DONE)
"""Events that are no messages and yet are read."""


def is_readable_copilot_event(value: Any) -> bool:
    """Tell whether a JSON value begins a session, or is a message that can be read."""
    return is_copilot_event(value) and (
        value["type"] == START or bool(parse_copilot_event("", value))
    )


def parse_copilot_cli(source: TranscriptSource) -> Iterator[Event]:
    """Return the sessions of a file, each with its branches and its subagents, then the notes."""
    with DiskBuffer() as buffer:
        chat = _SessionReplay(buffer)
        for item in source.values():
            if isinstance(item, NoteEvent):
                yield item
                continue
            if not is_copilot_event(item.value):
                yield note_unread_value(item.row, item.value, "no event of a session")
                continue
            if chat.is_ended_by(item.value):
                yield from chat.events(source.stem)
                chat = _SessionReplay(buffer)
            chat.take(item.value)
        yield from chat.events(source.stem)


class _SessionReplay:
    """Replay the events of a session.

    ``_parents`` tells after which event each came; ``_facts`` is the last of each type of event
    that is no message.
    """

    def __init__(self, buffer: DiskBuffer) -> None:
        self._names = SessionNames("event")
        self._buffer = buffer
        self._events = BufferedMapping(buffer)
        self._parents: dict[str, str | None] = {}
        self._last: str | None = None
        self._said = BufferedMapping(buffer)
        self._agents: dict[str, BufferedMapping] = {}
        self._running: list[str] = []
        self._started: dict[str, JsonFields] = {}
        self._facts: dict[str, JsonFields] = {}
        self._unsaid: Counter[tuple[str, str]] = Counter()

    def is_ended_by(self, event: JsonFields) -> bool:
        """Tell whether an event begins another session."""
        known = self._fact(START, "sessionId")
        return event["type"] == START and known not in (None, event["data"].get("sessionId"))

    def take(self, event: JsonFields) -> None:
        """Take the next event."""
        name = self._names.name(get_text(event["id"]))
        self._events[name], self._parents[name] = event, self._last
        self._last = name
        message = parse_copilot_event(name, event)
        told = self._find_agent(event)
        if message is None:
            self._note(event)
        elif told:
            agent = self._agents.setdefault(told, BufferedMapping(self._buffer))
            agent[name] = message
        else:
            self._say(name, message)

    def _find_agent(self, event: JsonFields) -> str | None:
        """Return whose event it is; the extension tells it only by the calls that are running."""
        kind, call = event["type"], get_text(event["data"].get("toolCallId"))
        if kind == CALL_DONE and call in self._running:
            del self._running[self._running.index(call) :]
        found = find_event_agent(event) or next(reversed(self._running), None)
        if kind == CALL_STARTED and call and event["data"].get("toolName") in SUBAGENT_TOOLS:
            self._running.append(call)
        return found

    def _say(self, name: str, message: Message) -> None:
        """Keep a message; an answer with the thought before it, which is a row of its own."""
        if message["role"] == "assistant":
            thought = self._facts.pop(THOUGHT, {}).get("content")
            message = {**drop_empty_fields({"reasoning_content": get_text(thought)}), **message}
        if self._is_news(message):
            self._said[name] = message

    def _is_news(self, message: Message) -> bool:
        """Tell whether a message is none of the system's that was said before."""
        if message["role"] != "system":
            return True
        before, self._facts["system"] = self._facts.get("system"), message
        is_news = before is None or before["content"] != message["content"]
        self._unsaid["system.message", "said before"] += not is_news
        return is_news

    def _note(self, event: JsonFields) -> None:
        """Take an event that is no message."""
        kind, data = str(event["type"]), event["data"]
        self._facts[kind] = data
        first = str(data.get("upToEventId"))
        if kind == REWIND and first in self._parents:
            self._last = self._parents[first]
        if kind == AGENT_STARTED:
            told = (event["data"].get("toolCallId"), event.get("agentId"))
            self._started.update((each, data) for each in list(filter(None, map(get_text, told))))
        if kind not in STATE_EVENT_TYPES:
            self._unsaid[str(kind), ""] += 1

    def _fact(self, kind: str, key: str) -> Any:
        return self._facts.get(kind, {}).get(key)

    def events(self, stem: str) -> Iterator[Event]:
        """Return all sessions, their messages, and the notes."""
        if not self._events:
            return
        opened, notes = self._opened(get_text(self._fact(START, "sessionId")) or stem)
        tree = Tree(self._parents, self._last, self._messages_of)
        present = list(list_ancestors(self._parents, self._last))[::-1]
        # Each event comes with a flag, true for a message. Messages written during a compaction
        # stay in sight.
        path = ((self._events[each], each in self._said) for each in present)
        found: dict[int, CompactionEvent] = {}
        count = begun = 0
        for event, is_said in path:
            count += is_said
            if event["type"] == BEGUN:
                begun = count
            if event["type"] == DONE:
                through = begun or count
                data = event["data"]
                summary = get_text(data.get("summaryContent"))
                found |= {count: CompactionEvent(through, summary)} if summary and through else {}
                begun = 0
        yield from insert_compactions(build_tree_events(tree, opened), found)
        for agent, messages in self._agents.items():
            yield self._agent_opened(opened, agent, messages.values())
            yield from map(SessionMessage, messages.values())
        yield from list_omission_notes(+self._unsaid, "event")
        yield from notes

    def _messages_of(self, name: str) -> list[Message]:
        return [self._said[name]] if name in self._said else []

    def _opened(self, name: str) -> tuple[SessionEvent, list[NoteEvent]]:
        prompt = find_title(self._said.values())
        titles = render_titles((self._fact(TITLE, "title"), prompt))
        start = self._facts.get(START, {})
        ended = drop_empty_fields({"shutdown": self._facts.get(SHUTDOWN)})
        kept, notes = split_metadata(drop_keys(start, "sessionId") | ended)
        metadata = drop_empty_fields({"model": self._model()}) | {"copilot_cli": kept}
        root = get_text(get_fields(start.get("context")).get("cwd"))
        return SessionEvent(name, find_first_text(titles), root, metadata, titles=titles), notes

    def _model(self) -> str | None:
        facts = (each.get("copilot_cli", {}) for each in self._answers())
        told = (each.get("model") for each in facts)
        chosen = (self._fact(MODEL, "newModel"), self._fact(START, "selectedModel"))
        return find_first_text(chain(told, chosen))

    def _answers(self) -> Iterable[Message]:
        said = map(self._said.__getitem__, reversed(self._said))
        return (each for each in said if each["role"] == "assistant")

    def _agent_opened(
        self, home: SessionEvent, agent: str, messages: Iterable[Message]
    ) -> SessionEvent:
        told = self._started.get(agent, {})
        call = get_text(told.get("toolCallId")) or agent
        link = {"parent_session": home.session_id, "parent_call": call, "agent_id": agent}
        title = get_text(told.get("agentDisplayName")) or find_title(messages)
        name = f"{home.session_id}/agent-{agent}"
        return SessionEvent(
            name, title, home.project_root, link | drop_empty_fields({"copilot_cli": told})
        )
