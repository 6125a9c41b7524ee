"""Sessions of Claude Code on the web: an object that holds the rows of a session as ``loglines``.

Such rows may lack what ties those of a file together: the session, their ids, the rows above them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...text import JsonFields
from ..parser_events import NoteEvent, drop_keys, find_first_text, get_fields, get_list, get_text
from ..source import SourceValue, TranscriptSource
from .rows import CONVERSATION_ROW_TYPES

_WEB_ROW_KEYS = ("session_id", "usage")


def has_loglines(value: Any) -> bool:
    """Tell whether a JSON value is such a session, with a row of the conversation."""
    rows = map(get_fields, get_list(get_fields(value).get("loglines")))
    return any(row.get("type") in CONVERSATION_ROW_TYPES and "message" in row for row in rows)


def list_session_values(source: TranscriptSource) -> Iterator[SourceValue | NoteEvent]:
    """Yield the values of a file, rows in place of an object that holds them."""
    for item in source.values():
        if isinstance(item, NoteEvent) or not has_loglines(item.value):
            yield item
            continue
        told = get_fields(item.value)
        names = (told.get("session_id"), told.get("id"))
        name = find_first_text(names) or source.stem
        before: str | None = None
        for number, row in enumerate(told["loglines"], 1):
            tied = _tie_row(row, name, f"line-{number}", before) if isinstance(row, dict) else row
            before = get_text(get_fields(tied).get("uuid")) or before
            yield SourceValue(None, tied)


def _tie_row(row: JsonFields, name: str, uuid: str, before: str | None) -> JsonFields:
    """Return a row with a session and an id, and with its cost where a file has it."""
    place = {} if row.get("uuid") else {"uuid": uuid, "parentUuid": before}
    session = find_first_text((row.get("sessionId"), row.get("session_id"), name))
    tied = {**drop_keys(row, *_WEB_ROW_KEYS), "sessionId": session, **place}
    message = get_fields(row.get("message"))
    if message and "usage" in row:
        tied["message"] = {"usage": row["usage"], **message}
    return tied
