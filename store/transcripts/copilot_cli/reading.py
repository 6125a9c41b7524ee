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
from ...text import Fields
from ..events import (
    Event,
    Noted,
    Opened,
    Said,
    SessionNames,
    fields_of,
    first_text,
    omissions,
    split_metadata,
    telling,
    text_of,
    title_lines,
    title_of,
    unread,
    without,
)
from ..shelf import Shelf, Shelved
from ..source import Source
from ..trees import Tree, ancestors, tree_events, with_compactions
from .compactions import BEGUN, DONE, compactions_on
from .program_events import agent_of, is_event, message_of

START, REWIND, THOUGHT = "session.start", "session.snapshot_rewind", "assistant.reasoning"
TITLE, MODEL, SHUTDOWN = "session.title_changed", "session.model_change", "session.shutdown"
AGENT = "subagent.started"

USED = (START, REWIND, THOUGHT, TITLE, MODEL, SHUTDOWN, AGENT, BEGUN, DONE)
"""Events that are no messages and yet are read."""


def looks(value: Any) -> bool:
    """Tell whether a JSON value begins a session, or is a message that can be read."""
    return is_event(value) and (value["type"] == START or bool(message_of("", value)))


def parse(source: Source) -> Iterator[Event]:
    """Return the sessions of a file, each with its branches and its subagents, then the notes."""
    with Shelf() as shelf:
        chat = _Chat(shelf)
        for item in source.values():
            if isinstance(item, Noted):
                yield item
                continue
            if not is_event(item.value):
                yield unread(item.row, item.value, "no event of a session")
                continue
            if chat.is_ended_by(item.value):
                yield from chat.events(source.stem)
                chat = _Chat(shelf)
            chat.take(item.value)
        yield from chat.events(source.stem)


class _Chat:
    """Replay the events of a session.

    ``_parents`` tells after which event each came; ``_facts`` is the last of each type of event
    that is no message.
    """

    def __init__(self, shelf: Shelf) -> None:
        self._names = SessionNames("event")
        self._shelf = shelf
        self._events = Shelved(shelf)
        self._parents: dict[str, str | None] = {}
        self._last: str | None = None
        self._said = Shelved(shelf)
        self._agents: dict[str, Shelved] = {}
        self._started: dict[str, Fields] = {}
        self._facts: dict[str, Fields] = {}
        self._unsaid: Counter[tuple[str, str]] = Counter()

    def is_ended_by(self, event: Fields) -> bool:
        """Tell whether an event begins another session."""
        known = self._fact(START, "sessionId")
        return event["type"] == START and known not in (None, event["data"].get("sessionId"))

    def take(self, event: Fields) -> None:
        """Take the next event."""
        name = self._names.name(text_of(event["id"]))
        self._events[name], self._parents[name] = event, self._last
        self._last = name
        message = message_of(name, event)
        if message is None:
            self._note(event)
        elif agent_of(event):
            agent = self._agents.setdefault(str(agent_of(event)), Shelved(self._shelf))
            agent[name] = message
        else:
            self._say(name, message)

    def _say(self, name: str, message: Message) -> None:
        """Keep a message; an answer with the thought that stands before it on its own."""
        if message["role"] == "assistant":
            thought = self._facts.pop(THOUGHT, {}).get("content")
            message = {**telling({"reasoning_content": text_of(thought)}), **message}
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

    def _note(self, event: Fields) -> None:
        """Take an event that is no message."""
        kind, data = str(event["type"]), event["data"]
        self._facts[kind] = data
        first = str(data.get("upToEventId"))
        if kind == REWIND and first in self._parents:
            self._last = self._parents[first]
        if kind == AGENT:
            told = (event["data"].get("toolCallId"), event.get("agentId"))
            self._started.update((each, data) for each in list(filter(None, map(text_of, told))))
        if kind not in USED:
            self._unsaid[str(kind), ""] += 1

    def _fact(self, kind: str, key: str) -> Any:
        return self._facts.get(kind, {}).get(key)

    def events(self, stem: str) -> Iterator[Event]:
        """Return all sessions, their messages, and the notes."""
        if not self._events:
            return
        opened, notes = self._opened(text_of(self._fact(START, "sessionId")) or stem)
        tree = Tree(self._parents, self._last, self._messages_of)
        present = list(ancestors(self._parents, self._last))[::-1]
        found = compactions_on((self._events[each], each in self._said) for each in present)
        yield from with_compactions(tree_events(tree, opened), found)
        for agent, messages in self._agents.items():
            yield self._agent_opened(opened, agent, messages.values())
            yield from map(Said, messages.values())
        yield from omissions(+self._unsaid, "event")
        yield from notes

    def _messages_of(self, name: str) -> list[Message]:
        return [self._said[name]] if name in self._said else []

    def _opened(self, name: str) -> tuple[Opened, list[Noted]]:
        prompt = title_of(self._said.values())
        titles = title_lines((self._fact(TITLE, "title"), prompt))
        start = self._facts.get(START, {})
        ended = telling({"shutdown": self._facts.get(SHUTDOWN)})
        kept, notes = split_metadata(without(start, "sessionId") | ended)
        metadata = telling({"model": self._model()}) | {"copilot_cli": kept}
        root = text_of(fields_of(start.get("context")).get("cwd"))
        return Opened(name, first_text(titles), root, metadata, titles=titles), notes

    def _model(self) -> str | None:
        facts = (each.get("copilot_cli", {}) for each in self._answers())
        told = (each.get("model") for each in facts)
        chosen = (self._fact(MODEL, "newModel"), self._fact(START, "selectedModel"))
        return first_text(chain(told, chosen))

    def _answers(self) -> Iterable[Message]:
        said = map(self._said.__getitem__, reversed(self._said))
        return (each for each in said if each["role"] == "assistant")

    def _agent_opened(self, home: Opened, agent: str, messages: Iterable[Message]) -> Opened:
        told = self._started.get(agent, {})
        call = text_of(told.get("toolCallId")) or agent
        link = {"parent_session": home.session_id, "parent_call": call, "agent_id": agent}
        title = text_of(told.get("agentDisplayName")) or title_of(messages)
        name = f"{home.session_id}/agent-{agent}"
        return Opened(name, title, home.project_root, link | telling({"copilot_cli": told}))
