"""Gemini's activity as Google Takeout exports it: a record for each question, with its answer.

The export does not tell which questions belong together, but by an address of a conversation, which
few records have; any other record is a session of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import groupby
from typing import Any

from ..text import JsonFields
from .conversations import GatheredSession, build_chat_message, join_content
from .parser_events import (
    Event,
    NoteEvent,
    SessionMessage,
    drop_empty_fields,
    drop_keys,
    get_fields,
    get_objects,
    get_text,
    note_omission,
    note_unread_value,
    parse_iso_milliseconds,
)
from .source import TranscriptSource

__all__ = ["is_takeout_activity", "parse_gemini_takeout"]

PROMPT_BEGINNING = re.compile(r"(?:Prompted|Asked:?|Said)\s+")
CONVERSATION_ADDRESS = re.compile(r"https://gemini\.google\.com/(?:app|gem/[^/]+)/(\w+)")
LINE_TAGS = {"br": "\n", "p": "\n\n", "pre": "\n\n", "ul": "\n\n", "ol": "\n\n", "div": "\n"}
LINE_TAGS |= {f"h{level}": f"\n\n{'#' * level} " for level in range(1, 7)}
LINE_TAGS |= {"li": "\n- ", "tr": "\n", "td": " | ", "th": " | ", "table": "\n\n"}
"""Tag → its replacement in a text."""
MARK_TAGS = {"b": "**", "strong": "**", "em": "*", "i": "*", "code": "`"}

_RECORD_KEYS = (
    *("header", "title", "titleUrl", "time", "products", "safeHtmlItem"),
    "activityControls",
)


def is_takeout_record(value: Any) -> bool:
    """Tell whether a value is a record of an activity of Gemini."""
    fields = get_fields(value)
    header = get_text(fields.get("header")) or ""
    return header.startswith(("Gemini", "Bard")) and {"title", "time"} <= fields.keys()


def is_takeout_activity(value: Any) -> bool:
    """Tell whether a value is such records, or one."""
    return is_takeout_record(value[0] if isinstance(value, list) and value else value)


def parse_gemini_takeout(source: TranscriptSource) -> Iterator[Event]:
    """Yield a session for each conversation, and the notes."""
    records: list[JsonFields] = []
    silent = 0
    for item in source.items():
        if isinstance(item, NoteEvent):
            yield item
        elif not is_takeout_record(item.value):
            yield note_unread_value(item.row, item.value, "no record of Gemini's")
        elif not get_objects(item.value.get("safeHtmlItem")):
            silent += 1
        else:
            records.append(item.value)
    records.sort(key=lambda record: (_name_conversation(record), str(record["time"])))
    for name, group in groupby(records, key=_name_conversation):
        said = [message for record in group for message in _list_record_messages(record)]
        yield from GatheredSession("gemini_takeout", name, said).events()
    if silent:
        yield note_omission(silent, "record", " of what was done without an answer")


def _name_conversation(record: JsonFields) -> str:
    found = CONVERSATION_ADDRESS.match(get_text(record.get("titleUrl")) or "")
    return f"gemini-{found[1]}" if found else f"gemini-{record['time']}"


def _list_record_messages(record: JsonFields) -> Iterator[SessionMessage]:
    moment = parse_iso_milliseconds(record["time"])
    asked = PROMPT_BEGINNING.sub("", get_text(record["title"]) or "", count=1)
    texts = [get_text(each.get("html")) or "" for each in get_objects(record["safeHtmlItem"])]
    extra = drop_empty_fields(drop_keys(record, *_RECORD_KEYS))
    name = f"record-{record['time']}"
    told = {"timestamp": moment, "gemini_takeout": extra}
    yield SessionMessage(build_chat_message("user", asked, id=name, **told))
    answer = join_content([render_html_as_text(text) for text in texts])
    yield SessionMessage(
        build_chat_message("assistant", answer, id=f"{name}-answer", timestamp=moment)
    )


def render_html_as_text(html: str) -> str:
    """Return HTML as text: paragraphs, lists, emphasis and code as Markdown has them."""
    writer = _TextWriter()
    writer.feed(html)
    writer.close()
    return re.sub(r"\n{3,}", "\n\n", "".join(writer.pieces)).strip()


class _TextWriter(HTMLParser):
    """Write the texts of HTML, with signs instead of tags."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[str] = []
        self._is_code = False

    def handle_starttag(self, tag: str, _: object) -> None:
        """Write what begins."""
        self._write_tag(tag, begins=True)

    def handle_endtag(self, tag: str) -> None:
        """Write what ends."""
        self._write_tag(tag, begins=False)

    def handle_data(self, data: str) -> None:
        """Write a text; white space counts in code alone."""
        self.pieces.append(data if self._is_code else re.sub(r"\s+", " ", data))

    def _write_tag(self, tag: str, *, begins: bool) -> None:
        if tag == "pre":
            self._is_code = begins
            self.pieces.append("\n\n```\n" if begins else "\n```\n\n")
        elif tag in MARK_TAGS and not self._is_code:
            self.pieces.append(MARK_TAGS[tag])
        elif begins or tag in ("p", "ul", "ol", "table") or tag[:1] == "h":
            self.pieces.append(LINE_TAGS.get(tag, "") if begins else "\n\n")
