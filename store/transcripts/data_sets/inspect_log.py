"""Logs of Inspect: each sample of an evaluation is a session.

A log is a document, or an archive (``.eval``) of its head and a document for each sample. Texts
that are said often stand once, as attachments; they are put where they belong.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...errors import LimitExceeded
from ...records import Message
from ...text import JsonFields
from ..parser_events import (
    Event,
    NoteEvent,
    SessionEvent,
    SessionMessage,
    SessionNames,
    build_chat_call,
    build_text_part,
    drop_empty_fields,
    drop_keys,
    find_first_text,
    find_title,
    get_fields,
    get_list,
    get_nested,
    get_objects,
    get_text,
    join_texts,
    note_unread_value,
    simplify_content,
    split_metadata,
)
from ..source import TranscriptSource

__all__ = ["is_inspect_log", "parse_inspect_log"]

ATTACHMENT_PREFIX = "attachment://"
ATTACHMENT_GROWTH = 4
"""So many times what its attachments hold a sample may be with each of them in its places: a short
file could else name a long text a thousand times.
"""
MIN_ATTACHMENT_LENGTH = 16 * 1024 * 1024
"""Code points that they may make in any case."""

INSPECT_KEY = "inspect"

OMITTED_SAMPLE_KEYS = (
    "messages",
    "events",
    "transcript",
    "attachments",
    "output",
    "store",
    "id",
    "uuid",
)
"""Keys of a sample that repeat its messages, or hold what only its tools knew."""

INSPECT_USAGE_KEYS = ("usage", "model")

_INSPECT_MESSAGE_KEYS = ("id", "role", "content", "tool_calls", "tool_call_id", "error", "function")


def is_inspect_log(value: Any) -> bool:
    """Tell whether a JSON value is a log, its head, or a sample of one."""
    fields = get_fields(value)
    is_log = isinstance(fields.get("eval"), dict) and "status" in fields
    return is_log or _is_inspect_sample(fields)


def _is_inspect_sample(value: Any) -> bool:
    fields = get_fields(value)
    is_one = {"epoch", "target"} <= fields.keys()
    return is_one and isinstance(fields.get("messages"), list)


def parse_inspect_log(source: TranscriptSource) -> Iterator[Event]:
    """Return a session for each sample; a head applies to the samples after it."""
    names = SessionNames(source.stem)
    head: JsonFields = {}
    for item in source.values():
        if isinstance(item, NoteEvent):
            yield item
            continue
        head = get_fields(get_fields(item.value).get("eval")) or head
        is_one = _is_inspect_sample(item.value)
        samples = [item.value] if is_one else get_list(get_fields(item.value).get("samples"))
        for sample in samples:
            if _is_inspect_sample(sample):
                yield from _parse_inspect_sample(sample, head, names)
            else:
                yield note_unread_value(item.row, sample, "no sample")


def _parse_inspect_sample(
    sample: JsonFields, head: JsonFields, names: SessionNames
) -> Iterator[Event]:
    spent = dict(_list_inspect_usages(sample))
    texts = _Attachments(sample)
    told = (texts.put_into(each) for each in get_objects(sample["messages"]) if "role" in each)
    messages = [_parse_inspect_message(each, spent) for each in told]
    run = find_first_text((head.get("run_id"), head.get("eval_id"))) or names.stem
    name = f"{run}-{sample.get('id')!s:.80}-{sample['epoch']}"
    metadata, notes = split_metadata(drop_empty_fields(drop_keys(sample, *OMITTED_SAMPLE_KEYS)))
    links = {"model": head.get("model"), "task": head.get("task")}
    links, more = split_metadata(drop_empty_fields(links))
    name = names.name(get_text(sample.get("uuid")) or name)
    yield SessionEvent(name, find_title(messages), None, links | {INSPECT_KEY: metadata})
    yield from map(SessionMessage, messages)
    yield from (*more, *notes)


def _list_inspect_usages(sample: JsonFields) -> Iterator[tuple[str | None, JsonFields]]:
    """Yield what each answer cost, under its id, as the events of a sample tell."""
    for event in get_objects(sample.get("events")):
        output = get_fields(event.get("output"))
        usage: JsonFields = {key: output[key] for key in INSPECT_USAGE_KEYS if key in output}
        for choice in get_objects(output.get("choices")):
            yield get_text(get_nested(choice, "message", "id")), usage


class _Attachments:
    """The texts that a sample names, and how much may be made of them."""

    def __init__(self, sample: JsonFields) -> None:
        self._texts = get_fields(sample.get("attachments"))
        size = sum(len(text) for text in self._texts.values() if isinstance(text, str))
        self._room = self._allowed = max(MIN_ATTACHMENT_LENGTH, ATTACHMENT_GROWTH * size)
        self._name = f"{sample.get('id')!s:.80}"

    def put_into(self, value: Any) -> Any:
        """Return a value with the texts that it names in place of their names.

        Raises LimitExceeded where they become too much.
        """
        if isinstance(value, dict):
            return {key: self.put_into(held) for key, held in value.items()}
        if isinstance(value, list):
            return [self.put_into(held) for held in value]
        if not isinstance(value, str) or not value.startswith(ATTACHMENT_PREFIX):
            return value
        text = get_text(self._texts.get(value.removeprefix(ATTACHMENT_PREFIX)))
        self._room -= len(text or "")
        if self._room < 0:
            told = f"the attachments of sample {self._name!r} take more where they are named"
            raise LimitExceeded("the size of what they hold", self._allowed, told)
        return text or value


def _parse_inspect_message(told: JsonFields, spent: dict[Any, JsonFields]) -> Message:
    content = told.get("content")
    if isinstance(content, str):
        parts = [build_text_part(content)] if content else []
    else:
        parts = get_objects(content)
    thoughts = [part for part in parts if part.get("type") == "reasoning"]
    said = simplify_content([_parse_inspect_part(part) for part in parts if part not in thoughts])
    failed = get_fields(told.get("error"))
    message: Message = {"role": told["role"], "content": said}
    if told["role"] != "assistant":
        message["content"] = said or get_text(failed.get("message")) or ""
    extra = spent.get(get_text(told.get("id")), {}) | drop_keys(told, *_INSPECT_MESSAGE_KEYS)
    more = {
        "reasoning_content": join_texts(
            get_text(part.get("reasoning")) or part.get("summary") for part in thoughts
        ),
        "tool_calls": [
            build_chat_call(call.get("id"), call.get("function"), call.get("arguments"))
            for call in get_objects(told.get("tool_calls"))
        ],
        "tool_call_id": get_text(told.get("tool_call_id")),
        "name": get_text(told.get("function")),
        "messageStatus": "error" if failed else None,
        "id": get_text(told.get("id")),
        INSPECT_KEY: drop_empty_fields({**extra, "error": failed}),
    }
    return message | drop_empty_fields(more)


def _parse_inspect_part(part: JsonFields) -> JsonFields:
    match part:
        case {"type": "text", "text": str(text)}:
            return build_text_part(text)
        case {"type": "image", "image": str(url)}:
            return {
                "type": "image_url",
                "image_url": {"url": url}
                | drop_empty_fields({"detail": get_text(part.get("detail"))}),
            }
    return part
