"""Translate records of Kiro's newer sessions to messages: texts, thoughts, calls and results.

A record has its content under ``payload``. An answer is several records: its thoughts, its text,
and a record for each of its calls; they become one message. The other fields of a record are kept
under one extra key, ``kiro``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from ...messages import Message
from ...text import Fields
from ..events import (
    call_of,
    fields_of,
    iso_milliseconds,
    joined,
    objects_of,
    telling,
    text_of,
    without,
)

SPOKEN = ("user", "assistant", "tool_call", "tool_result")
"""Types of records that make up a chat."""

STATES = (
    *("session_start", "session_event", "session_metadata", "turn_start", "turn_end"),
    *("pending_interaction", "interaction_resolved", "usage_summary", "tombstone"),
    *("sub_agent_start", "sub_agent_complete", "mode_change", "tool_revert", "error"),
)
"""Types of records about the actions of the program."""

THOUGHT, SUMMARY = "Reasoning", "Summary"
"""Operations of an answer that are not speech: the thoughts of a model, and a summary."""

FAILED = ("error", "failed", "failure")
"""States of a call that failed."""

_SAID = ("type", "content", "toolCallId", "toolName", "args", "status", "success", "operationType")


def is_record(value: object) -> bool:
    """Tell whether a JSON value is a record of such a session."""
    fields = fields_of(value)
    return "type" not in fields and type_of(fields) in (*SPOKEN, *STATES)


def type_of(record: Fields) -> str | None:
    """Return the type of a record."""
    return text_of(_payload(record).get("type"))


def is_summary(record: Fields) -> bool:
    """Tell whether a record is the summary of a compaction of all records before it."""
    return _payload(record).get("operationType") == SUMMARY


def taken_back_from(record: Fields) -> str | None:
    """Return the id of the first message that a record takes back, None if it takes back none.

    The records after a summary's tombstone stay; the summary hides them.
    """
    told = _payload(record)
    if told.get("type") != "tombstone" or told.get("kind") == "summarization":
        return None
    return text_of(told.get("effectiveFromMessageId"))


def text_in(record: Fields) -> str:
    """Return the text of a record."""
    content = _payload(record).get("content")
    if isinstance(content, str):
        return content
    parts = objects_of(content) or objects_of([content])
    return joined((part.get("text") for part in parts), "\n")


def messages_in(records: Iterable[Fields]) -> Iterator[Message]:
    """Yield the messages of records: one for each answer; a repeated call counts once."""
    answer: Message | None = None
    called: set[str] = set()
    for record in records:
        kind = type_of(record)
        if kind in ("user", "tool_result"):
            yield from filter(None, [answer])
            yield (
                {"role": "user", "content": text_in(record), **_told(record)}
                if kind == "user"
                else _returned(record)
            )
            answer = None
        elif kind == "assistant":
            if answer and "tool_calls" in answer:
                yield answer
                answer = None
            answer = _with_words(answer or _begun(record), record)
        elif kind == "tool_call" and _is_new(record, called):
            answer = answer or _begun(record)
            answer.setdefault("tool_calls", []).append(_call(_payload(record)))
    yield from filter(None, [answer])


def _payload(record: Fields) -> Fields:
    return fields_of(record.get("payload"))


def _begun(record: Fields) -> Message:
    return {"role": "assistant", "content": None, **_told(record)}


def _with_words(answer: Message, record: Fields) -> Message:
    key = "content"
    if _payload(record).get("operationType") == THOUGHT:
        key = "reasoning_content"
    answer[key] = joined((answer.get(key), text_in(record))) or None
    return answer


def _is_new(record: Fields, called: set[str]) -> bool:
    """Note a call; the program writes it again when the call is allowed or has ended."""
    name = text_of(_payload(record).get("toolCallId"))
    is_known = name in called
    called.update(filter(None, [name]))
    return not is_known


def _call(told: Fields) -> Fields:
    return call_of(told.get("toolCallId"), told.get("toolName"), told.get("args"))


def _returned(record: Fields) -> Message:
    told = _payload(record)
    said = text_in(record)
    if not said and told.get("content"):
        said = json.dumps(told["content"], ensure_ascii=False)
    message: Message = {"role": "tool", "content": said, "tool_call_id": told.get("toolCallId")}
    is_failed = told.get("success") is False or told.get("status") in FAILED
    failed = {"messageStatus": "error" if is_failed else None}
    return message | telling(failed) | _told(record)


def _told(record: Fields) -> Fields:
    """Return the id and the time of a record, and its fields other than its content."""
    extra = telling(without(_payload(record), *_SAID))
    moment = iso_milliseconds(record.get("timestamp"))
    return telling({"id": record.get("id"), "timestamp": moment, "kiro": extra})
