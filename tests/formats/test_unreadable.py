"""Pictures, sounds and files that nobody can read: no provider is sent one, each is told as a text.

Transcripts that were cleaned have them, and a request that holds one is refused for ever.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from judge import JUDGES, complaints

from store import Policy, Store

Message = dict[str, Any]
PROVIDERS = [*JUDGES]
SCRUBBED = ("REDACTED!", "blob:sha256:0c5f", "[trimmed for fixture]", "AAA", "AA=A")


def shapes_of(data: str) -> dict[str, Message]:
    """A picture of some data in the shapes in use."""
    url = f"data:image/png;base64,{data}"
    source = {"type": "base64", "media_type": "image/png", "data": data}
    return {
        "chat": {"type": "image_url", "image_url": {"url": url}},
        "responses": {"type": "input_image", "image_url": url, "detail": "auto"},
        "anthropic": {"type": "image", "source": source},
        "document": {"type": "document", "source": {**source, "media_type": "application/pdf"}},
        "mcp": {"type": "image", "data": data, "mimeType": "image/png"},
        "sound": {"type": "input_audio", "input_audio": {"data": data, "format": "wav"}},
        "file": {"type": "file", "file": {"filename": "a", "file_data": url}},
        "link": {"type": "image_url", "image_url": {"url": data}},
    }


BYTES_KEYS = ('"image_url"', '"source"', '"inlineData"', '"file_data"', '"input_audio"')


@pytest.mark.parametrize("data", SCRUBBED)
@pytest.mark.parametrize("format", PROVIDERS)
def test_what_is_no_base64_is_a_text(store: Store, format: str, data: str) -> None:  # noqa: A002
    """Of the user's and in results, in every shape, by every policy that sends pictures."""
    shapes = [*shapes_of(data).values()]
    session_id = store.create_session().id
    call = {"id": "c", "type": "function", "function": {"name": "shot", "arguments": "{}"}}
    line = [
        {"role": "user", "content": shapes},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": shapes},
    ]
    store.append(session_id, line)
    for policy in (Policy(), Policy.named("raw"), Policy.named("turns")):
        view = store.view(session_id, policy, format=format)
        sent = json.dumps(view.messages)
        assert not any(key in sent for key in BYTES_KEYS)
        assert complaints(format, view.messages, view.system) == []
        assert data in sent
    said = store.view(session_id, Policy.named("raw", language="en"), format=format)
    assert "[Not shown here: image/png," in json.dumps(said.messages)
    assert said.entries[-1].reason == "of a picture that is no base64, type and size are said"


OWN: dict[str, Callable[[str], list[Message]]] = {
    "anthropic": lambda data: [
        {
            "role": "user",
            "content": [
                shapes_of(data)["anthropic"],
                {
                    "type": "document",
                    "source": {"type": "content", "content": [shapes_of(data)["anthropic"]]},
                },
            ],
        },
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "t", "name": "shot", "input": {}}],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "t",
                    "content": [shapes_of(data)["anthropic"]],
                }
            ],
        },
    ],
    "responses": lambda data: [
        {"type": "message", "role": "user", "content": [shapes_of(data)["responses"]]},
        {"type": "computer_call", "call_id": "c", "action": {}, "id": "i", "status": "completed"},
        {
            "type": "computer_call_output",
            "call_id": "c",
            "output": {"type": "computer_screenshot", "image_url": f"data:image/png;base64,{data}"},
        },
        {"type": "function_call", "call_id": "d", "name": "shot", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "d", "output": [shapes_of(data)["responses"]]},
    ],
    "gemini": lambda data: [
        {"role": "user", "parts": [{"inlineData": {"mimeType": "image/png", "data": data}}]},
        {
            "role": "model",
            "parts": [
                {"inlineData": {"mimeType": "image/png", "data": data}},
                {"functionCall": {"name": "shot", "args": {}}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {
                    "functionResponse": {
                        "name": "shot",
                        "response": {"output": "ok"},
                        "parts": [{"inlineData": {"mimeType": "image/png", "data": data}}],
                    }
                }
            ],
        },
    ],
}


@pytest.mark.parametrize("format", PROVIDERS)
@pytest.mark.parametrize("came_as", OWN)
def test_its_own_provider_gets_no_picture_that_is_none(
    store: Store,
    came_as: str,
    format: str,  # noqa: A002
) -> None:
    """Where it came in the provider's own shape: whole pictures go back, others are told."""
    whole, scrubbed = store.create_session().id, store.create_session().id
    store.append(whole, OWN[came_as]("iVBORw0KGgo="), format=came_as)
    store.append(scrubbed, OWN[came_as]("REDACTED!"), format=came_as)
    view = store.view(scrubbed, Policy.named("raw"), format=format)
    assert not any(key in json.dumps(view.messages) for key in BYTES_KEYS)
    assert complaints(format, view.messages, view.system) == []
    sent = store.view(whole, Policy.named("raw"), format=format)
    assert complaints(format, sent.messages, sent.system) == []
    if came_as == format:
        number = json.dumps(OWN[came_as]("iVBORw0KGgo=")).count("iVBORw0KGgo=")
        assert json.dumps(sent.messages).count("iVBORw0KGgo=") == number


def test_base64_of_urls_is_sent_as_others_take_it(store: Store) -> None:
    """As Gemini's client for Python dumps its bytes; to Gemini it goes as it came."""
    session_id = store.create_session().id
    part = {"inlineData": {"mimeType": "image/png", "data": "-_-_"}}
    store.append(session_id, {"role": "user", "parts": [part]})
    assert store.view(session_id, format="gemini").messages[0]["parts"] == [part]
    for format in ("openai", "responses", "anthropic"):  # noqa: A001
        assert "+/+/" in json.dumps(store.view(session_id, format=format).messages)
