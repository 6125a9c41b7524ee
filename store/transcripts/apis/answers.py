"""The providers' APIs: the messages in a request, and the content and cost of an answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from ...text import JsonFields
from ..parser_events import (
    RequestUsage,
    drop_empty_fields,
    drop_keys,
    get_fields,
    get_list,
    get_text,
)
from ..usages import parse_anthropic_usage, parse_gemini_usage, parse_openai_usage

EVENT_DATA_PREFIX = "data:"
KEY_BY_DELTA_TYPE = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
    "input_json_delta": "partial_json",
}
"""Type of a piece of Anthropic's → its key, under which its block says it, too."""


def parse_stream_events(text: str) -> list[JsonFields]:
    """Return the objects that a stream told."""
    told = (line for line in text.splitlines() if line.startswith(EVENT_DATA_PREFIX))
    objects = (_parse_event_object(line.removeprefix(EVENT_DATA_PREFIX)) for line in told)
    return [*filter(None, objects)]


def _parse_event_object(text: str) -> JsonFields:
    try:
        return get_fields(json.loads(text))
    except ValueError:
        return {}


def join_response_events(events: list[JsonFields]) -> JsonFields:
    """Return the answer of the Responses API; its items as far as they came, if it broke off."""
    told = [get_fields(event.get("response")) for event in events]
    whole: JsonFields = next(filter(None, reversed(told)), {})
    if get_list(whole.get("output")):
        return whole
    done = (event for event in events if event.get("type") == "response.output_item.done")
    return {**whole, "output": [event["item"] for event in done if "item" in event]}


def join_completion_events(events: list[JsonFields]) -> JsonFields:
    """Return the answer of the chat API."""
    message: JsonFields = {"role": "assistant", "content": None}
    calls: dict[str, JsonFields] = {}
    body: JsonFields = {}
    for event in events:
        body |= {key: held for key, held in event.items() if held is not None}
        for choice in get_list(event.get("choices"))[:1]:
            _add_delta(message, calls, get_fields(get_fields(choice).get("delta")))
    if calls:
        message["tool_calls"] = [*calls.values()]
    return {**body, "choices": [{"message": message}]}


def _add_delta(message: JsonFields, calls: dict[str, JsonFields], delta: JsonFields) -> None:
    for key, held in delta.items():
        if isinstance(held, str) and key != "role":
            _append_text(message, key, held)
    for piece in map(get_fields, get_list(delta.get("tool_calls"))):
        call = calls.setdefault(
            str(piece.get("index")), {"function": {"name": "", "arguments": ""}}
        )
        call |= drop_empty_fields(drop_keys(piece, "index", "function"))
        for key, held in get_fields(piece.get("function")).items():
            _append_text(call["function"], key, held)


def _append_text(fields: JsonFields, key: str, piece: object) -> None:
    """Append a piece of text to the value of a key."""
    before = get_text(fields.get(key)) or ""
    fields[key] = before + (get_text(piece) or "")


def join_anthropic_events(events: list[JsonFields]) -> JsonFields:
    """Return the answer of Anthropic's API."""
    body: JsonFields = {}
    blocks: dict[str, JsonFields] = {}
    for event in events:
        match event.get("type"):
            case "message_start":
                body = dict(get_fields(event.get("message")))
            case "content_block_start":
                begun = get_fields(event.get("content_block"))
                blocks[str(event.get("index"))] = dict(begun)
            case "content_block_delta":
                block = blocks.setdefault(str(event.get("index")), {})
                delta = get_fields(event.get("delta"))
                key = KEY_BY_DELTA_TYPE.get(str(delta.get("type")))
                if key:
                    _append_text(block, key, delta.get(key))
                elif "citation" in delta:
                    block["citations"] = [*get_list(block.get("citations")), delta["citation"]]
            case "message_delta":
                body |= get_fields(event.get("delta"))
                told = get_fields(event.get("usage"))
                body["usage"] = {**get_fields(body.get("usage")), **told}
    return {**body, "content": [*map(_parse_block_input, blocks.values())]}


def _parse_block_input(block: JsonFields) -> JsonFields:
    """Return a block with its input, which came as pieces of JSON."""
    if "partial_json" not in block:
        return block
    told = block.pop("partial_json")
    return {**block, "input": _parse_event_object(told)} if told else block


def join_gemini_events(events: list[JsonFields]) -> JsonFields:
    """Return the answer of the Gemini API."""
    body: JsonFields = {}
    parts: list[Any] = []
    for event in events:
        body |= event
        parts += list_candidate_parts(event)
    return {**body, "candidates": [{"content": {"role": "model", "parts": parts}}]}


def list_candidate_parts(body: JsonFields) -> Iterable[Any]:
    """Return the parts of the first candidate."""
    return [part for each in _list_candidate_contents(body) for part in get_list(each.get("parts"))]


def _list_candidate_contents(body: JsonFields) -> Iterator[JsonFields]:
    for candidate in get_list(body.get("candidates"))[:1]:
        yield get_fields(get_fields(candidate).get("content"))


class Api(NamedTuple):
    """How an API is asked, and how it answers: one row of the table."""

    format: str
    """The wire format of its messages."""
    asked: str
    """The key of a request under which its messages are."""
    address: str
    """A part of the address under which it is asked."""
    answered: str
    """The key of an answer that only it has."""
    said: Callable[[JsonFields], list[Any]]
    """Returns the messages of an answer, as they are sent again."""
    spent: Callable[[JsonFields], Iterator[RequestUsage]]
    """Yields what an answer tells of its cost."""
    whole: Callable[[list[JsonFields]], JsonFields]
    """Returns an answer from the events as which it was streamed."""


def _list_choice_messages(body: JsonFields) -> list[Any]:
    choices = map(get_fields, get_list(body.get("choices"))[:1])
    return [choice["message"] for choice in choices if get_fields(choice.get("message"))]


def _list_output_items(body: JsonFields) -> list[Any]:
    return [*filter(get_fields, get_list(body.get("output")))]


def _list_anthropic_messages(body: JsonFields) -> list[Any]:
    blocks = get_list(body.get("content"))
    return [{"role": "assistant", "content": blocks}] if blocks else []


def _list_gemini_messages(body: JsonFields) -> list[Any]:
    parts = list_candidate_parts(body)
    return [{"role": "model", "parts": parts}] if parts else []


APIS = (
    Api(
        "responses",
        *("input", "/responses", "output"),
        *(_list_output_items, parse_openai_usage, join_response_events),
    ),
    Api(
        "openai",
        *("messages", "/chat/completions", "choices"),
        *(_list_choice_messages, parse_openai_usage, join_completion_events),
    ),
    Api(
        "anthropic",
        *("messages", "/messages", "content"),
        *(_list_anthropic_messages, parse_anthropic_usage, join_anthropic_events),
    ),
    Api(
        "gemini",
        *("contents", "enerateContent", "candidates"),
        *(_list_gemini_messages, parse_gemini_usage, join_gemini_events),
    ),
)
RESPONSES_API = APIS[0]


def parse_body(told: Any) -> JsonFields | str:
    """Return a body as an object, or a stream of events as its text."""
    text = get_text(told)
    if text is None:
        return get_fields(told)
    try:
        return get_fields(json.loads(text))
    except ValueError:
        return text


def parse_answer_cost(api: Api, body: JsonFields) -> tuple[RequestUsage, ...]:
    """Return what an answer cost, under its own id."""
    found = (each for each in api.spent(body) if any(each.tokens))
    return tuple(each._replace(name=get_text(body.get("id"))) for each in found)


def parse_answer_timestamp(body: JsonFields) -> int | None:
    """Return when an answer was made (ms), None where it does not tell."""
    told = body.get("created_at") or body.get("created")
    if not isinstance(told, int | float) or not 0 < told < 2**40:
        return None
    return int(told * 1000)
