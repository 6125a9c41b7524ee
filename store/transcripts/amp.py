"""Threads of Amp: one document each, its messages in blocks much like those of Anthropic's API."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..records import Message
from ..text import JsonFields
from .blocks import build_assistant_message, build_user_messages, parse_blocks
from .conversations import GatheredSession, build_result_message, round_milliseconds
from .parser_events import (
    Event,
    SessionMessage,
    SessionNames,
    drop_empty_fields,
    drop_keys,
    find_first_text,
    get_fields,
    get_nested,
    get_objects,
    get_text,
    join_texts,
    note_unread_value,
    parse_iso_milliseconds,
    parse_mime_part,
)
from .source import SourceValue, for_each_conversation
from .usages import TokenKeys, build_request_usage

__all__ = ["is_amp_thread", "parse_amp"]

AMP_TOKENS = TokenKeys(
    "inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens"
)
AMP_ROLES = ("user", "assistant")
ENDED_RUNS = {"done": False, "error": True, "cancelled": True, "rejected-by-user": True}
"""State of a call that has ended → whether it failed."""
_AMP_MESSAGE_KEYS = ("role", "messageId", "content", "usage", "meta")
_AMP_THREAD_KEYS = ("v", "id", "created", "title", "messages", "env", "nextMessageId", "~debug")


def is_amp_thread(value: Any) -> bool:
    """Tell whether a value is a thread."""
    fields = get_fields(value)
    name = get_text(fields.get("id")) or ""
    return name.startswith("T-") and isinstance(fields.get("messages"), list)


@for_each_conversation(is_amp_thread, "thread of Amp")
def parse_amp(item: SourceValue, names: SessionNames) -> Iterator[Event]:
    """Yield the session of a thread, and the notes."""
    thread = item.value
    said: list[SessionMessage] = []
    held = list(map(get_fields, thread["messages"]))
    for number, told in enumerate(held):
        if told.get("role") in AMP_ROLES and parse_blocks(told.get("content")):
            said += _parse_amp_message(told, f"message-{told.get('messageId', number)}")
        elif told.get("content"):
            yield note_unread_value(None, told, "no message of a thread")
    yield from _open_thread(thread, names.name(thread["id"]), said).events()


def _open_thread(thread: JsonFields, name: str, said: list[SessionMessage]) -> GatheredSession:
    models = (get_nested(each, "usage", "model") for each in reversed(thread["messages"]))
    env = get_fields(get_nested(thread, "env", "initial"))
    trees = get_objects(env.get("trees"))
    return GatheredSession(
        "amp",
        name,
        said,
        titles=[thread.get("title")],
        root=trees[0].get("uri") if trees else None,
        model=find_first_text(models),
        parent=get_nested(thread, "mainThreadID"),
        created=round_milliseconds(thread.get("created")),
        told={**drop_keys(thread, *_AMP_THREAD_KEYS), **drop_empty_fields(env)},
    )


def _parse_amp_message(told: JsonFields, name: str) -> Iterator[SessionMessage]:
    """Yield what a message amounts to; the first has its id, the last its cost."""
    blocks = [_translate_block(block) for block in parse_blocks(told["content"]) or []]
    is_answer = told["role"] == "assistant"
    made = [_parse_amp_answer(blocks)] if is_answer else _parse_amp_question(blocks)
    extra = drop_empty_fields(drop_keys(told, *_AMP_MESSAGE_KEYS))
    usage = get_fields(told.get("usage"))
    sent = round_milliseconds(get_nested(told, "meta", "sentAt"))
    moment = parse_iso_milliseconds(usage.get("timestamp")) or sent
    spent = build_request_usage(usage, AMP_TOKENS, usage.get("model"))
    for number, message in enumerate(made, 1):
        message["id"] = name if number == 1 else f"{name}-{number}"
        told = drop_empty_fields({"timestamp": moment, "amp": extra if number == 1 else {}})
        yield SessionMessage(message | told, spent=spent if number == len(made) else ())


def _parse_amp_question(blocks: list[JsonFields]) -> list[Message]:
    runs = [block for block in blocks if _has_ended(block)]
    rest = [block for block in blocks if "run" not in block]
    return [*map(_parse_run, runs), *(build_user_messages(rest, rest) if rest else [])]


def _translate_block(block: JsonFields) -> JsonFields:
    """Return a block in the words of Anthropic's API, without what only Amp's screen needs."""
    match block:
        case {"type": "image", "source": {"mediaType": media, **source}}:
            return {**block, "source": {**source, "media_type": media}}
        case {"type": "tool_use"}:
            return {key: block[key] for key in ("type", "id", "name", "input") if key in block}
        case {"type": "thinking" | "redacted_thinking"}:
            return drop_keys(block, "provider", "startTime", "finalTime")
    return block


def _parse_amp_answer(blocks: list[JsonFields]) -> Message:
    """Return an answer; thoughts that no one signed are words."""
    unsigned = [
        block for block in blocks if block.get("type") == "thinking" and not block.get("signature")
    ]
    message = build_assistant_message([block for block in blocks if block not in unsigned])[0]
    thoughts = join_texts(block.get("thinking") for block in unsigned)
    return message | drop_empty_fields({"reasoning_content": thoughts})


def _has_ended(block: JsonFields) -> bool:
    run = get_fields(block.get("run"))
    return get_text(run.get("status")) in ENDED_RUNS or run.get("result") is not None


def _parse_run(block: JsonFields) -> Message:
    """Return the result of a call, or the reason that it has none."""
    run = get_fields(block.get("run"))
    status = get_text(run.get("status")) or ""
    given = run.get("result")
    if given is None:
        error = run.get("error")
        given = find_first_text((get_nested(error, "message"), error, run.get("reason")))
    if isinstance(given, list):
        given = [parse_mime_part(each) if isinstance(each, dict) else each for each in given]
    call = get_text(block.get("toolUseID")) or block.get("tool_use_id")
    said = f"[{status}]" if given is None else given
    return build_result_message(call, said, failed=ENDED_RUNS.get(status, False))
