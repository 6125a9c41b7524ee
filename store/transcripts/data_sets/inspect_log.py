"""Logs of Inspect: each sample of an evaluation is a session.

A log is a document, or an archive (``.eval``) of its head and a document for each sample. Texts
that are said often stand once, as attachments; they are put where they belong.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...errors import LimitExceeded
from ...messages import Message
from ...text import Fields
from ..events import (
    Event,
    Noted,
    Opened,
    Said,
    SessionNames,
    call_of,
    fields_of,
    first_text,
    joined,
    list_of,
    objects_of,
    simplest_content,
    split_metadata,
    telling,
    text_of,
    text_part,
    title_of,
    unread,
    within,
    without,
)
from ..source import Source

ATTACHED = "attachment://"
TIMES = 4
"""So many times what its attachments hold a sample may be with each of them in its places: a short
file could else name a long text a thousand times.
"""
LEAST = 16 * 1024 * 1024
"""Code points that they may make in any case."""

KEY = "inspect"

LEFT_OUT = ("messages", "events", "transcript", "attachments", "output", "store", "id", "uuid")
"""Keys of a sample that repeat its messages, or hold what only its tools knew."""

SPENT = ("usage", "model")

_SAID = ("id", "role", "content", "tool_calls", "tool_call_id", "error", "function")


def looks(value: Any) -> bool:
    """Tell whether a JSON value is a log, its head, or a sample of one."""
    fields = fields_of(value)
    is_log = isinstance(fields.get("eval"), dict) and "status" in fields
    return is_log or _is_sample(fields)


def _is_sample(value: Any) -> bool:
    fields = fields_of(value)
    is_one = {"epoch", "target"} <= fields.keys()
    return is_one and isinstance(fields.get("messages"), list)


def parse(source: Source) -> Iterator[Event]:
    """Return a session for each sample; a head applies to the samples after it."""
    names = SessionNames(source.stem)
    head: Fields = {}
    for item in source.values():
        if isinstance(item, Noted):
            yield item
            continue
        head = fields_of(fields_of(item.value).get("eval")) or head
        is_one = _is_sample(item.value)
        samples = [item.value] if is_one else list_of(fields_of(item.value).get("samples"))
        for sample in samples:
            if _is_sample(sample):
                yield from _session(sample, head, names)
            else:
                yield unread(item.row, sample, "no sample")


def _session(sample: Fields, head: Fields, names: SessionNames) -> Iterator[Event]:
    spent = dict(_spent(sample))
    texts = _Attachments(sample)
    told = (texts.put_into(each) for each in objects_of(sample["messages"]) if "role" in each)
    messages = [_message(each, spent) for each in told]
    run = first_text((head.get("run_id"), head.get("eval_id"))) or names.stem
    name = f"{run}-{sample.get('id')!s:.80}-{sample['epoch']}"
    metadata, notes = split_metadata(telling(without(sample, *LEFT_OUT)))
    links = {"model": head.get("model"), "task": head.get("task")}
    links, more = split_metadata(telling(links))
    name = names.name(text_of(sample.get("uuid")) or name)
    yield Opened(name, title_of(messages), None, links | {KEY: metadata})
    yield from map(Said, messages)
    yield from (*more, *notes)


def _spent(sample: Fields) -> Iterator[tuple[str | None, Fields]]:
    """Yield what each answer cost, under its id, as the events of a sample tell."""
    for event in objects_of(sample.get("events")):
        output = fields_of(event.get("output"))
        usage: Fields = {key: output[key] for key in SPENT if key in output}
        for choice in objects_of(output.get("choices")):
            yield text_of(within(choice, "message", "id")), usage


class _Attachments:
    """The texts that a sample names, and how much may be made of them."""

    def __init__(self, sample: Fields) -> None:
        self._texts = fields_of(sample.get("attachments"))
        size = sum(len(text) for text in self._texts.values() if isinstance(text, str))
        self._room = self._allowed = max(LEAST, TIMES * size)
        self._name = f"{sample.get('id')!s:.80}"

    def put_into(self, value: Any) -> Any:
        """Return a value with the texts that it names in place of their names.

        Raises LimitExceeded where they become too much.
        """
        if isinstance(value, dict):
            return {key: self.put_into(held) for key, held in value.items()}
        if isinstance(value, list):
            return [self.put_into(held) for held in value]
        if not isinstance(value, str) or not value.startswith(ATTACHED):
            return value
        text = text_of(self._texts.get(value.removeprefix(ATTACHED)))
        self._room -= len(text or "")
        if self._room < 0:
            told = f"the attachments of sample {self._name!r} take more where they are named"
            raise LimitExceeded("the size of what they hold", self._allowed, told)
        return text or value


def _message(told: Fields, spent: dict[Any, Fields]) -> Message:
    parts = _parts(told.get("content"))
    thoughts = [part for part in parts if part.get("type") == "reasoning"]
    said = simplest_content([_part(part) for part in parts if part not in thoughts])
    failed = fields_of(told.get("error"))
    message: Message = {"role": told["role"], "content": said}
    if told["role"] != "assistant":
        message["content"] = said or text_of(failed.get("message")) or ""
    extra = spent.get(text_of(told.get("id")), {}) | without(told, *_SAID)
    more = {
        "reasoning_content": joined(map(_thought, thoughts)),
        "tool_calls": list(map(_call, objects_of(told.get("tool_calls")))),
        "tool_call_id": text_of(told.get("tool_call_id")),
        "name": text_of(told.get("function")),
        "messageStatus": "error" if failed else None,
        "id": text_of(told.get("id")),
        KEY: telling({**extra, "error": failed}),
    }
    return message | telling(more)


def _thought(part: Fields) -> str | None:
    return first_text((part.get("reasoning"), part.get("summary")))


def _parts(content: Any) -> list[Fields]:
    """Return a content as parts: a text, or a list of them."""
    if isinstance(content, str):
        return [text_part(content)] if content else []
    return objects_of(content)


def _part(part: Fields) -> Fields:
    match part:
        case {"type": "text", "text": str(text)}:
            return text_part(text)
        case {"type": "image", "image": str(url)}:
            return {
                "type": "image_url",
                "image_url": {"url": url} | telling({"detail": text_of(part.get("detail"))}),
            }
    return part


def _call(told: Fields) -> Fields:
    return call_of(told.get("id"), told.get("function"), told.get("arguments"))
