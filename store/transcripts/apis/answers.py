"""The providers' APIs: the messages in a request, and the content and cost of an answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ...text import Fields
from ..costs import Spent
from ..events import fields_of, list_of, text_of
from ..spent import of_anthropic, of_gemini, of_openai
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
    said: Callable[[Fields], list[Any]]
    """Returns the messages of an answer, as they are sent again."""
    spent: Callable[[Fields], Iterator[Spent]]
    """Yields what an answer tells of its cost."""
    whole: Callable[[list[Fields]], Fields]
    """Returns an answer from the events as which it was streamed."""


def _of_chat(body: Fields) -> list[Any]:
    choices = map(fields_of, list_of(body.get("choices"))[:1])
    return [choice["message"] for choice in choices if fields_of(choice.get("message"))]


def _of_responses(body: Fields) -> list[Any]:
    return [*filter(fields_of, list_of(body.get("output")))]


def _of_anthropic(body: Fields) -> list[Any]:
    blocks = list_of(body.get("content"))
    return [{"role": "assistant", "content": blocks}] if blocks else []


def _of_gemini(body: Fields) -> list[Any]:
    parts = streams.parts_of(body)
    return [{"role": "model", "parts": parts}] if parts else []


APIS = (
    Api(
        "responses",
        *("input", "/responses", "output"),
        *(_of_responses, of_openai, streams.response),
    ),
    Api(
        "openai",
        *("messages", "/chat/completions", "choices"),
        *(_of_chat, of_openai, streams.completion),
    ),
    Api(
        "anthropic",
        *("messages", "/messages", "content"),
        *(_of_anthropic, of_anthropic, streams.message),
    ),
    Api(
        "gemini",
        *("contents", "enerateContent", "candidates"),
        *(_of_gemini, of_gemini, streams.contents),
    ),
)
RESPONSES = APIS[0]


def body_of(told: Any) -> Fields | str:
    """Return a body as an object, or a stream of events as its text."""
    text = text_of(told)
    if text is None:
        return fields_of(told)
    try:
        return fields_of(json.loads(text))
    except ValueError:
        return text


def cost_of(api: Api, body: Fields) -> tuple[Spent, ...]:
    """Return what an answer cost, under its own id."""
    found = (each for each in api.spent(body) if any(each.tokens))
    return tuple(each._replace(name=text_of(body.get("id"))) for each in found)


def moment_of(body: Fields) -> int | None:
    """Return when an answer was made (ms), None where it does not tell."""
    told = body.get("created_at") or body.get("created")
    if not isinstance(told, int | float) or not 0 < told < 2**40:
        return None
    return int(told * 1000)
