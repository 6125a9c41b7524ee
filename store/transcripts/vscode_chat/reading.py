"""Chats of VS Code, such as those with Copilot: a document, or a log of changes that is replayed.

A request that was taken back, or asked anew, leaves the list of requests, or is to leave it with
the next one: it is a branch of the session.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from ...messages import Message
from ...text import Fields
from ..events import (
    Event,
    Noted,
    Opened,
    SessionNames,
    fields_of,
    first_text,
    list_of,
    omissions,
    split_metadata,
    telling,
    text_of,
    title_lines,
    title_of,
    unread,
    without,
)
from ..source import Source, Value
from ..trees import Tree, tree_events
from .log import is_entry, state_after
from .parts import SPOKEN, kind_of
from .requests import is_pending, is_request, messages_of, model_of

NAMES = ("sessionId", "responderUsername", "requesterUsername")
"""Keys that a chat has, or an export of one, beside its requests."""

_SAID = ("requests", "sessionId", "customTitle", "computedTitle", "inputState")


def looks(value: Any) -> bool:
    """Tell whether a JSON value is a chat, or the entry that begins the log of one."""
    fields = fields_of(fields_of(value).get("v") if is_entry(value) else value)
    requests = fields.get("requests")
    named = not fields.keys().isdisjoint(NAMES)
    return named and isinstance(requests, list) and (not requests or any(map(is_request, requests)))


def parse(source: Source) -> Iterator[Event]:
    """Return a session for each chat of a file, its branches after it, then the notes."""
    names = SessionNames(source.stem)
    log = _Chat(source)
    for item in source.values():
        if isinstance(item, Noted):
            yield item
        elif is_entry(item.value):
            yield from log.take(item)
        elif looks(item.value):
            chat = _Chat(source)
            chat.see(item.value)
            yield from chat.events(names)
        else:
            yield _no_chat(item)
    yield from log.events(names)


def _no_chat(item: Value) -> Noted:
    return unread(item.row, item.value, "no chat, and no change of one")


class _Chat:
    """Follow the states of a chat: each request that was ever in it, and behind which it came."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._state: Fields = {}
        self._requests: dict[str, Fields] = {}
        self._parents: dict[str, str | None] = {}
        self._present: str | None = None

    def take(self, item: Value) -> Iterator[Noted]:
        """Take an entry of the log; return what is wrong with it."""
        try:
            self.see(fields_of(state_after(self._state, item.value)))
        except (LookupError, TypeError, ValueError, AttributeError):
            yield _no_chat(item)

    def see(self, state: Fields) -> None:
        """Take a state."""
        self._state, self._present, before = state, None, None
        requests = map(fields_of, list_of(state.get("requests")))
        for number, request in enumerate(requests, 1):
            name = text_of(request.get("requestId")) or f"request-{number}"
            self._requests[name] = request
            self._parents.setdefault(name, before)
            before = name
            if not (request.get("shouldBeRemovedOnSend") or request.get("isHidden")):
                self._present = name

    def events(self, names: SessionNames) -> Iterator[Event]:
        """Return the session, its branches, and the notes."""
        if not self._state:
            return
        said = {name: self._messages_of(name) for name in self._requests}
        asked = [messages[0] for messages in said.values() if messages]
        opened, notes = self._opened(names, asked)
        if self._requests:
            yield from tree_events(Tree(self._parents, self._present, said.__getitem__), opened)
        else:
            yield opened
        yield from self._omissions()
        yield from notes

    def _messages_of(self, name: str) -> list[Message]:
        request = self._requests[name]
        return messages_of(name, request) if is_request(request) else []

    def _opened(self, names: SessionNames, asked: list[Message]) -> tuple[Opened, list[Noted]]:
        told = self._state
        given = (told.get("customTitle"), told.get("computedTitle"))
        titles = title_lines((*given, title_of(asked)))
        name = names.name(text_of(told.get("sessionId")))
        kept, notes = split_metadata(telling(without(told, *_SAID)))
        model = first_text(map(model_of, reversed(self._requests.values())))
        metadata = telling({"model": model}) | {"vscode_chat": kept}
        root = folder_of(self._source.path)
        return Opened(name, first_text(titles), root, metadata, titles=titles), notes

    def _omissions(self) -> Iterator[Noted]:
        requests = self._requests.values()
        parts = (kind_of(part) for each in requests for part in list_of(each.get("response")))
        yield from omissions(
            Counter((str(kind), "") for kind in parts if kind not in SPOKEN), "part"
        )
        for name, request in self._requests.items():
            if is_pending(request):
                yield Noted(None, f"the answer to {name!r} is still being written, and is left out")


def folder_of(path: Path) -> str | None:
    """Return the folder that VS Code had open: it stands in a file beside those of the chats."""
    try:
        told = json.loads((path.parent.parent / "workspace.json").read_bytes())
    except (OSError, ValueError):
        return None
    folder = text_of(fields_of(told).get("folder")) or ""
    return unquote(folder.removeprefix("file://")) if folder.startswith("file:///") else None
