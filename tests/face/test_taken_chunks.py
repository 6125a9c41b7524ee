"""The chunks of providers' streams become an answer in the provider's format, with its usage."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

from store import AsyncStore, Store
from store.errors import InvalidValue, StoreError
from tests.formats.judge import complaints

ANSWER = {"role": "assistant"}


@pytest.fixture
def chat(url: str) -> Iterator[Store]:
    """A store with a session in which something was asked."""
    with Store(url, durability="normal") as store:
        store.create_session("s", owner="ann")
        store.append("s", {"role": "user", "content": "why?"})
        yield store


def chat_chunk(**delta: Any) -> dict[str, Any]:
    """Return a chunk of OpenAI's chat."""
    return {
        "object": "chat.completion.chunk",
        "model": "gpt-5",
        "choices": [{"index": 0, "delta": delta, "finish_reason": None}],
        "usage": None,
    }


def call_delta(index: int, arguments: str, **named: Any) -> dict[str, Any]:
    """Return a part of a call."""
    function = {"arguments": arguments} | ({"name": "ls"} if named else {})
    return {"index": index, **named, "function": function}


CHAT = [
    chat_chunk(role="assistant", content=""),
    chat_chunk(reasoning_content="hm"),
    chat_chunk(content="Be"),
    chat_chunk(content="cause"),
    chat_chunk(tool_calls=[call_delta(0, "", id="a", type="function")]),
    chat_chunk(tool_calls=[call_delta(0, '{"p":'), call_delta(1, "", id="b", type="function")]),
    chat_chunk(tool_calls=[call_delta(0, "1}"), call_delta(1, "{}")]),
    {"object": "chat.completion.chunk", "model": "gpt-5", "choices": []}
    | {
        "usage": {
            "prompt_tokens": 100,
            "completion_tokens": 9,
            "prompt_tokens_details": {"cached_tokens": 40},
        }
    },
]
CHAT_MESSAGE = {
    "role": "assistant",
    "content": "Because",
    "reasoning_content": "hm",
    "tool_calls": [
        {"id": "a", "type": "function", "function": {"arguments": '{"p":1}', "name": "ls"}},
        {"id": "b", "type": "function", "function": {"arguments": "{}", "name": "ls"}},
    ],
}


def block(index: int, kind: str, **values: Any) -> list[dict[str, Any]]:
    """Return the start of a block of Anthropic."""
    started = {"type": kind, **values}
    return [{"type": "content_block_start", "index": index, "content_block": started}]


def grow(index: int, kind: str, **values: Any) -> dict[str, Any]:
    """Return a delta of a block of Anthropic."""
    delta = {"type": kind, **values}
    return {"type": "content_block_delta", "index": index, "delta": delta}


ANTHROPIC_START = {"input_tokens": 50, "cache_read_input_tokens": 40, "output_tokens": 1}
ANTHROPIC = [
    {
        "type": "message_start",
        "message": {"type": "message", "model": "claude-sonnet-4-5", "usage": ANTHROPIC_START}
        | {"id": "m", "role": "assistant", "content": []},
    },
    *block(0, "thinking", thinking="", signature=""),
    grow(0, "thinking_delta", thinking="hm"),
    grow(0, "signature_delta", signature="c2ln"),
    {"type": "content_block_stop", "index": 0},
    {"type": "ping"},
    *block(1, "text", text=""),
    grow(1, "text_delta", text="Be"),
    grow(1, "text_delta", text="cause"),
    *block(2, "tool_use", id="a", name="ls", input={}),
    grow(2, "input_json_delta", partial_json='{"p":'),
    grow(2, "input_json_delta", partial_json="1}"),
    *block(3, "tool_use", id="b", name="ls", input={}),
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}},
    {"type": "message_stop"},
]
ANTHROPIC_MESSAGE = {
    "role": "assistant",
    "content": [
        {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
        {"type": "text", "text": "Because"},
        {"type": "tool_use", "id": "a", "name": "ls", "input": {"p": 1}},
        {"type": "tool_use", "id": "b", "name": "ls", "input": {}},
    ],
}

RESPONSES_ITEMS = [
    {"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "hm"}]},
    {
        "type": "message",
        "id": "msg",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "Because", "annotations": []}],
    },
    {"type": "function_call", "id": "fc", "call_id": "a", "name": "ls", "arguments": '{"p":1}'},
]
RESPONSES = [
    {"type": "response.created", "response": {"object": "response", "model": "gpt-5"}},
    {"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": "hm"},
    {"type": "response.output_item.done", "output_index": 0, "item": RESPONSES_ITEMS[0]},
    {"type": "response.output_text.delta", "output_index": 1, "delta": "Be"},
    {"type": "response.output_text.delta", "output_index": 1, "delta": "cause"},
    {"type": "response.output_item.done", "output_index": 1, "item": RESPONSES_ITEMS[1]},
    {"type": "response.output_item.done", "output_index": 2, "item": RESPONSES_ITEMS[2]},
    {
        "type": "response.completed",
        "response": {
            "object": "response",
            "model": "gpt-5",
            "output": RESPONSES_ITEMS,
            "usage": {
                "input_tokens": 100,
                "input_tokens_details": {"cached_tokens": 40},
                "output_tokens": 9,
                "output_tokens_details": {"reasoning_tokens": 2},
            },
        },
    },
]


def gemini_chunk(*parts: dict[str, Any], output: int, **more: Any) -> dict[str, Any]:
    """Return a chunk of Gemini."""
    return {
        "candidates": [{"content": {"role": "model", "parts": [*parts]}, "index": 0, **more}],
        "modelVersion": "gemini-2.5-pro",
        "usageMetadata": {
            "promptTokenCount": 100,
            "cachedContentTokenCount": 40,
            "candidatesTokenCount": output,
        },
    }


GEMINI_CALL = {"functionCall": {"name": "ls", "args": {"p": 1}}, "thoughtSignature": "c2ln"}
GEMINI = [
    gemini_chunk({"text": "hm", "thought": True}, output=1),
    gemini_chunk({"text": "Be"}, output=2),
    gemini_chunk({"text": "cause"}, output=5),
    gemini_chunk(GEMINI_CALL, output=9, finishReason="STOP"),
]
GEMINI_MESSAGE = {
    "role": "model",
    "parts": [{"text": "hm", "thought": True}, {"text": "Because"}, GEMINI_CALL],
}

STREAMS: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]], str, str]] = {
    "openai": (CHAT, [CHAT_MESSAGE], "gpt-5", "openai"),
    "anthropic": (ANTHROPIC, [ANTHROPIC_MESSAGE], "claude-sonnet-4-5", "anthropic"),
    "responses": (RESPONSES, RESPONSES_ITEMS, "gpt-5", "openai"),
    "gemini": (GEMINI, [GEMINI_MESSAGE], "gemini-2.5-pro", "google"),
}
BROKEN_AFTER = {"openai": 4, "anthropic": 9, "responses": 5, "gemini": 3}
"""The chunks until all of the text has come."""


class Chunk(BaseModel):
    """An object of a client: a model with any fields."""

    model_config = ConfigDict(extra="allow")


@pytest.mark.parametrize("as_object", [False, True])
@pytest.mark.parametrize("provider", STREAMS)
def test_a_stream_is_stored_as_the_provider_would_tell_it(
    chat: Store, provider: str, as_object: bool
) -> None:
    """With its calls, and the usage before it, as of a response that came whole."""
    chunks, messages, model, by = STREAMS[provider]
    face = chat.scoped("ann") if as_object else chat
    with face.streaming("s", ANSWER, every_bytes=0) as answer:
        texts = [answer.take(Chunk(**each) if as_object else each) for each in chunks]
        (draft,) = chat.drafts("s")
        assert draft.message["content"] == "Because"
        assert draft.message["reasoning"] == "hm"
    assert "".join(texts) == "Because"
    assert [each.message for each in chat.messages("s", 2)] == messages
    assert answer.stored == chat.messages("s")[-1]
    (usage,) = chat.usages("s")
    assert (usage.seq, usage.model, usage.provider) == (1, model, by)
    assert (usage.output, usage.cached) == (9, 40)
    assert usage.input == (90 if provider == "anthropic" else 100)
    assert "estimated" not in usage.details
    assert chat.drafts() == []
    assert chat.verify() == []
    view = chat.view("s", format=provider)
    assert "ls" in str(view.messages)


@pytest.mark.parametrize("provider", STREAMS)
def test_what_breaks_off_is_counted(chat: Store, provider: str) -> None:
    """What is known of the usage, once; the draft holds the text, and is finished as a message."""
    chunks, _, model, _ = STREAMS[provider]
    with suppress(ZeroDivisionError), chat.streaming("s", ANSWER) as answer:
        for each in chunks[: BROKEN_AFTER[provider]]:
            answer.take(each)
        raise ZeroDivisionError
    (usage,) = chat.usages("s")
    assert usage.model == model
    assert usage.details["estimated"] is True
    assert usage.output > 1
    assert usage.input == {"anthropic": 90, "gemini": 100}.get(provider, 0)
    (draft,) = chat.drafts("s")
    stored = chat.finish_draft(draft)
    assert stored.message["content"] == "Because"
    assert len(chat.usages("s")) == 1
    assert chat.view("s", format=provider).messages


def take_and_wait(url: str, chunks: list[dict[str, Any]]) -> None:
    """Take chunks, and go on for ever."""
    with (
        Store(url, durability="normal") as store,
        store.streaming("s", ANSWER, every_bytes=0) as answer,
    ):
        for each in chunks:
            answer.take(each)
        time.sleep(600)


@pytest.mark.parametrize("end", ["finish_draft", "discard_draft"])
def test_the_cost_of_a_killed_stream_is_known(
    chat: Store, url: str, fork: Callable[..., Any], end: str
) -> None:
    """It is recorded when somebody finishes or discards the draft, since it was paid."""
    child = fork(take_and_wait, url, ANTHROPIC[: BROKEN_AFTER["anthropic"]])
    ends = time.monotonic() + 30
    while not (chat.drafts("s") and chat.drafts("s")[0].message.get("content") == "Because"):
        assert time.monotonic() < ends
        time.sleep(0.01)
    child.end(9)
    (draft,) = chat.drafts("s")
    assert chat.usages("s") == []
    getattr(chat.scoped("ann"), end)(draft, force=True)
    (usage,) = chat.usages("s")
    assert (usage.seq, usage.input, usage.model) == (1, 90, "claude-sonnet-4-5")
    assert usage.details["estimated"] is True
    assert chat.verify() == []


def test_a_stream_that_tells_no_usage_is_estimated(chat: Store) -> None:
    """As OpenAI's chat does without ``stream_options``: its output is counted."""
    with chat.scoped("ann").streaming("s", {**ANSWER, "id": "m"}) as answer:
        for each in CHAT[:-1]:
            answer.take(each)
    assert chat.messages("s")[-1].message == {**CHAT_MESSAGE, "id": "m"}
    (usage,) = chat.usages("s")
    assert (usage.model, usage.details["estimated"]) == ("gpt-5", True)
    assert usage.output > 10


def test_a_stream_that_is_left_early_is_estimated(chat: Store) -> None:
    """Whoever breaks out of the loop has a message, and a usage that says so."""
    with chat.streaming("s", ANSWER) as answer:
        for each in ANTHROPIC[: BROKEN_AFTER["anthropic"]]:
            answer.take(each)
    assert chat.messages("s")[-1].message["content"][-1] == {"type": "text", "text": "Because"}
    assert chat.usages("s")[0].details["estimated"] is True


@pytest.mark.parametrize("provider", STREAMS)
def test_a_stream_may_be_left_after_any_chunk(chat: Store, provider: str) -> None:
    """As by a button to stop: what came is the message, and every provider takes what follows."""
    chunks = STREAMS[provider][0]
    for count in range(len(chunks)):
        asked = chat.create_session(f"left after {count}").id
        chat.append(asked, {"role": "user", "content": "why?"})
        with chat.streaming(asked, ANSWER) as answer:
            said = "".join(map(answer.take, chunks[:count]))
        stored = chat.messages(asked, 2, format="openai")
        assert said in str([each.message.get("content") for each in stored]), count
        assert len(chat.usages(asked)) == min(count, 1)
        chat.append(asked, {"role": "user", "content": "go on"})
        for name in STREAMS:
            request = chat.context(asked, format=name)
            assert complaints(name, request.messages, request.system) == []
    assert chat.drafts() == []


WRONG = [None, 5, "text", [], {}, {"type": "other"}, {"choices": 5}, {"choices": ["x"]}]


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_no_chunk_is_refused(chat: Store, wrong: Any) -> None:
    """By an error of the store, and what came before stays."""
    with chat.streaming("s", ANSWER) as answer:
        with pytest.raises(InvalidValue):
            answer.take(wrong)
        answer.write("yes")
    assert chat.messages("s")[-1].message["content"] == "yes"


def test_a_stream_of_another_format_is_refused(chat: Store) -> None:
    """Where the message was begun as one of a format."""
    with chat.streaming("s", ANSWER, format="anthropic") as answer:
        with pytest.raises(InvalidValue, match="anthropic"):
            answer.take(CHAT[0])
        for each in ANTHROPIC:
            answer.take(each)
    assert chat.messages("s")[-1].message == ANTHROPIC_MESSAGE


def test_calls_without_numbers_come_whole(chat: Store) -> None:
    """As from servers that speak OpenAI's chat, and number nothing."""
    calls = [
        {"id": name, "type": "function", "function": {"name": "ls", "arguments": "{}"}}
        for name in "ab"
    ]
    with chat.streaming("s", ANSWER) as answer:
        for call in calls:
            answer.take(chat_chunk(tool_calls=[call]))
    assert chat.messages("s")[-1].message["tool_calls"] == calls


def test_chunks_are_taken_by_tasks(chat: Store, url: str) -> None:
    """The same awaited."""

    async def stream() -> list[str]:
        async with AsyncStore(url) as store, store.streaming("s", ANSWER) as answer:
            return [await answer.take(each) for each in GEMINI]

    assert asyncio.run(stream()) == ["", "Be", "cause", ""]
    assert chat.messages("s")[-1].message == GEMINI_MESSAGE
    assert chat.usages("s")[0].output == 9


def test_nothing_is_taken_outside(chat: Store) -> None:
    """Neither before nor after."""
    answer = chat.streaming("s", ANSWER)
    with pytest.raises(StoreError, match="inside"):
        answer.take(CHAT[0])
    with answer:
        pass
    with pytest.raises(StoreError):
        answer.take(CHAT[0])
