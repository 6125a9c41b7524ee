"""Chats of Cursor as sessions: those of a database, and the file of an agent's transcript."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain
from typing import Any
from urllib.parse import unquote

from ...messages import Message
from ...text import JsonFields
from ..database import parse_json_cell
from ..events import (
    CompactionEvent,
    Event,
    NoteEvent,
    SessionEvent,
    SessionMessage,
    SessionNames,
    drop_empty_fields,
    find_first_text,
    find_title,
    get_fields,
    get_list,
    get_nested,
    get_objects,
    get_text,
    list_omission_notes,
    note_omission,
    note_unread_value,
    render_titles,
)
from ..source import TranscriptSource
from ..trees import insert_compactions
from .bubbles import find_bubble_id, is_bubble, parse_bubble, parse_bubble_time
from .transcripts import USER_QUERY_PATTERN, is_cursor_line, is_cursor_state, parse_cursor_lines

CURSOR_CHAT_KEYS = (
    *("status", "subtitle", "unifiedMode", "forceMode", "isAgentic", "createdAt", "lastUpdatedAt"),
    *("usageData", "contextTokensUsed", "contextTokenLimit", "subagentInfo"),
)
"""Fields of a chat that are kept; the others are the state of files and of the screen."""

WORKSPACE_FILE = "workspace.json"
"""The file beside the database of a folder's chats, which names the folder."""

BubblesById = dict[str, JsonFields]
"""The bubbles of a chat, each under its id, in order."""

MessagesByBubble = dict[str, list[Message]]
"""What each of them says."""


def is_cursor_chat(value: Any) -> bool:
    """Tell whether a value is a chat of a database, or a line of a transcript."""
    fields = get_fields(value)
    return {"composerData", "bubbles"} <= fields.keys() or is_cursor_line(value)


def parse_cursor(source: TranscriptSource) -> Iterator[Event]:
    """Return the sessions of a database, or the one of a transcript."""
    names, folder = SessionNames("chat"), _read_workspace_folder(source)
    lines: list[tuple[int, JsonFields]] = []
    states: Counter[tuple[str, str]] = Counter()
    for number, item in enumerate(source.values(), 1):
        if isinstance(item, NoteEvent):
            yield item
        elif is_cursor_line(item.value):
            lines.append((number, item.value))
        elif is_cursor_chat(item.value):
            yield from _parse_cursor_chat(item.value, names, folder)
        elif is_cursor_state(item.value):
            states[item.value["type"], ""] += 1
        else:
            yield note_unread_value(item.row, item.value, "no line of a chat")
    if lines:
        said = list(parse_cursor_lines(lines))
        yield _build_transcript_opening(source, said)
        yield from map(SessionMessage, said)
    yield from list_omission_notes(states, "line")


def _build_transcript_opening(source: TranscriptSource, lines: list[Message]) -> SessionEvent:
    """Return the session of an agent's file, which a database may hold as well, and better."""
    folder = source.path.parent
    parent = folder.parent.name if folder.name == "subagents" else None
    link = {"parent_session": f"{parent}/transcript"} if parent else {}
    words = (get_text(each["content"]) for each in lines if each["role"] == "user")
    title = USER_QUERY_PATTERN.sub(r"\1", next(filter(None, words), find_title(lines) or ""))
    return SessionEvent(
        f"{source.stem}/transcript", find_first_text(render_titles([title])), None, link
    )


def _read_workspace_folder(source: TranscriptSource) -> str | None:
    """Return the folder that a workspace's database is of, as the file beside it tells."""
    try:
        told = source.path.with_name(WORKSPACE_FILE).read_bytes()
    except OSError:
        return None
    return get_text(get_nested(parse_json_cell(told), "folder"))


def _parse_cursor_chat(
    chat: JsonFields, names: SessionNames, folder: str | None
) -> Iterator[Event]:
    known = get_fields(chat["composerData"])
    bubbles, missing, others = _order_bubbles(known, chat["bubbles"])
    said = _parse_bubbles(bubbles)
    messages = list(chain.from_iterable(said.values()))
    if not messages:
        return
    name = names.name(get_text(known.get("composerId")))
    opened = _build_cursor_opening(known, name, bubbles)
    titles = render_titles((known.get("name"), find_title(messages)))
    root = _find_cursor_folder(known, bubbles, folder)
    opened = opened._replace(title=find_first_text(titles), titles=titles, project_root=root)
    events: Iterator[Event] = chain([opened], map(SessionMessage, messages))
    yield from insert_compactions(events, dict(_find_cursor_compactions(known, said)))
    if missing:
        why = f" of {opened.session_id!r}, which the database does not have"
        yield note_omission(missing, "bubble", why)._replace(broken=True)
    if others:
        yield note_omission(others, "bubble", f" that {opened.session_id!r} no longer shows")


def _order_bubbles(known: JsonFields, held: list[Any]) -> tuple[BubblesById, int, int]:
    """Return the bubbles as the chat has them, how many are missing, and how many it left."""
    found = {
        find_bubble_id(bubble) or f"bubble-{place}": bubble
        for place, bubble in (
            (place, each) for place, each in enumerate(held, 1) if is_bubble(each)
        )
    }
    order = list(map(find_bubble_id, get_objects(known.get("fullConversationHeadersOnly"))))
    if not order:
        return found, 0, 0
    kept = {name: found[name] for name in order if name in found}
    return kept, len(order) - len(kept), len(found) - len(kept)


def _parse_bubbles(bubbles: BubblesById) -> MessagesByBubble:
    """Return the messages of each bubble; reasoning is added to the answer after it."""
    said: MessagesByBubble = {}
    thoughts: list[str] = []
    for name, bubble in bubbles.items():
        thinking = bubble.get("thinking")
        thoughts += filter(None, [(get_text(thinking) or get_text(get_nested(thinking, "text")))])
        said[name] = parse_bubble(bubble)
        if thoughts and said[name] and said[name][0]["role"] == "assistant":
            said[name][0]["reasoning_content"] = "\n\n".join(thoughts)
            thoughts = []
    return said


def _build_cursor_opening(known: JsonFields, name: str, bubbles: BubblesById) -> SessionEvent:
    told = drop_empty_fields({key: known.get(key) for key in CURSOR_CHAT_KEYS})
    parent = get_nested(known, "subagentInfo", "parentComposerId")
    links = {"model": _find_cursor_model(known, bubbles), "parent_session": get_text(parent)}
    metadata = drop_empty_fields({**links, "cursor": told})
    return SessionEvent(name, None, None, metadata, created_at=parse_bubble_time(known))


def _find_cursor_model(known: JsonFields, bubbles: BubblesById) -> str | None:
    told = [get_nested(each, "modelInfo", "modelName") for each in bubbles.values()]
    return find_first_text((*told[::-1], get_nested(known, "modelConfig", "modelName")))


def _find_cursor_folder(known: JsonFields, bubbles: BubblesById, folder: str | None) -> str | None:
    """Return the folder that was open: as the chat tells, else a bubble, else its workspace."""
    place = get_nested(known, "workspaceIdentifier", "uri", "fsPath")
    told = (get_list(each.get("workspaceUris")) for each in bubbles.values())
    uri = find_first_text((place, *chain.from_iterable(told), folder))
    return unquote(uri.removeprefix("file://")) if uri else None


def _find_cursor_compactions(
    known: JsonFields, said: MessagesByBubble
) -> Iterator[tuple[int, CompactionEvent]]:
    """Yield the summary of the first bubbles, with the number of messages up to their last."""
    told = get_fields(get_nested(known, "latestConversationSummary", "summary"))
    summary, last = get_text(told.get("summary")), told.get("truncationLastBubbleIdInclusive")
    count = 0
    for name, messages in said.items():
        count += len(messages)
        if summary and name == last and count:
            yield count, CompactionEvent(count, summary)
