"""Sessions of opencode and its forks, as ``opencode export`` writes them: a document each.

Reverted messages, until the session goes on without them, are a branch of the session.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain, pairwise
from typing import Any

from ...messages import Message
from ...text import JsonFields, wrap_in_list
from ..events import (
    CompactionEvent,
    Event,
    NoteEvent,
    SessionEvent,
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
from ..several import parse_conversations
from ..source import SourceValue, TranscriptSource
from ..trees import Tree, build_tree_events, insert_compactions
from .messages import (
    OPENCODE_PART_TYPES,
    is_opencode_message,
    list_opencode_parts,
    parse_opencode_message,
)

DEFAULT_TITLE_STARTS = ("New session - ", "Child session - ")
"""The beginning of a default title."""

OpencodeMessagesById = dict[str, JsonFields]
"""The messages of a session, each under its id."""

ChatMessagesById = dict[str, list[Message]]
"""The chat messages of each of them."""


def is_opencode_export(value: Any) -> bool:
    """Tell whether a JSON value is a session, or a list of them."""
    return any(map(_is_opencode_session, wrap_in_list(value)))


def _is_opencode_session(value: Any) -> bool:
    messages = get_fields(value).get("messages")
    if not isinstance(messages, list) or not get_fields(value.get("info")):
        return False
    return not messages or any(map(is_opencode_message, messages))


def parse_opencode(source: TranscriptSource) -> Iterator[Event]:
    """Return each session of a file, its reverted messages, and the notes."""
    expected = "session: it has no 'info' and no 'messages'"
    return parse_conversations(source, _is_opencode_session, expected, _parse_opencode_session)


def _parse_opencode_session(item: SourceValue, names: SessionNames) -> Iterator[Event]:
    info = item.value["info"]
    told, broken = _index_opencode_messages(item)
    yield from broken
    said = {name: parse_opencode_message(name, message) for name, message in told.items()}
    name = names.name(get_text(info.get("id")))
    opened, notes = _build_opencode_opening(name, info, said)
    first: dict[str, str | None] = dict.fromkeys(list(told)[:1])
    tree = Tree(
        (first | {after: before for before, after in pairwise(told)}),
        _find_present_message(info, list(told)),
        said.__getitem__,
    )
    events = build_tree_events(tree, opened) if told else iter([opened])
    yield from insert_compactions(events, dict(_find_opencode_compactions(told, said)))
    parts = (part for message in told.values() for part in list_opencode_parts(message))
    kinds = (str(part.get("type")) for part in parts)
    yield from list_omission_notes(
        Counter((kind, "") for kind in kinds if kind not in OPENCODE_PART_TYPES), "part"
    )
    yield from notes


def _index_opencode_messages(item: SourceValue) -> tuple[OpencodeMessagesById, list[NoteEvent]]:
    """Return the messages, and a note for each value that is not a message."""
    names = SessionNames("message")
    told: OpencodeMessagesById = {}
    broken = []
    for message in item.value["messages"]:
        if is_opencode_message(message):
            told[names.name(get_text(message["info"].get("id")))] = message
        else:
            broken.append(note_unread_value(item.row, message, "no message"))
    return told, broken


def _find_present_message(info: JsonFields, names: list[str]) -> str | None:
    """Return the last message that was not reverted; if a part is named, its message stays."""
    revert = get_fields(info.get("revert"))
    if revert.get("messageID") not in names:
        return None
    place = names.index(revert["messageID"])
    if not revert.get("partID"):
        place -= 1
    return names[place] if place >= 0 else None


def _build_opencode_opening(
    name: str, info: JsonFields, said: ChatMessagesById
) -> tuple[SessionEvent, list[NoteEvent]]:
    messages = list(chain.from_iterable(said.values()))
    given = get_text(info.get("title")) or ""
    titles = render_titles(
        ("" if given.startswith(DEFAULT_TITLE_STARTS) else given, find_title(messages))
    )
    kept, notes = split_metadata(drop_empty_fields(drop_keys(info, "id", "title", "directory")))
    facts = (message.get("opencode", {}) for message in reversed(messages))
    model = find_first_text(each.get("modelID") for each in facts)
    told = {"model": model, "parent_session": get_text(info.get("parentID"))}
    metadata = drop_empty_fields(told) | {"opencode": kept}
    root = get_text(info.get("directory"))
    return SessionEvent(name, find_first_text(titles), root, metadata, titles=titles), notes


def _find_opencode_compactions(
    told: OpencodeMessagesById, said: ChatMessagesById
) -> Iterator[tuple[int, CompactionEvent]]:
    """Yield the compactions: each answer sums up the chat before its question."""
    before: dict[str, int] = {}
    count = 0
    for name, message in told.items():
        before[name] = count
        count += len(said[name])
        asked = get_text(message["info"].get("parentID"))
        if message["info"].get("summary") is True and asked in told:
            through = before.get(_find_tail_start(told[asked]) or asked, 0)
            yield from [(count, CompactionEvent(through))] if through else []


def _find_tail_start(question: JsonFields) -> str | None:
    """Return the first message before a question that stayed visible, if any."""
    return find_first_text(part.get("tail_start_id") for part in list_opencode_parts(question))
