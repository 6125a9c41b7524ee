"""Answers that were recorded as they streamed: lines of events, put together to the whole."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from ...text import Fields
from ..events import fields_of, list_of, telling, text_of, without

DATA = "data:"
DELTAS = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
    "input_json_delta": "partial_json",
}
"""Type of a piece of Anthropic's → its key, under which its block says it, too."""


def events_of(text: str) -> list[Fields]:
    """Return the objects that a stream told."""
    told = (line for line in text.splitlines() if line.startswith(DATA))
    objects = (_object(line.removeprefix(DATA)) for line in told)
    return [*filter(None, objects)]


def _object(text: str) -> Fields:
    try:
        return fields_of(json.loads(text))
    except ValueError:
        return {}


def response(events: list[Fields]) -> Fields:
    """Return the answer of the Responses API; its items as far as they came, if it broke off."""
    told = [fields_of(event.get("response")) for event in events]
    whole: Fields = next(filter(None, reversed(told)), {})
    if list_of(whole.get("output")):
        return whole
    done = (event for event in events if event.get("type") == "response.output_item.done")
    return {**whole, "output": [event["item"] for event in done if "item" in event]}


def completion(events: list[Fields]) -> Fields:
    """Return the answer of the chat API."""
    message: Fields = {"role": "assistant", "content": None}
    calls: dict[str, Fields] = {}
    body: Fields = {}
    for event in events:
        body |= {key: held for key, held in event.items() if held is not None}
        for choice in list_of(event.get("choices"))[:1]:
            _add_delta(message, calls, fields_of(fields_of(choice).get("delta")))
    if calls:
        message["tool_calls"] = [*calls.values()]
    return {**body, "choices": [{"message": message}]}


def _add_delta(message: Fields, calls: dict[str, Fields], delta: Fields) -> None:
    for key, held in delta.items():
        if isinstance(held, str) and key != "role":
            _append(message, key, held)
    for piece in map(fields_of, list_of(delta.get("tool_calls"))):
        call = calls.setdefault(
            str(piece.get("index")), {"function": {"name": "", "arguments": ""}}
        )
        call |= telling(without(piece, "index", "function"))
        for key, held in fields_of(piece.get("function")).items():
            _append(call["function"], key, held)


def _append(fields: Fields, key: str, piece: object) -> None:
    """Append a piece of text to the value of a key."""
    before = text_of(fields.get(key)) or ""
    fields[key] = before + (text_of(piece) or "")


def message(events: list[Fields]) -> Fields:
    """Return the answer of Anthropic's API."""
    body: Fields = {}
    blocks: dict[str, Fields] = {}
    for event in events:
        match event.get("type"):
            case "message_start":
                body = dict(fields_of(event.get("message")))
            case "content_block_start":
                begun = fields_of(event.get("content_block"))
                blocks[str(event.get("index"))] = dict(begun)
            case "content_block_delta":
                block = blocks.setdefault(str(event.get("index")), {})
                _add_piece(block, fields_of(event.get("delta")))
            case "message_delta":
                body |= fields_of(event.get("delta"))
                told = fields_of(event.get("usage"))
                body["usage"] = {**fields_of(body.get("usage")), **told}
    return {**body, "content": [*map(_block, blocks.values())]}


def _add_piece(block: Fields, delta: Fields) -> None:
    key = DELTAS.get(str(delta.get("type")))
    if key:
        _append(block, key, delta.get(key))
    elif "citation" in delta:
        block["citations"] = [*list_of(block.get("citations")), delta["citation"]]


def _block(block: Fields) -> Fields:
    """Return a block with its input, which came as pieces of JSON."""
    if "partial_json" not in block:
        return block
    told = block.pop("partial_json")
    return {**block, "input": _object(told)} if told else block


def contents(events: list[Fields]) -> Fields:
    """Return the answer of the Gemini API."""
    body: Fields = {}
    parts: list[Any] = []
    for event in events:
        body |= event
        parts += parts_of(event)
    return {**body, "candidates": [{"content": {"role": "model", "parts": parts}}]}


def parts_of(body: Fields) -> Iterable[Any]:
    """Return the parts of the first candidate."""
    return [part for each in _candidates(body) for part in list_of(each.get("parts"))]


def _candidates(body: Fields) -> Iterator[Fields]:
    for candidate in list_of(body.get("candidates"))[:1]:
        yield fields_of(fields_of(candidate).get("content"))
