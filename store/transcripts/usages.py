"""What an answer's request cost, as the keys of its message tell it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from ..records import Message
from ..text import JsonFields
from .parser_events import (
    RequestUsage,
    UsageTokens,
    find_first_text,
    get_fields,
    get_list,
    get_text,
)

UsageParser = Callable[[JsonFields], Iterator[RequestUsage]]

USAGE_PARSERS: dict[str, UsageParser] = {}
"""Extra key of a message → what reads the cost of its request there."""


def _read_key(*keys: str) -> Callable[[UsageParser], UsageParser]:
    """Enter a function in `USAGE_PARSERS` under the keys that it reads."""

    def decorate(parse: UsageParser) -> UsageParser:
        USAGE_PARSERS.update(dict.fromkeys(keys, parse))
        return parse

    return decorate


@_read_key("claude_code")
def parse_anthropic_usage(extra: JsonFields) -> Iterator[RequestUsage]:
    """Yield what Anthropic told: ``input_tokens`` are those that no cache had to do with."""
    usage = get_fields(extra.get("usage"))
    read, written = (
        _parse_token_count(usage, f"cache_{kind}_input_tokens") for kind in ("read", "creation")
    )
    sent = _parse_token_count(usage, "input_tokens") + read + written
    tokens = UsageTokens(sent, _parse_token_count(usage, "output_tokens"), read, written)
    yield RequestUsage(tokens, get_text(extra.get("model")), "anthropic", usage)


def parse_openai_usage(extra: JsonFields) -> Iterator[RequestUsage]:
    """Yield what OpenAI told, in the words of either of its APIs."""
    told = get_fields(extra.get("usage"))
    sent = _parse_token_count(told, "input_tokens") or _parse_token_count(told, "prompt_tokens")
    answer = _parse_token_count(told, "output_tokens") or _parse_token_count(
        told, "completion_tokens"
    )
    details = told.get("input_tokens_details") or told.get("prompt_tokens_details")
    cached = min(sent, _parse_token_count(get_fields(details), "cached_tokens"))
    tokens = UsageTokens(sent, answer, cached)
    yield RequestUsage(tokens, get_text(extra.get("model")), None, told)


@_read_key("codex")
def _parse_codex_usage(extra: JsonFields) -> Iterator[RequestUsage]:
    """Yield what OpenAI told, of the answer and of requests that no answer stands for."""
    model = get_text(extra.get("model"))
    for usage in (extra.get("usage"), *get_list(extra.get("other_usages"))):
        told = get_fields(usage)
        sent = _parse_token_count(told, "input_tokens")
        cached = min(sent, _parse_token_count(told, "cached_input_tokens"))
        tokens = UsageTokens(sent, _parse_token_count(told, "output_tokens"), cached)
        yield RequestUsage(tokens, model, None, told)


@_read_key("gemini_cli")
def _parse_gemini_cli_usage(extra: JsonFields) -> Iterator[RequestUsage]:
    """Yield what Google told: thoughts are beside the answer, results of its tools the input."""
    told = get_fields(extra.get("tokens"))
    count = partial(_parse_token_count, told)
    sent, answer = count("input") + count("tool"), count("output") + count("thoughts")
    tokens = UsageTokens(sent, answer, min(sent, count("cached")))
    yield RequestUsage(tokens, get_text(extra.get("model")), "google", told)


@_read_key("qwen_code")
def parse_gemini_usage(extra: JsonFields) -> Iterator[RequestUsage]:
    """Yield what any provider told: some count thoughts in the answer, others beside it."""
    told = get_fields(extra.get("usageMetadata"))
    count = partial(_parse_token_count, told)
    sent = count("promptTokenCount")
    answer = max(count("candidatesTokenCount"), count("totalTokenCount") - sent)
    tokens = UsageTokens(sent, answer, min(sent, count("cachedContentTokenCount")))
    yield RequestUsage(tokens, find_first_text(map(extra.get, GEMINI_MODEL_KEYS)), None, told)


GEMINI_MODEL_KEYS = ("model", "modelVersion")


@_read_key("adk")
def _parse_adk_usage(extra: JsonFields) -> Iterator[RequestUsage]:
    """Yield what Google told of an event, in the words of its Python library."""
    told = get_fields(extra.get("usage_metadata"))
    sent = _parse_token_count(told, "prompt_token_count")
    answer = max(
        _parse_token_count(told, "candidates_token_count"),
        _parse_token_count(told, "total_token_count") - sent,
    )
    tokens = UsageTokens(
        sent, answer, min(sent, _parse_token_count(told, "cached_content_token_count"))
    )
    yield RequestUsage(tokens, get_text(extra.get("model_version")), None, told)


@_read_key("vscode_chat")
def _parse_vscode_chat_usage(extra: JsonFields) -> Iterator[RequestUsage]:
    """Yield what VS Code told of a turn, once."""
    told = get_fields(extra.get("usage"))
    tokens = UsageTokens(
        _parse_token_count(told, "promptTokens"), _parse_token_count(told, "completionTokens")
    )
    yield RequestUsage(tokens, get_text(extra.get("model")), None, told)


@_read_key("pi")
def _parse_pi_usage(extra: JsonFields) -> Iterator[RequestUsage]:
    """Yield what any provider told: ``input`` are tokens that no cache had to do with."""
    told = get_fields(extra.get("usage"))
    read, written = _parse_token_count(told, "cacheRead"), _parse_token_count(told, "cacheWrite")
    sent = _parse_token_count(told, "input") + read + written
    tokens = UsageTokens(sent, _parse_token_count(told, "output"), read, written)
    model, provider = get_text(extra.get("model")), get_text(extra.get("provider"))
    yield RequestUsage(tokens, model, provider, told)


@_read_key("opencode")
def _parse_opencode_usage(extra: JsonFields) -> Iterator[RequestUsage]:
    """Yield what any provider told: what a cache held and thoughts are beside the rest."""
    told = get_fields(extra.get("tokens"))
    cache = get_fields(told.get("cache"))
    read, written = _parse_token_count(cache, "read"), _parse_token_count(cache, "write")
    sent = _parse_token_count(told, "input") + read + written
    answer = _parse_token_count(told, "output") + _parse_token_count(told, "reasoning")
    tokens = UsageTokens(sent, answer, read, written)
    model, provider = get_text(extra.get("modelID")), get_text(extra.get("providerID"))
    yield RequestUsage(tokens, model, provider, told)


@_read_key("cursor")
def _parse_cursor_usage(extra: JsonFields) -> Iterator[RequestUsage]:
    """Yield what Cursor told of a bubble; where it tells nothing, its tokens are 0."""
    told = get_fields(extra.get("tokenCount"))
    tokens = UsageTokens(
        _parse_token_count(told, "inputTokens"), _parse_token_count(told, "outputTokens")
    )
    model = get_text(get_fields(extra.get("modelInfo")).get("modelName"))
    yield RequestUsage(tokens, model, None, told)


@_read_key("goose")
def _parse_goose_usage(extra: JsonFields) -> Iterator[RequestUsage]:
    """Yield what goose told of an answer: the input is all that was sent."""
    told = get_fields(extra.get("usage"))
    sent = _parse_token_count(told, "inputTokens")
    read = min(sent, _parse_token_count(told, "cacheReadTokens"))
    written = min(sent - read, _parse_token_count(told, "cacheWriteTokens"))
    tokens = UsageTokens(sent, _parse_token_count(told, "outputTokens"), read, written)
    yield RequestUsage(tokens, get_text(extra.get("model")), None, told)


@_read_key("llm")
def _parse_llm_usage(extra: JsonFields) -> Iterator[RequestUsage]:
    """Yield what the log has of a request, in words of its own."""
    tokens = UsageTokens(
        _parse_token_count(extra, "input_tokens"), _parse_token_count(extra, "output_tokens")
    )
    told: JsonFields = {"input_tokens": tokens.input, "output_tokens": tokens.output}
    model = find_first_text((extra.get("resolved_model"), extra.get("model")))
    yield RequestUsage(tokens, model, None, told)


@_read_key("langgraph")
def _parse_langgraph_usage(extra: JsonFields) -> Iterator[RequestUsage]:
    """Yield what any provider told, as LangChain says it: the input is all that was sent."""
    told, answer = (
        get_fields(extra.get("usage_metadata")),
        get_fields(extra.get("response_metadata")),
    )
    details = get_fields(told.get("input_token_details"))
    read, written = (
        _parse_token_count(details, "cache_read"),
        _parse_token_count(details, "cache_creation"),
    )
    tokens = UsageTokens(
        _parse_token_count(told, "input_tokens"),
        _parse_token_count(told, "output_tokens"),
        read,
        written,
    )
    model = find_first_text((answer.get("model_name"), answer.get("model")))
    yield RequestUsage(tokens, model, get_text(answer.get("model_provider")), told)


@_read_key("tau2_bench", "inspect", "moatless", "kiro", "extra")
def _parse_chat_usage(extra: JsonFields) -> Iterator[RequestUsage]:
    """Yield what an API told, in its own words; some count what a cache held beside the rest."""
    answer = get_fields(extra.get("response"))
    told = get_fields(extra.get("usage") or answer.get("usage"))
    count = partial(_parse_token_count, told)
    output = count("completion_tokens") or count("output_tokens")
    sent = count("prompt_tokens") or count("input_tokens")
    details = get_fields(told.get("prompt_tokens_details") or told.get("input_tokens_details"))
    cached = _parse_token_count(details, "cached_tokens") or count("cached_tokens")
    cached = cached or count("input_tokens_cache_read") or count("cache_read_input_tokens")
    sent = max(sent + cached if cached > sent else sent, count("total_tokens") - output)
    model = get_text(extra.get("model")) or get_text(answer.get("model"))
    yield RequestUsage(UsageTokens(sent, output, cached), model, None, told)


class TokenKeys(NamedTuple):
    """The keys under which a program counts tokens: of a request, an answer, and a cache.

    ``beside``: what a cache had to do with is not part of the request's.
    """

    sent: str
    answer: str
    cached: str = ""
    written: str = ""
    beside: bool = True


def build_request_usage(
    told: object, keys: TokenKeys, model: object = None, provider: object = None
) -> tuple[RequestUsage, ...]:
    """Return what a request cost, as its program counts it; nothing where it counts nothing."""
    fields = get_fields(told)
    cached, written = (_parse_token_count(fields, key) for key in (keys.cached, keys.written))
    sent = _parse_token_count(fields, keys.sent) + (cached + written if keys.beside else 0)
    tokens = UsageTokens(
        sent, _parse_token_count(fields, keys.answer), min(sent, cached), min(sent, written)
    )
    if not any(tokens):
        return ()
    return (RequestUsage(tokens, get_text(model), get_text(provider), fields),)


def parse_message_usage(message: Message) -> list[RequestUsage]:
    """Return what the requests of an answer cost, as far as its file tells; none of others."""
    if message.get("role") != "assistant":
        return []
    told = (read(get_fields(message[key])) for key, read in USAGE_PARSERS.items() if key in message)
    return [each for spent in told for each in spent if any(each.tokens)]


def _parse_token_count(usage: JsonFields, name: str) -> int:
    """Return a number of tokens; 0 for a value that is none."""
    count = usage.get(name)
    return count if type(count) is int and 0 <= count < 2**53 else 0
