"""The providers' APIs: the messages in a request, and the content and cost of an answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ...text import JsonFields
from ..costs import RequestUsage
from ..events import get_fields, get_list, get_text
from ..spent import parse_anthropic_usage, parse_gemini_usage, parse_openai_usage
from . import streams


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
    parts = streams.list_candidate_parts(body)
    return [{"role": "model", "parts": parts}] if parts else []


APIS = (
    Api(
        "responses",
        *("input", "/responses", "output"),
        *(_list_output_items, parse_openai_usage, streams.join_response_events),
    ),
    Api(
        "openai",
        *("messages", "/chat/completions", "choices"),
        *(_list_choice_messages, parse_openai_usage, streams.join_completion_events),
    ),
    Api(
        "anthropic",
        *("messages", "/messages", "content"),
        *(_list_anthropic_messages, parse_anthropic_usage, streams.join_anthropic_events),
    ),
    Api(
        "gemini",
        *("contents", "enerateContent", "candidates"),
        *(_list_gemini_messages, parse_gemini_usage, streams.join_gemini_events),
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
