"""What an answer's request cost, as the keys of its message tell it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from ..messages import Message
from ..text import Fields
from .costs import Spent, Tokens
from .events import fields_of, first_text, list_of, text_of


def of_anthropic(extra: Fields) -> Iterator[Spent]:
    """Yield what Anthropic told: ``input_tokens`` are those that no cache had to do with."""
    usage = fields_of(extra.get("usage"))
    read, written = (_count(usage, f"cache_{kind}_input_tokens") for kind in ("read", "creation"))
    sent = _count(usage, "input_tokens") + read + written
    tokens = Tokens(sent, _count(usage, "output_tokens"), read, written)
    yield Spent(tokens, text_of(extra.get("model")), "anthropic", usage)


def of_openai(extra: Fields) -> Iterator[Spent]:
    """Yield what OpenAI told, in the words of either of its APIs."""
    told = fields_of(extra.get("usage"))
    sent = _count(told, "input_tokens") or _count(told, "prompt_tokens")
    answer = _count(told, "output_tokens") or _count(told, "completion_tokens")
    details = told.get("input_tokens_details") or told.get("prompt_tokens_details")
    cached = min(sent, _count(fields_of(details), "cached_tokens"))
    tokens = Tokens(sent, answer, cached)
    yield Spent(tokens, text_of(extra.get("model")), None, told)


def _of_codex(extra: Fields) -> Iterator[Spent]:
    """Yield what OpenAI told, of the answer and of requests that no answer stands for."""
    model = text_of(extra.get("model"))
    for usage in (extra.get("usage"), *list_of(extra.get("other_usages"))):
        told = fields_of(usage)
        sent = _count(told, "input_tokens")
        cached = min(sent, _count(told, "cached_input_tokens"))
        tokens = Tokens(sent, _count(told, "output_tokens"), cached)
        yield Spent(tokens, model, None, told)


def _of_gemini_cli(extra: Fields) -> Iterator[Spent]:
    """Yield what Google told: thoughts are beside the answer, results of its tools the input."""
    told = fields_of(extra.get("tokens"))
    count = partial(_count, told)
    sent, answer = count("input") + count("tool"), count("output") + count("thoughts")
    tokens = Tokens(sent, answer, min(sent, count("cached")))
    yield Spent(tokens, text_of(extra.get("model")), "google", told)


def of_gemini(extra: Fields) -> Iterator[Spent]:
    """Yield what any provider told: some count thoughts in the answer, others beside it."""
    told = fields_of(extra.get("usageMetadata"))
    count = partial(_count, told)
    sent = count("promptTokenCount")
    answer = max(count("candidatesTokenCount"), count("totalTokenCount") - sent)
    tokens = Tokens(sent, answer, min(sent, count("cachedContentTokenCount")))
    yield Spent(tokens, first_text(map(extra.get, MODELS)), None, told)


MODELS = ("model", "modelVersion")


def _of_adk(extra: Fields) -> Iterator[Spent]:
    """Yield what Google told of an event, in the words of its Python library."""
    told = fields_of(extra.get("usage_metadata"))
    sent = _count(told, "prompt_token_count")
    answer = max(_count(told, "candidates_token_count"), _count(told, "total_token_count") - sent)
    tokens = Tokens(sent, answer, min(sent, _count(told, "cached_content_token_count")))
    yield Spent(tokens, text_of(extra.get("model_version")), None, told)


def _of_vscode_chat(extra: Fields) -> Iterator[Spent]:
    """Yield what VS Code told of a turn, once."""
    told = fields_of(extra.get("usage"))
    tokens = Tokens(_count(told, "promptTokens"), _count(told, "completionTokens"))
    yield Spent(tokens, text_of(extra.get("model")), None, told)


def _of_pi(extra: Fields) -> Iterator[Spent]:
    """Yield what any provider told: ``input`` are tokens that no cache had to do with."""
    told = fields_of(extra.get("usage"))
    read, written = _count(told, "cacheRead"), _count(told, "cacheWrite")
    sent = _count(told, "input") + read + written
    tokens = Tokens(sent, _count(told, "output"), read, written)
    model, provider = text_of(extra.get("model")), text_of(extra.get("provider"))
    yield Spent(tokens, model, provider, told)


def _of_opencode(extra: Fields) -> Iterator[Spent]:
    """Yield what any provider told: what a cache held and thoughts are beside the rest."""
    told = fields_of(extra.get("tokens"))
    cache = fields_of(told.get("cache"))
    read, written = _count(cache, "read"), _count(cache, "write")
    sent = _count(told, "input") + read + written
    answer = _count(told, "output") + _count(told, "reasoning")
    tokens = Tokens(sent, answer, read, written)
    model, provider = text_of(extra.get("modelID")), text_of(extra.get("providerID"))
    yield Spent(tokens, model, provider, told)


def _of_goose(extra: Fields) -> Iterator[Spent]:
    """Yield what goose told of an answer: the input is all that was sent."""
    told = fields_of(extra.get("usage"))
    sent = _count(told, "inputTokens")
    read = min(sent, _count(told, "cacheReadTokens"))
    written = min(sent - read, _count(told, "cacheWriteTokens"))
    tokens = Tokens(sent, _count(told, "outputTokens"), read, written)
    yield Spent(tokens, text_of(extra.get("model")), None, told)


def _of_cursor(extra: Fields) -> Iterator[Spent]:
    """Yield what Cursor told of a bubble; where it tells nothing, its tokens are 0."""
    told = fields_of(extra.get("tokenCount"))
    tokens = Tokens(_count(told, "inputTokens"), _count(told, "outputTokens"))
    model = text_of(fields_of(extra.get("modelInfo")).get("modelName"))
    yield Spent(tokens, model, None, told)


def _of_chat(extra: Fields) -> Iterator[Spent]:
    """Yield what an API told, in its own words; some count what a cache held beside the rest."""
    answer = fields_of(extra.get("response"))
    told = fields_of(extra.get("usage") or answer.get("usage"))
    count = partial(_count, told)
    output = count("completion_tokens") or count("output_tokens")
    sent = count("prompt_tokens") or count("input_tokens")
    details = fields_of(told.get("prompt_tokens_details") or told.get("input_tokens_details"))
    cached = _count(details, "cached_tokens") or count("cached_tokens")
    cached = cached or count("input_tokens_cache_read") or count("cache_read_input_tokens")
    sent = max(sent + cached if cached > sent else sent, count("total_tokens") - output)
    model = text_of(extra.get("model")) or text_of(answer.get("model"))
    yield Spent(Tokens(sent, output, cached), model, None, told)


def _of_llm(extra: Fields) -> Iterator[Spent]:
    """Yield what the log has of a request, in words of its own."""
    tokens = Tokens(_count(extra, "input_tokens"), _count(extra, "output_tokens"))
    told: Fields = {"input_tokens": tokens.input, "output_tokens": tokens.output}
    model = first_text((extra.get("resolved_model"), extra.get("model")))
    yield Spent(tokens, model, None, told)


def _of_langgraph(extra: Fields) -> Iterator[Spent]:
    """Yield what any provider told, as LangChain says it: the input is all that was sent."""
    told, answer = fields_of(extra.get("usage_metadata")), fields_of(extra.get("response_metadata"))
    details = fields_of(told.get("input_token_details"))
    read, written = _count(details, "cache_read"), _count(details, "cache_creation")
    tokens = Tokens(_count(told, "input_tokens"), _count(told, "output_tokens"), read, written)
    model = first_text((answer.get("model_name"), answer.get("model")))
    yield Spent(tokens, model, text_of(answer.get("model_provider")), told)


TOLD: dict[str, Callable[[Fields], Iterator[Spent]]] = {
    "claude_code": of_anthropic,
    "codex": _of_codex,
    "gemini_cli": _of_gemini_cli,
    "qwen_code": of_gemini,
    "adk": _of_adk,
    "vscode_chat": _of_vscode_chat,
    "pi": _of_pi,
    "opencode": _of_opencode,
    "cursor": _of_cursor,
    "goose": _of_goose,
    "tau2_bench": _of_chat,
    "inspect": _of_chat,
    "moatless": _of_chat,
    "kiro": _of_chat,
    "llm": _of_llm,
    "langgraph": _of_langgraph,
    "extra": _of_chat,
}
"""Extra key of a message → what reads the cost of its request there."""


def spent_on(message: Message) -> list[Spent]:
    """Return what the requests of an answer cost, as far as its file tells; none of others."""
    if message.get("role") != "assistant":
        return []
    told = (read(fields_of(message[key])) for key, read in TOLD.items() if key in message)
    return [each for spent in told for each in spent if any(each.tokens)]


def _count(usage: Fields, name: str) -> int:
    """Return a number of tokens; 0 for what is none."""
    count = usage.get(name)
    return count if type(count) is int and 0 <= count < 2**53 else 0
