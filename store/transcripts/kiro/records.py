"""Translate records of Kiro's newer sessions to messages: texts, thoughts, calls and results.

A record has its content under ``payload``. An answer is several records: its thoughts, its text,
and a record for each of its calls; they become one message. The other fields of a record are kept
under one extra key, ``kiro``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from ...records import Message
from ...text import JsonFields
from ..parser_events import (
    build_chat_call,
    drop_empty_fields,
    drop_keys,
    get_fields,
    get_objects,
    get_text,
    join_texts,
    parse_iso_milliseconds,
)

KIRO_MESSAGE_TYPES = ("user", "assistant", "tool_call", "tool_result")
"""Types of records that make up a chat."""

KIRO_STATE_TYPES = (
    *("session_start", "session_event", "session_metadata", "turn_start", "turn_end"),
    *("pending_interaction", "interaction_resolved", "usage_summary", "tombstone"),
    *("sub_agent_start", "sub_agent_complete", "mode_change", "tool_revert", "error"),
)
"""Types of records about the actions of the program."""

THOUGHT, SUMMARY = "Reasoning", "Summary"
"""Operations of an answer that are not speech: the thoughts of a model, and a summary."""

FAILED_KIRO_STATES = ("error", "failed", "failure")
"""States of a call that failed."""

_KIRO_RECORD_KEYS = (
    "type",
    "content",
    "toolCallId",
    "toolName",
    "args",
    "status",
    "success",
    "operationType",
)


def is_kiro_record(value: object) -> bool:
    """Tell whether a JSON value is a record of such a session."""
    fields = get_fields(value)
    return "type" not in fields and find_record_type(fields) in (
        *KIRO_MESSAGE_TYPES,
        *KIRO_STATE_TYPES,
    )


def find_record_type(record: JsonFields) -> str | None:
    """Return the type of a record."""
    return get_text(_get_record_payload(record).get("type"))


def is_kiro_summary(record: JsonFields) -> bool:
    """Tell whether a record is the summary of a compaction of all records before it."""
    return _get_record_payload(record).get("operationType") == SUMMARY


def find_rewind_start(record: JsonFields) -> str | None:
    """Return the id of the first message that a record takes back, None if it takes back none.

    The records after a summary's tombstone stay; the summary hides them.
    """
    told = _get_record_payload(record)
    if told.get("type") != "tombstone" or told.get("kind") == "summarization":
        return None
    return get_text(told.get("effectiveFromMessageId"))


def join_record_texts(record: JsonFields) -> str:
    """Return the text of a record."""
    content = _get_record_payload(record).get("content")
    if isinstance(content, str):
        return content
    parts = get_objects(content) or get_objects([content])
    return join_texts((part.get("text") for part in parts), "\n")


def parse_kiro_record_messages(records: Iterable[JsonFields]) -> Iterator[Message]:
    """Yield the messages of records: one for each answer; a repeated call counts once."""
    answer: Message | None = None
    called: set[str] = set()
    for record in records:
        kind = find_record_type(record)
        if kind in ("user", "tool_result"):
            yield from filter(None, [answer])
            yield (
                {
                    "role": "user",
                    "content": join_record_texts(record),
                    **_collect_record_fields(record),
                }
                if kind == "user"
                else _parse_kiro_record_result(record)
            )
            answer = None
        elif kind == "assistant":
            if answer and "tool_calls" in answer:
                yield answer
                answer = None
            answer = _add_answer_text(answer or _build_empty_answer(record), record)
        elif kind == "tool_call" and _is_new_kiro_call(record, called):
            answer = answer or _build_empty_answer(record)
            told = _get_record_payload(record)
            answer.setdefault("tool_calls", []).append(
                build_chat_call(told.get("toolCallId"), told.get("toolName"), told.get("args"))
            )
    yield from filter(None, [answer])


def _get_record_payload(record: JsonFields) -> JsonFields:
    return get_fields(record.get("payload"))


def _build_empty_answer(record: JsonFields) -> Message:
    return {"role": "assistant", "content": None, **_collect_record_fields(record)}


def _add_answer_text(answer: Message, record: JsonFields) -> Message:
    key = "content"
    if _get_record_payload(record).get("operationType") == THOUGHT:
        key = "reasoning_content"
    answer[key] = join_texts((answer.get(key), join_record_texts(record))) or None
    return answer


def _is_new_kiro_call(record: JsonFields, called: set[str]) -> bool:
    """Note a call; the program writes it again when the call is allowed or has ended."""
    name = get_text(_get_record_payload(record).get("toolCallId"))
    is_known = name in called
    called.update(filter(None, [name]))
    return not is_known


def _parse_kiro_record_result(record: JsonFields) -> Message:
    told = _get_record_payload(record)
    said = join_record_texts(record)
    if not said and told.get("content"):
        said = json.dumps(told["content"], ensure_ascii=False)
    message: Message = {"role": "tool", "content": said, "tool_call_id": told.get("toolCallId")}
    is_failed = told.get("success") is False or told.get("status") in FAILED_KIRO_STATES
    failed = {"messageStatus": "error" if is_failed else None}
    return message | drop_empty_fields(failed) | _collect_record_fields(record)


def _collect_record_fields(record: JsonFields) -> JsonFields:
    """Return the id and the time of a record, and its fields other than its content."""
    extra = drop_empty_fields(drop_keys(_get_record_payload(record), *_KIRO_RECORD_KEYS))
    moment = parse_iso_milliseconds(record.get("timestamp"))
    return drop_empty_fields({"id": record.get("id"), "timestamp": moment, "kiro": extra})
