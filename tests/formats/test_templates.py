"""Messages of a provider's format, stored and restored by templates of their shapes."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from store import InvalidMessage, Store
from store.formats import encode_message
from store.formats.message_templates import find_message_template
from store.history.row_templates import find_rows_template, prepare_by_template
from store.messages import PreparedMessage, prepare_object
from store.text import clear_caches
from store.tokens import FRAMING_TOKENS, estimate_message_tokens, estimate_size

Message = dict[str, Any]
ODD_TEXTS = (
    *("", "a", "call_1", "fc_1", 'say "hi"', "back\\slash", "line\nend", "\0", "\ud800", "\x01"),
    *('"id":"a"', '{"id":"fc_1"}', "配置", "_wire", "user", "null", "1", "x" * 700),
)
"""Texts that a template could take for something else than any other text."""


def choose_text(rng: random.Random) -> str:
    """Return a text that another place of the message may have too."""
    if rng.random() < 0.3:
        return rng.choice(ODD_TEXTS)
    return f"{rng.choice(('call', 'fc', 'said'))}_{rng.randrange(6)}"


def choose_value(rng: random.Random, depth: int = 2) -> Any:
    """Return a JSON value."""
    kind = rng.randrange(7 if depth else 5)
    if kind < 2:
        return choose_text(rng)
    if kind < 5:
        return rng.choice((None, True, False, 0, 1, -1.5, 10**30, 1_767_225_600_000))
    if kind == 5:
        return [choose_value(rng, depth - 1) for _ in range(rng.randrange(3))]
    return {choose_text(rng): choose_value(rng, depth - 1) for _ in range(rng.randrange(3))}


def shuffle_keys(rng: random.Random, message: Message) -> Message:
    """Return a message with, sometimes, its keys in another order and one more."""
    if rng.random() < 0.15:
        message["id"] = rng.choice((choose_text(rng), 7, None))
    if rng.random() < 0.1:
        message["timestamp"] = rng.choice((1_767_225_600_000, "2026-01-01T00:00:00Z", None, "x"))
    if rng.random() < 0.1:
        message[f"more {choose_text(rng)}"] = choose_value(rng)
    keys = [*message]
    if rng.random() < 0.3:
        rng.shuffle(keys)
    return {key: message[key] for key in keys}


def choose_input(rng: random.Random) -> Message:
    """Return the arguments of a call."""
    return {choose_text(rng): choose_value(rng) for _ in range(rng.randrange(4))}


def make_item(rng: random.Random) -> Message:
    """Return an item of Responses."""
    kind = rng.randrange(7)
    named = {"id": choose_text(rng)} if rng.random() < 0.5 else {}
    status = (
        {"status": rng.choice(("completed", "in_progress", None))} if rng.random() < 0.5 else {}
    )
    if kind == 0:
        item = {"role": rng.choice(("user", "system", "developer")), "content": choose_text(rng)}
    elif kind == 1:
        parts = [
            {"type": "output_text", "text": choose_text(rng), "annotations": []}
            for _ in range(rng.randrange(3))
        ]
        item = {**named, "type": "message", **status, "role": "assistant", "content": parts}
    elif kind == 2:
        asked = {"name": choose_text(rng), "arguments": json.dumps(choose_input(rng))}
        item = {"type": "function_call", **named, "call_id": choose_text(rng), **asked, **status}
    elif kind == 3:
        output = choose_value(rng) if rng.random() < 0.3 else choose_text(rng)
        item = {"type": "function_call_output", **named, "call_id": choose_text(rng)}
        item |= {"output": output, **status}
    elif kind == 4:
        summary = [{"type": "summary_text", "text": choose_text(rng)}]
        item = {"type": "reasoning", **named, "summary": summary, "encrypted_content": "x" * 50}
    elif kind == 5:
        item = {"type": "custom_tool_call", **named, "call_id": choose_text(rng)}
        item |= {"name": choose_text(rng), "input": choose_text(rng)}
    else:
        item = {"type": "local_shell_call", **named, "call_id": choose_text(rng)}
        item |= {"action": choose_input(rng), **status}
    return shuffle_keys(rng, item)


def make_block(rng: random.Random, role: str) -> Message:
    """Return a block of an Anthropic message."""
    if rng.random() < 0.4:
        block: Message = {"type": "text", "text": choose_text(rng)}
    elif role == "assistant":
        asked = {"name": choose_text(rng), "input": choose_input(rng)}
        block = {"type": "tool_use", "id": choose_text(rng), **asked}
        if rng.random() < 0.2:
            block = {"type": "thinking", "thinking": choose_text(rng), "signature": "s" * 9}
    else:
        content: Any = choose_text(rng)
        if rng.random() < 0.3:
            content = [{"type": "text", "text": choose_text(rng)} for _ in range(rng.randrange(3))]
        block = {"type": "tool_result", "tool_use_id": choose_text(rng), "content": content}
        if rng.random() < 0.3:
            block["is_error"] = rng.choice((True, False, None, 1))
    if rng.random() < 0.1:
        block["cache_control"] = {"type": "ephemeral"}
    return block


def make_anthropic(rng: random.Random) -> Message:
    """Return a message of Anthropic's API."""
    role = rng.choice(("user", "assistant"))
    content: Any = [make_block(rng, role) for _ in range(rng.randrange(4))]
    return shuffle_keys(rng, {"role": role, "content": content or choose_text(rng)})


def make_part(rng: random.Random, role: str) -> Message:
    """Return a part of a Gemini content."""
    named = {"id": rng.choice((choose_text(rng), None))} if rng.random() < 0.6 else {}
    if rng.random() < 0.4:
        part: Message = {"text": choose_text(rng)}
    elif role == "model":
        part = {"functionCall": {**named, "name": choose_text(rng), "args": choose_input(rng)}}
        if rng.random() < 0.2:
            part["thoughtSignature"] = choose_text(rng)
    else:
        key = rng.choice(("output", "result", "error", "other"))
        response = {key: choose_value(rng)} if rng.random() < 0.7 else choose_input(rng)
        part = {"functionResponse": {**named, "name": choose_text(rng), "response": response}}
        if rng.random() < 0.1:
            part["functionResponse"]["parts"] = [{"text": choose_text(rng)}]
    return part


def make_gemini(rng: random.Random) -> Message:
    """Return a content of Gemini's API."""
    role = rng.choice(("user", "model"))
    parts = [make_part(rng, role) for _ in range(rng.randrange(4))]
    return shuffle_keys(rng, {"role": role, "parts": parts})


MAKERS: dict[str, Callable[[random.Random], Message]] = {
    "responses": make_item,
    "anthropic": make_anthropic,
    "gemini": make_gemini,
}


def render(message: Message) -> str:
    """Return a message as a text that shows the order of its keys, and True beside 1."""
    return json.dumps(message)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", MAKERS)
def test_any_message_comes_back_with_its_keys_in_order(store: Store, name: str, seed: int) -> None:
    """Of each shape there are messages before it has a template, and others after that."""
    rng = random.Random(seed)
    session = store.create_session().id
    given = [MAKERS[name](rng) for _ in range(300)]
    texts = [*map(render, given)]
    for first in range(0, 300, 100):
        batch = given[first : first + 100]
        appended = store.append(session, batch, format=name, dedupe="off")
        assert [render(each.message) for each in appended] == texts[first : first + 100]
    assert [*map(render, given)] == texts
    for _ in range(3):
        assert [render(each.message) for each in store.messages(session)] == texts
    for at in rng.sample(range(1, 301), 12):
        newest = store.messages(session, last=at)
        assert [render(each.message) for each in newest] == texts[-at:]
    assert store.verify() == []
    clear_caches()
    assert [render(each.message) for each in store.messages(session)] == texts


def prepare_without_template(message: Message, name: str) -> list[PreparedMessage]:
    """Return the rows of a message as its codec makes them."""
    rows = [prepare_object(row, 0) for row in encode_message(message, name, 0).rows]
    named = [row._replace(wire_format=name) for row in rows]
    return [*named[:-1], named[-1]._replace(came=message)]


def check_rows(rows: list[PreparedMessage], expected: list[PreparedMessage]) -> None:
    """Compare rows with those of a codec, whose tokens are counted later."""
    assert [row._replace(said=None) for row in rows] == expected
    assert [render(row.message) for row in rows] == [render(row.message) for row in expected]
    for row in rows:
        assert row.said
        counted = estimate_message_tokens(row.message, row.text_size)
        assert FRAMING_TOKENS + estimate_size(*row.said) == counted


@pytest.mark.parametrize("name", MAKERS)
def test_rows_of_a_template_are_those_of_the_codec(name: str) -> None:
    """To the last byte, with their digests, sizes and tokens, and the chat message of each."""
    rng = random.Random(name)
    made = 0
    for number in range(1_500):
        message = MAKERS[name](rng)
        for _ in range(2 if number % 2 else 1):
            rows = prepare_by_template(message, name)
        if rows is not None:
            made += 1
            check_rows(rows, prepare_without_template(message, name))
    assert made > 400


ENDLESS: list[Any] = []
ENDLESS.append(ENDLESS)


class Shout(str):
    """A text of another class."""

    __slots__ = ()

    def __str__(self) -> str:
        return self.upper()


HOSTILE_VALUES = (
    *(float("nan"), float("inf"), {1, 2}, (1, 2), b"x", object(), ENDLESS, 2**20_000),
    *({1: "x"}, {None: "x"}, {"a": {"b": {2: 3}}}, {"a": float("nan")}, Shout("x"), "x" * 700),
    *(["\ud800"], {"\ud83d": "\ude00"}, {"a": "\ud83d\ude00"}, {"a": "\0"}, [[[[[[[["x"]]]]]]]]),
)
"""What JSON, a text column or a template cannot hold."""


def find_places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of everything in a value."""
    below: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, dict | list):
        below = value.items() if isinstance(value, dict) else enumerate(value)
    inner = [each for key, held in below for each in find_places(held, (*path, key))]
    return [path, *inner] if path else inner


@pytest.mark.parametrize("hostile", HOSTILE_VALUES, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("name", MAKERS)
def test_hostile_values_are_stored_or_refused_as_ever(name: str, hostile: Any) -> None:
    """Wherever one stands in a message whose shape has a template."""
    rng = random.Random(f"{name}")
    for _ in range(12):
        message = MAKERS[name](rng)
        for path in find_places(message):
            odd = json.loads(render(message))
            holder = odd
            for key in path[:-1]:
                holder = holder[key]
            holder[path[-1]] = hostile
            for given in (message, message, odd, odd):
                rows = prepare_by_template(given, name)
            try:
                expected = prepare_without_template(odd, name)
            except InvalidMessage:
                assert rows is None
            else:
                if rows is not None:
                    check_rows(rows, expected)


def test_a_redaction_reaches_templates(store: Store) -> None:
    """What templates say is forgotten with the words of the messages that they were made of."""
    session = store.create_session().id
    call = {"type": "function_call", "call_id": "c", "name": "secret_tool", "arguments": "{}"}
    for _ in range(3):
        store.append(session, call, format="responses")
        store.messages(session)
    caches: Any = (find_rows_template, find_message_template)
    assert all(cache.cache_info().currsize for cache in caches)
    store.redact(session, 3, "a secret")
    assert not any(cache.cache_info().currsize for cache in caches)
    (*_, redacted) = store.messages(session)
    assert "secret_tool" not in str(redacted)
