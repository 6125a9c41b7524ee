"""Shapes of other providers: what of them goes out, and that the view says so."""

from __future__ import annotations

import json
from typing import Any

import pytest

from store import Policy, Store, View
from store.messages import select_opaque_fields
from store.tokens import estimate

Message = dict[str, Any]
REASONING = {"role": "assistant", "type": "reasoning", "encrypted_content": "x" * 8000}
AS_JSON = "no part of a chat, sent as its JSON text: "


def seen(store: Store, *messages: Message, **fields: Any) -> View:
    """The view of a new session of these messages."""
    session_id = store.create_session().id
    store.append(session_id, [*messages])
    return store.view(session_id, Policy(**fields))


@pytest.mark.parametrize(
    ("role", "part"),
    [
        ("assistant", {"type": "tool-call", "toolCallId": "t", "toolName": "Read", "args": {}}),
        ("user", {"type": "toolResult", "toolUseId": "t", "content": "x"}),
        ("assistant", {"type": "toolCall", "id": "t"}),
        ("assistant", {"type": "reasoning", "text": "hm"}),
        ("x", {"type": "function_call", "call_id": "t"}),
    ],
)
def test_a_view_says_what_it_sends_as_json(store: Store, role: str, part: Message) -> None:
    """In the entry of the message, which is not as it was stored."""
    view = seen(store, {"role": role, "content": [{"type": "text", "text": "a"}, part]})
    assert view.messages[0]["content"][1]["text"] == json.dumps(part)
    (entry,) = view.entries
    assert (entry.rule, entry.reason) == ("repair", AS_JSON + part["type"])
    assert view.stats.first_changed == 1
    assert view.stats.replaced == {"repair": 1}


def test_it_says_so_of_a_content_that_is_one_part(store: Store) -> None:
    """And beside another repair."""
    part = {"type": "tool_result", "content": "x"}
    view = seen(store, {"role": "tool", "tool_call_id": "c", "content": part})
    assert view.entries[1].reason == f"{AS_JSON}tool_result"


@pytest.mark.parametrize("kind", ["input_text", "output_text", "text"])
@pytest.mark.parametrize("role", ["user", "assistant", "tool", "system"])
def test_texts_are_texts_by_any_name(store: Store, kind: str, role: str) -> None:
    """Nothing is to be said of them."""
    view = seen(store, {"role": role, "content": [{"type": kind, "text": "hi", "annotations": []}]})
    assert view.messages[-1]["content"] == [{"type": "text", "text": "hi"}]
    assert view.entries[-1].rule is None


@pytest.mark.parametrize(
    "message",
    [
        REASONING,
        {"role": "system", "type": "event", "data": {"a": 1}},
        {"role": "user", "parts": [{"type": "text", "text": "hi"}], "id": "m"},
    ],
)
def test_opaque_messages_are_left_out(store: Store, message: Message) -> None:
    """They would go out as empty ones; the view lists them, the store keeps them."""
    view = seen(store, {"role": "user", "content": "a"}, message, {"role": "user", "content": "b"})
    assert [each["content"] for each in view.messages] == ["a", "b"]
    assert view.stats.left_out == (2,)
    assert view.stats.first_changed == 2
    assert store.messages(view.session_id)[1].message == message


def test_the_size_of_opaque_messages_counts(store: Store) -> None:
    """Eight thousand characters are not four tokens: of the line, and for a check."""
    view = seen(store, REASONING)
    fields = {key: REASONING[key] for key in ("type", "encrypted_content")}
    size = 4 + estimate(json.dumps(fields, separators=(",", ":")))
    assert view.stats.raw_tokens == size > 2000
    assert view.stats.tokens == 0
    assert store.check(view.session_id, Policy()).tokens == size


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user"},
        {"role": "assistant", "content": None, "encrypted_content": "x"},
        {"role": "assistant", "content": "", "type": "message"},
        {"role": "assistant", "tool_calls": [{"id": "c"}], "x": 1},
        {"role": "assistant", "refusal": "no", "x": 1},
        {"role": "assistant", "reasoning_content": "hm"},
        {"role": "tool", "tool_call_id": "c", "output": "x"},
        {"role": "user", "name": "n", "id": "i", "timestamp": 1},
        {"role": "system", "tool_calls": [], "timestamp": 1},
    ],
)
def test_what_says_something_in_a_chat_is_not_opaque(message: Message) -> None:
    """Nor is a message that holds nothing else, nor a result, which its call waits for."""
    assert select_opaque_fields(message) == {}
