"""What a provider's client returns is recorded as the usage that it tells."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from conversations import NOW
from pydantic import BaseModel, ConfigDict

from store import InvalidValue, Policy, Store

CHAT = {
    "object": "chat.completion",
    "model": "gpt-5-2025-08-07",
    "choices": [],
    "usage": {
        "prompt_tokens": 1000,
        "completion_tokens": 50,
        "total_tokens": 1050,
        "prompt_tokens_details": {"cached_tokens": 700, "audio_tokens": 0},
    },
}
RESPONSES = {
    "object": "response",
    "model": "gpt-5",
    "usage": {
        "input_tokens": 1000,
        "input_tokens_details": {"cached_tokens": 700, "cache_write_tokens": 200},
        "output_tokens": 50,
        "output_tokens_details": {"reasoning_tokens": 20},
        "total_tokens": 1050,
    },
}
ANTHROPIC = {
    "type": "message",
    "model": "claude-sonnet-4-5-20250929",
    "content": [],
    "usage": {
        "input_tokens": 100,
        "cache_read_input_tokens": 700,
        "cache_creation_input_tokens": 200,
        "output_tokens": 50,
        "service_tier": "standard",
    },
}
GEMINI = {
    "modelVersion": "gemini-2.5-pro",
    "candidates": [],
    "usageMetadata": {
        "promptTokenCount": 980,
        "toolUsePromptTokenCount": 20,
        "cachedContentTokenCount": 700,
        "candidatesTokenCount": 30,
        "thoughtsTokenCount": 20,
        "totalTokenCount": 1050,
    },
}
GEMINI_OBJECT = {
    "model_version": "gemini-2.5-pro",
    "usage_metadata": {
        "prompt_token_count": 1000,
        "cached_content_token_count": 700,
        "candidates_token_count": 30,
        "thoughts_token_count": 20,
        "total_token_count": 1050,
        "prompt_tokens_details": [{"modality": "TEXT", "token_count": 1000}],
    },
}
OPENROUTER = {
    "model": "anthropic/claude-sonnet-4.5",
    "usage": {
        "prompt_tokens": 1000,
        "completion_tokens": 50,
        "prompt_tokens_details": {"cached_tokens": 700, "cache_write_tokens": 200},
    },
}
DEEPSEEK = {
    "model": "deepseek-chat",
    "usage": {"prompt_tokens": 1000, "completion_tokens": 50, "prompt_cache_hit_tokens": 700},
}
TOLD = {
    "chat": (CHAT, (1000, 50, 700, 0), "openai"),
    "responses": (RESPONSES, (1000, 50, 700, 200), "openai"),
    "anthropic": (ANTHROPIC, (1000, 50, 700, 200), "anthropic"),
    "gemini": (GEMINI, (1000, 50, 700, 0), "google"),
    "gemini object": (GEMINI_OBJECT, (1000, 50, 700, 0), "google"),
    "openrouter": (OPENROUTER, (1000, 50, 700, 200), None),
    "deepseek": (DEEPSEEK, (1000, 50, 700, 0), None),
}


class ClientObject(BaseModel):
    """An object as clients return it: any fields, objects in it."""

    model_config = ConfigDict(extra="allow")


def as_object(value: Any) -> Any:
    """Return a response with objects in place of dicts."""
    if not isinstance(value, dict):
        return value
    return ClientObject(**{key: as_object(each) for key, each in value.items()})


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    """Give a store with one session."""
    with Store(url, durability="normal") as opened:
        opened.create_session("s", now=NOW)
        opened.append("s", {"role": "user", "content": "Hi"}, now=NOW)
        yield opened


@pytest.mark.parametrize("shape", TOLD)
@pytest.mark.parametrize("form", ["dict", "object"])
def test_a_response_tells_its_usage(store: Store, shape: str, form: str) -> None:
    """With its model and provider; the usage alone tells the same tokens, and no model."""
    response, tokens, provider = TOLD[shape]
    said: dict[str, Any] = response.get("usage") or next(  # type: ignore[assignment]
        response[key] for key in ("usageMetadata", "usage_metadata") if key in response
    )
    given = [response, said] if form == "dict" else [as_object(response), as_object(said)]
    whole, alone = (store.record_usage("s", each, now=NOW) for each in given)
    for kept in (whole, alone):
        assert (kept.input, kept.output, kept.cached, kept.written) == tokens
        assert kept.details == {"told": said}
    model = next(response[key] for key in response if key.startswith("model"))
    assert (whole.model, whole.provider, alone.model) == (model, provider, None)
    assert store.usages("s") == [whole, alone]


def test_what_the_caller_names_takes_precedence(store: Store) -> None:
    """The model, the provider, the cost and details."""
    kept = store.record_usage(
        "s", CHAT, model="our-gpt", provider="azure", cost=0.5, details={"request": 7}, now=NOW
    )
    assert (kept.model, kept.provider, kept.cost) == ("our-gpt", "azure", 0.5)
    assert kept.details == {"told": CHAT["usage"], "request": 7}
    usage = {"input_tokens": 5, "output_tokens": 1}
    named = [
        store.record_usage("s", usage, model="gpt-5", now=NOW),
        store.record_usage("s", {**ANTHROPIC, "usage": usage}, now=NOW),
    ]
    assert [(each.input, each.provider) for each in named] == [(5, None), (5, "anthropic")]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"response": {"model": "gpt-5", "usage": None, "choices": []}}, "include_usage"),
        ({"response": 5}, "no tokens are told by 5"),
        ({"response": "text"}, "no tokens are told"),
        ({"response": {}}, "no tokens are told"),
        ({"response": CHAT, "input": 5}, "not both"),
        ({"response": CHAT, "details": [1]}, "details is an object"),
        ({"input": 5}, "output must be a number"),
        ({}, "give the response of a provider"),
        ({"received": "text"}, "received must be a message"),
    ],
    ids=str,
)
def test_what_tells_no_usage_is_refused(store: Store, given: dict[str, Any], said: str) -> None:
    """Nothing is written, and the text says what to give."""
    with pytest.raises(InvalidValue, match=said):
        store.record_usage("s", **given, now=NOW)
    assert store.usages() == []


def test_numbers_that_are_none_count_nothing(store: Store) -> None:
    """A server that tells nonsense breaks no turn."""
    usage = {"prompt_tokens": "many", "completion_tokens": 5, "prompt_tokens_details": [3]}
    kept = store.record_usage("s", {"usage": usage}, now=NOW)
    assert (kept.input, kept.output, kept.cached) == (0, 5, 0)


def test_a_stream_that_broke_off_is_estimated(store: Store) -> None:
    """Its output is counted; what was told of its input counts, and what nobody told is 0."""
    received = {"role": "assistant", "content": "word " * 400}
    begun = {"type": "message", "model": ANTHROPIC["model"], "usage": dict(ANTHROPIC["usage"])}  # type: ignore[call-overload]
    begun["usage"]["output_tokens"] = 1
    known = store.record_usage("s", begun, received=received, now=NOW)
    assert (known.input, known.cached, known.details["estimated"]) == (1000, 700, True)
    assert 400 <= known.output <= 600
    unknown = store.record_usage("s", received=received, model="gpt-5", now=NOW + 1)
    assert (unknown.input, unknown.output) == (0, known.output)
    assert unknown.cost == pytest.approx(known.output * 10 / 1e6)
    assert store.usages("s")[1].details == {"estimated": True}
    whole = store.record_usage("s", ANTHROPIC, received={"role": "assistant"}, now=NOW)
    assert whole.output == 50


def test_input_that_nobody_told_says_nothing_to_checks(store: Store) -> None:
    """The last usage with an input counts for them."""
    store.record_usage("s", input=90_000, output=1, now=NOW)
    store.record_usage("s", received={"role": "assistant", "content": "a"}, now=NOW + 1)
    assert store.check("s", Policy(), max_tokens=1, now=NOW + 1).reason.startswith("90001 ")
