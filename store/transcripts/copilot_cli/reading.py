"""Sessions of Copilot CLI: lines of events, including the messages.

A rewind names an event that was taken back with all later ones: the next events continue before
it, so the events are a tree. Events of subagents are among those of the session, and are sessions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from ...messages import Message
from ...text import JsonFields
from ..events import (
    Event,
    NoteEvent,
    SessionEvent,
    SessionMessage,
    SessionNames,
    drop_empty_fields,
    drop_keys,
    find_first_text,
    find_title,
    get_fields,
    get_text,
    list_omission_notes,
    note_unread_value,
    render_titles,
    split_metadata,
)
from ..shelf import Shelf, ShelfMapping
from ..source import TranscriptSource
from ..trees import Tree, build_tree_events, insert_compactions, list_ancestors
from .compactions import BEGUN, DONE, find_path_compactions
from .program_events import find_event_agent, is_copilot_event, parse_copilot_event

START, REWIND, THOUGHT = "session.start", "session.snapshot_rewind", "assistant.reasoning"
TITLE, MODEL, SHUTDOWN = "session.title_changed", "session.model_change", "session.shutdown"
AGENT_STARTED = "subagent.started"

STATE_EVENT_TYPES = (START, REWIND, THOUGHT, TITLE, MODEL, SHUTDOWN, AGENT_STARTED, BEGUN, DONE)
"""Events that are no messages and yet are read."""


def is_readable_copilot_event(value: Any) -> bool:
    """Tell whether a JSON value begins a session, or is a message that can be read."""
    return is_copilot_event(value) and (
        value["type"] == START or bool(parse_copilot_event("", value))
    )


def parse_copilot_cli(source: TranscriptSource) -> Iterator[Event]:
    """Return the sessions of a file, each with its branches and its subagents, then the notes."""
    with Shelf() as shelf:
        chat = _SessionReplay(shelf)
        for item in source.values():
            if isinstance(item, NoteEvent):
                yield item
                continue
            if not is_copilot_event(item.value):
                yield note_unread_value(item.row, item.value, "no event of a session")
                continue
            if chat.is_ended_by(item.value):
                yield from chat.events(source.stem)
                chat = _SessionReplay(shelf)
            chat.take(item.value)
        yield from chat.events(source.stem)


class _SessionReplay:
    """Replay the events of a session.

    ``_parents`` tells after which event each came; ``_facts`` is the last of each type of event
    that is no message.
    """

    def __init__(self, shelf: Shelf) -> None:
        self._names = SessionNames("event")
        self._shelf = shelf
        self._events = ShelfMapping(shelf)
        self._parents: dict[str, str | None] = {}
        self._last: str | None = None
        self._said = ShelfMapping(shelf)
        self._agents: dict[str, ShelfMapping] = {}
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
        if message is None:
            self._note(event)
        elif find_event_agent(event):
            agent = self._agents.setdefault(str(find_event_agent(event)), ShelfMapping(self._shelf))
            agent[name] = message
        else:
            self._say(name, message)

    def _say(self, name: str, message: Message) -> None:
        """Keep a message; an answer with the thought that stands before it on its own."""
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
        found = find_path_compactions((self._events[each], each in self._said) for each in present)
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
