"""Sessions of Qwen Code: rows much like Claude Code's, with the parts of the Gemini API in them.

Rows name the row before them. The path to the last message is the session; messages taken back
leave it, and are a branch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from ...records import Message
from ...text import JsonFields
from ..disk_buffer import BufferedMapping, DiskBuffer
from ..parser_events import (
    Event,
    NoteEvent,
    SessionEvent,
    drop_empty_fields,
    drop_keys,
    find_first_text,
    find_title,
    get_fields,
    get_list,
    get_text,
    list_omission_notes,
    note_unread_value,
    parse_iso_milliseconds,
    render_titles,
)
from ..source import TranscriptSource
from ..trees import Tree, build_tree_events, find_or_chain_parents
from .parts import (
    join_gemini_thoughts,
    list_gemini_responses,
    parse_gemini_calls,
    parse_gemini_content,
    parse_gemini_response,
)

__all__ = ["is_qwen_code_row", "parse_qwen_code"]

QWEN_MESSAGE_TYPES = ("user", "assistant", "tool_result")
"""Types of rows that the model saw; others are the program's own."""

_QWEN_ROW_KEYS = ("uuid", "parentUuid", "sessionId", "timestamp", "type", "message", "cwd")


def is_qwen_code_row(value: Any) -> bool:
    """Tell whether a JSON value is a row that is this program's alone."""
    fields = get_fields(value)
    if not isinstance(fields.get("sessionId"), str):
        return False
    if fields.get("type") == "system":
        return "systemPayload" in fields
    return fields.get("type") in QWEN_MESSAGE_TYPES and _has_qwen_content(fields)


def parse_qwen_code(source: TranscriptSource) -> Iterator[Event]:
    """Return the session of a file, its branches after it, then the notes."""
    with DiskBuffer() as buffer:
        rows = BufferedMapping(buffer)
        for item in source.values():
            if isinstance(item, NoteEvent):
                yield item
            elif isinstance(item.value, dict) and "type" in item.value:
                rows[get_text(item.value.get("uuid")) or f"row-{len(rows) + 1}"] = item.value
            else:
                yield note_unread_value(item.row, item.value, "no line of a session")
        if rows:
            said = BufferedMapping(buffer)
            waiting: list[JsonFields] = []
            left: Counter[tuple[str, str]] = Counter()
            for name, row in rows.items():
                messages = _parse_qwen_row(name, row)
                _link_qwen_results(messages, waiting)
                if messages:
                    said[name] = messages
                else:
                    left[(str(row["type"]), str(row.get("subtype") or ""))] += 1
            newest = next(reversed(said), None)
            tree = Tree(
                find_or_chain_parents(rows, "parentUuid"), newest, lambda name: said.get(name, [])
            )
            first = (messages[0] for messages in said.values())
            yield from build_tree_events(tree, _build_qwen_opening(rows, source.stem, first))
            yield from list_omission_notes(left, "line")


def _build_qwen_opening(
    rows: BufferedMapping, stem: str, messages: Iterable[Message]
) -> SessionEvent:
    payloads = (get_fields(row.get("systemPayload")) for row in _reverse_rows(rows))
    given = (payload.get("customTitle") for payload in payloads)
    titles = render_titles((*given, find_title(messages)))
    beside = {key: _find_first_field(key, rows.values()) for key in ("version", "gitBranch")}
    model = _find_first_field("model", _reverse_rows(rows))
    metadata = drop_empty_fields({"model": model, "qwen_code": drop_empty_fields(beside)})
    return SessionEvent(
        _find_first_field("sessionId", rows.values()) or stem,
        find_first_text(titles),
        _find_first_field("cwd", rows.values()),
        metadata,
        titles=titles,
    )


def _find_first_field(key: str, rows: Iterable[JsonFields]) -> str | None:
    return find_first_text(row.get(key) for row in rows)


def _reverse_rows(rows: BufferedMapping) -> Iterator[JsonFields]:
    return map(rows.__getitem__, reversed(rows))


def _parse_qwen_row(name: str, row: JsonFields) -> list[Message]:
    """Return the messages of a row; the first has its id, and what else the row says."""
    if row["type"] not in QWEN_MESSAGE_TYPES or not _has_qwen_content(row):
        return []
    parts = get_list(get_fields(row.get("message")).get("parts"))
    if row["type"] == "assistant":
        more = {
            "tool_calls": parse_gemini_calls(parts, name),
            "reasoning_content": join_gemini_thoughts(parts),
        }
        messages = [
            (
                {"role": "assistant", "content": parse_gemini_content(parts)}
                | drop_empty_fields(more)
            )
        ]
    else:
        content = parse_gemini_content(parts)
        messages = [
            *_parse_qwen_results(row, parts),
            *([] if content is None else [{"role": "user", "content": content}]),
        ]
    for number, message in enumerate(messages, 1):
        message["id"] = name if number == 1 else f"{name}-{number}"
        moment = parse_iso_milliseconds(row.get("timestamp"))
        message.update({} if moment is None else {"timestamp": moment})
    for message in messages[:1]:
        message["qwen_code"] = drop_empty_fields(drop_keys(row, *_QWEN_ROW_KEYS))
    return messages


def _has_qwen_content(row: JsonFields) -> bool:
    return "parts" in get_fields(row.get("message")) or "toolCallResult" in row


def _parse_qwen_results(row: JsonFields, parts: list[Any]) -> list[Message]:
    """Return the results that a row tells; where its parts do not, the program's own copy."""
    results = list(map(parse_gemini_response, list_gemini_responses(parts)))
    told = get_fields(row.get("toolCallResult"))
    if told and not parts:
        said = find_first_text(told.get(key) for key in ("result", "resultDisplay"))
        call, tool = map(get_text, map(told.get, ("callId", "name")))
        results = [
            (
                {"role": "tool", "content": said}
                | drop_empty_fields({"tool_call_id": call, "name": tool})
            )
        ]
    if told.get("status") in ("error", "cancelled"):
        results = [result | {"messageStatus": "error"} for result in results]
    return results


def _link_qwen_results(messages: list[Message], waiting: list[JsonFields]) -> None:
    """Let results without an id answer the first open call of their name, of those that wait."""
    for message in messages:
        waiting += message.get("tool_calls", [])
        if message["role"] == "tool":
            answered = (
                call
                for call in waiting
                if (
                    message["tool_call_id"] == call["id"]
                    if "tool_call_id" in message
                    else message.get("name") == call["function"]["name"]
                )
            )
            call = next(answered, None)
            if call:
                waiting.remove(call)
                message["tool_call_id"] = call["id"]
