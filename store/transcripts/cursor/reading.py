"""Chats of Cursor as sessions: those of a database, and the file of an agent's transcript."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain
from typing import Any
from urllib.parse import unquote

from ...messages import Message
from ...text import Fields
from ..database import json_in
from ..events import (
    Compacted,
    Event,
    Noted,
    Opened,
    Said,
    SessionNames,
    fields_of,
    first_text,
    left_out,
    list_of,
    objects_of,
    omissions,
    telling,
    text_of,
    title_lines,
    title_of,
    unread,
    within,
)
from ..source import Source
from ..trees import with_compactions
from .bubbles import is_bubble, messages_of, moment_of, name_of
from .transcripts import is_line, is_state, messages_in, typed

KNOWN = (
    *("status", "subtitle", "unifiedMode", "forceMode", "isAgentic", "createdAt", "lastUpdatedAt"),
    *("usageData", "contextTokensUsed", "contextTokenLimit", "subagentInfo"),
)
"""Fields of a chat that are kept; the others are the state of files and of the screen."""

WORKSPACE = "workspace.json"
"""The file beside the database of a folder's chats, which names the folder."""

Bubbles = dict[str, Fields]
"""The bubbles of a chat, each under its id, in order."""

SaidBy = dict[str, list[Message]]
"""What each of them says."""


def looks(value: Any) -> bool:
    """Tell whether a value is a chat of a database, or a line of a transcript."""
    fields = fields_of(value)
    return {"composerData", "bubbles"} <= fields.keys() or is_line(value)


def parse(source: Source) -> Iterator[Event]:
    """Return the sessions of a database, or the one of a transcript."""
    names, folder = SessionNames("chat"), _folder_beside(source)
    lines: list[tuple[int, Fields]] = []
    states: Counter[tuple[str, str]] = Counter()
    for number, item in enumerate(source.values(), 1):
        if isinstance(item, Noted):
            yield item
        elif is_line(item.value):
            lines.append((number, item.value))
        elif looks(item.value):
            yield from _chat(item.value, names, folder)
        elif is_state(item.value):
            states[item.value["type"], ""] += 1
        else:
            yield unread(item.row, item.value, "no line of a chat")
    if lines:
        said = list(messages_in(lines))
        yield _transcript(source, said)
        yield from map(Said, said)
    yield from omissions(states, "line")


def _transcript(source: Source, lines: list[Message]) -> Opened:
    """Return the session of an agent's file, which a database may hold as well, and better."""
    folder = source.path.parent
    parent = folder.parent.name if folder.name == "subagents" else None
    link = {"parent_session": f"{parent}/transcript"} if parent else {}
    words = (text_of(each["content"]) for each in lines if each["role"] == "user")
    title = typed(next(filter(None, words), title_of(lines) or ""))
    return Opened(f"{source.stem}/transcript", first_text(title_lines([title])), None, link)


def _folder_beside(source: Source) -> str | None:
    """Return the folder that a workspace's database is of, as the file beside it tells."""
    try:
        told = source.path.with_name(WORKSPACE).read_bytes()
    except OSError:
        return None
    return text_of(within(json_in(told), "folder"))


def _chat(chat: Fields, names: SessionNames, folder: str | None) -> Iterator[Event]:
    known = fields_of(chat["composerData"])
    bubbles, missing, others = _in_order(known, chat["bubbles"])
    said = _said(bubbles)
    messages = list(chain.from_iterable(said.values()))
    if not messages:
        return
    name = names.name(text_of(known.get("composerId")))
    opened = _opened(known, name, bubbles)
    titles = title_lines((known.get("name"), title_of(messages)))
    root = _root(known, bubbles, folder)
    opened = opened._replace(title=first_text(titles), titles=titles, project_root=root)
    events: Iterator[Event] = chain([opened], map(Said, messages))
    yield from with_compactions(events, dict(_compactions(known, said)))
    if missing:
        why = f" of {opened.session_id!r}, which the database does not have"
        yield left_out(missing, "bubble", why)._replace(broken=True)
    if others:
        yield left_out(others, "bubble", f" that {opened.session_id!r} no longer shows")


def _in_order(known: Fields, held: list[Any]) -> tuple[Bubbles, int, int]:
    """Return the bubbles as the chat has them, how many are missing, and how many it left."""
    found = {
        name_of(bubble) or f"bubble-{place}": bubble
        for place, bubble in (
            (place, each) for place, each in enumerate(held, 1) if is_bubble(each)
        )
    }
    order = list(map(name_of, objects_of(known.get("fullConversationHeadersOnly"))))
    if not order:
        return found, 0, 0
    kept = {name: found[name] for name in order if name in found}
    return kept, len(order) - len(kept), len(found) - len(kept)


def _said(bubbles: Bubbles) -> SaidBy:
    """Return the messages of each bubble; reasoning is added to the answer after it."""
    said: SaidBy = {}
    thoughts: list[str] = []
    for name, bubble in bubbles.items():
        thinking = bubble.get("thinking")
        thoughts += filter(None, [(text_of(thinking) or text_of(within(thinking, "text")))])
        said[name] = messages_of(bubble)
        if thoughts and said[name] and said[name][0]["role"] == "assistant":
            said[name][0]["reasoning_content"] = "\n\n".join(thoughts)
            thoughts = []
    return said


def _opened(known: Fields, name: str, bubbles: Bubbles) -> Opened:
    told = telling({key: known.get(key) for key in KNOWN})
    parent = within(known, "subagentInfo", "parentComposerId")
    links = {"model": _model(known, bubbles), "parent_session": text_of(parent)}
    metadata = telling({**links, "cursor": told})
    return Opened(name, None, None, metadata, created_at=moment_of(known))


def _model(known: Fields, bubbles: Bubbles) -> str | None:
    told = [within(each, "modelInfo", "modelName") for each in bubbles.values()]
    return first_text((*told[::-1], within(known, "modelConfig", "modelName")))


def _root(known: Fields, bubbles: Bubbles, folder: str | None) -> str | None:
    """Return the folder that was open: as the chat tells, else a bubble, else its workspace."""
    place = within(known, "workspaceIdentifier", "uri", "fsPath")
    told = (list_of(each.get("workspaceUris")) for each in bubbles.values())
    uri = first_text((place, *chain.from_iterable(told), folder))
    return unquote(uri.removeprefix("file://")) if uri else None


def _compactions(known: Fields, said: SaidBy) -> Iterator[tuple[int, Compacted]]:
    """Yield the summary of the first bubbles, with the number of messages up to their last."""
    told = fields_of(within(known, "latestConversationSummary", "summary"))
    summary, last = text_of(told.get("summary")), told.get("truncationLastBubbleIdInclusive")
    count = 0
    for name, messages in said.items():
        count += len(messages)
        if summary and name == last and count:
            yield count, Compacted(count, summary)
