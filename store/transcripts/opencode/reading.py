"""Sessions of opencode and its forks, as ``opencode export`` writes them: a document each.

Reverted messages, until the session goes on without them, are a branch of the session.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain, pairwise
from typing import Any

from ...messages import Message
from ...text import Fields, as_list
from ..events import (
    Compacted,
    Event,
    Noted,
    Opened,
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
from ..several import conversations
from ..source import Source, Value
from ..trees import Tree, tree_events, with_compactions
from .messages import USED, is_message, messages_of, parts_of

UNTITLED = ("New session - ", "Child session - ")
"""The beginning of a default title."""

Told = dict[str, Fields]
"""The messages of a session, each under its id."""

Said = dict[str, list[Message]]
"""The chat messages of each of them."""


def looks(value: Any) -> bool:
    """Tell whether a JSON value is a session, or a list of them."""
    return any(map(_is_session, as_list(value)))


def _is_session(value: Any) -> bool:
    messages = fields_of(value).get("messages")
    if not isinstance(messages, list) or not fields_of(value.get("info")):
        return False
    return not messages or any(map(is_message, messages))


def parse(source: Source) -> Iterator[Event]:
    """Return each session of a file, its reverted messages, and the notes."""
    expected = "session: it has no 'info' and no 'messages'"
    return conversations(source, _is_session, expected, _session)


def _session(item: Value, names: SessionNames) -> Iterator[Event]:
    info = item.value["info"]
    told, broken = _told(item)
    yield from broken
    said = {name: messages_of(name, message) for name, message in told.items()}
    name = names.name(text_of(info.get("id")))
    opened, notes = _opened(name, info, said)
    first: dict[str, str | None] = dict.fromkeys(list(told)[:1])
    tree = Tree(
        (first | {after: before for before, after in pairwise(told)}),
        _present(info, list(told)),
        said.__getitem__,
    )
    events = tree_events(tree, opened) if told else iter([opened])
    yield from with_compactions(events, dict(_compactions(told, said)))
    yield from omissions(_unused(told), "part")
    yield from notes


def _told(item: Value) -> tuple[Told, list[Noted]]:
    """Return the messages, and a note for each value that is not a message."""
    names = SessionNames("message")
    told: Told = {}
    broken = []
    for message in item.value["messages"]:
        if is_message(message):
            told[names.name(text_of(message["info"].get("id")))] = message
        else:
            broken.append(unread(item.row, message, "no message"))
    return told, broken


def _present(info: Fields, names: list[str]) -> str | None:
    """Return the last message that was not reverted; if a part is named, its message stays."""
    revert = fields_of(info.get("revert"))
    if revert.get("messageID") not in names:
        return None
    place = names.index(revert["messageID"])
    if not revert.get("partID"):
        place -= 1
    return names[place] if place >= 0 else None


def _opened(name: str, info: Fields, said: Said) -> tuple[Opened, list[Noted]]:
    messages = list(chain.from_iterable(said.values()))
    given = text_of(info.get("title")) or ""
    titles = title_lines(("" if given.startswith(UNTITLED) else given, title_of(messages)))
    kept, notes = split_metadata(telling(without(info, "id", "title", "directory")))
    facts = (message.get("opencode", {}) for message in reversed(messages))
    model = first_text(each.get("modelID") for each in facts)
    told = {"model": model, "parent_session": text_of(info.get("parentID"))}
    metadata = telling(told) | {"opencode": kept}
    root = text_of(info.get("directory"))
    return Opened(name, first_text(titles), root, metadata, titles=titles), notes


def _compactions(told: Told, said: Said) -> Iterator[tuple[int, Compacted]]:
    """Yield the compactions: each answer sums up the chat before its question."""
    before: dict[str, int] = {}
    count = 0
    for name, message in told.items():
        before[name] = count
        count += len(said[name])
        asked = text_of(message["info"].get("parentID"))
        if message["info"].get("summary") is True and asked in told:
            through = before.get(_kept_from(told[asked]) or asked, 0)
            yield from [(count, Compacted(through))] if through else []


def _kept_from(question: Fields) -> str | None:
    """Return the first message before a question that stayed visible, if any."""
    return first_text(part.get("tail_start_id") for part in parts_of(question))


def _unused(told: Told) -> Counter[tuple[str, str]]:
    parts = (part for message in told.values() for part in parts_of(message))
    kinds = (str(part.get("type")) for part in parts)
    return Counter((kind, "") for kind in kinds if kind not in USED)
