"""Chats of Cursor's command: ``store.db``, in which each message is a blob of JSON.

The blobs that are no JSON are the program's graph of turns, which says nothing more.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..text import JsonFields
from .conversations import GatheredSession, load_side_file, round_milliseconds
from .database import Layout, SqliteConnection, parse_json_cell
from .parser_events import (
    Event,
    NoteEvent,
    SessionMessage,
    drop_empty_fields,
    drop_keys,
    find_first_text,
    get_fields,
    get_list,
    get_nested,
    get_text,
)
from .source import TranscriptSource
from .vercel_parts import is_vercel_message, parse_vercel_message

__all__ = ["CURSOR_CLI_LAYOUT", "is_cursor_cli_chat", "parse_cursor_cli"]

SELECT_BLOBS = "SELECT data FROM blobs ORDER BY rowid"
SELECT_AGENT = "SELECT value FROM meta WHERE key = '0'"

_BLOB_KEYS = ("role", "content", "createdAt", "id")
_AGENT_KEYS = ("agentId", "name", "createdAt", "workspacePath", "lastUsedModel", "latestRootBlobId")


def _load_cursor_cli_chat(rows: SqliteConnection) -> Iterator[Any]:
    blobs = (parse_json_cell(row[0]) for row in rows.execute(SELECT_BLOBS))
    agent = next((row[0] for row in rows.execute(SELECT_AGENT)), None)
    yield {"cursor_agent": _decode_agent(agent), "blobs": list(filter(get_fields, blobs))}


def _decode_agent(cell: object) -> JsonFields:
    """Return the record of a chat, which is JSON, in most versions as hexadecimal digits."""
    told = parse_json_cell(cell)
    if not isinstance(told, dict) and isinstance(cell, str):
        try:
            told = parse_json_cell(bytes.fromhex(cell))
        except ValueError:
            return {}
    return get_fields(told)


CURSOR_CLI_LAYOUT = Layout(
    frozenset({"blobs.id", "blobs.data", "meta.key", "meta.value"}), _load_cursor_cli_chat
)
"""How the database of a chat is laid out."""


def is_cursor_cli_chat(value: Any) -> bool:
    """Tell whether a value is a chat of a database."""
    return {"cursor_agent", "blobs"} <= get_fields(value).keys()


def parse_cursor_cli(source: TranscriptSource) -> Iterator[Event]:
    """Yield the session of a database."""
    folder = source.path.absolute().parent
    beside = load_side_file(folder / "meta.json") if source.path.stem == "store" else {}
    for item in source.values():
        if isinstance(item, NoteEvent):
            yield item
            continue
        stem = folder.name if source.path.stem == "store" else source.stem
        yield from _open_chat(get_fields(item.value), beside, stem).events()


def _open_chat(chat: JsonFields, beside: JsonFields, stem: str) -> GatheredSession:
    agent, blobs = get_fields(chat.get("cursor_agent")), get_list(chat.get("blobs"))
    moments = (beside.get("createdAtMs"), agent.get("createdAt"))
    return GatheredSession(
        "cursor_cli",
        get_text(agent.get("agentId")) or stem,
        list(_list_blob_messages(blobs)),
        titles=(beside.get("title"), agent.get("name")),
        root=agent.get("workspacePath"),
        model=_find_last_model(blobs) or agent.get("lastUsedModel"),
        created=next(filter(None, map(round_milliseconds, moments)), None),
        told=drop_keys(agent, *_AGENT_KEYS),
    )


def _find_last_model(blobs: list[Any]) -> str | None:
    told = (get_nested(blob, "providerOptions", "cursor", "modelName") for blob in reversed(blobs))
    return find_first_text(told)


def _list_blob_messages(blobs: list[Any]) -> Iterator[SessionMessage]:
    """Yield what the blobs say; one that stands for no message is of the graph of turns."""
    for number, blob in enumerate(blobs, 1):
        if not is_vercel_message(blob):
            continue
        name = f"blob-{number}"
        moment = round_milliseconds(blob.get("createdAt"))
        extra = drop_empty_fields(drop_keys(blob, *_BLOB_KEYS))
        for place, message in enumerate(parse_vercel_message(blob, name), 1):
            told = {
                "id": name if place == 1 else f"{name}-{place}",
                "timestamp": moment,
                "cursor_cli": extra if place == 1 else {},
            }
            yield SessionMessage(message | drop_empty_fields(told))
