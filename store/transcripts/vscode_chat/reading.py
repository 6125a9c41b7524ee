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
from ...text import JsonFields
from ..events import (
    Event,
    NoteEvent,
    SessionEvent,
    SessionNames,
    drop_empty_fields,
    drop_keys,
    find_first_text,
    find_title,
    get_fields,
    get_list,
    get_text,
    list_omission_notes,
    note_unread_value,
    render_titles,
    split_metadata,
)
from ..source import SourceValue, TranscriptSource
from ..trees import Tree, build_tree_events
from .log import apply_log_entry, is_log_entry
from .parts import VSCODE_PART_KINDS, find_part_kind
from .requests import (
    find_request_model,
    is_pending_request,
    is_vscode_request,
    parse_vscode_request,
)

VSCODE_CHAT_KEYS = ("sessionId", "responderUsername", "requesterUsername")
"""Keys that a chat has, or an export of one, beside its requests."""

_VSCODE_STATE_KEYS = ("requests", "sessionId", "customTitle", "computedTitle", "inputState")


def is_vscode_chat(value: Any) -> bool:
    """Tell whether a JSON value is a chat, or the entry that begins the log of one."""
    fields = get_fields(get_fields(value).get("v") if is_log_entry(value) else value)
    requests = fields.get("requests")
    named = not fields.keys().isdisjoint(VSCODE_CHAT_KEYS)
    return (
        named
        and isinstance(requests, list)
        and (not requests or any(map(is_vscode_request, requests)))
    )


def parse_vscode_chat(source: TranscriptSource) -> Iterator[Event]:
    """Return a session for each chat of a file, its branches after it, then the notes."""
    names = SessionNames(source.stem)
    log = _VscodeChat(source)
    for item in source.values():
        if isinstance(item, NoteEvent):
            yield item
        elif is_log_entry(item.value):
            yield from log.take(item)
        elif is_vscode_chat(item.value):
            chat = _VscodeChat(source)
            chat.see(item.value)
            yield from chat.events(names)
        else:
            yield _note_unread_chat(item)
    yield from log.events(names)


def _note_unread_chat(item: SourceValue) -> NoteEvent:
    return note_unread_value(item.row, item.value, "no chat, and no change of one")


class _VscodeChat:
    """Follow the states of a chat: each request that was ever in it, and behind which it came."""

    def __init__(self, source: TranscriptSource) -> None:
        self._source = source
        self._state: JsonFields = {}
        self._requests: dict[str, JsonFields] = {}
        self._parents: dict[str, str | None] = {}
        self._present: str | None = None

    def take(self, item: SourceValue) -> Iterator[NoteEvent]:
        """Take an entry of the log; return what is wrong with it."""
        try:
            self.see(get_fields(apply_log_entry(self._state, item.value)))
        except (LookupError, TypeError, ValueError, AttributeError):
            yield _note_unread_chat(item)

    def see(self, state: JsonFields) -> None:
        """Take a state."""
        self._state, self._present, before = state, None, None
        requests = map(get_fields, get_list(state.get("requests")))
        for number, request in enumerate(requests, 1):
            name = get_text(request.get("requestId")) or f"request-{number}"
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
            yield from build_tree_events(
                Tree(self._parents, self._present, said.__getitem__), opened
            )
        else:
            yield opened
        yield from self._omissions()
        yield from notes

    def _messages_of(self, name: str) -> list[Message]:
        request = self._requests[name]
        return parse_vscode_request(name, request) if is_vscode_request(request) else []

    def _opened(
        self, names: SessionNames, asked: list[Message]
    ) -> tuple[SessionEvent, list[NoteEvent]]:
        told = self._state
        given = (told.get("customTitle"), told.get("computedTitle"))
        titles = render_titles((*given, find_title(asked)))
        name = names.name(get_text(told.get("sessionId")))
        kept, notes = split_metadata(drop_empty_fields(drop_keys(told, *_VSCODE_STATE_KEYS)))
        model = find_first_text(map(find_request_model, reversed(self._requests.values())))
        metadata = drop_empty_fields({"model": model}) | {"vscode_chat": kept}
        root = read_workspace_folder(self._source.path)
        return SessionEvent(name, find_first_text(titles), root, metadata, titles=titles), notes

    def _omissions(self) -> Iterator[NoteEvent]:
        requests = self._requests.values()
        parts = (
            find_part_kind(part) for each in requests for part in get_list(each.get("response"))
        )
        yield from list_omission_notes(
            Counter((str(kind), "") for kind in parts if kind not in VSCODE_PART_KINDS), "part"
        )
        for name, request in self._requests.items():
            if is_pending_request(request):
                yield NoteEvent(
                    None, f"the answer to {name!r} is still being written, and is left out"
                )


def read_workspace_folder(path: Path) -> str | None:
    """Return the folder that VS Code had open: it stands in a file beside those of the chats."""
    try:
        told = json.loads((path.parent.parent / "workspace.json").read_bytes())
    except (OSError, ValueError):
        return None
    folder = get_text(get_fields(told).get("folder")) or ""
    return unquote(folder.removeprefix("file://")) if folder.startswith("file:///") else None
